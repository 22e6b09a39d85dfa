// SPDX-License-Identifier: GPL-2.0-only
/* Order and indexes of a merged snapshot (store_merge_order.h). */
#include "store_merge_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_MOST 10
#define SLOW_MOST 64 /* lines of a VM */

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* No VM, all VMs and what is no VM come first. */
static int64_t vm_order(uint32_t vm)
{
	return vm == SNAP_NO_VM ? -1 : (int64_t)vm;
}

static int by_vcpu(const void *a, const void *b)
{
	const struct snap_vcpu *const *x = a, *const *y = b;
	int c = compare((*x)->vm, (*y)->vm);

	if (!c)
		c = compare((*x)->index, (*y)->index);
	return c ? c : compare((*x)->id, (*y)->id);
}

static int by_exit(const void *a, const void *b)
{
	const struct snap_exit *x = a, *y = b;
	int c = compare(vm_order(x->vm), vm_order(y->vm));

	if (!c)
		c = compare(x->vcpu, y->vcpu);
	if (!c)
		c = compare(x->kind, y->kind);
	if (!c)
		c = compare(x->other, y->other);
	if (!c)
		c = (x->now.time_ns < y->now.time_ns) - (x->now.time_ns > y->now.time_ns);
	if (!c)
		c = (x->now.count < y->now.count) - (x->now.count > y->now.count);
	return c ? c : (x->key > y->key) - (x->key < y->key);
}

static int by_symbol(const void *a, const void *b)
{
	const struct snap_symbol *x = a, *y = b;
	int c = compare(x->vm, y->vm);

	if (!c)
		c = compare(x->vcpu, y->vcpu);
	if (!c)
		c = compare(x->other, y->other);
	return c ? c : (x->samples < y->samples) - (x->samples > y->samples);
}

static int by_thread(const void *a, const void *b)
{
	const struct snap_thread *x = a, *y = b;
	int c = compare(x->vm, y->vm);

	return c ? c : compare(x->tid, y->tid);
}

static int by_code(const void *a, const void *b)
{
	const struct snap_code *x = a, *y = b;
	int c = compare(x->vm, y->vm);

	if (!c)
		c = (x->reason > y->reason) - (x->reason < y->reason);
	return c ? c : (x->count < y->count) - (x->count > y->count);
}

static int by_waited(const void *a, const void *b)
{
	const struct snap_waited *x = a, *y = b;
	int c = compare(x->vm, y->vm);

	if (!c)
		c = compare(x->vcpu, y->vcpu);
	if (!c)
		c = compare(x->kind >= WAITED_OTHER ? x->kind : 0,
			    y->kind >= WAITED_OTHER ? y->kind : 0);
	return c ? c : (x->ns < y->ns) - (x->ns > y->ns);
}

static int by_counter(const void *a, const void *b)
{
	const struct snap_pmc *x = a, *y = b;
	int c = compare(x->vcpu, y->vcpu);

	if (!c)
		c = compare(x->fixed, y->fixed);
	return c ? c : compare(x->nr, y->nr);
}

static int by_end(const void *a, const void *b)
{
	const struct snap_slow *x = a, *y = b;
	int c = compare(x->vm, y->vm);

	return c ? c : (x->end > y->end) - (x->end < y->end);
}

/* The last ones of each VM: an interval of a minute has no more lines than one of seconds. */
static void keep_last_slow(struct snapshot *s)
{
	struct snap_slow *w = (struct snap_slow *)s->slow;
	size_t n = 0;

	for (size_t i = 0, k; i < s->nslow; i = k) {
		for (k = i + 1; k < s->nslow && w[k].vm == w[i].vm;)
			k++;
		if (k - i > SLOW_MOST)
			i = k - SLOW_MOST;
		memmove(&w[n], &w[i], (k - i) * sizeof(*w));
		n += k - i;
	}
	s->nslow = n;
}

static int by_cpu(const void *a, const void *b)
{
	return compare(((const struct snap_cpu *)a)->cpu, ((const struct snap_cpu *)b)->cpu);
}

static int by_busy(const void *a, const void *b)
{
	const struct snap_task *x = a, *y = b;

	return (x->cpu.v < y->cpu.v) - (x->cpu.v > y->cpu.v);
}

static int by_level(const void *a, const void *b)
{
	const struct snap_finding *x = a, *y = b;

	return compare(y->level, x->level);
}

