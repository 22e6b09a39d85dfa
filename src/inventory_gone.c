// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of VMs, vCPUs and threads in the inventory.
 *
 * What ends is taken out of the hashes at once, so that a reused number never finds it, and
 * stays in the lists until a sweep, so that its last interval can be shown. Ended threads
 * have a hash of their own: their last events come after their end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "inventory_priv.h"

static void free_thread(struct inventory *inv, struct inv_thread *t)
{
	struct thread_node *node = container(t, struct thread_node, t);

	for (size_t i = 0; i < inv->nobserver; i++)
		if (inv->observer[i].thread_free)
			inv->observer[i].thread_free(inv->observer[i].ctx, t);
	inv_hash_del(t->flags & INV_GONE ? &inv->ended : &inv->tids, &node->by_tid);
	free(node);
}

static void free_vcpu(struct inventory *inv, struct inv_vcpu *v)
{
	for (size_t i = 0; i < inv->nobserver; i++)
		if (inv->observer[i].vcpu_free)
			inv->observer[i].vcpu_free(inv->observer[i].ctx, v);
	free(v->xml_pin);
	free(v);
}

void inventory_free_vm(struct inventory *inv, struct inv_vm *vm)
{
	struct vm_node *node = node_of_vm(vm);
	struct inv_thread *t;

	for (size_t i = 0; i < vm->nvcpu; i++)
		free_vcpu(inv, vm->vcpu[i]);
	while ((t = vm->threads)) {
		vm->threads = t->next;
		free_thread(inv, t);
	}
	for (size_t i = 0; i < inv->nobserver; i++)
		if (inv->observer[i].vm_free)
			inv->observer[i].vm_free(inv->observer[i].ctx, vm);
	inv_hash_del(&inv->ids, &node->by_id);
	inv_hash_del(&inv->pids, &node->by_pid);
	free(vm->vcpu);
	free(vm->name);
	free(vm->uuid);
	free(vm->title);
	free(vm->nova);
	free(vm->cmdline);
	free(vm->cgroup);
	free(node);
}

void inventory_thread_gone(struct inventory *inv, struct inv_thread *t)
{
	struct thread_node *node = container(t, struct thread_node, t);

	if (t->flags & INV_GONE)
		return;
	t->flags |= INV_GONE;
	inv_hash_del(&inv->tids, &node->by_tid);
	inv_hash_add(&inv->ended, &node->by_tid, (uint32_t)t->tid);
	inv->ngone++;
	inv->generation++;
}

void inventory_vcpu_gone(struct inventory *inv, struct inv_vcpu *v)
{
	if (v->flags & INV_GONE)
		return;
	v->flags |= INV_GONE;
	inv->nvcpu--;
	inv->ngone++;
	inv->generation++;
}

/*
 * The process may hold another VM: its threads live on there. Those that ran only this
 * VM's vCPUs end with it, so that its last interval keeps its figures; where they still
 * exist they are found again as new threads of the other VM.
 */
static void leave_threads(struct inventory *inv, struct inv_vm *vm, struct inv_vm *heir)
{
	struct inv_thread *t, *next;

	for (t = vm->threads; t; t = next) {
		struct inv_vcpu *v = heir && t->nvcpus ? inventory_other_vcpu(inv, t) : NULL;

		next = t->next;
		if (v) {
			t->vcpu = v;
			inventory_move_thread(inv, t, v->vm);
		} else if (heir && t->role != ROLE_VCPU) {
			inventory_move_thread(inv, t, heir);
		} else {
			inventory_thread_gone(inv, t);
		}
	}
}

void inventory_vm_gone(struct inventory *inv, struct inv_vm *vm)
{
	struct inv_vm *heir;

	if (vm->flags & INV_GONE)
		return;
	vm->flags |= INV_GONE;
	inv_hash_del(&inv->pids, &node_of_vm(vm)->by_pid);
	heir = vm->flags & INV_PROVISIONAL ? NULL : inventory_next_of_pid(inv, vm->pid, NULL);
	if (heir && heir->start != vm->start)
		heir = NULL;
	leave_threads(inv, vm, heir);
	for (size_t i = 0; i < vm->nvcpu; i++)
		inventory_vcpu_gone(inv, vm->vcpu[i]);
	inv->nvm--;
	inv->ngone++;
	inv->generation++;
}

/* Made of events of the process's threads, which ended before it was looked at. */
static bool is_of_ended(const struct inv_vm *vm, pid_t pid)
{
	return (vm->flags & (INV_PROVISIONAL | INV_GONE)) == (INV_PROVISIONAL | INV_GONE) &&
	       vm->threads && vm->threads->pid == pid;
}

/*
 * The process's only VM, else the one that stands for those of its threads that ended; or NULL.
 * One whose last interval was shown counts where there is no other: its events came late.
 */
