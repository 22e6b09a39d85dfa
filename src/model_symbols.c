// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples: counted a vCPU, a VM and the host, and their rows in a snapshot.
 *
 * Keys are numbers; names are asked for when a row is made, so that counting a sample costs no
 * string.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_rows.h"
#include "own_path.h"

#define SELECTED_KEYS 64 /* of the vCPU that is looked at */
#define PAGE_BITS 12

static unsigned vcpu_limit(const struct model *m, const struct inv_vcpu *v)
{
	unsigned keys = m->config.vcpu_keys ? m->config.vcpu_keys : 8;

	return m->demand.vcpu == v->id ? SELECTED_KEYS : keys;
}

static unsigned vm_limit(const struct model *m)
{
	return m->config.vm_keys ? m->config.vm_keys : 64;
}

/* ---- counting ---- */

static void hit(struct model *m, const struct symbol_hit *h)
{
	const struct symbol_key shared = symbol_key_of_all(&h->key);
	struct inv_vcpu *vcpu = NULL;
	struct model_vcpu *v;
	struct model_vm *vm;

	vm = h->thread ? model_vm_state(h->thread->vm) : NULL;
	sym_set_add(vm ? &m->sampling.all : &m->sampling.rest, &shared, h->n, h->guessed,
		    vm_limit(m));
	if (!vm)
		return;
	sym_set_add(&vm->sym, &h->key, h->n, h->guessed, vm_limit(m));
	if (h->called)
		sym_set_called(&vm->sym, &h->key, &h->caller, h->n);
	/* A thread that runs several vCPUs does not say for which it is at work. */
	if (h->thread->role == ROLE_VCPU && h->thread->nvcpus == 1)
		vcpu = h->thread->vcpu;
	v = vcpu ? model_vcpu_state(vcpu) : NULL;
	if (v)
		sym_set_add(&v->sym, &h->key, h->n, h->guessed, vcpu_limit(m, vcpu));
}

void model_hits(struct model *m, const struct symbol_hit *h, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (h[i].key.domain >= DOMAIN_NR)
			continue;
		if (h[i].idle)
			m->sampling.idle += h[i].n;
		else
			hit(m, &h[i]);
	}
}

void model_set_namer(struct model *m, const struct symbol_namer *n)
{
	m->sampling.namer = n;
}

void model_sampling(struct model *m, const struct sampling_state *s)
{
	struct model_sampling *x = &m->sampling;

	snprintf(x->event, sizeof(x->event), "%s", s->event ? s->event : "");
	snprintf(x->why, sizeof(x->why), "%s", s->why ? s->why : "");
	x->state = *s;
	x->lost += s->lost;
	x->throttled += s->throttled;
}

/* ---- names ---- */

static const char letters[DOMAIN_NR] = {'h', 'v', 'k', 'u'};

static const char *page_name(struct snapshot *s, const struct symbol_key *k)
{
	static const char *const where[DOMAIN_NR] = {"kernel", "user", "guest", "guest"};
	unsigned long long addr;

	if (!k->value)
		return snapshot_printf(s, "[%s]", where[k->domain]);
	addr = k->value << PAGE_BITS;
	return snapshot_printf(s, "[%s 0x%llx]", where[k->domain], addr);
}

static void make_name(struct commit *c, const struct symbol_key *k, struct key_name *out)
{
	const struct symbol_namer *n = c->m->sampling.namer;
	const char *found = NULL, *in = "";

	out->key = *k;
	out->named = k->table && n && n->name(n->ctx, k, &found, &in) && found;
	out->module = snapshot_str(c->s, in);
	out->name = out->named ? snapshot_str(c->s, found) : page_name(c->s, k);
}

bool model_name_key(struct commit *c, const struct symbol_key *k, const char **name,
		    const char **module)
{
	struct key_name *n = &c->names[symbol_key_hash(k) % NAMES_KEPT];

	if (!n->name || !symbol_key_equal(&n->key, k))
		make_name(c, k, n);
	*name = n->name;
	*module = n->module;
	return n->named;
}

