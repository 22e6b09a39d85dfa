// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests' PMUs as rows of a snapshot, a row a counter: what it counts, what became of that since
 * the reading before, and what the guest's use of its PMU costs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_rows.h"

/* ---- readings ---- */

void model_on_pmu(void *ctx, const struct pmu_reading *r)
{
	struct model_vcpu *v = model_vcpu_state(r->vcpu);

	(void)ctx;
	if (v && !r->state)
		model_pmu_free(v);
	else if (v && !v->pmu)
		v->pmu = calloc(1, sizeof(*v->pmu));
	if (!v || !v->pmu || !r->state)
		return;
	v->pmu->before = v->pmu->now;
	v->pmu->time_before = v->pmu->time;
	v->pmu->now = *r->state;
	v->pmu->time = r->time;
}

void model_on_pmu_host(void *ctx, const char *why)
{
	struct model *m = ctx;

	snprintf(m->pmu_why, sizeof(m->pmu_why), "%s", why);
}

void model_pmu_free(struct model_vcpu *v)
{
	free(v->pmu);
	v->pmu = NULL;
}

static bool asked(const struct model *m, const struct inv_vm *vm)
{
	return m->demand.pmu_all || (m->demand.pmu && m->demand.vm == vm->id);
}

static const struct model_pmu *pmu_of(const struct inv_vcpu *v)
{
	const struct model_vcpu *s = v->cookie[INV_COOKIE_MODEL];

	return s ? s->pmu : NULL;
}

/* ---- a counter ---- */

/* The counter as it was read before, NULL: it was not. */
static const struct pmu_counter *before(const struct model_pmu *p, const struct pmu_counter *c)
{
	for (size_t i = 0; p->time_before && i < p->before.n; i++)
		if (p->before.counter[i].fixed == c->fixed && p->before.counter[i].nr == c->nr)
			return &p->before.counter[i];
	return NULL;
}

/* The same, and NULL where it counted something else then. */
static const struct pmu_counter *same_before(const struct model_pmu *p, const struct pmu_counter *c)
{
	const struct pmu_counter *b = before(p, c);

	return b && b->select == c->select ? b : NULL;
}

static struct value per_second(const struct model_pmu *p, uint64_t now, uint64_t before)
{
	double s = (double)(p->time - p->time_before) / 1e9;

	if (!p->time_before || s <= 0 || now < before)
		return value_pending();
	return value_known((double)(now - before) / s);
}

/* More comes of no CPU: a guest has set the counter. */
#define EVENTS_MOST 1e11 /* a second */

/* One that began anew in between, by an overflow or the guest's hand, has no difference. */
static struct value events_per_second(const struct model_pmu *p, const struct pmu_counter *c,
				      const struct pmu_counter *b)
{
	struct value v = value_pending();

	if (b && b->has_value && b->overflows == c->overflows)
		v = per_second(p, c->value, b->value);
	return value_has(v) && v.v > EVENTS_MOST ? value_pending() : v;
}

/* By MSRs; not known where nobody counts them. */
static struct value accesses_per_second(const struct model_pmu *p, uint64_t now, uint64_t before)
{
	return p->now.has_accesses ? per_second(p, now, before) : value_na(WHY_NO_SOURCE);
}

/* A perf event that was made anew begins with 0. */
static double running_share(const struct pmu_counter *c, const struct pmu_counter *b)
{
	uint64_t enabled = c->time_enabled, running = c->time_running;

	if (b && c->time_enabled >= b->time_enabled && c->time_running >= b->time_running) {
		enabled -= b->time_enabled;
		running -= b->time_running;
	}
	if (!enabled)
		return -1;
	return running < enabled ? (double)running / (double)enabled : 1;
}

