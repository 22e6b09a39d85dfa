// SPDX-License-Identifier: GPL-2.0-only
/* The queue between collecting thread and readers: order, drops, references, wake-ups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "reader.h"
#include "tsc_late.h"

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

static void a_failure_wakes_and_is_told_once(void **state)
{
	struct reader *r = reader_new(NULL, 1);
	uint64_t skipped;

	(void)state;
	assert_int_equal(reader_failure(r), 0);
	reader_fail(r, -ENOMEM);
	assert_true(readable(r));
	assert_int_equal(take(r, &skipped), 0);
	assert_false(readable(r));
	assert_int_equal(reader_failure(r), -ENOMEM);
	assert_int_equal(reader_failure(r), 0);
	reader_fail(r, -ENOMEM);
	put(r, 1); /* it is over */
	assert_int_equal(reader_failure(r), 0);
	reader_free(r);
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

static void put_offset(struct reader *r, uint64_t seq, const char *vm)
{
	struct snapshot *s = numbered(seq);
	struct snap_vm *vms = snapshot_alloc(s, 2, sizeof(*vms));
	struct snap_tsc_event *e = snapshot_alloc(s, 2, sizeof(*e));

	assert_true(vms && e);
	vms[0].name = vms[0].vm_id = "other";
	vms[1].name = vms[1].vm_id = snapshot_str(s, vm);
	for (uint64_t i = 0; i < 2; i++)
		e[i] = (struct snap_tsc_event){.vm = 1, .at = seq * 10 + i};
	s->vms = vms;
	s->nvms = 2;
	s->tsc_events = e;
	s->ntsc_events = 2;
	reader_put(r, s);
	snapshot_unref(s);
}

/* What is dropped leaves what it tells of TSC offsets, in order, to the next that is taken. */
static void offsets_outlive_their_snapshots(void **state)
{
	struct reader *r = reader_new(NULL, 1);
	struct snapshot *late;

	(void)state;
	reader_keep_tsc(r);
	put_offset(r, 1, "one");
	assert_int_equal(take(r, NULL), 1);
	assert_null(reader_tsc(r));
	put_offset(r, 2, "two");
	put(r, 3);
	put_offset(r, 4, "four");
	put_offset(r, 5, "five");
	assert_int_equal(take(r, NULL), 5);
	put_offset(r, 6, "six");
	put(r, 7); /* drops 6, which is newer than what was taken */
	late = reader_tsc(r);
	assert_null(reader_tsc(r));
	assert_non_null(late);
	assert_int_equal(late->ntsc_events, 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct snap_tsc_event *e = &late->tsc_events[i];

		assert_int_equal(e->at, (i < 2 ? 20 : 40) + i % 2);
		assert_string_equal(late->vms[e->vm].name, i < 2 ? "two" : "four");
		assert_string_equal(late->vms[e->vm].vm_id, i < 2 ? "two" : "four");
	}
	snapshot_unref(late);
	reader_free(r); /* with what 6 left */
}

static void the_oldest_offsets_go(void **state)
{
	struct reader *r = reader_new(NULL, 1);
	struct snapshot *late;
	unsigned n = TSC_LATE_MOST / 2 + 3;

	(void)state;
	reader_keep_tsc(r);
	for (unsigned i = 1; i <= n; i++)
		put_offset(r, i, "vm");
	put(r, n + 1);
	assert_int_equal(take(r, NULL), n + 1);
	late = reader_tsc(r);
	assert_int_equal(late->ntsc_events, TSC_LATE_MOST);
	assert_int_equal(late->tsc_events[0].at, 40);
	assert_int_equal(late->tsc_events[TSC_LATE_MOST - 1].at, n * 10 + 1);
	snapshot_unref(late);
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
		cmocka_unit_test(a_failure_wakes_and_is_told_once),
		cmocka_unit_test(keeps_order_and_stays_readable),
		cmocka_unit_test(newest_wins_at_depth_one),
		cmocka_unit_test(offsets_outlive_their_snapshots),
		cmocka_unit_test(the_oldest_offsets_go),
		cmocka_unit_test(free_drops_what_waits),
		cmocka_unit_test(two_threads_lose_nothing_uncounted),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
