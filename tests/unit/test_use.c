// SPDX-License-Identifier: GPL-2.0-only
/* CPU and steal: real recordings (tests/data/sched/) and the edges that none has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "procfs.h"
#include "use.h"

#define HZ 100

/* ---- recordings ---- */

struct play {
	FILE *f;
	struct use_state use;
	struct use_quota quota;
	struct snap_use out;
	int64_t time;
	bool no_gstime; /* as if the kernel had no such field */
};

static void play_open(struct play *p, const char *name)
{
	char path[80];

	memset(p, 0, sizeof(*p));
	snprintf(path, sizeof(path), "tests/data/sched/%s.txt", name);
	p->f = fopen(path, "r");
	assert_non_null(p->f);
}

/* Reads a line and feeds it; false at the end. */
static bool play_next(struct play *p, bool with_quota)
{
	char line[1024], sched[128], switches[64];
	struct thread_reading r = {.has_sched = true, .has_vol = true, .has_gtime = true};
	struct quota_reading q = {.has = true, .quota_us = 40000, .period_us = 100000};
	struct proc_schedstat ss;
	struct proc_stat st;
	int at = 0;

	if (!fgets(line, sizeof(line), p->f)) {
		fclose(p->f);
		return false;
	}
	assert_int_equal(sscanf(line, "%" SCNd64 "|%63[^|]|%" SCNu64 "|%127[^|]|%n", &r.time,
				switches, &q.throttled_ns, sched, &at),
			 4);
	/* The older recordings have the voluntary ones only. */
	r.has_nonvol = sscanf(switches, "%" SCNu64 ",%" SCNu64, &r.vol, &r.nonvol) == 2;
	assert_int_equal(procfs_parse_schedstat(sched, strlen(sched), &ss), 0);
	assert_int_equal(procfs_parse_stat(line + at, strlen(line + at), &st), 0);
	r.run_ns = ss.run_ns;
	r.delay_ns = ss.delay_ns;
	r.nr_sched = ss.nr_sched;
	r.state = st.state;
	r.cpu = st.cpu;
	r.utime = st.utime;
	r.stime = st.stime;
	r.gtime = st.gtime;
	r.gstime = st.gstime;
	r.has_gstime = st.nfields >= PROC_STAT_GSTIME && !p->no_gstime;
	q.time = p->time = r.time;
	use_reading(&p->use, &r, HZ);
	if (with_quota)
		use_quota_reading(&p->quota, &q);
	use_result(&p->use, with_quota ? &p->quota : NULL, &p->out);
	return true;
}

static void starved_in_every_interval(void **state)
{
	struct play p;
	int n = 0;

	(void)state;
	play_open(&p, "idle-class");
	assert_true(play_next(&p, false));
	assert_int_equal(p.out.steal.state, VALUE_PENDING);
	for (; play_next(&p, false); n++) {
		assert_true(value_has(p.out.steal));
		assert_true(p.out.steal.v >= 90);
		assert_true(p.out.steal.v + p.out.cpu.v <= 100.001);
	}
	assert_int_equal(n, 39);
}

static bool play_skip(struct play *p, int lines)
{
	char line[1024];

	while (lines--)
		if (!fgets(line, sizeof(line), p->f))
			return false;
	return true;
}

/* Where its run time comes in lumps it looks as one that is starved until the next one. */
static void alone_without_a_tick_is_not_starved(void **state)
{
	static const int every[] = {1, 3, 10};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct play p;

		play_open(&p, "nohz-alone");
		play_next(&p, false);
		while (play_skip(&p, every[i] - 1) && play_next(&p, false)) {
			assert_true(value_has(p.out.steal));
			assert_true(p.out.steal.v < 1);
			assert_true(p.out.cpu.v <= 110);
		}
	}
}

static void starved_without_a_tick(void **state)
{
	struct play p;
	int n = 0;

	(void)state;
	play_open(&p, "nohz-starved");
	play_next(&p, false);
	for (; play_next(&p, false); n++)
		assert_true(p.out.steal.v >= 90 || p.out.cpu.v >= 5);
	assert_int_equal(n, 29);
}

