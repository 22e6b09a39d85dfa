// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop record: keeps every interval in a recording (store.h) until -n is reached, a signal asks
 * for the end, or the command that it was started with ends.
 *
 * A thread of its own writes: a slow disk never holds up collecting. Up to four intervals wait for
 * it; above that the oldest is left out, and counted in the recording.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "commands.h"
#include "engine.h"
#include "host_facts.h"
#include "options.h"
#include "priority.h"
#include "signals.h"
#include "store.h"
#include "store_time.h"
#include "sysroot.h"
#include "text.h"

#define QUEUE 4
/* How long the end waits for the interval that is cut short. */
#define LAST_MS 3000
/* How often it is looked whether the host is still what it was: modules are reloaded, mitigations
 * switched, VMMs of a new version started. */
#define FACTS_NS (60 * NS_PER_S)

struct recorder {
	const struct options *o;
	struct store_keep keep;
	double delay_s;
	const char *path;
	struct store *store; /* NULL: it was renamed and a new one could not be made yet */
	struct engine *engine;
	struct reader *reader;
	pthread_t thread;
	bool running;
	int sigfd, stop_fd, wrote_fd; /* stop: main → writer; wrote: writer → main */
	sigset_t before; /* the signal mask that was found: the command's */
	pid_t child; /* 0 none */
	int child_status;
	/* The writer's; main looks at them when it has ended, at `written` also before. */
	atomic_ullong written;
	atomic_bool damaged; /* nothing more can be written */
	uint64_t missing; /* intervals that are not in the recording */
	uint64_t pending; /* … and not yet counted in it */
	bool failing;
	struct sysroot *root;
	struct vmm_versions *vmms;
	struct host_facts facts; /* as they are in the recording */
	int64_t facts_at; /* when they are read again, CLOCK_MONOTONIC */
};

/* As many as were asked for, or can be: no more are taken, however late main looks. */
static bool enough(struct recorder *r)
{
	if (atomic_load(&r->damaged))
		return true;
	return r->o->iterations && atomic_load(&r->written) >= r->o->iterations;
}

/* ---- the writer's thread ---- */

static void say_failing(struct recorder *r, int rc)
{
	char safe[PATH_MAX];

	if (r->failing)
		return;
	r->failing = true;
	text_escape(safe, sizeof(safe), r->path);
	if (rc == -ENOSPC)
		fprintf(stderr,
			"kvmtop: %s: no room left: nothing is recorded until there is some\n",
			safe);
	else if (rc == -EBADMSG)
		fprintf(stderr, "kvmtop: %s: a damaged recording: it cannot be gone on with\n",
			safe);
	else
		fprintf(stderr, "kvmtop: %s: cannot be written (%s): trying on\n", safe,
			strerror(-rc));
}

static void say_mended(struct recorder *r)
{
	if (!r->failing)
		return;
	r->failing = false;
	fprintf(stderr, "kvmtop: recording again; %" PRIu64 " intervals are missing\n", r->pending);
}

/* "1.5h": two digits of it. */
static const char *about_text(int64_t ns, char *buf, size_t size)
{
	double s = (double)ns / 1e9;
	double unit = s >= 2 * 86400 ? 86400 : s >= 2 * 3600 ? 3600 : s >= 120 ? 60 : 1;
	double v = s / unit;

	snprintf(buf, size, "%.*f%c", v < 10 ? 1 : 0, v,
		 unit > 3600 ? 'd'
		 : unit > 60 ? 'h'
		 : unit > 1  ? 'm'
			     : 's');
	return buf;
}

/* Said when the first interval is there, whose size tells how many will fit. */
static void say_start(struct recorder *r)
{
	const struct store_keep *k = &r->keep;
	char safe[PATH_MAX], tiers[160], text[40];
	int64_t reach, all = k->tier[k->n - 1].keep_ns;
	double bytes = store_expected(r->store, &reach);

	text_escape(safe, sizeof(safe), r->path);
	store_keep_text(k, tiers, sizeof(tiers));
	fprintf(stderr, "kvmtop: recording into %s: %s: will reach back ", safe, tiers);
	if (reach < all)
		fprintf(stderr, "about %s, as far as %.4g MiB hold\n",
			about_text(reach, text, sizeof(text)), (double)k->max_bytes / (1 << 20));
	else
		fprintf(stderr, "%s (about %.3g MiB)\n",
			store_duration_text(all, text, sizeof(text)), bytes / (1 << 20));
}

