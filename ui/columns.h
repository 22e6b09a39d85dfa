// SPDX-License-Identifier: GPL-2.0-only
/* The lists' default columns and orders: data only. */
#ifndef KVMTOP_COLUMNS_H
#define KVMTOP_COLUMNS_H

#include "widget_table.h"

extern const struct table_def list_defs[LIST_NR];

#endif