static void sharing_without_a_tick(void **state)
{
	double steal = 0, cpu = 0;
	struct play p;

	(void)state;
	play_open(&p, "nohz-half");
	play_next(&p, false);
	for (int i = 0; i < 21; i++) {
		assert_true(play_next(&p, false));
		steal += p.out.steal.v / 21;
		cpu += p.out.cpu.v / 21;
	}
	assert_true(steal > 43 && steal < 57);
	assert_true(cpu > 43 && cpu < 57);
	assert_true(play_skip(&p, 1)); /* the recording machine stood still for 2.4 s … */
	assert_true(play_next(&p, false));
	while (play_next(&p, false)) /* … in which it ran on: now the other one catches up */
		assert_true(p.out.steal.v > 99);
}

static void half_is_half(void **state)
{
	double sum = 0;
	struct play p;
	int n = 0;

	(void)state;
	play_open(&p, "half");
	play_next(&p, false);
	while (play_next(&p, false)) {
		assert_true(p.out.steal.v > 40 && p.out.steal.v < 60);
		sum += p.out.steal.v;
		n++;
	}
	assert_true(sum / n > 48 && sum / n < 52);
}

static void quota_is_its_own(void **state)
{
	double steal = 0, throt = 0;
	struct play p;
	int n = 0;

	(void)state;
	play_open(&p, "quota");
	play_next(&p, true);
	for (; play_next(&p, true); n++) {
		assert_true(value_has(p.out.throt));
		assert_true(p.out.own_quota);
		steal += p.out.steal.v;
		throt += p.out.throt.v;
		assert_true(p.out.wait.v >= 0);
	}
	assert_true(steal / n > 57 && steal / n < 63);
	assert_true(throt / n > 55 && throt / n < 65);
}

static void stopped_is_not_stolen(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, "stop");
	play_next(&p, false);
	for (int i = 1; play_next(&p, false); i++) {
		if (i > 6 && i <= 11) /* stopped over the whole interval */
			assert_true(p.out.steal.v < 1 && p.out.cpu.v < 1);
		if (i < 5)
			assert_true(p.out.cpu.v > 50);
	}
}

static void sleeper_is_not_starved(void **state)
{
	double most = 0, sum = 0;
	struct play p;
	int n = 0;

	(void)state;
	play_open(&p, "sleeper");
	play_next(&p, false);
	for (; play_next(&p, false); n++) {
		most = p.out.steal.v > most ? p.out.steal.v : most;
		sum += p.out.steal.v;
	}
	/* It sleeps half of the time and is often runnable when it is looked at. */
	assert_true(sum / n < 12);
	assert_true(most < 45);
}

/* ---- made situations ---- */

static struct thread_reading at_ms(int64_t ms, uint64_t run_ms, uint64_t delay_ms, uint64_t nr,
				   char st)
{
	return (struct thread_reading){
		.time = ms * NS_PER_MS + NS_PER_S,
		.has_sched = true,
		.has_gtime = true,
		.state = st,
		.cpu = 1,
		.run_ns = run_ms * 1000000,
		.delay_ns = delay_ms * 1000000,
		.nr_sched = nr,
		.utime = run_ms / 10,
		.gtime = run_ms / 20,
	};
}

static void feed(struct use_state *u, struct thread_reading r)
{
	use_reading(u, &r, HZ);
}

static void lump_takes_back_what_was_shown(void **state)
{
	struct use_state u = {0};

	(void)state;
	feed(&u, at_ms(0, 0, 0, 1, 'R'));
	for (int i = 1; i <= 5; i++) {
		feed(&u, at_ms(i * 1000, 0, 0, 1, 'R'));
		assert_true(u.use.steal.v > 99.9);
	}
	/* It gets the CPU after 5.2 s and keeps it: 5,200 ms come at once, 200 are of now. */
	feed(&u, at_ms(6000, 800, 5200, 2, 'R'));
	assert_true(u.use.steal.v > 19 && u.use.steal.v < 21);
	feed(&u, at_ms(7000, 1800, 5200, 2, 'R'));
	assert_true(u.use.steal.v < 1);
	assert_true(u.use.cpu.v > 99);
}

