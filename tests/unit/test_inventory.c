// SPDX-License-Identifier: GPL-2.0-only
/* Identity: what is the same VM, vCPU or thread, what is another one, and when it is freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inventory.h"

static int setup(void **state)
{
	*state = inventory_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	inventory_free(*state);
	return 0;
}

static void the_same_identity_is_one_vm(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *a = inventory_add_vm(inv, 100, 5000, "100-9");
	struct inv_vm *b = inventory_add_vm(inv, 100, 5000, "100-12");
	struct inv_vm *c = inventory_add_vm(inv, 100, 6000, "100-9");

	assert_ptr_equal(inventory_add_vm(inv, 100, 5000, "100-9"), a);
	assert_ptr_not_equal(a, b); /* two VMs in one process */
	assert_ptr_not_equal(a, c); /* the pid was used again */
	assert_int_equal(inventory_nvm(inv), 3);
	assert_ptr_equal(inventory_find(inv, 100, 5000, "100-12"), b);
	assert_null(inventory_find(inv, 10, 5000, "100-12"));
	assert_ptr_equal(inventory_vm(inv, a->id), a);
	assert_string_equal(a->name, "pid:100");
	assert_ptr_equal(inventory_first(inv), a);
	assert_ptr_equal(a->next, b);
}

static void two_vms_of_one_name_stay_two(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *a = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_vm *b = inventory_add_vm(inv, 200, 1, "200-9");

	assert_int_equal(inventory_set(&a->name, "web01"), 0);
	assert_int_equal(inventory_set(&b->name, "web01"), 0);
	assert_int_equal(inventory_nvm(inv), 2);
	assert_int_not_equal(a->id, b->id);
}

static void vcpus_are_sorted_and_may_have_gaps(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "100-9");
	const int ids[] = {6, 0, 10, 2, 4, 1};

	for (size_t i = 0; i < 6; i++)
		assert_non_null(inventory_add_vcpu(inv, vm, ids[i]));
	assert_int_equal(vm->nvcpu, 6);
	for (size_t i = 1; i < 6; i++)
		assert_true(vm->vcpu[i - 1]->kvm_id < vm->vcpu[i]->kvm_id);
	assert_null(inventory_vcpu(vm, 3));
	assert_int_equal(inventory_vcpu(vm, 10)->kvm_id, 10);
	assert_ptr_equal(inventory_add_vcpu(inv, vm, 10), inventory_vcpu(vm, 10));
	assert_int_equal(inventory_nvcpu(inv), 6);
}

static void a_reused_tid_is_another_thread(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_thread *old = inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VMM);
	struct inv_thread *t;

	assert_ptr_equal(inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VMM), old);
	t = inventory_add_thread(inv, vm, 100, 101, 8, ROLE_VMM);
	assert_ptr_not_equal(t, old);
	assert_true(old->flags & INV_GONE);
	assert_ptr_equal(inventory_thread(inv, 101), t);
	assert_int_equal(vm->nthread, 2);
	inventory_sweep(inv);
	assert_int_equal(vm->nthread, 1);
	assert_ptr_equal(vm->threads, t);
}

static void a_vcpu_changes_threads(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_vcpu *v = inventory_add_vcpu(inv, vm, 0);
	struct inv_thread *a = inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VMM);
	struct inv_thread *b = inventory_add_thread(inv, vm, 100, 102, 7, ROLE_VMM);
	uint64_t gen;

	inventory_set_thread(inv, v, a);
	assert_int_equal(a->role, ROLE_VCPU);
	gen = inventory_generation(inv);
	inventory_set_thread(inv, v, a);
	assert_int_equal(inventory_generation(inv), gen);
	inventory_set_thread(inv, v, b);
	assert_int_not_equal(inventory_generation(inv), gen);
	assert_int_equal(a->role, ROLE_VMM);
	assert_int_equal(a->nvcpus, 0);
	assert_null(a->vcpu);
	assert_ptr_equal(b->vcpu, v);
	assert_ptr_equal(v->thread, b);
	inventory_thread_gone(inv, b);
	inventory_sweep(inv);
	assert_null(v->thread);
}

