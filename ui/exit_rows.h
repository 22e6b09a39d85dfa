// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the panes Exits and Access share: rows of one kind, the histogram over time of the
 * selected row, and which vCPUs make it.
 */
#ifndef KVMTOP_EXIT_ROWS_H
#define KVMTOP_EXIT_ROWS_H

#include "pane.h"

const char *exit_kind_name(enum kvm_kind kind); /* "vmexit", "ioport" … as --event takes them */
/* Adds the rows of this kind of what is selected. */
void exit_rows_add(const struct pane_ctx *c, enum kvm_kind kind, struct row_list *out);
/* Table above; below it, where there is room, vCPUs and histogram of the selected row. */
void exit_rows_draw(const struct pane_ctx *c, const struct area *a);
void exit_rows_subtitle(const struct pane_ctx *c, enum kvm_kind kind, char *out, size_t size);
/* Why there are no rows of this kind; false: there are, or there just were none. */
bool exit_rows_missing(const struct pane_ctx *c, enum kvm_kind kind, char *out, size_t size);

#endif
