// SPDX-License-Identifier: GPL-2.0-only
/*
 * Discovery over trees for --root: one recorded, the others made here as variations of it
 * (tests/data/roots/ORIGIN), which change between ticks as a host does.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "inventory.h"
#include "sysroot.h"
#include "vms.h"
#include "vms_host.h"

static void the_recorded_vm(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;
	unsigned done, all;

	start(h, "tests/data/roots/tinyvm-6.18");
	vm = only_vm(h);
	assert_int_equal(vm->pid, 17876);
	assert_int_equal(vm->start, 284897);
	assert_string_equal(vm->key, "17876-4");
	assert_string_equal(vm->name, "tinyvm-run:17876");
	assert_string_equal(vm->vmm, "tinyvm-run");
	assert_string_equal(vm->cmdline, "./tinyvm-run -c 2 -i 0,3 -t vcpu%d spin:inf");
	assert_int_equal(vm->flags, 0);
	assert_int_equal(vm->nvcpu, 2);
	assert_int_equal(vm->vcpu[1]->kvm_id, 3);
	assert_int_equal(vm->vcpu[1]->index, 1);
	assert_false(vm->vcpu[1]->index_guessed);
	assert_int_equal(vm->vcpu[1]->thread->tid, 17880);
	assert_int_equal(vm->nthread, 4);
	assert_int_equal(inventory_thread(h->inv, 17876)->role, ROLE_VMM);
	assert_int_equal(inventory_thread(h->inv, 17879)->role, ROLE_VCPU);
	assert_int_equal(inventory_thread(h->inv, 17881)->role, ROLE_HELPER);
	assert_string_equal(inventory_thread(h->inv, 17881)->comm, "kvm-nx-lpage-re");
	vms_progress(h->vms, &done, &all);
	assert_int_equal(done, 1);
	assert_int_equal(all, 1);
}

static const char libvirt_xml[] =
	"<domstatus state='running' pid='4700'><domain type='kvm'><name>web,01</name>"
	"<title>Web</title><metadata><nova:instance xmlns:nova='http://x'><nova:name>front"
	"</nova:name></nova:instance></metadata><cputune><vcpupin vcpu='3' cpuset='2-3'/></cputune>"
	"</domain></domstatus>";

/* facts: QEMU -smp 6,sockets=2,cores=3 has threads CPU 0…5/KVM, descriptors 0,1,2,4,5,6. */
static void qemu_under_libvirt_without_debugfs(void **state)
{
	static const int ids[] = {0, 1, 2, 4, 5, 6};
	struct host *h = *state;
	struct inv_vm *vm;
	char text[64];

	process(h, 4700, "qemu-system-x86", 5000, 9,
		"/usr/bin/qemu-system-x86_64 -name guest=web,,01,debug-threads=on -uuid 8f-1",
		"/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/emulator");
	descriptor(h, 4700, 20, "anon_inode:kvm-vm");
	for (int i = 0; i < 6; i++) {
		snprintf(text, sizeof(text), "anon_inode:kvm-vcpu:%d", ids[i]);
		descriptor(h, 4700, 30 + i, text);
		snprintf(text, sizeof(text), "CPU %d/KVM", i);
		thread_of(h, 4700, 4710 + i, text, 5001, 9);
	}
	put(h, libvirt_xml, strlen(libvirt_xml), "run/libvirt/qemu/web,01.xml");
	start(h, NULL);
	vm = only_vm(h);
	assert_string_equal(vm->key, "fd:20");
	assert_string_equal(vm->name, "web,01");
	assert_string_equal(vm->uuid, "8f-1");
	assert_string_equal(vm->title, "Web");
	assert_string_equal(vm->nova, "front");
	assert_string_equal(vm->vmm, "qemu");
	assert_int_equal(vm->nvcpu, 6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(vm->vcpu[i]->kvm_id, ids[i]);
		assert_int_equal(vm->vcpu[i]->index, i);
		assert_int_equal(vm->vcpu[i]->thread->tid, 4710 + i);
		assert_false(vm->vcpu[i]->index_guessed);
	}
	assert_string_equal(vm->vcpu[3]->xml_pin, "2-3");
	assert_null(vm->vcpu[2]->xml_pin);
	/* The file is another domain's by now: its pid says so. */
	put(h, "<domstatus pid='1'><domain><title>Other</title></domain></domstatus>", 68,
	    "run/libvirt/qemu/web,01.xml");
	for (int i = 0; i < 10; i++)
		tick(h);
	assert_string_equal(vm->title, "Web");
}

