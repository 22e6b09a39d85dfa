// SPDX-License-Identifier: GPL-2.0-only
/*
 * A histogram over time: time across with the newest at the right, latency up, the shade
 * says how many.
 */
#ifndef KVMTOP_WIDGET_HEATMAP_H
#define KVMTOP_WIDGET_HEATMAP_H

#include "snapshot.h"
#include "surface.h"

struct heatmap {
	const uint32_t *const *col; /* HEAT_BUCKETS counts each, oldest first; NULL: a gap */
	size_t n;
};

/*
 * Draws axis labels (6 columns) and cells. The rows cover the latencies that occur; where
 * there are more buckets than rows, neighbours share one. False when there is nothing to
 * draw (no column with a count), and the area is left as it was.
 */
bool heatmap_draw(const struct area *a, const struct heatmap *m);

#endif
