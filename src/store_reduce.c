// SPDX-License-Identifier: GPL-2.0-only
/* Which rows are recorded (store_reduce.h). */
#include "store_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "store_rules.h"
#include "store_tally.h"

struct reducer {
	const struct snapshot *s;
	struct snapshot *out;
	struct snap_exit *exit; /* room for all of s: an `other` is in place of one of them */
	struct snap_symbol *symbol;
	struct snap_waited *waited; /* room for all of s */
	size_t nexit, nsymbol, nwaited;
	bool longer;
};

static void *copy(struct snapshot *out, const void *rows, size_t n, size_t size)
{
	void *p = snapshot_alloc_unset(out, n, size);

	if (p && n)
		memcpy(p, rows, n * size);
	return p;
}

/* What the order is by: time, or where there is none how many. */
static bool larger(const struct snap_exit *a, const struct snap_exit *b)
{
	if (a->now.time_ns != b->now.time_ns)
		return a->now.time_ns > b->now.time_ns;
	if (a->now.count != b->now.count)
		return a->now.count > b->now.count;
	return a->total.count > b->total.count;
}

/* How many rows of the same kind stand before this one; other is never among the first. */
static unsigned rank_of(const struct snap_exit *rows, size_t n, size_t at)
{
	unsigned rank = 0;

	for (size_t i = 0; i < n; i++)
		if (i != at && rows[i].kind == rows[at].kind && !rows[i].other &&
		    (larger(&rows[i], &rows[at]) || (i < at && !larger(&rows[at], &rows[i]))))
			rank++;
	return rank;
}

/* named: how many there are of each kind, `other` left out. */
static bool is_large(const struct snap_exit *rows, size_t n, size_t at, const unsigned *named)
{
	return !rows[at].other &&
	       (named[rows[at].kind] <= STORE_VCPU_KEYS || rank_of(rows, n, at) < STORE_VCPU_KEYS);
}

static void drop_percentiles(struct tally *t)
{
	t->p50_ns = t->p99_ns = t->p999_ns = 0;
	t->pctl = PCTL_NONE;
}

static void add_other(struct reducer *r, size_t first, const struct snap_exit *row)
{
	struct snap_exit *other = NULL;

	for (size_t i = first; i < r->nexit; i++)
		if (r->exit[i].other && r->exit[i].kind == row->kind)
			other = &r->exit[i];
	if (!other) {
		other = &r->exit[r->nexit++];
		*other = *row;
		if (row->other)
			return;
		other->other = true;
		other->key = 0;
		other->dir = DIR_NONE;
		other->idle = false;
		other->name = "other";
		other->note = "";
		other->heat = NULL;
		drop_percentiles(&other->now);
		drop_percentiles(&other->total);
		return;
	}
	store_tally_add(&other->now, &row->now);
	store_tally_add(&other->total, &row->total);
	other->has_time = other->has_time || row->has_time;
	other->heat = NULL;
	drop_percentiles(&other->now);
	drop_percentiles(&other->total);
}

/* Accesses, returns to the VMM and halts lie within vm exits. */
static bool vm_exits_only(const struct reducer *r, const struct snap_exit *rows, uint32_t n)
{
	for (uint32_t i = 0; r->longer && i < n; i++)
		if (rows[i].kind == KIND_VMEXIT)
			return true;
	return false;
}

static uint64_t rounded(uint64_t v, int bits)
{
	int shift = v ? 64 - __builtin_clzll(v) - bits : 0;

	return shift <= 0 || v > UINT64_MAX / 2 ? v : (v + (1ull << (shift - 1))) >> shift << shift;
}

static void round_tally(struct tally *t)
{
	t->time_ns = rounded(t->time_ns, STORE_TIME_BITS);
	t->min_ns = rounded(t->min_ns, STORE_TIME_BITS);
	t->max_ns = rounded(t->max_ns, STORE_TIME_BITS);
	t->avg_ns = t->timed ? (double)t->time_ns / (double)t->timed : 0;
}

static bool round_exit(struct reducer *r, struct snap_exit *x)
{
	uint32_t *heat = NULL;

	round_tally(&x->now);
	round_tally(&x->total);
	if (!x->heat)
		return true;
	heat = copy(r->out, x->heat, HEAT_BUCKETS, sizeof(*heat));
	for (int b = 0; heat && b < HEAT_BUCKETS; b++)
		heat[b] = (uint32_t)rounded(heat[b] < UINT32_MAX / 2 ? heat[b] : 0x7fffffff,
					    STORE_HEAT_BITS);
	x->heat = heat;
	return heat;
}

static void round_max(struct snap_exits *ex)
{
	if (value_has(ex->max) && ex->max.v >= 0 && ex->max.v < 1e15)
		ex->max.v = (double)rounded((uint64_t)ex->max.v, STORE_TIME_BITS);
}