const char *model_why_no_name(struct commit *c, const struct inv_vm *vm, const struct symbol_key *k)
{
	const struct symbol_namer *n = c->m->sampling.namer;
	const char *why = n ? n->reason(n->ctx, vm, k) : "";

	/* They are constants, or stay as they are while a snapshot is made. */
	if (why != c->reason) {
		c->reason = why;
		c->reason_copy = snapshot_str(c->s, why);
	}
	return c->reason_copy;
}

/* ---- sums ---- */

static struct value share(uint64_t part, uint64_t all)
{
	return all ? value_known(100.0 * (double)part / (double)all) : value_pending();
}

static void put_hot(struct commit *c, const struct sym_set *set, uint64_t n,
		    struct snap_samples *out)
{
	const struct sym_cell *top = sym_set_top(set);
	const char *name, *module;

	if (!top)
		return;
	out->hot_named = model_name_key(c, &top->key, &name, &module);
	out->hot = snapshot_printf(c->s, "%c:%s", letters[top->key.domain], name);
	out->hot_pct = share(top->now, n);
}

static void put_samples(struct commit *c, const struct sym_set *set, struct snap_samples *out)
{
	uint64_t n = set ? sym_set_now(set) : 0;
	bool open = c->m->sampling.state.open;
	struct value none = open ? value_pending() : value_na(WHY_NOT_OPEN);

	*out = (struct snap_samples){.n = none, .n_total = none, .hot = "", .hot_pct = none};
	for (int d = 0; d < DOMAIN_NR; d++)
		out->domain[d] = none;
	if (set && sym_set_total(set))
		out->n_total = value_known((double)sym_set_total(set));
	if (open || n)
		out->n = value_known((double)n);
	if (!n)
		return;
	for (int d = 0; d < DOMAIN_NR; d++)
		out->domain[d] = share(set->now[d], n);
	put_hot(c, set, n, out);
}

void model_vcpu_symbols(struct commit *c, const struct inv_vcpu *v, struct snap_vcpu *row)
{
	const struct model_vcpu *s = v->cookie[INV_COOKIE_MODEL];

	put_samples(c, s ? &s->sym : NULL, &row->sym);
}

void model_vm_symbols(struct commit *c, const struct inv_vm *vm, struct snap_vm *row)
{
	const struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];
	const struct symbol_namer *n = c->m->sampling.namer;
	const char *why, *mend;
	char words[MEND_SIZE];

	put_samples(c, s ? &s->sym : NULL, &row->sym);
	row->sym_why = row->sym_mend = "";
	if (!c->m->sampling.state.open || !n || !n->guest(n->ctx, vm, &why, &mend))
		return;
	row->sym_why = snapshot_str(c->s, why);
	own_words(words, sizeof(words), mend ? mend : "", c->m->self);
	row->sym_mend = snapshot_str(c->s, words);
}

/* ---- rows ---- */

/* At most: what is kept, and `other`. */
static uint32_t rows_of(const struct sym_set *s, unsigned keep)
{
	return s && (s->n || s->other_now || s->other_total) ? (s->n < keep ? s->n : keep) + 1 : 0;
}

static bool rows_wanted(const struct model *m, const struct inv_vm *vm)
{
	return m->demand.samples_all || m->demand.vm == vm->id;
}

static uint32_t count_rows(struct model *m)
{
	uint32_t n =
		rows_of(&m->sampling.all, vm_limit(m)) + rows_of(&m->sampling.rest, vm_limit(m));

	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		const struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

		if (!rows_wanted(m, vm))
			continue;
		n += s ? rows_of(&s->sym, vm_limit(m)) : 0;
		for (size_t i = 0; i < vm->nvcpu; i++) {
			const struct model_vcpu *v = vm->vcpu[i]->cookie[INV_COOKIE_MODEL];

			n += v ? rows_of(&v->sym, vcpu_limit(m, vm->vcpu[i])) : 0;
		}
	}
	return n;
}

