// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exit figures and rows of a snapshot, from the tables of exits_cells.h.
 */
#include <stdio.h>
#include <string.h>

#include "kvm_names.h"
#include "model_rows.h"

#define NAME_SIZE 64
#define HEAT_KEYS 8 /* a kind and table: heat maps for its top keys */
#define MANY_VCPUS 4096 /* above it only the selected VM's vCPUs keep total histograms a key */
/* When we say that there is no kvm_entry: after so many other events, or so much guest time. */
#define ACCESS_MIN 10
#define GUEST_MIN 1e9

static const double percentiles[] = {0.5, 0.99, 0.999};

static struct model_vm *vm_state(const struct inv_vm *vm)
{
	return vm->cookie[INV_COOKIE_MODEL];
}

static struct model_vcpu *vcpu_state(const struct inv_vcpu *v)
{
	return v->cookie[INV_COOKIE_MODEL];
}

struct value commit_exit_value(const struct commit *c, double v)
{
	struct value x = c->exits;

	x.v = value_has(x) ? v : 0;
	return x;
}

/* ---- before the rows: VM sums, and how much is known ---- */

/* The row "poll size" is no time and no event of a guest: it is in no sum. */
static bool in_sums(const struct ex_cell *c)
{
	return c->kind != KIND_HALT || c->dir != DIR_NONE || c->other;
}

static void sum_kinds(struct model *m)
{
	const struct ex_cell *c;

	for (int k = 0; k < KIND_NR; k++) {
		EX_EACH(&m->all.set.kind[k], c)
		{
			if (!in_sums(c) || (!c->now.count && !c->now.timed))
				continue;
			ex_acc_add(&m->kinds[k].now, &c->now);
			hist_merge(&m->kinds[k].now_hist, &c->now_hist);
		}
	}
}

static void fold_threads(struct model *m, const struct inv_vm *vm)
{
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		struct model_thread *th = t->cookie[INV_COOKIE_MODEL];
		struct ex_vcpu *own = th ? th->ex.own : NULL;

		if (!own || !own->touched || own->folded)
			continue;
		exits_fold(&m->ex, own);
		own->folded = true;
	}
}

void model_fold_astray(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm && m->ex.astray; vm = vm->next)
		fold_threads(m, vm);
}

void model_fold_vm(struct model *m, const struct inv_vm *vm)
{
	fold_threads(m, vm);
	if (vm_state(vm) &&
	    ex_set_add_now(&m->all.set, m->all.gen, &vm_state(vm)->ex.set, m->ex.vm_keys))
		m->ex.lost++; /* no memory: some are, how many is not known */
}

/* Decides once an interval how exit figures are known; see commit.exits. */
void model_exit_state(struct commit *c)
{
	struct model *m = c->m;
	struct exits *x = &m->ex;

	if (x->seen)
		m->no_entry_exit = false;
	else if (x->entry_exit_all &&
		 (x->accesses >= ACCESS_MIN || m->guest_unseen_ns >= GUEST_MIN))
		m->no_entry_exit = true;
	if (c->dt_s <= 0)
		c->exits = value_pending();
	else if (!x->entry_exit_all)
		c->exits = x->entry_exit ? value_pending() : value_na(WHY_NOT_OPEN);
	else if (x->seen)
		c->exits = value_known(0);
	else
		c->exits = m->no_entry_exit ? value_na(WHY_NO_ENTRY_EXIT) : value_pending();
}

/* ---- rows ---- */

struct sums {
	struct ex_acc now[KIND_NR], total[KIND_NR];
};

static void sum_set(const struct ex_set *set, struct sums *out)
{
	const struct ex_cell *c;

	memset(out, 0, sizeof(*out));
	for (int k = 0; k < KIND_NR; k++) {
		EX_EACH(&set->kind[k], c)
		{
			if (!in_sums(c))
				continue;
			ex_acc_add(&out->now[k], &c->now);
			ex_acc_add(&out->total[k], &c->total);
			ex_acc_add(&out->total[k], &c->now);
		}
	}
}

static struct value share(uint64_t part, uint64_t whole)
{
	return whole ? value_known(100.0 * (double)part / (double)whole) : value_pending();
}

