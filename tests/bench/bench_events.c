// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one KVM event costs kvmtop, beside a bare loop over libperf's reader.
 *
 * A guest that does nothing but port writes runs on one CPU, the reader on another; the
 * readers take turns. A figure is the reading thread's own CPU time by the events it got.
 * Prints rows for bench.py.
 *
 *   libperf       perf_mmap__read_event() + perf_mmap__consume(), woken every 10 ms
 *   walk          ring.c alone: merge by time, own tail, nothing decoded
 *   kvm_events    the collector: wake-ups, merge, decoding, samples to an empty sink
 *   kvmtop        the same with the model behind it
 */
#include <dirent.h>
#include <errno.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_access.h"
#include "kvm_events.h"
#include "kvm_format.h"
#include "kvm_names.h"
#include "model.h"
#include "perf_rings.h"
#include "sysroot.h"
#include "tinyvm.h"

#define ROUND (1500 * NS_PER_MS)
#define ROUNDS 5
#define TICK NS_PER_S
#define MARGIN (5 * NS_PER_MS)

enum reader { LIBPERF, WALK, COLLECTOR, KVMTOP, READERS };

struct result {
	uint64_t events;
	int64_t cpu_ns;
};

struct bench {
	struct sysroot *root;
	struct kvm_format *format;
	struct kvm_names *names;
	int id[2]; /* kvm_pio, kvm_userspace_exit: what the guest makes */
};

static int64_t own_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return timespec_ns(t);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static pid_t start_guest(void)
{
	struct tinyvm_program p = {0};
	struct tinyvm *vm;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (tinyvm_parse("out:inf", &p) || tinyvm_new(&vm, NULL) || tinyvm_add_vcpu(vm, 0, &p) < 0)
		_exit(1);
	tinyvm_run(vm, 0, 0);
	_exit(0);
}

/* ---- libperf's own reader ---- */

static struct perf_evlist *libperf_open(const struct bench *b)
{
	struct perf_evlist *list = perf_evlist__new();
	struct perf_cpu_map *cpus = perf_cpu_map__new(NULL);
	struct perf_thread_map *threads = perf_thread_map__new_dummy();

	for (int i = 0; i < 2; i++) {
		struct perf_event_attr a = {0};

		a.size = sizeof(a);
		a.type = PERF_TYPE_TRACEPOINT;
		a.config = (uint64_t)b->id[i];
		a.sample_period = 1;
		a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
		a.sample_id_all = 1;
		a.use_clockid = 1;
		a.clockid = CLOCK_MONOTONIC;
		a.watermark = 1;
		a.wakeup_watermark = RING_MAX / 4;
		perf_evlist__add(list, perf_evsel__new(&a));
	}
	perf_evlist__set_maps(list, cpus, threads);
	if (perf_evlist__open(list) || perf_evlist__mmap(list, RING_MAX / 4096)) {
		perror("libperf");
		exit(1);
	}
	return list;
}

static uint64_t libperf_read(struct perf_evlist *list)
{
	struct perf_mmap *map;
	union perf_event *e;
	uint64_t n = 0;

	perf_evlist__for_each_mmap(list, map, false)
	{
		if (perf_mmap__read_init(map) < 0)
			continue;
		while ((e = perf_mmap__read_event(map))) {
			n += e->header.type == PERF_RECORD_SAMPLE;
			perf_mmap__consume(map);
		}
	}
	return n;
}

static struct result run_libperf(const struct bench *b)
{
	struct perf_evlist *list = libperf_open(b);
	struct result r = {0};
	int64_t end = clock_mono_ns() + ROUND, cpu = own_cpu();

	while (clock_mono_ns() < end) {
		poll(NULL, 0, 10);
		r.events += libperf_read(list);
	}
	r.cpu_ns = own_cpu() - cpu;
	perf_evlist__delete(list);
	return r;
}

/* ---- the bare walk with an own tail ---- */

static void count_batch(void *ctx, const struct ring_record *rec, size_t n)
{
	uint64_t *events = ctx;

	(void)rec;
	*events += n;
}

static struct result run_walk(const struct bench *b)
{
	struct perf_rings *rings;
	struct result r = {0};
	int *cpu, n = kvm_online_cpus(b->root, &cpu);
	int64_t end, start;

	if (perf_rings_new(RING_MAX, (unsigned)n, false, &rings) ||
	    perf_rings_set_cpus(rings, cpu, (size_t)n, clock_mono_ns(), NULL, NULL) ||
	    perf_rings_open(rings, 0, (uint64_t)b->id[0]) ||
	    perf_rings_open(rings, 1, (uint64_t)b->id[1])) {
		fputs("walk: cannot open\n", stderr);
		exit(1);
	}
	free(cpu);
	end = clock_mono_ns() + ROUND;
	start = own_cpu();
	while (clock_mono_ns() < end) {
		poll(NULL, 0, 10);
		perf_rings_drain(rings, clock_mono_ns() - MARGIN, count_batch, &r.events);
	}
	r.cpu_ns = own_cpu() - start;
	perf_rings_free(rings);
	return r;
}

/* ---- ours ---- */

static void no_samples(void *ctx, const struct sample *s, size_t n)
{
	uint64_t *events = ctx;

	(void)s;
	*events += n;
}

static void no_loss(void *ctx, const struct loss *l)
{
	(void)ctx;
	(void)l;
}

static void no_loss_count(void *ctx, const struct loss_count *l)
{
	(void)ctx;
	fprintf(stderr, "lost %lu\n", (unsigned long)l->n);
}

static void no_kinds(void *ctx, unsigned kinds, bool entry_exit, int64_t time)
{
	(void)ctx;
	(void)kinds;
	(void)entry_exit;
	(void)time;
}

