// SPDX-License-Identifier: GPL-2.0-only
/*
 * The histogram over time of the selected row of the pane Exits in slices of the interval, of a
 * vCPU whose events are taken one by one (snapshot.stream).
 */
#ifndef KVMTOP_EXIT_FINE_H
#define KVMTOP_EXIT_FINE_H

#include "pane.h"

#define EXIT_COLS 512 /* no window is wider; more are cut */

struct fine {
	size_t n; /* columns, the newest last */
	int64_t ns; /* of one */
	uint64_t events, lost; /* of the interval on screen */
	bool known[EXIT_COLS]; /* all of it was watched */
	uint64_t count[EXIT_COLS];
	const uint32_t *col[EXIT_COLS]; /* HEAT_BUCKETS counts; NULL: none */
	uint32_t (*heat)[HEAT_BUCKETS];
};

/* It is asked for, of what is selected. */
bool exit_fine_asked(const struct pane_ctx *c);
/* NULL: no memory, or its events do not come yet. For exit_fine_free(). */
struct fine *exit_fine_new(const struct pane_ctx *c, const struct snap_exit *e, int cols);
void exit_fine_free(struct fine *f); /* NULL is fine */
/* Why there is none, one line. */
void exit_fine_missing(const struct pane_ctx *c, char *out, size_t size);

#endif
