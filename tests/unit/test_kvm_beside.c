// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * Every exit of the selected VM and of no other: real guests that make known numbers of exits. Not
 * every KVM fires kvm_exit; returns to the VMM fire everywhere, so their tracepoint is read as if
 * it were kvm_exit (it has the fields of LoongArch's). Needs root, /dev/kvm and tracefs, else it is
 * skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kvm_beside.h"
#include "live_guests.h"

struct told {
	uint64_t code_a, code_b, code_others; /* of guests a and b; of whoever else is here */
	uint64_t exits_a;
	uint64_t lost, lost_calls;
	uint64_t taken; /* as the governor is told */
};

struct run {
	struct live live;
	struct told told;
	struct kvm_format *format;
	struct perf_rings *rings;
	struct kvm_beside *beside;
};

static void on_code(void *ctx, const struct sample *s, size_t n)
{
	struct run *r = ctx;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s[i].type, EV_EXIT);
		r->told.code_a += s[i].tid == r->live.a.tid;
		r->told.code_b += s[i].tid == r->live.b.tid;
		r->told.code_others += s[i].tid != r->live.a.tid && s[i].tid != r->live.b.tid;
	}
}

static void on_exits(void *ctx, const struct sample *s, size_t n)
{
	struct run *r = ctx;

	for (size_t i = 0; i < n; i++)
		r->told.exits_a += s[i].tid == r->live.a.tid;
}

static void on_code_lost(void *ctx, uint64_t n)
{
	struct run *r = ctx;

	r->told.lost += n;
	r->told.lost_calls++;
}

static void on_cost(void *ctx, const struct program_cost *c)
{
	struct run *r = ctx;

	assert_false(c->waits);
	assert_int_equal(c->ns, 0);
	r->told.taken += c->singles;
}

static unsigned event_named(const char *name)
{
	unsigned i = 0;

	while (strcmp(kvm_events[i].event, name) != 0)
		i++;
	return i;
}

static void load_format(struct run *r)
{
	char text[8192];
	ssize_t n = sysroot_read(r->live.env.root,
				 "sys/kernel/tracing/events/kvm/kvm_userspace_exit/format", text,
				 sizeof(text));

	assert_true(n > 0);
	r->format = kvm_format_new();
	assert_true(kvm_format_load(r->format, event_named("kvm_exit"), text, (size_t)n) > 0);
}

static void setup(struct run *r, bool small_rings)
{
	const struct sink sink = {.ctx = r,
				  .code = on_code,
				  .code_lost = on_code_lost,
				  .exits = on_exits,
				  .program_cost = on_cost,
				  .ips_ctx = r};

	memset(r, 0, sizeof(*r));
	live_begin(&r->live, &sink, small_rings);
	load_format(r);
	assert_int_equal(perf_rings_new(small_rings ? RING_MIN : 0, 1, small_rings, &r->rings), 0);
	assert_int_equal(kvm_beside_new(&r->live.env, r->format, r->rings, &r->beside), 0);
}

static void teardown(struct run *r)
{
	kvm_beside_follow(r->beside, false);
	kvm_beside_free(r->beside);
	perf_rings_free(r->rings);
	kvm_format_free(r->format);
	live_end(&r->live);
}

static void ask(struct run *r, const struct demand *d)
{
	kvm_beside_demand(r->beside, d);
	kvm_beside_follow(r->beside, true);
}

/* All that was done before this call is handed over in it. */
static void take(struct run *r)
{
	kvm_beside_drain(r->beside, live_watermark());
}

/* ---- tests ---- */

static void one_vm_and_no_other(void **state)
{
	struct demand d = {.exit_code = true};
	uint64_t want;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	let_go(&r.live.b, 0); /* as many as it can, until the end */
	ask(&r, &(struct demand){0});
	exits(&r.live.a, 100);
	take(&r);
	ask(&r, &d); /* no VM is selected: no code is counted */
	exits(&r.live.a, 100);
	take(&r);
	assert_int_equal(r.told.code_a + r.told.exits_a, 0);
	assert_int_equal(r.told.taken, 0);
	d.vm = r.live.a.inv->id;
	ask(&r, &d);
	want = exits(&r.live.a, 1000);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_int_equal(r.told.exits_a, want);
	want += exits(&r.live.a, 500);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_int_equal(r.told.taken, want);
	assert_true(runs(&r.live.b) > 0);
	assert_int_equal(r.told.code_b + r.told.code_others, 0);
	assert_int_equal(perf_rings_cpus(r.rings), 0); /* no ring takes those of all */
	teardown(&r);
}

static void it_follows_the_selection(void **state)
{
	struct demand d = {.exit_code = true};
	uint64_t want, before;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	d.vm = r.live.a.inv->id;
	ask(&r, &d);
	exits(&r.live.b, 100);
	take(&r);
	d.vm = r.live.b.inv->id;
	ask(&r, &d);
	want = exits(&r.live.b, 200);
	exits(&r.live.a, 100);
	take(&r);
	assert_int_equal(r.told.code_b, want);
	assert_int_equal(r.told.code_a + r.told.code_others, 0);
	/* Programs do not count, or nobody asks: what came before is told, and nothing more. */
	want += exits(&r.live.b, 50);
	kvm_beside_follow(r.beside, false);
	assert_int_equal(r.told.code_b, want);
	exits(&r.live.b, 100);
	take(&r);
	assert_int_equal(r.told.code_b, want);
	kvm_beside_follow(r.beside, true);
	before = exits(&r.live.b, 70);
	take(&r);
	assert_int_equal(r.told.code_b, want + before);
	teardown(&r);
}