struct counted {
	struct sink sink;
	const struct sink *to; /* the model's; NULL: none */
	uint64_t events;
};

static void pass_samples(void *ctx, const struct sample *s, size_t n)
{
	struct counted *c = ctx;

	c->events += n;
	c->to->samples(c->to->ctx, s, n);
}

static void pass_kinds(void *ctx, unsigned kinds, bool entry_exit, int64_t time)
{
	struct counted *c = ctx;

	c->to->kinds(c->to->ctx, kinds, entry_exit, time);
}

static void run_loop(void *state, struct model *model)
{
	struct pollfd fd = {collector_kvm_events.fd(state), POLLIN, 0};
	int64_t end = clock_mono_ns() + ROUND, tick = clock_mono_ns() + TICK;

	for (int64_t now = clock_mono_ns(); now < end; now = clock_mono_ns()) {
		int64_t next = tick < end ? tick : end;
		int ready = poll(&fd, 1, (int)((next - now) / NS_PER_MS) + 1);

		now = clock_mono_ns();
		if (ready > 0)
			collector_kvm_events.ready(state, now);
		if (now < tick && now < end)
			continue;
		collector_kvm_events.tick(state, now, now - MARGIN);
		if (model) {
			struct timespec wall = {0};

			snapshot_unref(model_commit(model, now - MARGIN, wall, false, 1));
		}
		tick += TICK;
	}
}

static struct result run_ours(const struct bench *b, bool with_model)
{
	const struct model_config mc = {.node = "bench",
					.kernel = "",
					.boot_id = "",
					.root = true,
					.clk_tck = 100,
					.vcpu_keys = 8,
					.vm_keys = 64};
	/* Each event is taken here, as the peer does; what counting costs is in bench_counts.c. */
	const struct collector_config cc = {.delay_s = 1, .events_how = EVENTS_PERF};
	const struct demand d = {.kinds = KIND_BIT(KIND_IOPORT) | KIND_BIT(KIND_USEREXIT)};
	struct inventory *inv = with_model ? inventory_new() : NULL;
	struct model *model = with_model ? model_new(&mc, inv, b->names) : NULL;
	struct counted c = {.to = model ? model_sink(model) : NULL};
	struct collector_env env = {
		.root = b->root, .sink = &c.sink, .names = b->names, .config = &cc};
	struct result r;
	int64_t start;
	void *state;

	c.sink = (struct sink){.ctx = &c,
			       .samples = model ? pass_samples : no_samples,
			       .loss = no_loss,
			       .loss_count = no_loss_count,
			       .kinds = model ? pass_kinds : no_kinds};
	if (!model)
		c.sink.ctx = &c.events;
	if (collector_kvm_events.open(&env, &state))
		exit(1);
	collector_kvm_events.demand(state, &d);
	start = own_cpu();
	run_loop(state, model);
	r = (struct result){c.events, own_cpu() - start};
	collector_kvm_events.close(state);
	model_free(model);
	inventory_free(inv);
	return r;
}

/* ---- */

static struct result run(const struct bench *b, enum reader who)
{
	switch (who) {
	case LIBPERF:
		return run_libperf(b);
	case WALK:
		return run_walk(b);
	default:
		return run_ours(b, who == KVMTOP);
	}
}

static int quiet(enum libperf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static bool prepare(struct bench *b)
{
	int err;
	const char *tracefs;

	libperf_init(quiet);
	b->names = kvm_names_new();
	b->format = kvm_format_new();
	if (!b->names || !b->format || sysroot_open(NULL, &b->root))
		return false;
	tracefs = kvm_tracefs(b->root, &err);
	if (!tracefs || kvm_load_formats(b->root, tracefs, b->format, b->names) <= 0)
		return false;
	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		if (kvm_events[i].type == EV_PIO)
			b->id[0] = kvm_format_id(b->format, i);
		if (kvm_events[i].type == EV_USEREXIT)
			b->id[1] = kvm_format_id(b->format, i);
	}
	return b->id[0] && b->id[1];
}

static void print_samples(const char *key, const double *v)
{
	printf("\"%s\": [", key);
	for (int i = 0; i < ROUNDS; i++)
		printf("%s%.2f", i ? ", " : "", v[i]);
	printf("]");
}

/* One object a line, for bench.py's table. */
static void print_rows(double ns[READERS][ROUNDS])
{
	static const char *const name[READERS] = {"", "an event: bare walk of the rings, own tail",
						  "an event: kvmtop without its model",
						  "an event: kvmtop, all but drawing"};

	for (int w = WALK; w < READERS; w++) {
		printf("{\"what\": \"%s\", \"unit\": \"ns\", \"peer\": \"libperf loop\", ",
		       name[w]);
		print_samples("ours", ns[w]);
		printf(", ");
		print_samples("theirs", ns[LIBPERF]);
		printf("%s}\n", w == KVMTOP ? ", \"ratio\": 0.8" : "");
	}
}

int main(void)
{
	double ns[READERS][ROUNDS];
	struct bench b = {0};
	pid_t guest;

	if (!prepare(&b)) {
		fputs("no kvm tracepoints: mount tracefs, run as root\n", stderr);
		return 77;
	}
	guest = start_guest();
	pin(0);
	for (int i = 0; i < ROUNDS; i++) {
		for (int w = 0; w < READERS; w++) {
			struct result r = run(&b, (enum reader)w);

			if (!r.events) {
				fprintf(stderr, "reader %d saw no events\n", w);
				return 1;
			}
			ns[w][i] = (double)r.cpu_ns / (double)r.events;
		}
	}
	kill(guest, SIGKILL);
	waitpid(guest, NULL, 0);
	print_rows(ns);
	kvm_format_free(b.format);
	kvm_names_free(b.names);
	sysroot_close(b.root);
	return 0;
}
