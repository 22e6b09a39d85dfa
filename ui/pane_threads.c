// SPDX-License-Identifier: GPL-2.0-only
/* Pane 9: the VMM's other threads and the kernel's helpers of the VM; of (other): its tasks. */
#include <stdio.h>

#include "pane.h"

static const struct column cols[] = {
	{.field = "comm", .width = 16, .grow = true},
	{.field = "tid", .width = 8, .gap = 1},
	{.field = "role", .width = 7, .gap = 1, .drop = 2},
	{.field = "state", .width = 1, .gap = 1},
	{.field = "cpu", .width = 4, .gap = 1, .drop = 3},
	{.field = "cpu_pct", .width = 6, .gap = 1},
	{.field = "usr_pct", .width = 6, .gap = 1, .drop = 5},
	{.field = "sys_pct", .width = 6, .gap = 1, .drop = 6},
	{.field = "wait_pct", .width = 6, .gap = 1},
	{.field = "csw_per_s", .width = 7, .gap = 1, .drop = 4},
	{.field = "mig_per_s", .width = 6, .gap = 1, .from = 88, .drop = 1},
};

static const struct table_def def = {
	.id = "threads",
	.title = "Threads",
	.table = TABLE_THREAD,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"cpu_pct", "wait_pct", "tid"},
};

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	for (uint32_t i = 0; c->vm && i < c->vm->thread_n; i++) {
		const struct snap_thread *t = &c->snap->threads[c->vm->thread_first + i];

		if (row_list_add(out, t, (uint64_t)t->tid) < 0)
			return;
	}
}

static void demand(const struct view *v, struct demand *d)
{
	(void)v;
	d->threads = true;
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	return pane_no_threads(c, "no other threads", "select one VM to see its threads", out,
			       size);
}

const struct pane pane_threads = {
	.key = '9',
	.id = "threads",
	.title = "Threads",
	.help = "the VMM's other threads and its kernel helpers (vhost, kvm-pit)",
	.table = &def,
	.rows = rows,
	.draw = pane_draw_table,
	.demand = demand,
	.missing = missing,
};