static void fill_tally(struct tally *t, const struct ex_acc *a, const struct ex_acc *whole,
		       const struct hist *h, const struct hist *more, double seconds)
{
	static const struct hist none;
	uint64_t p[3] = {0};
	uint64_t n = hist_quantiles_of_both(h, more ? more : &none, percentiles, p, 3);

	t->count = a->count;
	t->timed = a->timed;
	t->time_ns = a->sum;
	t->min_ns = a->timed ? a->min : 0;
	t->max_ns = a->max;
	t->avg_ns = a->timed ? (double)a->sum / (double)a->timed : 0;
	t->stderr_pct = ex_acc_stderr_pct(a);
	t->pctl = n >= a->timed ? PCTL_ALL : n ? PCTL_PART : PCTL_NONE;
	t->p50_ns = p[0];
	t->p99_ns = p[1];
	t->p999_ns = p[2];
	t->rate = seconds > 0 ? value_known((double)a->count / seconds) : value_pending();
	t->count_pct = share(a->count, whole->count);
	t->time_pct = share(a->sum, whole->sum);
}

/* The kinds that were open all the time. */
static unsigned kinds_whole(const struct exits *x)
{
	return x->kinds_all | (x->entry_exit_all ? KIND_BIT(KIND_VMEXIT) : 0);
}

/* What the interval has of a kind that was not open all the time is no rate. */
static void mask_rate(const struct commit *c, enum kvm_kind kind, struct tally *now)
{
	const struct exits *x = &c->m->ex;

	if (kinds_whole(x) & KIND_BIT(kind))
		return;
	now->rate = x->kinds & KIND_BIT(kind) ? value_pending() : value_na(WHY_NOT_OPEN);
}

/* Opened or closed in this interval: the count is of a part of it. */
static bool is_of_a_part(const struct exits *x, unsigned kind, const struct tally *now)
{
	if (kinds_whole(x) & KIND_BIT(kind))
		return false;
	return x->kinds & KIND_BIT(kind) || now->count;
}

/* Where events are missing, the count is too low by these. */
static void mark_count(const struct commit *c, unsigned kind, bool total, struct tally *t)
{
	const struct missing *m = &c->m->missing;
	struct value v = missing_mark(m, KIND_BIT(kind), total, value_known(0));

	t->low = v.why;
	if (!total && !t->low && is_of_a_part(&c->m->ex, kind, t))
		t->low = WHY_NOT_OPEN;
	t->rate = missing_mark(m, KIND_BIT(kind), total, t->rate);
}

/* Its thread runs others too: of its events only kvm_entry, kvm_exit and halts say whose they are.
 */
static bool is_shared(const struct snap_vcpu *v)
{
	return v->use.cpu.state == VALUE_NA && v->use.cpu.why == WHY_SHARED;
}

/* An access that is finished after a turn of the other vCPU is counted there. */
static void mark_shared(struct tally *t)
{
	t->low = WHY_SHARED;
	if (value_has(t->rate))
		t->rate = value_partial(t->rate.v, WHY_SHARED);
}

static bool kind_has_time(const struct model *m, enum kvm_kind kind)
{
	return kind == KIND_HALT || m->ex.seen;
}

/* Interval included: the cell's own total is as of the interval before. */
static void total_tally(struct commit *c, const struct ex_cell *cell, const struct ex_acc *whole,
			struct tally *t)
{
	struct ex_acc a = cell->total;
	bool both = !cell->total_hist.used || cell->now.timed;

	ex_acc_add(&a, &cell->now);
	fill_tally(t, &a, whole, &cell->total_hist, both ? &cell->now_hist : NULL, c->total_s);
}

static const char *cell_name(const struct commit *c, const struct ex_cell *cell, char *buf)
{
	if (cell->other)
		return "other";
	return kvm_names_key(c->m->names, cell->kind, cell->isa, cell->key, (enum ev_dir)cell->dir,
			     buf, NAME_SIZE);
}