static void several_vms(void **state)
{
	struct demand d = {.exit_code = true}, one;
	uint64_t a, b;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	assert_true(demand_add_code(&d, r.live.b.inv->id));
	one = d;
	assert_true(demand_add_code(&d, r.live.a.inv->id));
	ask(&r, &d);
	a = exits(&r.live.a, 300);
	b = exits(&r.live.b, 200);
	take(&r);
	assert_int_equal(r.told.code_a, a);
	assert_int_equal(r.told.code_b, b);
	ask(&r, &one);
	exits(&r.live.a, 100);
	b += exits(&r.live.b, 100);
	take(&r);
	assert_int_equal(r.told.code_a, a);
	assert_int_equal(r.told.code_b, b);
	assert_int_equal(perf_rings_cpus(r.rings), 0);
	teardown(&r);
}

/* Who wants more of them than there is room for has to ask for all. */
static void as_many_as_there_is_room_for(void **state)
{
	struct demand d = {.exit_code = true};

	(void)state;
	for (unsigned i = 1; i <= DEMAND_VMS; i++) {
		assert_false(demand_code_of(&d, i));
		assert_true(demand_add_code(&d, i));
		assert_true(demand_add_code(&d, 1)); /* it is in it */
		assert_true(demand_code_of(&d, i));
	}
	assert_false(demand_add_code(&d, DEMAND_VMS + 1));
	assert_false(demand_code_of(&d, DEMAND_VMS + 1));
	d.samples_all = true;
	assert_true(demand_code_of(&d, DEMAND_VMS + 1));
	d.exit_code = false;
	assert_false(demand_code_of(&d, 1));
}

/*
 * Where all VMs' code is asked for each exit of the host comes, and from one source only. Whoever
 * else runs guests here may fill the rings: some may be lost.
 */
static void of_all_vms(void **state)
{
	struct demand d = {.exit_code = true, .samples_all = true};
	uint64_t a = 0, b = 0;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	d.vm = r.live.a.inv->id;
	ask(&r, &d);
	for (int i = 0; i < 100 && !(r.told.code_a && r.told.code_b); i++) {
		a += exits(&r.live.a, 30);
		b += exits(&r.live.b, 20);
		take(&r);
	}
	assert_in_range(r.told.code_a, 1, a);
	assert_in_range(r.told.code_b, 1, b);
	assert_int_equal(r.told.exits_a, r.told.code_a);
	assert_true(perf_rings_cpus(r.rings) > 0);
	teardown(&r);
}

/* Places where guests exit, here each one, are not counted as code, nor do they count it twice. */
static void places_beside_code(void **state)
{
	struct demand d = {.exit_code = true, .exit_where = true, .exit_places = true};
	uint64_t want;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, false);
	kvm_beside_pace(r.beside, 0, NS_PER_S);
	d.vm = r.live.a.inv->id;
	ask(&r, &d);
	assert_true(perf_rings_cpus(r.rings) > 0);
	want = exits(&r.live.a, 300);
	exits(&r.live.b, 200);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_int_equal(r.told.code_b + r.told.code_others, 0);
	teardown(&r);
}

/* Far more than a small ring holds, between two looks: what is not told is counted as lost. */
#define TOO_MANY 5000

static void what_its_rings_lose_is_told(void **state)
{
	struct demand d = {.exit_code = true};
	uint64_t want, told, lost;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, true);
	d.vm = r.live.a.inv->id;
	ask(&r, &d);
	want = exits(&r.live.a, 100);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_int_equal(r.told.lost_calls, 0);
	/* Although no event that has room brings a LOST record behind it. */
	want += exits(&r.live.a, TOO_MANY);
	take(&r);
	assert_in_range(r.told.lost, 1, want);
	assert_int_equal(r.told.code_a + r.told.lost, want);
	/* This one brings it, and that counts nothing twice. */
	told = r.told.code_a;
	lost = r.told.lost;
	want = exits(&r.live.a, 10);
	take(&r);
	assert_int_equal(r.told.code_a, told + want);
	assert_int_equal(r.told.lost, lost);
	/* Of a ring that is closed. */
	want += told + exits(&r.live.a, TOO_MANY);
	d.vm = r.live.b.inv->id;
	ask(&r, &d);
	assert_true(r.told.lost > lost);
	assert_int_equal(r.told.code_a + r.told.lost - lost, want);
	assert_int_equal(r.told.code_b + r.told.code_others, 0);
	teardown(&r);
}

/* Of all VMs: whose is not known, and whoever else runs guests here loses some too. */
static void what_the_rings_of_all_lose_is_told(void **state)
{
	struct demand d = {.exit_code = true, .samples_all = true};
	uint64_t want;
	struct run r;

	(void)state;
	NEEDS_GUESTS;
	setup(&r, true);
	/* Each of them, but for the places alone, which are as good without some. */
	kvm_beside_pace(r.beside, 0, NS_PER_S);
	ask(&r, &(struct demand){.exit_where = true, .exit_places = true});
	exits(&r.live.a, TOO_MANY);
	take(&r);
	assert_int_equal(r.told.lost_calls, 0);
	ask(&r, &d);
	r.told.code_a = 0;
	want = exits(&r.live.a, TOO_MANY);
	take(&r);
	assert_true(r.told.lost > 0);
	assert_true(r.told.code_a < want);
	assert_true(r.told.code_a + r.told.lost >= want);
	teardown(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_vm_and_no_other),
		cmocka_unit_test(it_follows_the_selection),
		cmocka_unit_test(several_vms),
		cmocka_unit_test(as_many_as_there_is_room_for),
		cmocka_unit_test(of_all_vms),
		cmocka_unit_test(places_beside_code),
		cmocka_unit_test(what_its_rings_lose_is_told),
		cmocka_unit_test(what_the_rings_of_all_lose_is_told),
	};

	mount_tracefs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