/* All threads have the process's name, and debugfs is not there. */
static void vcpus_by_guest_time(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	process(h, 300, "qemu-system-x86", 5000, 30, "qemu-system-x86_64 -name old", "/");
	descriptor(h, 300, 8, "anon_inode:kvm-vm");
	descriptor(h, 300, 9, "anon_inode:kvm-vcpu:0");
	descriptor(h, 300, 10, "anon_inode:kvm-vcpu:2");
	thread_of(h, 300, 301, "qemu-system-x86", 5001, 10);
	thread_of(h, 300, 302, "qemu-system-x86", 5001, 0);
	thread_of(h, 300, 303, "qemu-system-x86", 5001, 20);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->nvcpu, 2);
	assert_int_equal(vm->vcpu[0]->thread->tid, 301);
	assert_int_equal(vm->vcpu[1]->thread->tid, 303);
	assert_int_equal(vm->vcpu[1]->kvm_id, 2);
	assert_int_equal(vm->vcpu[1]->index, 1);
	assert_true(vm->vcpu[1]->index_guessed);
	assert_true(vm->vcpu[1]->flags & INV_GUESSED);
	assert_int_equal(inventory_thread(h->inv, 302)->role, ROLE_VMM);
}

/* debugfs' number is the thread that made the VM, which need not be the process … */
static void debugfs_names_a_thread(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	process(h, 400, "crosvm", 5000, 0, "crosvm run --name termina", "/");
	thread_of(h, 400, 405, "main_vm", 5001, 0);
	thread_of(h, 400, 406, "crosvm_vcpu0", 5001, 0);
	descriptor(h, 400, 12, "anon_inode:kvm-vm");
	kvm_vcpu(h, "405-12", 0, 406);
	put(h, "1\n", 2, "sys/kernel/debug/kvm/halt_exits");
	put(h, "x", 1, "sys/kernel/debug/kvm/not-a-vm/x");
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->pid, 400);
	assert_string_equal(vm->key, "405-12");
	assert_string_equal(vm->name, "termina");
	assert_int_equal(vm->vcpu[0]->thread->tid, 406);
}

/* … and may have ended, its number being another process's now. */
static void the_maker_is_another_by_now(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	process(h, 500, "myvmm", 5000, 0, "myvmm", "/");
	thread_of(h, 500, 501, "worker", 5001, 0);
	descriptor(h, 500, 7, "anon_inode:kvm-vm");
	process(h, 502, "bash", 9000, 0, "bash", "/");
	kvm_vcpu(h, "502-7", 0, 501);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->pid, 500);
	assert_string_equal(vm->name, "myvmm:500");
	assert_int_equal(vm->vcpu[0]->thread->tid, 501);
}

static void two_vms_in_one_process(void **state)
{
	struct host *h = *state;
	struct inv_vm *a, *b;

	process(h, 600, "twovm", 5000, 0, "twovm", "/");
	descriptor(h, 600, 4, "anon_inode:kvm-vm");
	descriptor(h, 600, 5, "anon_inode:kvm-vcpu:0");
	descriptor(h, 600, 6, "anon_inode:kvm-vm");
	descriptor(h, 600, 7, "anon_inode:kvm-vcpu:0");
	thread_of(h, 600, 601, "vcpu0", 5001, 0);
	thread_of(h, 600, 602, "vcpu0", 5001, 0);
	kvm_vcpu(h, "600-4", 0, 602);
	kvm_vcpu(h, "600-6", 0, 601);
	start(h, NULL);
	assert_int_equal(inventory_nvm(h->inv), 2);
	a = inventory_find(h->inv, 600, 5000, "600-4");
	b = inventory_find(h->inv, 600, 5000, "600-6");
	assert_ptr_equal(a->vcpu[0]->thread, inventory_thread(h->inv, 602));
	assert_ptr_equal(b->vcpu[0]->thread, inventory_thread(h->inv, 601));
	assert_ptr_equal(inventory_thread(h->inv, 601)->vm, b);
	/* One of the two ends, the process lives on. */
	unmake(h, "sys/kernel/debug/kvm/600-4");
	unmake(h, "proc/600/fd/4");
	unmake(h, "proc/600/fd/5");
	tick(h);
	assert_int_equal(inventory_nvm(h->inv), 1);
	assert_true(a->flags & INV_GONE);
	tick(h);
	assert_ptr_equal(only_vm(h), b);
	assert_ptr_equal(inventory_thread(h->inv, 600)->vm, b);
}

