// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is there now: the lists and the hashes (tid, VM id, pid) behind inventory.h.
 *
 * What ends is in inventory_gone.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "inventory_priv.h"

struct inventory *inventory_new(void)
{
	struct inventory *inv = calloc(1, sizeof(*inv));

	if (!inv)
		return NULL;
	inv->tail = &inv->first;
	if (inv_hash_init(&inv->tids) && inv_hash_init(&inv->ended) && inv_hash_init(&inv->ids) &&
	    inv_hash_init(&inv->pids))
		return inv;
	inventory_free(inv);
	return NULL;
}

int inventory_observe(struct inventory *inv, const struct inv_observer *o)
{
	if (inv->nobserver == MAX_OBSERVERS)
		return -ENOSPC;
	inv->observer[inv->nobserver++] = *o;
	return 0;
}

void inventory_unobserve(struct inventory *inv, const void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < inv->nobserver; i++)
		if (inv->observer[i].ctx != ctx)
			inv->observer[kept++] = inv->observer[i];
	inv->nobserver = kept;
}

void inventory_free(struct inventory *inv)
{
	struct inv_vm *vm;

	if (!inv)
		return;
	while ((vm = inv->first)) {
		inv->first = vm->next;
		inventory_free_vm(inv, vm);
	}
	inv_hash_free(&inv->tids);
	inv_hash_free(&inv->ended);
	inv_hash_free(&inv->ids);
	inv_hash_free(&inv->pids);
	free(inv->unknown);
	free(inv);
}

struct inv_vm *inventory_first(struct inventory *inv)
{
	return inv->first;
}

size_t inventory_nvm(const struct inventory *inv)
{
	return inv->nvm;
}

size_t inventory_nvcpu(const struct inventory *inv)
{
	return inv->nvcpu;
}

uint64_t inventory_generation(const struct inventory *inv)
{
	return inv->generation;
}

void inventory_touch(struct inventory *inv)
{
	inv->generation++;
}

struct inv_vm *inventory_vm(struct inventory *inv, uint32_t id)
{
	struct inv_link *l = inv_hash_get(&inv->ids, id);

	return l ? &container(l, struct vm_node, by_id)->vm : NULL;
}

struct inv_vm *inventory_next_of_pid(const struct inventory *inv, pid_t pid, struct inv_vm *vm)
{
	struct inv_link *l = vm ? inv_hash_next(&node_of_vm(vm)->by_pid)
				: inv_hash_get(&inv->pids, (uint32_t)pid);

	return l ? &container(l, struct vm_node, by_pid)->vm : NULL;
}

struct inv_vm *inventory_find(struct inventory *inv, pid_t pid, uint64_t start, const char *key)
{
	struct inv_vm *vm = NULL;

	while ((vm = inventory_next_of_pid(inv, pid, vm)))
		if (vm->start == start && !strcmp(vm->key, key))
			return vm;
	return NULL;
}

int inventory_set(char **member, const char *text)
{
	char *copy = NULL;

	if (text && *member && !strcmp(*member, text))
		return 0; /* most are told again and again */
	if (text) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*member);
	*member = copy;
	return 0;
}

/* Which of its process's VMs it is, in the order found; a number is not given twice while one
 * lives. */
static unsigned number_in_process(const struct inventory *inv, pid_t pid, uint64_t start)
{
	struct inv_vm *vm = NULL;
	unsigned n = 0;

	while ((vm = inventory_next_of_pid(inv, pid, vm)))
		if (vm->start == start && vm->nth >= n)
			n = vm->nth + 1;
	return n;
}

static struct inv_vm *new_vm(struct inventory *inv, pid_t pid, uint64_t start, const char *key,
			     const char *prefix)
{
	struct vm_node *node = calloc(1, sizeof(*node));
	struct inv_vm *vm;
	char name[32];

	if (!node)
		return NULL;
	vm = &node->vm;
	snprintf(name, sizeof(name), "%s:%d", prefix, (int)pid);
	if (inventory_set(&vm->name, name)) {
		free(node);
		return NULL;
	}
	vm->id = ++inv->last_vm;
	vm->pid = pid;
	vm->start = start;
	vm->nth = number_in_process(inv, pid, start);
	snprintf(vm->key, sizeof(vm->key), "%s", key);
	inv_hash_add(&inv->ids, &node->by_id, vm->id);
	inv_hash_add(&inv->pids, &node->by_pid, (uint32_t)pid);
	*inv->tail = vm;
	inv->tail = &vm->next;
	inv->nvm++;
	inv->generation++;
	return vm;
}

struct inv_vm *inventory_add_vm(struct inventory *inv, pid_t pid, uint64_t start, const char *key)
{
	struct inv_vm *vm = inventory_find(inv, pid, start, key);

