// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pairing itself: what each event begins, ends and adds. This is the program's hot path;
 * everything here is per event.
 */
#include <string.h>

#include "exits.h"
#include "exits_code.h"
#include "exits_slow.h"
#include "exits_threads.h"
#include "fetch.h"
#include "inventory.h"
#include "kvm_names.h"

#define RUN 16 /* aggregates of one vCPU that are added together */

/* ---- cells ---- */

static struct ex_cell *vm_cell(struct exits *x, struct ex_vm *vm, const struct ex_key *k)
{
	return ex_set_get(&vm->set, k, x->vm_keys);
}

/* The VM's cell that stands behind a vCPU's own one. */
static struct ex_cell *cell_vm(struct exits *x, struct ex_vcpu *v, struct ex_cell *c,
			       const struct ex_key *k)
{
	if (!c->vm || c->vm_gen != v->vm->gen) {
		c->vm = vm_cell(x, v->vm, k);
		c->vm_gen = v->vm->gen;
	}
	return c->vm;
}

/* Where a key is counted; the last two as struct ex_open has them. */
struct ex_place {
	struct ex_cell *cell, *vm_cell;
	bool idle, direct;
};

static inline bool find_place(struct exits *x, struct ex_vcpu *v, const struct ex_key *k,
			      struct ex_place *p)
{
	struct ex_cell *c = ex_set_get(&v->set, k, x->vcpu_keys);

	if (!c) {
		x->lost++; /* no memory */
		return false;
	}
	p->cell = c;
	p->direct = c->other;
	p->idle = c->idle;
	if (!c->other) {
		p->vm_cell = cell_vm(x, v, c, k);
		return true;
	}
	p->vm_cell = vm_cell(x, v->vm, k);
	if (p->vm_cell && !p->vm_cell->other)
		p->idle = p->vm_cell->idle;
	else if (k->kind == KIND_VMEXIT)
		p->idle = kvm_names_idle(k->isa, k->key);
	return true;
}

static bool find_cells(struct exits *x, struct ex_vcpu *v, struct ex_open *o)
{
	struct ex_place p;

	if (!find_place(x, v, &o->key, &p))
		return false;
	o->cell = p.cell;
	o->evicted = p.cell->evicted;
	o->direct = p.direct;
	o->idle = p.idle;
	o->vm_cell = p.vm_cell;
	if (p.vm_cell)
		o->vm_evicted = p.vm_cell->evicted;
	return true;
}

/* A cell may have been given to another key while the pair was open. */
static bool cells_stale(const struct ex_open *o)
{
	return !o->cell || o->cell->evicted != o->evicted ||
	       (o->vm_cell && o->vm_cell->evicted != o->vm_evicted);
}

static void add_count(struct ex_open *o)
{
	o->cell->now.count++;
	if (o->direct && o->vm_cell)
		o->vm_cell->now.count++;
}

static void add_time(struct ex_vcpu *v, struct ex_open *o, uint64_t ns)
{
	ex_acc_time(&o->cell->now, ns);
	if (o->vm_cell) {
		if (o->direct)
			ex_acc_time(&o->vm_cell->now, ns);
		hist_add(&o->vm_cell->now_hist, ns, 1);
	}
	if (v->detail)
		hist_add(&o->cell->now_hist, ns, 1);
}

/* ---- pairs ---- */

bool exits_torn(const struct exits *x, int64_t begin, int64_t end)
{
	if (begin > x->loss_to)
		return false;
	for (unsigned i = 0; i < x->nlosses; i++)
		if (end > x->losses[i].from && begin <= x->losses[i].to)
			return true;
	return false;
}