static void put_heat(struct commit *c, const struct ex_cell *cell, struct snap_exit *row)
{
	uint32_t *heat;

	if (!cell->now.timed || !cell->now_hist.used)
		return;
	heat = snapshot_alloc(c->s, HEAT_BUCKETS, sizeof(*heat));
	if (heat)
		hist_heat(&cell->now_hist, heat);
	row->heat = heat;
}

static void put_row(struct commit *c, const struct ex_cell *cell, const struct sums *sums,
		    struct snap_exit *row)
{
	char buf[NAME_SIZE];
	const char *note = cell->other ? "" : kvm_names_note(c->m->names, cell->kind, cell->key);

	row->kind = cell->kind;
	row->idle = cell->idle;
	row->other = cell->other;
	row->has_time = kind_has_time(c->m, cell->kind);
	row->isa = cell->isa;
	row->key = cell->key;
	row->dir = cell->dir;
	row->name = snapshot_str(c->s, cell_name(c, cell, buf));
	row->note = snapshot_str(c->s, note);
	fill_tally(&row->now, &cell->now, &sums->now[cell->kind], &cell->now_hist, NULL, c->dt_s);
	mask_rate(c, cell->kind, &row->now);
	total_tally(c, cell, &sums->total[cell->kind], &row->total);
	mark_count(c, cell->kind, false, &row->now);
	mark_count(c, cell->kind, true, &row->total);
	if (in_sums(cell))
		return;
	row->now.count_pct = row->now.time_pct = value_na(WHY_NONE);
	row->total.count_pct = row->total.time_pct = value_na(WHY_NONE);
}

static bool has_row(const struct ex_cell *c)
{
	return c->now.count || c->now.timed || c->total.count || c->total.timed;
}

uint32_t model_exit_rows(const struct ex_set *set)
{
	const struct ex_cell *c;
	uint32_t n = 0;

	for (int k = 0; k < KIND_NR; k++)
		EX_EACH(&set->kind[k], c)
	n += has_row(c);
	return n;
}

/* The cell's time of this interval that at most HEAT_KEYS - 1 others of its table exceed. */
static uint64_t heat_border(const struct ex_table *t)
{
	uint64_t top[HEAT_KEYS] = {0};
	const struct ex_cell *c;

	EX_EACH(t, c)
	{
		uint64_t v = c->now.sum;

		for (int i = 0; i < HEAT_KEYS; i++) {
			uint64_t low = top[i];

			if (v <= low)
				continue;
			top[i] = v;
			v = low;
		}
	}
	return top[HEAT_KEYS - 1];
}

void model_put_rows(struct commit *c, const struct ex_set *set, uint32_t vm, int32_t vcpu,
		    struct snap_exits *out)
{
	bool heat = vcpu < 0 || c->vms[vm].id == c->m->demand.vm;
	const struct ex_cell *cell;
	struct sums sums;

	out->first = c->nexits;
	sum_set(set, &sums);
	for (int k = 0; k < KIND_NR; k++) {
		uint64_t border = heat_border(&set->kind[k]);

		EX_EACH(&set->kind[k], cell)
		{
			struct snap_exit *row = &c->exit_rows[c->nexits];

			if (!has_row(cell) || c->nexits == c->exit_room)
				continue;
			row->vm = vm;
			row->vcpu = vcpu;
			put_row(c, cell, &sums, row);
			if (vcpu >= 0 && is_shared(&c->vcpus[vcpu]) && k != KIND_VMEXIT &&
			    k != KIND_HALT) {
				mark_shared(&row->now);
				mark_shared(&row->total);
			}
			if (heat && cell->now.sum >= border)
				put_heat(c, cell, row);
			c->nexits++;
		}
	}
	out->n = c->nexits - out->first;
}

/* ---- figures of VM and vCPU rows ---- */

struct picture {
	uint64_t count, time; /* vm exits, all; time of those that are not idle */
	uint64_t max;
	uint64_t access, user; /* events of the other kinds */
	const struct ex_cell *top;
	uint64_t top_part, top_whole;
};

static bool is_access(unsigned kind)
{
	return kind == KIND_MMIO || kind == KIND_IOPORT || kind == KIND_MSR ||
	       kind == KIND_HYPERCALL;
}