static void one_thread_runs_two_vcpus(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_vcpu *v0 = inventory_add_vcpu(inv, vm, 0), *v1 = inventory_add_vcpu(inv, vm, 1);
	struct inv_thread *t = inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VMM);

	inventory_set_thread(inv, v0, t);
	inventory_set_thread(inv, v1, t);
	assert_int_equal(t->nvcpus, 2);
	assert_ptr_equal(t->vcpu, v1);
	inventory_set_thread(inv, v0, t); /* seen again with the first one */
	assert_ptr_equal(t->vcpu, v0);
	inventory_set_thread(inv, v0, NULL);
	assert_int_equal(t->nvcpus, 1);
	assert_ptr_equal(t->vcpu, v1);
	assert_int_equal(t->role, ROLE_VCPU);
	inventory_vcpu_gone(inv, v1);
	inventory_vcpu_gone(inv, v0);
	inventory_sweep(inv);
	assert_int_equal(vm->nvcpu, 0);
	assert_int_equal(t->role, ROLE_VMM);
}

static void a_thread_outlives_one_of_two_vms(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *a = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_vm *b = inventory_add_vm(inv, 100, 1, "100-12");
	struct inv_thread *both = inventory_add_thread(inv, a, 100, 101, 7, ROLE_VMM);
	struct inv_thread *only = inventory_add_thread(inv, a, 100, 102, 7, ROLE_VMM);
	struct inv_thread *main_thread = inventory_add_thread(inv, a, 100, 100, 1, ROLE_VMM);
	struct inv_vcpu *va = inventory_add_vcpu(inv, a, 0), *va1 = inventory_add_vcpu(inv, a, 1);
	struct inv_vcpu *vb = inventory_add_vcpu(inv, b, 0);

	inventory_set_thread(inv, vb, both);
	inventory_set_thread(inv, va, both);
	inventory_set_thread(inv, va1, only);
	inventory_vm_gone(inv, a);
	assert_ptr_equal(both->vm, b);
	assert_ptr_equal(both->vcpu, vb);
	assert_ptr_equal(main_thread->vm, b);
	assert_true(only->flags & INV_GONE);
	inventory_sweep(inv);
	assert_int_equal(inventory_nvm(inv), 1);
	assert_int_equal(both->nvcpus, 1);
	assert_ptr_equal(vb->thread, both);
}

static void what_is_gone_stays_until_the_sweep(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "100-9"), *again;
	struct inv_vcpu *v = inventory_add_vcpu(inv, vm, 0);
	struct inv_thread *t = inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VCPU);
	uint32_t id = vm->id;

	inventory_set_thread(inv, v, t);
	inventory_vm_gone(inv, vm);
	inventory_vm_gone(inv, vm);
	assert_int_equal(inventory_nvm(inv), 0);
	assert_int_equal(inventory_nvcpu(inv), 0);
	assert_ptr_equal(inventory_vm(inv, id), vm); /* its last interval is still shown */
	assert_ptr_equal(v->thread, t);
	assert_null(inventory_thread(inv, 101));
	assert_null(inventory_find(inv, 100, 1, "100-9"));
	again = inventory_add_vm(inv, 100, 1, "100-9"); /* the same descriptor number, reopened */
	assert_ptr_not_equal(again, vm);
	inventory_sweep(inv);
	assert_null(inventory_vm(inv, id));
	assert_ptr_equal(inventory_first(inv), again);
	assert_null(again->next);
	assert_true(again->id > id);
	vm = inventory_add_vm(inv, 300, 1, "x");
	assert_ptr_equal(again->next, vm);
}