/* Counts the event and opens its pair; where its end is never seen it is counted only. */
static void begin_pair(struct exits *x, struct ex_vcpu *v, enum kvm_kind kind,
		       const struct sample *s, uint64_t key, bool late)
{
	struct ex_open *o = &v->pair[kind];

	if (o->begin == s->time && o->key.key == key && o->key.dir == (s->dir & 3))
		return; /* one record, written twice: seen in real recordings */
	if (v->open & KIND_BIT(kind)) {
		x->unmatched++;
		v->open &= (uint8_t)~KIND_BIT(kind);
	}
	o->key = (struct ex_key){
		.key = key,
		.isa = kind == KIND_VMEXIT ? s->isa : 0,
		.kind = (uint8_t)kind,
		.dir = s->dir & 3,
	};
	o->begin = s->time;
	o->untimed = late;
	if (!find_cells(x, v, o))
		return;
	add_count(o);
	if (x->seen && x->entry_exit)
		v->open |= (uint8_t)KIND_BIT(kind);
}

static void add_exit_time(struct exits *x, struct ex_vcpu *v, const struct ex_open *o, int64_t end)
{
	int64_t from = o->begin > x->start ? o->begin : x->start;

	if (end > from && !o->idle)
		v->exit_ns += (uint64_t)(end - from);
}

/* A pair that began within an exit is of it; what the VMM was asked for before is not. */
static void tell_slow(struct ex_vcpu *v, const struct ex_open *o, int64_t end)
{
	const struct ex_open *user = &v->pair[KIND_USEREXIT];
	const struct slow_exit s = {
		.begin = o->begin,
		.end = end,
		.key = o->key.key,
		.isa = o->key.isa,
		.rip = v->rip,
		.tid = v->tid,
		.user_key = user->key.key,
		.user_begin = user->begin >= o->begin && !user->untimed ? user->begin : 0,
	};

	ex_slow_count(v->vm, 1);
	ex_slow_add(v->vm, v->inv, &s);
}

static void end_pair(struct exits *x, struct ex_vcpu *v, struct ex_open *o, int64_t end)
{
	bool torn = exits_torn(x, o->begin, end), is_exit = o->key.kind == KIND_VMEXIT;
	uint64_t ns = end > o->begin ? (uint64_t)(end - o->begin) : 0;

	if (cells_stale(o) && !find_cells(x, v, o))
		return;
	if (torn) {
		v->dropped++;
		v->torn |= is_exit;
		return;
	}
	if (is_exit)
		add_exit_time(x, v, o, end);
	if (o->untimed)
		return;
	add_time(v, o, ns);
	if (!is_exit || o->idle)
		return;
	hist_add(&v->hist, ns, 1);
	if (__builtin_expect(x->slow_ns && ns > x->slow_ns, 0))
		tell_slow(v, o, end);
}

/* What is open without its end can have no time any more. */
static void drop_open(struct exits *x, struct ex_vcpu *v)
{
	x->unmatched += (unsigned)__builtin_popcount(v->open);
	v->open = 0;
}

static void on_entry(struct exits *x, struct ex_vcpu *v, const struct sample *s)
{
	unsigned open = v->open;

	x->seen = true;
	v->open = 0;
	while (open) {
		unsigned kind = (unsigned)__builtin_ctz(open);

		open &= open - 1;
		end_pair(x, v, &v->pair[kind], s->time);
	}
}

static void on_exit(struct exits *x, struct ex_vcpu *v, const struct sample *s, bool late)
{
	uint64_t key = s->isa == ISA_VMX ? s->key & EX_VMX_REASON : s->key;
	const struct ex_open *o = &v->pair[KIND_VMEXIT];

	x->seen = true;
	if (o->begin == s->time && o->key.key == key)
		return; /* doubled, see begin_pair() */
	if (v->open)
		drop_open(x, v);
	v->read_timed = false;
	v->rip = s->aux;
	v->tid = s->tid;
	begin_pair(x, v, KIND_VMEXIT, s, key, late);
	if (v->vm->code && s->aux)
		ex_code_add(v->vm->code, s->isa, key, s->aux);
}

