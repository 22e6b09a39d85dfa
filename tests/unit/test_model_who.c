// SPDX-License-Identifier: GPL-2.0-only
/* Whose an event is: threads and vCPUs that change, VMs that come, go and are found late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "model_fixture.h"

#define IO 0x7b
#define MSR 0x7c

static void near(double a, double b)
{
	if (a < b - 1e-6 || a > b + 1e-6)
		fail_msg("%g is not %g", a, b);
}

static void an_exit(struct fixture *f, int64_t t, int tid, int vcpu, int64_t ns)
{
	ev_exit(f, t, tid, vcpu, MSR);
	ev_entry(f, t + ns, tid, vcpu);
}

static uint64_t count_of(const struct snapshot *s, const char *vm, int vcpu)
{
	const struct snap_exit *e = find_row(s, vm, vcpu, KIND_VMEXIT, "msr");

	return e ? e->now.count : 0;
}

static struct fixture watched(void)
{
	struct fixture f = fixture_new(8, 64);
	struct demand d = {.exits_all_vcpus = true};

	model_demand(f.m, &d);
	return f;
}

/* vCPU 1 goes from thread 102 to thread 103 in the middle of an exit. */
static void a_vcpu_changes_threads(void **state)
{
	struct fixture f = watched();
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 1000, 102, 1, 10);
	ev_exit(&f, 1 * SEC + 2000, 102, 1, MSR);
	inventory_add_thread(f.inv, inventory_first(f.inv), 100, 103, 1, ROLE_VMM);
	ev_entry(&f, 1 * SEC + 2500, 103, 1);
	ev(&f, 1 * SEC + 2600, 103, EV_PIO, 0x60, DIR_READ); /* has no vCPU number */
	s = commit(&f, 2 * SEC);
	assert_int_equal(count_of(s, "web01", 1), 2);
	assert_int_equal(find_row(s, "web01", 1, KIND_VMEXIT, "msr")->now.time_ns, 510);
	assert_int_equal(find_row(s, "web01", 1, KIND_IOPORT, "0x60:PIN")->now.count, 1);
	assert_int_equal(s->vcpus[1].tid, 103);
	assert_int_equal(s->vcpus[0].tid, 101);
	snapshot_unref(s);
	fixture_free(&f);
}

/* The other thread has events without a vCPU's number before its entry tells whose they are. */
static void a_vcpu_changes_threads_in_a_read(void **state)
{
	struct fixture f = watched();
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	commit_drop(&f, 1 * SEC);
	ev_exit(&f, 1 * SEC + 100 * MS, 101, 0, MSR);
	inventory_add_thread(f.inv, inventory_first(f.inv), 100, 103, 1, ROLE_VMM);
	ev(&f, 1 * SEC + 200 * MS, 103, EV_MMIO, 0xd0000, DIR_READ);
	ev_entry(&f, 1 * SEC + 600 * MS, 103, 0);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nvcpus, 1);
	assert_int_equal(find_row(s, "web01", 0, KIND_VMEXIT, "msr")->now.time_ns, 500 * MS);
	assert_int_equal(find_row(s, "web01", 0, KIND_MMIO, "0xd0000:R")->now.count, 1);
	assert_true(s->vcpus[0].ex.pct.v > 49.9 && s->vcpus[0].ex.pct.v < 50.1);
	/* The thread that it left is no second vCPU. */
	assert_true(s->vms[0].ex.pct.v > 49.9 && s->vms[0].ex.pct.v < 50.1);
	snapshot_unref(s);
	fixture_free(&f);
}