static void put_values(struct snap_pmc *row, const struct model_pmu *p, const struct pmu_counter *c,
		       double share)
{
	const struct pmu_counter *b = same_before(p, c), *any = before(p, c);
	struct value none = value_na(WHY_NO_SOURCE);

	row->value = row->rate = row->running = row->overflows = none;
	row->accesses = accesses_per_second(p, c->accesses, any ? any->accesses : 0);
	if (!c->has_value)
		return;
	row->value = value_known((double)c->value);
	row->overflows = value_known((double)c->overflows);
	row->rate = events_per_second(p, c, b);
	row->running = share < 0 ? value_pending() : value_known(100 * share);
}

static void put_counter(struct commit *c, const struct model_pmu *p, const struct pmu_counter *x,
			uint32_t vm, int32_t vcpu)
{
	struct snap_pmc *row = &c->pmc_rows[c->npmcs++];
	double share = running_share(x, same_before(p, x));
	char text[160];

	row->vm = vm;
	row->vcpu = vcpu;
	row->fixed = x->fixed;
	row->nr = x->nr;
	row->enabled = x->enabled;
	row->inferred = p->now.inferred;
	row->counter = snapshot_printf(c->s, "%s%u", x->fixed ? "fixed" : "gp", x->nr);
	pmu_event_name(&p->now, x, text, sizeof(text));
	row->event = snapshot_str(c->s, text);
	pmu_event_mode(&p->now, x, text, sizeof(text));
	row->mode = snapshot_str(c->s, text);
	row->select = x->has_select ? snapshot_printf(c->s, "0x%" PRIx64, x->select) : "";
	row->host_event = pmu_event_state_name((enum pmu_event)x->event);
	pmu_note(&p->now, x, share, text, sizeof(text));
	row->note = snapshot_str(c->s, text);
	row->wrong = pmu_wrong(&p->now, x, share);
	put_values(row, p, x, share);
}

/* ---- a vCPU ---- */

static void put_global(struct commit *c, const struct pmu_state *s, struct snap_pmu *out)
{
	if (s->has_global_ctrl && !s->inferred)
		out->global = snapshot_printf(c->s, "ctrl 0x%" PRIx64 " status 0x%" PRIx64,
					      s->global_ctrl, s->global_status);
	else if (s->has_global_ctrl)
		out->global = snapshot_printf(c->s, "ctrl 0x%" PRIx64, s->global_ctrl);
}

/* The file in debugfs does not tell them. */
static void put_accesses(const struct model_pmu *p, struct snap_pmu *out)
{
	out->accesses = accesses_per_second(p, p->now.accesses, p->before.accesses);
	out->total = out->refused = value_na(WHY_NO_SOURCE);
	if (!p->now.has_accesses)
		return;
	out->total = value_known((double)p->now.accesses);
	out->refused = value_known((double)p->now.refused);
}

static void put_vcpu(struct commit *c, const struct model_pmu *p, uint32_t vm, uint32_t at)
{
	struct snap_pmu *out = &c->vcpus[at].pmu;
	char text[160];

	out->source = p->now.inferred ? "inferred" : "debugfs";
	pmu_summary(&p->now, text, sizeof(text));
	out->what = snapshot_str(c->s, text);
	put_global(c, &p->now, out);
	put_accesses(p, out);
	if (!c->pmc_rows || c->pmc_room - c->npmcs < p->now.n)
		return;
	out->first = c->npmcs;
	for (size_t i = 0; i < p->now.n; i++)
		put_counter(c, p, &p->now.counter[i], vm, (int32_t)at);
	out->n = c->npmcs - out->first;
}

/* ---- what it costs ---- */

/* What found no row of its own may be of the PMU, too. */
static struct value at_least(double v, bool other)
{
	return other ? value_partial(v, WHY_NONE) : value_known(v);
}

/* The rows of MSR exits that are of the PMU, of a VM or vCPU. */
static void put_cost(const struct commit *c, const struct snap_exits *ex, unsigned vcpus,
		     struct snap_pmu *out)
{
	uint64_t count = 0, ns = 0;
	bool timed = c->s->host.entry_exit, other = false;
	struct pmu_msr m;

