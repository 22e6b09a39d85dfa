// SPDX-License-Identifier: GPL-2.0-only
/* Slow exits: which ones, what is told of them, how many are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "exits_slow.h"
#include "model_fixture.h"

#define SVM_MSR 0x7c
#define SVM_IO 0x7b
#define SVM_HLT 0x78
#define USER_IO 2
#define RIP 0xffffffff81067c14u

static void demand_slow(struct fixture *f, uint64_t ns, bool past, uint32_t vm)
{
	const struct demand d = {.slow_ns = ns, .slow_past = past, .vm = vm};

	model_demand(f->m, &d);
}

/* An exit of this length. */
static void exit_of(struct fixture *f, int64_t t, int64_t ns, int tid, uint64_t reason)
{
	feed(f, (struct sample){.time = t,
				.tid = tid,
				.vcpu_id = tid - 101,
				.type = EV_EXIT,
				.key = reason,
				.aux = RIP,
				.isa = ISA_SVM});
	ev_entry(f, t + ns, tid, tid - 101);
}

/* kvm_entry fires on this KVM; the first interval is over. */
static struct fixture started(const char *name, int n, struct inv_vm **vm)
{
	struct fixture f = fixture_new(8, 64);

	*vm = fixture_vm(&f, name, 100, n);
	demand_slow(&f, 500 * US, false, 0);
	ev_entry(&f, 1, 101, 0);
	commit_drop(&f, SEC);
	return f;
}

static void longer_ones_have_a_line(void **state)
{
	struct inv_vm *vm;
	struct fixture f = started("web01", 2, &vm);
	const struct snap_slow *x;
	struct snapshot *s;

	(void)state;
	exit_of(&f, SEC + MS, 499 * US, 101, SVM_MSR);
	exit_of(&f, SEC + 2 * MS, 500 * US, 101, SVM_MSR); /* not longer */
	exit_of(&f, SEC + 3 * MS, 501 * US, 102, SVM_MSR);
	exit_of(&f, SEC + 10 * MS, 900 * MS, 101, SVM_HLT); /* waiting, not handling */
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->slow_ns, 500 * US);
	assert_int_equal(s->nslow, 1);
	x = &s->slow[0];
	assert_string_equal(s->vms[x->vm].name, "web01");
	assert_int_equal(s->vcpus[x->vcpu].kvm_id, 1);
	assert_int_equal(x->tid, 102);
	assert_true(x->fresh);
	assert_string_equal(x->exit, "msr");
	assert_int_equal(x->ns, 501 * US);
	assert_int_equal(x->end, SEC + 3 * MS + 501 * US);
	assert_string_equal(x->rip, "0xffffffff81067c14");
	assert_string_equal(x->user, "");
	assert_false(value_has(x->user_ns));
	assert_int_equal(find_vm(s, "web01")->slow.count, 1);
	snapshot_unref(s);
	fixture_free(&f);
}

static void what_the_vmm_did_is_told(void **state)
{
	struct inv_vm *vm;
	struct fixture f = started("web01", 1, &vm);
	struct snapshot *s;

	(void)state;
	/* A user exit of the exit before is none of this one's. */
	ev_exit(&f, SEC + MS, 101, 0, SVM_IO);
	ev(&f, SEC + MS + 10 * US, 101, EV_USEREXIT, USER_IO, DIR_NONE);
	ev_entry(&f, SEC + MS + 20 * US, 101, 0);
	ev_exit(&f, SEC + 2 * MS, 101, 0, SVM_MSR);
	ev_entry(&f, SEC + 3 * MS, 101, 0);
	ev_exit(&f, SEC + 4 * MS, 101, 0, SVM_IO);
	ev(&f, SEC + 4 * MS + 10 * US, 101, EV_USEREXIT, USER_IO, DIR_NONE);
	ev_entry(&f, SEC + 6 * MS, 101, 0);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nslow, 2);
	assert_string_equal(s->slow[0].exit, "msr");
	assert_string_equal(s->slow[0].user, "");
	assert_string_equal(s->slow[1].exit, "io");
	assert_string_equal(s->slow[1].user, "KVM_EXIT_IO");
	assert_int_equal((int64_t)s->slow[1].user_ns.v, 2 * MS - 10 * US);
	snapshot_unref(s);
	fixture_free(&f);
}