/* A read was counted by nobody yet: it begins with the exit and ends here. */
static void on_mmio_read(struct exits *x, struct ex_vcpu *v, const struct sample *s, bool late)
{
	const struct ex_open *e = &v->pair[KIND_VMEXIT];
	struct ex_open o = {
		.key = {.key = s->key, .kind = KIND_MMIO, .dir = DIR_READ},
		.begin = e->begin,
	};

	x->accesses++;
	if (!find_cells(x, v, &o))
		return;
	add_count(&o);
	if (!(v->open & KIND_BIT(KIND_VMEXIT)) || v->read_timed)
		return;
	v->read_timed = true;
	o.untimed = late || e->untimed;
	end_pair(x, v, &o, s->time);
}

/* These carry their own time. */
static void on_halt(struct exits *x, struct ex_vcpu *v, const struct sample *s, uint8_t dir)
{
	struct ex_open o = {.key = {.kind = KIND_HALT, .dir = dir}};

	if (!find_cells(x, v, &o))
		return;
	add_count(&o);
	add_time(v, &o, s->aux);
}

/* Where no exit shows, how long the VMM had the vCPU still does. A halt is waiting. */
static void on_fpu(struct exits *x, struct ex_vcpu *v, const struct sample *s, bool late)
{
	const struct ex_open *o = &v->pair[KIND_USEREXIT];
	struct slow_exit e = {
		.begin = o->begin,
		.end = s->time,
		.key = o->key.key,
		.user_key = o->key.key,
		.user_begin = o->begin,
		.tid = s->tid,
		.kind = KIND_USEREXIT,
	};
	uint64_t ns = e.end > e.begin ? (uint64_t)(e.end - e.begin) : 0;

	if (!s->key || !v->in_vmm)
		return;
	v->in_vmm = false;
	if (x->seen || !x->slow_ns || ns <= x->slow_ns || late || o->untimed ||
	    kvm_names_idle_user(o->key.key) || exits_torn(x, e.begin, e.end))
		return;
	ex_slow_count(v->vm, 1);
	ex_slow_add(v->vm, v->inv, &e);
}

static void on_access(struct exits *x, struct ex_vcpu *v, enum kvm_kind kind,
		      const struct sample *s, bool late)
{
	x->accesses++;
	begin_pair(x, v, kind, s, s->key, late);
}

/* Late: its interval was shown already. What is open is counted, and has no time any more. */
static bool check_late(struct exits *x, struct ex_vcpu *v, const struct sample *s)
{
	if (s->time > x->start)
		return false;
	x->late++;
	for (unsigned k = 0; k < KIND_HALT; k++)
		v->pair[k].untimed = true;
	return true;
}

static void apply(struct exits *x, struct ex_vcpu *v, const struct sample *s)
{
	bool late = check_late(x, v, s), behind = s->time < v->last;

	v->touched = true;
	/* Behind newer events nothing can be said of what is open: it is counted, no more. */
	if (behind)
		drop_open(x, v);
	else
		v->last = s->time;
	switch (s->type) {
	case EV_ENTRY:
		on_entry(x, v, s);
		break;
	case EV_EXIT:
		on_exit(x, v, s, late);
		break;
	case EV_MMIO:
		if (s->dir == DIR_READ)
			on_mmio_read(x, v, s, late);
		else if (s->dir == DIR_WRITE)
			on_access(x, v, KIND_MMIO, s, late);
		break; /* unsatisfied: the read proper follows */
	case EV_PIO:
		on_access(x, v, KIND_IOPORT, s, late);
		break;
	case EV_MSR:
		on_access(x, v, KIND_MSR, s, late);
		break;
	case EV_HYPERCALL:
		on_access(x, v, KIND_HYPERCALL, s, late);
		break;
	case EV_USEREXIT:
		on_access(x, v, KIND_USEREXIT, s, late);
		v->in_vmm = true;
		break;
	case EV_FPU:
		on_fpu(x, v, s, late || behind);
		break;
	case EV_VCPU_WAKEUP:
		on_halt(x, v, s, s->dir & 3);
		break;
	case EV_HALT_POLL:
		on_halt(x, v, s, DIR_NONE);
		break;
	default:
		break;
	}
	if (behind)
		v->open = 0;
}

