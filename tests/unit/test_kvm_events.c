// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * The collector on a real KVM: exact counts, losses, kinds that come and go, CPUs that come
 * and go, and each refusal of the kernel. Needs root and /dev/kvm; mounts tracefs in a mount
 * namespace of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "kvm_access.h"
#include "kvm_events.h"
#include "kvm_format.h"
#include "kvm_names.h"
#include "needs_guests.h"
#include "perf_rings.h"
#include "sysroot.h"
#include "tinyvm.h"

#define MARGIN (5 * NS_PER_MS)

/* What the sink was told. */
struct told {
	uint64_t count[EV_NR], lost[EV_NR + 1];
	uint64_t out, in, mmio_write, mmio_read;
	uint64_t windows, disorder;
	uint64_t foreign; /* events of other processes' guests: lost ones cannot be told apart */
	int64_t last;
	pid_t pid; /* only its threads count */
	unsigned kinds;
	bool entry_exit;
	int source;
	char why[PROBE_TEXT], mend[PROBE_TEXT];
};

struct run {
	struct told told;
	struct sink sink;
	struct collector_config config;
	struct collector_env env;
	void *state;
	struct tinyvm *vm;
	pthread_t thread;
	volatile bool ended;
};

static void on_samples(void *ctx, const struct sample *s, size_t n)
{
	struct told *t = ctx;

	for (size_t i = 0; i < n; i++) {
		t->disorder += s[i].time < t->last;
		t->last = s[i].time;
		if (t->pid && s[i].tid != t->pid) {
			t->foreign++;
			continue;
		}
		t->count[s[i].type]++;
		if (s[i].type == EV_PIO && s[i].key == TINYVM_PORT_OUT)
			t->out += s[i].dir == DIR_WRITE;
		if (s[i].type == EV_PIO && s[i].key == TINYVM_PORT_IN)
			t->in += s[i].dir == DIR_READ;
		if (s[i].type == EV_MMIO) {
			t->mmio_write += s[i].dir == DIR_WRITE;
			t->mmio_read += s[i].dir == DIR_READ;
		}
	}
}

static void on_loss(void *ctx, const struct loss *l)
{
	struct told *t = ctx;

	t->windows++;
	assert_true(l->from <= l->to);
}

static void on_loss_count(void *ctx, const struct loss_count *c)
{
	struct told *t = ctx;

	t->lost[c->type + 1] += c->n;
}

static void on_kinds(void *ctx, unsigned kinds, bool entry_exit, int64_t time)
{
	struct told *t = ctx;

	(void)time;
	t->kinds = kinds;
	t->entry_exit = entry_exit;
}

static void on_source(void *ctx, const char *name, int state, const char *why, const char *mend)
{
	struct told *t = ctx;

	(void)name;
	t->source = state;
	snprintf(t->why, sizeof(t->why), "%s", why);
	snprintf(t->mend, sizeof(t->mend), "%s", mend ? mend : "");
}

static void begin(struct run *r, unsigned kinds, bool lost_test)
{
	struct demand d = {.kinds = kinds};

	memset(r, 0, sizeof(*r));
	r->sink = (struct sink){.ctx = &r->told,
				.samples = on_samples,
				.loss = on_loss,
				.loss_count = on_loss_count,
				.kinds = on_kinds,
				.source = on_source};
	r->config = (struct collector_config){
		.delay_s = 1, .lost_test = lost_test, .events_how = EVENTS_PERF};
	r->env = (struct collector_env){.sink = &r->sink, .config = &r->config};
	assert_int_equal(sysroot_open(NULL, &r->env.root), 0);
	assert_int_equal(collector_kvm_events.open(&r->env, &r->state), 0);
	collector_kvm_events.demand(r->state, &d);
}

static void *guest(void *arg)
{
	struct run *r = arg;

	r->told.pid = (pid_t)syscall(SYS_gettid);
	tinyvm_run(r->vm, 0, 0);
	r->ended = true;
	return NULL;
}

static void start_guest(struct run *r, const char *program)
{
	struct tinyvm_program p = {0};

	assert_int_equal(tinyvm_parse(program, &p), 0);
	assert_int_equal(tinyvm_new(&r->vm, NULL), 0);
	assert_int_equal(tinyvm_add_vcpu(r->vm, 0, &p), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, guest, r), 0);
}

static void wait_ready(struct run *r, int ms)
{
	struct pollfd fd = {collector_kvm_events.fd(r->state), POLLIN, 0};

	if (poll(&fd, 1, ms) > 0)
		collector_kvm_events.ready(r->state, clock_mono_ns());
}

static void tick(struct run *r)
{
	int64_t now = clock_mono_ns();

	assert_int_equal(collector_kvm_events.tick(r->state, now, now - MARGIN), 0);
}