static void nobody_asks_nothing_is_kept(void **state)
{
	struct inv_vm *vm;
	struct fixture f = started("web01", 1, &vm);
	struct snapshot *s;

	(void)state;
	exit_of(&f, SEC + MS, MS, 101, SVM_MSR);
	demand_slow(&f, 0, false, 0);
	commit_drop(&f, 2 * SEC);
	exit_of(&f, 2 * SEC + MS, MS, 101, SVM_MSR);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->slow_ns, 0);
	assert_int_equal(s->nslow, 0);
	snapshot_unref(s);
	demand_slow(&f, 500 * US, true, 0);
	s = commit(&f, 4 * SEC);
	assert_int_equal(s->nslow, 0);
	assert_int_equal(find_vm(s, "web01")->slow.total, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Each is of one interval; older lines are for screens. */
static void past_lines_are_for_who_asks(void **state)
{
	struct inv_vm *vm;
	struct fixture f = started("web01", 1, &vm);
	struct snapshot *s;

	(void)state;
	exit_of(&f, SEC + MS, MS, 101, SVM_MSR);
	commit_drop(&f, 2 * SEC);
	exit_of(&f, 2 * SEC + MS, 2 * MS, 101, SVM_MSR);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->nslow, 1);
	assert_int_equal(s->slow[0].ns, 2 * MS);
	assert_int_equal(find_vm(s, "web01")->slow.count, 1);
	assert_int_equal(find_vm(s, "web01")->slow.total, 2);
	snapshot_unref(s);
	demand_slow(&f, 500 * US, true, vm->id);
	s = commit(&f, 4 * SEC);
	assert_int_equal(s->nslow, 2);
	assert_false(s->slow[0].fresh || s->slow[1].fresh);
	assert_int_equal(s->slow[0].ns, MS);
	assert_int_equal(s->slow[1].ns, 2 * MS);
	assert_int_equal(find_vm(s, "web01")->slow.count, 0);
	snapshot_unref(s);
	model_reset(f.m);
	s = commit(&f, 5 * SEC);
	assert_int_equal(find_vm(s, "web01")->slow.total, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

static void what_finds_no_room_is_counted(void **state)
{
	const unsigned n = EX_SLOW_LINES * 3 + 5;
	struct inv_vm *vm;
	struct fixture f = started("web01", 1, &vm);
	struct snapshot *s;

	(void)state;
	for (unsigned i = 0; i < n; i++)
		exit_of(&f, SEC + (i + 1) * 2 * MS, MS + i, 101, SVM_MSR);
	s = commit(&f, 2 * SEC);
	assert_int_equal(find_vm(s, "web01")->slow.count, n);
	assert_int_equal(s->nslow, EX_SLOW_LINES);
	for (unsigned i = 0; i < EX_SLOW_LINES; i++) {
		assert_true(s->slow[i].fresh);
		assert_int_equal(s->slow[i].ns, MS + n - EX_SLOW_LINES + i);
	}
	snapshot_unref(s);
	fixture_free(&f);
}

/* Events were lost in it: who knows when it ended. */
static void a_loss_makes_none(void **state)
{
	struct inv_vm *vm;
	struct fixture f = started("web01", 1, &vm);
	const struct loss l = {.from = SEC + 2 * MS, .to = SEC + 3 * MS, .n = 1};
	struct snapshot *s;

	(void)state;
	ev_exit(&f, SEC + MS, 101, 0, SVM_MSR);
	f.sink->loss(f.sink->ctx, &l);
	ev_entry(&f, SEC + 5 * MS, 101, 0);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nslow, 0);
	assert_int_equal(find_vm(s, "web01")->slow.count, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

/* A source that counts in the kernel: how many there were comes apart from their lines. */
static void counts_and_lines_of_the_kernel(void **state)
{
	struct inv_vm *vm;
	struct fixture f = started("web01", 2, &vm);
	const struct aggregate counted = {.tid = 102,
					  .vcpu_id = 1,
					  .kind = KIND_VMEXIT,
					  .isa = ISA_SVM,
					  .key = SVM_IO,
					  .count = 9};
	const struct thread_open o = {.tid = 102, .vcpu_id = 1, .slow = 7};
	const struct slow_exit x = {
		.begin = SEC + MS,
		.end = SEC + 3 * MS,
		.key = SVM_IO,
		.rip = RIP,
		.user_begin = SEC + 2 * MS,
		.user_key = USER_IO,
		.isa = ISA_SVM,
		.tid = 102,
		.vcpu_id = 1,
	};
	struct snapshot *s;

	(void)state;
	f.sink->aggregates(f.sink->ctx, &counted, 1);
	f.sink->open(f.sink->ctx, &o);
	f.sink->slow(f.sink->ctx, &x, 1);
	s = commit(&f, 2 * SEC);
	assert_int_equal(find_vm(s, "web01")->slow.count, 7);
	assert_int_equal(s->nslow, 1);
	assert_int_equal(s->vcpus[s->slow[0].vcpu].kvm_id, 1);
	assert_int_equal(s->slow[0].ns, 2 * MS);
	assert_string_equal(s->slow[0].user, "KVM_EXIT_IO");
	assert_int_equal((int64_t)s->slow[0].user_ns.v, MS);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Nobody knew the thread when its exit was slow. */
static void lines_go_to_the_vm_that_it_was(void **state)
{
	struct inv_vm *vm, *p;
	struct fixture f = started("web01", 1, &vm);
	struct snapshot *s;

	(void)state;
	exit_of(&f, SEC + MS, MS, 501, SVM_MSR);
	p = inventory_thread(f.inv, 501)->vm;
	assert_non_null(inventory_identify(f.inv, p, 500, 7, "k2"));
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nslow, 1);
	assert_int_equal(s->vms[s->slow[0].vm].pid, 500);
	assert_int_equal(s->vms[s->slow[0].vm].slow.count, 1);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Where no kvm_exit fires: from the user exit to the moment when the VMM is done with it. */
static void without_exits_the_vmms_part(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	demand_slow(&f, 500 * US, false, 0);
	commit_drop(&f, SEC);
	ev(&f, SEC + MS, 101, EV_USEREXIT, USER_IO, DIR_NONE);
	ev(&f, SEC + 3 * MS, 101, EV_FPU, 1, DIR_NONE);
	ev(&f, SEC + 3 * MS + 1, 101, EV_PIO, 0x3f8, DIR_READ);
	ev(&f, SEC + 9 * MS, 101, EV_FPU, 0, DIR_NONE); /* the guest's own time is none of it */
	ev(&f, SEC + 9 * MS + 1, 101, EV_USEREXIT, USER_IO, DIR_NONE);
	ev(&f, SEC + 9 * MS + 500 * US + 1, 101, EV_FPU, 1, DIR_NONE); /* not longer */
	ev(&f, SEC + 10 * MS, 101, EV_USEREXIT, 5 /* HLT */, DIR_NONE);
	ev(&f, SEC + 90 * MS, 101, EV_FPU, 1, DIR_NONE);
	ev(&f, SEC + 99 * MS, 101, EV_FPU, 1, DIR_NONE); /* nothing began it */
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nslow, 1);
	assert_int_equal(find_vm(s, "web01")->slow.count, 1);
	assert_int_equal(s->slow[0].ns, 2 * MS);
	assert_string_equal(s->slow[0].exit, "KVM_EXIT_IO");
	assert_string_equal(s->slow[0].user, "KVM_EXIT_IO");
	assert_int_equal((int64_t)s->slow[0].user_ns.v, 2 * MS);
	assert_string_equal(s->slow[0].rip, "");
	assert_int_equal(s->slow[0].tid, 101);
	snapshot_unref(s);
	fixture_free(&f);
}

/* The thread's vCPU becomes known in the middle of what is slow. */
static void what_is_open_goes_to_the_vcpu(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = inventory_add_vm(f.inv, 100, 1, "k");
	struct inv_thread *t = inventory_add_thread(f.inv, vm, 100, 101, 1, ROLE_VMM);
	struct snapshot *s;

	(void)state;
	demand_slow(&f, 500 * US, false, 0);
	commit_drop(&f, SEC);
	ev(&f, SEC + MS, 101, EV_USEREXIT, USER_IO, DIR_NONE);
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 0), t);
	ev(&f, SEC + 3 * MS, 101, EV_FPU, 1, DIR_NONE);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nslow, 1);
	assert_int_equal(s->slow[0].vcpu, 0);
	assert_int_equal(s->slow[0].ns, 2 * MS);
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longer_ones_have_a_line),
		cmocka_unit_test(what_the_vmm_did_is_told),
		cmocka_unit_test(nobody_asks_nothing_is_kept),
		cmocka_unit_test(past_lines_are_for_who_asks),
		cmocka_unit_test(what_finds_no_room_is_counted),
		cmocka_unit_test(a_loss_makes_none),
		cmocka_unit_test(counts_and_lines_of_the_kernel),
		cmocka_unit_test(lines_go_to_the_vm_that_it_was),
		cmocka_unit_test(without_exits_the_vmms_part),
		cmocka_unit_test(what_is_open_goes_to_the_vcpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
