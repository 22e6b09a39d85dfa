// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who had the CPU while vCPUs waited, as rows of a snapshot: the largest of a VM and of each of its
 * vCPUs, what is left together, and what nobody explains, so that they add up to all that it
 * waited.
 */
#include <string.h>

#include "model_rows.h"

#define ROWS_MAX 16 /* of one VM or vCPU, beside `other` and what is unexplained */

/* ---- readings ---- */

static void add_part(struct model *m, struct waited *w, const struct wait_part *p)
{
	const struct inv_vm *vm = p->vm ? inventory_vm(m->inv, p->vm) : NULL;

	if (p->other)
		waited_add(w, WAITED_OTHER, 0, "", p->ns);
	else if (p->idle)
		waited_add(w, WAITED_IDLE, 0, "", p->ns);
	else if (vm)
		waited_add(w, WAITED_VM, vm->id, vm->name, p->ns);
	else
		waited_add(w, WAITED_TASK, 0, p->comm, p->ns);
}

static void add_reading(struct model *m, struct waited *w, const struct wait_reading *r)
{
	w->whole = r->has_missed && !r->cut && (w->whole || !w->seen);
	w->seen = true;
	w->dt += r->dt;
	for (size_t i = 0; i < r->n; i++)
		add_part(m, w, &r->part[i]);
	if (r->has_missed && r->missed_ns)
		waited_add(w, WAITED_UNKNOWN, 0, "", r->missed_ns);
	w->wakeups += r->wakeups;
	if (r->wake)
		(void)hist_merge(&w->wake, r->wake); /* without memory: of fewer */
}

void model_on_waits(void *ctx, const struct wait_reading *r)
{
	struct model_vm *vm = model_vm_state(r->thread->vm);
	struct model_vcpu *v = r->thread->vcpu && r->thread->nvcpus == 1
				       ? model_vcpu_state(r->thread->vcpu)
				       : NULL;

	if (!r->dt)
		return;
	if (vm)
		add_reading(ctx, &vm->waited, r);
	if (v)
		add_reading(ctx, &v->waited, r);
}

void model_on_program_cost(void *ctx, const struct program_cost *c)
{
	struct model *m = ctx;
	struct program_cost *to = c->waits ? &m->waiting : &m->counting;

	to->ns += c->ns;
	to->switches += c->switches;
	to->switches_ns += c->switches_ns;
	to->singles += c->singles;
}

/* ---- rows ---- */

static struct waited *of_vm(const struct inv_vm *vm)
{
	struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

	return s && s->waited.seen ? &s->waited : NULL;
}

static struct waited *of_vcpu(const struct inv_vcpu *v)
{
	struct model_vcpu *s = v->cookie[INV_COOKIE_MODEL];

	return s && s->waited.seen ? &s->waited : NULL;
}

static size_t rows_of(const struct waited *w)
{
	/* Two more for `other` and what is unexplained. */
	return w ? (w->n < ROWS_MAX + 2 ? w->n + 1 : ROWS_MAX + 2) : 0;
}

static bool asked(const struct model *m, const struct inv_vm *vm)
{
	return m->demand.waits_all || (m->demand.waits && m->demand.vm == vm->id);
}

static const char *name_of(struct commit *c, const struct waited_by *b)
{
	static const char *const fixed[] = {
		[WAITED_IDLE] = "(idle)",
		[WAITED_OTHER] = "other",
		[WAITED_UNKNOWN] = "unexplained",
	};

	return b->kind >= WAITED_IDLE ? fixed[b->kind] : snapshot_str(c->s, b->name);
}

static void put_row(struct commit *c, const struct waited *w, const struct waited_by *b,
		    uint64_t all, uint32_t vm, int32_t vcpu)
{
	struct snap_waited *row = &c->waited_rows[c->nwaited++];

	row->vm = vm;
	row->vcpu = vcpu;
	row->kind = b->kind;
	row->by_vm = b->vm;
	row->name = name_of(c, b);
	row->ns = b->ns;
	row->share = all ? value_known(100.0 * (double)b->ns / (double)all) : value_pending();
	row->pct = w->dt > 0 ? value_known(100.0 * (double)b->ns / (double)w->dt) : value_pending();
}

