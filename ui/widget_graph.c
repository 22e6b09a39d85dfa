// SPDX-License-Identifier: GPL-2.0-only
/* Stacked graphs of eighth blocks (ASCII: one mark a cell); see widget_graph.h. */
#include "widget_graph.h"

#include <math.h>

#define BLOCK_FULL 0x2588 /* █; one to seven eighths are the seven code points before it */
#define GAP 0x00b7 /* · */

static const char ascii_level[] = " .:-=+*#%";

static double sum_parts(const struct graph_col *c)
{
	double v = 0;

	for (int i = 0; i < GRAPH_PARTS; i++)
		if (c->part[i] > 0)
			v += c->part[i];
	return v;
}

/* Which part is at height `at` of the stack (in value units); the top one above all. */
static int part_at(const struct graph_col *c, double at)
{
	double below = 0;
	int top = 0;

	for (int i = 0; i < GRAPH_PARTS; i++) {
		if (c->part[i] <= 0)
			continue;
		top = i;
		below += c->part[i];
		if (at < below)
			return i;
	}
	return top;
}

static int largest_part(const struct graph_col *c)
{
	int best = 0;

	for (int i = 1; i < GRAPH_PARTS; i++)
		if (c->part[i] > c->part[best])
			best = i;
	return best;
}

/* 0…8 eighths as a character; 0 is a blank. */
static void put_eighths(const struct area *a, int y, int x, enum role role, int n)
{
	if (n <= 0)
		return;
	if (n > 8)
		n = 8;
	area_put(a, y, x, role, area_glyph(a, BLOCK_FULL - 8u + (uint32_t)n, ascii_level[n]));
}

static void draw_col(const struct area *a, int x, const struct graph *g, const struct graph_col *c)
{
	double eighths = sum_parts(c) / g->max * a->h * 8;
	int full = eighths > a->h * 8 ? a->h * 8 : (int)lround(eighths);

	if (full == 0 && eighths > 0)
		full = 1; /* something is never drawn as nothing */
	for (int row = 0; row < a->h; row++) {
		int here = full - row * 8;
		double mid = (row * 8 + (here < 8 ? here : 8) / 2.0) / (a->h * 8.0) * g->max;

		put_eighths(a, a->h - 1 - row, x, g->role[part_at(c, mid)], here);
	}
}

void graph_draw(const struct area *a, const struct graph *g)
{
	int n = (size_t)a->w < g->n ? a->w : (int)g->n;

	if (a->h < 1 || g->max <= 0)
		return;
	for (int i = 0; i < n; i++) {
		const struct graph_col *c = &g->col[g->n - (size_t)n + (size_t)i];
		int x = a->w - n + i;

		if (c->known)
			draw_col(a, x, g, c);
		else
			area_put(a, a->h - 1, x, ROLE_DIM, area_glyph(a, GAP, '.'));
	}
}

int graph_line(const struct area *a, int y, int x, int w, const struct graph *g)
{
	int n = (size_t)w < g->n ? w : (int)g->n;

	if (g->max <= 0)
		return 0;
	for (int i = 0; i < n; i++) {
		const struct graph_col *c = &g->col[g->n - (size_t)n + (size_t)i];
		double v = c->known ? sum_parts(c) / g->max * 8 : 0;
		int at = x + w - n + i;

		if (!c->known || v <= 0)
			area_put(a, y, at, ROLE_DIM,
				 c->known ? area_glyph(a, 0x2581, '_') : area_glyph(a, GAP, '.'));
		else
			put_eighths(a, y, at, g->role[largest_part(c)], v < 1 ? 1 : (int)lround(v));
	}
	return n;
}

double graph_ceiling(double v)
{
	static const double step[] = {1, 2, 5, 10};
	double scale;

	if (!(v > 0))
		return 1;
	scale = pow(10, floor(log10(v)));
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++)
		if (v <= step[i] * scale * (1 + 1e-9))
			return step[i] * scale;
	return 10 * scale;
}
