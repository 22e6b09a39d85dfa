// SPDX-License-Identifier: GPL-2.0-only
/*
 * Graphs over time: newest at the right, one column an interval, stacked parts.
 */
#ifndef KVMTOP_WIDGET_GRAPH_H
#define KVMTOP_WIDGET_GRAPH_H

#include "surface.h"

#define GRAPH_PARTS 4

/* One interval: parts are stacked from below; known false draws a gap. */
struct graph_col {
	bool known;
	double part[GRAPH_PARTS];
};

struct graph {
	double max; /* the value at the top, > 0 */
	enum role role[GRAPH_PARTS];
	const struct graph_col *col; /* oldest first */
	size_t n;
};

/* Fills the area: its height is the scale, its width the newest columns. */
void graph_draw(const struct area *a, const struct graph *g);
/*
 * One line of eighths; the role is that of the column's largest part. Returns how many
 * columns were drawn.
 */
int graph_line(const struct area *a, int y, int x, int w, const struct graph *g);
/* The next of 1, 2, 5, 10, 20, 50, … that is not below v: a top for an axis. */
double graph_ceiling(double v);

#endif
