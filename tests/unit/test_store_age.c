// SPDX-License-Identifier: GPL-2.0-only
/* Recordings that grow old: how far back they reach, clocks that are set, times far ahead. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "clock.h"
#include "store_file.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

#define BEGIN INT64_C(1790000000) /* s since 1970 */
#define IN_2100 INT64_C(4102444800)

/* n intervals of a second each, the first of which ends at `wall`, aged as the recorder does. */
static void write_some(struct store *st, int64_t wall, unsigned n, unsigned nvms)
{
	for (unsigned i = 0; i < n; i++) {
		const struct made m = {.nvms = nvms, .step = i % 5};
		struct snapshot *s = made_snapshot(&m);

		assert_non_null(s);
		s->dt = NS_PER_S;
		s->wall = (struct timespec){.tv_sec = (time_t)(wall + i)};
		assert_int_equal(store_write(st, s, 0), 0);
		assert_int_equal(store_age(st), 0);
		snapshot_unref(s);
	}
}

static unsigned count_all(struct store *st)
{
	struct store_at at = {0};
	unsigned n = 0;

	while (!store_find(st, STORE_NEXT, at.id, &at))
		n++;
	return n;
}

/* What of a second each is in the range, in order. */
static unsigned seconds_within(struct store *st, int64_t from, int64_t to)
{
	struct store_at at = {0};
	int64_t id = 0, length = 0;

	while (!store_next_within(st, at.id, from * NS_PER_S, to * NS_PER_S, &at)) {
		assert_true(at.id > id);
		id = at.id;
		assert_true(at.wall > from * NS_PER_S && at.wall - at.dt < to * NS_PER_S);
		length += at.dt;
	}
	return (unsigned)(length / NS_PER_S);
}

/* Both passes of the clock over the same time are found, and nothing else. */
static void ranges_of_a_clock_that_was_put_back(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	struct store_range range;

	write_some(st, BEGIN, 100, 1);
	write_some(st, BEGIN + 40, 100, 1);
	assert_int_equal(seconds_within(st, BEGIN, BEGIN + 10), 10);
	assert_int_equal(seconds_within(st, BEGIN + 44, BEGIN + 54), 20);
	assert_int_equal(seconds_within(st, BEGIN + 89, BEGIN + 109), 30);
	assert_int_equal(seconds_within(st, BEGIN - 100, BEGIN - 10), 0);
	assert_int_equal(seconds_within(st, BEGIN + 139, BEGIN + 200), 0);
	/* Times are relative to what was recorded last, not to the latest. */
	write_some(st, BEGIN + 10, 1, 1);
	assert_int_equal(store_range(st, &range), 0);
	assert_int_equal(range.first, BEGIN * NS_PER_S);
	assert_int_equal(range.last, (BEGIN + 139) * NS_PER_S);
	assert_int_equal(range.newest, (BEGIN + 10) * NS_PER_S);
	store_close(st);
}

/* What was recorded while the clock was years ahead does not stay for years. */
static void a_clock_that_was_ahead(void **state)
{
	const struct file *f = *state;
	struct store *st = create_tiers(f, "1s:20s,5s:60s", 0);

	write_some(st, BEGIN + 100000000, 30, 1);
	write_some(st, BEGIN, 10, 1);
	assert_true(seconds_within(st, BEGIN + 100000000 - 2, BEGIN + 100000030) > 0);
	write_some(st, BEGIN + 10, 140, 1);
	assert_int_equal(seconds_within(st, BEGIN + 100000000 - 2, BEGIN + 100000030), 0);
	assert_true(count_all(st) < 50);
	store_close(st);
}

