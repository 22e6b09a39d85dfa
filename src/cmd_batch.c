// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop --batch: the figures of each interval on standard output, until -n is reached, a
 * signal asks for the end, or nobody reads any more.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "commands.h"
#include "engine.h"
#include "format.h"
#include "options.h"
#include "when.h"

/* Snapshots that wait while a slow reader keeps us. */
#define DEPTH 16
/* How long a write may be stuck after SIGTERM before the record is given up. */
#define GRACE_MS 2000
/* How long a first record waits until all VMs of a large host are found, ns. */
#define FIND_ALL (5 * (int64_t)1000000000)

struct batch {
	const struct options *o;
	const struct format *format;
	struct format_job job;
	struct format_state *state;
	struct engine *engine;
	struct reader *reader;
	struct out *out;
	int sigfd;
	uint64_t records;
	int64_t since; /* of the first snapshot, ns */
	bool found_all; /* before the snapshot that is looked at now */
	bool said_no_vm;
};

static const struct format *format_of(enum output_format f)
{
	static const struct format *const formats[] = {
		[FORMAT_TEXT] = &format_text,
		[FORMAT_CSV] = &format_csv,
		[FORMAT_JSON] = &format_json,
	};

	return formats[f];
}

static int open_format(struct batch *b, char *err, size_t size)
{
	const struct options *o = b->o;

	b->format = format_of(o->format);
	b->job = (struct format_job){
		.query = {.table = o->table ? o->table : batch_table_find(b->format->default_table),
			  .filter = o->filter,
			  .when = o->when,
			  .sort = o->sort,
			  .reverse = o->reverse,
			  .total = o->totals,
			  .as_screen = o->format == FORMAT_TEXT},
		.fields = o->fields,
		.whole = o->format == FORMAT_JSON && !o->table,
	};
	return b->format->open(&b->job, &b->state, err, size);
}

static bool field_asked(const struct options *o, const char *id)
{
	return (o->fields && strstr(o->fields, id)) || (o->sort && strcmp(o->sort, id) == 0) ||
	       (o->when_text && strstr(o->when_text, id));
}

/* CSV has all fields where none are named. */
static bool samples_asked(const struct options *o, const struct batch_table *t)
{
	static const char *const ids[] = {"samples",	      "host_kernel_pct", "host_user_pct",
					  "guest_kernel_pct", "guest_user_pct",	 "hot_symbol",
					  "sampling"};

	if (!o->fields && o->format != FORMAT_TEXT &&
	    (t->first == TABLE_VM || t->first == TABLE_VCPU || t->first == TABLE_HOST))
		return true;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (field_asked(o, ids[i]))
			return true;
	return false;
}

static struct demand demand_of(const struct batch *b)
{
	const struct batch_table *t = b->job.query.table;
	bool whole = b->job.whole;

	return (struct demand){
		.kinds = b->o->kinds ? b->o->kinds : KIND_BIT(KIND_VMEXIT),
		.samples = whole || t->first == TABLE_SYMBOL || samples_asked(b->o, t),
		.samples_all = whole || t->first == TABLE_SYMBOL || t->first == TABLE_CODE,
		.exit_code = t->first == TABLE_CODE,
		.exits_all_vcpus = whole || (t->vcpu_rows && t->first == TABLE_EXIT),
		.threads = t->first == TABLE_THREAD,
		.tasks = whole || t->other || t->first == TABLE_TASK,
		/* Costly a vCPU: only for who names them. */
		.pins = field_asked(b->o, "pin") || field_asked(b->o, "numa_node"),
	};
}

static int open_engine(struct batch *b, char *err, size_t size)
{
	const struct engine_config cfg = {
		.root = b->o->root,
		.collectors = b->o->collectors,
		.delay_s = b->o->delay_s,
		.max_overhead_pct = b->o->max_overhead_pct,
		.guest_files = &b->o->guest_files,
		.collector = {.delay_s = b->o->delay_s,
			      .threads_by_proc = b->o->threads_by_proc,
			      .sample_hz = b->o->sample_hz,
			      .sample_with = b->o->sample_with,
			      .sample_host = b->o->sample_host,
			      .sample_guest = b->o->sample_guest},
	};
	struct demand d = demand_of(b);
	int rc = engine_new(&cfg, &b->engine, err, size);

	if (rc)
		return rc;
	b->reader = engine_reader(b->engine, DEPTH);
	rc = -errno;
	if (b->reader) {
		reader_demand(b->reader, &d);
		rc = engine_start(b->engine);
	}
	if (rc)
		snprintf(err, size, "cannot start collecting: %s", strerror(-rc));
	return rc;
}