	if (vm)
		return vm;
	vm = new_vm(inv, pid, start, key, "pid");
	if (vm)
		inventory_adopt(inv, vm);
	return vm;
}

/* Where kvm_id stands in vm->vcpu, or would be put in. */
static size_t vcpu_place(const struct inv_vm *vm, int kvm_id)
{
	size_t lo = 0, hi = vm->nvcpu;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (vm->vcpu[mid]->kvm_id < kvm_id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct inv_vcpu *inventory_vcpu(const struct inv_vm *vm, int kvm_id)
{
	size_t i = vcpu_place(vm, kvm_id);

	/* A gone one and its successor of the same id stand side by side until the sweep. */
	for (; i < vm->nvcpu && vm->vcpu[i]->kvm_id == kvm_id; i++)
		if (!(vm->vcpu[i]->flags & INV_GONE) || (vm->flags & INV_GONE))
			return vm->vcpu[i];
	return NULL;
}

static int vcpu_reserve(struct inv_vm *vm)
{
	struct vm_node *node = node_of_vm(vm);

	return grow(&vm->vcpu, vm->nvcpu, &node->vcpu_room, sizeof(struct inv_vcpu *)) ? 0
										       : -ENOMEM;
}

struct inv_vcpu *inventory_add_vcpu(struct inventory *inv, struct inv_vm *vm, int kvm_id)
{
	struct inv_vcpu *v = inventory_vcpu(vm, kvm_id);
	size_t at;

	if (v)
		return v;
	if (vm->flags & INV_GONE || vcpu_reserve(vm))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	at = vcpu_place(vm, kvm_id);
	memmove(vm->vcpu + at + 1, vm->vcpu + at, (vm->nvcpu - at) * sizeof(struct inv_vcpu *));
	vm->vcpu[at] = v;
	vm->nvcpu++;
	v->id = ++inv->last_vcpu;
	v->vm = vm;
	v->kvm_id = kvm_id;
	v->index = kvm_id;
	v->index_guessed = true;
	inv->nvcpu++;
	inv->generation++;
	return v;
}

struct inv_thread *inventory_thread(const struct inventory *inv, pid_t tid)
{
	struct inv_link *l = inv_hash_get(&inv->tids, (uint32_t)tid);

	return l ? &container(l, struct thread_node, by_tid)->t : NULL;
}

struct inv_thread *inventory_ended_thread(const struct inventory *inv, pid_t tid)
{
	struct inv_link *l = inv_hash_get(&inv->ended, (uint32_t)tid);

	return l ? &container(l, struct thread_node, by_tid)->t : NULL;
}

static void unlink_thread(struct inv_thread *t)
{
	struct inv_thread **p = &t->vm->threads;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	t->vm->nthread--;
}

static void link_thread(struct inv_thread *t, struct inv_vm *vm)
{
	struct inv_thread **p = &vm->threads;

	while (*p)
		p = &(*p)->next;
	*p = t;
	t->next = NULL;
	t->vm = vm;
	vm->nthread++;
}

void inventory_move_thread(struct inventory *inv, struct inv_thread *t, struct inv_vm *to)
{
	if (t->vm == to)
		return;
	/* A provisional VM's vCPUs were seen in events only: its thread leaves them behind. */
	for (size_t i = 0; t->vm->flags & INV_PROVISIONAL && i < t->vm->nvcpu; i++)
		if (t->vm->vcpu[i]->thread == t)
			inventory_set_thread(inv, t->vm->vcpu[i], NULL);
	unlink_thread(t);
	link_thread(t, to);
	inv->generation++;
}

static struct inv_thread *new_thread(struct inventory *inv, struct inv_vm *vm, pid_t tid)
{
	struct thread_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->t.tid = tid;
	inv_hash_add(&inv->tids, &node->by_tid, (uint32_t)tid);
	link_thread(&node->t, vm);
	inv->generation++;
	return &node->t;
}

struct inv_thread *inventory_add_thread(struct inventory *inv, struct inv_vm *vm, pid_t pid,
					pid_t tid, uint64_t start, enum inv_role role)
{
	struct inv_thread *t = inventory_thread(inv, tid);

	/* A provisional thread has no start time: whoever has the tid now is it. */
	if (t && t->start != start && !(t->flags & INV_PROVISIONAL)) {
		inventory_thread_gone(inv, t);
		t = NULL;
	}
	if (!t)
		t = new_thread(inv, vm, tid);
	if (!t)
		return NULL;
	inventory_move_thread(inv, t, vm);
	t->flags &= (uint8_t)~INV_PROVISIONAL;
	t->pid = pid;
	t->start = start;
	if (!t->nvcpus)
		t->role = (uint8_t)role;
	return t;
}

struct inv_vcpu *inventory_other_vcpu(const struct inventory *inv, const struct inv_thread *t)
{
	struct inv_vm *vm = NULL;

	while ((vm = inventory_next_of_pid(inv, t->vm->pid, vm)))
		for (size_t i = 0; i < vm->nvcpu; i++)
			if (vm->vcpu[i]->thread == t)
				return vm->vcpu[i];
	return NULL;
}

void inventory_set_thread(struct inventory *inv, struct inv_vcpu *v, struct inv_thread *t)
{
	struct inv_thread *old = v->thread;

	if (t)
		t->vcpu = v;
	if (old == t)
		return;
	v->thread = t;
	inv->generation++;
	if (t) {
		t->nvcpus++;
		t->role = ROLE_VCPU;
	}
	if (!old)
		return;
	old->nvcpus--;
	if (old->vcpu == v)
		old->vcpu = old->nvcpus ? inventory_other_vcpu(inv, old) : NULL;
	if (!old->nvcpus && !(old->flags & INV_GONE))
		old->role = ROLE_VMM;
}

static int unknown_push(struct inventory *inv, pid_t tid)
{
	if (inv->unknown_n == inv->unknown_room) {
		size_t room = inv->unknown_room ? inv->unknown_room * 2 : 16;
		pid_t *ring = malloc(room * sizeof(*ring));

		if (!ring)
			return -ENOMEM;
		for (size_t i = 0; i < inv->unknown_n; i++)
			ring[i] = inv->unknown[(inv->unknown_head + i) % inv->unknown_room];
		free(inv->unknown);
		inv->unknown = ring;
		inv->unknown_room = room;
		inv->unknown_head = 0;
	}
	inv->unknown[(inv->unknown_head + inv->unknown_n++) % inv->unknown_room] = tid;
	return 0;
}

void inventory_on_ask(struct inventory *inv, void (*ask)(void *ctx, struct inv_thread *t),
		      void *ctx)
{
	inv->ask = ask;
	inv->ask_ctx = ctx;
}

void inventory_ask(struct inventory *inv, struct inv_thread *t)
{
	if (inv->ask && !t->vcpu && !(t->flags & (INV_PROVISIONAL | INV_GONE)))
		inv->ask(inv->ask_ctx, t);
}

void inventory_unsure(struct inventory *inv, struct inv_thread *t)
{
	if (inv->ask && !t->vcpu && !t->asked && !(t->flags & (INV_PROVISIONAL | INV_GONE)))
		t->asked = unknown_push(inv, t->tid) == 0;
}

pid_t inventory_take_unknown(struct inventory *inv)
{
	struct inv_thread *t;
	pid_t tid;

	if (!inv->unknown_n)
		return 0;
	tid = inv->unknown[inv->unknown_head];
	inv->unknown_head = (inv->unknown_head + 1) % inv->unknown_room;
	inv->unknown_n--;
	t = inventory_thread(inv, tid);
	if (t)
		t->asked = false;
	return tid;
}

struct inv_thread *inventory_provisional(struct inventory *inv, pid_t tid, pid_t pid)
{
	struct inv_thread *t = inventory_thread(inv, tid);
	struct inv_vm *vm;

	if (t)
		return t;
	vm = new_vm(inv, tid, 0, "", "tid");
	if (!vm)
		return NULL;
	vm->flags = INV_PROVISIONAL;
	t = new_thread(inv, vm, tid);
	if (!t || unknown_push(inv, tid)) {
		inventory_vm_gone(inv, vm);
		return NULL;
	}
	t->pid = pid > 0 ? pid : tid; /* perhaps the process is not known yet */
	t->role = ROLE_VCPU;
	t->flags = INV_PROVISIONAL;
	return t;
}

struct inv_vm *inventory_identify(struct inventory *inv, struct inv_vm *vm, pid_t pid,
				  uint64_t start, const char *key)
{
	struct inv_vm *known = inventory_find(inv, pid, start, key);
	struct vm_node *node = node_of_vm(vm);

	if (known == vm || vm->flags & INV_GONE)
		return known;
	if (known) {
		while (vm->threads)
			inventory_move_thread(inv, vm->threads, known);
		inventory_vm_gone(inv, vm);
		return known;
	}
	inv_hash_del(&inv->pids, &node->by_pid);
	vm->nth = number_in_process(inv, pid, start);
	vm->pid = pid;
	vm->start = start;
	snprintf(vm->key, sizeof(vm->key), "%s", key);
	vm->flags &= (uint8_t)~INV_PROVISIONAL;
	inv_hash_add(&inv->pids, &node->by_pid, (uint32_t)pid);
	inventory_adopt(inv, vm);
	inv->generation++;
	return vm;
}