/* TOP EXIT by time; by count where nothing has a time. */
static void consider_top(struct picture *p, const struct ex_cell *c, bool by_time)
{
	uint64_t part = by_time ? c->now.sum : c->now.count;

	p->top_whole += part;
	if (c->other || part <= p->top_part)
		return;
	p->top = c;
	p->top_part = part;
}

static void look_at_exits(const struct ex_set *set, struct picture *p)
{
	const struct ex_cell *c;

	EX_EACH(&set->kind[KIND_VMEXIT], c)
	{
		p->count += c->now.count;
		if (c->idle)
			continue;
		p->time += c->now.sum;
		if (c->now.timed && c->now.max > p->max)
			p->max = c->now.max;
		consider_top(p, c, true);
	}
}

static void look_at_accesses(const struct ex_set *set, struct picture *p)
{
	const struct ex_cell *c;

	for (unsigned k = 0; k < KIND_NR; k++) {
		EX_EACH(&set->kind[k], c)
		{
			p->access += is_access(k) ? c->now.count : 0;
			p->user += k == KIND_USEREXIT ? c->now.count : 0;
		}
	}
	/* Returns to the VMM are always watched, accesses while somebody looks at them. */
	for (unsigned k = 0; k < KIND_NR; k++)
		if (p->user ? k == KIND_USEREXIT : is_access(k))
			EX_EACH(&set->kind[k], c)
	consider_top(p, c, false);
}

/*
 * Without kvm_exit each access and each return to the VMM is at most one exit, and one exit may
 * be both: the larger sum is what is surely there.
 */
static struct value event_rate(const struct commit *c, const struct picture *p)
{
	unsigned all = KIND_ALL & ~(KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_HALT));
	uint64_t n = p->access > p->user ? p->access : p->user;
	unsigned others = KIND_ALL & ~KIND_BIT(KIND_VMEXIT);

	if (c->dt_s <= 0)
		return commit_exit_value(c, 0);
	/* Opened within this interval: the next one has a figure. */
	if (!(c->m->ex.kinds_all & others))
		return c->m->ex.kinds & others ? value_pending() : commit_exit_value(c, 0);
	return missing_mark(&c->m->missing, all, false,
			    value_partial((double)n / c->dt_s, WHY_NO_ENTRY_EXIT));
}

static struct value exit_rate(const struct commit *c, const struct picture *p)
{
	return missing_mark(&c->m->missing, KIND_BIT(KIND_VMEXIT), false,
			    commit_exit_value(c, (double)p->count / c->dt_s));
}

static void fill_picture(struct commit *c, const struct ex_set *set, const struct hist *h,
			 struct snap_exits *out)
{
	struct picture p = {0};
	char buf[NAME_SIZE];
	uint64_t q[2] = {0};

	if (c->m->no_entry_exit && !c->m->ex.seen)
		look_at_accesses(set, &p);
	else
		look_at_exits(set, &p);
	out->rate = c->m->no_entry_exit ? event_rate(c, &p) : exit_rate(c, &p);
	out->p50 = out->p99 = out->max = value_has(c->exits) ? value_pending() : c->exits;
	if (value_has(c->exits) && h->used && hist_quantiles(h, percentiles, q, 2)) {
		out->p50 = value_known((double)q[0]);
		out->p99 = value_known((double)q[1]);
		out->max = value_known((double)p.max);
	}
	out->top = p.top ? snapshot_str(c->s, cell_name(c, p.top, buf)) : "";
	out->top_pct = p.top ? share(p.top_part, p.top_whole) : value_pending();
	out->open = "";
	out->open_ns = value_na(WHY_NONE);
}

static void put_open(struct commit *c, const struct ex_vcpu *v, struct snap_exits *out)
{
	const struct ex_open *e = &v->pair[KIND_VMEXIT], *u = &v->pair[KIND_USEREXIT];
	const struct ex_key *k = v->open & KIND_BIT(KIND_USEREXIT) ? &u->key : &e->key;
	char buf[NAME_SIZE];

	if (!(v->open & KIND_BIT(KIND_VMEXIT)) || c->s->time <= e->begin ||
	    exits_torn(&c->m->ex, e->begin, c->s->time))
		return;
	if (e->idle)
		return;
	out->open = snapshot_str(c->s, kvm_names_key(c->m->names, k->kind, k->isa, k->key,
						     (enum ev_dir)k->dir, buf, sizeof(buf)));
	out->open_ns = value_known((double)(c->s->time - e->begin));
}

