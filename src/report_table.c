// SPDX-License-Identifier: GPL-2.0-only
/* The rows of a report (report.h) and their sums. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static size_t hash_of(const struct report_key *k)
{
	uint64_t h = k->key * UINT64_C(0x9e3779b97f4a7c15);

	h ^= (uint64_t)k->isa << 24 ^ (uint64_t)k->kind << 16 ^ (uint64_t)k->dir << 8 ^ k->cause;
	h *= UINT64_C(0xff51afd7ed558ccd);
	return (size_t)(h >> 32);
}

static bool same(const struct report_key *a, const struct report_key *b)
{
	return a->key == b->key && a->isa == b->isa && a->kind == b->kind && a->dir == b->dir &&
	       a->cause == b->cause;
}

/* Where the key is, or where it would be put. */
static size_t slot_of(const struct report_table *t, const struct report_key *k)
{
	size_t i = hash_of(k) & (t->nslots - 1);

	while (t->slot[i] && !same(&t->row[t->slot[i] - 1]->k, k))
		i = (i + 1) & (t->nslots - 1);
	return i;
}

static bool make_room(struct report_table *t)
{
	size_t n = t->nslots ? t->nslots * 2 : 64;
	uint32_t *old = t->slot;

	if (t->n == t->room) {
		void *more = reallocarray(t->row, n / 2, sizeof(struct report_row *));

		if (!more)
			return false;
		t->row = more;
		t->room = n / 2;
	}
	if (t->n * 2 < t->nslots)
		return true;
	t->slot = calloc(n, sizeof(*t->slot));
	if (!t->slot) {
		t->slot = old;
		return false;
	}
	t->nslots = n;
	free(old);
	for (size_t i = 0; i < t->n; i++)
		t->slot[slot_of(t, &t->row[i]->k)] = (uint32_t)i + 1;
	return true;
}

struct report_row *report_row_get(struct report_table *t, const struct report_key *k)
{
	struct report_row *r;
	size_t i;

	if (t->nslots) {
		i = slot_of(t, k);
		if (t->slot[i])
			return t->row[t->slot[i] - 1];
	}
	if (!make_room(t))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->k = *k;
	t->slot[slot_of(t, k)] = (uint32_t)t->n + 1;
	t->row[t->n++] = r;
	return r;
}

#define SQUARE_MOST (UINT64_C(1) << 47) /* ns, 39 hours: 2^34 of them have room */

void report_row_add(struct report_row *r, uint64_t ns)
{
	uint64_t t = ns < SQUARE_MOST ? ns : SQUARE_MOST;

	if (!r->timed || ns < r->min_ns)
		r->min_ns = ns;
	if (ns > r->max_ns)
		r->max_ns = ns;
	r->timed++;
	r->time_ns += ns;
	r->squares += (unsigned __int128)t * t;
}

void report_row_add_as_perf(struct report_row *r, uint64_t ns)
{
	double t = (double)ns, delta = t - r->mean;

	report_row_add(r, ns);
	r->mean += delta / (double)r->timed;
	r->m2 += delta * (t - r->mean);
}

double report_stderr_pct(const struct report_row *r)
{
	long double n = r->timed, sum = r->time_ns, m2;

	if (r->timed < 2 || !r->time_ns)
		return 0;
	m2 = (long double)r->squares - sum * sum / n;
	return m2 > 0 ? (double)(100 * sqrtl(m2 / (n - 1) / n) / (sum / n)) : 0;
}

double report_stderr_pct_as_perf(const struct report_row *r)
{
	double n = (double)r->timed;

	if (r->timed < 2 || r->mean == 0)
		return 0;
	return 100.0 * sqrt(r->m2 / (n - 1) / n) / r->mean;
}

void report_table_free(struct report_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		hist_free(&t->row[i]->hist);
		free(t->row[i]);
	}
	free(t->row);
	free(t->slot);
	*t = (struct report_table){0};
}