/*
 * A recording that was renamed (that is how files are rotated) or removed is closed, and one begins
 * anew where it was. Where that fails it is tried again with the next interval.
 */
static void follow_path(struct recorder *r)
{
	char err[400], safe[PATH_MAX];

	if (r->store && !store_is_moved(r->store))
		return;
	if (r->store) {
		text_escape(safe, sizeof(safe), r->path);
		fprintf(stderr, "kvmtop: %s: renamed or removed: a new recording begins there\n",
			safe);
		store_close(r->store);
		r->store = NULL;
	}
	if (store_create(r->path, &r->keep, &r->store, err, sizeof(err))) {
		r->store = NULL;
		if (!r->failing)
			fprintf(stderr, "kvmtop: %s: trying on\n", err);
		r->failing = true;
		return;
	}
	host_facts_free(&r->facts);
	r->facts = (struct host_facts){0};
	r->facts_at = 0;
}

/* What fails is tried again with the next interval: it costs the facts, never the interval. */
static void write_facts(struct recorder *r, const struct snapshot *s)
{
	struct host_facts now;
	int rc;

	if (clock_mono_ns() < r->facts_at || host_facts_read(r->root, &now))
		return;
	for (size_t i = 0; i < s->nvms; i++)
		vmm_versions_add(r->vmms, r->root, s->vms[i].pid, s->vms[i].vmm, &now);
	rc = host_facts_equal(&now, &r->facts) ? 0 : store_write_facts(r->store, &now);
	if (rc) {
		host_facts_free(&now);
		return;
	}
	host_facts_free(&r->facts);
	r->facts = now;
	r->facts_at = clock_mono_ns() + FACTS_NS;
}

static int write_interval(struct recorder *r, const struct snapshot *s)
{
	int rc;

	if (!r->store)
		return -ENOENT; /* follow_path() has said so */
	write_facts(r, s);
	rc = store_write(r->store, s, r->pending);
	if (rc)
		say_failing(r, rc);
	if (rc == -EBADMSG) /* it stays so, however often it is tried */
		atomic_store(&r->damaged, true);
	return rc;
}

