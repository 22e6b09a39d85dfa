// SPDX-License-Identifier: GPL-2.0-only
/* What the batch formats share. */
#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* digits: of the fraction `part` of the second. */
static void put_time(char *buf, size_t size, time_t seconds, int digits, long part)
{
	char date[32] = "", zone[8] = "+0000";
	struct tm tm;

	if (!localtime_r(&seconds, &tm))
		tm = (struct tm){.tm_year = 70, .tm_mday = 1};
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	/* ISO 8601 wants +01:00 where C has +0100. */
	snprintf(buf, size, "%s.%0*ld%.3s:%.2s", date, digits, part, zone, zone + 3);
}

void format_time(char *buf, size_t size, struct timespec t)
{
	put_time(buf, size, t.tv_sec, 3, t.tv_nsec / 1000000);
}

void format_time_us(char *buf, size_t size, struct timespec t)
{
	put_time(buf, size, t.tv_sec, 6, t.tv_nsec / 1000);
}

bool format_is_whole(enum field_unit unit)
{
	return unit == UNIT_COUNT || unit == UNIT_NUMBER || unit == UNIT_NS || unit == UNIT_KB;
}

void format_escaped(struct out *o, size_t (*escape)(char *, size_t, const char *), const char *text)
{
	char small[256], *large;
	size_t need = escape(small, sizeof(small), text);

	if (need < sizeof(small)) {
		out_text(o, small);
		return;
	}
	large = malloc(need + 1);
	/* Without memory the beginning is better than nothing. */
	if (large)
		escape(large, need + 1, text);
	out_text(o, large ? large : small);
	free(large);
}