static void two_vms_in_one_process_without_debugfs(void **state)
{
	struct host *h = *state;
	struct inv_vm *a, *b;

	process(h, 600, "twovm", 5000, 0, "twovm", "/");
	descriptor(h, 600, 4, "anon_inode:kvm-vm");
	descriptor(h, 600, 5, "anon_inode:kvm-vcpu:0");
	descriptor(h, 600, 6, "anon_inode:kvm-vcpu:1");
	descriptor(h, 600, 7, "anon_inode:kvm-vm");
	descriptor(h, 600, 10, "anon_inode:kvm-vcpu:0");
	start(h, NULL);
	a = inventory_find(h->inv, 600, 5000, "fd:4");
	b = inventory_find(h->inv, 600, 5000, "fd:7");
	assert_int_equal(a->nvcpu, 2);
	assert_int_equal(b->nvcpu, 1);
}

/* A second VM of the same maker and number has no folder: its descriptor is left. */
static void a_vm_without_a_folder(void **state)
{
	struct host *h = *state;

	qemu(h, 700, "a", 1, true);
	descriptor(h, 700, 30, "anon_inode:kvm-vm");
	start(h, NULL);
	assert_int_equal(inventory_nvm(h->inv), 2);
	assert_non_null(inventory_find(h->inv, 700, 5000, "700-10"));
	assert_non_null(inventory_find(h->inv, 700, 5000, "fd:30"));
}

/* Ids come with 0, 1, 10, 2 in the folder: numbers sort, names do not. */
static void vcpus_sort_by_number(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	qemu(h, 1000, "big", 12, true);
	start(h, NULL);
	vm = only_vm(h);
	assert_int_equal(vm->nvcpu, 12);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(vm->vcpu[i]->kvm_id, i);
		assert_int_equal(vm->vcpu[i]->thread->tid, 1001 + i);
	}
}

static void two_vms_of_one_name(void **state)
{
	struct host *h = *state;

	qemu(h, 1100, "web01", 1, true);
	qemu(h, 1200, "web01", 1, true);
	start(h, NULL);
	assert_int_equal(inventory_nvm(h->inv), 2);
	assert_string_equal(inventory_first(h->inv)->name, "web01");
	assert_string_equal(inventory_first(h->inv)->next->name, "web01");
}

static void a_vm_comes_and_goes(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	start(h, NULL);
	tick(h);
	assert_int_equal(inventory_nvm(h->inv), 0);
	qemu(h, 1300, "new", 2, true);
	tick(h);
	vm = only_vm(h);
	assert_string_equal(vm->name, "new");
	assert_int_equal(vm->nvcpu, 2);
	/* A hot-plugged vCPU with its thread. */
	thread_of(h, 1300, 1390, "CPU 2/KVM", 5200, 0);
	kvm_vcpu(h, "1300-10", 4, 1390);
	for (int i = 0; i < 10; i++)
		tick(h);
	assert_int_equal(vm->nvcpu, 3);
	assert_int_equal(vm->vcpu[2]->index, 2);
	unmake(h, "proc/1300");
	unmake(h, "sys/kernel/debug/kvm/1300-10");
	tick(h);
	assert_ptr_equal(only_vm(h), vm); /* until its last events were handed over */
	tick(h);
	assert_int_equal(inventory_nvm(h->inv), 0);
	assert_true(vm->flags & INV_GONE); /* its last interval is still shown */
	assert_string_equal(vm->name, "new");
	tick(h);
	assert_null(inventory_first(h->inv));
}

