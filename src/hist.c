// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log-linear histogram of times, sparse.
 *
 * Octave 0 holds 0…31 ns, one step a nanosecond; octave o holds 2^(o+4) … 2^(o+5)-1
 * in 32 equal steps. A thread that never leaves two octaves pays for two.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "snapshot.h"

#define STEP_BITS 5
#define LINEAR (1u << STEP_BITS) /* below this one step is one ns */

_Static_assert(HIST_STEPS == LINEAR, "the first octave is linear: one step a nanosecond");

static unsigned msb(uint64_t v)
{
	return 63u - (unsigned)__builtin_clzll(v);
}

static void place(uint64_t ns, unsigned *octave, unsigned *step)
{
	unsigned bit;

	if (ns < LINEAR) {
		*octave = 0;
		*step = (unsigned)ns;
		return;
	}
	bit = msb(ns);
	if (bit - STEP_BITS + 1 >= HIST_OCTAVES) {
		*octave = HIST_OCTAVES - 1;
		*step = HIST_STEPS - 1;
		return;
	}
	*octave = bit - STEP_BITS + 1;
	*step = (unsigned)(ns >> (bit - STEP_BITS)) & (HIST_STEPS - 1);
}

static uint64_t step_width(unsigned octave)
{
	return octave ? 1ULL << (octave - 1) : 1;
}

static uint64_t step_floor(unsigned octave, unsigned step)
{
	if (!octave)
		return step;
	return (HIST_STEPS + (uint64_t)step) * step_width(octave);
}

static void saturate(uint32_t *c, uint32_t n)
{
	if (__builtin_add_overflow(*c, n, c))
		*c = UINT32_MAX;
}

static uint32_t *octave_get(struct hist *h, unsigned octave)
{
	if (!h->octave[octave])
		h->octave[octave] = calloc(HIST_STEPS, sizeof(uint32_t));
	return h->octave[octave];
}

int hist_add(struct hist *h, uint64_t ns, uint32_t n)
{
	unsigned octave, step;
	uint32_t *c;

	place(ns, &octave, &step);
	c = octave_get(h, octave);
	if (!c)
		return -ENOMEM;
	saturate(&c[step], n);
	return 0;
}

int hist_merge(struct hist *into, const struct hist *from)
{
	int err = 0;

	for (unsigned o = 0; o < HIST_OCTAVES; o++) {
		uint32_t *c;

		if (!from->octave[o])
			continue;
		c = octave_get(into, o);
		if (!c) {
			err = -ENOMEM;
			continue;
		}
		for (unsigned s = 0; s < HIST_STEPS; s++)
			saturate(&c[s], from->octave[o][s]);
	}
	return err;
}

void hist_clear(struct hist *h)
{
	for (unsigned o = 0; o < HIST_OCTAVES; o++)
		if (h->octave[o])
			memset(h->octave[o], 0, HIST_STEPS * sizeof(uint32_t));
}

void hist_free(struct hist *h)
{
	if (!h)
		return;
	for (unsigned o = 0; o < HIST_OCTAVES; o++) {
		free(h->octave[o]);
		h->octave[o] = NULL;
	}
}

uint64_t hist_count(const struct hist *h)
{
	uint64_t n = 0;

	for (unsigned o = 0; o < HIST_OCTAVES; o++)
		for (unsigned s = 0; h->octave[o] && s < HIST_STEPS; s++)
			n += h->octave[o][s];
	return n;
}

uint64_t hist_quantile(const struct hist *h, double share)
{
	uint64_t n = hist_count(h), rank, seen = 0;

	if (!n)
		return 0;
	share = share > 0 ? share : 0; /* NaN too */
	rank = share >= 1 ? n : (uint64_t)ceil(share * (double)n);
	if (!rank)
		rank = 1;
	if (rank > n)
		rank = n;
	for (unsigned o = 0; o < HIST_OCTAVES; o++) {
		for (unsigned s = 0; h->octave[o] && s < HIST_STEPS; s++) {
			seen += h->octave[o][s];
			if (seen >= rank)
				return step_floor(o, s) + step_width(o) / 2;
		}
	}
	return 0;
}

/*
 * Half octaves meet at 1.40625 = 45/32 (√2 is 1.414): a border of the steps, so that
 * no step of an octave has to be split between two buckets.
 */
uint64_t hist_heat_floor(unsigned bucket)
{
	uint64_t base = 1ULL << (4 + bucket / 2);

	return bucket & 1 ? base * 45 / 32 : base;
}

static unsigned heat_bucket(uint64_t ns)
{
	unsigned b;

	if (ns < hist_heat_floor(0))
		return 0;
	b = 2 * (msb(ns) - 4);
	if (b >= HEAT_BUCKETS)
		return HEAT_BUCKETS - 1;
	if (ns >= hist_heat_floor(b + 1))
		b++;
	return b;
}

void hist_heat(const struct hist *h, uint32_t *heat)
{
	for (unsigned o = 0; o < HIST_OCTAVES; o++)
		for (unsigned s = 0; h->octave[o] && s < HIST_STEPS; s++)
			if (h->octave[o][s])
				saturate(&heat[heat_bucket(step_floor(o, s))], h->octave[o][s]);
}