/* Blocked before any thread is made, so that all of them inherit it. */
static int open_signals(struct batch *b)
{
	static const int wanted[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigaddset(&set, wanted[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	b->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return b->sigfd < 0 ? -errno : 0;
}

/* A selection that nothing matches looks like a quiet host: say it, once. */
static void check_selection(struct batch *b, const struct snapshot *s)
{
	if (b->said_no_vm || !filter_has_vms(b->o->filter) ||
	    s->host.discovered < s->host.discovering)
		return;
	b->said_no_vm = true;
	for (size_t i = 0; i < s->nvms; i++)
		if (filter_vm(b->o->filter, &s->vms[i]))
			return;
	fprintf(stderr,
		"kvmtop: none of the %zu VMs here is selected by -p or -M; waiting for one\n",
		s->nvms);
}

/*
 * No record comes of it: there is no interval yet, or VMs were still being found in it, so that
 * one that a script asked for may be missing, or has no figures.
 */
static bool is_baseline(struct batch *b, const struct snapshot *s)
{
	bool before = b->found_all;

	if (before)
		return !s->dt;
	if (!b->since)
		b->since = s->time;
	b->found_all = s->host.discovered >= s->host.discovering || s->time - b->since >= FIND_ALL;
	return true;
}

/* One record, whole or not at all. 0, 1: the end, or -errno. */
static int write_snapshot(struct batch *b, const struct snapshot *s)
{
	int rc;

	if (is_baseline(b, s))
		return 0;
	check_selection(b, s);
	rc = b->format->record(b->state, b->out, s);
	if (rc)
		return rc;
	rc = out_flush(b->out);
	if (rc)
		return rc;
	b->records++;
	return b->o->iterations && b->records >= b->o->iterations;
}

static int write_waiting(struct batch *b)
{
	struct snapshot *s;
	uint64_t skipped;
	int rc = 0;

	while (!rc && (s = reader_take(b->reader, &skipped)) != NULL) {
		if (skipped)
			fprintf(stderr,
				"kvmtop: %llu intervals were skipped: standard output is too "
				"slow\n",
				(unsigned long long)skipped);
		rc = write_snapshot(b, s);
		snapshot_unref(s);
	}
	return rc;
}

/* 0: ended as it should, or -errno. */
static int run(struct batch *b)
{
	struct pollfd p[3] = {
		{.fd = reader_fd(b->reader), .events = POLLIN},
		{.fd = b->sigfd, .events = POLLIN},
		{.fd = STDOUT_FILENO}, /* only whether its reader went away */
	};
	int rc;

	for (;;) {
		rc = poll(p, 3, -1);
		if (rc < 0 && errno != EINTR)
			return -errno;
		if (p[0].revents) {
			rc = write_waiting(b);
			if (rc)
				return rc > 0 ? 0 : rc;
		}
		if (p[1].revents)
			return 0;
		if (p[2].revents & POLLERR)
			return -EPIPE;
		/* A closed or odd descriptor is the next write's to complain about. */
		if (p[2].revents)
			p[2].fd = -1;
	}
}

static int finish(const struct batch *b, int rc, const char *err)
{
	/* Whoever read us has had enough, or the user ended a run that was stuck. */
	if (rc == -EPIPE || rc == -EINTR)
		rc = 0;
	if (rc) {
		if (err[0])
			fprintf(stderr, "kvmtop: %s\n", err);
		else
			fprintf(stderr, "kvmtop: cannot write the figures: %s\n", strerror(-rc));
		return STATUS_FAILED;
	}
	return b->o->when && when_matched(b->o->when) ? STATUS_MATCHED : STATUS_OK;
}

int cmd_batch(const struct options *o)
{
	struct batch b = {.o = o, .sigfd = -1};
	char err[320] = "";
	int rc = open_signals(&b);

	if (!rc) {
		b.out = out_new(STDOUT_FILENO, b.sigfd, GRACE_MS);
		rc = b.out ? open_format(&b, err, sizeof(err)) : -ENOMEM;
	}
	if (!rc)
		rc = open_engine(&b, err, sizeof(err));
	if (!rc)
		rc = run(&b);
	engine_free(b.engine);
	if (b.format)
		b.format->close(b.state);
	out_free(b.out);
	if (b.sigfd >= 0)
		close(b.sigfd);
	return finish(&b, rc, err);
}
