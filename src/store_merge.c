// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intervals put together (store_merge.h).
 *
 * Each table is the union of its rows over all parts, found by what identifies them. It is made
 * from the newest part backwards: the first row found is copied, what older ones have is added. The
 * rows are then put in order, so that those of one VM or vCPU stand together again.
 */
#include "store_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "store_fields.h"
#include "store_merge_order.h"
#include "store_tally.h"

#define KEY_PARTS 6

struct key {
	uint64_t part[KEY_PARTS];
};

/* The mean of one value: known for this long. */
struct mean {
	double sum, time;
	bool partial; /* some part's was */
	uint8_t why;
};

/* Of a row of exits. */
struct bounds {
	struct store_bounds pctl;
	uint32_t *heat; /* the sum of theirs, NULL: the row's is that of a part */
};

/* One table in the making. */
struct merge_table {
	const struct store_table *t;
	struct store_leaf leaf[STORE_LEAVES]; /* its values only */
	size_t nleaf, nvalue; /* leaves; values a row */
	char *row;
	struct key *key;
	struct mean *mean; /* nvalue a row */
	double *time; /* how long the row was there, ns */
	uint32_t *slot; /* open addressing: row + 1 */
	struct bounds *bounds; /* exits only */
	size_t n, room, nslot; /* rows, room for them, slots: of all parts' rows together */
};

struct merger {
	struct snapshot *const *part;
	size_t nparts;
	struct snapshot *out;
	/* Of the part in work: its VMs' and vCPUs' rows in the result. */
	uint32_t *vm_row, *vcpu_row;
	double dt; /* of all parts, ns */
	int rc;
};

static const struct store_table *table_of(enum store_table_id id)
{
	for (size_t i = 0; i < store_ntables; i++)
		if (store_tables[i].id == id)
			return &store_tables[i];
	return NULL;
}

static uint64_t hash_text(const char *text)
{
	uint64_t h = 14695981039346656037ull;

	for (; text && *text; text++)
		h = (h ^ (uint8_t)*text) * 1099511628211ull;
	return h;
}

static uint64_t vm_key(const struct merger *m, uint32_t vm)
{
	return vm == SNAP_NO_VM ? UINT64_MAX : m->vm_row[vm];
}

static uint64_t vcpu_key(const struct merger *m, int32_t vcpu)
{
	return vcpu < 0 ? UINT64_MAX : m->vcpu_row[vcpu];
}

static struct key exit_key(const struct merger *m, const struct snap_exit *x)
{
	return (struct key){{vm_key(m, x->vm), vcpu_key(m, x->vcpu), x->key,
			     (uint64_t)x->kind << 32 | (uint64_t)x->dir << 8 | x->other, x->isa}};
}

static struct key symbol_key(const struct merger *m, const struct snap_symbol *y)
{
	uint64_t vm = y->vm < 0 ? UINT64_MAX - (uint64_t)-y->vm : m->vm_row[y->vm];

	return (struct key){
		{vm, vcpu_key(m, y->vcpu), y->key.value, y->key.table,
		 (uint64_t)y->key.domain << 16 | (uint64_t)y->key.reason << 8 | y->other}};
}

static struct key finding_key(const struct merger *m, const struct snap_finding *f)
{
	return (struct key){{f->vm < 0 ? UINT64_MAX : m->vm_row[f->vm], vcpu_key(m, f->vcpu),
			     hash_text(f->rule)}};
}

static struct key waited_key(const struct merger *m, const struct snap_waited *w)
{
	return (struct key){{m->vm_row[w->vm], vcpu_key(m, w->vcpu), w->kind, w->by_vm,
			     w->by_vm ? 0 : hash_text(w->name)}};
}

/* What makes two rows of different parts the same one. */
static struct key key_of(const struct merger *m, enum store_table_id id, const void *row)
{
	const struct snap_code *code = row;
	const struct snap_slow *slow = row;
	const struct snap_pmc *pmc = row;
	const struct snap_thread *thread = row;

