// SPDX-License-Identifier: GPL-2.0-only
/* Tallies put together: of rows that share one, or of intervals that become a longer one. */
#ifndef KVMTOP_STORE_TALLY_H
#define KVMTOP_STORE_TALLY_H

#include "snapshot.h"

/*
 * Adds counts and times, keeps least and most. Percentiles of the sum lie between those of its
 * parts; which ones they are store_tally_percentiles() says, where there is a histogram.
 */
void store_tally_add(struct tally *into, const struct tally *from);
/*
 * Percentiles by the sum's histogram (HEAT_BUCKETS counts, NULL: none), within what the parts had:
 * least and most are tallies whose percentiles are the smallest and the largest of them.
 */
void store_tally_percentiles(struct tally *sum, const uint32_t *heat, const struct tally *least,
			     const struct tally *most);

#endif
