// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends an interval: VM, vCPU and thread rows out of inventory, readings and exits.
 */
#include <stdio.h>
#include <string.h>

#include "model_rows.h"

/* WHY is the largest against its threshold; that of steal is STEAL_NOTICE. */
#define WHY_STEAL_MAX_PCT 10.0
#define WHY_EXIT_PCT 5.0
#define WHY_SYMBOL_PCT 20.0 /* one symbol's share of a VM's samples … */
#define WHY_SYMBOL_MIN 50 /* … of which there are that many */
#define WHY_EXIT_RATE 10000.0 /* a vCPU and second, where %EXIT cannot be had */

static struct model_vm *vm_state(const struct inv_vm *vm)
{
	return vm->cookie[INV_COOKIE_MODEL];
}

static struct model_thread *thread_state(const struct inv_thread *t)
{
	return t ? t->cookie[INV_COOKIE_MODEL] : NULL;
}

static uint8_t quality_of(unsigned flags)
{
	return (uint8_t)((flags & INV_GUESSED ? SNAP_QUALITY_GUESSED : 0) |
			 (flags & INV_GONE ? SNAP_QUALITY_GONE : 0) |
			 (flags & INV_PROVISIONAL ? SNAP_QUALITY_PROVISIONAL : 0));
}

static bool vcpu_touched(const struct inv_vcpu *iv)
{
	const struct model_vcpu *v = iv->cookie[INV_COOKIE_MODEL];

	return v && v->ex.touched;
}

/* Events of this interval. */
static bool touched(const struct inv_vm *vm)
{
	for (size_t i = 0; i < vm->nvcpu; i++)
		if (vcpu_touched(vm->vcpu[i]))
			return true;
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		const struct model_thread *th = thread_state(t);

		if (th && th->ex.own && th->ex.own->touched)
			return true;
	}
	return false;
}

static bool any_events(const struct inv_vm *vm)
{
	const struct model_vm *s = vm_state(vm);

	return (s && model_exit_rows(&s->ex.set)) || touched(vm);
}

/* An unplugged vCPU's last interval was shown; it is here for late events only. */
bool commit_vcpu_shown(const struct inv_vm *vm, const struct inv_vcpu *v)
{
	return vm->flags & INV_LAST || !(v->flags & INV_LAST) || vcpu_touched(v);
}

static size_t vcpus_shown(const struct inv_vm *vm)
{
	size_t n = 0;

	for (size_t i = 0; i < vm->nvcpu; i++)
		n += commit_vcpu_shown(vm, vm->vcpu[i]);
	return n;
}

static bool thread_shown(const struct inv_thread *t)
{
	return t->role != ROLE_VCPU && !(t->flags & INV_LAST);
}

/*
 * A provisional VM that was merged into the one it is has nothing left to show, nor has one
 * whose last interval was shown, unless events of it came late.
 */
static bool vm_shown(const struct inv_vm *vm)
{
	unsigned merged = INV_PROVISIONAL | INV_GONE;

	if (vm->flags & INV_LAST && !touched(vm))
		return false;
	return (vm->flags & merged) != merged || any_events(vm);
}

/* Fixed before the VMs' sums, which may change what is to be shown: rows are found by counting. */
struct inv_vm *commit_next_vm(const struct commit *c, struct inv_vm *vm, uint32_t row)
{
	while (vm && !vm->shown)
		vm = vm->next;
	return row < c->s->nvms ? vm : NULL;
}

/* ---- use ---- */

static void thread_use(const struct inv_thread *t, struct snap_use *out)
{
	const struct model_thread *s = thread_state(t);
	const struct model_vm *vm = vm_state(t->vm);
	const struct use_quota *q = NULL;

	memset(out, 0, sizeof(*out));
	/* One that ended before it was read: it has the figures of the interval before. */
	if (!s || (t->flags & INV_GONE && !s->read))
		return;
	if (s->quota.seen)
		q = &s->quota;
	else if (vm && (vm->quota.seen || vm->quota.throt.state == VALUE_NA))
		q = &vm->quota;
	use_result(&s->use, q, out);
}

