// SPDX-License-Identifier: GPL-2.0-only
/* TSC offsets of intervals that nobody could take: they must not be lost with their interval. */
#ifndef KVMTOP_TSC_LATE_H
#define KVMTOP_TSC_LATE_H

#include "snapshot.h"

#define TSC_LATE_MOST 4096 /* events; the oldest go */

/*
 * Adds what s tells of TSC offsets to *late: a snapshot of nothing but those events and of their
 * VMs' names and ids, NULL before the first. 0, or -ENOMEM: *late is what it was.
 */
int tsc_late_add(struct snapshot **late, const struct snapshot *s);

#endif