/* %EXIT of n vCPUs that were in exits for so long together. */
static struct value exit_pct(const struct commit *c, uint64_t ns, size_t nvcpu, bool torn)
{
	double all = c->dt_s * 1e9 * (double)nvcpu;
	struct value v;

	if (all <= 0)
		return value_has(c->exits) ? value_pending() : c->exits;
	v = commit_exit_value(c, 100.0 * (double)ns / all);
	if (value_has(v) && v.v > 100)
		v.v = 100;
	v = missing_mark_time(&c->m->missing, v);
	return torn && v.state == VALUE_KNOWN ? value_partial(v.v, WHY_LOST) : v;
}

static bool thread_ended(const struct inv_thread *t)
{
	return !t || t->flags & INV_GONE;
}

/* Its thread ended in its last exit: nobody is in that any more, and no entry will tell. */
static bool vcpu_ended(const struct inv_vcpu *v)
{
	return v->flags & INV_GONE || thread_ended(v->thread);
}

/* It is in an exit whose end nobody knows: its thread ended, or the entry may have been lost. */
static bool cut_off(const struct commit *c, const struct ex_vcpu *v, bool ended)
{
	const struct ex_open *e = &v->pair[KIND_VMEXIT];

	return v->open & KIND_BIT(KIND_VMEXIT) && !e->idle &&
	       (ended || exits_torn(&c->m->ex, e->begin, c->s->time));
}

/* What goes into %EXIT and its two parts. */
struct exit_time {
	uint64_t ns, off; /* off: without a CPU */
	bool torn, blind;
};

static void add_exit_time(const struct commit *c, const struct ex_vcpu *v, bool ended,
			  struct exit_time *t)
{
	t->ns += v->exit_ns;
	t->off += v->off_ns;
	t->torn |= v->torn || cut_off(c, v, ended);
	t->blind |= v->off_blind;
	if (ended)
		return;
	t->ns += exits_open_ns(&c->m->ex, v, c->s->time);
	t->off += exits_open_off_ns(&c->m->ex, v, c->s->time);
	t->blind |= v->open_blind && exits_open_ns(&c->m->ex, v, c->s->time);
}

static void put_exit_time(const struct commit *c, const struct exit_time *t, size_t nvcpu,
			  struct snap_exits *out)
{
	double off = t->ns ? (double)t->off / (double)t->ns : 0;
	const struct exits *x = &c->m->ex;

	out->pct = out->on_pct = out->off_pct = exit_pct(c, t->ns, nvcpu, t->torn);
	if (!value_has(out->pct))
		return;
	if (!x->off_told_all) {
		out->on_pct = x->off_told ? value_pending() : value_na(WHY_NO_SWITCHES);
		out->off_pct = out->on_pct;
		return;
	}
	if (t->blind && out->pct.state == VALUE_KNOWN)
		out->on_pct = out->off_pct = value_partial(out->pct.v, WHY_BLIND);
	out->off_pct.v *= off < 1 ? off : 1;
	out->on_pct.v -= out->off_pct.v;
}

void model_vcpu_exits(struct commit *c, const struct inv_vcpu *iv, struct snap_vcpu *row)
{
	struct exit_time time = {0};
	static const struct model_vcpu none;
	const struct model_vcpu *v = vcpu_state(iv) ? vcpu_state(iv) : &none;

	if (v->ex.touched)
		exits_fold(&c->m->ex, &vcpu_state(iv)->ex);
	fill_picture(c, &v->ex.set, &v->ex.hist, &row->ex);
	add_exit_time(c, &v->ex, vcpu_ended(iv), &time);
	put_exit_time(c, &time, 1, &row->ex);
	row->ex.lost = v->ex.dropped;
	if (!vcpu_ended(iv))
		put_open(c, &v->ex, &row->ex);
	/* Counted for the VM alone. */
	if (is_shared(row) && c->m->no_entry_exit)
		row->ex.rate = value_na(WHY_SHARED);
}