static void shared_use(struct snap_use *out)
{
	struct value na = value_na(WHY_SHARED);

	*out = (struct snap_use){na, na, na, na, na, na, na, na, na, na, na, na, false};
}

/* ---- vCPU and thread rows ---- */

static const char *vcpu_pin(const struct inv_vcpu *v, const struct model_thread *t)
{
	if (t && t->pin)
		return t->pin;
	return v->xml_pin ? v->xml_pin : "";
}

static void put_vcpu(struct commit *c, const struct inv_vcpu *v, uint32_t vm, uint32_t at)
{
	struct snap_vcpu *row = &c->vcpus[at];
	const struct model_thread *t = thread_state(v->thread);

	row->id = v->id;
	row->vm = vm;
	row->index = v->index;
	row->kvm_id = v->kvm_id;
	row->index_guessed = v->index_guessed;
	row->quality = quality_of(v->flags);
	row->tid = v->thread ? v->thread->tid : 0;
	row->comm = snapshot_str(c->s, v->thread ? v->thread->comm : "");
	row->state = t && t->use.seen ? t->use.last.state : '?';
	row->cpu = t && t->use.seen ? t->use.last.cpu : -1;
	row->pin = snapshot_str(c->s, vcpu_pin(v, t));
	row->node = snapshot_str(c->s, t && t->node ? t->node : "");
	if (v->thread && v->thread->nvcpus > 1)
		shared_use(&row->use);
	else if (v->thread)
		thread_use(v->thread, &row->use);
	model_vcpu_exits(c, v, row);
	model_vcpu_symbols(c, v, row);
	model_vcpu_tsc(c, v, row);
}

static void put_thread(struct commit *c, const struct inv_thread *t, uint32_t vm, uint32_t at)
{
	struct snap_thread *row = &c->threads[at];
	const struct model_thread *s = thread_state(t);

	row->vm = vm;
	row->tid = t->tid;
	row->comm = snapshot_str(c->s, t->comm);
	row->role = t->role;
	row->state = s && s->use.seen ? s->use.last.state : '?';
	row->cpu = s && s->use.seen ? s->use.last.cpu : -1;
	thread_use(t, &row->use);
}

/* ---- VM rows ---- */

static void put_vm_names(struct commit *c, const struct inv_vm *vm, struct snap_vm *row)
{
	struct snapshot *s = c->s;
	unsigned died_unknown = INV_PROVISIONAL | INV_GONE;

	row->id = vm->id;
	row->pid = vm->pid;
	row->quality = quality_of(vm->flags);
	if ((vm->flags & died_unknown) == died_unknown)
		row->name = snapshot_printf(s, "%s (gone)", vm->name);
	else
		row->name = snapshot_str(s, vm->name);
	row->uuid = snapshot_str(s, vm->uuid);
	model_vm_id(c, vm, row);
	row->title = snapshot_str(s, vm->title ? vm->title : vm->nova);
	row->vmm = snapshot_str(s, vm->vmm);
	row->cmdline = snapshot_str(s, vm->cmdline);
	row->cgroup = snapshot_str(s, vm->cgroup);
}

/* Its sums over all threads; what is vCPU and what is I/O. */
static void put_vm_use(const struct inv_vm *vm, struct snap_vm *row)
{
	struct use_sum all = {0}, vcpus = {0}, rest = {0};
	struct snap_use use, part;

	row->steal_source = "";
	for (const struct inv_thread *t = vm->threads; t; t = t->next) {
		const struct model_thread *s = thread_state(t);
		bool is_vcpu = t->role == ROLE_VCPU;

		if (t->flags & INV_LAST)
			continue;
		thread_use(t, &use);
		use_sum_add(&all, &use, is_vcpu);
		use_sum_add(is_vcpu ? &vcpus : &rest, &use, is_vcpu);
		if (is_vcpu && s && s->use.seen)
			row->steal_source = s->use.last.has_gstime  ? "gstime"
					    : s->use.last.has_sched ? "rundelay"
								    : "";
	}
	use_sum_result(&all, &row->use);
	use_sum_result(&vcpus, &part);
	row->vcpu_pct = part.cpu;
	use_sum_result(&rest, &part);
	row->io_pct = part.cpu;
}

