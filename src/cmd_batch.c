// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop --batch: the figures of each interval on standard output, until -n is reached, a
 * signal asks for the end, or nobody reads any more.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch_out.h"
#include "commands.h"
#include "engine.h"
#include "options.h"
#include "priority.h"

/* Snapshots that wait while a slow reader keeps us. */
#define DEPTH 16
/* How long a first record waits until all VMs of a large host are found, ns. */
#define FIND_ALL (5 * (int64_t)1000000000)

struct batch {
	const struct options *o;
	struct batch_out out;
	struct engine *engine;
	struct reader *reader;
	int64_t since; /* of the first snapshot, ns */
	bool found_all; /* before the snapshot that is looked at now */
	struct demand demand;
	bool code_begun; /* rows by guest code of a selected VM are there, or there is none */
};

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

/* Costs each change of tasks on the host: only for who names it. */
static bool waits_asked(const struct options *o, const struct batch_table *t)
{
	return t->first == TABLE_WAITED || field_asked(o, "waited") || field_asked(o, "wake");
}

/* Reading a counter interrupts the CPU on which it counts: only for who names it. */
static bool pmu_asked(const struct options *o, const struct batch_table *t)
{
	return t->first == TABLE_PMU || field_asked(o, "pmu");
}

/* Costly a vCPU: only for who names them, or has a column that counts them. */
static bool pins_asked(const struct options *o, const struct batch_table *t)
{
	return field_asked(o, "pin") || field_asked(o, "numa_node") ||
	       (t->first == TABLE_CPU && !o->fields);
}

static bool selects(const struct batch *b)
{
	return b->out.job.query.table->first == TABLE_CODE && filter_has_vms(b->o->filter);
}

static struct demand demand_of(const struct batch *b)
{
	const struct batch_table *t = b->out.job.query.table;
	bool whole = b->out.job.whole && b->o->format == FORMAT_JSON;

	return (struct demand){
		.kinds = b->o->kinds ? b->o->kinds : KIND_BIT(KIND_VMEXIT),
		.samples = whole || t->first == TABLE_SYMBOL || samples_asked(b->o, t),
		.samples_all = whole || t->first == TABLE_SYMBOL ||
			       (t->first == TABLE_CODE && !selects(b)),
		.exit_code = t->first == TABLE_CODE,
		.slow_ns =
			b->o->slow_ns || t->first != TABLE_SLOW ? b->o->slow_ns : SLOW_DEFAULT_NS,
		.slow_past = b->o->totals,
		.exits_all_vcpus = whole || (t->vcpu_rows && t->first == TABLE_EXIT),
		.waits_all = waits_asked(b->o, t),
		.pmu_all = pmu_asked(b->o, t),
		.threads = t->first == TABLE_THREAD,
		.tasks = whole || t->other || t->first == TABLE_TASK,
		.pins = pins_asked(b->o, t),
	};
}

/*
 * Each exit of the host is taken only for who wants the code of very many VMs: of some their vCPUs'
 * are enough. Which they are shows when VMs are found; they come and go.
 */
static void follow_selection(struct batch *b, const struct snapshot *s)
{
	memset(b->demand.code_vm, 0, sizeof(b->demand.code_vm));
	b->demand.samples_all = false;
	for (size_t i = 0; i < s->nvms; i++)
		if (filter_vm(b->o->filter, &s->vms[i]))
			b->demand.samples_all |= !demand_add_code(&b->demand, s->vms[i].id);
	reader_demand(b->reader, &b->demand);
}

/* A selected VM is found, but its exits are not counted by their code yet. */
static bool awaits_code(const struct batch *b, const struct snapshot *s)
{
	bool awaited = false;

	for (size_t i = 0; i < s->nvms; i++)
		if (filter_vm(b->o->filter, &s->vms[i])) {
			if (s->vms[i].code_known)
				return false;
			awaited = true;
		}
	return awaited;
}

static int open_engine(struct batch *b, char *err, size_t size)
{
	const struct engine_config cfg = {
		.root = b->o->root,
		.guest_files = &b->out.o->guest_files,
		.collectors = b->o->collectors,
		.delay_s = b->o->delay_s,
		.max_overhead_pct = b->o->max_overhead_pct,
		.collector = options_collector(b->o),
	};
	int rc = engine_new(&cfg, &b->engine, err, size);

	if (rc)
		return rc;
	b->demand = demand_of(b);
	b->reader = engine_reader(b->engine, DEPTH);
	rc = -errno;
	if (b->reader) {
		reader_demand(b->reader, &b->demand);
		rc = engine_start(b->engine);
	}
	if (rc)
		snprintf(err, size, "cannot start collecting: %s", strerror(-rc));
	return rc;
}

/*
 * No record comes of it: there is no interval yet, or VMs were still being found in it, so that
 * one that a script asked for may be missing, or has no figures.
 */
static bool is_incomplete(struct batch *b, const struct snapshot *s)
{
	bool before = b->found_all;

	if (before)
		return !s->dt;
	if (!b->since)
		b->since = s->time;
	b->found_all = s->host.discovered >= s->host.discovering || s->time - b->since >= FIND_ALL;
	return true;
}

static bool is_baseline(struct batch *b, const struct snapshot *s)
{
	bool incomplete = is_incomplete(b, s);

	if (selects(b))
		follow_selection(b, s);
	if (!incomplete && !b->code_begun)
		b->code_begun = !selects(b) || !awaits_code(b, s);
	return incomplete || !b->code_begun;
}

static int write_snapshot(struct batch *b, const struct snapshot *s)
{
	return is_baseline(b, s) ? 0 : batch_out_write(&b->out, s);
}

/* A script that waits for a first record would wait for ever. */
static int look_for_failure(struct batch *b, char *err, size_t size)
{
	int rc = reader_failure(b->reader);

	if (!rc)
		return 0;
	if (!b->out.records) {
		snprintf(err, size, "no figures: %s: ulimit -v, or MemoryMax= of the service",
			 strerror(-rc));
		return rc;
	}
	fprintf(stderr, "kvmtop: no figures of three intervals: %s: trying on\n", strerror(-rc));
	return 0;
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
static int run(struct batch *b, char *err, size_t size)
{
	struct pollfd p[3] = {
		{.fd = reader_fd(b->reader), .events = POLLIN},
		{.fd = b->out.sigfd, .events = POLLIN},
		{.fd = STDOUT_FILENO}, /* only whether its reader went away */
	};
	int rc;

	priority_raise();
	for (;;) {
		rc = poll(p, 3, -1);
		if (rc < 0 && errno != EINTR)
			return -errno;
		if (p[0].revents) {
			rc = write_waiting(b);
			if (!rc)
				rc = look_for_failure(b, err, size);
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

int cmd_batch(const struct options *o)
{
	struct batch b = {.o = o, .out.sigfd = -1};
	char err[320] = "";
	int rc = batch_out_open(&b.out, o, err, sizeof(err));

	if (!rc)
		rc = open_engine(&b, err, sizeof(err));
	if (!rc)
		rc = run(&b, err, sizeof(err));
	engine_free(b.engine);
	batch_out_close(&b.out);
	return batch_out_status(&b.out, rc, err);
}
