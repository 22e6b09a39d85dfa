// SPDX-License-Identifier: GPL-2.0-only
/* Histogram over time; see widget_heatmap.h. */
#include "widget_heatmap.h"

#include <math.h>

#include "hist.h"
#include "text.h"

#define LABEL_W 6
#define NSHADE 8

struct scale {
	unsigned lo, per_row; /* first bucket; buckets a row */
	int rows;
	uint64_t most; /* highest count in a cell */
	size_t first; /* first column that is drawn */
};

static bool used_range(const struct heatmap *m, size_t first, unsigned *lo, unsigned *hi)
{
	*lo = HEAT_BUCKETS;
	*hi = 0;
	for (size_t i = first; i < m->n; i++) {
		if (!m->col[i])
			continue;
		for (unsigned b = 0; b < HEAT_BUCKETS; b++) {
			if (!m->col[i][b])
				continue;
			*lo = b < *lo ? b : *lo;
			*hi = b > *hi ? b : *hi;
		}
	}
	return *lo <= *hi;
}

static uint64_t cell_count(const uint32_t *col, const struct scale *s, int row)
{
	unsigned from = s->lo + (unsigned)row * s->per_row;
	uint64_t n = 0;

	for (unsigned b = from; b < from + s->per_row && b < HEAT_BUCKETS; b++)
		n += col[b];
	return n;
}

static bool make_scale(const struct heatmap *m, int h, int w, struct scale *s)
{
	unsigned lo, hi;

	s->first = m->n > (size_t)w ? m->n - (size_t)w : 0;
	if (!used_range(m, s->first, &lo, &hi))
		return false;
	s->per_row = (hi - lo) / (unsigned)h + 1;
	s->rows = (int)((hi - lo) / s->per_row) + 1;
	s->lo = lo;
	s->most = 0;
	for (size_t i = s->first; i < m->n; i++)
		for (int r = 0; m->col[i] && r < s->rows; r++) {
			uint64_t n = cell_count(m->col[i], s, r);

			s->most = n > s->most ? n : s->most;
		}
	return s->most > 0;
}

/* By the logarithm, so that a single slow exit beside a million fast ones is seen. */
static int shade(uint64_t n, uint64_t most)
{
	if (most <= 1)
		return NSHADE - 1;
	return (int)lround(log((double)n) / log((double)most) * (NSHADE - 1));
}

static void draw_cell(const struct area *a, int y, int x, int level)
{
	static const uint32_t glyph[] = {0x2591, 0x2592, 0x2593, 0x2588}; /* ░▒▓█ */
	static const char ascii[] = ".:-=+*#@";

	area_put(a, y, x, (enum role)(ROLE_HEAT0 + level),
		 area_glyph(a, glyph[level / 2], ascii[level]));
}

bool heatmap_draw(const struct area *a, const struct heatmap *m)
{
	struct scale s;
	int w = a->w - LABEL_W - 1;

	if (a->h < 1 || w < 1 || !make_scale(m, a->h, w, &s))
		return false;
	for (int r = 0; r < s.rows; r++) {
		int y = a->h - 1 - r;
		char label[16];
		uint64_t ns = hist_heat_floor(s.lo + (unsigned)r * s.per_row);

		fmt_ns(label, sizeof(label), value_known((double)ns), LABEL_W);
		area_right(a, y, LABEL_W, ROLE_DIM, label);
		for (size_t i = s.first; i < m->n; i++) {
			int x = a->w - (int)(m->n - i);
			uint64_t n = m->col[i] ? cell_count(m->col[i], &s, r) : 0;

			if (n)
				draw_cell(a, y, x, shade(n, s.most));
		}
	}
	return true;
}