static void one_thread_runs_two_vcpus(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm = inventory_add_vm(f.inv, 100, 1, "k");
	struct inv_thread *t = inventory_add_thread(f.inv, vm, 100, 101, 1, ROLE_VCPU);
	struct snapshot *s;

	(void)state;
	inventory_set(&vm->name, "web01");
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 0), t);
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 1), t);
	commit_drop(&f, 1 * SEC);
	/* It runs one while the other's exit stays open. */
	ev_entry(&f, 1 * SEC + 100, 101, 0);
	ev_exit(&f, 1 * SEC + 200, 101, 0, MSR);
	ev_entry(&f, 1 * SEC + 300, 101, 1);
	ev_exit(&f, 1 * SEC + 310, 101, 1, MSR);
	ev_entry(&f, 1 * SEC + 600, 101, 0);
	ev_exit(&f, 1 * SEC + 610, 101, 0, MSR);
	ev_entry(&f, 1 * SEC + 710, 101, 1);
	s = commit(&f, 2 * SEC);
	assert_int_equal(count_of(s, "web01", 0), 2);
	assert_int_equal(count_of(s, "web01", 1), 1);
	assert_int_equal(find_row(s, "web01", 0, KIND_VMEXIT, "msr")->now.time_ns, 400);
	assert_int_equal(find_row(s, "web01", 1, KIND_VMEXIT, "msr")->now.time_ns, 400);
	assert_int_equal(s->vcpus[0].use.cpu.state, VALUE_NA); /* whose CPU time it was … */
	assert_int_equal(s->vcpus[0].use.cpu.why, WHY_SHARED); /* … cannot be said */
	snapshot_unref(s);
	fixture_free(&f);
}

static void two_vms_in_one_process(void **state)
{
	struct fixture f = watched();
	struct snapshot *s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct inv_vm *vm = inventory_add_vm(f.inv, 100, 1, i ? "100-9" : "100-4");
		struct inv_thread *t = inventory_add_thread(f.inv, vm, 100, 101 + i, 1, ROLE_VCPU);

		inventory_set(&vm->name, i ? "second" : "first");
		inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 0), t);
	}
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 100, 101, 0, 10);
	an_exit(&f, 1 * SEC + 200, 102, 0, 10);
	an_exit(&f, 1 * SEC + 300, 102, 0, 10);
	s = commit(&f, 2 * SEC);
	assert_int_equal(count_of(s, "first", 0), 1);
	assert_int_equal(count_of(s, "second", 0), 2);
	snapshot_unref(s);
	fixture_free(&f);
}

/* The inventory believed in another vCPU: the event is right. */
static void the_event_knows_better(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 100, 101, 6, 10);
	s = commit(&f, 2 * SEC);
	assert_int_equal(count_of(s, "web01", 6), 1);
	assert_int_equal(count_of(s, "web01", 0), 0);
	assert_ptr_equal(inventory_vcpu(vm, 6)->thread, inventory_thread(f.inv, 101));
	snapshot_unref(s);
	fixture_free(&f);
}

/* Killed in mid-interval: what it did is in the next snapshot, marked, and not in the one after. */
static void a_vm_ends_in_mid_interval(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 2);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "db02", 200, 1);
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 100, 101, 0, 10);
	ev_exit(&f, 1 * SEC + 200, 102, 1, MSR);
	inventory_vm_gone(f.inv, vm);
	an_exit(&f, 1 * SEC + 300, 201, 0, 10);
	s = commit(&f, 2 * SEC);
	inventory_sweep(f.inv);
	assert_int_equal(s->nvms, 2);
	assert_int_equal(find_vm(s, "web01")->quality, SNAP_QUALITY_GONE);
	assert_int_equal(count_of(s, "web01", -1), 2);
	assert_int_equal(count_of(s, "db02", -1), 1);
	assert_int_equal(s->kinds[KIND_VMEXIT].count, 3);
	snapshot_unref(s);
	an_exit(&f, 2 * SEC + 300, 201, 0, 10);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->nvms, 1);
	assert_int_equal(s->kinds[KIND_VMEXIT].count, 1);
	assert_int_equal(s->kinds_total[KIND_VMEXIT].count, 4); /* the host's total stays */
	snapshot_unref(s);
	fixture_free(&f);
}

/* The tid of a dead thread comes again, in another VM: nothing of the old one is in the new one. */
static void a_tid_is_used_again(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm = fixture_vm(&f, "old", 100, 1), *heir;
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	ev_exit(&f, 1 * SEC + 100, 101, 0, MSR);
	inventory_vm_gone(f.inv, vm);
	heir = inventory_add_vm(f.inv, 101, 2, "k");
	inventory_set(&heir->name, "new");
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, heir, 0),
			     inventory_add_thread(f.inv, heir, 101, 101, 2, ROLE_VCPU));
	ev_entry(&f, 1 * SEC + 500, 101, 0); /* no pair with the old one's exit */
	an_exit(&f, 1 * SEC + 600, 101, 0, 10);
	s = commit(&f, 2 * SEC);
	inventory_sweep(f.inv);
	assert_int_equal(count_of(s, "old", -1), 1);
	assert_int_equal(find_row(s, "old", -1, KIND_VMEXIT, "msr")->now.timed, 0);
	assert_int_equal(find_row(s, "new", -1, KIND_VMEXIT, "msr")->now.time_ns, 10);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Lives for 50 ms: only its events were ever seen. */