static struct inv_vm *fellow(struct inventory *inv, const struct inv_vm *vm, pid_t pid)
{
	struct inv_vm *real = NULL, *last = NULL, *gone = NULL;
	bool several[2] = {false, false};

	for (struct inv_vm *f = inv->first; f; f = f->next) {
		bool late = f->flags & INV_LAST;
		struct inv_vm **of = late ? &last : &real;

		if (f == vm)
			continue;
		if (f->flags & INV_PROVISIONAL) {
			if (is_of_ended(f, pid) && (!gone || !late))
				gone = f;
		} else if (f->pid == pid) {
			several[late] |= *of != NULL;
			*of = f;
		}
	}
	real = real ? real : last;
	if (!real)
		return gone;
	return several[real == last] ? NULL : real; /* whose the thread was is not known */
}

void inventory_adopt(struct inventory *inv, struct inv_vm *vm)
{
	if (!inv->ngone || vm->nth)
		return;
	for (struct inv_vm *f = inv->first; f; f = f->next)
		while (is_of_ended(f, vm->pid))
			inventory_move_thread(inv, f->threads, vm);
}

void inventory_provisional_gone(struct inventory *inv, struct inv_vm *vm, const char *comm,
				pid_t pid)
{
	struct inv_thread *t = vm->threads;
	struct inv_vm *to = NULL;
	char name[64];

	if (t && pid > 0)
		t->pid = pid;
	if (t)
		to = fellow(inv, vm, t->pid);
	if (to) {
		inventory_move_thread(inv, t, to);
		inventory_thread_gone(inv, t);
		to->flags &= (uint8_t)~INV_LAST; /* there is more to show of it */
	}
	inventory_vm_gone(inv, vm);
	to = to ? to : vm;
	if (!t || !(to->flags & INV_PROVISIONAL))
		return;
	if (pid > 0 || to != vm || t->pid != t->tid)
		snprintf(name, sizeof(name), "%s:%d", pid > 0 ? comm : "pid", (int)t->pid);
	else
		snprintf(name, sizeof(name), "tid:%d", (int)t->tid);
	inventory_set(&to->name, name);
	to->pid = t->pid; /* out of the hash by now */
}

/* No vCPU may point to a thread that is about to be freed, whichever VM it is of. */
static void detach_thread(struct inventory *inv, struct inv_thread *t)
{
	for (struct inv_vm *vm = inv->first; vm && t->nvcpus; vm = vm->next) {
		if (vm->pid != t->vm->pid)
			continue;
		for (size_t i = 0; i < vm->nvcpu; i++)
			if (vm->vcpu[i]->thread == t)
				inventory_set_thread(inv, vm->vcpu[i], NULL);
	}
}

/* True when it is to be freed; else it is marked for the next time. */
static bool sweep_one(struct inventory *inv, uint8_t *flags, bool all)
{
	if (!(*flags & INV_GONE))
		return false;
	if (all || *flags & INV_LAST)
		return true;
	*flags |= INV_LAST;
	inv->ngone++;
	return false;
}

static void sweep_vcpus(struct inventory *inv, struct inv_vm *vm, bool all)
{
	size_t keep = 0;

	/* First all threads let go: that looks at the VM's other vCPUs, so none is freed yet. */
	for (size_t i = 0; i < vm->nvcpu; i++)
		if (vm->vcpu[i]->flags & INV_GONE && (all || vm->vcpu[i]->flags & INV_LAST))
			inventory_set_thread(inv, vm->vcpu[i], NULL);
	for (size_t i = 0; i < vm->nvcpu; i++) {
		if (sweep_one(inv, &vm->vcpu[i]->flags, all))
			free_vcpu(inv, vm->vcpu[i]);
		else
			vm->vcpu[keep++] = vm->vcpu[i];
	}
	vm->nvcpu = keep;
}

static void sweep_vm(struct inventory *inv, struct inv_vm *vm, bool all)
{
	struct inv_thread **p = &vm->threads, *t;

	sweep_vcpus(inv, vm, all);
	while ((t = *p)) {
		if (!sweep_one(inv, &t->flags, all)) {
			p = &t->next;
			continue;
		}
		detach_thread(inv, t);
		*p = t->next;
		vm->nthread--;
		free_thread(inv, t);
	}
}

static void sweep(struct inventory *inv, bool all)
{
	struct inv_vm **p = &inv->first, *vm;

	if (!inv->ngone)
		return;
	inv->ngone = 0;
	for (vm = inv->first; vm; vm = vm->next)
		sweep_vm(inv, vm, all || vm->flags & INV_LAST);
	while ((vm = *p)) {
		if (!sweep_one(inv, &vm->flags, all)) {
			p = &vm->next;
			continue;
		}
		*p = vm->next;
		inventory_free_vm(inv, vm);
	}
	inv->tail = p;
	inv->generation++;
}

void inventory_sweep(struct inventory *inv)
{
	sweep(inv, true);
}

void inventory_sweep_old(struct inventory *inv)
{
	sweep(inv, false);
}