static void backwards_is_pending_for_one_tick(void **state)
{
	struct use_state u = {0};

	(void)state;
	feed(&u, at_ms(0, 5000, 100, 10, 'S'));
	feed(&u, at_ms(1000, 5500, 110, 12, 'S'));
	assert_true(value_has(u.use.cpu));
	feed(&u, at_ms(2000, 100, 0, 1, 'S')); /* another thread under the same number */
	assert_int_equal(u.use.cpu.state, VALUE_PENDING);
	assert_int_equal(u.use.steal.state, VALUE_PENDING);
	feed(&u, at_ms(3000, 400, 0, 2, 'S'));
	assert_true(u.use.cpu.v > 29 && u.use.cpu.v < 31);
}

/* A glitch of a counter is no figure; what comes after it is one again. */
static void a_leap_is_pending(void **state)
{
	struct use_state u = {0};
	struct thread_reading r;

	(void)state;
	feed(&u, at_ms(0, 0, 0, 1, 'S'));
	feed(&u, at_ms(1000, 500, 0, 10, 'S'));
	feed(&u, at_ms(2000, 500 + 1000000, 0, 12, 'S'));
	assert_int_equal(u.use.cpu.state, VALUE_PENDING);
	assert_int_equal(u.use.steal.state, VALUE_PENDING);
	feed(&u, at_ms(3000, 500 + 1000300, 0, 14, 'S'));
	assert_true(u.use.cpu.v > 29 && u.use.cpu.v < 31);
	feed(&u, at_ms(4000, 1100, 0, 16, 'S')); /* and back: there was nothing in between */
	assert_int_equal(u.use.cpu.state, VALUE_PENDING);
	feed(&u, at_ms(5000, 1300, 0, 18, 'S'));
	assert_true(u.use.cpu.v > 19 && u.use.cpu.v < 21);
	r = at_ms(6000, 1300, 0, 18, 'S');
	r.has_sched = false; /* by ticks */
	r.utime = 1ull << 40;
	feed(&u, r);
	assert_int_equal(u.use.cpu.state, VALUE_PENDING);
}

static void a_leap_of_a_rate_is_its_own(void **state)
{
	struct use_state u = {0};
	struct thread_reading r;

	(void)state;
	feed(&u, at_ms(0, 0, 0, 1, 'S'));
	feed(&u, at_ms(1000, 500, 0, 4000001, 'S'));
	assert_true(u.use.csw.v > 3999999 && u.use.csw.v < 4000001);
	feed(&u, at_ms(2000, 1000, 0, 9100001, 'S'));
	assert_int_equal(u.use.csw.state, VALUE_PENDING);
	assert_true(u.use.cpu.v > 49 && u.use.cpu.v < 51);
	feed(&u, at_ms(3000, 1500, 0, 9100002, 'S'));
	assert_true(u.use.csw.v > 0.9 && u.use.csw.v < 1.1);
	r = at_ms(4000, 2000, 0, 9100003, 'S');
	r.majflt = 2000000;
	feed(&u, r);
	assert_int_equal(u.use.majflt.state, VALUE_PENDING);
	assert_true(value_has(u.use.csw));
}

/* On a nohz_full CPU run time is brought up to date once a second. */
static void run_time_may_come_in_lumps(void **state)
{
	struct use_state u = {0};

	(void)state;
	feed(&u, at_ms(0, 0, 0, 1, 'R'));
	for (int i = 1; i < 30; i++) {
		feed(&u, at_ms(i * 100, (uint64_t)(i / 10) * 1000, 0, 1, 'R'));
		assert_true(value_has(u.use.cpu) && u.use.cpu.v <= 110);
	}
}

static struct thread_reading with_switches(struct thread_reading r, uint64_t vol, uint64_t nonvol)
{
	r.has_vol = r.has_nonvol = true;
	r.vol = vol;
	r.nonvol = nonvol;
	return r;
}

static void who_just_woke_is_not_starved(void **state)
{
	struct use_state u = {0};

	(void)state;
	feed(&u, with_switches(at_ms(0, 0, 0, 10, 'R'), 5, 4)); /* on its CPU */
	/* It ran 300 ms, slept, and woke a moment ago: it waits, but not since 700 ms. */
	feed(&u, with_switches(at_ms(1000, 300, 0, 10, 'R'), 6, 4));
	assert_true(u.use.steal.v < 0.001);
	feed(&u, at_ms(2000, 400, 20, 14, 'S')); /* what it did wait comes with the lump */
	assert_true(u.use.steal.v > 1.9 && u.use.steal.v < 2.1);
}

