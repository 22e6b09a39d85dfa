// SPDX-License-Identifier: GPL-2.0-only
/* Which thread runs which vCPU, as that changes while a VM lives, and under which number. */
#include "vms_host.h"

static void one_thread_two_vcpus(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	process(h, 800, "one", 5000, 0, "one", "/");
	descriptor(h, 800, 4, "anon_inode:kvm-vm");
	thread_of(h, 800, 801, "vcpu0", 5001, 0);
	kvm_vcpu(h, "800-4", 0, 801);
	kvm_vcpu(h, "800-4", 1, 801);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->nvcpu, 2);
	assert_ptr_equal(vm->vcpu[0]->thread, vm->vcpu[1]->thread);
	assert_int_equal(vm->vcpu[0]->thread->nvcpus, 2);
	/* Its name cannot number both. */
	assert_int_equal(vm->vcpu[0]->index, 0);
	assert_int_equal(vm->vcpu[1]->index, 1);
}

static void a_vcpu_changes_threads(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	qemu(h, 900, "hop", 1, true);
	thread_of(h, 900, 950, "spare", 5001, 0);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->vcpu[0]->thread->tid, 901);
	kvm_vcpu(h, "900-10", 0, 950);
	for (int i = 0; i < 10; i++)
		tick(h);
	assert_int_equal(vm->vcpu[0]->thread->tid, 950);
	assert_int_equal(inventory_thread(h->inv, 901)->role, ROLE_VMM);
	assert_int_equal(vm->nvcpu, 1);
}

/* Long known VMs too, whatever tick it happens in, and however long the ticks are. */
static void a_vcpu_that_changes_threads_is_seen_soon(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	qemu(h, 900, "hop", 1, true);
	thread_of(h, 900, 950, "spare", 5001, 0);
	start(h, NULL);
	vm = only_vm(h);
	for (int i = 0; i < 60; i++)
		tick(h);
	for (int turn = 0; turn < 12; turn++) {
		pid_t tid = turn % 2 ? 901 : 950;
		int n = 0;

		kvm_vcpu(h, "900-10", 0, tid);
		while (vm->vcpu[0]->thread->tid != tid && n++ < 20)
			tick(h);
		assert_in_range(n, 0, 6);
		tick(h); /* another moment of its five seconds */
	}
	kvm_vcpu(h, "900-10", 0, 950);
	for (int i = 0; i < 2; i++) {
		h->now += 60 * NS_PER_S;
		tick(h);
	}
	assert_int_equal(vm->vcpu[0]->thread->tid, 950);
}

/* It used guest time, so it runs a vCPU: which, debugfs is asked at once. */
static void a_thread_with_guest_time(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	qemu(h, 900, "hop", 1, true);
	thread_of(h, 900, 950, "spare", 5001, 0);
	start(h, NULL);
	vm = only_vm(h);
	for (int i = 0; i < 13; i++)
		tick(h);
	kvm_vcpu(h, "900-10", 0, 950);
	inventory_unsure(h->inv, inventory_thread(h->inv, 950));
	vms_resolve(h->vms, h->now);
	assert_int_equal(vm->vcpu[0]->thread->tid, 950);
	inventory_unsure(h->inv, inventory_thread(h->inv, 950)); /* known by now */
	assert_int_equal(inventory_take_unknown(h->inv), 0);
}

/*
 * As QEMU 7.2 was seen to do: the thread of an unplugged vCPU ends, its descriptor and its folder
 * stay, and plugged in again it is the same vCPU of KVM's with a new thread.
 */
static void a_vcpu_is_unplugged_and_back(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	qemu(h, 970, "plug", 4, true);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->nvcpu, 4);
	unmake(h, "proc/970/task/973");
	unmake(h, "proc/973");
	tick(h);
	for (int i = 0; i < 12; i++)
		tick(h);
	assert_int_equal(inventory_nvcpu(h->inv), 3);
	assert_int_equal(vm->nvcpu, 3);
	assert_int_equal(vm->vcpu[2]->kvm_id, 3);
	assert_int_equal(vm->vcpu[2]->index, 3);
	assert_int_equal(vm->vcpu[2]->thread->tid, 974);
	thread_of(h, 970, 980, "CPU 2/KVM", 6001, 0);
	kvm_vcpu(h, "970-10", 2, 980);
	for (int i = 0; i < 11; i++)
		tick(h);
	assert_int_equal(vm->nvcpu, 4);
	assert_int_equal(vm->vcpu[2]->kvm_id, 2);
	assert_int_equal(vm->vcpu[2]->index, 2);
	assert_int_equal(vm->vcpu[2]->thread->tid, 980);
}

/* Threads without names: numbers are ranks of KVM's ids, and no row gets another's when one goes.
 */
