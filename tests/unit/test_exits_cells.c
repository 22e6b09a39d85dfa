// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of exits: which cell a key has, whatever came before, against a plain list of keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exits_cells.h"

#define KEYS 300
#define ROUNDS 400

struct known {
	struct ex_cell *cell; /* NULL: it has none of its own */
	uint32_t evicted; /* the cell's, when it got it */
	uint64_t count; /* of this interval */
};

static struct ex_key key_of(unsigned i)
{
	/* Ports, their directions, and a few that differ in the isa alone. */
	return (struct ex_key){
		.key = i / 3, .isa = i % 3 == 2, .kind = KIND_IOPORT, .dir = i % 3 & 1};
}

static bool still_its_own(const struct known *k)
{
	return k->cell && k->cell->evicted == k->evicted;
}

static void add(struct ex_set *s, unsigned most, struct known *k, unsigned i)
{
	struct ex_key key = key_of(i);
	struct ex_cell *found = ex_set_find(s, &key), *c = ex_set_get(s, &key, most);

	assert_non_null(c);
	if (still_its_own(k)) {
		assert_ptr_equal(found, k->cell);
		assert_ptr_equal(c, k->cell);
	} else {
		assert_null(found);
	}
	if (!c->other) {
		assert_int_equal(c->key, key.key);
		assert_int_equal(c->isa, key.isa);
		assert_int_equal(c->dir, key.dir);
		k->cell = c;
		k->evicted = c->evicted;
		k->count++;
	}
	c->now.count++;
}

/* In the interval: nothing is counted twice, nor under another key, and nothing is lost. */
static void check(const struct ex_set *s, const struct known *k, uint64_t all)
{
	const struct ex_cell *c;
	uint64_t sum = 0;

	EX_EACH(&s->kind[KIND_IOPORT], c)
	sum += c->now.count;
	assert_int_equal(sum, all);
	for (unsigned i = 0; i < KEYS; i++)
		if (still_its_own(&k[i]))
			assert_int_equal(k[i].cell->now.count, k[i].count);
}

static unsigned random_below(uint32_t *seed, unsigned n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

static void run_with(unsigned keys)
{
	struct known *k = calloc(KEYS, sizeof(*k));
	struct ex_set s = {0};
	uint32_t seed = keys;
	unsigned evicted = 0;

	assert_non_null(k);
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* Which keys are busy moves on, so that they push each other out. */
		unsigned from = round / 8 * 7 % KEYS, n = 50 + random_below(&seed, 400);

		for (unsigned i = 0; i < n; i++) {
			unsigned at = (from + random_below(&seed, 90)) % KEYS;

			add(&s, keys, &k[at], at);
		}
		check(&s, k, n);
		evicted += ex_set_evict(&s);
		ex_set_next(&s, false);
		for (unsigned i = 0; i < KEYS; i++)
			k[i].count = 0;
	}
	assert_true(keys >= KEYS || evicted > 10);
	ex_set_free(&s);
	free(k);
}

static void a_key_has_its_cell(void **state)
{
	static const unsigned keys[] = {1, 3, 8, 9, 16, 64, 100, 4096};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		run_with(keys[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_has_its_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