static void put_steal_max(const struct commit *c, struct snap_vm *row)
{
	row->steal_max_vcpu = -1;
	row->steal_max = row->use.steal;
	if (value_has(row->steal_max))
		row->steal_max = value_pending();
	for (uint32_t i = 0; i < row->vcpu_n; i++) {
		const struct snap_vcpu *v = &c->vcpus[row->vcpu_first + i];

		if (!value_has(v->use.steal) ||
		    (row->steal_max_vcpu >= 0 && v->use.steal.v <= row->steal_max.v))
			continue;
		row->steal_max = v->use.steal;
		row->steal_max_vcpu = v->index;
	}
}

/* The one of the thread that was held back most. */
static void put_limit(struct commit *c, const struct model_thread *th, struct snap_vm *row)
{
	if (!th || !th->limit)
		return;
	row->quota_file = snapshot_str(c->s, th->limit);
	row->quota_held_pct = th->quota.limit_pct;
	row->quota_shared = th->quota.shared;
}

static double held_back(const struct model_thread *th)
{
	return value_has(th->quota.throt) ? th->quota.throt.v : 0;
}

/* The tightest quota of the VM's group and its threads' own ones. */
static void put_quota(struct commit *c, const struct inv_vm *vm, struct snap_vm *row)
{
	const struct model_vm *s = vm_state(vm);
	const struct model_thread *most = NULL;

	if (s && s->quota.quota_us) {
		row->quota_us = s->quota.quota_us;
		row->period_us = s->quota.period_us;
	}
	for (const struct inv_thread *t = vm->threads; t; t = t->next) {
		const struct model_thread *th = thread_state(t);

		if (!th || !th->quota.quota_us)
			continue;
		if (!most || held_back(th) > held_back(most))
			most = th;
		if (row->quota_us && (double)th->quota.quota_us * (double)row->period_us >=
					     (double)row->quota_us * (double)th->quota.period_us)
			continue;
		row->quota_us = th->quota.quota_us;
		row->period_us = th->quota.period_us;
	}
	put_limit(c, most, row);
}

static double against(struct value v, double threshold)
{
	return value_has(v) ? v.v / threshold : 0;
}

static double symbol_against(const struct snap_samples *s)
{
	if (!s->hot_named || !value_has(s->n) || s->n.v < WHY_SYMBOL_MIN)
		return 0;
	return against(s->hot_pct, WHY_SYMBOL_PCT);
}

/* The worst vCPU's; where one thread runs several, no vCPU has its own, but their VM has. */
static double steal_shown(const struct snap_vm *row)
{
	return value_has(row->steal_max) ? row->steal_max.v : row->use.steal.v;
}

/* In exits and on a CPU: without one it waits, and steal says that. */
static struct value exits_on_cpu(const struct snap_vm *row)
{
	struct value v = row->ex.pct;

	if (value_has(row->ex.on_pct))
		return row->ex.on_pct;
	if (value_has(v))
		v.v -= snapshot_waited_in_exits(row);
	return v;
}

static void put_why(struct commit *c, struct snap_vm *row)
{
	double steal = against(row->use.steal, STEAL_NOTICE);
	double worst = against(row->steal_max, WHY_STEAL_MAX_PCT);
	double exits = against(exits_on_cpu(row), WHY_EXIT_PCT);
	double symbol = symbol_against(&row->sym);

	if (!value_has(row->ex.pct) && row->nvcpu)
		exits = against(row->ex.rate, WHY_EXIT_RATE * row->nvcpu);
	if (worst > steal)
		steal = worst;
	row->why_text = "";
	if (steal < 1 && exits < 1 && symbol < 1)
		return;
	if (symbol > steal && symbol > exits) {
		row->why = WHY_ROW_SYMBOL;
		row->why_text =
			snapshot_printf(c->s, "%s %.0f%%", row->sym.hot, row->sym.hot_pct.v);
		return;
	}
	if (steal >= exits) {
		row->why = row->use.own_quota ? WHY_ROW_QUOTA : WHY_ROW_STEAL;
		row->why_text = row->use.own_quota
					? "quota"
					: snapshot_printf(c->s, "steal %.0f%%", steal_shown(row));
		return;
	}
	row->why = WHY_ROW_EXITS;
	if (row->ex.top[0] && value_has(row->ex.top_pct))
		row->why_text = snapshot_printf(c->s, "%s %.0f%%", row->ex.top, row->ex.top_pct.v);
	else
		row->why_text = "exits";
}

