// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/* The collector of samples: decoding, the choice of the event, and real samples of this process. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "guest_sampling.h"
#include "ip_batch.h"
#include "made_tree.h"
#include "sampling_event.h"
#include "sysroot.h"
#include "vpmu.h"

/* ---- decoding ---- */

struct record {
	struct perf_event_header h;
	uint64_t ip;
	int32_t pid, tid;
	int64_t time;
};

static struct record make(uint16_t misc)
{
	return (struct record){
		.h = {.type = PERF_RECORD_SAMPLE, .misc = misc, .size = sizeof(struct record)},
		.ip = 0xffffffff81012345u,
		.pid = 4711,
		.tid = 4712,
		.time = 99,
	};
}

static void domains_are_the_records_word(void **state)
{
	static const struct {
		uint16_t misc;
		int domain; /* -1: no sample of ours */
	} cases[] = {
		{PERF_RECORD_MISC_CPUMODE_UNKNOWN, -1},
		{PERF_RECORD_MISC_KERNEL, DOMAIN_HOST_KERNEL},
		{PERF_RECORD_MISC_USER, DOMAIN_HOST_USER},
		{PERF_RECORD_MISC_HYPERVISOR, DOMAIN_HOST_KERNEL},
		{PERF_RECORD_MISC_GUEST_KERNEL, DOMAIN_GUEST_KERNEL},
		{PERF_RECORD_MISC_GUEST_USER, DOMAIN_GUEST_USER},
		{6, -1},
		{7, -1},
		/* Other bits of misc say nothing about it. */
		{PERF_RECORD_MISC_GUEST_KERNEL | PERF_RECORD_MISC_EXACT_IP, DOMAIN_GUEST_KERNEL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct record r = make(cases[i].misc);
		struct ip_sample s;
		bool taken = ip_sample_decode(&r.h, &s);

		assert_int_equal(taken, cases[i].domain >= 0);
		if (!taken)
			continue;
		assert_int_equal(s.domain, cases[i].domain);
		assert_true(s.ip == 0xffffffff81012345u);
		assert_int_equal(s.pid, 4711);
		assert_int_equal(s.tid, 4712);
	}
}

static void short_and_foreign_records_are_none(void **state)
{
	struct record r = make(PERF_RECORD_MISC_KERNEL);
	struct ip_sample s;

	(void)state;
	for (size_t size = 0; size < sizeof(r); size++) {
		r.h.size = (uint16_t)size;
		assert_false(ip_sample_decode(&r.h, &s));
	}
	r.h.size = sizeof(r);
	r.h.type = PERF_RECORD_LOST;
	assert_false(ip_sample_decode(&r.h, &s));
}

/* ---- call chains ---- */

struct chain_record {
	struct record r;
	uint64_t n, at[4];
};

#define GUEST_KERNEL ((uint64_t)PERF_CONTEXT_GUEST_KERNEL)

static struct chain_record chain(uint64_t n, uint64_t mark, uint64_t ip, uint64_t caller)
{
	struct chain_record c = {.r = make(PERF_RECORD_MISC_GUEST_KERNEL), .n = n};

	c.at[0] = mark;
	c.at[1] = ip;
	c.at[2] = caller;
	c.r.h.size = (uint16_t)(offsetof(struct chain_record, at) + n * sizeof(c.at[0]));
	return c;
}

static void a_guests_chain_tells_the_caller(void **state)
{
	const uint64_t text = 0xffffffff81000000u;
	const struct {
		struct chain_record c;
		bool guest; /* the chain is a guest's */
		uint64_t caller;
	} cases[] = {
		{chain(3, GUEST_KERNEL, text, text + 8), true, text + 8},
		{chain(3, (uint64_t)PERF_CONTEXT_GUEST_USER, 0x401000, 0x402000), true, 0x402000},
		{chain(4, GUEST_KERNEL, text, text + 8), true, text + 8},
		{chain(2, GUEST_KERNEL, text, text + 8), true, 0},
		{chain(1, GUEST_KERNEL, text, text + 8), true, 0}, /* it was where marks are */
		{chain(2, GUEST_KERNEL, GUEST_KERNEL, 0), true, 0},
		{chain(0, GUEST_KERNEL, text, text + 8), false, 0},
		/* A stock kernel: marks of the host's, and nothing behind them. */
		{chain(2, (uint64_t)PERF_CONTEXT_KERNEL, (uint64_t)PERF_CONTEXT_USER, 0), false, 0},
		{chain(3, (uint64_t)PERF_CONTEXT_KERNEL, text, text + 8), false, 0},
		/* No address is a mark. */
		{chain(3, GUEST_KERNEL, text, (uint64_t)PERF_CONTEXT_USER), true, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_sample s;

		assert_true(ip_sample_decode(&cases[i].c.r.h, &s));
		assert_true(s.ip == 0xffffffff81012345u && s.tid == 4712);
		assert_true(s.caller == cases[i].caller);
		assert_int_equal(ip_sample_guest_chain(&cases[i].c.r.h), cases[i].guest);
	}
}

static void a_chain_that_is_cut_short_is_none(void **state)
{
	struct chain_record c = chain(3, GUEST_KERNEL, 1, 2);
	struct ip_sample s;
	size_t whole = c.r.h.size;

	(void)state;
	for (size_t size = sizeof(struct record); size < whole; size++) {
		c.r.h.size = (uint16_t)size;
		assert_true(ip_sample_decode(&c.r.h, &s));
		assert_true(s.caller == 0);
		assert_false(ip_sample_guest_chain(&c.r.h));
	}
	c.r.h.size = (uint16_t)whole;
	c.n = UINT64_MAX;
	assert_false(ip_sample_guest_chain(&c.r.h));
	/* Of the host's code nobody asks. */
	c = chain(3, GUEST_KERNEL, 1, 2);
	c.r.h.misc = PERF_RECORD_MISC_KERNEL;
	assert_true(ip_sample_decode(&c.r.h, &s));
	assert_true(s.caller == 0);
}

/* ---- samples alike ---- */

static const struct ip_sample one = {.ip = 0xffffffff81012345u,
				     .caller = 0xffffffff81020000u,
				     .pid = 4711,
				     .tid = 4712,
				     .n = 1,
				     .domain = DOMAIN_GUEST_KERNEL};

static void samples_alike_are_counted(void **state)
{
	struct ip_sample other[] = {one, one, one, one, one};
	static struct ip_batch b;

	(void)state;
	other[1].ip++;
	other[2].caller++;
	other[3].tid++;
	other[4].domain = DOMAIN_GUEST_USER;
	for (unsigned round = 1; round <= 3; round++)
		for (unsigned i = 0; i < 5; i++) {
			other[i].n = i + 1;
			assert_true(ip_batch_add(&b, &other[i]));
		}
	assert_int_equal(b.n, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(b.s[i].n, 3 * (i + 1));
		assert_true(b.s[i].ip == other[i].ip && b.s[i].caller == other[i].caller);
		assert_true(b.s[i].tid == other[i].tid && b.s[i].domain == other[i].domain);
	}
	ip_batch_clear(&b);
	assert_true(ip_batch_add(&b, &one));
	assert_int_equal(b.n, 1);
	assert_int_equal(b.s[0].n, 1);
}

/* Whatever addresses come, none is lost: one that has no room is told, and the others go on. */
static void a_full_batch_says_so(void **state)
{
	static struct ip_batch b;
	struct ip_sample s = one;

	(void)state;
	for (unsigned i = 0; i < IP_BATCH; i++, s.ip += 64)
		assert_true(ip_batch_add(&b, &s));
	assert_int_equal(b.n, IP_BATCH);
	assert_false(ip_batch_add(&b, &s));
	for (unsigned i = 0; i < IP_BATCH; i++) {
		s.ip -= 64;
		assert_true(ip_batch_add(&b, &s));
	}
	assert_int_equal(b.n, IP_BATCH);
	for (unsigned i = 0; i < IP_BATCH; i++)
		assert_int_equal(b.s[i].n, 2);
}

/* ---- which event ---- */

static void a_guest_never_misses_its_counter(void **state)
{
	static const struct {
		enum sample_with with;
		struct pmu_facts facts; /* pmu, guests, mediated */
		bool hw;
		const char *why; /* a part of it, "" none */
	} cases[] = {
		{SAMPLE_CLOCK, {true, false, false}, false, ""},
		{SAMPLE_AUTO, {false, false, false}, false, "no hardware PMU"},
		{SAMPLE_AUTO, {true, true, false}, false, "guests may use"},
		{SAMPLE_AUTO, {true, false, false}, true, ""},
		{SAMPLE_AUTO, {true, false, true}, false, "mediated"},
		{SAMPLE_HW, {false, false, false}, false, "no hardware PMU"},
		{SAMPLE_HW, {true, true, false}, true, ""},
		{SAMPLE_HW, {true, true, true}, false, "mediated"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sampling_choice c;

		sampling_choose(cases[i].with, &cases[i].facts, &c);
		assert_int_equal(c.hw, cases[i].hw);
		if (!*cases[i].why)
			assert_string_equal(c.why, "");
		else
			assert_non_null(strstr(c.why, cases[i].why));
	}
}

static void only_what_is_asked_for_counts(void **state)
{
	struct perf_event_attr a = sampling_attr(true, false, true, 997);

	(void)state;
	assert_int_equal(a.type, PERF_TYPE_HARDWARE);
	assert_true(a.exclude_host && !a.exclude_guest);
	assert_int_equal(a.precise_ip, 0);
	assert_true(a.freq && a.sample_freq == 997);
	a = sampling_attr(true, true, false, 997);
	assert_true(!a.exclude_host && a.exclude_guest);
	a = sampling_attr(true, true, true, 997);
	assert_true(!a.exclude_host && !a.exclude_guest);
	/* cpu-clock:u would lose every guest sample, and G and H have no effect on it. */
	a = sampling_attr(false, false, true, 97);
	assert_int_equal(a.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(a.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_true(!a.exclude_host && !a.exclude_guest && !a.exclude_user && !a.exclude_kernel);
	assert_string_equal(sampling_event_name(true, false, true), "cycles:G");
	assert_string_equal(sampling_event_name(true, true, false), "cycles:H");
	assert_string_equal(sampling_event_name(true, true, true), "cycles");
	assert_string_equal(sampling_event_name(false, false, true), "cpu-clock");
}

static struct pmu_facts facts_under(const char *dir)
{
	struct sysroot *root;
	struct pmu_facts f;

	assert_int_equal(sysroot_open(dir, &root), 0);
	pmu_facts_read(root, &f);
	sysroot_close(root);
	return f;
}

static void facts_come_from_sysfs(void **state)
{
	char dir[] = "/tmp/kvmtop-pmu-XXXXXX";
	struct pmu_facts f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	f = facts_under(dir);
	assert_false(f.pmu);
	assert_true(f.guests); /* not known: they may */
	tree_put(dir, "sys/module/kvm/parameters/enable_pmu", "N\n");
	tree_put(dir, "sys/bus/event_source/devices/cpu/type", "4\n");
	f = facts_under(dir);
	assert_true(f.pmu && !f.guests && !f.mediated);
	tree_put(dir, "sys/module/kvm/parameters/enable_pmu", "Y\n");
	tree_put(dir, "sys/module/kvm_intel/parameters/enable_mediated_pmu", "Y\n");
	f = facts_under(dir);
	assert_true(f.guests && f.mediated);
	tree_remove(dir);
}

static const char *why_under(const char *dir)
{
	static char why[256];
	struct sysroot *root;

	assert_int_equal(sysroot_open(dir, &root), 0);
	vpmu_host_why(root, why, sizeof(why));
	sysroot_close(root);
	return why;
}

/* The first line of the pane PMU. */
static void what_stands_against_guests_counters(void **state)
{
	char dir[] = "/tmp/kvmtop-pmu-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	tree_put(dir, "sys/module/kvm/parameters/enable_pmu", "Y\n");
	assert_string_equal(why_under(dir), "this host has no PMU: no counter of a guest counts");
	tree_put(dir, "sys/module/kvm/parameters/soft_pmu", "-1\n");
	assert_string_equal(why_under(dir), "this host has no PMU: guests count cycles by a clock, "
					    "no other CPU event");
	tree_put(dir, "sys/bus/event_source/devices/cpu/type", "4\n");
	assert_non_null(strstr(why_under(dir), "the VM's event filter"));
	tree_put(dir, "sys/module/kvm/parameters/soft_pmu", "1\n");
	assert_string_equal(why_under(dir), "kvm.soft_pmu=1: guests count cycles by a clock, no "
					    "other CPU event");
	tree_put(dir, "sys/module/kvm/parameters/enable_pmu", "N\n");
	assert_string_equal(why_under(dir), "no guest has a PMU: kvm.enable_pmu=N");
	tree_remove(dir);
}

/* ---- the collector itself ---- */

struct seen {
	uint64_t mine, kernel, user, guest, host;
	struct sampling_state last;
	int state;
	char why[PROBE_TEXT];
};

static void on_ips(void *ctx, const struct ip_sample *s, size_t n)
{
	struct seen *x = ctx;

	for (size_t i = 0; i < n; i++) {
		x->guest += DOMAIN_IS_GUEST(s[i].domain) ? s[i].n : 0;
		x->host += DOMAIN_IS_GUEST(s[i].domain) ? 0 : s[i].n;
		if (s[i].tid != (int32_t)syscall(SYS_gettid))
			continue;
		x->mine += s[i].n;
		x->kernel += s[i].domain == DOMAIN_HOST_KERNEL;
		x->user += s[i].domain == DOMAIN_HOST_USER;
		if (s[i].domain == DOMAIN_HOST_KERNEL)
			assert_true(s[i].ip >> 63);
		else
			assert_false(s[i].ip >> 63);
	}
}

static void on_sampling(void *ctx, const struct sampling_state *s)
{
	((struct seen *)ctx)->last = *s;
}

static void on_source(void *ctx, const char *name, int source_state, const char *why,
		      const char *mend)
{
	struct seen *x = ctx;

	(void)mend;
	assert_string_equal(name, "guest_sampling");
	x->state = source_state;
	snprintf(x->why, sizeof(x->why), "%s", why);
}

struct run {
	struct sysroot *root;
	struct seen seen;
	struct sink sink;
	struct collector_config config;
	struct collector_env env;
	void *state;
};

/* False: this process may not sample. */
static bool run_open(struct run *r, struct collector_config config)
{
	*r = (struct run){.config = config};
	r->sink = (struct sink){.ctx = &r->seen,
				.ips_ctx = &r->seen,
				.ips = on_ips,
				.sampling = on_sampling,
				.source = on_source};
	assert_int_equal(sysroot_open(NULL, &r->root), 0);
	r->env = (struct collector_env){.root = r->root, .sink = &r->sink, .config = &r->config};
	assert_int_equal(collector_guest_sampling.open(&r->env, &r->state), 0);
	collector_guest_sampling.demand(r->state, &(struct demand){.samples = true});
	return r->seen.last.open;
}

static void run_close(struct run *r)
{
	collector_guest_sampling.close(r->state);
	sysroot_close(r->root);
}

/* Uses CPU time for about so many ms: half of it in the kernel. */
static void burn(int ms)
{
	int64_t end = clock_mono_ns() + ms * NS_PER_MS;
	char buf[65536];
	int zero = open("/dev/zero", O_RDONLY);

	while (clock_mono_ns() < end) {
		for (volatile int i = 0; i < 200000; i++)
			;
		for (int i = 0; i < 20; i++)
			assert_true(read(zero, buf, sizeof(buf)) > 0);
	}
	close(zero);
}

static int64_t own_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return timespec_ns(t) / NS_PER_MS;
}

static void tick(struct run *r)
{
	int64_t now = clock_mono_ns();

	assert_int_equal(collector_guest_sampling.tick(r->state, now, now - 5 * NS_PER_MS), 0);
}

/* As many samples as CPU time says, of both halves, whatever else the machine does. */
static void own_work_is_sampled(void **state)
{
	struct run r;
	int64_t cpu;

	(void)state;
	if (!run_open(&r, (struct collector_config){.sample_hz = 997})) {
		run_close(&r);
		skip();
	}
	assert_string_equal(r.seen.last.event, "cpu-clock");
	assert_int_equal(r.seen.last.hz, 997);
	cpu = own_cpu_ms();
	burn(300);
	cpu = own_cpu_ms() - cpu;
	usleep(10000);
	tick(&r);
	assert_in_range(r.seen.mine, cpu * 997 / 1000 * 7 / 10, cpu * 997 / 1000 * 13 / 10 + 5);
	assert_true(r.seen.kernel && r.seen.user);
	assert_int_equal(r.seen.last.lost, 0);
	run_close(&r);
}

static void a_side_that_is_not_asked_for_is_left_out(void **state)
{
	struct run r;

	(void)state;
	if (!run_open(&r, (struct collector_config){.sample_hz = 997, .sample_guest = true})) {
		run_close(&r);
		skip();
	}
	burn(50);
	usleep(10000);
	tick(&r);
	assert_int_equal(r.seen.host, 0);
	run_close(&r);
}

static void the_engine_may_ask_for_less(void **state)
{
	struct run r;

	(void)state;
	if (!run_open(&r, (struct collector_config){.sample_hz = 997})) {
		run_close(&r);
		skip();
	}
	collector_guest_sampling.demand(r.state,
					&(struct demand){.samples = true, .sample_shift = 2});
	tick(&r);
	assert_int_equal(r.seen.last.hz, 249);
	assert_int_equal(r.seen.last.wanted_hz, 997);
	assert_int_equal(r.seen.state, SOURCE_PARTIAL);
	assert_non_null(strstr(r.seen.why, "--max-overhead"));
	assert_non_null(strstr(r.seen.why, "instead of 997"));
	collector_guest_sampling.demand(r.state, &(struct demand){.samples = true});
	tick(&r);
	assert_int_equal(r.seen.last.hz, 997);
	assert_int_equal(r.seen.state, SOURCE_OK);
	run_close(&r);
}

static void without_a_reader_it_is_closed(void **state)
{
	struct run r;
	int64_t later;

	(void)state;
	if (!run_open(&r, (struct collector_config){.sample_hz = 97})) {
		run_close(&r);
		skip();
	}
	collector_guest_sampling.demand(r.state, &(struct demand){0});
	tick(&r);
	assert_true(r.seen.last.open); /* who comes back soon need not wait */
	later = clock_mono_ns() + 11 * NS_PER_S;
	assert_int_equal(collector_guest_sampling.tick(r.state, later, later), 0);
	assert_false(r.seen.last.open);
	run_close(&r);
}

static void nothing_is_opened_at_rate_0(void **state)
{
	struct run r;

	(void)state;
	assert_false(run_open(&r, (struct collector_config){.sample_hz = 0}));
	assert_non_null(strstr(r.seen.why, "-F 0"));
	run_close(&r);
}

/* Asking for hardware where there is none: what runs instead is said. */
static void what_really_runs_is_said(void **state)
{
	struct pmu_facts f;
	struct run r;

	(void)state;
	if (!run_open(&r, (struct collector_config){.sample_hz = 97, .sample_with = SAMPLE_HW})) {
		run_close(&r);
		skip();
	}
	pmu_facts_read(r.root, &f);
	if (f.pmu) {
		run_close(&r);
		skip();
	}
	assert_string_equal(r.seen.last.event, "cpu-clock");
	assert_int_equal(r.seen.state, SOURCE_PARTIAL);
	assert_non_null(strstr(r.seen.why, "cpu-clock at 97 Hz"));
	assert_non_null(strstr(r.seen.why, "no hardware PMU"));
	run_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_are_the_records_word),
		cmocka_unit_test(short_and_foreign_records_are_none),
		cmocka_unit_test(a_guests_chain_tells_the_caller),
		cmocka_unit_test(a_chain_that_is_cut_short_is_none),
		cmocka_unit_test(samples_alike_are_counted),
		cmocka_unit_test(a_full_batch_says_so),
		cmocka_unit_test(a_guest_never_misses_its_counter),
		cmocka_unit_test(only_what_is_asked_for_counts),
		cmocka_unit_test(facts_come_from_sysfs),
		cmocka_unit_test(what_stands_against_guests_counters),
		cmocka_unit_test(own_work_is_sampled),
		cmocka_unit_test(a_side_that_is_not_asked_for_is_left_out),
		cmocka_unit_test(the_engine_may_ask_for_less),
		cmocka_unit_test(without_a_reader_it_is_closed),
		cmocka_unit_test(nothing_is_opened_at_rate_0),
		cmocka_unit_test(what_really_runs_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
