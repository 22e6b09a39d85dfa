// SPDX-License-Identifier: GPL-2.0-only
/* Sums of tallies (store_tally.h). */
#include "store_tally.h"

#include <math.h>

#include "hist.h"

/* Sum of squared differences from the mean, which a tally has as its relative standard error. */
static double m2_of(const struct tally *t)
{
	double error = t->stderr_pct / 100 * t->avg_ns, n = (double)t->timed;

	return error * error * n * (n - 1);
}

static void add_spread(struct tally *into, const struct tally *from)
{
	double a = (double)into->timed, b = (double)from->timed, n = a + b;
	double d = from->avg_ns - into->avg_ns;
	double m2 = m2_of(into) + m2_of(from) + d * d * a * b / n;

	into->avg_ns = (into->avg_ns * a + from->avg_ns * b) / n;
	into->stderr_pct =
		n < 2 || into->avg_ns <= 0 ? 0 : sqrt(m2 / (n - 1) / n) / into->avg_ns * 100;
}

static struct value sum_of(struct value a, struct value b)
{
	if (!value_has(a))
		return b;
	if (value_has(b)) {
		a.v += b.v;
		if (b.state == VALUE_PARTIAL) {
			a.state = b.state;
			a.why = b.why;
		}
	}
	return a;
}

/* Half-way in the logarithm, by how many there are of each: what one has without a histogram. */
static uint64_t between(uint64_t a, uint64_t n, uint64_t b, uint64_t m)
{
	if (a == b || !a || !b || !n || !m)
		return a > b ? a : b;
	return (uint64_t)llround(
		exp((log((double)a) * (double)n + log((double)b) * (double)m) / (double)(n + m)));
}

void store_tally_add(struct tally *into, const struct tally *from)
{
	into->rate = sum_of(into->rate, from->rate);
	into->count_pct = sum_of(into->count_pct, from->count_pct);
	into->time_pct = sum_of(into->time_pct, from->time_pct);
	into->count += from->count;
	if (from->low)
		into->low = from->low;
	if (!from->timed)
		return;
	if (!into->timed) {
		into->min_ns = from->min_ns;
		into->pctl = from->pctl;
	}
	into->p50_ns = between(into->p50_ns, into->timed, from->p50_ns, from->timed);
	into->p99_ns = between(into->p99_ns, into->timed, from->p99_ns, from->timed);
	into->p999_ns = between(into->p999_ns, into->timed, from->p999_ns, from->timed);
	add_spread(into, from);
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	if (from->pctl > into->pctl)
		into->pctl = from->pctl;
	into->timed += from->timed;
	into->time_ns += from->time_ns;
}

void store_code_add(struct snap_code *into, const struct snap_code *from)
{
	into->count += from->count;
	if (from->low)
		into->low = from->low;
}

static uint64_t heat_quantile(const uint32_t *heat, double share)
{
	double all = 0, below = 0, want;

	for (unsigned b = 0; b < HEAT_BUCKETS; b++)
		all += heat[b];
	want = all * share;
	for (unsigned b = 0; b < HEAT_BUCKETS; b++) {
		double floor = (double)hist_heat_floor(b);

		if (!heat[b] || below + heat[b] < want) {
			below += heat[b];
			continue;
		}
		/* A bucket is half an octave; within it evenly in the logarithm. */
		return (uint64_t)llround(floor * pow(2, 0.5 * (want - below) / heat[b]));
	}
	return 0;
}

static uint64_t within(uint64_t v, uint64_t least, uint64_t most)
{
	return v < least ? least : v > most ? most : v;
}

void store_bounds_add(struct store_bounds *b, const struct tally *part)
{
	const uint64_t p[] = {part->p50_ns, part->p99_ns, part->p999_ns};

	if (!part->timed)
		return;
	for (int i = 0; i < 3; i++) {
		if (!b->any || p[i] < b->least[i])
			b->least[i] = p[i];
		if (p[i] > b->most[i])
			b->most[i] = p[i];
	}
	b->any = true;
}

void store_tally_percentiles(struct tally *sum, const uint32_t *heat, const struct store_bounds *b)
{
	if (!sum->timed || sum->pctl == PCTL_NONE)
		return;
	if (heat) {
		sum->p50_ns = heat_quantile(heat, 0.5);
		sum->p99_ns = heat_quantile(heat, 0.99);
		sum->p999_ns = heat_quantile(heat, 0.999);
	}
	sum->p50_ns = within(sum->p50_ns, b->least[0], b->most[0]);
	sum->p99_ns = within(sum->p99_ns, b->least[1], b->most[1]);
	sum->p999_ns = within(sum->p999_ns, b->least[2], b->most[2]);
}
