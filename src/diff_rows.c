// SPDX-License-Identifier: GPL-2.0-only
/* The rows of a comparison: figures of both sides, their difference and its noise (diff.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"

/* Draws: as many as tell a tail of half a percent, fewer where there are many thousand rows. */
#define RESAMPLES 1000u
#define RESAMPLES_LEAST 250u
#define DRAWS_MOST 5000000u
/* What is less than this of a vCPU's time, or a thousandth of an event a second, nobody acts on. */
#define LEAST 0.001

/* Everything that is needed of one side for one row. */
struct part {
	const struct diff_series *sum, *time, *total;
};

static unsigned time_kind(const struct diff_series *s)
{
	switch (s->what) {
	case DIFF_EXITS:
	case DIFF_EXIT_TIME:
		return s->kind;
	case DIFF_SYMBOLS:
		return DIFF_TIME_SAMPLES;
	case DIFF_WAITED:
		return DIFF_TIME_WAITED;
	case DIFF_WAKES:
		return DIFF_TIME_WAKES + s->kind;
	default:
		return DIFF_TIME_USE + s->kind;
	}
}

static int total_kind(const struct diff_series *s)
{
	switch (s->what) {
	case DIFF_EXITS:
		return s->kind;
	case DIFF_EXIT_TIME:
		return DIFF_TOTAL_TIME + s->kind;
	case DIFF_SYMBOLS:
		return DIFF_TOTAL_SAMPLES;
	case DIFF_WAITED:
		return DIFF_TOTAL_WAITED;
	default:
		return -1;
	}
}

static struct part part_of(const struct diff_side *side, uint32_t vm, const struct diff_series *s)
{
	struct diff_series key = *s;
	int total = total_kind(s);
	struct part p = {0};

	key.vm = vm;
	p.sum = diff_find(side, &key);
	key.name = key.module = "";
	key.what = DIFF_TIME;
	key.kind = (uint8_t)time_kind(s);
	p.time = diff_find(side, &key);
	if (total >= 0) {
		key.what = DIFF_TOTAL;
		key.kind = (uint8_t)total;
		p.total = diff_find(side, &key);
	}
	return p;
}

/* What is counted and was not there happened 0 times; what is a figure is not known then. */
static bool value_of(const struct part *p, double *v, double *share)
{
	double sum = p->sum ? p->sum->sum : 0;

	*v = 0;
	*share = p->total && p->total->sum > 0 ? 100 * sum / p->total->sum : -1;
	if (!p->time || !(p->time->sum > 0))
		return false;
	*v = sum / p->time->sum;
	return true;
}

static struct diff_sample sample_of(const struct part *p, unsigned n)
{
	return (struct diff_sample){.sum = p->sum ? p->sum->block : NULL,
				    .time = p->time ? p->time->block : NULL,
				    .n = n};
}

static void take_row(struct diff *d, struct diff_noise *noise, uint32_t pair,
		     const struct diff_series *s)
{
	uint32_t a_vm = pair == DIFF_HOST ? pair : d->pair[pair].a;
	uint32_t b_vm = pair == DIFF_HOST ? pair : d->pair[pair].b;
	struct part a = part_of(&d->side[0], a_vm, s), b = part_of(&d->side[1], b_vm, s);
	struct diff_row *r = &d->row[d->nrows++];

	*r = (struct diff_row){.pair = pair,
			       .what = s->what,
			       .kind = s->kind,
			       .name = s->name,
			       .module = s->module};
	r->a_known = value_of(&a, &r->a, &r->share_a);
	r->b_known = value_of(&b, &r->b, &r->share_b);
	if (!noise || !r->a_known || !r->b_known)
		return;
	if (r->a != r->b) {
		struct diff_sample sa = sample_of(&a, d->side[0].nblocks);
		struct diff_sample sb = sample_of(&b, d->side[1].nblocks);

		diff_noise_between(noise, &sa, &sb, &r->low, &r->high);
	}
	r->tested = true;
	r->sure = (r->low > 0 || r->high < 0) && fabs(r->b - r->a) >= LEAST;
}

/* Of the host too, which is on both sides. */
static int64_t pair_of(const struct diff *d, int side, uint32_t vm)
{
	return vm == DIFF_HOST ? DIFF_HOST : diff_pair_of(d, side, vm);
}

/* All figures of A, and those of B that A has not. */
static void take_side(struct diff *d, int side, struct diff_noise *noise)
{
	const struct diff_side *s = &d->side[side];

	for (size_t i = 0; i < s->nseries; i++) {
		const struct diff_series *one = &s->series[i];
		int64_t pair = one->what < DIFF_SHOWN ? pair_of(d, side, one->vm) : -1;
		struct diff_series key = *one;

		if (pair < 0)
			continue;
		if (side) {
			key.vm = pair == DIFF_HOST ? DIFF_HOST : d->pair[pair].a;
			if (diff_find(&d->side[0], &key))
				continue;
		}
		take_row(d, noise, (uint32_t)pair, one);
	}
}

static int compare(double a, double b)
{
	return (a > b) - (a < b);
}

/* What does not differ otherwise is in the order of names: the same in each run. */
static int by_change(const void *x, const void *y)
{
	const struct diff_row *a = x, *b = y;
	bool a_both = a->a_known && a->b_known, b_both = b->a_known && b->b_known;
	int c;

	if (a->what != b->what)
		return a->what - b->what;
	if (a_both != b_both)
		return b_both - a_both;
	if (a->sure != b->sure)
		return b->sure - a->sure;
	c = compare(fabs(b->b - b->a), fabs(a->b - a->a));
	if (!c)
		c = compare(b->a, a->a);
	if (!c)
		c = (a->pair > b->pair) - (a->pair < b->pair);
	if (!c)
		c = a->kind - b->kind;
	if (!c)
		c = strcmp(a->name, b->name);
	return c ? c : strcmp(a->module, b->module);
}

int diff_compare(struct diff *d)
{
	size_t most = d->side[0].nseries + d->side[1].nseries;
	unsigned na = d->side[0].nblocks, nb = d->side[1].nblocks, resamples = RESAMPLES;
	struct diff_noise *noise = NULL;

	d->row = calloc(most + 1, sizeof(*d->row));
	if (!d->row)
		return -ENOMEM;
	if ((uint64_t)most * resamples > DRAWS_MOST)
		resamples = DRAWS_MOST / (unsigned)most;
	if (resamples < RESAMPLES_LEAST)
		resamples = RESAMPLES_LEAST;
	if (na >= DIFF_BLOCKS_LEAST && nb >= DIFF_BLOCKS_LEAST) {
		noise = diff_noise_new(resamples, na, nb);
		if (!noise)
			return -ENOMEM;
	}
	take_side(d, 0, noise);
	take_side(d, 1, noise);
	diff_noise_free(noise);
	qsort(d->row, d->nrows, sizeof(*d->row), by_change);
	return 0;
}

void diff_free(struct diff *d)
{
	diff_side_free(&d->side[0]);
	diff_side_free(&d->side[1]);
	free(d->pair);
	free(d->row);
	*d = (struct diff){0};
}
