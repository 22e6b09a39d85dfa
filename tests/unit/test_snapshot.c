// SPDX-License-Identifier: GPL-2.0-only
/* The snapshot's arena and reference count, and the reasons of values. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "snapshot.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
	struct snapshot *s = snapshot_new();
	unsigned char *p[200];

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < 200; i++) {
		size_t n = i * 37 % 3000 + 1;

		p[i] = snapshot_alloc(s, n, 1);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(p[i][k], 0);
		memset(p[i], (int)i + 1, n);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t k = 0; k < i * 37 % 3000 + 1; k++)
			assert_int_equal(p[i][k], (unsigned char)(i + 1));
	snapshot_unref(s);
}

static void impossible_sizes_are_refused(void **state)
{
	struct snapshot *s = snapshot_new();

	(void)state;
	assert_null(snapshot_alloc(s, SIZE_MAX, 16));
	assert_null(snapshot_alloc(s, SIZE_MAX / 2 + 1, 1));
	assert_non_null(snapshot_alloc(s, 0, 16));
	snapshot_unref(s);
}

static void large_tables_keep_small_ones_dense(void **state)
{
	struct snapshot *s = snapshot_new();
	size_t before;

	(void)state;
	snapshot_str(s, "first");
	assert_non_null(snapshot_alloc(s, 1000000, 1));
	before = s->bytes;
	assert_true(before >= 1000000 && before < 1100000);
	for (int i = 0; i < 100; i++)
		snapshot_str(s, "instance-0000a1");
	assert_int_equal(s->bytes, before); /* still in the first block */
	snapshot_unref(s);
}

/* One that is made for what the last one held holds it in one piece, but for what is very large. */
static void made_for_what_it_holds(void **state)
{
	struct snapshot *s = snapshot_new(), *next;
	size_t used, before;

	(void)state;
	for (int i = 0; i < 100; i++)
		snapshot_str(s, "instance-0000a1");
	assert_non_null(snapshot_alloc(s, 50, 1000));
	used = snapshot_used(s);
	assert_in_range(used, 51600, 51700);
	next = snapshot_new_for(used + 100);
	snapshot_str(next, "a");
	before = next->bytes;
	assert_in_range(before, used, used + 8000);
	for (int i = 0; i < 99; i++)
		snapshot_str(next, "instance-0000a1");
	assert_non_null(snapshot_alloc(next, 50, 1000));
	assert_int_equal(next->bytes, before);
	assert_non_null(snapshot_alloc(next, 1000, 1000)); /* it can always be more */
	assert_true(snapshot_used(next) > 1000000);
	snapshot_unref(next);
	next = snapshot_new_for(100 << 20);
	snapshot_str(next, "a");
	assert_true(next->bytes < 1 << 20); /* a host may have become smaller */
	snapshot_unref(next);
	snapshot_unref(s);
}

static void strings_are_copies_and_never_null(void **state)
{
	struct snapshot *s = snapshot_new();
	char text[] = "web01";
	const char *copy, *long_one;

	(void)state;
	copy = snapshot_str(s, text);
	text[0] = 'X';
	assert_string_equal(copy, "web01");
	assert_string_equal(snapshot_str(s, NULL), "");
	assert_string_equal(snapshot_str(s, ""), "");
	assert_string_equal(snapshot_printf(s, "%s %d%%", "MSR_WRITE", 41), "MSR_WRITE 41%");
	assert_string_equal(snapshot_printf(s, "%s", ""), "");
	long_one = snapshot_printf(s, "%020000d", 7);
	assert_int_equal(strlen(long_one), 20000);
	assert_string_equal(copy, "web01");
	snapshot_unref(s);
}

static void *reader(void *arg)
{
	struct snapshot *s = arg;

	for (int i = 0; i < 20000; i++)
		snapshot_unref(snapshot_ref(s));
	snapshot_unref(s);
	return NULL;
}

/* Under ThreadSanitizer and ASan this shows a free too early, too late or twice. */
static void the_last_reader_frees(void **state)
{
	struct snapshot *s = snapshot_new();
	pthread_t t[3];

	(void)state;
	snapshot_str(s, "payload");
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, reader, snapshot_ref(s)), 0);
	snapshot_unref(s);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	snapshot_unref(NULL);
}

static void every_reason_has_words(void **state)
{
	(void)state;
	for (int i = 1; i < WHY_NR; i++)
		assert_true(strlen(value_why_text((enum value_why)i)) > 10);
	assert_string_equal(value_why_text(WHY_NONE), "");
	assert_string_equal(value_why_text((enum value_why)999), "not known");
	assert_true(value_has(value_known(0)));
	assert_true(value_has(value_partial(1, WHY_SHARED)));
	assert_false(value_has(value_pending()));
	assert_false(value_has(value_na(WHY_NO_EVENTS)));
	assert_false(value_has((struct value){0})); /* forgotten is not known */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(large_tables_keep_small_ones_dense),
		cmocka_unit_test(made_for_what_it_holds),
		cmocka_unit_test(strings_are_copies_and_never_null),
		cmocka_unit_test(the_last_reader_frees),
		cmocka_unit_test(every_reason_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
