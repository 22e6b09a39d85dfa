// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the panes Exits and Access share: rows of one kind, the histogram over time of the
 * selected row, and which vCPUs make it.
 */
#ifndef KVMTOP_EXIT_ROWS_H
#define KVMTOP_EXIT_ROWS_H

#include "pane.h"

/* The columns of figures, the same in both panes so that an eye need not search anew. */
/* clang-format off */
#define EXIT_FIGURE_COLUMNS                                                    \
	{.field = "count", .width = 8, .gap = 1},                              \
	{.field = "count_per_s", .width = 7, .gap = 1, .drop = 3},             \
	{.field = "count_pct", .width = 6, .gap = 1, .drop = 4},               \
	{.field = "time_pct", .width = 6, .gap = 1},                           \
	{.field = "avg_ns", .width = 7, .gap = 1, .drop = 6},                  \
	{.field = "stderr_pct", .width = 5, .gap = 1, .from = 88, .drop = 2},  \
	{.field = "min_ns", .width = 7, .gap = 1, .from = 100, .drop = 1},     \
	{.field = "p50_ns", .width = 7, .gap = 1, .drop = 5},                  \
	{.field = "p99_ns", .width = 7, .gap = 1, .drop = 7},                  \
	{.field = "p999_ns", .width = 7, .gap = 1, .from = 110, .drop = 1},    \
	{.field = "max_ns", .width = 7, .gap = 1, .from = 88, .drop = 1},      \
	{.field = "timed", .width = 8, .gap = 1, .from = 118, .drop = 1}
/* clang-format on */

/* Adds the rows of this kind of what is selected. */
void exit_rows_add(const struct pane_ctx *c, enum kvm_kind kind, struct row_list *out);
/* Table above; below it, where there is room, vCPUs and histogram of the selected row. */
void exit_rows_draw(const struct pane_ctx *c, const struct area *a);
/* Opens the selected row, or closes it: then its guest code is in place of the histogram. */
bool exit_rows_open(const struct pane_ctx *c, struct view *view);
/* exit_code.c: the guest code that makes this exit. */
void exit_code_draw(const struct pane_ctx *c, const struct area *a, const struct snap_exit *e);
void exit_rows_subtitle(const struct pane_ctx *c, enum kvm_kind kind, char *out, size_t size);
/* Why there are no rows of this kind; false: there are, or there just were none. */
bool exit_rows_missing(const struct pane_ctx *c, enum kvm_kind kind, char *out, size_t size);

#endif