static bool round_times(struct reducer *r)
{
	for (size_t i = 0; i < r->nexit; i++)
		if (!round_exit(r, &r->exit[i]))
			return false;
	for (size_t i = 0; i < r->out->nvms; i++)
		round_max(&((struct snap_vm *)r->out->vms)[i].ex);
	for (size_t i = 0; i < r->out->nvcpus; i++) {
		struct snap_vcpu *v = &((struct snap_vcpu *)r->out->vcpus)[i];

		round_max(&v->ex);
		if (value_has(v->sym.n_total))
			v->sym.n_total = value_na(WHY_NOT_KEPT);
	}
	round_max(&r->out->host.ex);
	return !store_settle_shares(r->out);
}

static void drop_total(struct snap_exit *x)
{
	const struct value none = value_na(WHY_NOT_KEPT);

	x->total = (struct tally){.pctl = PCTL_NONE,
				  .low = WHY_NOT_KEPT,
				  .rate = none,
				  .count_pct = none,
				  .time_pct = none};
}

/* The rows of a vCPU: in their order, what is left out at the end. */
static void take_vcpu_exits(struct reducer *r, struct snap_exits *ex)
{
	const struct snap_exit *rows = ex->n ? r->s->exits + ex->first : NULL;
	bool some = vm_exits_only(r, rows, ex->n);
	unsigned named[KIND_NR] = {0};
	size_t first = r->nexit;

	for (size_t i = 0; i < ex->n; i++)
		named[rows[i].kind] += !rows[i].other;
	for (size_t i = 0; i < ex->n; i++)
		if ((!some || rows[i].kind == KIND_VMEXIT) && is_large(rows, ex->n, i, named))
			r->exit[r->nexit++] = rows[i];
	for (size_t i = first; i < r->nexit; i++)
		r->exit[i].heat = NULL;
	for (size_t i = 0; i < ex->n; i++)
		if ((!some || rows[i].kind == KIND_VMEXIT) && !is_large(rows, ex->n, i, named))
			add_other(r, first, &rows[i]);
	for (size_t i = first; r->longer && i < r->nexit; i++)
		drop_total(&r->exit[i]);
	ex->first = (uint32_t)first;
	ex->n = (uint32_t)(r->nexit - first);
}

static void take_all_exits(struct reducer *r, struct snap_exits *ex)
{
	size_t first = r->nexit;

	for (size_t i = 0; i < ex->n; i++)
		r->exit[r->nexit++] = r->s->exits[ex->first + i];
	ex->first = (uint32_t)first;
}

static void add_value(struct value *into, struct value from)
{
	if (value_has(from))
		*into = value_has(*into) ? value_known(into->v + from.v) : from;
}

/* They come with the most samples first, what is `other` already last. */
static void take_symbols(struct reducer *r, struct snap_samples *sym, unsigned most)
{
	const struct snap_symbol *rows = sym->rows ? r->s->symbols + sym->first : NULL;
	struct snap_symbol *other;
	size_t first = r->nsymbol;
	uint32_t n = sym->rows;

	for (uint32_t i = 0; i < n && i < most; i++)
		r->symbol[r->nsymbol++] = rows[i];
	if (n > most && most) {
		other = &r->symbol[r->nsymbol++];
		*other = rows[most];
		for (uint32_t i = most + 1; i < n; i++) {
			other->samples += rows[i].samples;
			other->samples_total += rows[i].samples_total;
			add_value(&other->pct, rows[i].pct);
			add_value(&other->pct_total, rows[i].pct_total);
		}
		if (!rows[most].other) {
			other->other = true;
			other->guessed = false;
			other->key = (struct symbol_key){0};
			other->name = "other";
			other->module = other->reason = "";
			for (unsigned i = 0; i < SNAP_CALLERS; i++)
				other->caller[i] = (struct snap_caller){.name = ""};
		}
	}
	sym->first = (uint32_t)first;
	sym->rows = (uint32_t)(r->nsymbol - first);
}

static void add_waited(struct snap_waited *into, const struct snap_waited *row)
{
	into->ns += row->ns;
	add_value(&into->share, row->share);
	add_value(&into->pct, row->pct);
}

/* They come with the largest first, `other` and what is unexplained last. */
static void take_waited(struct reducer *r, struct snap_waits *w, bool vcpu)
{
	const unsigned most = vcpu ? STORE_VCPU_WAITED : STORE_VM_WAITED;
	const double least = vcpu ? STORE_VCPU_WAITED_PCT : STORE_VM_WAITED_PCT;
	const struct snap_waited *rows = w->n ? r->s->waited + w->first : NULL;
	struct snap_waited *other = NULL;
	size_t first = r->nwaited;

	for (uint32_t i = 0; i < w->n; i++) {
		bool large = i < most && value_has(rows[i].pct) && rows[i].pct.v >= least;

		if (other && !large && rows[i].kind <= WAITED_OTHER) {
			add_waited(other, &rows[i]);
			continue;
		}
		r->waited[r->nwaited] = rows[i];
		if (!large && rows[i].kind <= WAITED_OTHER) {
			other = &r->waited[r->nwaited];
			other->kind = WAITED_OTHER;
			other->by_vm = 0;
			other->name = "other";
		}
		r->nwaited++;
	}
	w->first = (uint32_t)first;
	w->n = (uint32_t)(r->nwaited - first);
}

