// SPDX-License-Identifier: GPL-2.0-only
/*
 * --when: a condition over the fields of a row, and for how many intervals on end it held.
 *
 *   steal_max_pct>20 and exit_pct>5 for 3
 *   not (why = "" or name = 'build farm')
 *
 * Comparisons < <= > >= = !=; numbers may have ns us ms s k M %; `and`, `or`, `not`,
 * parentheses. What is not known fulfils no comparison.
 */
#ifndef KVMTOP_WHEN_H
#define KVMTOP_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_row;
struct batch_table;
struct snapshot;
struct when;

/* 0, -ENOMEM, or -EINVAL with one line in err: what is wrong, where, how to mend it. */
int when_parse(const char *text, const struct batch_table *table, struct when **out, char *err,
	       size_t size);
void when_free(struct when *w);
/*
 * Whether the row matches now; called once for every row of an interval, in between
 * when_begin() and when_end(), which forget rows that are no more there.
 */
bool when_row(struct when *w, const struct snapshot *s, const struct batch_row *r, bool total);
void when_begin(struct when *w);
void when_end(struct when *w);
/* Whether any row ever matched. */
bool when_matched(const struct when *w);

#endif