static void a_vm_dies_before_it_is_found(void **state)
{
	struct fixture f = watched();
	struct inv_thread *t;
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 100, 4711, 0, 10);
	ev(&f, 1 * SEC + 200, 4711, EV_PIO, 0x60, DIR_READ);
	assert_int_equal(inventory_take_unknown(f.inv), 4711);
	t = inventory_thread(f.inv, 4711);
	inventory_set(&t->vm->name, "tiny:4711");
	inventory_vm_gone(f.inv, t->vm);
	s = commit(&f, 2 * SEC);
	inventory_sweep(f.inv);
	assert_int_equal(s->nvms, 1);
	assert_string_equal(s->vms[0].name, "tiny:4711 (gone)");
	assert_int_equal(count_of(s, "tiny:4711 (gone)", -1), 1);
	assert_int_equal(s->kinds[KIND_IOPORT].count, 1);
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->nvms, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Events first, then the VM is identified in place: to the last event they are its own. */
static void found_after_its_first_events(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm;
	struct inv_thread *t;
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	for (int i = 0; i < 3; i++)
		ev(&f, 1 * SEC + 100 + i, 101, EV_PIO, 0x3f8, DIR_WRITE);
	s = commit(&f, 2 * SEC); /* shown at once, provisionally */
	assert_int_equal(s->nvms, 1);
	assert_int_equal(s->vms[0].quality, SNAP_QUALITY_PROVISIONAL);
	assert_int_equal(s->kinds[KIND_IOPORT].count, 3);
	snapshot_unref(s);
	for (int i = 0; i < 4; i++)
		ev(&f, 2 * SEC + 100 + i, 101, EV_PIO, 0x3f8, DIR_WRITE);
	t = inventory_thread(f.inv, 101);
	vm = inventory_identify(f.inv, t->vm, 100, 1, "100-4");
	inventory_set(&vm->name, "web01");
	inventory_add_thread(f.inv, vm, 100, 101, 1, ROLE_VCPU);
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 2), t);
	for (int i = 0; i < 5; i++)
		ev(&f, 2 * SEC + 200 + i, 101, EV_PIO, 0x3f8, DIR_WRITE);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->nvms, 1);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x3f8:POUT")->now.count, 9);
	assert_int_equal(find_row(s, "web01", 2, KIND_IOPORT, "0x3f8:POUT")->now.count, 9);
	assert_int_equal(find_row(s, "web01", 2, KIND_IOPORT, "0x3f8:POUT")->total.count, 12);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x3f8:POUT")->total.count, 12);
	snapshot_unref(s);
	fixture_free(&f);
}

/* A new vCPU's thread of a VM that was known: the provisional VM is merged into it. */
static void found_to_be_of_a_known_vm(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1), *got;
	struct inv_thread *t;
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 50, 101, 0, 10);
	an_exit(&f, 1 * SEC + 100, 150, 1, 1000);
	an_exit(&f, 1 * SEC + 2000, 150, 1, 1000);
	ev_exit(&f, 1 * SEC + 5000, 150, 1, MSR); /* open when it is found */
	t = inventory_thread(f.inv, 150);
	assert_true(t->vm != vm);
	got = inventory_identify(f.inv, t->vm, 100, 1, "k");
	assert_ptr_equal(got, vm);
	inventory_add_thread(f.inv, vm, 100, 150, 1, ROLE_VCPU);
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 1), t);
	ev_entry(&f, 1 * SEC + 5700, 150, 1);
	s = commit(&f, 2 * SEC);
	inventory_sweep(f.inv);
	assert_int_equal(s->nvms, 1);
	assert_int_equal(count_of(s, "web01", -1), 4);
	assert_int_equal(count_of(s, "web01", 1), 3);
	assert_int_equal(find_row(s, "web01", 1, KIND_VMEXIT, "msr")->now.time_ns, 2700);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "msr")->now.time_ns, 2710);
	assert_int_equal(s->kinds[KIND_VMEXIT].count, 4);
	near(s->vcpus[1].ex.pct.v, 2700 / 1e9 * 100);
	snapshot_unref(s);
	an_exit(&f, 2 * SEC + 50, 150, 1, 10);
	s = commit(&f, 3 * SEC);
	assert_int_equal(count_of(s, "web01", 1), 1);
	assert_int_equal(find_row(s, "web01", 1, KIND_VMEXIT, "msr")->total.count, 4);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Hot-unplugged: its exit does not stay open for ever, and its number may come again. */