/* Rows of one level, which stand together. */
struct block {
	uint32_t first;
	struct snap_exits *exits; /* one of the three */
	struct snap_samples *symbols;
	struct snap_waits *waits;
	bool vcpu;
};

static int by_first(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* In the order that they have in s: rows of all levels are listed too. */
static void take_blocks(struct reducer *r, struct block *b, size_t n)
{
	qsort(b, n, sizeof(*b), by_first);
	for (size_t i = 0; i < n; i++) {
		if (b[i].waits)
			take_waited(r, b[i].waits, b[i].vcpu);
		else if (b[i].symbols)
			take_symbols(r, b[i].symbols, b[i].vcpu ? 0 : STORE_SYMBOLS_MOST);
		else if (b[i].vcpu)
			take_vcpu_exits(r, b[i].exits);
		else
			take_all_exits(r, b[i].exits);
	}
}

static void add_block(struct block *b, size_t *n, struct snap_exits *ex, struct snap_samples *sym,
		      bool vcpu)
{
	b[(*n)++] = (struct block){
		.first = ex ? ex->first : sym->first, .exits = ex, .symbols = sym, .vcpu = vcpu};
}

static void take_all_waited(struct reducer *r, struct block *b, struct snap_vm *vms,
			    struct snap_vcpu *vcpus)
{
	size_t n = 0;

	for (size_t i = 0; i < r->s->nvms; i++)
		b[n++] = (struct block){.first = vms[i].waits.first, .waits = &vms[i].waits};
	for (size_t i = 0; i < r->s->nvcpus; i++)
		b[n++] = (struct block){
			.first = vcpus[i].waits.first, .waits = &vcpus[i].waits, .vcpu = true};
	take_blocks(r, b, n);
}

static bool take_rows(struct reducer *r, struct snap_vm *vms, struct snap_vcpu *vcpus)
{
	size_t n = 0, nvms = r->s->nvms, nvcpus = r->s->nvcpus;
	struct block *b = malloc((nvms + nvcpus + 2) * sizeof(*b));
	struct snap_host *h = &r->out->host;

	if (!b)
		return false;
	add_block(b, &n, &h->ex, NULL, false);
	for (size_t i = 0; i < nvms; i++)
		add_block(b, &n, &vms[i].ex, NULL, false);
	for (size_t i = 0; i < nvcpus; i++)
		add_block(b, &n, &vcpus[i].ex, NULL, true);
	take_blocks(r, b, n);
	n = 0;
	add_block(b, &n, NULL, &h->sym, false);
	add_block(b, &n, NULL, &h->other_sym, false);
	for (size_t i = 0; i < nvms; i++)
		add_block(b, &n, NULL, &vms[i].sym, false);
	for (size_t i = 0; i < nvcpus; i++)
		add_block(b, &n, NULL, &vcpus[i].sym, true);
	take_blocks(r, b, n);
	take_all_waited(r, b, vms, vcpus);
	free(b);
	return true;
}

/* The snapshot's own members; its memory is another one's. */
static void take_figures(struct snapshot *out, const struct snapshot *s)
{
	size_t bytes = out->bytes;

	*out = *s;
	out->bytes = bytes;
}

static struct snapshot *reduce(const struct snapshot *s, bool longer)
{
	struct reducer r = {.s = s, .out = snapshot_new(), .longer = longer};
	struct snap_vcpu *vcpus;
	struct snap_vm *vms;

	if (!r.out)
		return NULL;
	take_figures(r.out, s);
	vms = copy(r.out, s->vms, s->nvms, sizeof(*vms));
	vcpus = copy(r.out, s->vcpus, s->nvcpus, sizeof(*vcpus));
	r.exit = snapshot_alloc_unset(r.out, s->nexits, sizeof(*r.exit));
	r.symbol = snapshot_alloc_unset(r.out, s->nsymbols, sizeof(*r.symbol));
	r.waited = snapshot_alloc_unset(r.out, s->nwaited, sizeof(*r.waited));
	if (!vms || !vcpus || !r.exit || !r.symbol || !r.waited || !take_rows(&r, vms, vcpus)) {
		snapshot_unref(r.out);
		return NULL;
	}
	r.out->vms = vms;
	r.out->vcpus = vcpus;
	r.out->exits = r.exit;
	r.out->symbols = r.symbol;
	r.out->waited = r.waited;
	r.out->nexits = r.nexit;
	r.out->nsymbols = r.nsymbol;
	r.out->nwaited = r.nwaited;
	if (longer && !round_times(&r)) {
		snapshot_unref(r.out);
		return NULL;
	}
	return r.out;
}

struct snapshot *store_reduce(const struct snapshot *s)
{
	return reduce(s, false);
}

struct snapshot *store_reduce_longer(const struct snapshot *s)
{
	return reduce(s, true);
}
