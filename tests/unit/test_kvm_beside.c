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

#include "clock.h"
#include "kvm_beside.h"
#include "live_guests.h"
#include "sysroot.h"

#define MARGIN (5 * NS_PER_MS)

struct told {
	uint64_t code_a, code_b, code_others; /* of guests a and b; of whoever else is here */
	uint64_t exits_a;
};

struct run {
	struct guest a, b;
	struct told told;
	struct sink sink;
	struct collector_config config;
	struct collector_env env;
	struct kvm_format *format;
	struct perf_rings *rings;
	struct kvm_beside *beside;
};

static void on_code(void *ctx, const struct sample *s, size_t n)
{
	struct run *r = ctx;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s[i].type, EV_EXIT);
		r->told.code_a += s[i].tid == r->a.tid;
		r->told.code_b += s[i].tid == r->b.tid;
		r->told.code_others += s[i].tid != r->a.tid && s[i].tid != r->b.tid;
	}
}

static void on_exits(void *ctx, const struct sample *s, size_t n)
{
	struct run *r = ctx;

	for (size_t i = 0; i < n; i++)
		r->told.exits_a += s[i].tid == r->a.tid;
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
	ssize_t n =
		sysroot_read(r->env.root, "sys/kernel/tracing/events/kvm/kvm_userspace_exit/format",
			     text, sizeof(text));

	assert_true(n > 0);
	r->format = kvm_format_new();
	assert_true(kvm_format_load(r->format, event_named("kvm_exit"), text, (size_t)n) > 0);
}

static void setup(struct run *r)
{
	memset(r, 0, sizeof(*r));
	r->sink = (struct sink){.ctx = r, .code = on_code, .exits = on_exits, .ips_ctx = r};
	r->config = (struct collector_config){.delay_s = 1, .sample_hz = 997};
	r->env = (struct collector_env){
		.sink = &r->sink, .config = &r->config, .inv = inventory_new()};
	assert_non_null(r->env.inv);
	assert_int_equal(sysroot_open(NULL, &r->env.root), 0);
	load_format(r);
	assert_int_equal(perf_rings_new(0, 1, false, &r->rings), 0);
	assert_int_equal(kvm_beside_new(&r->env, r->format, r->rings, &r->beside), 0);
	start_guest(r->env.inv, &r->a);
	start_guest(r->env.inv, &r->b);
}

static void teardown(struct run *r)
{
	kvm_beside_follow(r->beside, false);
	kvm_beside_free(r->beside);
	perf_rings_free(r->rings);
	kvm_format_free(r->format);
	inventory_free(r->env.inv);
	sysroot_close(r->env.root);
}

static void ask(struct run *r, const struct demand *d)
{
	kvm_beside_demand(r->beside, d);
	kvm_beside_follow(r->beside, true);
}

/* All that was done before this call is handed over in it. */
static void take(struct run *r)
{
	usleep(2 * MARGIN / 1000);
	kvm_beside_drain(r->beside, clock_mono_ns() - MARGIN);
}

/* ---- tests ---- */

static void one_vm_and_no_other(void **state)
{
	struct demand d = {.exit_code = true};
	uint64_t want;
	struct run r;

	(void)state;
	if (!able())
		skip();
	setup(&r);
	let_go(&r.b, 0); /* as many as it can, until the end */
	ask(&r, &(struct demand){0});
	exits(&r.a, 100);
	take(&r);
	ask(&r, &d); /* no VM is selected: no code is counted */
	exits(&r.a, 100);
	take(&r);
	assert_int_equal(r.told.code_a + r.told.exits_a, 0);
	d.vm = r.a.inv->id;
	ask(&r, &d);
	want = exits(&r.a, 1000);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_int_equal(r.told.exits_a, want);
	want += exits(&r.a, 500);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_true(runs(&r.b) > 0);
	assert_int_equal(r.told.code_b + r.told.code_others, 0);
	assert_int_equal(perf_rings_cpus(r.rings), 0); /* no ring takes those of all */
	end_guest(&r.a, false);
	end_guest(&r.b, true);
	teardown(&r);
}

static void it_follows_the_selection(void **state)
{
	struct demand d = {.exit_code = true};
	uint64_t want, before;
	struct run r;

	(void)state;
	if (!able())
		skip();
	setup(&r);
	d.vm = r.a.inv->id;
	ask(&r, &d);
	exits(&r.b, 100);
	take(&r);
	d.vm = r.b.inv->id;
	ask(&r, &d);
	want = exits(&r.b, 200);
	exits(&r.a, 100);
	take(&r);
	assert_int_equal(r.told.code_b, want);
	assert_int_equal(r.told.code_a + r.told.code_others, 0);
	/* Programs do not count, or nobody asks: what came before is told, and nothing more. */
	want += exits(&r.b, 50);
	kvm_beside_follow(r.beside, false);
	assert_int_equal(r.told.code_b, want);
	exits(&r.b, 100);
	take(&r);
	assert_int_equal(r.told.code_b, want);
	kvm_beside_follow(r.beside, true);
	before = exits(&r.b, 70);
	take(&r);
	assert_int_equal(r.told.code_b, want + before);
	end_guest(&r.a, false);
	end_guest(&r.b, false);
	teardown(&r);
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
	if (!able())
		skip();
	setup(&r);
	d.vm = r.a.inv->id;
	ask(&r, &d);
	for (int i = 0; i < 100 && !(r.told.code_a && r.told.code_b); i++) {
		a += exits(&r.a, 30);
		b += exits(&r.b, 20);
		take(&r);
	}
	assert_in_range(r.told.code_a, 1, a);
	assert_in_range(r.told.code_b, 1, b);
	assert_int_equal(r.told.exits_a, r.told.code_a);
	assert_true(perf_rings_cpus(r.rings) > 0);
	end_guest(&r.a, false);
	end_guest(&r.b, false);
	teardown(&r);
}

/* Places where guests exit, here each one, are not counted as code, nor do they count it twice. */
static void places_beside_code(void **state)
{
	struct demand d = {.exit_code = true, .samples = true, .exit_places = true};
	uint64_t want;
	struct run r;

	(void)state;
	if (!able())
		skip();
	setup(&r);
	kvm_beside_pace(r.beside, 0, NS_PER_S);
	d.vm = r.a.inv->id;
	ask(&r, &d);
	assert_true(perf_rings_cpus(r.rings) > 0);
	want = exits(&r.a, 300);
	exits(&r.b, 200);
	take(&r);
	assert_int_equal(r.told.code_a, want);
	assert_int_equal(r.told.code_b + r.told.code_others, 0);
	end_guest(&r.a, false);
	end_guest(&r.b, false);
	teardown(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_vm_and_no_other),
		cmocka_unit_test(it_follows_the_selection),
		cmocka_unit_test(of_all_vms),
		cmocka_unit_test(places_beside_code),
	};

	mount_tracefs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
