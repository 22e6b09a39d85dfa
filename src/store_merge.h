// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intervals put together to a longer one: counts and histograms are added, maxima kept, shares and
 * rates are means over the time in which they were known. What cannot be added (names, states,
 * totals since the start) is the newest's.
 */
#ifndef KVMTOP_STORE_MERGE_H
#define KVMTOP_STORE_MERGE_H

#include "snapshot.h"

/*
 * n ≥ 1 snapshots of one run of the recorder, oldest first. One reference to the caller; the result
 * points into the parts, which must stay as long. 0 or -ENOMEM.
 */
int store_merge(struct snapshot *const *part, size_t n, struct snapshot **out);

#endif