	switch (id) {
	case STORE_VMS:
		return (struct key){{((const struct snap_vm *)row)->id}};
	case STORE_VCPUS:
		return (struct key){{((const struct snap_vcpu *)row)->id}};
	case STORE_EXITS:
		return exit_key(m, row);
	case STORE_SYMBOLS:
		return symbol_key(m, row);
	case STORE_CODE:
		return (struct key){{m->vm_row[code->vm], code->isa, code->reason, code->key.value,
				     code->key.table,
				     (uint64_t)code->key.domain << 8 | code->key.reason}};
	case STORE_WAITED:
		return waited_key(m, row);
	case STORE_SLOW:
		return (struct key){
			{m->vm_row[slow->vm], (uint64_t)slow->tid, (uint64_t)slow->end}};
	case STORE_PMCS:
		return (struct key){
			{m->vm_row[pmc->vm], vcpu_key(m, pmc->vcpu), pmc->fixed, pmc->nr}};
	case STORE_THREADS:
		return (struct key){{m->vm_row[thread->vm], (uint64_t)thread->tid}};
	case STORE_TASKS:
		return (struct key){{(uint64_t)((const struct snap_task *)row)->pid}};
	case STORE_CPUS:
		return (struct key){{(uint64_t)((const struct snap_cpu *)row)->cpu}};
	case STORE_FINDINGS:
		return finding_key(m, row);
	default:
		return (struct key){{0}}; /* the host */
	}
}

static void free_table(struct merge_table *t)
{
	free(t->row);
	free(t->key);
	free(t->mean);
	free(t->time);
	free(t->slot);
	free(t->bounds);
}

static int open_table(struct merger *m, struct merge_table *t, enum store_table_id id)
{
	struct store_leaf all[STORE_LEAVES];
	size_t n, nall, all_rows = 0;

	*t = (struct merge_table){.t = table_of(id)};
	if (!t->t)
		return -EINVAL;
	/* Of exits no figure is a mean, see restore_exit(). */
	nall = id == STORE_EXITS ? 0 : store_leaves(t->t, all);
	for (size_t i = 0; i < nall; i++) {
		if (all[i].f->type != STORE_VALUE)
			continue;
		t->leaf[t->nleaf++] = all[i];
		t->nvalue += all[i].f->n;
	}
	for (size_t i = 0; i < m->nparts; i++) {
		store_rows(t->t, m->part[i], &n);
		all_rows += n;
	}
	for (t->nslot = 16; t->nslot < all_rows * 2;)
		t->nslot *= 2;
	t->slot = calloc(t->nslot, sizeof(*t->slot));
	return t->slot ? 0 : -ENOMEM;
}

static bool resize(void *array, size_t n, size_t size)
{
	void *old, *p;

	memcpy(&old, array, sizeof(old));
	p = realloc(old, n * size);
	if (p)
		memcpy(array, &p, sizeof(p));
	return p;
}

/* For one row more. Parts mostly have the same rows, n each: room for all of theirs is waste. */
static int make_room(struct merge_table *t, size_t n)
{
	if (t->n < t->room)
		return 0;
	n = (t->n ? t->n + t->n / 4 : n) + 1;
	if (!resize(&t->row, n, t->t->row_size) || !resize(&t->key, n, sizeof(*t->key)) ||
	    !resize(&t->mean, n * (t->nvalue + 1), sizeof(*t->mean)) ||
	    !resize(&t->time, n, sizeof(*t->time)) ||
	    (t->t->id == STORE_EXITS && !resize(&t->bounds, n, sizeof(*t->bounds))))
		return -ENOMEM;
	t->room = n;
	return 0;
}

/*
 * The row of this key; *found false: it is a new one, at the end. Parts mostly have the same rows
 * in the same order: next is the first guess.
 */
