// SPDX-License-Identifier: GPL-2.0-only
/*
 * The noise of a difference by the bootstrap (diff.h): blocks are drawn anew with replacement, over
 * and over, and the difference is taken of each such draw.
 *
 * The draws are the same for all figures and in each run: what is printed can be compared. With few
 * blocks the draws vary less than the truth does, so their range is stretched as Student's t would
 * stretch it.
 */
#include <math.h>
#include <stdlib.h>

#include "diff.h"

#define Z 2.5758293035489 /* 99 % of a normal distribution lie within ± this */
#define TAIL 0.005

struct diff_noise {
	unsigned resamples, n[2];
	uint8_t *pick[2]; /* resamples × n: which blocks */
	double *diff;
};

/* xorshift64*: no library's generator is promised to stay the same. */
static uint32_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1dull >> 32);
}

struct diff_noise *diff_noise_new(unsigned resamples, unsigned na, unsigned nb)
{
	struct diff_noise *z = calloc(1, sizeof(*z));
	uint64_t state = 0x6b766d746f70ull;

	if (!z)
		return NULL;
	*z = (struct diff_noise){.resamples = resamples, .n = {na, nb}};
	z->diff = calloc(resamples, sizeof(*z->diff));
	for (int side = 0; side < 2; side++) {
		size_t n = (size_t)resamples * z->n[side];

		z->pick[side] = malloc(n ? n : 1);
		if (!z->diff || !z->pick[side]) {
			diff_noise_free(z);
			return NULL;
		}
		for (size_t i = 0; i < n; i++)
			z->pick[side][i] = (uint8_t)((uint64_t)draw(&state) * z->n[side] >> 32);
	}
	return z;
}

void diff_noise_free(struct diff_noise *z)
{
	if (!z)
		return;
	free(z->pick[0]);
	free(z->pick[1]);
	free(z->diff);
	free(z);
}

static double ratio_of(const struct diff_sample *s, const uint8_t *pick)
{
	double sum = 0, time = 0;

	if (!s->sum || !s->time)
		return 0;
	for (unsigned i = 0; i < s->n; i++) {
		unsigned at = pick ? pick[i] : i;

		sum += s->sum[at];
		time += s->time[at];
	}
	return time > 0 ? sum / time : 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Student's t for Z with this many degrees of freedom (the series of Cornish and Fisher). */
static double student(double df)
{
	double z3 = Z * Z * Z, z5 = z3 * Z * Z, z7 = z5 * Z * Z;

	return Z + (z3 + Z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * Z) / (96 * df * df) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * Z) / (384 * df * df * df);
}

static double stretch_of(unsigned n)
{
	double df = n > 1 ? n - 1.0 : 1;

	return student(df) / Z * sqrt((df + 1) / df);
}

void diff_noise_between(struct diff_noise *z, const struct diff_sample *a,
			const struct diff_sample *b, double *low, double *high)
{
	double change = ratio_of(b, NULL) - ratio_of(a, NULL);
	double stretch = stretch_of(a->n < b->n ? a->n : b->n);
	unsigned tail = (unsigned)(z->resamples * TAIL);

	for (unsigned r = 0; r < z->resamples; r++)
		z->diff[r] = ratio_of(b, z->pick[1] + (size_t)r * z->n[1]) -
			     ratio_of(a, z->pick[0] + (size_t)r * z->n[0]);
	qsort(z->diff, z->resamples, sizeof(*z->diff), by_size);
	*low = change + (z->diff[tail] - change) * stretch;
	*high = change + (z->diff[z->resamples - 1 - tail] - change) * stretch;
}
