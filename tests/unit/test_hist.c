// SPDX-License-Identifier: GPL-2.0-only
/* The histogram against exact quantiles of the same values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hist.h"
#include "snapshot.h"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 11;
}

static uint64_t exact_quantile(const uint64_t *sorted, size_t n, double share)
{
	size_t rank = (size_t)ceil(share * (double)n);

	return sorted[rank ? rank - 1 : 0];
}

/* Log-uniform from 1 ns to some hours, as exit times are. */
static void quantiles_are_within_a_step(void **state)
{
	enum { N = 20000 };
	static const double shares[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999, 1};
	uint64_t *v = calloc(N, sizeof(*v)), seed = 42;
	struct hist h = {0};

	(void)state;
	for (size_t i = 0; i < N; i++) {
		v[i] = (uint64_t)exp2((double)next_random(&seed) / (double)(1ULL << 53) * 43);
		assert_int_equal(hist_add(&h, v[i], 1), 0);
	}
	qsort(v, N, sizeof(*v), by_value);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double exact = (double)exact_quantile(v, N, shares[i]);
		double got = (double)hist_quantile(&h, shares[i]);

		assert_true(fabs(got - exact) <= exact / 32);
	}
	assert_int_equal(hist_count(&h), N);
	hist_free(&h);
	free(v);
}

static void small_values_are_exact(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < 64; ns++) {
		struct hist h = {0};

		hist_add(&h, ns, 3);
		assert_int_equal(hist_quantile(&h, 0.5), ns);
		hist_free(&h);
	}
}

static void empty_huge_and_nan(void **state)
{
	struct hist h = {0};

	(void)state;
	assert_int_equal(hist_quantile(&h, 0.5), 0);
	assert_int_equal(hist_count(&h), 0);
	hist_add(&h, UINT64_MAX, 1);
	hist_add(&h, 1ULL << 52, 1);
	assert_int_equal(hist_count(&h), 2);
	assert_true(hist_quantile(&h, 1) >= 1ULL << 51);
	assert_true(hist_quantile(&h, NAN) > 0);
	hist_free(&h);
	hist_free(NULL);
}

static void counters_saturate(void **state)
{
	struct hist h = {0}, g = {0};

	(void)state;
	hist_add(&h, 1000, UINT32_MAX);
	hist_add(&h, 1000, 5);
	assert_int_equal(hist_count(&h), UINT32_MAX);
	hist_merge(&g, &h);
	hist_merge(&g, &h);
	assert_int_equal(hist_count(&g), UINT32_MAX);
	hist_free(&h);
	hist_free(&g);
}

/* Whatever octaves the two have and the steps are in: as if each were added alone. */
static void few_steps_to_two_are_as_to_each(void **state)
{
	const uint64_t first[] = {0, 3, 40, 5000};
	const unsigned at[] = {0,
			       7,
			       HIST_STEPS,
			       5 * HIST_STEPS + 18,
			       5 * HIST_STEPS + 20,
			       40 * HIST_STEPS,
			       HIST_OCTAVES * HIST_STEPS};
	const unsigned nat = sizeof(at) / sizeof(at[0]);

	(void)state;
	for (unsigned i = 0; i < 4 * 4 * nat * nat * nat; i++) {
		const uint32_t few[] = {at[i / 16 % nat] << 16 | 0xffff,
					at[i / 16 / nat % nat] << 16 | 1,
					at[i / 16 / nat / nat] << 16 | 5};
		unsigned n = 1 + i % 3;
		struct hist a[2] = {{0}}, b[2] = {{0}};

		for (unsigned k = 0; k < 2; k++) {
			hist_add(&a[k], first[k ? i / 4 % 4 : i % 4], UINT32_MAX - 0xffff);
			hist_add(&b[k], first[k ? i / 4 % 4 : i % 4], UINT32_MAX - 0xffff);
			assert_int_equal(hist_add_few(&b[k], few, n), 0);
		}
		assert_int_equal(hist_add_few_twice(&a[0], &a[1], few, n), 0);
		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(a[k].used, b[k].used);
			assert_memory_equal(a[k].octave, b[k].octave,
					    sizeof(*a[k].octave) *
						    (unsigned)__builtin_popcountll(a[k].used));
			hist_free(&a[k]);
			hist_free(&b[k]);
		}
	}
}

/* A step given by its number is where a time of that step goes. */
static void few_steps_are_where_their_times_go(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < HIST_OCTAVES * HIST_STEPS; at++) {
		uint64_t octave = at / HIST_STEPS, step = at % HIST_STEPS;
		uint64_t ns = octave ? (HIST_STEPS + step) << (octave - 1) : step;
		const uint32_t few[] = {at << 16 | 3, 0 << 16 | 2};
		struct hist a = {0}, b = {0};

		assert_int_equal(hist_add_few(&a, few, 2), 0);
		hist_add(&b, ns, 3);
		hist_add(&b, 0, 2);
		assert_int_equal(a.used, b.used);
		assert_memory_equal(a.octave, b.octave, (octave ? 2 : 1) * sizeof(*a.octave));
		hist_free(&a);
		hist_free(&b);
	}
}

static void few_steps_that_are_none(void **state)
{
	const uint32_t few[] = {UINT32_MAX, HIST_OCTAVES * HIST_STEPS << 16 | 1};
	struct hist h = {0};

	(void)state;
	assert_int_equal(hist_add_few(&h, few, 2), 0);
	assert_int_equal(h.used, 0);
}

