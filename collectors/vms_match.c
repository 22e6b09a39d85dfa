// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which thread runs which vCPU, and under which number it is shown, where debugfs does not
 * say: by the threads' names, else by their guest time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vms_identify.h"
#include "vms_priv.h"

struct candidate {
	struct inv_thread *t;
	int index; /* of its name, -1 none */
};

struct candidates {
	struct candidate *c;
	size_t n;
};

static int by_index(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return (x->t->tid > y->t->tid) - (x->t->tid < y->t->tid);
}

static bool has_guest_time(const struct vms *s, const struct inv_thread *t)
{
	struct proc_stat st;

	return !vms_read_stat(s, t->pid, t->tid, &st) && st.gtime;
}

/* Threads with a vCPU's name or (named false) with guest time; sorted as vCPUs are. */
static struct candidates collect(const struct vms *s, const struct inv_vm *vm, bool named)
{
	struct candidates l = {calloc(vm->nthread ? vm->nthread : 1, sizeof(*l.c)), 0};

	for (struct inv_thread *t = vm->threads; l.c && t; t = t->next) {
		int index = vms_vcpu_index(t->comm);

		if (t->flags & INV_GONE || t->role == ROLE_HELPER)
			continue;
		if (named ? index >= 0 : t->role == ROLE_VCPU || has_guest_time(s, t))
			l.c[l.n++] = (struct candidate){t, named ? index : -1};
	}
	if (l.n > 1)
		qsort(l.c, l.n, sizeof(*l.c), by_index);
	return l;
}

/* One that was unplugged stands in the list until the next sweep, and gets no thread. */
static bool is_living(const struct inv_vcpu *v)
{
	return !(v->flags & INV_GONE);
}

static bool is_open(const struct inv_vcpu *v)
{
	return is_living(v) && (!v->thread || v->thread->flags & INV_GONE);
}

static size_t nliving(const struct inv_vm *vm)
{
	size_t n = 0;

	for (size_t i = 0; i < vm->nvcpu; i++)
		n += is_living(vm->vcpu[i]);
	return n;
}

/*
 * As many named threads as vCPUs: in order, for KVM's ids have gaps and the VMM's numbers
 * have none. Else only where the number is KVM's id itself.
 */
static void match_names(struct vms *s, struct inv_vm *vm, const struct candidates *l)
{
	bool all = l->n == nliving(vm);

	for (size_t i = 0, rank = 0; i < vm->nvcpu; i++) {
		struct inv_vcpu *v = vm->vcpu[i];
		struct inv_thread *t = NULL;

		if (!is_living(v))
			continue;
		if (all)
			t = l->c[rank++].t;
		for (size_t j = 0; !all && j < l->n && !t; j++)
			if (l->c[j].index == v->kvm_id)
				t = l->c[j].t;
		if (t && is_open(v) && !t->nvcpus)
			inventory_set_thread(s->inv, v, t);
	}
}

static void match_guest_time(struct vms *s, struct inv_vm *vm, const struct candidates *l)
{
	if (l->n != nliving(vm))
		return;
	for (size_t i = 0, rank = 0; i < vm->nvcpu; i++) {
		struct inv_thread *t;

		if (!is_living(vm->vcpu[i]))
			continue;
		t = l->c[rank++].t;
		if (!is_open(vm->vcpu[i]) || t->nvcpus)
			continue;
		inventory_set_thread(s->inv, vm->vcpu[i], t);
		vm->vcpu[i]->flags |= INV_GUESSED;
	}
}

static size_t nopen(const struct inv_vm *vm)
{
	size_t n = 0;

	for (size_t i = 0; i < vm->nvcpu; i++)
		n += is_open(vm->vcpu[i]);
	return n;
}

static void set_index(struct vms *s, struct inv_vcpu *v, int index, bool guessed)
{
	if (v->index == index && v->index_guessed == guessed)
		return;
	v->index = index;
	v->index_guessed = guessed;
	inventory_touch(s->inv);
}

/*
 * Numbers by rank where a thread's name does not tell. Who has one keeps it while others go, so
 * that a row is not another vCPU's from one tick to the next; who comes in between moves those
 * behind on.
 */
static size_t number_all(struct vms *s, struct inv_vm *vm)
{
	size_t named = 0;
	int next = 0;

	for (size_t i = 0; i < vm->nvcpu; i++) {
		struct inv_vcpu *v = vm->vcpu[i];
		const struct inv_thread *t = v->thread;
		int index = is_living(v) && t && t->nvcpus == 1 ? vms_vcpu_index(t->comm) : -1;

		if (index >= 0) {
			set_index(s, v, index, false);
			named++;
			next++;
			continue;
		}
		if (!is_living(v) && !v->index_guessed)
			continue;
		if (v->ranked && v->index > next)
			next = v->index;
		set_index(s, v, next++, true);
		v->ranked = true;
	}
	return named;
}

bool vms_match(struct vms *s, struct vmm *m, struct inv_vm *vm)
{
	struct candidates l;
	size_t named;

	/* With two VMs in a process a thread's name does not say of which it is. */
	if (m->nvm == 1 && nopen(vm)) {
		l = collect(s, vm, true);
		if (l.n)
			match_names(s, vm, &l);
		free(l.c);
	}
	if (m->nvm == 1 && nopen(vm) && !s->dirs.usable) {
		l = collect(s, vm, false);
		match_guest_time(s, vm, &l);
		free(l.c);
	}
	named = number_all(s, vm);
	return named && named < nliving(vm);
}

/* A number for a thread that has none in its name: the first that no thread holds. */
static int free_number(const struct inv_vm *vm)
{
	const struct inv_vcpu *v;
	int id = 0;

	while ((v = inventory_vcpu(vm, id)) && !is_open(v))
		id++;
	return id;
}

void vms_guess_vcpus(struct vms *s, struct vmm *m, struct inv_vm *vm)
{
	struct candidates l = collect(s, vm, true);

	(void)m;
	if (!l.n) {
		free(l.c);
		l = collect(s, vm, false);
	}
	for (size_t i = 0; i < l.n; i++) {
		struct inv_vcpu *v;

		if (l.c[i].t->nvcpus)
			continue;
		v = inventory_add_vcpu(s->inv, vm,
				       l.c[i].index >= 0 ? l.c[i].index : free_number(vm));
		if (!v)
			continue;
		v->flags |= INV_GUESSED;
		if (is_open(v))
			inventory_set_thread(s->inv, v, l.c[i].t);
	}
	/* Where only threads tell, a vCPU without its thread was unplugged. */
	for (size_t i = 0; i < vm->nvcpu; i++)
		if (is_open(vm->vcpu[i]))
			inventory_vcpu_gone(s->inv, vm->vcpu[i]);
	free(l.c);
}

bool vms_looks_like_vmm(const struct vms *s, pid_t pid)
{
	char path[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "proc/%d/task", (int)pid);
	d = sysroot_opendir(s->root, path);
	while (d && !found && (e = readdir(d))) {
		struct proc_stat st;
		int tid;

		if (!procfs_parse_id(e->d_name, &tid) && !vms_read_stat(s, pid, tid, &st))
			found = st.gtime || vms_vcpu_index(st.comm) >= 0;
	}
	if (d)
		closedir(d);
	return found;
}