struct vm_sum {
	struct exit_time time;
	uint64_t lost;
	struct hist hist;
	const struct ex_vcpu *open; /* the exit open for longest */
};

static void add_vcpu(const struct commit *c, const struct ex_vcpu *v, bool ended,
		     struct vm_sum *sum)
{
	const struct ex_open *e = &v->pair[KIND_VMEXIT];

	add_exit_time(c, v, ended, &sum->time);
	sum->lost += v->dropped;
	hist_merge(&sum->hist, &v->hist);
	if (!(v->open & KIND_BIT(KIND_VMEXIT)) || e->idle || ended)
		return;
	if (!sum->open || e->begin < sum->open->pair[KIND_VMEXIT].begin)
		sum->open = v;
}

void model_vm_exits(struct commit *c, const struct inv_vm *vm, struct snap_vm *row)
{
	static const struct model_vm none;
	const struct model_vm *state = vm_state(vm) ? vm_state(vm) : &none;
	struct vm_sum sum = {0};
	size_t n = row->nvcpu;

	for (size_t i = 0; i < vm->nvcpu; i++)
		if (vcpu_state(vm->vcpu[i]))
			add_vcpu(c, &vcpu_state(vm->vcpu[i])->ex, vcpu_ended(vm->vcpu[i]), &sum);
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		struct model_thread *th = t->cookie[INV_COOKIE_MODEL];

		if (!th || !th->ex.own)
			continue;
		/* A vCPU that is not known yet; not a thread that a known one left. */
		n += th->ex.own == th->ex.v && !th->ex.one_of_several &&
		     (th->ex.own->touched || th->ex.own->open);
		add_vcpu(c, th->ex.own, thread_ended(t), &sum);
	}
	fill_picture(c, &state->ex.set, &sum.hist, &row->ex);
	put_exit_time(c, &sum.time, n, &row->ex);
	row->ex.lost = sum.lost;
	if (sum.open)
		put_open(c, sum.open, &row->ex);
	hist_free(&sum.hist);
}

/* %EXIT of the host is the mean over vCPUs: so are its parts, which add up to it. */
static void put_mean_on_off(struct commit *c)
{
	struct snap_exits *out = &c->s->host.ex;
	double on = 0, off = 0;
	unsigned n = 0;

	out->on_pct = out->off_pct = out->pct;
	for (size_t i = 0; i < c->s->nvcpus; i++) {
		const struct snap_exits *ex = &c->s->vcpus[i].ex;

		if (!value_has(ex->pct))
			continue;
		if (!value_has(ex->on_pct) || out->on_pct.state == VALUE_KNOWN)
			out->on_pct = out->off_pct = ex->on_pct;
		if (!value_has(ex->on_pct))
			return;
		on += ex->on_pct.v;
		off += ex->off_pct.v;
		n++;
	}
	out->on_pct.v = n ? on / n : 0;
	out->off_pct.v = n ? off / n : 0;
}

/*
 * The row of all VMs. Its percentiles are over the cells: `other` may hold waiting too, but no
 * guest waits so seldom that this happens.
 */
void model_host_exits(struct commit *c)
{
	const struct ex_set *set = &c->m->all.set;
	struct snap_host *host = &c->s->host;
	struct hist busy = {0};
	const struct ex_cell *cell;
	uint64_t lost = 0;

	EX_EACH(&set->kind[KIND_VMEXIT], cell)
	if (!cell->idle && hist_merge(&busy, &cell->now_hist))
		lost++; /* no memory */
	host->lost += lost;
	host->lost_total = c->m->lost_total += lost;
	fill_picture(c, set, &busy, &host->ex);
	hist_free(&busy);
	host->ex.rate = host->exits_rate;
	host->ex.pct = host->exit_pct;
	put_mean_on_off(c);
	for (size_t i = 0; i < c->s->nvms; i++)
		host->ex.lost += c->s->vms[i].ex.lost;
}