static void put_vm(struct commit *c, const struct inv_vm *vm, uint32_t at, uint32_t *nvcpu,
		   uint32_t *nthread)
{
	struct snap_vm *row = &c->vms[at];

	model_fetch_vm(vm);
	put_vm_names(c, vm, row);
	row->nthread = (unsigned)vm->nthread;
	row->vcpu_first = *nvcpu;
	for (size_t i = 0; i < vm->nvcpu; i++)
		if (commit_vcpu_shown(vm, vm->vcpu[i]))
			put_vcpu(c, vm->vcpu[i], at, (*nvcpu)++);
	row->nvcpu = row->vcpu_n = *nvcpu - row->vcpu_first;
	row->thread_first = *nthread;
	for (const struct inv_thread *t = vm->threads; t; t = t->next)
		if (thread_shown(t))
			put_thread(c, t, at, (*nthread)++);
	row->thread_n = *nthread - row->thread_first;
	put_vm_use(vm, row);
	put_steal_max(c, row);
	put_quota(c, vm, row);
	model_fold_vm(c->m, vm);
	model_vm_exits(c, vm, row);
	model_vm_symbols(c, vm, row);
	put_why(c, row);
	model_next_early(c->m, vm);
}

/* ---- exit rows ---- */

static bool vcpu_rows_wanted(const struct model *m, const struct inv_vm *vm)
{
	return m->demand.exits_all_vcpus || m->demand.vm == vm->id;
}

static uint32_t count_exit_rows(struct model *m)
{
	uint32_t n = model_exit_rows(&m->all.set);

	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		if (vm_state(vm))
			n += model_exit_rows(&vm_state(vm)->ex.set);
		if (!vcpu_rows_wanted(m, vm))
			continue;
		for (size_t i = 0; i < vm->nvcpu; i++) {
			const struct model_vcpu *v = vm->vcpu[i]->cookie[INV_COOKIE_MODEL];

			n += v ? model_exit_rows(&v->ex.set) : 0;
		}
	}
	return n;
}

static void put_vcpu_exit_rows(struct commit *c, const struct inv_vm *vm, uint32_t at)
{
	uint32_t k = c->vms[at].vcpu_first;

	for (size_t i = 0; i < vm->nvcpu && vcpu_rows_wanted(c->m, vm); i++) {
		const struct model_vcpu *v = vm->vcpu[i]->cookie[INV_COOKIE_MODEL];

		if (!commit_vcpu_shown(vm, vm->vcpu[i]))
			continue;
		if (v)
			model_put_rows(c, &v->ex.set, at, (int32_t)k, &c->vcpus[k].ex);
		k++;
	}
}

static void put_exit_rows(struct commit *c)
{
	uint32_t at = 0;

	c->exit_room = count_exit_rows(c->m);
	c->exit_rows = snapshot_alloc(c->s, c->exit_room, sizeof(*c->exit_rows));
	if (!c->exit_rows)
		c->exit_room = 0; /* the rows are missing, all other figures are there */
	for (struct inv_vm *vm = inventory_first(c->m->inv); (vm = commit_next_vm(c, vm, at));
	     vm = vm->next, at++) {
		struct snap_vm *row = &c->vms[at];

		if (vm_state(vm))
			model_put_rows(c, &vm_state(vm)->ex.set, at, -1, &row->ex);
		put_vcpu_exit_rows(c, vm, at);
	}
	model_put_rows(c, &c->m->all.set, SNAP_NO_VM, -1, &c->s->host.ex);
	c->s->exits = c->exit_rows;
	c->s->nexits = c->nexits;
}

/* ---- the whole ---- */