static void a_vm_comes_without_debugfs(void **state)
{
	struct host *h = *state;

	start(h, NULL);
	/* A VMM that has not opened its VM yet … */
	process(h, 1400, "firecracker", 5000, 0, "firecracker --id fc1", "/");
	tick(h);
	assert_int_equal(inventory_nvm(h->inv), 0);
	/* … is asked again every tick. */
	descriptor(h, 1400, 12, "anon_inode:kvm-vm");
	descriptor(h, 1400, 13, "anon_inode:kvm-vcpu:0");
	thread_of(h, 1400, 1401, "fc_vcpu 0", 5001, 0);
	tick(h);
	assert_string_equal(only_vm(h)->name, "fc1");
	assert_int_equal(only_vm(h)->vcpu[0]->thread->tid, 1401);
	/* The process goes on without its VM. */
	unmake(h, "proc/1400/fd/12");
	unmake(h, "proc/1400/fd/13");
	tick(h);
	assert_int_equal(inventory_nvm(h->inv), 0);
}

static void a_pid_is_used_again(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;
	uint32_t id;

	qemu(h, 1500, "first", 1, false);
	start(h, NULL);
	id = only_vm(h)->id;
	unmake(h, "proc/1500");
	process(h, 1500, "firecracker", 7000, 0, "firecracker --id second", "/");
	descriptor(h, 1500, 10, "anon_inode:kvm-vm");
	for (int i = 0; i < 3; i++)
		tick(h);
	vm = only_vm(h);
	assert_int_not_equal(vm->id, id);
	assert_string_equal(vm->name, "second");
	assert_int_equal(vm->start, 7000);
	/* A thread's number too: another start is another thread. */
	thread_of(h, 1500, 1510, "fc_vcpu 0", 7001, 0);
	for (int i = 0; i < 10; i++)
		tick(h);
	assert_int_equal(inventory_thread(h->inv, 1510)->start, 7001);
	thread_of(h, 1500, 1510, "fc_api", 7500, 0);
	for (int i = 0; i < 90; i++)
		tick(h);
	assert_int_equal(inventory_thread(h->inv, 1510)->start, 7500);
}

/* Its threads cannot be listed any more: gone, and no error. */
static void a_vm_ends_in_the_middle_of_a_look(void **state)
{
	struct host *h = *state;

	qemu(h, 1600, "ends", 1, true);
	qemu(h, 1700, "stays", 1, true);
	start(h, NULL);
	assert_int_equal(inventory_nvm(h->inv), 2);
	unmake(h, "proc/1600/task");
	for (int i = 0; i < 10; i++)
		tick(h);
	assert_string_equal(only_vm(h)->name, "stays");
}

/* Descriptors of others may not be read: threads with a vCPU's name or guest time. */
static void guessed_without_rights(void **state)
{
	struct host *h = *state;
	bool root = !geteuid();
	struct inv_vm *vm;
	char path[128];

	qemu(h, 1800, "guessed", 2, false);
	qemu(h, 1900, "tcg", 0, false);
	put_stat(h, "proc/1900", 1900, "qemu-system-x86", 4194304, 1, 5000, 0);
	for (int pid = 1800; pid <= 1900; pid += 100) {
		snprintf(path, sizeof(path), "%s/proc/%d/fd", h->dir, pid);
		assert_int_equal(chmod(path, 0), 0);
	}
	if (root)
		assert_int_equal(seteuid(65534), 0);
	start(h, NULL);
	tick(h);
	if (root)
		assert_int_equal(seteuid(0), 0);
	vm = only_vm(h);
	assert_string_equal(vm->name, "guessed");
	assert_true(vm->flags & INV_GUESSED);
	assert_int_equal(vm->nvcpu, 2);
	assert_true(vm->vcpu[0]->flags & INV_GUESSED);
	assert_int_equal(vm->vcpu[1]->thread->tid, 1802);
	assert_int_equal(vm->vcpu[1]->index, 1);
	for (int pid = 1800; pid <= 1900; pid += 100) {
		snprintf(path, sizeof(path), "%s/proc/%d/fd", h->dir, pid);
		assert_int_equal(chmod(path, 0755), 0);
	}
}

