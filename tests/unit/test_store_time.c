// SPDX-License-Identifier: GPL-2.0-only
/* What is typed of recordings: tiers, sizes, times and ranges of time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "clock.h"
#include "store.h"
#include "store_time.h"

static void words_of_tiers(void **state)
{
	static const char *const bad[] = {"",
					  "1s",
					  "1s:",
					  ":1h",
					  "1s:1h,",
					  "10s:1h,1s:24h",
					  "1s:1h,10s:1h",
					  "1h:1s",
					  "1s:1h;10s:2h",
					  "x:1h",
					  "1s:1h:2h",
					  "0s:1h",
					  "1s:1h,2s:2h,3s:3h,4s:4h,5s:5h,6s:6h,7s:7h"};
	struct store_keep k = {.max_bytes = 5};
	char buf[160];
	int64_t v;

	(void)state;
	assert_true(store_keep_parse("1s:1h,10s:24h,60s:7d", &k));
	assert_int_equal(k.n, 3);
	assert_int_equal(k.max_bytes, 5);
	assert_int_equal(k.tier[2].keep_ns, 7 * 86400 * NS_PER_S);
	assert_string_equal(store_keep_text(&k, buf, sizeof(buf)),
			    "1s for 1h, 10s for 24h, 1m for 7d");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (store_keep_parse(bad[i], &k))
			fail_msg("'%s' was taken", bad[i]);
	assert_true(store_size_parse("2G", &v) && v == (int64_t)2 << 30);
	assert_true(store_size_parse("1M", &v) && v == 1 << 20);
	assert_false(store_size_parse("1K", &v));
	assert_false(store_size_parse("", &v));
	assert_false(store_size_parse("2GB", &v));
	assert_false(store_size_parse("99999999999999999999T", &v));
}

static void times_as_typed(void **state)
{
	/* 2026-11-29 12:00:00 UTC */
	const int64_t last = 1795953600 * NS_PER_S, hour = 3600 * NS_PER_S;
	static const struct {
		const char *text;
		double hours; /* from `last` */
	} rows[] = {
		{"-2h", -2},
		{"-90m", -1.5},
		{"-1d", -24},
		{"03:12", -8.8},
		{"12:00", 0},
		{"12:00:01", -24 + 1 / 3600.0},
		{"13:00", -23},
		{"yesterday 13:00", -23},
		{"yesterday 03:00", -33},
		{"2026-11-29T03:12", -8.8},
		{"2026-11-29 03:12:00", -8.8},
		{"2026-11-29T03:12:00.250+01:00", -9.8},
		{"2026-11-29T03:12:00Z", -8.8},
		{"2026-11-28", -36},
		{"2024-02-29", -24108},
	};
	static const char *const bad[] = {"",		"3:12",	      "03:60",
					  "24:00",	"now",	      "-",
					  "-2x",	"--2h",	      "2026-11-29T",
					  "2026-13-01", "yesterday",  "03:12 ",
					  "-1e9d",	"2262-01-01", "2026-02-29",
					  "2026-11-31", "2026-00-01", "2026-02-30T03:12Z"};
	int64_t t, from, to;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!store_time_parse(rows[i].text, last, &t))
			fail_msg("'%s' was not taken", rows[i].text);
		if (fabs((double)(t - last) / (double)hour - rows[i].hours) > 1e-6)
			fail_msg("'%s': %f hours", rows[i].text, (double)(t - last) / (double)hour);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (store_time_parse(bad[i], last, &t))
			fail_msg("'%s' was taken", bad[i]);
	assert_true(store_time_range("-2h--1h", last, &from, &to));
	assert_int_equal(to - from, hour);
	assert_true(store_time_range("-2h", last, &from, &to));
	assert_int_equal(to, INT64_MAX);
	assert_false(store_time_range("03:10-03:00", last, &from, &to));
	assert_true(from > to); /* times they are */
	assert_false(store_time_range("03:10-", last, &from, &to));
	assert_true(from < to);
}