/* Ends the guest's thread; all that it did is behind the watermark after this. */
static struct tinyvm_counts end_guest(struct run *r)
{
	struct tinyvm_counts c;

	pthread_join(r->thread, NULL);
	usleep(2 * MARGIN / 1000);
	tick(r);
	tinyvm_counts(r->vm, 0, &c);
	return c;
}

static void end(struct run *r)
{
	tinyvm_free(r->vm);
	collector_kvm_events.close(r->state);
	sysroot_close(r->env.root);
}

static void counts_are_exact_and_in_order(void **state)
{
	struct tinyvm_counts c;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	begin(&r, KIND_ALL, false);
	assert_int_equal(r.told.source, SOURCE_OK);
	start_guest(&r, "out:60000 in:20000 mmiow:5000 mmior:5000");
	while (!r.ended)
		wait_ready(&r, 50);
	c = end_guest(&r);
	assert_true(c.finished);
	assert_int_equal(r.told.out, 60000);
	assert_int_equal(r.told.in, 20000);
	assert_int_equal(r.told.mmio_write, 5000);
	assert_int_equal(r.told.mmio_read, 5000);
	assert_int_equal(r.told.count[EV_USEREXIT], c.runs);
	assert_int_equal(r.told.disorder, 0);
	assert_int_equal(r.told.windows, 0);
	assert_true(r.told.entry_exit); /* they are open */
	if (!r.told.count[EV_EXIT]) { /* a KVM that fires none: that is said */
		assert_int_equal(r.told.source, SOURCE_PARTIAL);
		assert_non_null(strstr(r.told.why, "no kvm_entry"));
	}
	end(&r);
}

/* Small rings that nobody reads in time. False: other guests ran at the same time. */
static bool lose(struct run *r, struct tinyvm_counts *c)
{
	begin(r, KIND_ALL, true);
	start_guest(r, "out:60000 mmiow:5000 out:20000");
	while (!r->ended) {
		usleep(100000);
		tick(r);
	}
	*c = end_guest(r);
	end(r);
	return !r->told.foreign;
}

/* Each event is counted or lost, once. */
static void counted_and_lost_are_all(void **state)
{
	struct tinyvm_counts c;
	struct run r;
	int64_t begun = clock_mono_ns();

	(void)state;
	NEEDS_GUESTS;
	while (!lose(&r, &c))
		if (clock_mono_ns() - begun > 40 * NS_PER_S)
			skip();
	assert_true(r.told.lost[EV_PIO + 1] > 0);
	assert_true(r.told.windows > 0);
	assert_int_equal(r.told.count[EV_PIO] + r.told.lost[EV_PIO + 1], c.port_out);
	assert_int_equal(r.told.count[EV_MMIO] + r.told.lost[EV_MMIO + 1], 5000);
	assert_int_equal(r.told.count[EV_USEREXIT] + r.told.lost[EV_USEREXIT + 1], c.runs);
	assert_int_equal(r.told.lost[0], 0); /* this kernel counts each kind for itself */
}

/* Ports come and go while user exits are open: none of these may be missed. */
static void kinds_come_and_go(void **state)
{
	const struct demand both = {.kinds = KIND_BIT(KIND_USEREXIT) | KIND_BIT(KIND_IOPORT)};
	const struct demand one = {.kinds = KIND_BIT(KIND_USEREXIT)};
	const struct demand dear = {.kinds = KIND_BIT(KIND_USEREXIT),
				    .given_up = KIND_BIT(KIND_IOPORT)};
	struct tinyvm_counts c;
	struct run r;
	unsigned opened = 0;

	(void)state;
	NEEDS_GUESTS;
	begin(&r, one.kinds, false);
	collector_kvm_events.demand(r.state, &both);
	assert_true(r.told.kinds & KIND_BIT(KIND_IOPORT));
	collector_kvm_events.demand(r.state, &dear);
	/* It does not linger; the exits do, which are open before anybody asks. */
	assert_int_equal(r.told.kinds & (KIND_BIT(KIND_USEREXIT) | KIND_BIT(KIND_IOPORT)),
			 KIND_BIT(KIND_USEREXIT));
	start_guest(&r, "out:80000");
	while (!r.ended) {
		int64_t now;

		collector_kvm_events.demand(r.state, &both);
		assert_true(r.told.kinds & KIND_BIT(KIND_IOPORT));
		opened++;
		wait_ready(&r, 20);
		collector_kvm_events.demand(r.state, &one);
		now = clock_mono_ns();
		collector_kvm_events.tick(r.state, now + 9 * NS_PER_S, now - MARGIN);
		assert_true(r.told.kinds & KIND_BIT(KIND_IOPORT)); /* lingers */
		collector_kvm_events.tick(r.state, now + 12 * NS_PER_S, now - MARGIN);
		assert_int_equal(r.told.kinds & KIND_BIT(KIND_IOPORT), 0);
		wait_ready(&r, 20);
	}
	c = end_guest(&r);
	assert_int_equal(r.told.count[EV_USEREXIT], c.runs);
	assert_int_equal(r.told.windows, 0);
	assert_true(opened < 2 || r.told.out < 80000);
	end(&r);
}