static void numbers_stay_when_a_vcpu_goes(void **state)
{
	static const int ids[] = {0, 2, 9, 11};
	struct host *h = *state;
	struct inv_vm *vm;

	process(h, 980, "vmm", 5000, 0, "vmm", "/");
	descriptor(h, 980, 12, "anon_inode:kvm-vm");
	for (int i = 0; i < 4; i++) {
		thread_of(h, 980, 981 + i, "vmm", 5001, 0);
		kvm_vcpu(h, "980-12", ids[i], 981 + i);
	}
	start(h, NULL);
	vm = only_vm(h);
	for (int i = 0; i < 4; i++)
		assert_int_equal(vm->vcpu[i]->index, i);
	unmake(h, "proc/980/task/982");
	unmake(h, "proc/982");
	for (int i = 0; i < 13; i++)
		tick(h);
	assert_int_equal(vm->nvcpu, 3);
	assert_int_equal(vm->vcpu[0]->index, 0);
	assert_int_equal(vm->vcpu[1]->kvm_id, 9);
	assert_int_equal(vm->vcpu[1]->index, 2);
	assert_int_equal(vm->vcpu[2]->index, 3);
	thread_of(h, 980, 990, "vmm", 6001, 0); /* back: it has its old place */
	kvm_vcpu(h, "980-12", 2, 990);
	for (int i = 0; i < 13; i++)
		tick(h);
	assert_int_equal(vm->nvcpu, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(vm->vcpu[i]->kvm_id, ids[i]);
		assert_int_equal(vm->vcpu[i]->index, i);
	}
}

/* A thread names itself: one that is starved from the start does so after all others. */
static void a_name_comes_late(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	process(h, 960, "vmm", 5000, 0, "vmm", "/");
	thread_of(h, 960, 961, "CPU 0/KVM", 5001, 0);
	thread_of(h, 960, 962, "vmm", 5001, 0);
	descriptor(h, 960, 12, "anon_inode:kvm-vm");
	kvm_vcpu(h, "960-12", 0, 961);
	kvm_vcpu(h, "960-12", 2, 962);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->nvcpu, 2);
	for (int i = 0; i < 30; i++)
		tick(h);
	assert_true(vm->vcpu[1]->index_guessed);
	thread_of(h, 960, 962, "CPU 1/KVM", 5001, 0);
	tick(h);
	assert_false(vm->vcpu[1]->index_guessed);
	assert_int_equal(vm->vcpu[1]->index, 1);
}

/* A vCPU that had not run when it was found: its first event asks for its thread. */
static void an_event_of_a_thread_without_a_vcpu(void **state)
{
	struct host *h = *state;
	struct inv_thread *t;

	process(h, 2900, "twovm", 5000, 0, "twovm", "/");
	descriptor(h, 2900, 4, "anon_inode:kvm-vm");
	descriptor(h, 2900, 6, "anon_inode:kvm-vm");
	thread_of(h, 2900, 2901, "twovm", 5001, 0);
	kvm_vcpu(h, "2900-4", 0, 0);
	kvm_vcpu(h, "2900-6", 0, 0);
	start(h, NULL);
	t = inventory_thread(h->inv, 2901);
	assert_null(t->vcpu);
	kvm_vcpu(h, "2900-6", 0, 2901);
	inventory_ask(h->inv, t);
	assert_string_equal(t->vm->key, "2900-6");
	assert_ptr_equal(t->vcpu, t->vm->vcpu[0]);
}

/*
 * kvm-pit threads are named after a number of the VMM's own namespace, as was seen with QEMU in a
 * container (tests/data/roots/ORIGIN): of two containers both may have a VMM 7, and the host
 * another.
 */
static void helpers_of_containers(void **state)
{
	static const char first[] = "Name:\tq\nTgid:\t2410\nNSpid:\t2410\t7\n";
	static const char second[] = "Name:\tq\nTgid:\t2420\nNSpid:\t2420\t7\nNSpgid:\t1\n";
	struct host *h = *state;

	qemu(h, 2410, "one", 1, true);
	put(h, first, strlen(first), "proc/2410/status");
	qemu(h, 2420, "two", 1, true);
	put(h, second, strlen(second), "proc/2420/status");
	put_stat(h, "proc/2420", 2420, "qemu-system-x86", 4194304, 1, 6000, 0);
	qemu(h, 7, "host", 1, true);
	put_stat(h, "proc/7", 7, "qemu-system-x86", 4194304, 1, 3000, 0);
	put_stat(h, "proc/2461", 2461, "kvm-pit/7", 2129984, 1, 5002, 0);
	put_stat(h, "proc/2462", 2462, "kvm-pit/7", 2129984, 1, 6002, 0);
	put_stat(h, "proc/2463", 2463, "kvm-pit/7", 2129984, 1, 3002, 0);
	put_stat(h, "proc/2464", 2464, "kvm-pit/2410", 2129984, 1, 6002, 0);
	start(h, NULL);
	assert_string_equal(inventory_thread(h->inv, 2461)->vm->name, "one");
	assert_string_equal(inventory_thread(h->inv, 2462)->vm->name, "two");
	assert_string_equal(inventory_thread(h->inv, 2463)->vm->name, "host");
	assert_null(inventory_thread(h->inv, 2464));
}

int main(void)
{
#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(one_thread_two_vcpus),
		WITH(a_vcpu_changes_threads),
		WITH(a_vcpu_that_changes_threads_is_seen_soon),
		WITH(a_thread_with_guest_time),
		WITH(a_vcpu_is_unplugged_and_back),
		WITH(numbers_stay_when_a_vcpu_goes),
		WITH(a_name_comes_late),
		WITH(an_event_of_a_thread_without_a_vcpu),
		WITH(helpers_of_containers),
	};

	return cmocka_run_group_tests_name("vms_threads", tests, NULL, NULL);
}