/* Its last events are read after its end was seen: it is kept, and found, for one sweep more. */
static void what_ended_is_found_until_the_second_sweep(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_vcpu *v = inventory_add_vcpu(inv, vm, 0);
	struct inv_thread *t = inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VCPU), *next;

	inventory_set_thread(inv, v, t);
	assert_null(inventory_ended_thread(inv, 101));
	inventory_vm_gone(inv, vm);
	assert_ptr_equal(inventory_ended_thread(inv, 101), t);
	inventory_sweep_old(inv);
	assert_ptr_equal(inventory_first(inv), vm);
	assert_true(vm->flags & INV_LAST);
	assert_ptr_equal(inventory_ended_thread(inv, 101), t);
	assert_ptr_equal(t->vcpu, v);
	/* The tid is taken again: both are there, each by its own way. */
	vm = inventory_add_vm(inv, 200, 2, "200-9");
	next = inventory_add_thread(inv, vm, 200, 101, 9, ROLE_VCPU);
	assert_ptr_equal(inventory_thread(inv, 101), next);
	assert_ptr_equal(inventory_ended_thread(inv, 101), t);
	inventory_sweep_old(inv);
	assert_null(inventory_ended_thread(inv, 101));
	assert_ptr_equal(inventory_thread(inv, 101), next);
	assert_ptr_equal(inventory_first(inv), vm);
	assert_null(vm->next);
	/* One that ends alone goes the same way. */
	inventory_thread_gone(inv, next);
	inventory_sweep_old(inv);
	assert_int_equal(vm->nthread, 1);
	inventory_sweep_old(inv);
	assert_int_equal(vm->nthread, 0);
}

static void vms_of_a_process_are_numbered(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *a = inventory_add_vm(inv, 100, 1, "100-9");
	struct inv_vm *b = inventory_add_vm(inv, 100, 1, "100-10");

	assert_int_equal(a->nth, 0);
	assert_int_equal(b->nth, 1);
	assert_int_equal(inventory_add_vm(inv, 101, 1, "101-9")->nth, 0);
	inventory_vm_gone(inv, a);
	assert_int_equal(b->nth, 1); /* it stays what it was */
	assert_int_equal(inventory_add_vm(inv, 100, 1, "100-11")->nth, 2);
}

struct freed {
	int threads, vcpus, vms;
};

static void count_thread(void *ctx, struct inv_thread *t)
{
	struct freed *f = ctx;

	assert_non_null(t->vm);
	f->threads++;
}

static void count_vcpu(void *ctx, struct inv_vcpu *v)
{
	struct freed *f = ctx;

	assert_non_null(v->vm);
	f->vcpus++;
}

static void count_vm(void *ctx, struct inv_vm *vm)
{
	struct freed *f = ctx;

	assert_non_null(vm->name);
	f->vms++;
}

static void observers_see_all_that_is_freed(void **state)
{
	struct inventory *inv = inventory_new();
	struct freed f = {0};
	const struct inv_observer o = {&f, count_thread, count_vcpu, count_vm};
	struct inv_vm *vm;

	(void)state;
	assert_int_equal(inventory_observe(inv, &o), 0);
	vm = inventory_add_vm(inv, 100, 1, "a");
	inventory_add_vcpu(inv, vm, 0);
	inventory_add_thread(inv, vm, 100, 101, 7, ROLE_VCPU);
	inventory_add_thread(inv, vm, 100, 102, 7, ROLE_VMM);
	inventory_thread_gone(inv, inventory_thread(inv, 102));
	inventory_sweep(inv);
	assert_int_equal(f.threads, 1);
	inventory_vm_gone(inv, vm);
	inventory_sweep(inv);
	assert_int_equal(f.threads, 2);
	assert_int_equal(f.vcpus, 1);
	assert_int_equal(f.vms, 1);
	inventory_add_vm(inv, 100, 1, "b");
	inventory_free(inv);
	assert_int_equal(f.vms, 2);
}