void exits_samples(struct exits *x, const struct sample *s, size_t n)
{
	exits_relate(x);
	for (size_t i = 0; i < n; i++) {
		struct ex_thread *t = x->last[s[i].cpu % EX_CPUS];

		if (!t || t->tid != s[i].tid) {
			t = exits_thread(x, s[i].tid, 0);
			if (!t)
				continue;
			x->last[s[i].cpu % EX_CPUS] = t;
		}
		if (s[i].vcpu_id != t->kvm_id && s[i].vcpu_id >= 0) {
			x->seen |= s[i].type == EV_ENTRY || s[i].type == EV_EXIT;
			exits_switch_vcpu(x, t, s[i].vcpu_id);
		}
		apply(x, t->v, &s[i]);
	}
}

/* ---- sums that were made in the kernel ---- */

void exits_code(struct exits *x, const struct sample *s, size_t n)
{
	exits_relate(x);
	for (size_t i = 0; i < n; i++) {
		struct ex_thread *t = exits_thread(x, s[i].tid, 0);
		uint64_t key = s[i].isa == ISA_VMX ? s[i].key & EX_VMX_REASON : s[i].key;

		if (!t || s[i].type != EV_EXIT || !s[i].aux)
			continue;
		if (s[i].vcpu_id != t->kvm_id && s[i].vcpu_id >= 0)
			exits_switch_vcpu(x, t, s[i].vcpu_id);
		if (t->v->vm->code)
			ex_code_add(t->v->vm->code, s[i].isa, key, s[i].aux);
	}
}

static struct ex_key pair_key(enum kvm_kind kind, uint64_t key, uint32_t isa, uint8_t dir)
{
	return (struct ex_key){
		.key = kind == KIND_VMEXIT && isa == ISA_VMX ? key & EX_VMX_REASON : key,
		.isa = kind == KIND_VMEXIT ? isa : 0,
		.kind = (uint8_t)kind,
		.dir = dir & 3,
	};
}

/* Keys that the source could not tell apart are `other` here as well, whatever place there is. */
static void find_other(struct exits *x, struct ex_vcpu *v, const struct ex_key *k,
		       struct ex_place *p)
{
	p->cell = ex_set_other(&v->set, k);
	p->vm_cell = ex_set_other(&v->vm->set, k);
	p->direct = true;
	p->idle = true; /* who knows: it is not in %EXIT */
	x->lost += !p->cell; /* no memory */
}

static void add_times(struct hist *h, const struct aggregate *a)
{
	if (a->nfew)
		hist_add_few(h, a->few, a->nfew);
	if (a->hist)
		hist_merge(h, a->hist);
}

static void add_times_twice(struct hist *h, struct hist *also, const struct aggregate *a)
{
	if (a->nfew)
		hist_add_few_twice(h, also, a->few, a->nfew);
	if (!a->hist)
		return;
	hist_merge(h, a->hist);
	hist_merge(also, a->hist);
}

static inline void add_sums(struct ex_acc *into, const struct aggregate *a)
{
	const struct ex_acc acc = {.count = a->count,
				   .timed = a->timed,
				   .sum = a->sum_ns,
				   .min = a->min_ns,
				   .max = a->max_ns,
				   .sumsq = a->sumsq};

	ex_acc_add(into, &acc);
}

/* Where an aggregate belongs; p->cell NULL: nowhere. */
static inline void place_aggregate(struct exits *x, struct ex_vcpu *v, const struct aggregate *a,
				   struct ex_place *p)
{
	struct ex_key key = pair_key(a->kind, a->key, a->isa, a->dir);

	p->cell = NULL;
	if (a->kind >= KIND_NR || !(a->count || a->timed))
		return;
	if (a->other)
		find_other(x, v, &key, p);
	else
		find_place(x, v, &key, p);
	if (p->cell && p->vm_cell)
		fetch(&p->vm_cell->now, sizeof(p->vm_cell->now) + sizeof(p->vm_cell->now_hist));
}

