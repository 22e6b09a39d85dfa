// SPDX-License-Identifier: GPL-2.0-only
/* Times as they are typed (store_time.h). */
#include "store_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

static const struct {
	char letter;
	int64_t ns;
} units[] = {
	{'d', 86400 * NS_PER_S}, {'h', 3600 * NS_PER_S}, {'m', 60 * NS_PER_S}, {'s', NS_PER_S}};

#define NUNITS (sizeof(units) / sizeof(units[0]))

bool store_duration_parse(const char *text, size_t n, int64_t *out)
{
	int64_t unit = NS_PER_S;
	double v = 0, place = 1;
	bool point = false, digit = false;

	for (size_t u = 0; u < NUNITS && n; u++) {
		if (text[n - 1] == units[u].letter) {
			unit = units[u].ns;
			n--;
			break;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		digit = true;
		place = point ? place / 10 : 1;
		v = point ? v + (text[i] - '0') * place : v * 10 + (text[i] - '0');
	}
	/* A century is enough, and far from what a number of ns can hold. */
	v *= (double)unit;
	if (!digit || !(v >= 1e6) || v > 100 * 366 * 86400e9)
		return false;
	*out = (int64_t)(v + 0.5);
	return true;
}

const char *store_duration_text(int64_t ns, char *buf, size_t size)
{
	for (size_t u = 0; u < NUNITS; u++) {
		/* 24h is said as it is typed; days from two on. */
		if (ns % units[u].ns || ns < units[u].ns || (u == 0 && ns < 2 * units[u].ns))
			continue;
		snprintf(buf, size, "%" PRId64 "%c", ns / units[u].ns, units[u].letter);
		return buf;
	}
	snprintf(buf, size, "%gs", (double)ns / 1e9);
	return buf;
}

static bool digits(const char **p, unsigned n, int *out)
{
	int v = 0;

	for (unsigned i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		v = v * 10 + (**p - '0');
	}
	*out = v;
	return true;
}

/* "03:12" or "03:12:07". */
static bool clock_of(const char **p, struct tm *tm)
{
	tm->tm_sec = 0;
	if (!digits(p, 2, &tm->tm_hour) || *(*p)++ != ':' || !digits(p, 2, &tm->tm_min))
		return false;
	if (**p == ':') {
		(*p)++;
		if (!digits(p, 2, &tm->tm_sec))
			return false;
	}
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 61;
}

/* mktime() would take the 30th of February for a day in March. */
static int days_of(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

static bool date_of(const char **p, struct tm *tm)
{
	if (!digits(p, 4, &tm->tm_year) || *(*p)++ != '-' || !digits(p, 2, &tm->tm_mon) ||
	    *(*p)++ != '-' || !digits(p, 2, &tm->tm_mday))
		return false;
	/* Until 2261: what ns since 1970 in 64 bits have. */
	if (tm->tm_year < 1970 || tm->tm_year >= 2262 || tm->tm_mon < 1 || tm->tm_mon > 12 ||
	    tm->tm_mday < 1 || tm->tm_mday > days_of(tm->tm_year, tm->tm_mon))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	return true;
}

/* "", "Z", "+01:00", "-0530": how far local time is ahead, in s; none: has stays false. */
static bool zone_of(const char **p, bool *has, int *ahead)
{
	int sign, hours, minutes;

	*has = **p == 'Z' || **p == '+' || **p == '-';
	*ahead = 0;
	if (!*has)
		return true;
	if (**p == 'Z') {
		(*p)++;
		return true;
	}
	sign = *(*p)++ == '-' ? -1 : 1;
	if (!digits(p, 2, &hours))
		return false;
	if (**p == ':')
		(*p)++;
	if (!digits(p, 2, &minutes))
		return false;
	*ahead = sign * (hours * 3600 + minutes * 60);
	return hours < 24 && minutes < 60;
}

static bool iso_of(const char *p, int64_t *out)
{
	struct tm tm = {.tm_isdst = -1};
	bool has = false;
	const char *clock;
	int ahead = 0;
	time_t t;

	if (!date_of(&p, &tm))
		return false;
	if (*p == 'T' || *p == ' ') {
		clock = ++p;
		if (!clock_of(&p, &tm))
			return false;
		/* Without seconds it is the end of a range: T03:12-03:20. */
		if (*p == '-' && p - clock == 5)
			return false;
		/* Fractions are what kvmtop itself prints; a second is fine enough to go to. */
		if (*p == '.')
			p += 1 + strspn(p + 1, "0123456789");
		if (!zone_of(&p, &has, &ahead))
			return false;
	}
	if (*p)
		return false;
	t = has ? timegm(&tm) - ahead : mktime(&tm);
	*out = (int64_t)t * NS_PER_S;
	return t >= 0;
}

static int64_t make_time(struct tm tm, const struct tm *clock, int days, int dst, bool *same)
{
	time_t t;

	tm.tm_hour = clock->tm_hour;
	tm.tm_min = clock->tm_min;
	tm.tm_sec = clock->tm_sec;
	tm.tm_mday += days;
	tm.tm_isdst = dst;
	t = mktime(&tm);
	*same = tm.tm_hour == clock->tm_hour && tm.tm_min == clock->tm_min;
	return (int64_t)t * NS_PER_S;
}

/*
 * The clock time on the day `days` after that of `day`. Where clocks are put back it may come
 * twice, the earlier first; where they are put on it may not come: then what mktime() takes it for.
 * Returns how many.
 */
static unsigned on_day(int64_t day, const struct tm *clock, int days, int64_t out[2])
{
	time_t t = (time_t)(day / NS_PER_S);
	struct tm tm;
	unsigned n = 0;
	bool same;

	localtime_r(&t, &tm);
	for (int dst = 1; dst >= 0; dst--) {
		int64_t one = make_time(tm, clock, days, dst, &same);

		if (!same || (n && one == out[0]))
			continue;
		out[n] = one;
		if (n && out[1] < out[0]) {
			out[1] = out[0];
			out[0] = one;
		}
		n++;
	}
	if (!n)
		out[n++] = make_time(tm, clock, days, -1, &same);
	return n;
}

/* The last one that is not after `last`. */
static int64_t clock_before(int64_t last, const struct tm *clock)
{
	int64_t t[2] = {0};

	for (int days = 0; days >= -1; days--)
		for (unsigned n = on_day(last, clock, days, t); n-- > 0;)
			if (t[n] <= last)
				return t[n];
	return t[0];
}

/* The first one that is not before `from`. */
static int64_t clock_after(int64_t from, const struct tm *clock)
{
	int64_t t[2] = {0};

	for (int days = 0; days <= 1; days++)
		for (unsigned i = 0, n = on_day(from, clock, days, t); i < n; i++)
			if (t[i] >= from)
				return t[i];
	return t[0];
}

/* Nothing but "03:12" or "03:12:07". */
static bool is_clock(const char *text, struct tm *clock)
{
	return clock_of(&text, clock) && !*text;
}

bool store_time_parse(const char *text, int64_t last, int64_t *out)
{
	static const char yesterday[] = "yesterday ";
	const size_t word = sizeof(yesterday) - 1;
	struct tm clock;
	int64_t ago, day[2];

	if (*text == '-') {
		if (!store_duration_parse(text + 1, strlen(text + 1), &ago))
			return false;
		*out = last - ago;
		return true;
	}
	if (strncmp(text, yesterday, word) == 0) {
		if (!is_clock(text + word, &clock))
			return false;
		*out = day[on_day(last, &clock, -1, day) - 1];
		return true;
	}
	/* 03:12 of a day that has not come so far is that of the day before. */
	if (is_clock(text, &clock)) {
		*out = clock_before(last, &clock);
		return true;
	}
	return iso_of(text, out);
}

/* By 03:10-03:00 nobody means nearly a day. */
#define CLOCK_RANGE_MOST (18 * 3600 * NS_PER_S)

/*
 * A range that ends at a time of the clock ends when that comes first after its beginning. One over
 * midnight that has not ended is that of the night before.
 */
static bool clock_range(const char *begin, const struct tm *end, int64_t last, int64_t *from,
			int64_t *to)
{
	struct tm clock, a, b;
	time_t t[2];

	*to = clock_after(*from, end);
	if (is_clock(begin, &clock) && *to > last) {
		t[0] = (time_t)(*from / NS_PER_S);
		t[1] = (time_t)(*to / NS_PER_S);
		if (localtime_r(&t[0], &a) && localtime_r(&t[1], &b) && a.tm_mday != b.tm_mday) {
			*from = clock_before(*from - 1, &clock);
			*to = clock_after(*from, end);
		}
	}
	if (*to - *from <= CLOCK_RANGE_MOST)
		return true;
	*to = *from - 1;
	return false;
}

bool store_time_range(const char *text, int64_t last, int64_t *from, int64_t *to)
{
	char left[128];
	int64_t a, b;
	struct tm end;

	*to = INT64_MAX;
	if (store_time_parse(text, last, from))
		return true;
	*from = INT64_MIN;
	for (const char *p = text; *p; p++) {
		size_t n = (size_t)(p - text), gap = strncmp(p, "..", 2) == 0 ? 2 : *p == '-';

		if (!n || !gap || n >= sizeof(left))
			continue;
		memcpy(left, text, n);
		left[n] = '\0';
		if (!store_time_parse(left, last, &a))
			continue;
		*from = a;
		if (is_clock(p + gap, &end))
			return clock_range(left, &end, last, from, to);
		if (store_time_parse(p + gap, last, &b)) {
			*to = b;
			return a <= b;
		}
		*from = INT64_MIN;
	}
	return false;
}

int64_t store_time_asked_end(const char *text, int64_t from, int64_t to)
{
	const char *colon = strchr(text, ':');
	bool seconds = colon && strlen(colon) > 3 && colon[3] == ':';

	if (to != INT64_MAX || !colon)
		return to;
	return from + (seconds ? 1 : 60) * NS_PER_S - 1;
}

void store_time_text(char *buf, size_t size, int64_t wall)
{
	time_t t = (time_t)(wall / NS_PER_S);
	struct tm tm;

	buf[0] = '\0';
	if (localtime_r(&t, &tm))
		strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
}