static void switched_out_in_the_interval(void **state)
{
	struct use_state u = {0};

	(void)state;
	feed(&u, with_switches(at_ms(0, 0, 0, 10, 'R'), 5, 4));
	feed(&u, with_switches(at_ms(1000, 400, 0, 10, 'R'), 5, 5)); /* waits since 600 ms */
	assert_true(u.use.steal.v > 59.9 && u.use.steal.v < 60.1);
	feed(&u, with_switches(at_ms(2000, 400, 0, 10, 'R'), 5, 5));
	assert_true(u.use.steal.v > 99.9);
	feed(&u, with_switches(at_ms(3000, 900, 2100, 11, 'R'), 5, 5));
	assert_true(u.use.steal.v > 49.9 && u.use.steal.v < 50.1);
	assert_true(u.use.cpu.v > 49.9 && u.use.cpu.v < 50.1);
}

static void interrupts_do_not_add_up_to_steal(void **state)
{
	struct use_state u = {0};

	(void)state;
	/* 10% of the time is of interrupts: neither run nor wait. It is often switched out. */
	for (uint64_t i = 0; i <= 100; i++) {
		feed(&u, with_switches(at_ms((int64_t)i * 1000, i * 500, i * 400, i * 250 + 1, 'R'),
				       0, i * 250 + i % 2));
		if (i)
			assert_true(u.use.steal.v > 35 && u.use.steal.v < 45);
	}
}

static void a_missed_count_is_no_steal(void **state)
{
	struct use_state u = {0};

	(void)state;
	/* On its CPU but for interrupts; the kernel missed one time it was scheduled in. */
	for (int i = 0; i < 20; i++) {
		feed(&u, with_switches(at_ms(i * 1000, (uint64_t)i * 940, 0, 10, 'R'), 5, 5));
		assert_true(!i || u.use.steal.v <= 6.1);
	}
}

static void no_thread_runs_longer_than_the_time(void **state)
{
	struct use_state u = {0};

	(void)state;
	feed(&u, at_ms(0, 0, 0, 1, 'R'));
	feed(&u, at_ms(100, 900, 0, 1, 'R'));
	assert_true(u.use.cpu.v <= 110);
	assert_true(u.use.steal.v < 0.001);
	feed(&u, at_ms(200, UINT64_MAX / 1000000, UINT64_MAX / 1000000, 2, 'S'));
	assert_true(u.use.cpu.v <= 110 && u.use.cpu.v >= 0);
	assert_true(u.use.steal.v >= 0 && u.use.steal.v <= 100);
}

static void shares_have_the_scale_of_cpu(void **state)
{
	struct use_state u = {0};
	struct thread_reading r;

	(void)state;
	for (int i = 0; i <= 30; i++) /* a tick of 10 ms in 0.1 s says nothing: a second does */
		feed(&u, at_ms(i * 100, (uint64_t)i * 50, 0, (uint64_t)i, 'S'));
	assert_int_equal(u.use.guest.state, VALUE_KNOWN);
	assert_true(u.use.cpu.v > 49.9 && u.use.cpu.v < 50.1);
	assert_true(u.use.guest.v > 23 && u.use.guest.v < 27);
	assert_true(u.use.usr.v + u.use.guest.v + u.use.sys.v > 49.9);
	/* gtime above utime, as some kernels have it: never a negative or wrapped user time. */
	r = at_ms(3100, 1550, 0, 40, 'S');
	r.gtime = r.utime + 50;
	feed(&u, r);
	assert_true(u.use.usr.v >= 0 && u.use.usr.v <= 100);
	assert_true(u.use.guest.v <= u.use.cpu.v + 0.001);
}

