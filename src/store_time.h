// SPDX-License-Identifier: GPL-2.0-only
/* Times of a recording as they are typed: 03:12, yesterday 03:12, 2026-11-29T03:12:07, -2h. */
#ifndef KVMTOP_STORE_TIME_H
#define KVMTOP_STORE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * ns since 1970 in local time. `last` is the recording's last moment, which times are relative to:
 * 03:12 is the last one before it (where clocks were put back, of two the later), "yesterday" the
 * day before its day, -2h two hours before it. False: not a time.
 */
bool store_time_parse(const char *text, int64_t last, int64_t *out);
/*
 * "FROM-TO", "FROM..TO" or one time: from there on, *to is INT64_MAX. A time of the clock as TO is
 * the first after FROM: "yesterday 03:00-03:10" are ten minutes. False: neither, or (*from > *to
 * then) the second is before the first.
 */
bool store_time_range(const char *text, int64_t last, int64_t *from, int64_t *to);
/*
 * By when something of what was typed must have been recorded, of the range that store_time_range()
 * made of it. A time of the clock is meant as such: 03:12 is that minute, 03:12:07 that second; a
 * day, or -2h, may begin before the recording.
 */
int64_t store_time_asked_end(const char *text, int64_t from, int64_t to);
/* "90", "90s", "15m", "2h", "7d" in ns, more than 0. False: not a length of time. */
bool store_duration_parse(const char *text, size_t n, int64_t *out);
/* "1s", "90s", "15m", "24h", "7d". Returns buf. */
const char *store_duration_text(int64_t ns, char *buf, size_t size);

/* "2026-11-29 03:12:07" in local time, for people; buf of 40 bytes is enough. */
void store_time_text(char *buf, size_t size, int64_t wall);

#endif