static void put_callers(struct commit *c, const struct sym_cell *cell, struct snap_symbol *row)
{
	const struct sym_caller *from = NULL;
	unsigned n = sym_cell_callers(cell, &from);

	for (unsigned i = 0; i < SNAP_CALLERS; i++) {
		struct snap_caller *x = &row->caller[i];
		const char *module;

		*x = (struct snap_caller){.name = ""};
		if (i >= n)
			continue;
		(void)model_name_key(c, &from[i].key, &x->name, &module);
		x->samples = from[i].now;
		x->samples_total = from[i].now + from[i].total;
	}
}

static void put_row(struct commit *c, const struct sym_set *set, const struct sym_cell *cell,
		    const struct inv_vm *vm, struct snap_symbol *row)
{
	*row = (struct snap_symbol){
		.key = cell->key,
		.guessed = cell->guessed,
		.samples = cell->now,
		.samples_total = cell->total + cell->now,
		.reason = "",
	};
	row->pct = share(row->samples, sym_set_now(set));
	row->pct_total = share(row->samples_total, sym_set_total(set));
	if (!model_name_key(c, &cell->key, &row->name, &row->module))
		row->reason = model_why_no_name(c, vm, &cell->key);
	put_callers(c, cell, row);
}

/* What found no room, and the keys behind the last row. */
static void put_other(const struct sym_set *set, unsigned rows, struct snap_symbol *row)
{
	uint64_t now = set->other_now, total = set->other_total;

	for (unsigned i = rows; i < set->n; i++) {
		now += set->cell[i].now;
		total += set->cell[i].total;
	}
	*row = (struct snap_symbol){.other = true, .name = "other", .module = "", .reason = ""};
	for (unsigned i = 0; i < SNAP_CALLERS; i++)
		row->caller[i] = (struct snap_caller){.name = ""};
	row->samples = now;
	row->samples_total = total + now;
	row->pct = share(row->samples, sym_set_now(set));
	row->pct_total = share(row->samples_total, sym_set_total(set));
}

static int by_samples(const void *a, const void *b)
{
	const struct snap_symbol *x = a, *y = b;

	if (x->other != y->other)
		return x->other ? 1 : -1;
	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	if (x->samples_total != y->samples_total)
		return x->samples_total < y->samples_total ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* What rows are of. */
struct whose {
	const struct inv_vm *vm; /* NULL: of no VM, or of all */
	int32_t vm_at, vcpu_at; /* as in snap_symbol */
	unsigned keep;
};

static void put_rows(struct commit *c, struct sym_set *set, const struct whose *w,
		     struct snap_samples *out)
{
	struct snap_symbol *row = c->symbol_rows + c->nsymbols;
	uint32_t n = 0;

	out->first = c->nsymbols;
	if (!set || !c->symbol_rows || c->nsymbols + rows_of(set, w->keep) > c->symbol_room)
		return;
	sym_set_sort(set);
	while (n < set->n && n < w->keep) {
		put_row(c, set, &set->cell[n], w->vm, &row[n]);
		n++;
	}
	if (set->other_now || set->other_total || n < set->n) {
		put_other(set, n, &row[n]);
		n++;
	}
	for (uint32_t i = 0; i < n; i++) {
		row[i].vm = w->vm_at;
		row[i].vcpu = w->vcpu_at;
	}
	qsort(row, n, sizeof(*row), by_samples);
	out->rows = n;
	c->nsymbols += n;
}

static void put_vm_rows(struct commit *c, const struct inv_vm *vm, uint32_t at)
{
	struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];
	struct whose w = {vm, (int32_t)at, -1, vm_limit(c->m)};
	uint32_t k = c->vms[at].vcpu_first;

	put_rows(c, s ? &s->sym : NULL, &w, &c->vms[at].sym);
	for (size_t i = 0; i < vm->nvcpu; i++) {
		struct model_vcpu *v = vm->vcpu[i]->cookie[INV_COOKIE_MODEL];

		if (!commit_vcpu_shown(vm, vm->vcpu[i]))
			continue;
		w.vcpu_at = (int32_t)k;
		w.keep = vcpu_limit(c->m, vm->vcpu[i]);
		put_rows(c, v ? &v->sym : NULL, &w, &c->vcpus[k].sym);
		k++;
	}
}

#define GUEST_UNSEEN_NS 5e9

