// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * Each event of one vCPU and of no other: two real guests, of which one makes a known number of
 * exits and the other as many as it can. Needs root, /dev/kvm and tracefs, else it is skipped.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "live_guests.h"
#include "vcpu_events.h"

#define SLICE (10 * NS_PER_MS)

struct told {
	uint64_t n[EV_NR], others, disorder, lost;
	pid_t tid; /* whose events may come */
	int64_t last;
	struct vcpu_stream stream;
	int state;
	char why[PROBE_TEXT];
};

struct run {
	struct live live;
	struct told told;
	void *state;
};

/* ---- the sink ---- */

static void on_events(void *ctx, const struct sample *s, size_t n)
{
	struct told *t = ctx;

	for (size_t i = 0; i < n; i++) {
		t->others += s[i].tid != t->tid;
		t->disorder += s[i].time < t->last;
		t->last = s[i].time;
		t->n[s[i].type]++;
	}
}

static void on_stream(void *ctx, const struct vcpu_stream *s)
{
	struct told *t = ctx;

	t->stream = *s;
	t->lost += s->lost;
}

static void on_source(void *ctx, const char *name, int state, const char *why, const char *mend)
{
	struct told *t = ctx;

	(void)name;
	(void)mend;
	t->state = state;
	snprintf(t->why, sizeof(t->why), "%s", why);
}

/* ---- the collector ---- */

static void setup(struct run *r, bool small_rings)
{
	const struct sink sink = {.ctx = &r->told,
				  .vcpu_events = on_events,
				  .vcpu_stream = on_stream,
				  .source = on_source};

	memset(r, 0, sizeof(*r));
	live_begin(&r->live, &sink, small_rings);
	assert_int_equal(collector_vcpu_events.open(&r->live.env, &r->state), 0);
}

static void teardown(struct run *r)
{
	collector_vcpu_events.close(r->state);
	live_end(&r->live);
}

static void ask(struct run *r, const struct guest *g)
{
	const struct demand d = {.slices = g ? KIND_BIT(KIND_USEREXIT) : 0,
				 .slice_ns = g ? SLICE : 0,
				 .vm = g ? g->inv->id : 0,
				 .vcpu = g ? g->vcpu->id : 0};

	r->told.tid = g ? g->tid : 0;
	collector_vcpu_events.demand(r->state, &d);
}

/* All that was done before this call is handed over in it. */
static void tick(struct run *r)
{
	int64_t watermark = live_watermark();

	assert_int_equal(collector_vcpu_events.tick(r->state, watermark + LIVE_MARGIN, watermark),
			 0);
}

/* ---- tests ---- */

static void one_vcpu_and_no_other(void **state)
{
	uint64_t want;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	let_go(&r.live.b, 0); /* as many as it can, until the end */
	assert_int_equal(r.told.stream.vcpu, 0);
	exits(&r.live.a, 100);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], 0); /* nobody asks: nothing comes */
	ask(&r, &r.live.a);
	assert_int_equal(r.told.stream.vcpu, r.live.a.vcpu->id);
	assert_int_equal(r.told.stream.kinds, KIND_BIT(KIND_USEREXIT));
	assert_int_equal(r.told.state, SOURCE_OK);
	want = exits(&r.live.a, 1000);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	assert_int_equal(r.told.others, 0);
	assert_int_equal(r.told.disorder, 0);
	assert_int_equal(r.told.n[EV_PIO], 0); /* nor kinds that nobody asks for */
	assert_int_equal(r.told.lost, 0);
	assert_true(runs(&r.live.b) > 0);
	want += exits(&r.live.a, 500);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	teardown(&r);
}

static void it_follows_the_selection(void **state)
{
	uint64_t want, before;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	ask(&r, &r.live.a);
	want = exits(&r.live.a, 300);
	exits(&r.live.b, 300);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	ask(&r, &r.live.b);
	assert_int_equal(r.told.stream.vcpu, r.live.b.vcpu->id);
	exits(&r.live.a, 200);
	want += exits(&r.live.b, 200);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	assert_int_equal(r.told.others, 0);
	/* What it did just before is handed over when it is closed, and then nothing more. */
	before = exits(&r.live.b, 50);
	ask(&r, NULL);
	assert_int_equal(r.told.stream.vcpu, 0);
	assert_true(r.told.n[EV_USEREXIT] <= want + before);
	before = r.told.n[EV_USEREXIT];
	exits(&r.live.b, 100);
	exits(&r.live.a, 100);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], before);
	assert_non_null(strstr(r.told.why, "closed"));
	teardown(&r);
}

/* A thread that ended is no reason to fail, and its vCPU may come back on another one. */
static void threads_end(void **state)
{
	struct inv_thread *t;
	uint64_t want;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	ask(&r, &r.live.a);
	want = exits(&r.live.a, 100);
	end_guest(&r.live.a);
	tick(&r);
	assert_true(r.told.n[EV_USEREXIT] >= want);
	tick(&r);
	ask(&r, NULL);
	r.told.n[EV_USEREXIT] = 0;
	ask(&r, &r.live.a); /* nobody told the inventory yet */
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], 0);
	assert_int_equal(r.told.stream.vcpu, 0);
	t = inventory_thread(r.live.env.inv, r.live.b.tid);
	inventory_set_thread(r.live.env.inv, r.live.a.vcpu, t);
	r.told.tid = r.live.b.tid;
	tick(&r); /* opens it */
	assert_int_equal(r.told.stream.vcpu, r.live.a.vcpu->id);
	want = exits(&r.live.b, 100);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	teardown(&r);
}

/* More than a small ring holds, between two looks: each event is told, or counted as lost. */
static void what_its_ring_loses_is_told(void **state)
{
	uint64_t want, lost;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, true);
	ask(&r, &r.live.a);
	want = exits(&r.live.a, 5000);
	tick(&r);
	assert_in_range(r.told.lost, 1, want);
	assert_int_equal(r.told.n[EV_USEREXIT] + r.told.lost, want);
	lost = r.told.lost;
	want += exits(&r.live.a, 100);
	tick(&r);
	assert_int_equal(r.told.lost, lost);
	assert_int_equal(r.told.n[EV_USEREXIT] + lost, want);
	teardown(&r);
}

static void why_not_is_said(void **state)
{
	struct collector_config c = {.delay_s = 1};
	struct collector_env env = {.config = &c};
	struct probes p = {0};
	char dir[] = "/tmp/test-vcpu-events.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(sysroot_open(dir, &env.root), 0);
	collector_vcpu_events.probe(&env, &p);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.p[0].state, SOURCE_OFF);
	assert_non_null(strstr(p.p[0].why, "fixture"));
	sysroot_close(env.root);
	rmdir(dir);
	if (!able())
		return;
	p.n = 0;
	assert_int_equal(sysroot_open(NULL, &env.root), 0);
	collector_vcpu_events.probe(&env, &p);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.p[0].state, SOURCE_OK);
	sysroot_close(env.root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_vcpu_and_no_other),
		cmocka_unit_test(it_follows_the_selection),
		cmocka_unit_test(threads_end),
		cmocka_unit_test(what_its_ring_loses_is_told),
		cmocka_unit_test(why_not_is_said),
	};

	mount_tracefs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