/* In the next century, and with tiers of a hundred days. */
static void times_far_ahead(void **state)
{
	const struct file *f = *state;
	struct store *st = create_tiers(f, "1s:4s,4s:20s,8s:40s,100d:20000d", 0);
	struct store_range range;
	struct store_at at = {0};
	struct snapshot *s;

	write_some(st, IN_2100, 100, 2);
	store_close(st);
	st = open_again(f);
	assert_int_equal(store_range(st, &range), 0);
	assert_int_equal(range.last, (IN_2100 + 99) * NS_PER_S);
	while (!store_find(st, STORE_NEXT, at.id, &at)) {
		assert_int_equal(store_read(st, at.id, &s), 0);
		assert_int_equal(s->time, at.wall);
		assert_true(s->since < s->time && s->since > s->time - 3600 * NS_PER_S);
		snapshot_unref(s);
	}
	assert_int_equal(seconds_within(st, IN_2100 - 1, IN_2100 + 99), 100);
	store_close(st);
}

/* A limit that is less than a minute of the finest takes: it holds, with fewer of them. */
static void a_limit_of_a_few_intervals(void **state)
{
	const struct file *f = *state;
	struct store *st = create_tiers(f, "1s:1h,10s:24h,60s:7d", 1 << 20);
	int64_t reach;

	write_some(st, BEGIN, 120, 100);
	assert_true(store_bytes(st) < (1 << 20) + (512 << 10));
	assert_true(count_all(st) > 1 && count_all(st) < 60);
	(void)store_expected(st, &reach);
	assert_true(reach > 2 * NS_PER_S && reach < 60 * NS_PER_S);
	store_close(st);
}

static void tiers_as_measured(void **state)
{
	static const struct {
		double s;
		const char *text;
	} rows[] = {
		{1, "1s for 1h, 10s for 24h, 1m for 7d"},
		{0.2, "0.2s for 1h, 10s for 24h, 1m for 7d"},
		{5, "5s for 1h, 10s for 24h, 1m for 7d"},
		{10, "10s for 24h, 1m for 7d"},
		{30, "30s for 24h, 1m for 7d"},
		{60, "1m for 7d"},
		{90, "90s for 7d"},
	};
	struct store_keep k = {0};
	char buf[160];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(store_keep_parse("1s:1h,10s:24h,60s:7d", &k));
		store_keep_measured(&k, llround(rows[i].s * 1e9));
		assert_string_equal(store_keep_text(&k, buf, sizeof(buf)), rows[i].text);
	}
}

/* What is said at the start: a week, or as far as the limit goes. */
static void how_far_back(void **state)
{
	static const char tiers[] = "1s:1h,10s:24h,60s:7d";
	const double all = 3600 + 23 * 360 + 6 * 1440, day = 86400e9;
	const struct file *f = *state;
	struct store *st = create_tiers(f, tiers, 0);
	int64_t reach, before = 0;
	double bytes, one;

	write_some(st, BEGIN, 1, 3);
	bytes = store_expected(st, &reach);
	one = bytes / all;
	assert_true(one > 100 && (double)reach == 7 * day);
	store_close(st);
	/* 60 of 1 s, 60 of 10 s and the rest of 60 s are a week, too, and less than half of it. */
	for (int tenth = 1; tenth < 10; tenth++) {
		double part = tenth / 10.0;

		st = create_tiers(f, tiers, (int64_t)(bytes * part));
		write_some(st, BEGIN + 1, 1, 3);
		assert_true(fabs(store_expected(st, &reach) / (bytes * part) - 1) < 0.2);
		assert_true(reach >= before && (double)reach <= 7 * day);
		assert_true(tenth < 6 || (double)reach == 7 * day);
		assert_true(tenth > 4 || (double)reach < 7 * day);
		before = reach;
		store_close(st);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges_of_a_clock_that_was_put_back, make_dir,
						drop_dir),
		cmocka_unit_test_setup_teardown(a_clock_that_was_ahead, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(times_far_ahead, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(a_limit_of_a_few_intervals, make_dir, drop_dir),
		cmocka_unit_test(tiers_as_measured),
		cmocka_unit_test_setup_teardown(how_far_back, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
