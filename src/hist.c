// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log-linear histogram of times, sparse.
 *
 * Octave 0 holds 0…31 ns, one step a nanosecond; octave o holds 2^(o+4) … 2^(o+5)-1
 * in 32 equal steps. The octaves in use stand side by side, found by counting
 * the bits below theirs in a mask: what never leaves two octaves pays for two.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
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

/* Counters of an octave side by side: a snapshot adds up some hundred thousand octaves. */
typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint64_t pair __attribute__((vector_size(16)));
#define QUADS (HIST_STEPS / 4)

static quad quad_at(const uint32_t *c, unsigned i)
{
	quad q;

	memcpy(&q, c + (size_t)i * 4, sizeof(q));
	return q;
}

static void saturate_octave(uint32_t *c, const uint32_t *n)
{
	for (unsigned i = 0; i < QUADS; i++) {
		quad add = quad_at(n, i), sum = quad_at(c, i) + add;

		sum |= (quad)(sum < add); /* wrapped: all bits */
		memcpy(c + (size_t)i * 4, &sum, sizeof(sum));
	}
}

static uint64_t octave_count(const uint32_t *c)
{
	const pair low = {UINT32_MAX, UINT32_MAX};
	quad any = {0}, sum = {0};
	pair n = {0, 0};

	for (unsigned i = 0; i < QUADS; i++) {
		quad four = quad_at(c, i);

		any |= four;
		sum += four;
	}
	/* As good as always: the sums of eight do not overflow. */
	if (!((any[0] | any[1] | any[2] | any[3]) >> 29))
		return (uint64_t)sum[0] + sum[1] + sum[2] + sum[3];
	for (unsigned i = 0; i < QUADS; i++) {
		pair two = (pair)quad_at(c, i);

		n += (two & low) + (two >> 32);
	}
	return n[0] + n[1];
}

/* A call that counts bits would have everything put aside that registers hold. */
static inline unsigned bits(uint64_t v)
{
	v -= v >> 1 & 0x5555555555555555;
	v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (unsigned)(v * 0x0101010101010101 >> 56);
}

/* How many octaves stand before this one. Often it is the first. */
static inline unsigned place_in(const struct hist *h, unsigned octave)
{
	uint64_t below = h->used & ((UINT64_C(1) << octave) - 1);

	return below ? bits(below) : 0;
}

static uint32_t *octave_make(struct hist *h, unsigned octave)
{
	uint64_t bit = UINT64_C(1) << octave;
	unsigned at = place_in(h, octave), n = (unsigned)__builtin_popcountll(h->used);
	uint32_t(*o)[HIST_STEPS];

	o = realloc(h->octave, (n + 1) * sizeof(*o));
	if (!o)
		return NULL;
	memmove(o + at + 1, o + at, (n - at) * sizeof(*o));
	memset(o + at, 0, sizeof(*o));
	h->octave = o;
	h->used |= bit;
	return o[at];
}