static inline void add_aggregate(struct exits *x, struct ex_vcpu *v, const struct aggregate *a,
				 const struct ex_place *p)
{
	bool is_exit = a->kind == KIND_VMEXIT, busy = is_exit && !p->idle;

	x->accesses += is_exit || a->kind == KIND_HALT ? 0 : a->count;
	v->exit_ns += busy ? a->within_ns : 0;
	add_sums(&p->cell->now, a);
	if (p->direct && p->vm_cell)
		add_sums(&p->vm_cell->now, a);
	if (p->vm_cell && busy)
		add_times_twice(&p->vm_cell->now_hist, &v->hist, a);
	else if (p->vm_cell || busy)
		add_times(p->vm_cell ? &p->vm_cell->now_hist : &v->hist, a);
	if (v->detail)
		add_times(&p->cell->now_hist, a);
}

/* First where all belong, so that the cells come from memory together. */
static void add_run(struct exits *x, struct ex_vcpu *v, const struct aggregate *a, size_t n)
{
	struct ex_place p[RUN];

	for (size_t i = 0; i < n; i++)
		place_aggregate(x, v, &a[i], &p[i]);
	for (size_t i = 0; i < n; i++) {
		if (!p[i].cell)
			continue;
		v->touched = true;
		add_aggregate(x, v, &a[i], &p[i]);
	}
}

static struct ex_vcpu *vcpu_of(struct exits *x, int32_t tid, int32_t pid, int32_t vcpu_id)
{
	struct ex_thread *t = exits_thread(x, tid, pid);

	if (t && vcpu_id != t->kvm_id && vcpu_id >= 0)
		exits_switch_vcpu(x, t, vcpu_id);
	/* It runs a vCPU of which another thread is known: which one, is asked. */
	if (t && t->inv && !t->inv->vcpu)
		inventory_unsure(x->inv, t->inv);
	return t ? t->v : NULL;
}

static bool is_exit_counted(const struct aggregate *a)
{
	return a->kind == KIND_VMEXIT && (a->count || a->timed);
}

/* So many are of one vCPU. */
static size_t run_of(const struct exits *x, const struct aggregate *a, size_t n)
{
	size_t i = 1;

	while (i < n && i < RUN && a[i].tid == a->tid && a[i].vcpu_id == a->vcpu_id &&
	       (x->seen || !is_exit_counted(&a[i])))
		i++;
	return i;
}

void exits_aggregates(struct exits *x, const struct aggregate *a, size_t n)
{
	exits_relate(x);
	while (n) {
		struct ex_vcpu *v;
		size_t run;

		/* Before its vCPU is looked for: whether events tell it depends on that. */
		x->seen = x->seen || is_exit_counted(a);
		run = run_of(x, a, n);
		v = vcpu_of(x, a->tid, a->pid, a->vcpu_id);
		if (v)
			add_run(x, v, a, run);
		a += run;
		n -= run;
	}
}

static void set_open(struct ex_vcpu *v, enum kvm_kind kind, const struct open_pair *p)
{
	struct ex_open *o = &v->pair[kind];

	*o = (struct ex_open){.begin = p->begin, .key = pair_key(kind, p->key, p->isa, p->dir)};
	if (kind == KIND_VMEXIT)
		o->idle = kvm_names_idle(o->key.isa, o->key.key);
}

/*
 * An exit that began once is no event. Where nothing else is known of the thread it has left its
 * VM: its process may have become another program.
 */
static bool is_left_over(const struct exits *x, const struct thread_open *o)
{
	return !o->unmatched && !o->slow && !o->off_ns && !exits_known_thread(x, o->tid);
}

void exits_open(struct exits *x, const struct thread_open *o)
{
	struct ex_vcpu *v = is_left_over(x, o) ? NULL : vcpu_of(x, o->tid, 0, o->vcpu_id);

	if (!v)
		return;
	x->unmatched += o->unmatched;
	ex_slow_count(v->vm, o->slow);
	v->off_ns += o->off_ns;
	v->off_blind |= o->off_blind;
	if (o->elsewhere)
		return;
	v->open_off_ns = o->exit_off_ns;
	v->open_off_since = o->exit_off_since;
	v->open_blind = o->exit_blind;
	v->open = (uint8_t)(o->open & (KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_USEREXIT)));
	if (v->open & KIND_BIT(KIND_VMEXIT))
		set_open(v, KIND_VMEXIT, &o->exit);
	if (v->open & KIND_BIT(KIND_USEREXIT))
		set_open(v, KIND_USEREXIT, &o->user);
}

