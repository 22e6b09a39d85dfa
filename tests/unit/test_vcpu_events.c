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

#include "clock.h"
#include "inventory.h"
#include "live_guests.h"
#include "sysroot.h"
#include "vcpu_events.h"

#define MARGIN (5 * NS_PER_MS)
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
	struct guest a, b;
	struct told told;
	struct sink sink;
	struct collector_config config;
	struct collector_env env;
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

static void setup(struct run *r)
{
	memset(r, 0, sizeof(*r));
	r->sink = (struct sink){.ctx = &r->told,
				.vcpu_events = on_events,
				.vcpu_stream = on_stream,
				.source = on_source};
	r->config = (struct collector_config){.delay_s = 1};
	r->env = (struct collector_env){
		.sink = &r->sink, .config = &r->config, .inv = inventory_new()};
	assert_non_null(r->env.inv);
	assert_int_equal(sysroot_open(NULL, &r->env.root), 0);
	assert_int_equal(collector_vcpu_events.open(&r->env, &r->state), 0);
	start_guest(r->env.inv, &r->a);
	start_guest(r->env.inv, &r->b);
}

static void teardown(struct run *r)
{
	collector_vcpu_events.close(r->state);
	inventory_free(r->env.inv);
	sysroot_close(r->env.root);
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
	int64_t now;

	usleep(2 * MARGIN / 1000);
	now = clock_mono_ns();
	assert_int_equal(collector_vcpu_events.tick(r->state, now, now - MARGIN), 0);
}

/* ---- tests ---- */

static void one_vcpu_and_no_other(void **state)
{
	uint64_t want;
	struct run r;

	(void)state;
	if (!able())
		skip();
	setup(&r);
	let_go(&r.b, 0); /* as many as it can, until the end */
	assert_int_equal(r.told.stream.vcpu, 0);
	exits(&r.a, 100);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], 0); /* nobody asks: nothing comes */
	ask(&r, &r.a);
	assert_int_equal(r.told.stream.vcpu, r.a.vcpu->id);
	assert_int_equal(r.told.stream.kinds, KIND_BIT(KIND_USEREXIT));
	assert_int_equal(r.told.state, SOURCE_OK);
	want = exits(&r.a, 1000);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	assert_int_equal(r.told.others, 0);
	assert_int_equal(r.told.disorder, 0);
	assert_int_equal(r.told.n[EV_PIO], 0); /* nor kinds that nobody asks for */
	assert_int_equal(r.told.lost, 0);
	assert_true(runs(&r.b) > 0);
	want += exits(&r.a, 500);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	end_guest(&r.a, false);
	end_guest(&r.b, true);
	teardown(&r);
}

static void it_follows_the_selection(void **state)
{
	uint64_t want, before;
	struct run r;

	(void)state;
	if (!able())
		skip();
	setup(&r);
	ask(&r, &r.a);
	want = exits(&r.a, 300);
	exits(&r.b, 300);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	ask(&r, &r.b);
	assert_int_equal(r.told.stream.vcpu, r.b.vcpu->id);
	exits(&r.a, 200);
	want += exits(&r.b, 200);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	assert_int_equal(r.told.others, 0);
	/* What it did just before is handed over when it is closed, and then nothing more. */
	before = exits(&r.b, 50);
	ask(&r, NULL);
	assert_int_equal(r.told.stream.vcpu, 0);
	assert_true(r.told.n[EV_USEREXIT] <= want + before);
	before = r.told.n[EV_USEREXIT];
	exits(&r.b, 100);
	exits(&r.a, 100);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], before);
	assert_non_null(strstr(r.told.why, "closed"));
	end_guest(&r.a, false);
	end_guest(&r.b, false);
	teardown(&r);
}

/* A thread that ended is no reason to fail, and its vCPU may come back on another one. */
static void threads_end(void **state)
{
	struct inv_thread *t;
	uint64_t want;
	struct run r;

	(void)state;
	if (!able())
		skip();
	setup(&r);
	ask(&r, &r.a);
	want = exits(&r.a, 100);
	end_guest(&r.a, false);
	tick(&r);
	assert_true(r.told.n[EV_USEREXIT] >= want);
	tick(&r);
	ask(&r, NULL);
	r.told.n[EV_USEREXIT] = 0;
	ask(&r, &r.a); /* nobody told the inventory yet */
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], 0);
	assert_int_equal(r.told.stream.vcpu, 0);
	t = inventory_thread(r.env.inv, r.b.tid);
	inventory_set_thread(r.env.inv, r.a.vcpu, t);
	r.told.tid = r.b.tid;
	tick(&r); /* opens it */
	assert_int_equal(r.told.stream.vcpu, r.a.vcpu->id);
	want = exits(&r.b, 100);
	tick(&r);
	assert_int_equal(r.told.n[EV_USEREXIT], want);
	end_guest(&r.b, false);
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
		cmocka_unit_test(why_not_is_said),
	};

	mount_tracefs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