static void put_rows(struct commit *c, struct waited *w, uint32_t vm, int32_t vcpu,
		     struct snap_waits *out)
{
	struct waited_by rest = {.kind = WAITED_OTHER};
	uint64_t all = waited_sum(w);
	size_t shown = 0, i = 0;

	if (!c->waited_rows || c->waited_room - c->nwaited < rows_of(w))
		return;
	waited_sort(w);
	out->first = c->nwaited;
	for (; i < w->n && w->by[i].kind < WAITED_OTHER; i++)
		if (shown++ < ROWS_MAX)
			put_row(c, w, &w->by[i], all, vm, vcpu);
		else
			rest.ns += w->by[i].ns;
	for (; i < w->n && w->by[i].kind == WAITED_OTHER; i++)
		rest.ns += w->by[i].ns;
	if (rest.ns)
		put_row(c, w, &rest, all, vm, vcpu);
	if (i < w->n)
		put_row(c, w, &w->by[i], all, vm, vcpu);
	out->n = c->nwaited - out->first;
}

static void put_figures(struct commit *c, const struct inv_vm *vm, const struct waited *w,
			struct snap_waits *out)
{
	static const double share[] = {0.5, 0.99};
	uint64_t ns[2];

	out->pct = out->wakeups = out->wake_p50 = out->wake_p99 =
		asked(c->m, vm) ? value_pending() : value_na(WHY_NOT_ASKED);
	if (!w || w->dt <= 0)
		return;
	out->pct = value_known(100.0 * (double)waited_sum(w) / (double)w->dt);
	if (!w->whole) /* nor is it known whether something was missed */
		out->pct = value_partial(out->pct.v, WHY_NONE);
	out->wakeups = c->dt_s > 0 ? value_known((double)w->wakeups / c->dt_s) : value_pending();
	if (!hist_quantiles(&w->wake, share, ns, 2))
		return;
	out->wake_p50 = value_known((double)ns[0]);
	out->wake_p99 = value_known((double)ns[1]);
}

static void put_vm(struct commit *c, const struct inv_vm *vm, uint32_t at)
{
	uint32_t k = c->vms[at].vcpu_first;

	put_figures(c, vm, of_vm(vm), &c->vms[at].waits);
	if (of_vm(vm))
		put_rows(c, of_vm(vm), at, -1, &c->vms[at].waits);
	for (size_t i = 0; i < vm->nvcpu; i++) {
		struct waited *w = of_vcpu(vm->vcpu[i]);

		if (!commit_vcpu_shown(vm, vm->vcpu[i]))
			continue;
		put_figures(c, vm, w, &c->vcpus[k].waits);
		if (w)
			put_rows(c, w, at, (int32_t)k, &c->vcpus[k].waits);
		k++;
	}
}

static size_t count_rows(const struct model *m)
{
	size_t n = 0;

	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		n += rows_of(of_vm(vm));
		for (size_t i = 0; i < vm->nvcpu; i++)
			n += rows_of(of_vcpu(vm->vcpu[i]));
	}
	return n;
}

void model_waited_rows(struct commit *c)
{
	size_t room = count_rows(c->m);
	uint32_t at = 0;

	c->waited_rows = room ? snapshot_alloc(c->s, room, sizeof(*c->waited_rows)) : NULL;
	c->waited_room = c->waited_rows ? (uint32_t)room : 0;
	for (struct inv_vm *vm = inventory_first(c->m->inv); (vm = commit_next_vm(c, vm, at));
	     vm = vm->next, at++)
		put_vm(c, vm, at);
	c->s->waited = c->waited_rows;
	c->s->nwaited = c->nwaited;
}

void model_waits_next(struct model *m)
{
	m->counting = m->waiting = (struct program_cost){0};
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		if (of_vm(vm))
			waited_clear(of_vm(vm));
		for (size_t i = 0; i < vm->nvcpu; i++)
			if (of_vcpu(vm->vcpu[i]))
				waited_clear(of_vcpu(vm->vcpu[i]));
	}
}