static void an_unknown_thread_is_provisional(void **state)
{
	struct inventory *inv = *state;
	struct inv_thread *t = inventory_provisional(inv, 4711, 0), *u;
	struct inv_vm *vm = t->vm, *real;
	int mark;

	assert_string_equal(vm->name, "tid:4711");
	assert_true(vm->flags & INV_PROVISIONAL);
	assert_ptr_equal(inventory_provisional(inv, 4711, 0), t); /* listed once */
	u = inventory_provisional(inv, 4712, 0);
	assert_int_equal(inventory_take_unknown(inv), 4711);
	assert_int_equal(inventory_take_unknown(inv), 4712);
	assert_int_equal(inventory_take_unknown(inv), 0);

	/* The first becomes the VM itself, with all that hangs on it … */
	vm->cookie[INV_COOKIE_MODEL] = &mark;
	t->cookie[INV_COOKIE_MODEL] = &mark;
	real = inventory_identify(inv, vm, 4000, 77, "4000-9");
	assert_ptr_equal(real, vm);
	assert_false(vm->flags & INV_PROVISIONAL);
	assert_ptr_equal(inventory_find(inv, 4000, 77, "4000-9"), vm);
	assert_ptr_equal(inventory_add_thread(inv, vm, 4000, 4711, 78, ROLE_VCPU), t);
	assert_ptr_equal(t->cookie[INV_COOKIE_MODEL], &mark);
	assert_int_equal(t->flags, 0);

	/* … the second is merged into it, and leaves the vCPU that only events knew. */
	inventory_set_thread(inv, inventory_add_vcpu(inv, u->vm, 5), u);
	assert_ptr_equal(inventory_identify(inv, u->vm, 4000, 77, "4000-9"), vm);
	assert_ptr_equal(u->vm, vm);
	assert_int_equal(u->nvcpus, 0);
	assert_null(u->vcpu);
	inventory_sweep(inv);
	assert_int_equal(inventory_nvm(inv), 1);
	assert_ptr_equal(inventory_thread(inv, 4712), u);
}

static void many_unknown_threads_keep_their_order(void **state)
{
	struct inventory *inv = *state;

	for (pid_t tid = 1; tid <= 10; tid++)
		inventory_provisional(inv, tid, 0);
	for (pid_t tid = 1; tid <= 5; tid++)
		assert_int_equal(inventory_take_unknown(inv), tid);
	for (pid_t tid = 11; tid <= 100; tid++)
		inventory_provisional(inv, tid, 0);
	for (pid_t tid = 6; tid <= 100; tid++)
		assert_int_equal(inventory_take_unknown(inv), tid);
}

static void a_thousand_vms(void **state)
{
	struct inventory *inv = *state;

	for (int i = 0; i < 1000; i++) {
		char key[16];
		struct inv_vm *vm;

		snprintf(key, sizeof(key), "%d-9", 1000 + i * 20);
		vm = inventory_add_vm(inv, 1000 + i * 20, 1, key);
		for (int c = 0; c < 16; c++) {
			pid_t tid = 1000 + i * 20 + c;
			struct inv_thread *t;

			t = inventory_add_thread(inv, vm, vm->pid, tid, 2, ROLE_VCPU);
			inventory_set_thread(inv, inventory_add_vcpu(inv, vm, c), t);
		}
	}
	assert_int_equal(inventory_nvcpu(inv), 16000);
	for (int i = 0; i < 1000; i++)
		for (int c = 0; c < 16; c++) {
			struct inv_thread *t = inventory_thread(inv, 1000 + i * 20 + c);

			assert_int_equal(t->vcpu->kvm_id, c);
			assert_int_equal(t->vm->pid, 1000 + i * 20);
		}
	while (inventory_first(inv)) {
		struct inv_vm *vm = inventory_first(inv);

		for (int n = 0; vm && n < 100; n++, vm = vm->next)
			inventory_vm_gone(inv, vm);
		inventory_sweep(inv);
	}
	assert_int_equal(inventory_nvcpu(inv), 0);
	assert_int_equal(inventory_nvm(inv), 0);
}

static void never(void *ctx, struct inv_thread *t)
{
	(void)ctx;
	(void)t;
}