static void a_vcpu_is_unplugged(void **state)
{
	struct fixture f = watched();
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 2);
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	ev_exit(&f, 1 * SEC + 100, 102, 1, MSR);
	inventory_vcpu_gone(f.inv, inventory_vcpu(vm, 1));
	inventory_thread_gone(f.inv, inventory_thread(f.inv, 102));
	s = commit(&f, 2 * SEC);
	inventory_sweep(f.inv);
	assert_int_equal(s->nvcpus, 2);
	snapshot_unref(s);
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 1),
			     inventory_add_thread(f.inv, vm, 100, 105, 9, ROLE_VCPU));
	an_exit(&f, 2 * SEC + 50, 105, 1, 10);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->nvcpus, 2);
	assert_string_equal(s->vms[0].ex.open, "");
	assert_int_equal(find_row(s, "web01", 1, KIND_VMEXIT, "msr")->total.count, 1);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Its thread returns from its last exit to the VMM and ends; the VM and the vCPU live on. */
static void a_vcpus_thread_ends(void **state)
{
	struct fixture f = watched();
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	commit_drop(&f, 1 * SEC);
	ev_exit(&f, 1 * SEC + 100, 102, 1, MSR);
	s = commit(&f, 2 * SEC);
	assert_string_equal(s->vcpus[1].ex.open, "msr");
	assert_true(s->vcpus[1].ex.pct.v > 99);
	snapshot_unref(s);
	inventory_thread_gone(f.inv, inventory_thread(f.inv, 102));
	for (int t = 3; t < 6; t++) {
		s = commit(&f, t * SEC);
		assert_int_equal(s->nvcpus, 2);
		assert_string_equal(s->vcpus[1].ex.open, "");
		assert_string_equal(s->vms[0].ex.open, "");
		assert_true(s->vcpus[1].ex.pct.v < 1 && s->vms[0].ex.pct.v < 1);
		assert_int_equal(s->nfindings, 0);
		snapshot_unref(s);
		inventory_sweep(f.inv);
	}
	fixture_free(&f);
}

/* Thread 101 runs both of the VM's vCPUs in turn. */
static struct fixture shared(void)
{
	struct fixture f = watched();
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 2);

	inventory_set_thread(f.inv, inventory_vcpu(vm, 1), inventory_thread(f.inv, 101));
	commit_drop(&f, 1 * SEC);
	return f;
}