static size_t find_row(struct merge_table *t, const struct key *k, size_t next, bool *found)
{
	uint64_t h = 0;
	size_t at;

	*found = true;
	if (next < t->n && memcmp(&t->key[next], k, sizeof(*k)) == 0)
		return next;
	/* The low bits choose the slot: what is in the high ones of a part must reach them. */
	for (int i = 0; i < KEY_PARTS; i++) {
		h = (h ^ k->part[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	for (at = h & (t->nslot - 1); t->slot[at]; at = (at + 1) & (t->nslot - 1)) {
		if (memcmp(&t->key[t->slot[at] - 1], k, sizeof(*k)) == 0)
			return t->slot[at] - 1;
	}
	*found = false;
	t->key[t->n] = *k;
	t->time[t->n] = 0;
	memset(t->mean + t->n * t->nvalue, 0, t->nvalue * sizeof(*t->mean));
	if (t->bounds)
		t->bounds[t->n] = (struct bounds){0};
	t->slot[at] = (uint32_t)++t->n;
	return t->n - 1;
}

static void add_means(struct merge_table *t, size_t at, const char *row, double dt)
{
	struct mean *m = t->mean + at * t->nvalue;
	struct value v;

	t->time[at] += dt;
	for (size_t l = 0; l < t->nleaf; l++) {
		for (unsigned k = 0; k < t->leaf[l].f->n; k++, m++) {
			memcpy(&v, row + t->leaf[l].at + k * sizeof(v), sizeof(v));
			if (!value_has(v))
				continue;
			m->sum += v.v * dt;
			m->time += dt;
			if (v.state == VALUE_PARTIAL && !m->partial) {
				m->partial = true;
				m->why = v.why;
			}
		}
	}
}

/* Of a VM that came or went within the interval figures are of the time in which it was there. */
static bool was_away(const struct merger *m, const struct merge_table *t, size_t at)
{
	switch (t->t->id) {
	case STORE_VMS:
	case STORE_VCPUS:
	case STORE_THREADS:
		return t->time[at] < m->dt; /* whole nanoseconds: sums of them are exact */
	default:
		return false;
	}
}

/*
 * A value that is not known now but was is partly known, as is one that was partly known in a part
 * or of which there is nothing in some.
 */
static void set_means(const struct merger *merger, struct merge_table *t, size_t at)
{
	const bool away = was_away(merger, t, at);
	const struct mean *m = t->mean + at * t->nvalue;
	char *row = t->row + at * t->t->row_size;
	struct value v;

	for (size_t l = 0; l < t->nleaf; l++) {
		for (unsigned k = 0; k < t->leaf[l].f->n; k++, m++) {
			char *p = row + t->leaf[l].at + k * sizeof(v);

			if (m->time <= 0)
				continue;
			memcpy(&v, p, sizeof(v));
			if (!value_has(v) || away || m->partial)
				v = value_partial(0, m->partial ? m->why : WHY_NONE);
			v.v = m->sum / m->time;
			memcpy(p, &v, sizeof(v));
		}
	}
}

/* ---- what is added, not averaged ---- */

static void keep_most(struct value *into, struct value from)
{
	if (value_has(from) && (!value_has(*into) || from.v > into->v))
		*into = from;
}

static void merge_exits(struct snap_exits *into, const struct snap_exits *from)
{
	into->lost += from->lost;
	keep_most(&into->max, from->max);
	if (value_has(from->rate) && (!value_has(into->rate) || from->rate.v > into->rate.v)) {
		into->rate = from->rate; /* whose the name is; the mean comes last */
		into->top = from->top;
		into->top_pct = from->top_pct;
	}
}

/* Shares of so many. */
static void merge_share(struct value *into, struct value n, struct value from, struct value m)
{
	if (!value_has(from) || !(m.v > 0))
		return;
	if (value_has(*into) && value_has(n) && n.v > 0)
		into->v = (into->v * n.v + from.v * m.v) / (n.v + m.v);
	else
		*into = from;
}

static void merge_samples(struct snap_samples *into, const struct snap_samples *from)
{
	if (!value_has(from->n))
		return;
	if (!value_has(into->n) || from->hot_pct.v > into->hot_pct.v) {
		into->hot = from->hot;
		into->hot_pct = from->hot_pct;
		into->hot_named = from->hot_named;
	}
	for (int d = 0; d < DOMAIN_NR; d++)
		merge_share(&into->domain[d], into->n, from->domain[d], from->n);
	into->n.v += from->n.v;
	into->n.state = from->n.state;
}

static void merge_vm(struct snap_vm *into, const struct snap_vm *from)
{
	if (value_has(from->steal_max) &&
	    (!value_has(into->steal_max) || from->steal_max.v > into->steal_max.v)) {
		into->steal_max = from->steal_max;
		into->steal_max_vcpu = from->steal_max_vcpu;
		into->why = from->why;
		into->why_text = from->why_text;
	}
	into->slow.count += from->slow.count;
	merge_exits(&into->ex, &from->ex);
	merge_samples(&into->sym, &from->sym);
}

/* Into one of our own: that of a part, which the row has at first, is not ours to change. */
static void merge_heat(struct merger *m, struct snap_exit *into, const uint32_t *from,
		       struct bounds *b)
{
	if (!from || !into->heat) {
		into->heat = from ? from : into->heat;
		return;
	}
	if (!b->heat) {
		b->heat = snapshot_alloc(m->out, HEAT_BUCKETS, sizeof(*b->heat));
		if (!b->heat) {
			m->rc = -ENOMEM;
			return;
		}
		memcpy(b->heat, into->heat, HEAT_BUCKETS * sizeof(*b->heat));
		into->heat = b->heat;
	}
	for (int i = 0; i < HEAT_BUCKETS; i++)
		b->heat[i] = b->heat[i] > UINT32_MAX - from[i] ? UINT32_MAX : b->heat[i] + from[i];
}

static void merge_exit(struct snap_exit *into, const struct snap_exit *from)
{
	store_tally_add(&into->now, &from->now);
	into->has_time = into->has_time || from->has_time;
}

static void merge_finding(struct snap_finding *into, const struct snap_finding *from)
{
	if (value_has(from->value) && from->value.v > into->value.v) {
		into->value = from->value;
		into->text = from->text;
	}
	if (from->level > into->level)
		into->level = from->level;
	if (from->since < into->since)
		into->since = from->since;
}

static void merge_host(struct snap_host *into, const struct snap_host *from)
{
	into->lost += from->lost;
	into->code_lost += from->code_lost;
	into->late += from->late;
	into->unmatched += from->unmatched;
	into->switches += from->switches;
	into->exit_off_ns += from->exit_off_ns;
	into->waits_ns += from->waits_ns;
	into->counting_ns += from->counting_ns;
	into->singles += from->singles;
	if (from->unwatched_ns > into->unwatched_ns) {
		into->unwatched_ns = from->unwatched_ns;
		into->unwatched = from->unwatched;
		into->unwatched_cpu = from->unwatched_cpu;
	}
	merge_exits(&into->ex, &from->ex);
	merge_samples(&into->sym, &from->sym);
	merge_samples(&into->other_sym, &from->other_sym);
}

static void merge_symbol(struct snap_symbol *into, const struct snap_symbol *from)
{
	into->samples += from->samples;
	snap_callers_add(into, from);
}

static void merge_row(enum store_table_id id, void *into, const void *from)
{
	switch (id) {
	case STORE_HOST:
		merge_host(into, from);
		break;
	case STORE_VMS:
		merge_vm(into, from);
		break;
	case STORE_VCPUS:
		merge_exits(&((struct snap_vcpu *)into)->ex, &((const struct snap_vcpu *)from)->ex);
		merge_samples(&((struct snap_vcpu *)into)->sym,
			      &((const struct snap_vcpu *)from)->sym);
		break;
	case STORE_EXITS:
		merge_exit(into, from);
		break;
	case STORE_SYMBOLS:
		merge_symbol(into, from);
		break;
	case STORE_CODE:
		store_code_add(into, from);
		break;
	case STORE_WAITED:
		((struct snap_waited *)into)->ns += ((const struct snap_waited *)from)->ns;
		break;
	case STORE_FINDINGS:
		merge_finding(into, from);
		break;
	default:
		break;
	}
}

/* A percentile is no more exact than a step of the histogram. */
static double step_of(double ns)
{
	return ns >= 0 && ns < 1e15 ? (double)hist_step_middle(hist_step((uint64_t)ns)) : ns;
}

/* What is no mean. */
static void restore_exits(struct snap_exits *row, const struct snap_exits *kept)
{
	row->max = kept->max;
	row->p50.v = step_of(row->p50.v);
	row->p99.v = step_of(row->p99.v);
	row->top_pct = kept->top_pct;
	row->open_ns = kept->open_ns;
}

static void restore_samples(struct snap_samples *row, const struct snap_samples *kept)
{
	row->n = kept->n;
	row->n_total = kept->n_total;
	memcpy(row->domain, kept->domain, sizeof(row->domain));
	row->hot_pct = kept->hot_pct;
}

static void restore_exit(const struct merger *m, struct snap_exit *row,
			 const struct snap_exit *kept, const struct bounds *b)
{
	row->now = kept->now;
	row->total = kept->total;
	store_tally_percentiles(&row->now, row->heat, &b->pctl);
	if (value_has(row->now.rate))
		row->now.rate.v = (double)row->now.count / (m->dt / 1e9);
}

static void restore_host(struct snap_host *row, const struct snap_host *kept)
{
	restore_exits(&row->ex, &kept->ex);
	restore_samples(&row->sym, &kept->sym);
	restore_samples(&row->other_sym, &kept->other_sym);
	row->overcommit = kept->overcommit;
}

static void restore_row(const struct merger *m, const struct merge_table *t, size_t at, void *row,
			const void *kept)
{
	const struct snap_vm *vm = kept;
	const struct snap_vcpu *vcpu = kept;

	switch (t->t->id) {
	case STORE_HOST:
		restore_host(row, kept);
		break;
	case STORE_VMS:
		((struct snap_vm *)row)->steal_max = vm->steal_max;
		restore_exits(&((struct snap_vm *)row)->ex, &vm->ex);
		restore_samples(&((struct snap_vm *)row)->sym, &vm->sym);
		break;
	case STORE_VCPUS:
		((struct snap_vcpu *)row)->pmu.total = vcpu->pmu.total;
		((struct snap_vcpu *)row)->pmu.refused = vcpu->pmu.refused;
		restore_exits(&((struct snap_vcpu *)row)->ex, &vcpu->ex);
		restore_samples(&((struct snap_vcpu *)row)->sym, &vcpu->sym);
		break;
	case STORE_EXITS:
		restore_exit(m, row, kept, &t->bounds[at]);
		break;
	case STORE_SLOW:
		*(struct snap_slow *)row = *(const struct snap_slow *)kept;
		break;
	case STORE_PMCS: /* states, but for the rates */
		((struct snap_pmc *)row)->value = ((const struct snap_pmc *)kept)->value;
		((struct snap_pmc *)row)->overflows = ((const struct snap_pmc *)kept)->overflows;
		break;
	case STORE_SYMBOLS:
		((struct snap_symbol *)row)->pct_total =
			((const struct snap_symbol *)kept)->pct_total;
		break;
	case STORE_FINDINGS:
		((struct snap_finding *)row)->value = ((const struct snap_finding *)kept)->value;
		break;
	case STORE_WAITED: /* it had nothing where it is in no row */
		((struct snap_waited *)row)->pct.v *= t->time[at] / m->dt;
		break;
	case STORE_TASKS:
		/* They are the busiest of each part: those of one part had less of the whole. */
		((struct snap_task *)row)->cpu.v *= t->time[at] / m->dt;
		break;
	default:
		break;
	}
}

/* ---- the union ---- */

/* A row's indexes, which are of its part, as those of the result. */
static void move_indexes(const struct merger *m, enum store_table_id id, void *row)
{
	struct snap_exit *x = row;
	struct snap_symbol *y = row;
	struct snap_finding *f = row;
	struct snap_waited *w = row;
	struct snap_slow *slow = row;
	struct snap_pmc *pmc = row;

	switch (id) {
	case STORE_VCPUS:
		((struct snap_vcpu *)row)->vm = m->vm_row[((struct snap_vcpu *)row)->vm];
		break;
	case STORE_EXITS:
		x->vm = x->vm == SNAP_NO_VM ? SNAP_NO_VM : m->vm_row[x->vm];
		x->vcpu = x->vcpu < 0 ? -1 : (int32_t)m->vcpu_row[x->vcpu];
		break;
	case STORE_SYMBOLS:
		y->vm = y->vm < 0 ? y->vm : (int32_t)m->vm_row[y->vm];
		y->vcpu = y->vcpu < 0 ? -1 : (int32_t)m->vcpu_row[y->vcpu];
		break;
	case STORE_WAITED:
		w->vm = m->vm_row[w->vm];
		w->vcpu = w->vcpu < 0 ? -1 : (int32_t)m->vcpu_row[w->vcpu];
		break;
	case STORE_FINDINGS:
		f->vm = f->vm < 0 ? -1 : (int32_t)m->vm_row[f->vm];
		f->vcpu = f->vcpu < 0 ? -1 : (int32_t)m->vcpu_row[f->vcpu];
		break;
	case STORE_THREADS:
		((struct snap_thread *)row)->vm = m->vm_row[((struct snap_thread *)row)->vm];
		break;
	case STORE_PMCS:
		pmc->vm = m->vm_row[pmc->vm];
		pmc->vcpu = (int32_t)m->vcpu_row[pmc->vcpu];
		break;
	case STORE_SLOW:
		slow->vm = m->vm_row[slow->vm];
		slow->vcpu = slow->vcpu < 0 ? -1 : (int32_t)m->vcpu_row[slow->vcpu];
		break;
	case STORE_CODE:
		((struct snap_code *)row)->vm = m->vm_row[((struct snap_code *)row)->vm];
		break;
	default:
		break;
	}
}

/* where: gets the row in the result of each row of the part; NULL: nobody asks. */
static void add_part(struct merger *m, struct merge_table *t, const struct snapshot *s,
		     uint32_t *where)
{
	size_t n, at = SIZE_MAX;
	const char *rows = store_rows(t->t, s, &n);

	for (size_t i = 0; i < n; i++) {
		const char *from = rows + i * t->t->row_size;
		struct key k = key_of(m, t->t->id, from);
		bool found;
		char *into;

		if (make_room(t, n)) {
			m->rc = -ENOMEM;
			return;
		}
		at = find_row(t, &k, at + 1, &found);
		into = t->row + at * t->t->row_size;
		if (found) {
			merge_row(t->t->id, into, from);
			if (t->bounds)
				merge_heat(m, (struct snap_exit *)(void *)into,
					   ((const struct snap_exit *)(const void *)from)->heat,
					   &t->bounds[at]);
		} else {
			memcpy(into, from, t->t->row_size);
			move_indexes(m, t->t->id, into);
		}
		add_means(t, at, from, (double)s->dt);
		if (t->bounds)
			store_bounds_add(&t->bounds[at].pctl,
					 &((const struct snap_exit *)from)->now);
		if (where)
			where[i] = (uint32_t)at;
	}
}

static void finish_rows(const struct merger *m, struct merge_table *t)
{
	char kept[sizeof(struct snap_host) + sizeof(struct snap_vm) + sizeof(struct snap_exit)]
		__attribute__((aligned(16)));

	for (size_t i = 0; i < t->n; i++) {
		char *row = t->row + i * t->t->row_size;

		memcpy(kept, row, t->t->row_size);
		set_means(m, t, i);
		restore_row(m, t, i, row, kept);
	}
}

/* ---- all of it ---- */

static const enum store_table_id merged_tables[] = {
	STORE_HOST,	STORE_VMS,    STORE_VCPUS, STORE_EXITS, STORE_SYMBOLS,
	STORE_CODE,	STORE_WAITED, STORE_TASKS, STORE_CPUS,	STORE_THREADS,
	STORE_FINDINGS, STORE_SLOW,   STORE_PMCS,
};

#define NTABLES (sizeof(merged_tables) / sizeof(merged_tables[0]))

/* The merged rows become the result's. */
static int put_rows(struct merger *m, struct merge_table *t)
{
	char *base = (char *)m->out;
	void *rows;

	if (t->t->fixed) {
		memcpy(base + t->t->rows_at, t->row, t->t->row_size);
		return 0;
	}
	rows = snapshot_alloc_unset(m->out, t->n, t->t->row_size);
	if (!rows)
		return -ENOMEM;
	if (t->n)
		memcpy(rows, t->row, t->n * t->t->row_size);
	memcpy(base + t->t->rows_at, &rows, sizeof(rows));
	memcpy(base + t->t->n_at, &t->n, sizeof(t->n));
	return 0;
}

static void add_kind(struct tally *into, const struct tally *from)
{
	struct tally before = *into;

	store_tally_add(into, from);
	into->count_pct = before.count_pct;
	into->time_pct = before.time_pct;
}

/* Members of the snapshot itself, from the newest part; sums where there are any. */
static void merge_interval(struct merger *m)
{
	const struct snapshot *newest = m->part[m->nparts - 1];
	size_t bytes = m->out->bytes;

	*m->out = *newest;
	m->out->bytes = bytes;
	m->out->dt = (int64_t)m->dt;
	m->out->delay_s = m->dt / 1e9;
	m->out->first_rates = false;
	m->out->slices = NULL; /* of a time finer than any interval */
	m->out->nslices = 0;
	m->out->stream = (struct snap_stream){0};
	for (size_t i = 0; i + 1 < m->nparts; i++) {
		const struct snapshot *s = m->part[i];

		for (int k = 0; k < KIND_NR; k++)
			add_kind(&m->out->kinds[k], &s->kinds[k]);
		m->out->sampling.lost += s->sampling.lost;
		m->out->sampling.throttled += s->sampling.throttled;
		m->out->open_kinds &= s->open_kinds;
		if (!m->out->slow_ns)
			m->out->slow_ns = s->slow_ns;
	}
	for (int k = 0; k < KIND_NR; k++)
		if (value_has(m->out->kinds[k].rate))
			m->out->kinds[k].rate.v = (double)m->out->kinds[k].count / (m->dt / 1e9);
}

static int merge_tables(struct merger *m, struct merge_table *t)
{
	for (size_t i = 0; i < NTABLES; i++)
		if (open_table(m, &t[i], merged_tables[i]))
			return -ENOMEM;
	for (size_t p = m->nparts; p-- > 0;) {
		for (size_t i = 0; i < NTABLES; i++) {
			uint32_t *where = merged_tables[i] == STORE_VMS	    ? m->vm_row
					  : merged_tables[i] == STORE_VCPUS ? m->vcpu_row
									    : NULL;

			add_part(m, &t[i], m->part[p], where);
		}
	}
	for (size_t i = 0; i < NTABLES && !m->rc; i++) {
		finish_rows(m, &t[i]);
		m->rc = put_rows(m, &t[i]);
	}
	return m->rc ? m->rc : store_merge_order(m->out);
}

int store_merge(struct snapshot *const *part, size_t n, struct snapshot **out)
{
	struct merge_table t[NTABLES] = {0};
	struct merger m = {.part = part, .nparts = n, .out = snapshot_new()};
	size_t nvms = 1, nvcpus = 1;
	int rc = -ENOMEM;

	for (size_t i = 0; i < n; i++) {
		m.dt += (double)part[i]->dt;
		nvms = part[i]->nvms > nvms ? part[i]->nvms : nvms;
		nvcpus = part[i]->nvcpus > nvcpus ? part[i]->nvcpus : nvcpus;
	}
	m.dt = m.dt > 0 ? m.dt : 1;
	m.vm_row = calloc(nvms, sizeof(*m.vm_row));
	m.vcpu_row = calloc(nvcpus, sizeof(*m.vcpu_row));
	if (m.out && m.vm_row && m.vcpu_row) {
		merge_interval(&m);
		rc = merge_tables(&m, t);
	}
	for (size_t i = 0; i < NTABLES; i++)
		free_table(&t[i]);
	free(m.vm_row);
	free(m.vcpu_row);
	if (rc)
		snapshot_unref(m.out);
	else
		*out = m.out;
	return rc;
}
