// SPDX-License-Identifier: GPL-2.0-only
/* Which columns the lists have, from which width on, and what goes first when it is narrow. */
#include "columns.h"

#define COLUMNS(a) .cols = (a), .ncols = sizeof(a) / sizeof((a)[0])

/* clang-format off */
static const struct column vm_columns[] = {
	{.field = "VM", .width = 12, .wide_from = 88, .wide = 20},
	{.field = "vCPU", .width = 4, .drop = 1},
	{.field = "PID", .width = 7, .gap = 1, .from = 110},
	{.field = "%CPU", .width = 6, .gap = 1, .drop = 7},
	{.field = "%GUEST", .width = 6, .gap = 1, .drop = 3},
	{.field = "%SYS", .width = 5, .gap = 1, .drop = 2},
	{.field = "%STEAL", .width = 6, .gap = 1},
	{.field = "MAX@v", .width = 7, .gap = 1, .also = "steal_max_vcpu", .join = '@'},
	{.field = "EXIT/s", .width = 6, .gap = 1, .drop = 5},
	{.field = "%EXIT", .width = 5, .gap = 1, .drop = 6},
	{.field = "p99", .width = 6, .gap = 1, .from = 118},
	{.field = "WHY", .width = 14, .gap = 1, .grow = true, .below = 100, .drop = 4},
	{.field = "TOP EXIT", .width = 12, .wide_from = 124, .wide = 18, .gap = 1, .from = 100, .also = "top_exit_pct", .join = '%'},
	{.field = "WHY", .width = 9, .gap = 1, .grow = true, .from = 100, .drop = 4,
	 .instead = "HOT SYMBOL"},
	{.field = "HOT SYMBOL", .width = 10, .gap = 1, .grow = true, .from = 100, .drop = 1, .also = "hot_symbol_pct", .join = '%'},
};

static const struct column vcpu_columns[] = {
	{.field = "vCPU", .width = 4},
	{.field = "TID", .width = 7, .gap = 1, .drop = 5},
	{.field = "CPU", .width = 3, .gap = 1, .drop = 8},
	{.field = "PIN", .width = 6, .gap = 1, .drop = 3},
	{.field = "NODE", .width = 4, .gap = 1, .drop = 1},
	{.field = "%CPU", .width = 5, .gap = 1, .drop = 9},
	{.field = "%GUEST", .width = 6, .gap = 1, .drop = 4},
	{.field = "%SYS", .width = 5, .gap = 1, .drop = 3},
	{.field = "%STEAL", .width = 6, .gap = 1},
	{.field = "MIG/s", .width = 5, .gap = 1, .drop = 2},
	{.field = "EXIT/s", .width = 6, .gap = 1, .drop = 6},
	{.field = "%EXIT", .width = 5, .gap = 1, .drop = 7},
	{.field = "p99", .width = 6, .gap = 1, .from = 90},
	{.field = "TOP EXIT", .width = 12, .wide_from = 124, .wide = 20, .gap = 1, .from = 104,
	 .also = "top_exit_pct", .join = '%'},
	{.field = "HOT SYMBOL", .width = 12, .gap = 1, .grow = true, .from = 118, .drop = 1, .also = "hot_symbol_pct", .join = '%'},
};

/* With the VM's name in front; PIN and NODE make room for it. */
static const struct column all_vcpu_columns[] = {
	{.field = "VM", .width = 12, .wide_from = 100, .wide = 20},
	{.field = "vCPU", .width = 4},
	{.field = "TID", .width = 7, .gap = 1, .drop = 2},
	{.field = "CPU", .width = 3, .gap = 1, .drop = 8},
	{.field = "PIN", .width = 6, .gap = 1, .from = 110, .drop = 1},
	{.field = "NODE", .width = 4, .gap = 1, .from = 116, .drop = 1},
	{.field = "%CPU", .width = 5, .gap = 1, .drop = 9},
	{.field = "%GUEST", .width = 6, .gap = 1, .drop = 4},
	{.field = "%SYS", .width = 5, .gap = 1, .drop = 3},
	{.field = "%STEAL", .width = 6, .gap = 1},
	{.field = "MIG/s", .width = 5, .gap = 1, .drop = 1},
	{.field = "EXIT/s", .width = 6, .gap = 1, .drop = 6},
	{.field = "%EXIT", .width = 5, .gap = 1, .drop = 7},
	{.field = "p99", .width = 6, .gap = 1, .from = 88},
	{.field = "TOP EXIT", .width = 12, .gap = 1, .grow = true, .from = 124,
	 .also = "top_exit_pct", .join = '%'},
};
/* clang-format on */

const struct table_def list_defs[LIST_NR] = {
	[LIST_VMS] = {.id = "vms",
		      .title = "VMs",
		      .table = TABLE_VM,
		      COLUMNS(vm_columns),
		      .sort = {"MAX@v", "%CPU", "VM"}},
	[LIST_ALL_VCPUS] = {.id = "all-vcpus",
			    .title = "all vCPUs",
			    .table = TABLE_VCPU,
			    COLUMNS(all_vcpu_columns),
			    .sort = {"%STEAL", "%CPU", "VM"}},
	[LIST_VM_VCPUS] = {.id = "vcpus",
			   .title = "vCPUs",
			   .table = TABLE_VCPU,
			   COLUMNS(vcpu_columns),
			   .sort = {"vCPU"}},
};