/* No event tells its vCPU: they are the VM's, and no vCPU has what may be the other's. */
static void what_tells_no_vcpu_is_the_vms(void **state)
{
	struct fixture f = shared();
	struct snapshot *s;

	(void)state;
	for (int i = 0; i < 20; i++)
		ev(&f, 1 * SEC + 1000 * i, 101, EV_PIO, 0x60, DIR_READ);
	s = commit(&f, 2 * SEC);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x60:PIN")->now.count, 20);
	for (int v = 0; v < 2; v++) {
		assert_null(find_row(s, "web01", v, KIND_IOPORT, "0x60:PIN"));
		assert_int_equal(s->vcpus[v].ex.rate.state, VALUE_NA);
		assert_int_equal(s->vcpus[v].ex.rate.why, WHY_SHARED);
	}
	assert_int_equal(s->vms[0].nvcpu, 2);
	near(s->vms[0].ex.rate.v, 20);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Entries and exits tell it, but what an access is finished after is not told. */
static void accesses_of_a_shared_thread_are_marked(void **state)
{
	struct fixture f = shared();
	const struct snap_exit *e;
	struct snapshot *s;

	(void)state;
	ev(&f, 1 * SEC + 50, 101, EV_PIO, 0x60, DIR_READ); /* nothing is known yet */
	an_exit(&f, 1 * SEC + 100, 101, 1, 10);
	ev_exit(&f, 1 * SEC + 200, 101, 0, MSR);
	ev(&f, 1 * SEC + 205, 101, EV_PIO, 0x60, DIR_READ);
	ev_entry(&f, 1 * SEC + 210, 101, 0);
	s = commit(&f, 2 * SEC);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x60:PIN")->now.count, 2);
	assert_int_equal(count_of(s, "web01", 0), 1);
	assert_int_equal(count_of(s, "web01", 1), 1);
	assert_int_equal(find_row(s, "web01", 1, KIND_VMEXIT, "msr")->now.low, WHY_NONE);
	assert_int_equal(s->vcpus[1].ex.rate.state, VALUE_KNOWN);
	near(s->vcpus[1].ex.rate.v, 1);
	e = find_row(s, "web01", 0, KIND_IOPORT, "0x60:PIN");
	assert_int_equal(e->now.count, 1);
	assert_int_equal(e->now.low, WHY_SHARED);
	near(s->vms[0].ex.pct.v, 100.0 * 20 / 2e9);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Kernel threads and impossible numbers are nobody's. */
static void no_thread_no_vm(void **state)
{
	struct fixture f = watched();
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	an_exit(&f, 1 * SEC + 100, 0, 0, 10);
	an_exit(&f, 1 * SEC + 200, -5, 0, 10);
	feed(&f, (struct sample){.time = 1 * SEC + 300, .tid = 7, .vcpu_id = -1, .type = 250});
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->kinds[KIND_VMEXIT].count, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Enough threads that the hash grows and closes gaps, coming and going. */
static void thousands_of_threads(void **state)
{
	struct fixture f = fixture_new(8, 64);
	int64_t t = 1 * SEC;
	uint64_t all = 0;

	(void)state;
	commit_drop(&f, t);
	for (int round = 0; round < 6; round++) {
		struct snapshot *s;
		uint64_t n = 0;

		for (int i = 0; i < 400; i++) {
			pid_t pid = 1000 + i * 10;
			char name[16];

			snprintf(name, sizeof(name), "vm%d", i);
			if ((i + round) % 3)
				fixture_vm(&f, name, pid, 4);
		}
		for (int i = 0; i < 400 * 4; i++) {
			if (!((i / 4 + round) % 3))
				continue;
			an_exit(&f, t += 1000, 1001 + i / 4 * 10 + i % 4, i % 4, 500);
			n++;
		}
		s = commit(&f, t += SEC);
		assert_int_equal(s->kinds[KIND_VMEXIT].count, n);
		assert_int_equal(s->kinds[KIND_VMEXIT].timed, n);
		all += n;
		assert_int_equal(s->kinds_total[KIND_VMEXIT].count, all);
		snapshot_unref(s);
		for (struct inv_vm *vm = inventory_first(f.inv); vm; vm = vm->next)
			if (vm->id % 2)
				inventory_vm_gone(f.inv, vm);
		inventory_sweep(f.inv);
	}
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vcpu_changes_threads),
		cmocka_unit_test(a_vcpu_changes_threads_in_a_read),
		cmocka_unit_test(one_thread_runs_two_vcpus),
		cmocka_unit_test(two_vms_in_one_process),
		cmocka_unit_test(the_event_knows_better),
		cmocka_unit_test(a_vm_ends_in_mid_interval),
		cmocka_unit_test(a_tid_is_used_again),
		cmocka_unit_test(a_vm_dies_before_it_is_found),
		cmocka_unit_test(found_after_its_first_events),
		cmocka_unit_test(found_to_be_of_a_known_vm),
		cmocka_unit_test(a_vcpu_is_unplugged),
		cmocka_unit_test(a_vcpus_thread_ends),
		cmocka_unit_test(what_tells_no_vcpu_is_the_vms),
		cmocka_unit_test(accesses_of_a_shared_thread_are_marked),
		cmocka_unit_test(no_thread_no_vm),
		cmocka_unit_test(thousands_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