/* The vCPUs in order of their VMs; whoever names one by its old place gets the new. */
static int order_vcpus(struct snapshot *s)
{
	struct snap_vcpu *v = (struct snap_vcpu *)s->vcpus, *sorted;
	struct snap_vm *vms = (struct snap_vm *)s->vms;
	struct snap_exit *x = (struct snap_exit *)s->exits;
	struct snap_symbol *y = (struct snap_symbol *)s->symbols;
	struct snap_waited *w = (struct snap_waited *)s->waited;
	struct snap_finding *f = (struct snap_finding *)s->findings;
	struct snap_slow *slow = (struct snap_slow *)s->slow;
	struct snap_pmc *pmc = (struct snap_pmc *)s->pmcs;
	struct snap_vcpu **order = malloc((s->nvcpus + 1) * sizeof(*order));
	int32_t *place = malloc((s->nvcpus + 1) * sizeof(*place));

	sorted = snapshot_alloc(s, s->nvcpus, sizeof(*sorted));
	if (!order || !place || !sorted) {
		free(order);
		free(place);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->nvcpus; i++)
		order[i] = &v[i];
	qsort(order, s->nvcpus, sizeof(struct snap_vcpu *), by_vcpu);
	for (size_t i = 0; i < s->nvms; i++)
		vms[i].vcpu_first = vms[i].vcpu_n = 0;
	for (size_t i = 0; i < s->nvcpus; i++) {
		struct snap_vm *vm = &vms[order[i]->vm];

		sorted[i] = *order[i];
		place[order[i] - v] = (int32_t)i;
		if (!vm->vcpu_n++)
			vm->vcpu_first = (uint32_t)i;
	}
	s->vcpus = sorted;
	for (size_t i = 0; i < s->nexits; i++)
		x[i].vcpu = x[i].vcpu < 0 ? -1 : place[x[i].vcpu];
	for (size_t i = 0; i < s->nsymbols; i++)
		y[i].vcpu = y[i].vcpu < 0 ? -1 : place[y[i].vcpu];
	for (size_t i = 0; i < s->nwaited; i++)
		w[i].vcpu = w[i].vcpu < 0 ? -1 : place[w[i].vcpu];
	for (size_t i = 0; i < s->nfindings; i++)
		f[i].vcpu = f[i].vcpu < 0 ? -1 : place[f[i].vcpu];
	for (size_t i = 0; i < s->nslow; i++)
		slow[i].vcpu = slow[i].vcpu < 0 ? -1 : place[slow[i].vcpu];
	for (size_t i = 0; i < s->npmcs; i++)
		pmc[i].vcpu = place[pmc[i].vcpu];
	free(order);
	free(place);
	return 0;
}

static struct snap_exits *exits_of(struct snapshot *s, const struct snap_exit *x)
{
	if (x->vcpu >= 0)
		return &((struct snap_vcpu *)s->vcpus)[x->vcpu].ex;
	return x->vm == SNAP_NO_VM ? &s->host.ex : &((struct snap_vm *)s->vms)[x->vm].ex;
}

static struct snap_samples *samples_of(struct snapshot *s, const struct snap_symbol *y)
{
	if (y->vcpu >= 0)
		return &((struct snap_vcpu *)s->vcpus)[y->vcpu].sym;
	if (y->vm < 0)
		return y->vm == SNAP_OTHER ? &s->host.other_sym : &s->host.sym;
	return &((struct snap_vm *)s->vms)[y->vm].sym;
}

static struct snap_waits *waits_of(struct snapshot *s, const struct snap_waited *w)
{
	return w->vcpu >= 0 ? &((struct snap_vcpu *)s->vcpus)[w->vcpu].waits
			    : &((struct snap_vm *)s->vms)[w->vm].waits;
}

static void clear_owners(struct snapshot *s)
{
	struct snap_vm *vms = (struct snap_vm *)s->vms;
	struct snap_vcpu *vcpus = (struct snap_vcpu *)s->vcpus;

	s->host.ex.n = s->host.sym.rows = s->host.other_sym.rows = 0;
	s->host.ex.first = s->host.sym.first = s->host.other_sym.first = 0;
	for (size_t i = 0; i < s->nvms; i++) {
		vms[i].ex.first = vms[i].ex.n = vms[i].sym.first = vms[i].sym.rows = 0;
		vms[i].thread_first = vms[i].thread_n = vms[i].code_first = vms[i].code_n = 0;
		vms[i].waits.first = vms[i].waits.n = 0;
		vms[i].slow.first = vms[i].slow.n = 0;
	}
	for (size_t i = 0; i < s->nvcpus; i++) {
		vcpus[i].ex.first = vcpus[i].ex.n = vcpus[i].sym.first = vcpus[i].sym.rows = 0;
		vcpus[i].waits.first = vcpus[i].waits.n = 0;
		vcpus[i].pmu.first = vcpus[i].pmu.n = 0;
	}
}

