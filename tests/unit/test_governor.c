// SPDX-License-Identifier: GPL-2.0-only
/* The governor gives kinds up in the documented order, waits first, and takes them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "clock.h"
#include "governor.h"

static struct snapshot interval(int64_t t, uint64_t events)
{
	struct snapshot s = {.time = t, .dt = NS_PER_S, .open_kinds = KIND_ALL};

	s.host.ncpu = 1;
	s.kinds[KIND_VMEXIT].count = events;
	s.kinds[KIND_MSR].count = events;
	s.kinds[KIND_IOPORT].count = events;
	return s;
}

static void quiet_host_drops_nothing(void **state)
{
	struct governor g;

	(void)state;
	governor_init(&g, 2);
	for (int i = 1; i < 20; i++) {
		struct snapshot s = interval(i * NS_PER_S, 100);

		assert_false(governor_look(&g, &s));
	}
	assert_int_equal(g.dropped, 0);
	assert_true(g.guest_pct > 0.05 && g.guest_pct < 0.06); /* 400 events x 1.28 us of 1 s */
}

static void drops_in_order_after_patience(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 100000);
	char text[80];

	(void)state;
	governor_init(&g, 2);
	assert_false(governor_look(&g, &s)); /* one busy interval is no reason */
	s.time = 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_int_equal(g.dropped, KIND_BIT(KIND_MSR));
	s.time = 5 * NS_PER_S;
	assert_true(governor_look(&g, &s)); /* mmio has no events: dropping it would not help */
	assert_int_equal(g.dropped, KIND_BIT(KIND_MSR) | KIND_BIT(KIND_IOPORT));
	s.time = 7 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.dropped & KIND_BIT(KIND_VMEXIT));
	assert_string_equal(governor_text(&g, text, sizeof(text)), "msr, ioport, entry/exit");
}

/* One vCPU's events, each taken, cost as much as any; they go before what all VMs have. */
static void single_events_go_first(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 1000);
	char text[80];

	(void)state;
	s.host.events_by = EVENTS_BY_BPF;
	s.stream.events = 100000;
	governor_init(&g, 2);
	assert_false(governor_look(&g, &s));
	assert_true(g.guest_pct > 12.7 && g.guest_pct < 13);
	s.time = 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.no_slices && !g.dropped);
	assert_string_equal(governor_text(&g, text, sizeof(text)), "single events");
	s.stream.events = 0;
	s.time = 40 * NS_PER_S;
	assert_true(governor_look(&g, &s)); /* and come back when there is room again */
	assert_false(g.no_slices);
}

/* Exits taken one by one of a VM, for the code that makes them, beside their counts. */
static void single_exits_cost_as_much(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 1000000);
	char text[80];

	(void)state;
	s.host.events_by = EVENTS_BY_BPF;
	s.host.singles = 10000;
	governor_init(&g, 2);
	assert_false(governor_look(&g, &s));
	assert_true(g.guest_pct > 1.27 && g.guest_pct < 1.29);
	s.host.singles = 100000;
	s.host.waits_ns = 3000000;
	assert_false(governor_look(&g, &s));
	s.time += 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.no_code && !g.no_slices && !g.no_waits && !g.dropped);
	assert_true(governor_gave_up(&g));
	assert_string_equal(governor_text(&g, text, sizeof(text)), "the code that makes exits");
	s.host.singles = 0;
	s.time += 40 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_false(g.no_code);
	/* Where they are few nothing is won without them. */
	s.host.singles = 100;
	s.host.waits_ns = 30000000;
	assert_false(governor_look(&g, &s));
	s.time += 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.no_waits && !g.no_code);
}

/* A host that changes tasks all the time: who had the CPU is what VMs are left without first. */
static void waits_go_before_kinds(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 100);
	char text[80];

	(void)state;
	s.host.events_by = EVENTS_BY_BPF;
	s.host.switches = 100000;
	s.host.waits_ns = 54000000;
	governor_init(&g, 2);
	assert_false(governor_look(&g, &s));
	assert_true(g.guest_pct > 5.3 && g.guest_pct < 5.5);
	s.time = 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.no_waits && !g.no_slices && !g.dropped);
	assert_string_equal(governor_text(&g, text, sizeof(text)), "waits");
	/* But not where others are the dear ones. */
	s = interval(NS_PER_S, 1000000);
	s.host.switches = 1000;
	governor_init(&g, 2);
	assert_false(governor_look(&g, &s));
	s.time = 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.dropped && !g.no_waits);
}