/* The counters of an octave, made at its first use; NULL: no memory. */
static inline uint32_t *octave_get(struct hist *h, unsigned octave)
{
	if (h->used & UINT64_C(1) << octave)
		return h->octave[place_in(h, octave)];
	return octave_make(h, octave);
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

int hist_add_few(struct hist *h, const uint32_t *few, unsigned n)
{
	unsigned found = HIST_OCTAVES; /* the octave that c is: mostly all are in one */
	uint32_t *c = NULL;
	int err = 0;

	for (unsigned i = 0; i < n && few[i]; i++) {
		unsigned place_of = few[i] >> 16, octave = place_of / HIST_STEPS;

		if (octave >= HIST_OCTAVES)
			continue;
		if (octave != found)
			c = octave_get(h, octave);
		found = octave;
		if (c)
			saturate(&c[place_of % HIST_STEPS], few[i] & 0xffff);
		else
			err = -ENOMEM;
	}
	return err;
}

static __attribute__((noinline)) int add_few_each(struct hist *h, struct hist *also,
						  const uint32_t *few, unsigned n)
{
	return hist_add_few(h, few, n) | hist_add_few(also, few, n);
}

/* Quick where all are in one octave that both have, as good as always. */
int hist_add_few_twice(struct hist *h, struct hist *also, const uint32_t *few, unsigned n)
{
	const uint32_t *end = few + n;
	uint32_t *c, *d, f = *few;
	unsigned octave = f >> 16 >> STEP_BITS;

	if (!octave || octave >= HIST_OCTAVES || !(h->used & also->used & UINT64_C(1) << octave))
		return add_few_each(h, also, few, n);
	c = h->octave[place_in(h, octave)];
	d = also->octave[place_in(also, octave)];
	do {
		unsigned step = f >> 16 & (HIST_STEPS - 1);

		saturate(&c[step], f & 0xffff);
		saturate(&d[step], f & 0xffff);
		f = ++few < end ? *few : 0;
	} while (f >> 16 >> STEP_BITS == octave);
	return f ? add_few_each(h, also, few, (unsigned)(end - few)) : 0;
}

/* Octave numbers of a used mask, lowest first. */
static unsigned take_octave(uint64_t *used)
{
	unsigned o = (unsigned)__builtin_ctzll(*used);

	*used &= *used - 1;
	return o;
}

/* Room for octaves that are not there yet, at once; from the last on they go to their places. */
static int make_octaves(struct hist *h, uint64_t more)
{
	uint64_t used = h->used, all = used | more;
	unsigned n = (unsigned)__builtin_popcountll(used), to = (unsigned)__builtin_popcountll(all);
	uint32_t(*o)[HIST_STEPS] = realloc(h->octave, to * sizeof(*o));

	if (!o)
		return -ENOMEM;
	h->octave = o;
	h->used = all;
	while (to > n) {
		unsigned last = msb(all);

		all &= ~(UINT64_C(1) << last);
		if (used & UINT64_C(1) << last)
			memcpy(o[--to], o[--n], sizeof(*o));
		else
			memset(o[--to], 0, sizeof(*o));
	}
	return 0;
}

int hist_merge(struct hist *into, const struct hist *from)
{
	uint64_t left = from->used;

	if (left & ~into->used && make_octaves(into, left))
		return -ENOMEM;
	for (unsigned i = 0; left; i++) {
		unsigned o = take_octave(&left);

		saturate_octave(into->octave[place_in(into, o)], from->octave[i]);
	}
	return 0;
}

void hist_clear(struct hist *h)
{
	if (h->used)
		memset(h->octave, 0, (size_t)__builtin_popcountll(h->used) * sizeof(*h->octave));
}

static bool octave_empty(const uint32_t *c)
{
	uint32_t any = 0;

	for (unsigned s = 0; s < HIST_STEPS; s++)
		any |= c[s];
	return !any;
}

/* An outlier of an hour ago must not be paid for until the end. */
void hist_trim(struct hist *h)
{
	uint64_t used = h->used, keep = 0;
	unsigned n = 0;

	for (unsigned i = 0; used; i++) {
		unsigned o = take_octave(&used);

		if (octave_empty(h->octave[i]))
			continue;
		if (n != i)
			memcpy(h->octave[n], h->octave[i], sizeof(*h->octave));
		keep |= UINT64_C(1) << o;
		n++;
	}
	if (keep == h->used)
		return;
	h->used = keep;
	if (!n) {
		free(h->octave);
		h->octave = NULL;
		return;
	}
	void *less = realloc(h->octave, n * sizeof(*h->octave));

	if (less)
		h->octave = less;
}

void hist_free(struct hist *h)
{
	if (!h)
		return;
	free(h->octave);
	*h = (struct hist){0};
}

uint64_t hist_count(const struct hist *h)
{
	unsigned octaves = (unsigned)__builtin_popcountll(h->used);
	uint64_t n = 0;

	for (unsigned i = 0; i < octaves; i++)
		n += octave_count(h->octave[i]);
	return n;
}

unsigned hist_step(uint64_t ns)
{
	unsigned octave, step;

	place(ns, &octave, &step);
	return octave * HIST_STEPS + step;
}

uint64_t hist_step_middle(unsigned step)
{
	unsigned octave = step / HIST_STEPS;

	if (octave >= HIST_OCTAVES)
		octave = HIST_OCTAVES - 1;
	return step_floor(octave, step % HIST_STEPS) + step_width(octave) / 2;
}

static uint64_t rank_of(double share, uint64_t n)
{
	uint64_t rank;

	share = share > 0 ? share : 0; /* NaN too */
	rank = share >= 1 ? n : (uint64_t)ceil(share * (double)n);
	return !rank ? 1 : rank > n ? n : rank;
}

/* An octave of two histograms: the counters of the one that has it, or their sum in *room. */
static const uint32_t *octave_of_both(const struct hist *a, const struct hist *b, unsigned octave,
				      uint32_t room[HIST_STEPS])
{
	uint64_t bit = UINT64_C(1) << octave;

	if (!(b->used & bit))
		return a->octave[place_in(a, octave)];
	if (!(a->used & bit))
		return b->octave[place_in(b, octave)];
	memcpy(room, a->octave[place_in(a, octave)], sizeof(*a->octave));
	saturate_octave(room, b->octave[place_in(b, octave)]);
	return room;
}

uint64_t hist_quantiles_of_both(const struct hist *a, const struct hist *b, const double *share,
				uint64_t *out, unsigned n)
{
	uint32_t room[HIST_STEPS];
	uint64_t all[HIST_OCTAVES], count = 0, seen = 0, rank, used = a->used | b->used;
	unsigned next = 0, octaves = 0;

	while (used)
		count += all[octaves++] =
			octave_count(octave_of_both(a, b, take_octave(&used), room));
	if (!count)
		memset(out, 0, n * sizeof(*out));
	rank = n ? rank_of(share[0], count) : 0;
	used = a->used | b->used;
	for (unsigned i = 0; count && i < octaves && next < n; i++) {
		unsigned o = take_octave(&used);
		const uint32_t *c;

		if (seen + all[i] < rank) {
			seen += all[i];
			continue;
		}
		c = octave_of_both(a, b, o, room);
		for (unsigned s = 0; s < HIST_STEPS && next < n; s++) {
			seen += c[s];
			while (next < n && seen >= rank) {
				out[next++] = step_floor(o, s) + step_width(o) / 2;
				rank = next < n ? rank_of(share[next], count) : 0;
			}
		}
	}
	return count;
}

uint64_t hist_quantiles(const struct hist *h, const double *share, uint64_t *out, unsigned n)
{
	static const struct hist none;

	return hist_quantiles_of_both(h, &none, share, out, n);
}

uint64_t hist_quantile(const struct hist *h, double share)
{
	uint64_t out = 0;

	hist_quantiles(h, &share, &out, 1);
	return out;
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

unsigned hist_heat_bucket(uint64_t ns)
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
	uint64_t used = h->used;

	for (unsigned i = 0; used; i++) {
		unsigned o = take_octave(&used);

		for (unsigned s = 0; s < HIST_STEPS; s++)
			if (h->octave[i][s])
				saturate(&heat[hist_heat_bucket(step_floor(o, s))],
					 h->octave[i][s]);
	}
}
