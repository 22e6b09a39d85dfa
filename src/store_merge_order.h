// SPDX-License-Identifier: GPL-2.0-only
/* The last step of a merge: rows of one VM or vCPU stand together, and their owners say where. */
#ifndef KVMTOP_STORE_MERGE_ORDER_H
#define KVMTOP_STORE_MERGE_ORDER_H

#include "snapshot.h"

/* Rows of s that are the merge's own: it sorts them and sets all indexes. 0 or -ENOMEM. */
int store_merge_order(struct snapshot *s);

#endif