void model_kinds(struct commit *c)
{
	sum_kinds(c->m);
	for (int k = 0; k < KIND_NR; k++) {
		struct model_kind *kind = &c->m->kinds[k];

		ex_acc_add(&kind->total, &kind->now);
		hist_merge(&kind->total_hist, &kind->now_hist);
		fill_tally(&c->s->kinds[k], &kind->now, &kind->now, &kind->now_hist, NULL, c->dt_s);
		mask_rate(c, (enum kvm_kind)k, &c->s->kinds[k]);
		fill_tally(&c->s->kinds_total[k], &kind->total, &kind->total, &kind->total_hist,
			   NULL, c->total_s);
		mark_count(c, (unsigned)k, false, &c->s->kinds[k]);
		mark_count(c, (unsigned)k, true, &c->s->kinds_total[k]);
		kind->now = (struct ex_acc){0};
		hist_clear(&kind->now_hist);
	}
}

/* A guest that runs for a second leaves guest mode at least once: else nobody tells us. */
void model_guest_time(struct commit *c)
{
	struct model *m = c->m;

	if (m->ex.seen || !m->ex.entry_exit_all) {
		m->guest_unseen_ns = 0;
		return;
	}
	for (size_t i = 0; i < c->s->nvcpus; i++) {
		struct value guest = c->s->vcpus[i].use.guest;

		if (value_has(guest))
			m->guest_unseen_ns += guest.v / 100 * (double)c->s->dt;
	}
}

/* ---- the next interval ---- */

static void set_detail(struct ex_vcpu *v, enum ex_detail detail)
{
	struct ex_cell *c;

	if (v->detail == detail)
		return;
	for (int k = 0; k < KIND_NR && detail < v->detail; k++) {
		EX_EACH(&v->set.kind[k], c)
		{
			hist_free(&c->total_hist);
			if (detail == EX_SUMS)
				hist_free(&c->now_hist);
		}
	}
	v->detail = (uint8_t)detail;
}

static enum ex_detail wanted_detail(const struct model *m, const struct inv_vm *vm)
{
	if (m->demand.vm == vm->id)
		return EX_TOTALS;
	if (!m->demand.exits_all_vcpus)
		return EX_SUMS;
	return inventory_nvcpu(m->inv) <= MANY_VCPUS ? EX_TOTALS : EX_INTERVAL;
}

/*
 * A vCPU of which no rows are shown is done with once its VM has its sums; its cells are in the
 * cache now. One that is only shown if it had events must keep them until all rows are there.
 */
void model_next_early(struct model *m, const struct inv_vm *vm)
{
	unsigned special = INV_PROVISIONAL | INV_GONE | INV_LAST;

	if (vm->flags & special || wanted_detail(m, vm) != EX_SUMS)
		return;
	for (size_t i = 0; i < vm->nvcpu; i++)
		if (vcpu_state(vm->vcpu[i]) && !(vm->vcpu[i]->flags & special))
			exits_next_vcpu(&vcpu_state(vm->vcpu[i])->ex);
}

static void next_vm(struct model *m, struct inv_vm *vm)
{
	enum ex_detail detail = wanted_detail(m, vm);

	for (size_t i = 0; i < vm->nvcpu; i++) {
		struct model_vcpu *v = vcpu_state(vm->vcpu[i]);

		if (!v)
			continue;
		exits_next_vcpu(&v->ex);
		if (!vm->vcpu[i]->thread)
			v->ex.open = 0; /* it ended an interval ago */
		set_detail(&v->ex, detail);
	}
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		struct model_thread *th = t->cookie[INV_COOKIE_MODEL];

		if (th && th->ex.own)
			exits_next_vcpu(th->ex.own);
		if (th)
			th->read = false;
	}
	if (vm_state(vm))
		exits_next_vm(&m->ex, &vm_state(vm)->ex);
}

void model_next(struct model *m, int64_t watermark)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next)
		next_vm(m, vm);
	exits_next_vm(&m->ex, &m->all);
	exits_next(&m->ex, watermark);
}
