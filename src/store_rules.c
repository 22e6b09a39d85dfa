// SPDX-License-Identifier: GPL-2.0-only
/* What follows from what (store_rules.h). */
#include "store_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_number.h"

/* ---- sums of levels ---- */

/* Waits of a halt that are counted twice are in no share, and in no sum. */
static bool in_sums(const struct value *share)
{
	return share->state != VALUE_NA;
}

static void sum_exits(struct store_known *k, uint32_t first, uint32_t n)
{
	struct store_whole sum[KIND_NR] = {0};

	for (uint32_t i = first; i < first + n; i++) {
		const struct snap_exit *x = &k->s->exits[i];
		struct store_whole *w = &sum[x->kind];

		if (in_sums(&x->now.count_pct)) {
			w->count += x->now.count;
			w->time += x->now.time_ns;
		}
		if (in_sums(&x->total.count_pct)) {
			w->count_total += x->total.count;
			w->time_total += x->total.time_ns;
		}
	}
	for (uint32_t i = first; i < first + n; i++)
		k->exits[i] = sum[k->s->exits[i].kind];
}

static void sum_symbols(struct store_known *k, const struct snap_samples *of)
{
	uint64_t now = 0, total = 0;

	for (uint32_t i = of->first; i < of->first + of->rows; i++) {
		now += k->s->symbols[i].samples;
		total += k->s->symbols[i].samples_total;
	}
	for (uint32_t i = of->first; i < of->first + of->rows; i++) {
		k->symbols[i] = now;
		k->symbols_total[i] = total;
	}
}

static void sum_waited(struct store_known *k, const struct snap_waits *of)
{
	uint64_t ns = 0;

	for (uint32_t i = of->first; i < of->first + of->n; i++)
		ns += k->s->waited[i].ns;
	for (uint32_t i = of->first; i < of->first + of->n; i++)
		k->waited[i] = ns;
}

static void sum_levels(struct store_known *k)
{
	const struct snapshot *s = k->s;

	sum_exits(k, s->host.ex.first, s->host.ex.n);
	sum_symbols(k, &s->host.sym);
	sum_symbols(k, &s->host.other_sym);
	for (size_t i = 0; i < s->nvms; i++) {
		sum_exits(k, s->vms[i].ex.first, s->vms[i].ex.n);
		sum_symbols(k, &s->vms[i].sym);
		sum_waited(k, &s->vms[i].waits);
	}
	for (size_t i = 0; i < s->nvcpus; i++) {
		sum_exits(k, s->vcpus[i].ex.first, s->vcpus[i].ex.n);
		sum_symbols(k, &s->vcpus[i].sym);
		sum_waited(k, &s->vcpus[i].waits);
	}
}

int store_known_init(struct store_known *k, const struct snapshot *s)
{
	*k = (struct store_known){.s = s,
				  .dt_s = (double)s->dt / 1e9,
				  .total_s = (double)(s->time - s->since) / 1e9,
				  .exits = calloc(s->nexits + 1, sizeof(*k->exits)),
				  .symbols = calloc(s->nsymbols + 1, sizeof(*k->symbols)),
				  .symbols_total =
					  calloc(s->nsymbols + 1, sizeof(*k->symbols_total)),
				  .waited = calloc(s->nwaited + 1, sizeof(*k->waited))};
	if (!k->exits || !k->symbols || !k->symbols_total || !k->waited) {
		store_known_free(k);
		return -ENOMEM;
	}
	sum_levels(k);
	return 0;
}

void store_known_free(struct store_known *k)
{
	free(k->exits);
	free(k->symbols);
	free(k->symbols_total);
	free(k->waited);
	*k = (struct store_known){0};
}

/* ---- rules ---- */

double store_as_read(double v)
{
	int64_t code;

	return store_form_of(v, &code) == FORM_MILLI ? store_decode_milli(code) : v;
}

static double read_of(const struct value *v)
{
	return value_has(*v) ? store_as_read(v->v) : 0;
}

/* A division takes its time, and many counts of a host are 0. */
static double share_of(uint64_t part, uint64_t whole)
{
	return part && whole ? 100.0 * (double)part / (double)whole : 0;
}

static double per(uint64_t n, double s)
{
	return n && s > 0 ? (double)n / s : 0;
}

static double mean_of(const struct tally *t)
{
	return t->timed ? (double)t->time_ns / (double)t->timed : 0;
}

/* The sums of a row of exits. */
static const struct store_whole *whole_of(const struct store_known *k, const char *row)
{
	return &k->exits[(const struct snap_exit *)(const void *)row - k->s->exits];
}