static void write_one(struct recorder *r, const struct snapshot *s, uint64_t skipped)
{
	uint64_t one = 1;

	r->pending += skipped;
	r->missing += skipped;
	if (!s->dt) /* the baseline: there is no interval yet */
		return;
	if (write_interval(r, s)) {
		r->pending++;
		r->missing++;
	} else {
		say_mended(r);
		r->pending = 0;
		if (!atomic_fetch_add(&r->written, 1))
			say_start(r);
		/* What fails of it is tried again with the next interval. */
		store_age(r->store);
	}
	if (write(r->wrote_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already then */
}

static void write_waiting(struct recorder *r)
{
	struct snapshot *s, *late;
	uint64_t skipped;
	int rc;

	while (!enough(r) && (s = reader_take(r->reader, &skipped)) != NULL) {
		late = reader_tsc(r->reader);
		follow_path(r);
		if (late && r->store)
			(void)store_late_tsc(r->store, late);
		snapshot_unref(late);
		write_one(r, s, skipped);
		snapshot_unref(s);
	}
	rc = reader_failure(r->reader);
	if (rc)
		fprintf(stderr, "kvmtop: no figures of three intervals: %s: trying on\n",
			strerror(-rc));
}

static void *writer(void *ctx)
{
	struct recorder *r = ctx;
	struct pollfd p[] = {
		{.fd = reader_fd(r->reader), .events = POLLIN},
		{.fd = r->stop_fd, .events = POLLIN},
	};

	priority_raise();
	store_hold_memory();
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		write_waiting(r);
		if (p[1].revents || enough(r))
			return NULL;
	}
}

/* ---- start ---- */

#define FOLDER "/var/lib/kvmtop" /* of STORE_DEFAULT */

/* The default recording's folder is made; any other's is the user's business. 0 or -errno. */
static int make_folder(const struct recorder *r)
{
	if (r->o->output || !mkdir(FOLDER, 0700) || errno == EEXIST)
		return 0;
	return -errno;
}

static int open_store(struct recorder *r, char *err, size_t size)
{
	int rc = make_folder(r);

	r->path = r->o->output ? r->o->output : STORE_DEFAULT;
	if (rc) {
		snprintf(err, size, "%s cannot be made: %s: give -o FILE%s", FOLDER, strerror(-rc),
			 rc == -EACCES || rc == -EPERM ? ", or run as root" : "");
		return rc;
	}
	rc = store_create(r->path, &r->keep, &r->store, err, size);
	if (rc == -ENOENT || rc == -EACCES)
		snprintf(err + strlen(err), size - strlen(err), ": give -o FILE%s",
			 r->o->output ? " in a folder that is there and yours" : "");
	return rc;
}

static int open_engine(struct recorder *r, char *err, size_t size)
{
	const struct options *o = r->o;
	struct engine_config cfg = {
		.root = o->root,
		.guest_files = &o->guest_files,
		.collectors = o->collectors,
		.delay_s = r->delay_s,
		.max_overhead_pct = o->max_overhead_pct,
		.collector = options_collector(o),
	};
	const struct demand d = {
		.kinds = KIND_BIT(KIND_VMEXIT) | o->kinds,
		.exits_all_vcpus = true,
		.samples = o->sample_hz > 0,
		.samples_all = o->sample_hz > 0,
		.waits_all = true,
		.slow_ns = o->slow_ns,
		/* Of the exits of MSRs: who asks for these wants to know what they were for. */
		.pmu_all = (o->kinds & KIND_BIT(KIND_MSR)) != 0,
		.threads = true,
		.tasks = true,
	};
	int rc;

	cfg.collector.tsc_writes = true;
	rc = sysroot_open(o->root, &r->root);

	r->vmms = vmm_versions_new();
	if (!rc)
		rc = r->vmms ? engine_new(&cfg, &r->engine, err, size) : -ENOMEM;
	if (rc)
		return rc;
	r->reader = engine_reader(r->engine, QUEUE);
	if (!r->reader)
		return -errno;
	reader_keep_tsc(r->reader);
	reader_demand(r->reader, &d);
	return engine_start(r->engine);
}

/* Blocked before any thread is made, so that all of them inherit it. */
static int open_signals(struct recorder *r)
{
	r->sigfd = signals_open(true, &r->before);
	if (r->sigfd < 0)
		return r->sigfd;
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	r->wrote_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return r->stop_fd < 0 || r->wrote_fd < 0 ? -errno : 0;
}

static int start_writer(struct recorder *r)
{
	int rc = pthread_create(&r->thread, NULL, writer, r);

	r->running = !rc;
	if (!rc)
		pthread_setname_np(r->thread, "kvmtop-record");
	return -rc;
}

static int start_command(struct recorder *r, char *err, size_t size)
{
	posix_spawnattr_t attr;
	sigset_t usual;
	char safe[80];
	int rc;

	if (!r->o->nwords)
		return 0;
	posix_spawnattr_init(&attr);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE); /* which we ignore */
	sigaddset(&usual, SIGXFSZ);
	posix_spawnattr_setsigmask(&attr, &r->before);
	posix_spawnattr_setsigdefault(&attr, &usual);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawnp(&r->child, r->o->words[0], NULL, &attr, r->o->words, environ);
	posix_spawnattr_destroy(&attr);
	if (!rc)
		return 0;
	r->child = 0;
	text_escape(safe, sizeof(safe), r->o->words[0]);
	snprintf(err, size, "%s: %s", safe, strerror(rc));
	return -rc;
}

/* ---- run ---- */

/* True: the end. */
static bool take_signals(struct recorder *r)
{
	struct signalfd_siginfo si;
	bool end = false;

	while (read(r->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo != SIGCHLD) {
			end = true;
			continue;
		}
		if (r->child && waitpid(r->child, &r->child_status, WNOHANG) == r->child) {
			r->child = 0;
			end = true;
		}
	}
	return end;
}