static void set_owners(struct snapshot *s)
{
	struct snap_vm *vms = (struct snap_vm *)s->vms;

	for (size_t i = 0; i < s->nexits; i++) {
		struct snap_exits *ex = exits_of(s, &s->exits[i]);

		if (!ex->n++)
			ex->first = (uint32_t)i;
	}
	for (size_t i = 0; i < s->nsymbols; i++) {
		struct snap_samples *sym = samples_of(s, &s->symbols[i]);

		if (!sym->rows++)
			sym->first = (uint32_t)i;
	}
	for (size_t i = 0; i < s->nthreads; i++)
		if (!vms[s->threads[i].vm].thread_n++)
			vms[s->threads[i].vm].thread_first = (uint32_t)i;
	for (size_t i = 0; i < s->ncode; i++)
		if (!vms[s->code[i].vm].code_n++)
			vms[s->code[i].vm].code_first = (uint32_t)i;
	for (size_t i = 0; i < s->nwaited; i++) {
		struct snap_waits *w = waits_of(s, &s->waited[i]);

		if (!w->n++)
			w->first = (uint32_t)i;
	}
	for (size_t i = 0; i < s->npmcs; i++) {
		struct snap_pmu *pmu = &((struct snap_vcpu *)s->vcpus)[s->pmcs[i].vcpu].pmu;

		if (!pmu->n++)
			pmu->first = (uint32_t)i;
	}
	for (size_t i = 0; i < s->nslow; i++)
		if (!vms[s->slow[i].vm].slow.n++)
			vms[s->slow[i].vm].slow.first = (uint32_t)i;
}

/* A row's part of all of its kind at its level; rows of one kind stand together. */
static void set_exit_shares(struct snap_exit *x, size_t n)
{
	uint64_t count = 0, time = 0;

	for (size_t i = 0; i < n; i++) {
		count += x[i].now.count;
		time += x[i].now.time_ns;
	}
	for (size_t i = 0; i < n; i++) {
		if (value_has(x[i].now.count_pct))
			x[i].now.count_pct.v =
				count ? (double)x[i].now.count * 100 / (double)count : 0;
		if (value_has(x[i].now.time_pct))
			x[i].now.time_pct.v =
				time ? (double)x[i].now.time_ns * 100 / (double)time : 0;
	}
}

/* They add up to all that the VM or vCPU waited. */
static void set_waited_shares(struct snapshot *s)
{
	struct snap_waited *w = (struct snap_waited *)s->waited;

	for (size_t i = 0; i < s->nwaited; i++) {
		const struct snap_waits *of = waits_of(s, &w[i]);
		uint64_t all = 0;

		for (uint32_t k = of->first; k < of->first + of->n; k++)
			all += w[k].ns;
		if (value_has(w[i].share))
			w[i].share.v = all ? 100 * (double)w[i].ns / (double)all : 0;
	}
}

static void set_shares(struct snapshot *s)
{
	struct snap_exit *x = (struct snap_exit *)s->exits;
	struct snap_symbol *y = (struct snap_symbol *)s->symbols;

	for (size_t i = 0, k; i < s->nexits; i = k) {
		for (k = i + 1; k < s->nexits && x[k].vm == x[i].vm && x[k].vcpu == x[i].vcpu &&
				x[k].kind == x[i].kind;)
			k++;
		set_exit_shares(&x[i], k - i);
	}
	for (size_t i = 0; i < s->nsymbols; i++) {
		double all = samples_of(s, &y[i])->n.v;

		if (value_has(y[i].pct))
			y[i].pct.v = all > 0 ? (double)y[i].samples * 100 / all : 0;
	}
}

int store_merge_order(struct snapshot *s)
{
	int rc = order_vcpus(s);

	if (rc)
		return rc;
	qsort((void *)s->exits, s->nexits, sizeof(*s->exits), by_exit);
	qsort((void *)s->symbols, s->nsymbols, sizeof(*s->symbols), by_symbol);
	qsort((void *)s->threads, s->nthreads, sizeof(*s->threads), by_thread);
	qsort((void *)s->code, s->ncode, sizeof(*s->code), by_code);
	qsort((void *)s->waited, s->nwaited, sizeof(*s->waited), by_waited);
	qsort((void *)s->pmcs, s->npmcs, sizeof(*s->pmcs), by_counter);
	qsort((void *)s->slow, s->nslow, sizeof(*s->slow), by_end);
	keep_last_slow(s);
	qsort((void *)s->cpus, s->ncpus, sizeof(*s->cpus), by_cpu);
	qsort((void *)s->tasks, s->ntasks, sizeof(*s->tasks), by_busy);
	qsort((void *)s->findings, s->nfindings, sizeof(*s->findings), by_level);
	if (s->ntasks > TASKS_MOST)
		s->ntasks = TASKS_MOST;
	clear_owners(s);
	set_owners(s);
	set_shares(s);
	set_waited_shares(s);
	return 0;
}
