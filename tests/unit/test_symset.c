// SPDX-License-Identifier: GPL-2.0-only
/* Bounded tables of samples by symbol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "symset.h"

static struct symbol_key key(uint64_t value)
{
	return (struct symbol_key){.value = value, .table = 1, .domain = DOMAIN_GUEST_KERNEL};
}

static void add(struct sym_set *s, uint64_t value, unsigned n, unsigned limit)
{
	struct symbol_key k = key(value);

	sym_set_add(s, &k, n, false, limit);
}

static const struct sym_cell *cell(const struct sym_set *s, uint64_t value)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->cell[i].key.value == value)
			return &s->cell[i];
	return NULL;
}

static void no_sample_is_lost_in_the_table(void **state)
{
	struct sym_set s = {0};
	uint64_t rows = 0;

	(void)state;
	for (uint64_t v = 0; v < 1000; v++)
		add(&s, v, 1 + (v == 3) * 500, 64);
	assert_int_equal(s.n, 256);
	for (unsigned i = 0; i < s.n; i++)
		rows += s.cell[i].now;
	assert_int_equal(rows + s.other_now, 1500);
	assert_int_equal(sym_set_now(&s), 1500);
	assert_int_equal(sym_set_top(&s), NULL); /* most of it has no row */
	sym_set_next(&s, 64);
	assert_int_equal(s.n, 64);
	assert_int_equal(cell(&s, 3)->total, 501);
	rows = 0;
	for (unsigned i = 0; i < s.n; i++)
		rows += s.cell[i].total;
	assert_int_equal(rows + s.other_total, 1500);
	assert_int_equal(sym_set_total(&s), 1500);
	sym_set_free(&s);
}

/* What becomes hot gets its row though the table was full of others before. */
static void what_becomes_hot_gets_its_row(void **state)
{
	struct sym_set s = {0};

	(void)state;
	for (uint64_t v = 0; v < 100; v++)
		add(&s, v, 3, 8);
	add(&s, 777, 400, 8);
	assert_null(cell(&s, 777)); /* it came when all was full */
	sym_set_next(&s, 8);
	add(&s, 777, 400, 8);
	for (uint64_t v = 0; v < 100; v++)
		add(&s, v, 1, 8);
	assert_int_equal(cell(&s, 777)->now, 400);
	assert_int_equal(sym_set_top(&s)->key.value, 777);
	/* And keeps it while it is. */
	for (int i = 0; i < 20; i++) {
		sym_set_next(&s, 8);
		for (uint64_t v = 0; v < 100; v++)
			add(&s, 1000 * (uint64_t)i + v, 1, 8);
		add(&s, 777, 50, 8);
		assert_int_equal(cell(&s, 777)->now, 50);
	}
	sym_set_reset(&s);
	assert_int_equal(cell(&s, 777)->total, 0);
	assert_int_equal(sym_set_total(&s), 150);
	sym_set_free(&s);
}

/* Whatever order they are in by now, and whoever else has their place. */
static void keys_are_found_again(void **state)
{
	struct sym_set s = {0};
	uint64_t want[200] = {0}, chance = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned v;

		chance = chance * 6364136223846793005u + 1442695040888963407u;
		v = (unsigned)(chance >> 33) % 200;
		add(&s, v << 6, 1 + v % 3, 64);
		want[v] += 1 + v % 3;
		if (i % 500 == 0)
			sym_set_sort(&s);
	}
	assert_int_equal(s.n, 200);
	for (unsigned v = 0; v < 200; v++)
		assert_int_equal(cell(&s, v << 6)->now, want[v]);
	sym_set_free(&s);
}

/* However many call it: bounded, none is counted twice, and who calls often is among them. */
static void callers_are_bounded(void **state)
{
	const struct symbol_key k = key(1);
	const struct sym_caller *c;
	struct sym_set s = {0};

	(void)state;
	for (int interval = 0; interval < 10; interval++) {
		for (uint64_t v = 0; v < 100; v++) {
			const struct symbol_key often = key(5), seldom = key(1000 + v);

			sym_set_add(&s, &k, 1, false, 8);
			sym_set_called(&s, &k, &often, 1);
			sym_set_add(&s, &k, 1, false, 8);
			sym_set_called(&s, &k, &seldom, 1);
		}
		assert_int_equal(sym_cell_callers(cell(&s, 1), &c), SYM_CALLERS);
		assert_int_equal(c[0].key.value, 5);
		assert_int_equal(c[0].now, 100);
		assert_int_equal(c[1].now, 1);
		sym_set_next(&s, 8);
	}
	assert_int_equal(sym_cell_callers(cell(&s, 1), &c), SYM_CALLERS);
	assert_int_equal(c[0].total, 1000);
	sym_set_called(&s, &(struct symbol_key){.value = 99}, &k, 1); /* of no key: nothing */
	sym_set_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_sample_is_lost_in_the_table),
		cmocka_unit_test(what_becomes_hot_gets_its_row),
		cmocka_unit_test(keys_are_found_again),
		cmocka_unit_test(callers_are_bounded),
	};

	return cmocka_run_group_tests_name("symset", tests, NULL, NULL);
}