/* As the model makes them, of the rows that were kept. */
static double exits_figure(const struct store_known *k, enum store_rule rule,
			   const struct snap_exits *ex)
{
	uint64_t count = 0, most = 0, top = 0, all = 0;

	if (rule == RULE_EXIT_ON)
		return read_of(&ex->pct) - read_of(&ex->off_pct);
	for (uint32_t i = ex->first; i < ex->first + ex->n; i++) {
		const struct snap_exit *x = &k->s->exits[i];

		if (x->kind != KIND_VMEXIT)
			continue;
		count += x->now.count;
		if (x->idle)
			continue;
		all += x->now.time_ns;
		if (x->now.timed && x->now.max_ns > most)
			most = x->now.max_ns;
		if (!x->other && x->now.time_ns > top)
			top = x->now.time_ns;
	}
	if (rule == RULE_EXIT_RATE)
		return per(count, k->dt_s);
	return rule == RULE_EXIT_MAX ? (double)most : share_of(top, all);
}

static double use_figure(enum store_rule rule, const struct snap_use *u)
{
	double v;

	switch (rule) {
	case RULE_USR:
		v = read_of(&u->cpu) - read_of(&u->guest) - read_of(&u->sys);
		return v > 0 ? v : 0;
	case RULE_WAIT:
		v = read_of(&u->steal) - read_of(&u->throt);
		return v > 0 ? v : 0;
	default:
		return read_of(&u->cpu) + read_of(&u->steal);
	}
}

/* Of one of a VM's vCPUs, out of what does not itself follow from others. False: not known. */
static bool of_vcpu(enum store_rule rule, const struct snap_use *u, double *v)
{
	switch (rule) {
	case RULE_VM_THROT:
		*v = read_of(&u->throt);
		return value_has(u->throt);
	case RULE_VM_WAIT:
		*v = use_figure(RULE_WAIT, u);
		return value_has(u->wait);
	case RULE_VM_DEMAND:
		*v = use_figure(RULE_DEMAND, u);
		return value_has(u->demand);
	case RULE_VM_VCPU:
	case RULE_VM_IO:
		*v = read_of(&u->cpu);
		return value_has(u->cpu);
	default:
		*v = read_of(&u->steal);
		return value_has(u->steal);
	}
}

static double vm_figure(const struct store_known *k, enum store_rule rule, const struct snap_vm *vm)
{
	double sum = 0, most = 0, v;
	unsigned n = 0;

	for (uint32_t i = vm->vcpu_first; i < vm->vcpu_first + vm->vcpu_n; i++) {
		if (!of_vcpu(rule, &k->s->vcpus[i].use, &v))
			continue;
		n++;
		sum += v;
		most = v > most ? v : most;
	}
	if (rule == RULE_VM_STEAL_MAX)
		return most;
	if (rule == RULE_VM_IO)
		return read_of(&vm->use.cpu) - sum;
	return rule == RULE_VM_VCPU || !n ? sum : sum / n;
}

static double waited_figure(const struct store_known *k, enum store_rule rule,
			    const struct snap_waited *w)
{
	double dt = (double)k->s->dt;

	if (rule == RULE_WAITED_SHARE)
		return share_of(w->ns, k->waited[w - k->s->waited]);
	if (w->vcpu < 0)
		dt *= k->s->vms[w->vm].vcpu_n;
	return dt > 0 ? 100.0 * (double)w->ns / dt : 0;
}

static double symbol_figure(const struct store_known *k, enum store_rule rule,
			    const struct snap_symbol *y)
{
	size_t at = (size_t)(y - k->s->symbols);

	return rule == RULE_SYMBOL_PCT ? share_of(y->samples, k->symbols[at])
				       : share_of(y->samples_total, k->symbols_total[at]);
}

enum store_follows store_rule_use(enum store_rule rule)
{
	switch (rule) {
	case RULE_P50:
	case RULE_P99:
	case RULE_P999:
	case RULE_EXIT_STEP:
		return FOLLOWS_STEP;
	case RULE_SAMPLES:
		return FOLLOWS_SHARE;
	default:
		return FOLLOWS_FIGURE;
	}
}

bool store_rule_anew(enum store_rule rule)
{
	return rule == RULE_RATE || rule == RULE_COUNT_PCT || rule == RULE_TIME_PCT ||
	       rule == RULE_SYMBOL_PCT || rule == RULE_WAITED_SHARE;
}

