// SPDX-License-Identifier: GPL-2.0-only
/* A bounded table of samples by key (symset.h). */
#include "symset.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8
#define SCORE_ONE 16 /* of a sample; halved each interval */
#define SCORE_MAX (UINT32_MAX / 4)

static struct sym_cell *grow(struct sym_set *s, unsigned keep)
{
	unsigned limit = keep * SYM_TOLD;
	unsigned room = s->room ? s->room * 2 : FIRST_ROOM;
	struct sym_cell *cell;

	if (s->n < s->room && s->n < limit)
		return &s->cell[s->n++];
	if (s->n >= limit)
		return NULL;
	room = room < limit ? room : limit;
	cell = reallocarray(s->cell, room, sizeof(*cell));
	if (!cell)
		return NULL;
	s->cell = cell;
	s->room = room;
	return &s->cell[s->n++];
}

/* Most keys are where they were: only others are searched for. */
static struct sym_cell *find(struct sym_set *s, const struct symbol_key *k)
{
	uint8_t *hint = &s->hint[symbol_key_hash(k) % SYM_HINTS];

	if (*hint < s->n && symbol_key_equal(&s->cell[*hint].key, k))
		return &s->cell[*hint];
	for (unsigned i = 0; i < s->n; i++) {
		if (!symbol_key_equal(&s->cell[i].key, k))
			continue;
		*hint = (uint8_t)i; /* of one farther behind it says nothing, and does no harm */
		return &s->cell[i];
	}
	return NULL;
}

void sym_set_add(struct sym_set *s, const struct symbol_key *k, uint32_t n, bool guessed,
		 unsigned keep)
{
	struct sym_cell *c = find(s, k);

	s->now[k->domain] += n;
	if (!c) {
		c = grow(s, keep);
		if (!c) {
			s->other_now += n;
			return;
		}
		*c = (struct sym_cell){.key = *k};
	}
	c->now += n;
	c->guessed |= guessed;
}

static struct sym_caller *caller_of(struct sym_callers *c, const struct symbol_key *k)
{
	struct sym_caller *least = NULL;

	for (unsigned i = 0; i < c->n; i++) {
		struct sym_caller *x = &c->caller[i];

		if (symbol_key_equal(&x->key, k))
			return x;
		if (!x->now && (!least || x->score < least->score))
			least = x;
	}
	if (c->n < SYM_CALLERS)
		least = &c->caller[c->n++];
	if (least) /* else each has called in this interval */
		*least = (struct sym_caller){.key = *k};
	return least;
}

void sym_set_called(struct sym_set *s, const struct symbol_key *k, const struct symbol_key *caller,
		    uint32_t n)
{
	struct sym_cell *cell = find(s, k);
	struct sym_caller *x;

	if (!cell) /* it counts as `other` */
		return;
	if (!cell->callers)
		cell->callers = calloc(1, sizeof(*cell->callers));
	x = cell->callers ? caller_of(cell->callers, caller) : NULL;
	if (x)
		x->now += n;
}

static int by_calls(const void *a, const void *b)
{
	const struct sym_caller *x = a, *y = b;

	if (x->now != y->now)
		return x->now < y->now ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

unsigned sym_cell_callers(const struct sym_cell *c, const struct sym_caller **out)
{
	struct sym_callers *x = c->callers;

	if (!x)
		return 0;
	qsort(x->caller, x->n, sizeof(x->caller[0]), by_calls);
	*out = x->caller;
	return x->n;
}

uint64_t sym_set_now(const struct sym_set *s)
{
	uint64_t n = 0;

	for (int d = 0; d < DOMAIN_NR; d++)
		n += s->now[d];
	return n;
}

uint64_t sym_set_total(const struct sym_set *s)
{
	uint64_t n = sym_set_now(s);

	for (int d = 0; d < DOMAIN_NR; d++)
		n += s->total[d];
	return n;
}

const struct sym_cell *sym_set_top(const struct sym_set *s)
{
	const struct sym_cell *top = NULL;

	for (unsigned i = 0; i < s->n; i++)
		if (s->cell[i].now && (!top || s->cell[i].now > top->now))
			top = &s->cell[i];
	return top && top->now < s->other_now ? NULL : top;
}

static int by_score(const void *a, const void *b)
{
	const struct sym_cell *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static int by_now(const void *a, const void *b)
{
	const struct sym_cell *x = a, *y = b;

	if (x->now != y->now)
		return x->now < y->now ? 1 : -1;
	return by_score(a, b);
}

void sym_set_sort(struct sym_set *s)
{
	if (s->n > 1)
		qsort(s->cell, s->n, sizeof(s->cell[0]), by_now);
}

static void make_room(struct sym_set *s, unsigned keep)
{
	if (s->n <= keep)
		return;
	qsort(s->cell, s->n, sizeof(s->cell[0]), by_score);
	for (unsigned i = keep; i < s->n; i++) {
		s->other_total += s->cell[i].total;
		free(s->cell[i].callers);
	}
	s->n = keep;
}

static uint32_t next_score(uint32_t score, uint32_t now)
{
	return score / 2 + (now < SCORE_MAX / SCORE_ONE ? now * SCORE_ONE : SCORE_MAX);
}

static void next_callers(struct sym_callers *c)
{
	for (unsigned i = 0; c && i < c->n; i++) {
		struct sym_caller *x = &c->caller[i];

		x->score = next_score(x->score, x->now);
		x->total += x->now;
		x->now = 0;
	}
}

void sym_set_next(struct sym_set *s, unsigned keep)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct sym_cell *c = &s->cell[i];

		next_callers(c->callers);
		c->score = next_score(c->score, c->now);
		c->total += c->now;
		c->now = 0;
		c->guessed = false; /* its symbols may have come meanwhile */
	}
	for (int d = 0; d < DOMAIN_NR; d++) {
		s->total[d] += s->now[d];
		s->now[d] = 0;
	}
	s->other_total += s->other_now;
	s->other_now = 0;
	make_room(s, keep);
}

void sym_set_reset(struct sym_set *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct sym_callers *c = s->cell[i].callers;

		s->cell[i].total = 0;
		for (unsigned j = 0; c && j < c->n; j++)
			c->caller[j].total = 0;
	}
	memset(s->total, 0, sizeof(s->total));
	s->other_total = 0;
}

void sym_set_free(struct sym_set *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->cell[i].callers);
	free(s->cell);
	*s = (struct sym_set){0};
}