static void count_records(void *ctx, const struct ring_record *rec, size_t n)
{
	uint64_t *count = ctx;

	for (size_t i = 0; i < n; i++)
		if (rec[i].h->type == PERF_RECORD_SAMPLE)
			count[rec[i].ring->cpu]++;
}

static void came(void *ctx, int cpu, int64_t since)
{
	(void)since;
	*(unsigned *)ctx |= 1u << cpu;
}

/* As at hotplug, without taking a CPU from the machine: its ring is closed and opened again. */
static void cpus_come_and_go(void **state)
{
	static const int both[] = {0, 1};
	struct kvm_format *f = kvm_format_new();
	struct perf_rings *rings;
	struct run r = {0};
	struct tinyvm_counts c;
	uint64_t count[2] = {0};
	unsigned opened = 0;
	cpu_set_t set;

	(void)state;
	if (!able() || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		kvm_format_free(f);
		print_message("# needs:root,kvm,tracefs,cpus2\n");
		skip();
	}
	assert_int_equal(sysroot_open(NULL, &r.env.root), 0);
	assert_true(kvm_load_formats(r.env.root, "sys/kernel/tracing", f, NULL) > 0);
	assert_int_equal(perf_rings_new(0, 2, false, &rings), 0);
	assert_int_equal(perf_rings_bytes(rings), RING_MAX);
	assert_int_equal(perf_rings_set_cpus(rings, both, 2, 1, came, &opened), 0);
	assert_int_equal(opened, 3);
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (kvm_events[i].type == EV_USEREXIT)
			assert_int_equal(perf_rings_open(rings, i, (uint64_t)kvm_format_id(f, i)),
					 0);
	start_guest(&r, "out:40000");
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	pthread_setaffinity_np(r.thread, sizeof(set), &set); /* its first exits may be on CPU 1 */
	for (int i = 0; !r.ended; i++) {
		int64_t now = clock_mono_ns();

		opened = 0;
		assert_int_equal(
			perf_rings_set_cpus(rings, both, i % 2 ? 2 : 1, now, came, &opened), 0);
		assert_int_equal(opened, i && i % 2 ? 2 : 0);
		usleep(10000);
		perf_rings_drain(rings, clock_mono_ns() - MARGIN, count_records, count);
	}
	pthread_join(r.thread, NULL);
	perf_rings_drain(rings, INT64_MAX, count_records, count);
	tinyvm_counts(r.vm, 0, &c);
	assert_in_range(count[0], 35000, c.runs + 100000); /* others may run guests there too */
	assert_true(count[0] + count[1] >= c.runs);
	perf_rings_free(rings);
	kvm_format_free(f);
	tinyvm_free(r.vm);
	sysroot_close(r.env.root);
}

/* ---- refusals: each in a process of its own ---- */

static void in_child(int (*fn)(struct run *r))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		static struct run r;
		int rc = fn(&r);

		if (rc)
			fprintf(stderr, "step %d; said %d \"%s\" (%s)\n", rc, r.told.source,
				r.told.why, r.told.mend);
		fflush(NULL);
		_exit(rc);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Without cmocka, which does not know that this is another process. */
static bool child_open(struct run *r)
{
	r->sink = (struct sink){.ctx = &r->told,
				.samples = on_samples,
				.loss = on_loss,
				.loss_count = on_loss_count,
				.kinds = on_kinds,
				.source = on_source};
	r->config.delay_s = 1;
	r->env = (struct collector_env){.sink = &r->sink, .config = &r->config};
	return !sysroot_open(NULL, &r->env.root) && !collector_kvm_events.open(&r->env, &r->state);
}

static bool said(const struct run *r, int state, const char *why, const char *mend)
{
	struct probes p = {0};
	bool probed = false;

	collector_kvm_events.probe(&r->env, &p);
	for (size_t i = 0; i < p.n; i++) /* doctor says the same */
		probed |= p.p[i].state == state && strstr(p.p[i].why, why) &&
			  strstr(p.p[i].mend, mend);
	for (size_t i = 0; !probed && i < p.n; i++)
		fprintf(stderr, "probe: %s: %d \"%s\" (%s)\n", p.p[i].source, p.p[i].state,
			p.p[i].why, p.p[i].mend);
	return probed && r->told.source == state && strstr(r->told.why, why) &&
	       strstr(r->told.mend, mend);
}

static bool drop_caps(unsigned long long keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = (uint32_t)(keep >> (32 * i));
	return syscall(SYS_capset, &head, data) == 0;
}

