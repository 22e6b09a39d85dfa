// SPDX-License-Identifier: GPL-2.0-only
/* The queue between collecting thread and readers: order, drops, references, wake-ups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>

#include "reader.h"

static struct snapshot *numbered(uint64_t seq)
{
	struct snapshot *s = snapshot_new();

	assert_non_null(s);
	s->seq = seq;
	return s;
}

static void put(struct reader *r, uint64_t seq)
{
	struct snapshot *s = numbered(seq);

	reader_put(r, s);
	snapshot_unref(s);
}

static bool readable(const struct reader *r)
{
	struct pollfd p = {.fd = reader_fd(r), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static uint64_t take(struct reader *r, uint64_t *skipped)
{
	struct snapshot *s = reader_take(r, skipped);
	uint64_t seq = s ? s->seq : 0;

	snapshot_unref(s);
	return seq;
}

static void keeps_order_and_stays_readable(void **state)
{
	struct reader *r = reader_new(NULL, 4);
	uint64_t skipped;

	(void)state;
	assert_false(readable(r));
	put(r, 1);
	put(r, 2);
	assert_true(readable(r));
	assert_int_equal(take(r, &skipped), 1);
	assert_true(readable(r)); /* one still waits */
	assert_int_equal(take(r, &skipped), 2);
	assert_int_equal(skipped, 0);
	assert_false(readable(r));
	assert_int_equal(take(r, &skipped), 0);
	reader_free(r);
}

static void newest_wins_at_depth_one(void **state)
{
	struct reader *r = reader_new(NULL, 1);
	uint64_t skipped;

	(void)state;
	for (uint64_t i = 1; i <= 5; i++)
		put(r, i);
	assert_int_equal(take(r, &skipped), 5);
	assert_int_equal(skipped, 4);
	put(r, 6);
	assert_int_equal(take(r, &skipped), 6);
	assert_int_equal(skipped, 0); /* counted once */
	reader_free(r);
}

static void free_drops_what_waits(void **state)
{
	struct reader *r = reader_new(NULL, 3);

	(void)state;
	put(r, 1);
	put(r, 2);
	reader_free(r); /* the leak checker of the sanitizer build is the judge */
	reader_free(NULL);
}

#define MANY 20000

static void *producer(void *arg)
{
	for (uint64_t i = 1; i <= MANY; i++)
		put(arg, i);
	return NULL;
}

static void two_threads_lose_nothing_uncounted(void **state)
{
	struct reader *r = reader_new(NULL, 8);
	uint64_t got = 0, lost = 0, last = 0, skipped, seq;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, producer, r), 0);
	while (last < MANY) {
		struct pollfd p = {.fd = reader_fd(r), .events = POLLIN};

		assert_int_equal(poll(&p, 1, 5000), 1);
		seq = take(r, &skipped);
		lost += skipped;
		if (!seq)
			continue;
		assert_true(seq > last);
		last = seq;
		got++;
	}
	pthread_join(t, NULL);
	assert_int_equal(got + lost, MANY);
	reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order_and_stays_readable),
		cmocka_unit_test(newest_wins_at_depth_one),
		cmocka_unit_test(free_drops_what_waits),
		cmocka_unit_test(two_threads_lose_nothing_uncounted),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