	if (!(c->s->open_kinds & KIND_BIT(KIND_MSR)) || !vcpus || c->s->dt <= 0)
		return;
	for (uint32_t i = ex->first; i < ex->first + ex->n; i++) {
		const struct snap_exit *x = &c->exit_rows[i];

		if (x->kind != KIND_MSR || (!x->other && !pmu_msr_find(x->key, &m)))
			continue;
		other |= x->other;
		if (x->other)
			continue;
		count += x->now.count;
		ns += x->now.time_ns;
		timed |= x->has_time;
	}
	/* Where the kernel counted the accesses by themselves that is what they are. */
	if (!value_has(out->accesses))
		out->accesses = at_least((double)count / c->dt_s, other);
	out->pct = timed ? at_least(100 * (double)ns / ((double)c->s->dt * vcpus), other)
			 : value_na(WHY_NO_ENTRY_EXIT);
}

/* ---- rows ---- */

static void clear(const struct commit *c, const struct inv_vm *vm, struct snap_pmu *out)
{
	*out = (struct snap_pmu){.source = "", .what = "", .global = ""};
	out->total = out->refused = out->accesses = out->pct =
		asked(c->m, vm) ? value_pending() : value_na(WHY_NOT_ASKED);
}

static void put_vm(struct commit *c, const struct inv_vm *vm, uint32_t at)
{
	uint32_t k = c->vms[at].vcpu_first;
	bool any = asked(c->m, vm);

	clear(c, vm, &c->vms[at].pmu);
	if (any)
		put_cost(c, &c->vms[at].ex, (unsigned)c->vms[at].vcpu_n, &c->vms[at].pmu);
	for (size_t i = 0; i < vm->nvcpu; i++) {
		const struct model_pmu *p = pmu_of(vm->vcpu[i]);

		if (!commit_vcpu_shown(vm, vm->vcpu[i]))
			continue;
		clear(c, vm, &c->vcpus[k].pmu);
		if (any && p)
			put_vcpu(c, p, at, k);
		if (any)
			put_cost(c, &c->vcpus[k].ex, 1, &c->vcpus[k].pmu);
		k++;
	}
}

static size_t count_rows(const struct model *m)
{
	size_t n = 0;

	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next)
		for (size_t i = 0; asked(m, vm) && i < vm->nvcpu; i++)
			n += pmu_of(vm->vcpu[i]) ? pmu_of(vm->vcpu[i])->now.n : 0;
	return n;
}

/* kvmtop is a host user of the PMU itself where it samples by cycles. */
static void put_why(struct commit *c)
{
	const struct model *m = c->m;
	bool ours = m->sampling.state.open && strncmp(m->sampling.event, "cycles", 6) == 0;

	c->s->host.pmu_why =
		m->demand.pmu || m->demand.pmu_all
			? snapshot_printf(c->s, "%s%s",
					  ours ? "kvmtop itself samples by cycles; " : "",
					  m->pmu_why)
			: "";
}

void model_pmu_rows(struct commit *c)
{
	size_t room = count_rows(c->m);
	uint32_t at = 0;

	c->pmc_rows = room ? snapshot_alloc(c->s, room, sizeof(*c->pmc_rows)) : NULL;
	c->pmc_room = c->pmc_rows ? (uint32_t)room : 0;
	for (struct inv_vm *vm = inventory_first(c->m->inv); (vm = commit_next_vm(c, vm, at));
	     vm = vm->next, at++)
		put_vm(c, vm, at);
	c->s->pmcs = c->pmc_rows;
	c->s->npmcs = c->npmcs;
	put_why(c);
}

/* What nobody asks for any more is read anew when somebody does. */
void model_pmu_next(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		if (asked(m, vm))
			continue;
		for (size_t i = 0; i < vm->nvcpu; i++)
			if (vm->vcpu[i]->cookie[INV_COOKIE_MODEL])
				model_pmu_free(vm->vcpu[i]->cookie[INV_COOKIE_MODEL]);
	}
}