static void run(struct recorder *r)
{
	struct pollfd p[] = {
		{.fd = r->sigfd, .events = POLLIN},
		{.fd = r->wrote_fd, .events = POLLIN},
	};
	uint64_t n;

	while (!enough(r)) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents && take_signals(r))
			break;
		if (p[1].revents && read(r->wrote_fd, &n, sizeof(n)) < 0)
			continue;
	}
	if (enough(r))
		return;
	/* What was measured since the last tick belongs to the recording too. */
	while (read(r->wrote_fd, &n, sizeof(n)) > 0)
		;
	engine_tick_now(r->engine);
	poll(&p[1], 1, LAST_MS);
}

/* One that goes when it is told to has not failed. */
static void end_command(struct recorder *r)
{
	child_end(r->child, r->sigfd, &r->child_status);
	if (WIFSIGNALED(r->child_status) && WTERMSIG(r->child_status) == SIGTERM)
		r->child_status = 0;
}

static void stop(struct recorder *r)
{
	uint64_t one = 1;

	if (r->running) {
		if (write(r->stop_fd, &one, sizeof(one)) < 0)
			pthread_cancel(r->thread);
		pthread_join(r->thread, NULL);
	}
	if (r->child)
		end_command(r);
	engine_free(r->engine);
	store_close(r->store);
	host_facts_free(&r->facts);
	vmm_versions_free(r->vmms);
	sysroot_close(r->root);
	if (r->sigfd >= 0)
		close(r->sigfd);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	if (r->wrote_fd >= 0)
		close(r->wrote_fd);
}

/* How a command that failed ended. */
static void say_command(const struct recorder *r)
{
	char safe[80];

	text_escape(safe, sizeof(safe), r->o->words[0]);
	if (WIFSIGNALED(r->child_status))
		fprintf(stderr, "; %s was ended by signal %d (%s)", safe, WTERMSIG(r->child_status),
			strsignal(WTERMSIG(r->child_status)));
	else
		fprintf(stderr, "; %s ended with status %d", safe, WEXITSTATUS(r->child_status));
}

static int finish(struct recorder *r, int rc, const char *err)
{
	char safe[PATH_MAX];

	if (rc) {
		fprintf(stderr, "kvmtop: %s\n", err[0] ? err : strerror(-rc));
		return STATUS_FAILED;
	}
	text_escape(safe, sizeof(safe), r->path);
	fprintf(stderr, "kvmtop: %llu interval%s recorded in %s", atomic_load(&r->written),
		atomic_load(&r->written) == 1 ? "" : "s", safe);
	if (r->missing)
		fprintf(stderr, ", %" PRIu64 " could not be written", r->missing);
	if (r->child_status)
		say_command(r);
	fputs("\n", stderr);
	if (atomic_load(&r->damaged) || (!atomic_load(&r->written) && r->missing))
		return STATUS_FAILED;
	return r->child_status ? STATUS_FAILED : STATUS_OK;
}

/* -d, else what the first tier says; then that tier is of what is measured. */
static void choose_delay(struct recorder *r)
{
	double first = (double)r->keep.tier[0].every_ns / 1e9;

	r->delay_s = r->o->by_delay ? r->o->delay_s : fmin(fmax(first, DELAY_LEAST), DELAY_MOST);
	store_keep_measured(&r->keep, llround(r->delay_s * 1e9));
}

int cmd_record(const struct options *o)
{
	struct recorder r = {.o = o, .keep = o->keep, .sigfd = -1, .stop_fd = -1, .wrote_fd = -1};
	char err[400] = "";
	int rc = open_signals(&r);

	choose_delay(&r);
	if (!rc)
		rc = open_store(&r, err, sizeof(err));
	if (!rc)
		rc = open_engine(&r, err, sizeof(err));
	if (!rc)
		rc = start_writer(&r);
	if (!rc)
		rc = start_command(&r, err, sizeof(err));
	if (!rc)
		run(&r);
	stop(&r);
	return finish(&r, rc, err);
}