void exits_slow(struct exits *x, const struct slow_exit *s, size_t n)
{
	exits_relate(x);
	for (size_t i = 0; i < n; i++) {
		struct ex_vcpu *v = vcpu_of(x, s[i].tid, 0, s[i].vcpu_id);

		/* The programs in the kernel may not know yet what was asked for last. */
		if (v && x->slow_ns)
			ex_slow_add(v->vm, v->inv, &s[i]);
	}
}

/* ---- losses, intervals ---- */

void exits_loss(struct exits *x, const struct loss *l)
{
	x->lost += l->n;
	if (l->to > x->loss_to || !x->nlosses)
		x->loss_to = l->to;
	if (x->nlosses == EX_LOSSES) {
		/* Only pairs that are open for long can meet the oldest: one window serves them. */
		if (x->losses[1].from > x->losses[0].from)
			x->losses[1].from = x->losses[0].from;
		if (x->losses[1].to < x->losses[0].to)
			x->losses[1].to = x->losses[0].to;
		memmove(x->losses, x->losses + 1, (EX_LOSSES - 1) * sizeof(x->losses[0]));
		x->nlosses--;
	}
	x->losses[x->nlosses++] = *l;
}

uint64_t exits_open_ns(const struct exits *x, const struct ex_vcpu *v, int64_t now)
{
	const struct ex_open *o = &v->pair[KIND_VMEXIT];
	int64_t from = o->begin > x->start ? o->begin : x->start;

	if (!(v->open & KIND_BIT(KIND_VMEXIT)) || o->idle || now <= from ||
	    exits_torn(x, o->begin, now))
		return 0;
	return (uint64_t)(now - from);
}

uint64_t exits_open_off_ns(const struct exits *x, const struct ex_vcpu *v, int64_t now)
{
	int64_t since = v->open_off_since > x->start ? v->open_off_since : x->start;
	uint64_t all = exits_open_ns(x, v, now), off = v->open_off_ns;

	if (v->open_off_since && now > since)
		off += (uint64_t)(now - since);
	return off < all ? off : all;
}

void exits_off_told(struct exits *x, bool told)
{
	x->off_told = told;
	x->off_told_all = x->off_told_all && told;
}

void exits_fold(struct exits *x, struct ex_vcpu *v)
{
	struct ex_cell *c;

	for (int kind = 0; kind < KIND_NR; kind++) {
		EX_EACH(&v->set.kind[kind], c)
		{
			struct ex_key k = {c->key, c->isa, c->kind, c->dir};
			struct ex_cell *to;

			if (c->other || (!c->now.count && !c->now.timed))
				continue;
			to = cell_vm(x, v, c, &k);
			if (to)
				ex_acc_add(&to->now, &c->now);
		}
	}
}

void exits_next_vcpu(struct ex_vcpu *v)
{
	v->dropped = 0;
	v->torn = v->folded = v->off_blind = false;
	v->off_ns = v->open_off_ns = 0;
	if (!v->touched && !v->exit_ns)
		return;
	v->touched = false;
	v->exit_ns = 0;
	hist_trim(&v->hist);
	hist_clear(&v->hist);
	ex_set_evict(&v->set);
	ex_set_next(&v->set, v->detail == EX_TOTALS);
}

void exits_next_vm(struct exits *x, struct ex_vm *vm)
{
	ex_slow_next(vm->slow);
	if (ex_set_evict(&vm->set))
		vm->gen = ++x->gens;
	ex_set_next(&vm->set, true);
}

void exits_next(struct exits *x, int64_t watermark)
{
	x->start = watermark;
	x->lost = x->late = x->unmatched = x->accesses = 0;
	x->kinds_all = x->kinds;
	x->entry_exit_all = x->entry_exit;
	x->off_told_all = x->off_told;
}