/* Without names too; a vCPU that was idle at first is found when it has run. */
static void guessed_by_guest_time(void **state)
{
	struct host *h = *state;
	bool root = !geteuid();
	char path[128];

	process(h, 2800, "myvmm", 5000, 9, "myvmm", "/");
	thread_of(h, 2800, 2801, "myvmm", 5001, 0);
	thread_of(h, 2800, 2802, "myvmm", 5001, 4);
	snprintf(path, sizeof(path), "%s/proc/2800/fd", h->dir);
	assert_int_equal(chmod(path, 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	start(h, NULL);
	assert_int_equal(only_vm(h)->nvcpu, 1);
	assert_int_equal(only_vm(h)->vcpu[0]->thread->tid, 2802);
	if (root)
		assert_int_equal(seteuid(0), 0);
	thread_of(h, 2800, 2801, "myvmm", 5001, 2);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	for (int i = 0; i < 10; i++)
		tick(h);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(only_vm(h)->nvcpu, 2);
	assert_int_equal(only_vm(h)->vcpu[0]->thread->tid, 2802);
	assert_int_equal(only_vm(h)->vcpu[1]->thread->tid, 2801);
	assert_int_equal(chmod(path, 0755), 0);
}

/* It was a VMM, ran another program and ended: it has guest time still, and descriptors no more. */
static void a_zombie_is_no_vm(void **state)
{
	static const char zombie[] = "2900 (sleep) Z 1 1 1 0 -1 4194308 1 0 0 0 9 0 0 0 20 0 1 0 "
				     "5000 0 0 18446744073709551615 0 0 0 0 0 0 6 0 0 0 0 -1 1 0 0 "
				     "0 9 0 0 0 0 0 0 0 0 0\n";
	struct host *h = *state;
	bool root = !geteuid();
	char path[128];

	process(h, 2900, "sleep", 5000, 9, "", "/");
	thread_of(h, 2900, 2900, "sleep", 5000, 9);
	put(h, zombie, strlen(zombie), "proc/2900/stat");
	snprintf(path, sizeof(path), "%s/proc/2900/fd", h->dir);
	assert_int_equal(chmod(path, 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	start(h, NULL);
	for (int i = 0; i < 10; i++)
		tick(h);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(inventory_nvm(h->inv), 0);
	/* The same alive is one: descriptors that may not be read, and guest time. */
	process(h, 2900, "sleep", 5000, 9, "", "/");
	thread_of(h, 2900, 2900, "sleep", 5000, 9);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	for (int i = 0; i < 60; i++)
		tick(h);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(only_vm(h)->nvcpu, 1);
	assert_int_equal(chmod(path, 0755), 0);
}

static void an_event_of_an_unknown_thread(void **state)
{
	struct host *h = *state;
	struct inv_thread *t, *u;
	uint32_t id;

	start(h, NULL);
	tick(h);
	qemu(h, 2000, "quick", 2, true);
	t = inventory_provisional(h->inv, 2001, 0);
	u = inventory_provisional(h->inv, 2002, 0);
	id = t->vm->id;
	/* As the model does where an event names its vCPU. */
	inventory_set_thread(h->inv, inventory_add_vcpu(h->inv, t->vm, 0), t);
	inventory_set_thread(h->inv, inventory_add_vcpu(h->inv, u->vm, 1), u);
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	/* The provisional VM became the true one: whatever hangs on it stays. */
	assert_ptr_equal(only_vm(h), inventory_vm(h->inv, id));
	assert_string_equal(only_vm(h)->name, "quick");
	assert_ptr_equal(inventory_thread(h->inv, 2001), t);
	assert_ptr_equal(t->vcpu, only_vm(h)->vcpu[0]);
	assert_ptr_equal(u->vm, t->vm);
	assert_int_equal(only_vm(h)->nvcpu, 2);
	assert_ptr_equal(u->vcpu, only_vm(h)->vcpu[1]);
	assert_int_equal(u->nvcpus, 1);
	assert_false(u->vcpu->index_guessed);
	assert_int_equal(t->flags, 0);
	tick(h);
	assert_string_equal(only_vm(h)->name, "quick");
}

/* Another VM that is new at the same time is not taken for the one of the event. */
static void an_event_beside_another_new_vm(void **state)
{
	struct host *h = *state;
	struct inv_thread *t;
	struct inv_vm *vm;

	start(h, NULL);
	qemu(h, 2600, "other", 1, true);
	qemu(h, 2700, "mine", 1, true);
	t = inventory_provisional(h->inv, 2701, 0);
	vm = t->vm;
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	tick(h);
	assert_int_equal(inventory_nvm(h->inv), 2);
	assert_ptr_equal(t->vm, vm);
	assert_string_equal(vm->name, "mine");
	assert_ptr_not_equal(inventory_thread(h->inv, 2601)->vm, vm);
}

/* An old process may become a VMM long after it was looked at first. */
static void a_vm_in_an_old_process(void **state)
{
	struct host *h = *state;

	start(h, NULL);
	descriptor(h, 123, 4, "anon_inode:kvm-vm");
	for (int i = 0; i < 61; i++)
		tick(h);
	assert_string_equal(only_vm(h)->name, "sshd:123");
}

static void an_event_of_a_thread_that_is_gone(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;

	start(h, NULL);
	vm = inventory_provisional(h->inv, 2222, 0)->vm;
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	assert_true(vm->flags & INV_GONE);
	assert_string_equal(vm->name, "tid:2222");
	tick(h);
	assert_null(inventory_first(h->inv));
}

/* A process that ended before it was looked at: its threads' events are those of one VM. */
static void events_of_a_process_that_is_gone(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm[3], *one;
	struct inv_thread *t[3];

	start(h, NULL);
	for (int i = 0; i < 3; i++) {
		t[i] = inventory_provisional(h->inv, 2241 + i, i < 2 ? 2240 : 2250);
		vm[i] = t[i]->vm;
	}
	inventory_set_thread(h->inv, inventory_add_vcpu(h->inv, vm[1], 1), t[1]);
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	one = t[0]->vm;
	assert_ptr_equal(one, t[1]->vm);
	assert_ptr_equal(t[2]->vm, vm[2]);
	assert_string_equal(one->name, "pid:2240");
	assert_int_equal(one->pid, 2240);
	assert_string_equal(vm[2]->name, "pid:2250");
	assert_int_equal(one->nthread, 2);
	assert_ptr_equal(inventory_ended_thread(h->inv, 2242), t[1]);
	for (int i = 0; i < 3; i++)
		assert_true(t[i]->flags & INV_GONE && vm[i]->flags & INV_GONE);
	tick(h);
	assert_null(inventory_first(h->inv));
}

/* One of them was found in time: what the others did is that VM's. */
static void events_of_a_thread_that_is_gone_of_a_known_vm(void **state)
{
	struct host *h = *state;
	struct inv_thread *t;
	struct inv_vm *vm;

	start(h, NULL);
	qemu(h, 2900, "short", 1, true);
	tick(h);
	t = inventory_provisional(h->inv, 2944, 2900);
	vm = t->vm;
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	assert_ptr_equal(t->vm, only_vm(h));
	assert_string_equal(t->vm->name, "short");
	assert_true(t->flags & INV_GONE && vm->flags & INV_GONE);
	assert_false(t->vm->flags & INV_GONE);
	tick(h);
	assert_int_equal(only_vm(h)->pid, 2900);
}

/* The other way round: the first one ended before, and then its VM was found. */
static void a_vm_of_which_a_thread_is_gone(void **state)
{
	struct host *h = *state;
	struct inv_thread *t, *u;

	start(h, NULL);
	tick(h);
	qemu(h, 2900, "short", 1, true);
	t = inventory_provisional(h->inv, 2944, 2900);
	u = inventory_provisional(h->inv, 2901, 2900);
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	assert_string_equal(u->vm->name, "short");
	assert_ptr_equal(t->vm, u->vm);
	assert_true(t->flags & INV_GONE);
	tick(h);
	assert_ptr_equal(only_vm(h), u->vm);
}

/* Nothing but the event says that it is a VM. */
static void an_event_of_a_process_that_shows_nothing(void **state)
{
	struct host *h = *state;
	struct inv_thread *t;

	process(h, 2300, "strange", 5000, 0, "strange", "/");
	thread_of(h, 2300, 2301, "worker", 5001, 0);
	start(h, NULL);
	assert_int_equal(inventory_nvm(h->inv), 0);
	t = inventory_provisional(h->inv, 2301, 0);
	assert_int_equal(vms_resolve(h->vms, h->now), 0);
	assert_string_equal(only_vm(h)->name, "strange:2300");
	assert_true(only_vm(h)->flags & INV_GUESSED);
	assert_ptr_equal(only_vm(h)->vcpu[0]->thread, t);
	for (int i = 0; i < 20; i++)
		tick(h);
	assert_ptr_equal(only_vm(h)->vcpu[0]->thread, t);
}

/* Before 6.4 vhost's threads were kernel threads of their own, with the owner in the name. */
static void kernel_threads_that_help(void **state)
{
	struct host *h = *state;
	struct inv_thread *t;

	qemu(h, 2400, "net", 1, true);
	put_stat(h, "proc/2450", 2450, "vhost-2400", 2129984, 1, 5002, 0);
	put_stat(h, "proc/2451", 2451, "vhost-123", 2129984, 1, 5002, 0);
	start(h, NULL);
	t = inventory_thread(h->inv, 2450);
	assert_non_null(t);
	assert_int_equal(t->role, ROLE_HELPER);
	assert_int_equal(t->pid, 2450);
	assert_string_equal(t->comm, "vhost-2400");
	assert_ptr_equal(t->vm, only_vm(h));
	assert_null(inventory_thread(h->inv, 2451));
	for (int i = 0; i < 10; i++)
		tick(h);
	assert_ptr_equal(inventory_thread(h->inv, 2450), t);
	unmake(h, "proc/2450");
	for (int i = 0; i < 4; i++)
		tick(h); /* where debugfs tells of VMs, processes are listed every fourth time */
	assert_null(inventory_thread(h->inv, 2450));
}

/* debugfs is mounted while we run: known VMs stay the same, and gain what it knows. */
static void debugfs_comes_later(void **state)
{
	struct host *h = *state;
	struct inv_vm *vm;
	uint32_t id;

	process(h, 2500, "late", 5000, 0, "late", "/");
	descriptor(h, 2500, 4, "anon_inode:kvm-vm");
	descriptor(h, 2500, 5, "anon_inode:kvm-vcpu:0");
	thread_of(h, 2500, 2501, "late", 5001, 0);
	start(h, NULL);
	id = only_vm(h)->id;
	assert_null(only_vm(h)->vcpu[0]->thread);
	kvm_vcpu(h, "2500-4", 0, 2501);
	tick(h);
	vm = only_vm(h);
	assert_int_equal(vm->id, id);
	assert_int_equal(vm->vcpu[0]->thread->tid, 2501);
	unmake(h, "sys/kernel");
	tick(h);
	assert_int_equal(only_vm(h)->id, id);
}

int main(void)
{
#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(the_recorded_vm),
		WITH(qemu_under_libvirt_without_debugfs),
		WITH(vcpus_by_guest_time),
		WITH(debugfs_names_a_thread),
		WITH(the_maker_is_another_by_now),
		WITH(two_vms_in_one_process),
		WITH(two_vms_in_one_process_without_debugfs),
		WITH(a_vm_without_a_folder),
		WITH(vcpus_sort_by_number),
		WITH(two_vms_of_one_name),
		WITH(a_vm_comes_and_goes),
		WITH(a_vm_comes_without_debugfs),
		WITH(a_pid_is_used_again),
		WITH(a_vm_ends_in_the_middle_of_a_look),
		WITH(guessed_without_rights),
		WITH(guessed_by_guest_time),
		WITH(a_zombie_is_no_vm),
		WITH(an_event_of_an_unknown_thread),
		WITH(an_event_beside_another_new_vm),
		WITH(a_vm_in_an_old_process),
		WITH(an_event_of_a_thread_that_is_gone),
		WITH(events_of_a_process_that_is_gone),
		WITH(events_of_a_thread_that_is_gone_of_a_known_vm),
		WITH(a_vm_of_which_a_thread_is_gone),
		WITH(an_event_of_a_process_that_shows_nothing),
		WITH(kernel_threads_that_help),
		WITH(debugfs_comes_later),
	};

	return cmocka_run_group_tests_name("vms", tests, NULL, NULL);
}
