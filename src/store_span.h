// SPDX-License-Identifier: GPL-2.0-only
/*
 * A recording, or a range of its time, as a command line names it: FILE, FILE@03:00-03:10, and
 * @03:00-03:10 of the default one. A file that is there may have an "@" in its name.
 */
#ifndef KVMTOP_STORE_SPAN_H
#define KVMTOP_STORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store.h"

struct store_span {
	char *path; /* owned */
	const char *range; /* in the command line; NULL: all of it */
	struct store *store; /* NULL until it is open */
	struct store_range held; /* what the recording has */
	int64_t from, to; /* ns since 1970 */
};

/* Takes the word apart; NULL: the default recording. It must outlive the span. 0 or -ENOMEM. */
int store_span_split(const char *word, struct store_span *s);
/* Whether it is one by its first bytes, or for it has a range, which no other file has. */
bool store_span_is_recording(const struct store_span *s);
/* Whether a regular file begins with these bytes, 16 at most. */
bool store_begins(const char *path, const char *magic, size_t n);
/* Opens it and finds the range. 0 or -errno with one line in err. */
int store_span_open(struct store_span *s, char *err, size_t size);
void store_span_close(struct store_span *s);
/* Is some of the recording between these moments (ns since 1970)? */
bool store_span_holds(struct store *st, const struct store_range *held, int64_t from, int64_t to);
/* One line: nothing lies in the range. */
void store_span_say_empty(const struct store_span *s, char *err, size_t size);

/* Whether most of an interval lies within. */
static inline bool store_within(const struct store_at *at, int64_t from, int64_t to)
{
	int64_t middle = at->wall - at->dt / 2;

	return middle >= from && middle <= to;
}

/*
 * The first interval of those within (*at zero), or the next. 0, -ENOENT: there is no more, or
 * -errno.
 */
int store_span_next(struct store *st, int64_t from, int64_t to, struct store_at *at);

#endif