/* By when something must be there of what was asked for. */
static void ends_as_typed(void **state)
{
	(void)state;
	assert_int_equal(store_time_asked_end("03:12", 0, INT64_MAX), 60 * NS_PER_S - 1);
	assert_int_equal(store_time_asked_end("yesterday 03:12:07", 0, INT64_MAX), NS_PER_S - 1);
	assert_int_equal(store_time_asked_end("2026-11-29T03:12", 0, INT64_MAX), 60 * NS_PER_S - 1);
	assert_int_equal(store_time_asked_end("03:12-03:20", 0, 5), 5);
	assert_true(store_time_asked_end("-2h", 0, INT64_MAX) == INT64_MAX);
	assert_true(store_time_asked_end("2026-11-29", 0, INT64_MAX) == INT64_MAX);
}

/* The end of a range belongs to its beginning, whenever it is typed. */
static void ranges_as_typed(void **state)
{
	/* 2026-11-29 12:00:00 UTC */
	const int64_t noon = 1795953600 * NS_PER_S, hour = 3600 * NS_PER_S;
	static const struct {
		const char *text;
		double last, from, to; /* hours from noon */
	} rows[] = {
		{"03:00-03:12", 0, -9, -8.8},
		{"03:00..03:12", 0, -9, -8.8},
		{"03:00-03:12", -8.9, -9, -8.8}, /* it is 03:06 */
		{"yesterday 03:00-03:12", 0, -33, -32.8},
		{"yesterday 03:00-yesterday 03:12", 0, -33, -32.8},
		{"yesterday 20:00-03:00", 0, -16, -9},
		{"23:30-00:30", 0, -12.5, -11.5},
		{"23:30-00:30", 11.8, -12.5, -11.5}, /* it is 23:48, of which there is a part */
		{"18:00-08:00", 8, -18, -4},
		{"2026-11-27T03:00-03:12", 0, -57, -56.8},
		{"2026-11-27T03:00:00-03:12", 0, -53.8, 1e9}, /* a zone, as ISO has it */
		{"2026-11-29T03:00-2026-11-29T03:12", 0, -9, -8.8},
		{"-2h-11:00", 0, -2, -1},
	};
	int64_t from, to;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t last = noon + (int64_t)(rows[i].last * (double)hour);

		if (!store_time_range(rows[i].text, last, &from, &to))
			fail_msg("'%s' was not taken", rows[i].text);
		if (fabs((double)(from - noon) / (double)hour - rows[i].from) > 1e-6)
			fail_msg("'%s': from %f", rows[i].text,
				 (double)(from - noon) / (double)hour);
		if (to == INT64_MAX ? rows[i].to < 1e9
				    : fabs((double)(to - noon) / (double)hour - rows[i].to) > 1e-6)
			fail_msg("'%s': to %f", rows[i].text, (double)(to - noon) / (double)hour);
	}
}

static int64_t typed(const char *text, int64_t last)
{
	int64_t t = 0;

	if (!store_time_parse(text, last * NS_PER_S, &t))
		fail_msg("'%s' was not taken", text);
	return t / NS_PER_S;
}

/* Where clocks are put back a time comes twice, where they are put on it does not come. */
static void times_of_summer_time(void **state)
{
	const int64_t back = 1792890000; /* 2026-10-25 01:00 UTC: 03:00 CEST becomes 02:00 CET */
	const int64_t on = 1774746000; /* 2026-03-29 01:00 UTC: 02:00 CET becomes 03:00 CEST */
	int64_t from, to;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_int_equal(typed("02:30", back + 7200), back + 1800);
	assert_int_equal(typed("02:30", back + 900), back - 1800);
	assert_int_equal(typed("02:30", back - 3600), back - 1800 - 86400);
	assert_int_equal(typed("yesterday 02:30", back + 86400), back + 1800);
	assert_int_equal(typed("04:00", back + 86400), back + 2 * 3600);
	assert_true(llabs(typed("02:30", on + 7200) - on) <= 1800);
	assert_int_equal(typed("01:30", on + 7200), on - 1800);
	assert_int_equal(typed("03:30", on + 7200), on + 1800);
	assert_true(store_time_range("01:30-04:00", (back + 40000) * NS_PER_S, &from, &to));
	assert_int_equal((to - from) / NS_PER_S, 7 * 1800);
	setenv("TZ", "UTC", 1);
	tzset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_tiers),	cmocka_unit_test(times_as_typed),
		cmocka_unit_test(ends_as_typed),	cmocka_unit_test(ranges_as_typed),
		cmocka_unit_test(times_of_summer_time),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
