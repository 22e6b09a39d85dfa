// SPDX-License-Identifier: GPL-2.0-only
/* Who had the CPU: from readings to rows that add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hist.h"
#include "model_fixture.h"

static struct fixture two_vms(void)
{
	struct fixture f = fixture_new(0, 0);

	fixture_vm(&f, "web01", 100, 2);
	fixture_vm(&f, "db01", 200, 1);
	model_demand(f.m, &(struct demand){.waits_all = true});
	commit_drop(&f, 1 * SEC);
	return f;
}

static void waits(struct fixture *f, pid_t tid, const struct wait_part *p, size_t n, int64_t missed)
{
	const struct wait_reading r = {
		.thread = inventory_thread(f->inv, tid),
		.time = 2 * SEC,
		.dt = SEC,
		.part = p,
		.n = n,
		.has_missed = missed >= 0,
		.missed_ns = missed > 0 ? (uint64_t)missed : 0,
	};

	assert_non_null(r.thread);
	f->sink->waits(f->sink->ctx, &r);
}

static const struct snap_waited *row(const struct snapshot *s, const struct snap_waits *w,
				     const char *name)
{
	for (uint32_t i = w->first; i < w->first + w->n; i++)
		if (!strcmp(s->waited[i].name, name))
			return &s->waited[i];
	return NULL;
}

static void near(struct value v, double want)
{
	assert_true(value_has(v));
	assert_float_equal(v.v, want, 1e-6);
}

static void named_and_summed(void **state)
{
	struct fixture f = two_vms();
	/* A vCPU of the other VM, a thread of its VMM, a sibling, a task, nobody, and the rest. */
	const uint32_t web01 = inventory_thread(f.inv, 100)->vm->id,
		       db01 = inventory_thread(f.inv, 200)->vm->id;
	const struct wait_part of_first[] = {
		{.vm = db01, .comm = "CPU 0/KVM", .ns = 100 * MS},
		{.vm = db01, .comm = "qemu", .ns = 50 * MS},
		{.vm = web01, .comm = "CPU 1/KVM", .ns = 80 * MS},
		{.comm = "ceph-osd", .ns = 120 * MS},
		{.comm = "", .idle = true, .ns = 30 * MS},
		{.comm = "", .other = true, .ns = 10 * MS},
	};
	const struct wait_part of_second[] = {{.comm = "ceph-osd", .ns = 200 * MS}};
	struct snapshot *s;
	const struct snap_vm *vm;
	const struct snap_waited *x;
	double share = 0;

	(void)state;
	waits(&f, 101, of_first, 6, 10 * MS);
	waits(&f, 102, of_second, 1, 0);
	s = commit(&f, 2 * SEC);
	vm = find_vm(s, "web01");
	assert_int_equal(vm->waits.n, 6);
	near(vm->waits.pct, 30); /* 600 ms of two seconds */
	x = row(s, &vm->waits, "db01");
	assert_int_equal(x->kind, WAITED_VM);
	assert_int_equal(x->by_vm, find_vm(s, "db01")->id);
	assert_int_equal(x->ns, 150 * MS);
	near(x->share, 25);
	near(x->pct, 7.5);
	assert_int_equal(row(s, &vm->waits, "web01")->by_vm, vm->id);
	near(row(s, &vm->waits, "ceph-osd")->share, 100.0 * 320 / 600);
	assert_int_equal(row(s, &vm->waits, "(idle)")->kind, WAITED_IDLE);
	assert_int_equal(row(s, &vm->waits, "other")->kind, WAITED_OTHER);
	assert_int_equal(row(s, &vm->waits, "unexplained")->ns, 10 * MS);
	/* The largest first; what is no one's stands last. */
	assert_string_equal(s->waited[vm->waits.first].name, "ceph-osd");
	assert_string_equal(s->waited[vm->waits.first + 4].name, "other");
	assert_string_equal(s->waited[vm->waits.first + 5].name, "unexplained");
	for (uint32_t i = 0; i < vm->waits.n; i++)
		share += s->waited[vm->waits.first + i].share.v;
	assert_float_equal(share, 100, 1e-9);
	/* Of one vCPU. */
	near(s->vcpus[vm->vcpu_first].waits.pct, 40);
	near(s->vcpus[vm->vcpu_first + 1].waits.pct, 20);
	assert_int_equal(s->vcpus[vm->vcpu_first + 1].waits.n, 1);
	/* The next interval begins with nothing. */
	snapshot_unref(s);
	waits(&f, 102, of_second, 1, 0);
	s = commit(&f, 3 * SEC);
	vm = find_vm(s, "web01");
	assert_int_equal(vm->waits.n, 1);
	near(vm->waits.pct, 20);
	snapshot_unref(s);
	fixture_free(&f);
}

