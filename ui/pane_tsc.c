// SPDX-License-Identifier: GPL-2.0-only
/* Pane 7: the TSC of each vCPU of the VM: offset, scaling, how far it is from the first vCPU's. */
#include <stdio.h>

#include "pane.h"

static const struct column cols[] = {
	{.field = "vcpu", .width = 4},
	{.field = "kvm_id", .width = 6, .gap = 1, .drop = 1},
	{.field = "tsc_offset", .width = 20, .gap = 1},
	{.field = "tsc_offset_s", .width = 12, .gap = 1, .drop = 3},
	{.field = "tsc_scale", .width = 8, .gap = 1, .drop = 2},
	{.field = "tsc_apart_ns", .width = 8, .gap = 1},
	{.field = "tsc_changes", .width = 7, .gap = 1},
};

static const struct table_def def = {
	.id = "tsc",
	.title = "TSC",
	.table = TABLE_VCPU,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"tsc_apart_ns", "vcpu", "kvm_id"},
};

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	if (c->rows->n)
		return pane_source_missing(c->snap, "tsc", out, size);
	snprintf(out, size, "%s",
		 c->host && !c->vm ? "select one VM to see its TSCs" : pane_no_vm(c));
	return true;
}

const struct pane pane_tsc = {
	.key = '7',
	.id = "tsc",
	.title = "TSC",
	.help = "the vCPUs' time stamp counters: offset, scaling, difference to the first vCPU, "
		"changes",
	.table = &def,
	.rows = pane_vcpu_rows,
	.draw = pane_draw_table,
	.missing = missing,
};
