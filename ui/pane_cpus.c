// SPDX-License-Identifier: GPL-2.0-only
/* Pane 6: the host's CPUs: who runs there, how busy they are, how long tasks wait. */
#include "pane.h"

static const struct column cols[] = {
	{.field = "cpu", .width = 4},
	{.field = "node", .width = 4, .gap = 1, .drop = 6},
	{.field = "core", .width = 4, .gap = 1, .drop = 5},
	{.field = "sibling", .width = 4, .gap = 1, .drop = 7},
	{.field = "guest_pct", .width = 6, .gap = 1},
	{.field = "usr_pct", .width = 5, .gap = 1, .drop = 4},
	{.field = "sys_pct", .width = 5, .gap = 1, .drop = 8},
	{.field = "irq_pct", .width = 5, .gap = 1, .drop = 3},
	{.field = "st_pct", .width = 5, .gap = 1, .drop = 2},
	{.field = "idle_pct", .width = 5, .gap = 1},
	{.field = "wait_pct", .width = 6, .gap = 1, .drop = 9},
	{.field = "nvcpu", .width = 5, .gap = 1, .drop = 10},
	{.field = "npinned", .width = 6, .gap = 1, .drop = 10},
	{.field = "vcpus", .width = 8, .gap = 1, .grow = true, .drop = 1},
};

static const struct table_def def = {
	.id = "cpus",
	.title = "CPUs",
	.table = TABLE_CPU,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"cpu"},
};

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	for (size_t i = 0; i < c->snap->ncpus; i++)
		if (row_list_add(out, &c->snap->cpus[i], (uint64_t)c->snap->cpus[i].cpu + 1) < 0)
			return;
}

static void demand(const struct view *v, struct demand *d)
{
	(void)v;
	d->pins = true; /* how many vCPUs are pinned to a CPU */
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	return c->rows->n == 0 && pane_source_missing(c->snap, "host_cpu", out, size);
}

const struct pane pane_cpus = {
	.key = '6',
	.id = "cpus",
	.title = "CPUs",
	.help = "the host's CPUs: node, SMT sibling, shares, run-queue wait, vCPUs seen and pinned",
	.table = &def,
	.rows = rows,
	.draw = pane_draw_table,
	.demand = demand,
	.missing = missing,
};