static void bounded(void **state)
{
	struct fixture f = two_vms();
	struct wait_part p[1000];
	char name[1000][16];
	struct snapshot *s;
	const struct snap_vm *vm;
	uint64_t all = 0, sum = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		snprintf(name[i], sizeof(name[i]), "task%zu", i);
		p[i] = (struct wait_part){.comm = name[i], .ns = 1000 * (i % 100 + 1)};
		all += p[i].ns;
	}
	waits(&f, 101, p, 1000, 5);
	s = commit(&f, 2 * SEC);
	vm = find_vm(s, "web01");
	assert_int_equal(vm->waits.n, 18);
	for (uint32_t i = 0; i < vm->waits.n; i++)
		sum += s->waited[vm->waits.first + i].ns;
	assert_int_equal(sum, all + 5);
	assert_int_equal(s->waited[vm->waits.first + 16].kind, WAITED_OTHER);
	assert_int_equal(s->waited[vm->waits.first + 17].kind, WAITED_UNKNOWN);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Not asked, not yet, nothing: three different things. */
static void known_or_not(void **state)
{
	struct fixture f = two_vms();
	const struct wait_reading first = {.thread = inventory_thread(f.inv, 101), .time = SEC};
	struct wait_reading cut = {
		.time = 4 * SEC, .dt = SEC, .has_missed = true, .missed_ns = SEC, .cut = true};
	struct snapshot *s;
	const struct snap_vm *vm;

	(void)state;
	model_demand(f.m,
		     &(struct demand){.waits = true, .vm = inventory_thread(f.inv, 101)->vm->id});
	f.sink->waits(f.sink->ctx, &first);
	s = commit(&f, 2 * SEC);
	assert_int_equal(find_vm(s, "web01")->waits.pct.state, VALUE_PENDING);
	assert_int_equal(find_vm(s, "db01")->waits.pct.state, VALUE_NA);
	assert_int_equal(find_vm(s, "db01")->waits.pct.why, WHY_NOT_ASKED);
	snapshot_unref(s);
	waits(&f, 101, NULL, 0, 0);
	waits(&f, 102, NULL, 0, -1);
	s = commit(&f, 3 * SEC);
	vm = find_vm(s, "web01");
	near(vm->waits.pct, 0);
	assert_int_equal(vm->waits.pct.state, VALUE_PARTIAL); /* nobody knows what was missed */
	assert_int_equal(vm->waits.n, 0);
	assert_int_equal(s->vcpus[vm->vcpu_first].waits.pct.state, VALUE_KNOWN);
	assert_int_equal(vm->waits.wake_p99.state, VALUE_PENDING);
	snapshot_unref(s);
	/* More was missed than there was time for: at least that much. */
	cut.thread = inventory_thread(f.inv, 101);
	f.sink->waits(f.sink->ctx, &cut);
	s = commit(&f, 4 * SEC);
	vm = find_vm(s, "web01");
	near(vm->waits.pct, 100);
	assert_int_equal(vm->waits.pct.state, VALUE_PARTIAL);
	assert_int_equal(s->vcpus[vm->vcpu_first].waits.pct.state, VALUE_PARTIAL);
	snapshot_unref(s);
	fixture_free(&f);
}

static void from_wake_up_to_running(void **state)
{
	struct fixture f = two_vms();
	struct hist h = {0};
	struct wait_reading r = {.thread = inventory_thread(f.inv, 101),
				 .time = 2 * SEC,
				 .dt = SEC,
				 .has_missed = true,
				 .wakeups = 100,
				 .wake = &h};
	struct snapshot *s;

	(void)state;
	assert_int_equal(hist_add(&h, 10 * US, 98), 0);
	assert_int_equal(hist_add(&h, 2 * MS, 2), 0);
	f.sink->waits(f.sink->ctx, &r);
	s = commit(&f, 2 * SEC);
	near(find_vm(s, "web01")->waits.wakeups, 100);
	assert_float_equal(find_vm(s, "web01")->waits.wake_p50.v, 10e3, 320);
	assert_float_equal(find_vm(s, "web01")->waits.wake_p99.v, 2e6, 64e3);
	snapshot_unref(s);
	hist_free(&h);
	fixture_free(&f);
}

/* A VM that ended had the CPU until then. */
static void ended(void **state)
{
	struct fixture f = two_vms();
	const struct wait_part p = {
		.vm = inventory_thread(f.inv, 201)->vm->id, .comm = "CPU 0/KVM", .ns = MS};
	struct snapshot *s;

	(void)state;
	inventory_vm_gone(f.inv, inventory_vm(f.inv, p.vm));
	waits(&f, 101, &p, 1, 0);
	s = commit(&f, 2 * SEC);
	assert_non_null(row(s, &find_vm(s, "web01")->waits, "db01"));
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_and_summed),
		cmocka_unit_test(bounded),
		cmocka_unit_test(known_or_not),
		cmocka_unit_test(ended),
		cmocka_unit_test(from_wake_up_to_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
