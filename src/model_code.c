// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which guest code makes the exits: (reason, address) of exits_code.h by symbol, as rows of a
 * snapshot. Only of VMs that somebody asks about.
 */
#include <stdlib.h>
#include <string.h>

#include "exits_code.h"
#include "kvm_names.h"
#include "model_rows.h"

#define ROWS_MAX 64 /* of one VM */
#define NAME_SIZE 64

static struct ex_vm *ex_of(const struct inv_vm *vm)
{
	struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

	return s ? &s->ex : NULL;
}

/* ---- from addresses to symbols ---- */

/* Rows while they are made: equal symbols become one. */
struct making {
	struct snap_code row[EX_CODE_PLACES];
	unsigned n;
};

struct symbol_key model_code_key(const struct commit *c, const struct inv_vm *vm, uint64_t rip)
{
	const struct symbol_namer *n = c->m->sampling.namer;
	struct symbol_key k = {
		.value = rip >> 12, .domain = DOMAIN_GUEST_KERNEL, .reason = SYM_NO_SOURCE};

	if (n && n->find)
		n->find(n->ctx, vm, rip, &k);
	return k;
}

static void add(struct making *mk, const struct ex_code_cell *x, const struct symbol_key *k)
{
	struct snap_code *row = NULL;

	for (unsigned i = 0; i < mk->n && !row; i++)
		if (mk->row[i].reason == x->key && mk->row[i].isa == x->isa &&
		    symbol_key_equal(&mk->row[i].key, k))
			row = &mk->row[i];
	if (!row) {
		row = &mk->row[mk->n++];
		*row = (struct snap_code){.reason = x->key, .isa = x->isa, .key = *k};
	}
	row->count += x->now;
	row->total += x->now + x->total;
}

static int by_count(const void *a, const void *b)
{
	const struct snap_code *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static struct value share(uint64_t part, uint64_t all)
{
	return all ? value_known(100.0 * (double)(part < all ? part : all) / (double)all)
		   : value_pending();
}

/* All exits of the reason, of which the row is a part. Cells have their sums by now. */
static void put_shares(struct ex_vm *vm, struct snap_code *row)
{
	const struct ex_key k = {.key = row->reason, .isa = row->isa, .kind = KIND_VMEXIT};
	const struct ex_cell *cell = ex_set_find(&vm->set, &k);

	row->pct = row->pct_total = value_pending();
	if (!cell)
		return;
	row->pct = share(row->count, cell->now.count);
	row->pct_total = share(row->total, cell->total.count + cell->now.count);
}

static struct value marked(struct value v, uint8_t why)
{
	return why && v.state == VALUE_KNOWN ? value_partial(v.v, (enum value_why)why) : v;
}

/* Counts lack what was lost of the events that make them; shares may lack that of all exits, too.
 */
static void mark_low(const struct commit *c, const struct ex_code *code, struct snap_code *row)
{
	const struct missing *m = &c->m->missing;
	const unsigned kind = KIND_BIT(KIND_VMEXIT);
	struct value now = value_known(0), total = value_known(0);

	if (c->m->events_by != EVENTS_BY_BPF) { /* the same events */
		now = missing_mark(m, kind, false, now);
		total = missing_mark(m, kind, true, total);
	}
	row->low = code->lost ? WHY_LOST : now.why;
	row->low_total = code->lost || code->lost_before ? WHY_LOST : total.why;
	row->pct = marked(missing_mark(m, kind, false, row->pct), row->low);
	row->pct_total = marked(missing_mark(m, kind, true, row->pct_total), row->low_total);
}

static void put_names(struct commit *c, const struct inv_vm *vm, struct snap_code *row)
{
	char buf[NAME_SIZE];

	row->exit = snapshot_str(c->s, kvm_names_key(c->m->names, KIND_VMEXIT, row->isa,
						     row->reason, DIR_NONE, buf, sizeof(buf)));
	row->why = "";
	if (!model_name_key(c, &row->key, &row->name, &row->module))
		row->why = model_why_no_name(c, vm, &row->key);
}

static void put_vm(struct commit *c, const struct inv_vm *vm, uint32_t at, struct making *mk)
{
	const struct ex_code *code = ex_of(vm)->code;
	struct snap_code *row;
	unsigned n;

	c->vms[at].code_known = true; /* else nobody would have made it before the interval */
	mk->n = 0;
	for (unsigned i = 0; i < EX_CODE_PLACES; i++) {
		const struct ex_code_cell *x = &code->cell[i];
		struct symbol_key k;

		if (!x->now && !x->total)
			continue;
		k = model_code_key(c, vm, x->rip);
		add(mk, x, &k);
	}
	qsort(mk->row, mk->n, sizeof(mk->row[0]), by_count);
	n = mk->n < ROWS_MAX ? mk->n : ROWS_MAX;
	if (n > c->code_room - c->ncode)
		return;
	row = memcpy(&c->code_rows[c->ncode], mk->row, n * sizeof(mk->row[0]));
	for (unsigned i = 0; i < n; i++) {
		row[i].vm = at;
		put_shares(ex_of(vm), &row[i]);
		mark_low(c, code, &row[i]);
		put_names(c, vm, &row[i]);
	}
	c->vms[at].code_first = c->ncode;
	c->vms[at].code_n = n;
	c->ncode += n;
}

void model_code_rows(struct commit *c)
{
	struct making *mk;
	uint32_t vms = 0, at = 0;

	for (struct inv_vm *vm = inventory_first(c->m->inv); vm; vm = vm->next)
		vms += ex_of(vm) && ex_of(vm)->code;
	if (!vms)
		return;
	mk = malloc(sizeof(*mk));
	c->code_rows = snapshot_alloc(c->s, (size_t)vms * ROWS_MAX, sizeof(*c->code_rows));
	c->code_room = mk && c->code_rows ? vms * ROWS_MAX : 0;
	for (struct inv_vm *vm = inventory_first(c->m->inv);
	     c->code_room && (vm = commit_next_vm(c, vm, at)); vm = vm->next, at++)
		if (ex_of(vm) && ex_of(vm)->code)
			put_vm(c, vm, at, mk);
	free(mk);
	c->s->code = c->code_rows;
	c->s->ncode = c->ncode;
}

/* ---- events of no row ---- */

/* Of which VM nobody knows. Where none is counted by its code none is missed. */
void model_on_code_lost(void *ctx, uint64_t n)
{
	struct model *m = ctx;
	bool any = false;

	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		struct ex_code *code = ex_of(vm) ? ex_of(vm)->code : NULL;

		if (code)
			any = code->lost = true;
	}
	if (any)
		m->code_lost += n;
}

/* ---- the next interval ---- */

void model_code_next(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		struct ex_vm *x = ex_of(vm);

		if (!x)
			continue;
		if (!demand_code_of(&m->demand, vm->id)) {
			free(x->code);
			x->code = NULL;
		} else if (x->code) {
			ex_code_next(x->code);
		} else {
			x->code = calloc(1, sizeof(*x->code));
		}
	}
}

void model_code_reset(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next)
		if (ex_of(vm) && ex_of(vm)->code)
			ex_code_reset(ex_of(vm)->code);
}
