// SPDX-License-Identifier: GPL-2.0-only
/* Pane 3: what the guest touched that KVM must emulate: MMIO, ports, MSRs, hypercalls. */
#include "exit_rows.h"

static const struct column cols[] = {
	{.field = "key", .width = 22, .grow = true},
	{.field = "note", .width = 14, .gap = 1, .from = 100, .drop = 1},
	EXIT_FIGURE_COLUMNS,
};

static const struct table_def def = {
	.id = "access",
	.title = "Access",
	.table = TABLE_EXIT,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"time_pct", "count", "key"},
};

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	exit_rows_add(c, c->view->access_kind, out);
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	exit_rows_subtitle(c, c->view->access_kind, out, size);
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	return exit_rows_missing(c, c->view->access_kind, out, size);
}

static void demand(const struct view *v, struct demand *d)
{
	d->kinds |= KIND_BIT(v->access_kind);
}

const struct pane pane_access = {
	.key = '3',
	.id = "access",
	.title = "Access",
	.help = "accesses that KVM emulates (e: mmio, ioport, msr, hypercall), with times and "
		"histogram",
	.table = &def,
	.rows = rows,
	.draw = exit_rows_draw,
	.subtitle = subtitle,
	.demand = demand,
	.missing = missing,
};
