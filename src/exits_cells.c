// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of exits: finding, making, giving up and adding cells.
 *
 * A table of few keys is a short array, searched from the front, in which a hit moves one place
 * ahead: the busy keys are found at once. Where it is longer a hash says where in it each key is,
 * or at once that it is not there.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exits_cells.h"
#include "kvm_names.h"

#define TAG_VACANT UINT32_MAX /* no event has it: dir is below 4 */
#define FEW 4 /* slots that are looked through one by one */

double ex_acc_stderr_pct(const struct ex_acc *a)
{
	long double n = (long double)a->timed, sum = (long double)a->sum, m2;

	if (a->timed < 2 || !a->sum)
		return 0;
	m2 = (long double)a->sumsq - sum * sum / n;
	if (m2 <= 0)
		return 0;
	return (double)(100 * sqrtl(m2 / (n - 1) / n) / (sum / n));
}

/* ---- where a key is ---- */

static void set_place(struct ex_table *t, unsigned at)
{
	unsigned i = ex_table_home(t, t->slot[at].key, t->slot[at].tag);

	while (t->place[i])
		i = (i + 1) & t->mask;
	t->place[i] = (uint16_t)(at + 1);
}

/* All of them anew: a slot has another key now. */
static void set_places(struct ex_table *t)
{
	if (!t->place)
		return;
	memset(t->place, 0, (t->mask + 1u) * sizeof(*t->place));
	for (unsigned i = 0; i < t->n; i++)
		if (t->slot[i].tag != TAG_VACANT)
			set_place(t, i);
}

/* For a table that became longer. Without memory it is searched as a short one is. */
static void make_places(struct ex_table *t)
{
	unsigned n = 4 * FEW;

	if (t->room <= FEW)
		return;
	while (n < 4u * t->room)
		n *= 2;
	free(t->place);
	t->place = calloc(n, sizeof(*t->place));
	t->mask = (uint16_t)(n - 1);
	set_places(t);
}

struct ex_cell *ex_table_search(struct ex_table *t, uint64_t key, uint32_t tag)
{
	for (unsigned i = 0; i < t->n; i++) {
		struct ex_slot hit = t->slot[i];

		if (hit.key != key || hit.tag != tag)
			continue;
		if (i) {
			t->slot[i] = t->slot[i - 1];
			t->slot[i - 1] = hit;
		}
		return hit.cell;
	}
	return NULL;
}

/* ---- making and giving up ---- */

static void set_key(struct ex_cell *c, const struct ex_key *k)
{
	c->key = k->key;
	c->isa = k->isa;
	c->dir = k->dir;
	c->vm = NULL;
	c->idle = k->kind == KIND_VMEXIT && kvm_names_idle(k->isa, k->key);
}

static struct ex_cell *new_cell(const struct ex_key *k, bool other)
{
	struct ex_cell *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = k->kind;
	c->other = other;
	if (!other)
		set_key(c, k);
	return c;
}

static struct ex_cell *other_cell(struct ex_table *t, const struct ex_key *k)
{
	if (!t->other)
		t->other = new_cell(k, true);
	return t->other;
}

struct ex_cell *ex_set_other(struct ex_set *s, const struct ex_key *k)
{
	return other_cell(&s->kind[k->kind], k);
}

static int reserve(struct ex_table *t, unsigned max)
{
	unsigned room = t->room ? t->room * 2 : 4;
	struct ex_slot *s;

	if (t->n < t->room)
		return 0;
	room = room < max ? room : max;
	s = realloc(t->slot, room * sizeof(*s));
	if (!s)
		return -ENOMEM;
	t->slot = s;
	t->room = (uint16_t)room;
	make_places(t);
	return 0;
}

static struct ex_cell *take_vacant(struct ex_table *t, const struct ex_key *k)
{
	struct ex_slot *s = t->slot;

	while (s->tag != TAG_VACANT)
		s++;
	t->vacant--;
	set_key(s->cell, k);
	s->key = k->key;
	s->tag = ex_tag(k->isa, k->dir);
	set_places(t);
	return s->cell;
}

struct ex_cell *ex_table_make(struct ex_table *t, const struct ex_key *k, unsigned most)
{
	struct ex_cell *c;

	if (t->vacant)
		return take_vacant(t, k);
	if (t->n >= most || reserve(t, most))
		return other_cell(t, k);
	c = new_cell(k, false);
	if (!c)
		return other_cell(t, k);
	t->slot[t->n++] = (struct ex_slot){k->key, ex_tag(k->isa, k->dir), c};
	if (t->place)
		set_place(t, t->n - 1u);
	return c;
}

static void add_cell(struct ex_cell *into, const struct ex_cell *from)
{
	ex_acc_add(&into->now, &from->now);
	ex_acc_add(&into->total, &from->total);
	hist_merge(&into->now_hist, &from->now_hist);
	hist_merge(&into->total_hist, &from->total_hist);
}

static void free_cell(struct ex_cell *c)
{
	if (!c)
		return;
	hist_free(&c->now_hist);
	hist_free(&c->total_hist);
	free(c);
}

