// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads of events: the hash by tid, and the relation thread → vCPU.
 *
 * The relation is the inventory's; here it is cached for the hot path and brought up to date
 * when the inventory's generation changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exits_slow.h"
#include "exits_threads.h"
#include "fetch.h"
#include "inventory.h"

#define FIRST_HASH 256

int exits_init(struct exits *x, struct inventory *inv, unsigned vcpu_keys, unsigned vm_keys)
{
	memset(x, 0, sizeof(*x));
	x->inv = inv;
	x->vcpu_keys = vcpu_keys;
	x->vm_keys = vm_keys;
	x->start = INT64_MIN;
	x->loss_to = INT64_MIN;
	x->hash = calloc(FIRST_HASH, sizeof(struct ex_thread *));
	if (!x->hash)
		return -ENOMEM;
	x->nhash = FIRST_HASH;
	return 0;
}

static void free_vcpu(struct ex_vcpu *v)
{
	if (!v)
		return;
	ex_set_free(&v->set);
	hist_free(&v->hist);
	free(v);
}

static void free_dead(struct exits *x)
{
	struct ex_vcpu *v;
	struct ex_vm *vm;

	while ((v = x->dead_vcpus)) {
		x->dead_vcpus = v->next_dead;
		free_vcpu(v);
	}
	while ((vm = x->dead_vms)) {
		x->dead_vms = vm->next_dead;
		ex_set_free(&vm->set);
		free(vm->slow);
		free(vm);
	}
}

void exits_free(struct exits *x)
{
	free_dead(x);
	free(x->hash);
	x->hash = NULL;
}

/* ---- the hash ---- */