/* Many keys of one thread ask for it in an interval: one answer serves them all. */
static void a_thread_is_asked_about_once(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 100, 1, "k");
	struct inv_thread *t = inventory_add_thread(inv, vm, 100, 101, 1, ROLE_VMM);

	inventory_on_ask(inv, never, NULL);
	inventory_unsure(inv, t);
	inventory_unsure(inv, t);
	assert_int_equal(inventory_take_unknown(inv), 101);
	assert_int_equal(inventory_take_unknown(inv), 0);
	inventory_unsure(inv, t); /* and again in the next */
	assert_int_equal(inventory_take_unknown(inv), 101);
}

/* A thread of process 500 that was never looked at in time. */
static struct inv_vm *unseen(struct inventory *inv, pid_t tid, const char *comm, pid_t pid)
{
	struct inv_vm *vm = inventory_provisional(inv, tid, 500)->vm;

	inventory_provisional_gone(inv, vm, comm, pid);
	return vm;
}

/* Threads of one process that ended are one VM, however late the events of the next one come. */
static void threads_of_one_process_that_ended_are_one_vm(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *first = unseen(inv, 501, "", 0);

	assert_string_equal(first->name, "pid:500");
	assert_int_equal(first->pid, 500);
	inventory_sweep_old(inv);
	assert_true(first->flags & INV_LAST);
	unseen(inv, 502, "", 0);
	assert_ptr_equal(inventory_thread(inv, 502), NULL);
	assert_int_equal(first->nthread, 2);
	assert_false(first->flags & INV_LAST);
	unseen(inv, 503, "fast-vmm", 500); /* its process was seen, it was not */
	assert_int_equal(first->nthread, 3);
	assert_string_equal(first->name, "fast-vmm:500");
	inventory_sweep_old(inv); /* with the empty shells of the two */
	inventory_sweep_old(inv);
	assert_ptr_equal(inventory_first(inv), NULL);
}

static void a_late_thread_is_of_the_vm_that_ended(void **state)
{
	struct inventory *inv = *state;
	struct inv_vm *vm = inventory_add_vm(inv, 500, 1, "k"), *other;

	inventory_add_thread(inv, vm, 500, 501, 1, ROLE_VCPU);
	inventory_vm_gone(inv, vm);
	inventory_sweep_old(inv);
	assert_true(vm->flags & INV_LAST);
	unseen(inv, 502, "", 0);
	assert_int_equal(vm->nthread, 2);
	assert_false(vm->flags & INV_LAST);
	inventory_sweep_old(inv);
	other = inventory_add_vm(inv, 500, 1, "l"); /* the process goes on with another */
	unseen(inv, 503, "", 0);
	assert_int_equal(vm->nthread, 1); /* 501 was gone for long */
	assert_int_equal(other->nthread, 1);
	inventory_add_vm(inv, 500, 1, "m");
	assert_string_equal(unseen(inv, 504, "", 0)->name,
			    "pid:500"); /* whose it was is not known */
}

int main(void)
{
#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(the_same_identity_is_one_vm),
		WITH(two_vms_of_one_name_stay_two),
		WITH(vcpus_are_sorted_and_may_have_gaps),
		WITH(a_reused_tid_is_another_thread),
		WITH(a_vcpu_changes_threads),
		WITH(one_thread_runs_two_vcpus),
		WITH(a_thread_outlives_one_of_two_vms),
		WITH(what_is_gone_stays_until_the_sweep),
		WITH(what_ended_is_found_until_the_second_sweep),
		WITH(vms_of_a_process_are_numbered),
		cmocka_unit_test(observers_see_all_that_is_freed),
		WITH(an_unknown_thread_is_provisional),
		WITH(a_thread_is_asked_about_once),
		WITH(threads_of_one_process_that_ended_are_one_vm),
		WITH(a_late_thread_is_of_the_vm_that_ended),
		WITH(many_unknown_threads_keep_their_order),
		WITH(a_thousand_vms),
	};

	return cmocka_run_group_tests_name("inventory", tests, NULL, NULL);
}