/* Of one row; those of tallies are in store_rule_doubles(). */
static double rule_double(const struct store_known *k, const struct store_leaf *l, const char *row)
{
	const void *part = row + l->at - l->f->at, *whole = row;
	enum store_rule rule = (enum store_rule)l->f->rule;

	switch (rule) {
	case RULE_EXIT_STEP:
		return 0;
	case RULE_EXIT_RATE:
	case RULE_EXIT_MAX:
	case RULE_EXIT_TOP:
	case RULE_EXIT_ON:
		return exits_figure(k, rule, part);
	case RULE_USR:
	case RULE_WAIT:
	case RULE_DEMAND:
		return use_figure(rule, part);
	case RULE_SAMPLES:
		return read_of(&((const struct snap_samples *)part)->n);
	case RULE_SYMBOL_PCT:
	case RULE_SYMBOL_PCT_TOTAL:
		return symbol_figure(k, rule, whole);
	case RULE_WAITED_SHARE:
	case RULE_WAITED_PCT:
		return waited_figure(k, rule, whole);
	default:
		return vm_figure(k, rule, whole);
	}
}

/*
 * There are a million figures of tallies in the intervals of a second of a large host: one loop a
 * rule, with no call and no choice in it. `row` and its tally `t` are for the expression.
 */
#define EACH_TALLY(expression)                                                                     \
	do {                                                                                       \
		for (size_t i = 0; i < n; i++, row += row_size) {                                  \
			const struct tally *t = (const void *)(row + at);                          \
                                                                                                   \
			out[i] = (expression);                                                     \
		}                                                                                  \
	} while (0)

void store_rule_doubles(const struct store_known *k, const struct store_leaf *l, const char *row,
			size_t n, size_t row_size, double *out)
{
	const size_t at = l->at - l->f->at;

	switch (l->f->rule) {
	case RULE_MEAN:
		EACH_TALLY(mean_of(t));
		break;
	case RULE_RATE:
		EACH_TALLY(per(t->count, k->dt_s));
		break;
	case RULE_RATE_TOTAL:
		EACH_TALLY(per(t->count, k->total_s));
		break;
	case RULE_COUNT_PCT:
		EACH_TALLY(share_of(t->count, whole_of(k, row)->count));
		break;
	case RULE_TIME_PCT:
		EACH_TALLY(share_of(t->time_ns, whole_of(k, row)->time));
		break;
	case RULE_COUNT_PCT_TOTAL:
		EACH_TALLY(share_of(t->count, whole_of(k, row)->count_total));
		break;
	case RULE_TIME_PCT_TOTAL:
		EACH_TALLY(share_of(t->time_ns, whole_of(k, row)->time_total));
		break;
	default:
		for (size_t i = 0; i < n; i++, row += row_size)
			out[i] = rule_double(k, l, row);
		break;
	}
}

void store_rule_integers(const struct store_leaf *l, const char *row, size_t n, size_t row_size,
			 uint64_t *out)
{
	const size_t at = l->at - l->f->at;

	switch (l->f->rule) {
	case RULE_TIMED:
		EACH_TALLY(t->count);
		break;
	case RULE_ONE:
		EACH_TALLY(t->timed == 1 ? t->time_ns : 0);
		break;
	case RULE_P50:
		EACH_TALLY(t->timed && t->pctl != PCTL_NONE ? t->time_ns / t->timed : 0);
		break;
	case RULE_P99:
		EACH_TALLY(t->p50_ns);
		break;
	default:
		EACH_TALLY(t->p99_ns);
		break;
	}
}

static bool is_share(enum store_rule rule)
{
	return (rule >= RULE_COUNT_PCT && rule <= RULE_TIME_PCT_TOTAL) || rule == RULE_SYMBOL_PCT ||
	       rule == RULE_SYMBOL_PCT_TOTAL;
}

static void settle_rows(const struct store_known *k, const struct store_leaf *l, char *rows,
			size_t n, size_t row_size)
{
	struct value v;

	for (size_t i = 0; i < n; i++, rows += row_size) {
		memcpy(&v, rows + l->at, sizeof(v));
		if (!value_has(v))
			continue;
		store_rule_doubles(k, l, rows, 1, row_size, &v.v);
		memcpy(rows + l->at, &v, sizeof(v));
	}
}

int store_settle_shares(struct snapshot *s)
{
	struct store_leaf leaf[STORE_LEAVES];
	struct store_known k;
	int rc = store_known_init(&k, s);

	for (size_t i = 0; i < store_ntables && !rc; i++) {
		const struct store_table *t = &store_tables[i];
		size_t n, nleaf = store_leaves(t, leaf);
		char *rows = (char *)store_rows(t, s, &n);

		for (size_t l = 0; l < nleaf; l++)
			if (is_share((enum store_rule)leaf[l].f->rule))
				settle_rows(&k, &leaf[l], rows, n, t->row_size);
	}
	store_known_free(&k);
	return rc;
}