static void merge_is_the_sum_and_clear_keeps_memory(void **state)
{
	struct hist a = {0}, b = {0};

	(void)state;
	hist_add(&a, 100, 2);
	hist_add(&b, 100, 1);
	hist_add(&b, 1000000, 7);
	assert_int_equal(hist_merge(&a, &b), 0);
	assert_int_equal(hist_count(&a), 10);
	assert_in_range(hist_quantile(&a, 0.3), 97, 103);
	assert_in_range(hist_quantile(&a, 0.31), 970000, 1030000);
	hist_clear(&a);
	assert_int_equal(hist_count(&a), 0);
	assert_non_null(a.octave);
	hist_add(&a, 100, 1);
	hist_trim(&a); /* the million is gone, the hundred stays */
	assert_int_equal(__builtin_popcountll(a.used), 1);
	assert_int_equal(hist_count(&a), 1);
	assert_in_range(hist_quantile(&a, 1), 97, 103);
	hist_clear(&a);
	hist_trim(&a);
	assert_null(a.octave);
	hist_free(&a);
	hist_free(&b);
}

/* An untouched octave costs nothing: there are thousands of histograms. */
static void fill(struct hist *h, uint64_t *seed, unsigned n)
{
	while (n--)
		hist_add(h, 1ull << next_random(seed) % 40 | next_random(seed) % 4096,
			 (uint32_t)(1 + next_random(seed) % 3));
}

/* Of two histograms without making their sum, whatever octaves they share. */
static void quantiles_of_both_are_those_of_the_sum(void **state)
{
	static const double share[] = {0, 0.1, 0.5, 0.5, 0.99, 0.999, 1};
	uint64_t seed = 7;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		uint64_t want[7] = {1}, got[7] = {2}, other_way[7] = {3}, n;
		struct hist a = {0}, b = {0}, sum = {0};

		fill(&a, &seed, round % 7);
		fill(&b, &seed, round % 5);
		assert_int_equal(hist_merge(&sum, &a), 0);
		assert_int_equal(hist_merge(&sum, &b), 0);
		assert_int_equal(sum.used, a.used | b.used);
		assert_int_equal(hist_count(&sum), hist_count(&a) + hist_count(&b));
		n = hist_quantiles(&sum, share, want, 7);
		assert_int_equal(hist_quantiles_of_both(&a, &b, share, got, 7), n);
		assert_int_equal(hist_quantiles_of_both(&b, &a, share, other_way, 7), n);
		assert_memory_equal(got, want, sizeof(want));
		assert_memory_equal(other_way, want, sizeof(want));
		hist_free(&a);
		hist_free(&b);
		hist_free(&sum);
	}
}

/* An octave whose counters together are more than one of them can be. */
static void large_counts_add_up(void **state)
{
	struct hist a = {0}, b = {0};
	uint64_t q[2];

	(void)state;
	for (uint64_t ns = 1024; ns < 2048; ns += 32)
		hist_add(&a, ns, UINT32_MAX - 1);
	assert_int_equal(hist_count(&a), 32ull * (UINT32_MAX - 1));
	hist_add(&b, 1024, 5);
	assert_int_equal(hist_quantiles_of_both(&a, &b, (const double[]){0.01, 0.99}, q, 2),
			 32ull * (UINT32_MAX - 1) + 1);
	assert_in_range(q[0], 1024, 1056);
	assert_in_range(q[1], 2016, 2047);
	hist_free(&a);
	hist_free(&b);
}

static void it_is_sparse(void **state)
{
	struct hist h = {0};

	(void)state;
	for (uint64_t ns = 1024; ns < 2048; ns++)
		hist_add(&h, ns, 1);
	assert_int_equal(__builtin_popcountll(h.used), 1);
	hist_free(&h);
}

static void heat_has_the_same_sum_in_the_right_bucket(void **state)
{
	uint32_t heat[HEAT_BUCKETS];

	(void)state;
	for (unsigned b = 0; b < HEAT_BUCKETS; b++) {
		struct hist h = {0};

		assert_true(!b || hist_heat_floor(b) > hist_heat_floor(b - 1));
		memset(heat, 0, sizeof(heat));
		hist_add(&h, hist_heat_floor(b), 2);
		hist_add(&h, hist_heat_floor(b + 1) - 1, 1);
		hist_heat(&h, heat);
		assert_int_equal(heat[b], 3);
		hist_free(&h);
	}
	memset(heat, 0, sizeof(heat));
	{
		struct hist h = {0};

		hist_add(&h, 0, 1);
		hist_add(&h, 1ULL << 50, 1);
		hist_heat(&h, heat);
		hist_heat(&h, heat);
		assert_int_equal(heat[0], 2);
		assert_int_equal(heat[HEAT_BUCKETS - 1], 2);
		hist_free(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_a_step),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(empty_huge_and_nan),
		cmocka_unit_test(counters_saturate),
		cmocka_unit_test(few_steps_are_where_their_times_go),
		cmocka_unit_test(few_steps_to_two_are_as_to_each),
		cmocka_unit_test(few_steps_that_are_none),
		cmocka_unit_test(merge_is_the_sum_and_clear_keeps_memory),
		cmocka_unit_test(quantiles_of_both_are_those_of_the_sum),
		cmocka_unit_test(large_counts_add_up),
		cmocka_unit_test(it_is_sparse),
		cmocka_unit_test(heat_has_the_same_sum_in_the_right_bucket),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