static void without_schedstat_steal_is_unknown(void **state)
{
	struct use_state u = {0};
	struct thread_reading r = at_ms(0, 0, 0, 0, 'R');
	struct snap_use out;

	(void)state;
	r.has_sched = false;
	feed(&u, r);
	r = at_ms(1000, 300, 0, 0, 'R');
	r.has_sched = false;
	feed(&u, r);
	assert_true(u.use.cpu.v > 29 && u.use.cpu.v < 31); /* from ticks */
	assert_int_equal(u.use.steal.state, VALUE_NA);
	assert_int_equal(u.use.steal.why, WHY_NO_SCHEDSTAT);
	use_result(&u, NULL, &out);
	assert_int_equal(out.wait.state, VALUE_NA);
	assert_int_equal(out.throt.state, VALUE_NA);
}

static void guest_steal_of_a_patched_kernel_comes_first(void **state)
{
	struct use_state u = {0};
	struct thread_reading r = at_ms(0, 0, 0, 1, 'S');

	(void)state;
	r.has_gstime = true;
	feed(&u, r);
	r = at_ms(1000, 500, 0, 1, 'S');
	r.has_gstime = true;
	r.gstime = 25;
	feed(&u, r);
	assert_true(u.use.steal.v > 24.9 && u.use.steal.v < 25.1);
	r.time += NS_PER_S;
	r.run_ns += 900 * NS_PER_MS;
	r.gstime += 90; /* its window is another one: still no more than what was not run */
	feed(&u, r);
	assert_true(u.use.steal.v < 10.1);
	r.time += NS_PER_S;
	r.gstime = 3;
	feed(&u, r);
	assert_int_equal(u.use.steal.state, VALUE_PENDING);
}

/* Of two vCPUs on one CPU of a patched kernel, and by its scheduler's figures alone. */
static void guest_steal_as_recorded(void **state)
{
	double told = 0, delay = 0;
	struct play p, q;
	int n = 0;

	(void)state;
	play_open(&p, "gstime-half");
	play_open(&q, "gstime-half");
	q.no_gstime = true;
	while (play_next(&p, false) && play_next(&q, false)) {
		if (n++ < 6) /* until its window is a second long */
			continue;
		assert_true(p.use.last.has_gstime && !q.use.last.has_gstime);
		assert_true(value_has(p.out.steal) && value_has(q.out.steal));
		told += p.out.steal.v;
		delay += q.out.steal.v;
	}
	assert_int_equal(n, 24);
	assert_true(told / 18 > 35 && told / 18 < 65);
	assert_true(told > delay - 18 * 5 && told < delay + 18 * 5);
	play_next(&q, false);
}

static void guest_steal_of_a_starved_vcpu(void **state)
{
	struct play p;
	int n = 0;

	(void)state;
	play_open(&p, "gstime-starved");
	for (; play_next(&p, false); n++)
		assert_true(n < 6 || p.out.steal.v >= 85);
	assert_int_equal(n, 24);
}

static void held_back_for_half_of_it(void **state)
{
	struct use_quota q = {0};
	struct quota_reading r = {.has = true, .time = NS_PER_S};

	(void)state;
	use_quota_reading(&q, &r);
	assert_int_equal(q.throt.state, VALUE_PENDING);
	r.time = 2 * NS_PER_S;
	r.throttled_ns = NS_PER_S / 2;
	use_quota_reading(&q, &r);
	assert_true(q.throt.v > 49.9 && q.throt.v < 50.1);
	r.time = 3 * NS_PER_S;
	r.throttled_ns = 0; /* another group: no wrapped figure */
	use_quota_reading(&q, &r);
	assert_int_equal(q.throt.state, VALUE_PENDING);
	r.has = false;
	use_quota_reading(&q, &r);
	assert_int_equal(q.throt.state, VALUE_NA);
}