static int no_perfmon(struct run *r)
{
	if (!drop_caps(1ull << CAP_DAC_OVERRIDE | 1ull << CAP_DAC_READ_SEARCH))
		return 1;
	if (!child_open(r))
		return 2;
	return said(r, SOURCE_OFF, "perf_event_paranoid", "CAP_PERFMON") ? 0 : 3;
}

static int nobody(struct run *r)
{
	if (setgid(65534) || setuid(65534))
		return 1;
	if (!child_open(r))
		return 2;
	return said(r, SOURCE_OFF, "not root", "sudo kvmtop") ? 0 : 3;
}

static int few_descriptors(struct run *r)
{
	int next = dup(0);
	const struct rlimit l = {(rlim_t)next + 4, (rlim_t)next + 4};

	close(next);
	if (setrlimit(RLIMIT_NOFILE, &l))
		return 1;
	if (!child_open(r))
		return 2;
	return r->told.source == SOURCE_OFF && strstr(r->told.why, "descriptors") ? 0 : 3;
}

static void not_seen(void *ctx, int cpu, int64_t since)
{
	(void)cpu;
	*(unsigned *)ctx += 1 + (since != 0);
}

/* What a CPU without a ring does is missing in each interval until it gets one. */
static int no_ring_is_not_watched(struct run *r)
{
	static const int cpu[] = {0};
	int next = dup(0);
	const struct rlimit few = {(rlim_t)next + 9, (rlim_t)next + 9};
	struct perf_rings *rings;
	unsigned told = 0;

	(void)r;
	close(next);
	if (perf_rings_new(RING_MIN, 1, false, &rings) || setrlimit(RLIMIT_NOFILE, &few))
		return 1;
	while (dup(0) >= 0)
		;
	for (unsigned i = 1; i <= 2; i++)
		if (perf_rings_set_cpus(rings, cpu, 1, i, not_seen, &told) != -EMFILE || told != i)
			return 2;
	close(next + 8);
	if (perf_rings_set_cpus(rings, cpu, 1, 3, not_seen, &told) || told != 3)
		return 3;
	if (perf_rings_set_cpus(rings, cpu, 1, 4, not_seen, &told) || told != 3)
		return 4;
	perf_rings_free(rings);
	return 0;
}

static int little_memory(struct run *r)
{
	const struct rlimit l = {0, 0};

	if (setrlimit(RLIMIT_MEMLOCK, &l) ||
	    !drop_caps(1ull << CAP_PERFMON | 1ull << CAP_DAC_READ_SEARCH))
		return 1;
	if (!child_open(r))
		return 2;
	/* How much is left over depends on who else watches now: smaller rings, or none. */
	if (r->told.source == SOURCE_OFF)
		return strstr(r->told.why, "rings of 64 KiB") ? 0 : 3;
	return said(r, SOURCE_PARTIAL, "may not be locked", "CAP_IPC_LOCK") ? 0 : 4;
}

static int no_mount(struct run *r)
{
	int64_t now;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 1;
	while (!umount2(TRACEFS, MNT_DETACH))
		;
	while (!umount2("/sys/kernel/debug", MNT_DETACH))
		;
	if (!child_open(r))
		return 2;
	if (!said(r, SOURCE_OFF, "not mounted", "mount -t tracefs tracefs /sys/kernel/tracing"))
		return 3;
	if (mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return 4;
	now = clock_mono_ns();
	collector_kvm_events.tick(r->state, now, now - MARGIN);
	if (r->told.source != SOURCE_OFF)
		return 5;
	now += 6 * NS_PER_S; /* it looks again every now and then, with no restart */
	collector_kvm_events.tick(r->state, now, now - MARGIN);
	if (r->told.source != SOURCE_OK || !(r->told.kinds & KIND_BIT(KIND_VMEXIT)))
		return 6;
	collector_kvm_events.close(r->state);
	return 0;
}

static void refusals(void **state)
{
	(void)state;
	NEEDS_GUESTS;
	in_child(no_perfmon);
	in_child(nobody);
	in_child(few_descriptors);
	in_child(no_ring_is_not_watched);
	in_child(little_memory);
	in_child(no_mount);
}

/* Seen by this process alone, gone with it. */
static void mount_tracefs(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	if (access(TRACEFS "/events", F_OK))
		(void)!mount("tracefs", TRACEFS, "tracefs", 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_exact_and_in_order),
		cmocka_unit_test(counted_and_lost_are_all),
		cmocka_unit_test(kinds_come_and_go),
		cmocka_unit_test(cpus_come_and_go),
		cmocka_unit_test(refusals),
	};

	mount_tracefs();
	return cmocka_run_group_tests_name("kvm_events", tests, NULL, NULL);
}
