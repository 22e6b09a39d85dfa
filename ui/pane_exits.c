// SPDX-License-Identifier: GPL-2.0-only
/* Pane 2: why the guest was left, how often and for how long; with the histogram over time. */
#include "exit_rows.h"

static const struct column cols[] = {
	{.field = "key", .width = 22, .grow = true},
	EXIT_FIGURE_COLUMNS,
};

static const struct table_def def = {
	.id = "exits",
	.title = "Exits",
	.table = TABLE_EXIT,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"time_pct", "count", "key"},
};

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	exit_rows_add(c, c->view->exit_kind, out);
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	exit_rows_subtitle(c, c->view->exit_kind, out, size);
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	return exit_rows_missing(c, c->view->exit_kind, out, size);
}

static void demand(const struct view *v, struct demand *d)
{
	d->kinds |= KIND_BIT(v->exit_kind);
	d->exit_code = v->detail != 0;
	if (v->fine && v->fine == d->vcpu && d->slice_ns > 0)
		d->slices = KIND_BIT(v->exit_kind);
}

const struct pane pane_exits = {
	.key = '2',
	.id = "exits",
	.title = "Exits",
	.help = "exits by reason (e: vmexit, userexit, halt), with times and their histogram; "
		"Enter: which guest code makes it",
	.table = &def,
	.rows = rows,
	.open = exit_rows_open,
	.draw = exit_rows_draw,
	.subtitle = subtitle,
	.demand = demand,
	.missing = missing,
};