static void sums_and_means(void **state)
{
	struct snap_use a = {
		.cpu = value_known(30), .steal = value_known(60), .throt = value_known(50)};
	struct snap_use b = {
		.cpu = value_known(10), .steal = value_known(20), .throt = value_known(0)};
	struct snap_use io = {.cpu = value_known(5), .steal = value_known(99)}, out;
	struct use_sum s = {0};

	(void)state;
	use_sum_add(&s, &a, true);
	use_sum_add(&s, &b, true);
	use_sum_add(&s, &io, false);
	use_sum_result(&s, &out);
	assert_true(out.cpu.v > 44.9 && out.cpu.v < 45.1);
	assert_true(out.steal.v > 39.9 && out.steal.v < 40.1); /* the VMM's thread is not in it */
	assert_true(out.own_quota); /* 25 of 40 */
	memset(&s, 0, sizeof(s));
	a.throt = value_known(20);
	use_sum_add(&s, &a, true);
	use_sum_add(&s, &b, true);
	use_sum_result(&s, &out);
	assert_false(out.own_quota); /* 10 of 40 */
	a.own_quota = true; /* its quota is used up, and it has three quarters of the wait */
	memset(&s, 0, sizeof(s));
	use_sum_add(&s, &a, true);
	use_sum_add(&s, &b, true);
	use_sum_add(&s, &io, false);
	use_sum_result(&s, &out);
	assert_true(out.own_quota);
	assert_int_equal(out.cpu.state, VALUE_KNOWN);
	memset(&io, 0, sizeof(io)); /* pending */
	use_sum_add(&s, &io, true);
	use_sum_result(&s, &out);
	assert_int_equal(out.cpu.state, VALUE_PARTIAL);
	memset(&s, 0, sizeof(s));
	a.throt = value_na(WHY_NO_CGROUP);
	use_sum_add(&s, &a, true);
	use_sum_add(&s, &b, true);
	use_sum_result(&s, &out);
	assert_int_equal(out.throt.state, VALUE_PARTIAL);
	assert_int_equal(out.throt.why, WHY_NO_CGROUP);
	assert_int_equal(out.steal.state, VALUE_KNOWN);
	memset(&s, 0, sizeof(s));
	use_sum_result(&s, &out);
	assert_int_equal(out.cpu.state, VALUE_PENDING); /* no thread: nothing is known */
}

/* What the VMM's idle threads used is no figure of a VM whose vCPUs are not known yet. */
static void a_sum_without_a_vcpu_is_none(void **state)
{
	struct snap_use io = {.cpu = value_known(0)}, vcpu = {.cpu = value_known(80)}, new = {0},
			out;
	struct use_sum s = {0};

	(void)state;
	use_sum_add(&s, &io, false);
	use_sum_add(&s, &new, true);
	use_sum_result(&s, &out);
	assert_int_equal(out.cpu.state, VALUE_PENDING);
	use_sum_add(&s, &vcpu, true);
	use_sum_result(&s, &out);
	assert_int_equal(out.cpu.state, VALUE_PARTIAL);
	assert_true(out.cpu.v > 79.9 && out.cpu.v < 80.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starved_in_every_interval),
		cmocka_unit_test(alone_without_a_tick_is_not_starved),
		cmocka_unit_test(starved_without_a_tick),
		cmocka_unit_test(sharing_without_a_tick),
		cmocka_unit_test(half_is_half),
		cmocka_unit_test(quota_is_its_own),
		cmocka_unit_test(stopped_is_not_stolen),
		cmocka_unit_test(sleeper_is_not_starved),
		cmocka_unit_test(lump_takes_back_what_was_shown),
		cmocka_unit_test(backwards_is_pending_for_one_tick),
		cmocka_unit_test(a_leap_is_pending),
		cmocka_unit_test(a_leap_of_a_rate_is_its_own),
		cmocka_unit_test(run_time_may_come_in_lumps),
		cmocka_unit_test(who_just_woke_is_not_starved),
		cmocka_unit_test(switched_out_in_the_interval),
		cmocka_unit_test(interrupts_do_not_add_up_to_steal),
		cmocka_unit_test(a_missed_count_is_no_steal),
		cmocka_unit_test(no_thread_runs_longer_than_the_time),
		cmocka_unit_test(shares_have_the_scale_of_cpu),
		cmocka_unit_test(without_schedstat_steal_is_unknown),
		cmocka_unit_test(guest_steal_of_a_patched_kernel_comes_first),
		cmocka_unit_test(guest_steal_as_recorded),
		cmocka_unit_test(guest_steal_of_a_starved_vcpu),
		cmocka_unit_test(held_back_for_half_of_it),
		cmocka_unit_test(sums_and_means),
		cmocka_unit_test(a_sum_without_a_vcpu_is_none),
	};

	return cmocka_run_group_tests_name("use", tests, NULL, NULL);
}
