// SPDX-License-Identifier: GPL-2.0-only
/* Exits by the guest code that makes them (exits_code.h). */
#include "exits_code.h"

#include <stdlib.h>
#include <string.h>

static unsigned place_of(uint32_t isa, uint64_t key, uint64_t rip)
{
	uint64_t h = (rip ^ key << 40 ^ isa) * 0x9e3779b97f4a7c15u;

	return (unsigned)(h >> 32) & (EX_CODE_PLACES - 1);
}

static bool is_free(const struct ex_code_cell *c)
{
	return !c->now && !c->total;
}

/* The pair's place, or the free one where it would be. There always is a free one. */
static struct ex_code_cell *find(struct ex_code *c, uint32_t isa, uint64_t key, uint64_t rip)
{
	for (unsigned i = place_of(isa, key, rip);; i = (i + 1) & (EX_CODE_PLACES - 1)) {
		struct ex_code_cell *x = &c->cell[i];

		if (is_free(x) || (x->rip == rip && x->key == key && x->isa == isa))
			return x;
	}
}

void ex_code_add(struct ex_code *c, uint32_t isa, uint64_t key, uint64_t rip)
{
	struct ex_code_cell *x = find(c, isa, key, rip);

	if (is_free(x)) {
		if (c->n == EX_CODE_MOST) {
			c->missed++;
			return;
		}
		c->n++;
		x->isa = isa;
		x->key = key;
		x->rip = rip;
	}
	x->now++;
}

static int by_now(const void *a, const void *b)
{
	const struct ex_code_cell *x = a, *y = b;

	if (x->now != y->now)
		return x->now < y->now ? 1 : -1;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

/* Puts cells into an empty table; counts what is left out as missed. */
static void put_back(struct ex_code *c, const struct ex_code_cell *cell, unsigned n, unsigned keep)
{
	for (unsigned i = 0; i < n; i++) {
		struct ex_code_cell *x;

		if (i >= keep || is_free(&cell[i])) {
			c->missed_total += cell[i].total;
			continue;
		}
		x = find(c, cell[i].isa, cell[i].key, cell[i].rip);
		*x = cell[i];
		c->n++;
	}
}

void ex_code_next(struct ex_code *c)
{
	struct ex_code_cell old[EX_CODE_PLACES];
	bool full = c->missed > 0;

	c->lost_before |= c->lost;
	c->lost = false;
	memcpy(old, c->cell, sizeof(old));
	qsort(old, EX_CODE_PLACES, sizeof(old[0]), by_now);
	for (unsigned i = 0; i < EX_CODE_PLACES; i++) {
		old[i].total += old[i].now;
		old[i].now = 0;
	}
	c->missed_total += c->missed;
	c->missed = 0;
	if (!full) { /* the same cells at the same places: only the counts change */
		for (unsigned i = 0; i < EX_CODE_PLACES; i++) {
			c->cell[i].total += c->cell[i].now;
			c->cell[i].now = 0;
		}
		return;
	}
	memset(c->cell, 0, sizeof(c->cell));
	c->n = 0;
	put_back(c, old, EX_CODE_PLACES, EX_CODE_MOST / 2);
}

/* A pair that was not seen in this interval either is none any more. */
void ex_code_reset(struct ex_code *c)
{
	struct ex_code_cell old[EX_CODE_PLACES];

	memcpy(old, c->cell, sizeof(old));
	memset(c->cell, 0, sizeof(c->cell));
	c->n = 0;
	for (unsigned i = 0; i < EX_CODE_PLACES; i++)
		old[i].total = 0;
	put_back(c, old, EX_CODE_PLACES, EX_CODE_PLACES);
	c->missed_total = 0;
	c->lost_before = false;
}