static size_t home(const struct exits *x, int32_t tid)
{
	return (size_t)(((uint32_t)tid * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (x->nhash - 1);
}

static size_t find_place(const struct exits *x, int32_t tid)
{
	size_t i = home(x, tid);

	while (x->hash[i] && x->hash[i]->tid != tid)
		i = (i + 1) & (x->nhash - 1);
	return i;
}

static int grow(struct exits *x)
{
	struct ex_thread **old = x->hash;
	size_t nold = x->nhash;

	if (x->nthread * 2 < x->nhash)
		return 0;
	x->hash = calloc(nold * 2, sizeof(struct ex_thread *));
	if (!x->hash) {
		x->hash = old;
		return x->nthread + 1 < nold ? 0 : -ENOMEM;
	}
	x->nhash = nold * 2;
	for (size_t i = 0; i < nold; i++)
		if (old[i])
			x->hash[find_place(x, old[i]->tid)] = old[i];
	free(old);
	return 0;
}

/* Closes the gap, so that no search ends before what it looks for. */
static void remove_at(struct exits *x, size_t gap)
{
	size_t mask = x->nhash - 1;

	x->hash[gap] = NULL;
	x->nthread--;
	for (size_t i = (gap + 1) & mask; x->hash[i]; i = (i + 1) & mask) {
		size_t want = home(x, x->hash[i]->tid);

		if (((i - want) & mask) < ((i - gap) & mask))
			continue;
		x->hash[gap] = x->hash[i];
		x->hash[i] = NULL;
		gap = i;
	}
}

static void unhash(struct exits *x, struct ex_thread *t)
{
	size_t i = find_place(x, t->tid);

	for (size_t c = 0; c < EX_CPUS; c++)
		if (x->last[c] == t)
			x->last[c] = NULL;
	if (x->hash[i] == t)
		remove_at(x, i);
	t->v = NULL; /* may be freed before the thread is seen again */
}

/* ---- ahead of their events ---- */

void exits_fetch_tables(const struct ex_vcpu *v)
{
	for (int k = 0; k < KIND_NR; k++) {
		const struct ex_table *t = &v->set.kind[k];

		fetch(t->slot, t->n * sizeof(struct ex_slot));
		if (t->place)
			fetch(t->place, (t->mask + 1u) * sizeof(*t->place));
	}
	if (v->hist.used)
		fetch(v->hist.octave,
		      sizeof(*v->hist.octave) * (size_t)__builtin_popcountll(v->hist.used));
}

void exits_fetch_cells(const struct ex_vcpu *v, size_t bytes)
{
	const struct ex_cell *c;

	for (int k = 0; k < KIND_NR; k++)
		EX_EACH(&v->set.kind[k], c)
	fetch(c, bytes);
}

void exits_fetch_threads(const struct exits *x, const int32_t *tid, size_t n)
{
	const struct ex_vcpu *v[EX_FETCH];
	const struct ex_thread *t;

	n = n < EX_FETCH ? n : EX_FETCH;
	for (size_t i = 0; i < n; i++)
		fetch(&x->hash[home(x, tid[i])], sizeof(x->hash[0]));
	for (size_t i = 0; i < n; i++)
		if ((t = x->hash[home(x, tid[i])]))
			fetch(t, sizeof(*t));
	for (size_t i = 0; i < n; i++) {
		t = x->hash[find_place(x, tid[i])];
		v[i] = t ? t->v : NULL;
		if (t)
			fetch(t->inv, sizeof(*t->inv));
		if (v[i])
			fetch(v[i], sizeof(*v[i]));
	}
	for (size_t i = 0; i < n; i++)
		if (v[i])
			exits_fetch_tables(v[i]);
	for (size_t i = 0; i < n; i++)
		if (v[i])
			exits_fetch_cells(v[i], offsetof(struct ex_cell, total));
}

/* ---- thread → vCPU ---- */

static struct ex_vcpu *own_tables(struct ex_thread *t)
{
	if (!t->own)
		t->own = calloc(1, sizeof(*t->own));
	return t->own;
}

struct spill {
	struct exits *x;
	struct ex_vm *vm;
};

/* `other` is not folded into the VM, for its events were counted there at once; these were not. */
static void spill_to_vm(void *ctx, const struct ex_cell *c)
{
	const struct spill *s = ctx;
	struct ex_key k = {c->key, c->isa, c->kind, c->dir};
	struct ex_cell *to = ex_set_get(&s->vm->set, &k, s->x->vm_keys);

	if (to)
		ex_acc_add(&to->now, &c->now);
}

/*
 * What is open in `from` is newer. What is open in `to` still is, unless `from` saw another exit
 * since: a vCPU that changes threads in an exit has events without its number before the entry
 * tells whose they are.
 */
static void take_open(struct ex_vcpu *to, const struct ex_vcpu *from)
{
	if (from->pair[KIND_VMEXIT].begin > to->last) {
		to->open = 0;
		to->read_timed = from->read_timed;
	}
	if (from->open & KIND_BIT(KIND_VMEXIT)) {
		to->rip = from->rip;
		to->tid = from->tid;
	}
	to->in_vmm = from->in_vmm;
	to->open_off_ns = from->open_off_ns;
	to->open_off_since = from->open_off_since;
	to->open_blind = from->open_blind;
	for (unsigned k = 0; k < KIND_HALT; k++) {
		if (from->open & KIND_BIT(k) || (k == KIND_USEREXIT && from->in_vmm))
			to->pair[k] = from->pair[k];
		to->pair[k].cell = to->pair[k].vm_cell = NULL;
	}
	to->open |= from->open;
	to->last = from->last;
}

/* What `from` collected belongs to `to`; open pairs find their new cells when they end. */
static void take_vcpu(struct exits *x, struct ex_vcpu *to, struct ex_vcpu *from)
{
	struct spill spill = {x, to->vm};

	ex_set_take(&to->set, &from->set, x->vcpu_keys, spill_to_vm, &spill);
	hist_merge(&to->hist, &from->hist);
	hist_free(&from->hist);
	to->exit_ns += from->exit_ns;
	to->off_ns += from->off_ns;
	to->off_blind |= from->off_blind;
	to->dropped += from->dropped;
	to->touched |= from->touched;
	to->torn |= from->torn;
	if (from->last > to->last)
		take_open(to, from);
	from->exit_ns = from->off_ns = from->open_off_ns = from->dropped = 0;
	from->off_blind = from->touched = from->torn = from->in_vmm = false;
	from->open = 0;
}

static struct inv_vcpu *living_vcpu(const struct inv_thread *t)
{
	/* An ended thread's last events are its vCPU's, which ended with it. */
	if (!t->vcpu || (t->vcpu->flags & INV_GONE && !(t->flags & INV_GONE)))
		return NULL;
	/* One process can hold several VMs; a provisional one's vCPU is not the thread's any more.
	 */
	if (t->vcpu->vm != t->vm && t->vcpu->vm->pid != t->vm->pid)
		return NULL;
	return t->vcpu;
}

/*
 * Only what was collected before its vCPU was known moves; a vCPU's own figures never do, nor what
 * is of one of several.
 */
static void set_vcpu(struct exits *x, struct ex_thread *t, struct ex_vcpu *v, bool one_of_several)
{
	struct ex_vcpu *old = t->v;
	bool was_one = t->one_of_several;

	t->v = v;
	t->kvm_id = v->inv ? v->inv->kvm_id : -1;
	t->one_of_several = one_of_several;
	if (!old || old == v || was_one)
		return;
	if (old == t->own || (old->vm && old->vm->provisional && old->vm != v->vm))
		take_vcpu(x, v, old);
}

static int relate(struct exits *x, struct ex_thread *t)
{
	struct inv_vcpu *iv = living_vcpu(t->inv);
	/* It runs several in turn, and no event says which: theirs are the VM's, and no vCPU's. */
	bool one_of_several = iv && t->inv->nvcpus > 1 && !x->seen;
	struct ex_vcpu *v = iv && !one_of_several ? state_ex_vcpu(iv) : own_tables(t);
	struct ex_vm *vm = state_ex_vm(iv ? iv->vm : t->inv->vm);
	struct ex_vm *old = t->v ? t->v->vm : NULL;

	if (!v || !vm)
		return -ENOMEM;
	if (!vm->gen)
		vm->gen = ++x->gens;
	v->vm = vm;
	/* Cells point into the old VM's table: it must be emptied before they are looked up. */
	if (old && old != vm && old->provisional) {
		ex_set_take(&vm->set, &old->set, x->vm_keys, NULL, NULL);
		ex_slow_take(vm, old);
	}
	if (old != vm) {
		vm->gen = ++x->gens;
		if (v == t->v)
			for (unsigned k = 0; k < KIND_HALT; k++)
				v->pair[k].cell = v->pair[k].vm_cell = NULL;
	}
	set_vcpu(x, t, v, one_of_several);
	x->astray = x->astray || (t->own && t->own->vm && t->own->vm != state_ex_vm(t->inv->vm));
	return 0;
}

bool exits_known_thread(const struct exits *x, int32_t tid)
{
	return x->hash[find_place(x, tid)] || inventory_thread(x->inv, tid) ||
	       inventory_ended_thread(x->inv, tid);
}

struct ex_thread *exits_thread(struct exits *x, int32_t tid, int32_t pid)
{
	size_t i = find_place(x, tid);
	struct ex_thread *t = x->hash[i];
	struct inv_thread *inv;

	if (t)
		return t;
	if (tid <= 0 || grow(x))
		return NULL;
	inv = inventory_thread(x->inv, tid);
	if (!inv)
		inv = inventory_ended_thread(x->inv, tid);
	if (!inv)
		inv = inventory_provisional(x->inv, tid, pid);
	if (inv)
		inventory_ask(x->inv, inv);
	t = inv ? state_ex_thread(inv) : NULL;
	if (!t)
		return NULL;
	t->tid = tid;
	t->inv = inv;
	if (relate(x, t))
		return NULL;
	x->hash[find_place(x, tid)] = t;
	x->nthread++;
	return t;
}

void exits_switch_vcpu(struct exits *x, struct ex_thread *t, int kvm_id)
{
	struct inv_vcpu *cur = living_vcpu(t->inv);
	struct inv_vm *vm = cur ? cur->vm : t->inv->vm;
	struct inv_vcpu *v = inventory_add_vcpu(x->inv, vm, kvm_id);

	if (!v)
		return;
	inventory_set_thread(x->inv, v, t->inv);
	relate(x, t);
}

/* Its tid belongs to another thread now. */
static bool has_successor(const struct exits *x, const struct ex_thread *t)
{
	return t->inv->flags & INV_GONE && inventory_thread(x->inv, t->tid);
}

void exits_relate(struct exits *x)
{
	uint64_t generation = inventory_generation(x->inv);

	if (generation == x->generation)
		return;
	x->generation = generation;
	for (size_t i = 0; i < x->nhash;) {
		struct ex_thread *t = x->hash[i];

		/* One that ended is related as well: it may have been found and ended since. */
		if (t && (relate(x, t) || has_successor(x, t))) {
			/* Its VM may go and leave the thread to another; what it has stays its
			 * VM's. */
			x->astray = x->astray || (t->own && t->own->touched);
			unhash(x, t); /* may move another one here: the same place again */
		} else {
			i++;
		}
	}
	free_dead(x);
}

/* ---- kinds, and what the inventory lets go ---- */

/* Pairs whose end is not collected any more. */
void exits_kinds(struct exits *x, unsigned kinds, bool entry_exit)
{
	exits_relate(x);
	for (size_t i = 0; i < x->nhash; i++) {
		struct ex_vcpu *v = x->hash[i] ? x->hash[i]->v : NULL;

		if (!v)
			continue;
		v->open &= (uint8_t)(entry_exit ? kinds | KIND_BIT(KIND_VMEXIT) : 0);
		if (!(kinds & KIND_BIT(KIND_USEREXIT)))
			v->in_vmm = false;
	}
	x->kinds = kinds;
	x->kinds_all &= kinds;
	x->entry_exit = entry_exit;
	x->entry_exit_all = x->entry_exit_all && entry_exit;
}

void exits_thread_gone(struct exits *x, struct ex_thread *t)
{
	unhash(x, t);
	free_vcpu(t->own);
	t->own = NULL;
}

void exits_vcpu_gone(struct exits *x, struct ex_vcpu *v)
{
	v->inv = NULL;
	v->next_dead = x->dead_vcpus;
	x->dead_vcpus = v;
}

void exits_vm_gone(struct exits *x, struct ex_vm *vm)
{
	vm->next_dead = x->dead_vms;
	x->dead_vms = vm;
}