static void empty_cell(struct ex_cell *c)
{
	c->now = c->total = (struct ex_acc){0};
	hist_free(&c->now_hist);
	hist_free(&c->total_hist);
}

static unsigned least_busy(const struct ex_table *t)
{
	unsigned least = 0;

	for (unsigned i = 1; i < t->n; i++) {
		const struct ex_cell *a = t->slot[i].cell, *b = t->slot[least].cell;

		if (a->now.count < b->now.count ||
		    (a->now.count == b->now.count && a->total.count < b->total.count))
			least = i;
	}
	return least;
}

/*
 * The cell stays where it is, for an open pair or a vCPU's cell may point to it; they see by
 * .evicted or ex_vm.gen that it is no longer theirs. The next new key takes it over.
 */
static void give_up(struct ex_table *t, unsigned at)
{
	struct ex_cell *c = t->slot[at].cell;

	add_cell(t->other, c);
	empty_cell(c);
	c->evicted++;
	t->slot[at].tag = TAG_VACANT;
	t->vacant++;
}

bool ex_set_evict(struct ex_set *s)
{
	bool any = false;

	for (int k = 0; k < KIND_NR; k++) {
		struct ex_table *t = &s->kind[k];
		unsigned least;

		if (!t->other || !t->other->now.count || !t->n)
			continue;
		if (t->vacant)
			continue;
		least = least_busy(t);
		/* Many small keys are rightly in `other` together: only where they outweigh it. */
		if (t->slot[least].cell->now.count >= t->other->now.count / 4)
			continue;
		give_up(t, least);
		any = true;
	}
	return any;
}

static void next_cell(struct ex_cell *c, bool totals)
{
	if (!c->now.count && !c->now.timed)
		return;
	ex_acc_add(&c->total, &c->now);
	c->now = (struct ex_acc){0};
	if (totals)
		hist_merge(&c->total_hist, &c->now_hist);
	if (!c->now_hist.used)
		return;
	/* Octaves of this interval stay for the next one, others are given back. */
	hist_trim(&c->now_hist);
	hist_clear(&c->now_hist);
}

void ex_set_next(struct ex_set *s, bool totals)
{
	struct ex_cell *c;

	for (int k = 0; k < KIND_NR; k++)
		EX_EACH(&s->kind[k], c)
	next_cell(c, totals);
}

void ex_set_reset(struct ex_set *s)
{
	struct ex_cell *c;

	for (int k = 0; k < KIND_NR; k++) {
		EX_EACH(&s->kind[k], c)
		{
			c->total = (struct ex_acc){0};
			hist_free(&c->total_hist);
		}
	}
}

int ex_set_take(struct ex_set *into, struct ex_set *from, unsigned most,
		void (*spill)(void *ctx, const struct ex_cell *c), void *ctx)
{
	struct ex_cell *c, *to;
	int err = 0;

	for (int k = 0; k < KIND_NR; k++) {
		EX_EACH(&from->kind[k], c)
		{
			struct ex_key key = {c->key, c->isa, c->kind, c->dir};

			if (!c->now.count && !c->total.count && !c->now.timed && !c->total.timed)
				continue;
			to = c->other ? other_cell(&into->kind[k], &key)
				      : ex_set_get(into, &key, most);
			if (!to) {
				err = -ENOMEM;
				continue;
			}
			if (spill && to->other && !c->other)
				spill(ctx, c);
			add_cell(to, c);
			empty_cell(c);
		}
	}
	return err;
}

/* The cell of `into` for one of another set, looked up only where that is not known. */
static struct ex_cell *cell_above(struct ex_set *into, uint32_t gen, struct ex_cell *c,
				  unsigned most)
{
	const struct ex_key k = {c->key, c->isa, c->kind, c->dir};

	if (c->other)
		return other_cell(&into->kind[c->kind], &k);
	if (!c->vm || c->vm_gen != gen) {
		c->vm = ex_set_get(into, &k, most);
		c->vm_gen = gen;
	}
	return c->vm;
}

int ex_set_add_now(struct ex_set *into, uint32_t gen, struct ex_set *from, unsigned most)
{
	struct ex_cell *c, *to;
	int err = 0;

	for (int k = 0; k < KIND_NR; k++) {
		EX_EACH(&from->kind[k], c)
		{
			if (!c->now.count && !c->now.timed)
				continue;
			to = cell_above(into, gen, c, most);
			if (!to || hist_merge(&to->now_hist, &c->now_hist))
				err = -ENOMEM;
			if (to)
				ex_acc_add(&to->now, &c->now);
		}
	}
	return err;
}

void ex_set_free(struct ex_set *s)
{
	for (int k = 0; k < KIND_NR; k++) {
		struct ex_table *t = &s->kind[k];

		for (unsigned i = 0; i < t->n; i++)
			free_cell(t->slot[i].cell);
		free_cell(t->other);
		free(t->slot);
		free(t->place);
	}
	*s = (struct ex_set){0};
}