static int alloc_rows(struct commit *c)
{
	struct snapshot *s = c->s;
	size_t vms = 0, vcpus = 0, threads = 0;

	for (struct inv_vm *vm = inventory_first(c->m->inv); vm; vm = vm->next) {
		vm->shown = vm_shown(vm);
		if (!vm->shown)
			continue;
		vms++;
		vcpus += vcpus_shown(vm);
		for (const struct inv_thread *t = vm->threads; t; t = t->next)
			threads += thread_shown(t);
	}
	c->vms = snapshot_alloc(s, vms, sizeof(*c->vms));
	c->vcpus = snapshot_alloc(s, vcpus, sizeof(*c->vcpus));
	c->threads = snapshot_alloc(s, threads, sizeof(*c->threads));
	if (!c->vms || !c->vcpus || !c->threads)
		return -1;
	s->vms = c->vms;
	s->nvms = vms;
	s->vcpus = c->vcpus;
	s->nvcpus = vcpus;
	s->threads = c->threads;
	s->nthreads = threads;
	return 0;
}

static void put_head(struct commit *c, struct timespec wall, bool first_rates, double delay_s)
{
	struct model *m = c->m;
	struct snapshot *s = c->s;

	s->seq = m->seq;
	s->wall = wall;
	s->first_rates = first_rates;
	s->delay_s = delay_s;
	s->open_kinds = m->ex.kinds_all;
	if (!m->ex.entry_exit_all)
		s->open_kinds &= ~KIND_BIT(KIND_VMEXIT);
}

static void put_sources(struct commit *c)
{
	struct model *m = c->m;
	struct snap_source *row = snapshot_alloc(c->s, m->nsources, sizeof(*row));

	if (!row)
		return;
	for (size_t i = 0; i < m->nsources; i++) {
		row[i].name = snapshot_str(c->s, m->sources[i].name);
		row[i].state = m->sources[i].state;
		row[i].why = snapshot_str(c->s, m->sources[i].why);
		row[i].mend = snapshot_str(c->s, m->sources[i].mend);
	}
	c->s->sources = row;
	c->s->nsources = m->nsources;
}

static void fill(struct commit *c)
{
	uint32_t at = 0, nvcpu = 0, nthread = 0;

	for (struct inv_vm *vm = inventory_first(c->m->inv); (vm = commit_next_vm(c, vm, at));
	     vm = vm->next)
		put_vm(c, vm, at++, &nvcpu, &nthread);
	model_unique_ids(c);
	put_exit_rows(c);
	model_symbol_rows(c);
	model_code_rows(c);
	model_waited_rows(c);
	model_slice_rows(c);
	model_pmu_rows(c);
	model_slow_rows(c);
	model_tsc_rows(c);
	put_sources(c);
	model_host_rows(c);
	model_host_exits(c);
	model_kinds(c);
	model_guest_time(c);
	findings_make(c->m->findings, c->s);
}

static void set_interval(struct commit *c, int64_t watermark)
{
	struct model *m = c->m;

	c->s->time = watermark;
	c->s->dt = m->have_last && watermark > m->last ? watermark - m->last : 0;
	c->dt_s = (double)c->s->dt / 1e9;
	if (!m->have_last)
		m->since = watermark;
	c->s->since = m->since;
	c->total_s = (double)(watermark - m->since) / 1e9;
}

struct snapshot *model_commit(struct model *m, int64_t watermark, struct timespec wall,
			      bool first_rates, double delay_s)
{
	/* What it is like it was a moment ago, and somewhat more. */
	struct commit c = {.m = m, .s = snapshot_new_for(m->snapshot_used / 8 * 9)};

	if (!c.s)
		return NULL;
	exits_relate(&m->ex);
	model_fold_astray(m);
	if (alloc_rows(&c)) {
		snapshot_unref(c.s);
		return NULL;
	}
	m->seq++;
	set_interval(&c, watermark);
	missing_commit(&m->missing, m->last);
	put_head(&c, wall, first_rates, delay_s);
	model_exit_state(&c);
	fill(&c);
	m->snapshot_used = snapshot_used(c.s);
	model_slow_next(m);
	model_next(m, watermark);
	model_symbols_next(m);
	model_code_next(m);
	model_waits_next(m);
	model_slices_next(m);
	model_pmu_next(m);
	model_host_next(m);
	missing_next(&m->missing, watermark);
	m->last = watermark;
	m->have_last = true;
	return c.s;
}