/* What is counted in the kernel costs what was measured, however many events there were. */
static void programs_cost_what_was_measured(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 1000000);
	char text[80];

	(void)state;
	s.host.events_by = EVENTS_BY_BPF;
	s.host.counting_ns = 15000000;
	governor_init(&g, 2);
	assert_false(governor_look(&g, &s));
	assert_true(g.guest_pct > 1.49 && g.guest_pct < 1.51);
	s.time = 9 * NS_PER_S;
	assert_false(governor_look(&g, &s));
	assert_false(governor_gave_up(&g));
	/* Of the programs those go first that only tell parts of a figure; waits were asked for. */
	s.host.counting_ns = 25000000;
	s.host.exit_off_ns = s.host.waits_ns = 3000000;
	assert_false(governor_look(&g, &s));
	s.time += 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.no_exit_off && !g.no_waits && !g.dropped);
	assert_true(governor_gave_up(&g));
	assert_string_equal(governor_text(&g, text, sizeof(text)), "exits' time without a CPU");
	s.time += 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_true(g.no_waits && !g.dropped);
	s.time += 3 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_int_equal(g.dropped, KIND_BIT(KIND_MSR));
	s.host.counting_ns = 1000000;
	s.time += 999 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_false(governor_gave_up(&g));
}

/* Samples become fewer before any kind goes; with them the estimate goes down. */
static void samples_go_first(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 1000);

	(void)state;
	s.sampling.open = true;
	s.host.sym.n = value_known(2000); /* 2.8% */
	governor_init(&g, 2);
	governor_look(&g, &s);
	for (unsigned i = 1; i <= 3; i++) {
		s.time = (int64_t)(1 + 2 * i) * NS_PER_S;
		assert_true(governor_look(&g, &s));
		assert_int_equal(g.sample_shift, i);
		assert_int_equal(g.dropped, 0);
	}
	s.time = 9 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_int_equal(g.dropped, KIND_BIT(KIND_MSR));
	s.host.sym.n = value_known(250);
	for (int k = 0; k < KIND_NR; k++)
		s.kinds[k].count = 0;
	s.time = 999 * NS_PER_S;
	assert_true(governor_look(&g, &s));
	assert_int_equal(g.sample_shift, 0);
	assert_int_equal(g.dropped, 0);
}

static void takes_back_when_quiet_and_waits_longer(void **state)
{
	struct governor g;
	struct snapshot busy = interval(NS_PER_S, 100000), quiet = interval(0, 10);

	(void)state;
	governor_init(&g, 2);
	governor_look(&g, &busy);
	busy.time = 3 * NS_PER_S;
	assert_true(governor_look(&g, &busy));
	quiet.time = 10 * NS_PER_S;
	assert_false(governor_look(&g, &quiet)); /* too early */
	quiet.time = 34 * NS_PER_S;
	assert_true(governor_look(&g, &quiet));
	assert_int_equal(g.dropped, 0);
	assert_true(g.backoff > 30 * NS_PER_S);
}

static void zero_limit_never_drops(void **state)
{
	struct governor g;
	struct snapshot s = interval(NS_PER_S, 10000000);

	(void)state;
	governor_init(&g, 0);
	assert_false(governor_look(&g, &s));
	s.time = 60 * NS_PER_S;
	assert_false(governor_look(&g, &s));
	assert_int_equal(g.dropped, 0);
}

static void self_counts_own_time(void **state)
{
	struct governor g;
	volatile unsigned spin = 0;
	int64_t t0 = clock_mono_ns(), t1;
	double pct;

	(void)state;
	governor_init(&g, 2);
	assert_true(governor_self(&g, t0, 2) < 0);
	while ((t1 = clock_mono_ns()) < t0 + 50 * NS_PER_MS)
		spin++;
	pct = governor_self(&g, t1, 2);
	assert_true(pct > 0);
	assert_true(pct <= 55); /* one thread of two CPUs */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quiet_host_drops_nothing),
		cmocka_unit_test(single_events_go_first),
		cmocka_unit_test(single_exits_cost_as_much),
		cmocka_unit_test(waits_go_before_kinds),
		cmocka_unit_test(programs_cost_what_was_measured),
		cmocka_unit_test(drops_in_order_after_patience),
		cmocka_unit_test(samples_go_first),
		cmocka_unit_test(takes_back_when_quiet_and_waits_longer),
		cmocka_unit_test(zero_limit_never_drops),
		cmocka_unit_test(self_counts_own_time),
	};

	return cmocka_run_group_tests_name("governor", tests, NULL, NULL);
}
