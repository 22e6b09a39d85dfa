// SPDX-License-Identifier: GPL-2.0-only
/* Tallies put together: of rows that share one, or of intervals that become a longer one. */
#ifndef KVMTOP_STORE_TALLY_H
#define KVMTOP_STORE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot.h"

/*
 * Adds counts and times, keeps least and most. Percentiles of the sum lie between those of its
 * parts; which ones they are store_tally_percentiles() says, where there is a histogram.
 */
void store_tally_add(struct tally *into, const struct tally *from);
/* The same of a row of guest code: exits of the interval. */
void store_code_add(struct snap_code *into, const struct snap_code *from);

/* The smallest and the largest p50, p99 and p99.9 of a sum's parts. All zero: of none so far. */
struct store_bounds {
	uint64_t least[3], most[3];
	bool any;
};

void store_bounds_add(struct store_bounds *b, const struct tally *part);
/* Percentiles by the sum's histogram (HEAT_BUCKETS counts, NULL: none), within its parts'. */
void store_tally_percentiles(struct tally *sum, const uint32_t *heat, const struct store_bounds *b);

#endif