/* So much guest time and not one sample of it: this KVM, or this event, gives none. */
static bool no_guest_samples(struct commit *c)
{
	struct model_sampling *x = &c->m->sampling;
	const struct sym_set *s = &x->all;

	if (s->now[DOMAIN_GUEST_KERNEL] || s->now[DOMAIN_GUEST_USER])
		x->guest_seen = true;
	for (size_t i = 0; !x->guest_seen && x->state.open && x->state.guest && i < c->s->nvcpus;
	     i++) {
		struct value guest = c->s->vcpus[i].use.guest;

		if (value_has(guest))
			x->guest_unseen_ns += guest.v / 100 * (double)c->s->dt;
	}
	return !x->guest_seen && x->guest_unseen_ns > GUEST_UNSEEN_NS;
}

static void put_sampling(struct commit *c)
{
	const struct model_sampling *x = &c->m->sampling;
	struct snap_sampling *out = &c->s->sampling;
	uint64_t busy = sym_set_now(&x->all) + sym_set_now(&x->rest);

	out->open = x->state.open;
	out->event = snapshot_str(c->s, x->event);
	out->why = snapshot_str(c->s, x->why);
	out->hz = x->state.hz;
	out->wanted_hz = x->state.wanted_hz;
	out->no_guest = no_guest_samples(c);
	out->lost = x->lost;
	out->throttled = x->throttled;
	out->idle = x->state.open ? share(x->idle, busy + x->idle) : value_na(WHY_NOT_OPEN);
}

void model_symbol_rows(struct commit *c)
{
	struct model *m = c->m;
	uint32_t at = 0;

	put_sampling(c);
	put_samples(c, &m->sampling.all, &c->s->host.sym);
	put_samples(c, &m->sampling.rest, &c->s->host.other_sym);
	c->symbol_room = count_rows(m);
	c->symbol_rows = snapshot_alloc_unset(c->s, c->symbol_room, sizeof(*c->symbol_rows));
	if (!c->symbol_rows)
		c->symbol_room = 0; /* the rows are missing, all other figures are there */
	put_rows(c, &m->sampling.all, &(struct whose){NULL, SNAP_ALL_VMS, -1, vm_limit(m)},
		 &c->s->host.sym);
	put_rows(c, &m->sampling.rest, &(struct whose){NULL, SNAP_OTHER, -1, vm_limit(m)},
		 &c->s->host.other_sym);
	for (struct inv_vm *vm = inventory_first(m->inv); (vm = commit_next_vm(c, vm, at));
	     vm = vm->next, at++)
		if (rows_wanted(m, vm))
			put_vm_rows(c, vm, at);
	c->s->symbols = c->symbol_rows;
	c->s->nsymbols = c->nsymbols;
}

/* ---- the next interval ---- */

/* Calls f for each table. */
static void each_set(struct model *m,
		     void (*f)(const struct model *m, struct sym_set *s, unsigned keep))
{
	f(m, &m->sampling.all, vm_limit(m));
	f(m, &m->sampling.rest, vm_limit(m));
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

		if (s)
			f(m, &s->sym, vm_limit(m));
		for (size_t i = 0; i < vm->nvcpu; i++) {
			struct model_vcpu *v = vm->vcpu[i]->cookie[INV_COOKIE_MODEL];

			if (v)
				f(m, &v->sym, vcpu_limit(m, vm->vcpu[i]));
		}
	}
}

static void next_set(const struct model *m, struct sym_set *s, unsigned limit)
{
	(void)m;
	if (s->n || s->other_now)
		sym_set_next(s, limit);
}

static void reset_set(const struct model *m, struct sym_set *s, unsigned limit)
{
	(void)m;
	(void)limit;
	sym_set_reset(s);
}

void model_symbols_next(struct model *m)
{
	each_set(m, next_set);
	m->sampling.idle = m->sampling.lost = m->sampling.throttled = 0;
}

void model_symbols_reset(struct model *m)
{
	each_set(m, reset_set);
}

void model_symbols_free(struct model *m)
{
	sym_set_free(&m->sampling.all);
	sym_set_free(&m->sampling.rest);
}
