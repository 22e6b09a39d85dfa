// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time line of a replay: the whole recording in one line, as high as the vCPU that waited most
 * in each part of it, the worst moments marked, and where on it the screen is.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "ui_priv.h"
#include "widget_graph.h"

#define LABEL 18 /* "2026-03-06 14:22 " */
#define MARKED 3 /* moments, each this many columns away from the others */
#define APART 3

struct part {
	struct graph_col col;
	double worth; /* of the worst interval that ends here: one that is long is marked once */
};

void ui_timeline(struct ui *ui, const struct ui_moment *m, size_t n, int64_t first, int64_t last)
{
	n = n < UI_MOMENTS ? n : UI_MOMENTS;
	memcpy(ui->moment, m, n * sizeof(*m));
	ui->nmoments = n;
	ui->first = first;
	ui->last = last;
}

static size_t part_of(const struct ui *ui, int64_t wall, size_t n)
{
	double at = ui->last > ui->first
			    ? (double)(wall - ui->first) / (double)(ui->last - ui->first)
			    : 0;

	at *= (double)n;
	return at < 0 ? 0 : at >= (double)n ? n - 1 : (size_t)at;
}

/* From where the interval before it ended. */
static size_t begin_of(const struct ui *ui, const struct ui_moment *m, size_t end, size_t n)
{
	size_t begin = m->dt > 0 ? part_of(ui, m->wall - m->dt, n) + 1 : end;

	return begin < end ? begin : end;
}

/* As many parts as the line has columns; of several moments in one the worst. */
static void make_parts(const struct ui *ui, struct part *part, size_t n)
{
	memset(part, 0, n * sizeof(*part));
	for (size_t i = 0; i < ui->nmoments; i++) {
		const struct ui_moment *m = &ui->moment[i];
		size_t end = part_of(ui, m->wall, n);

		if (!m->wall)
			continue;
		if (m->worth > part[end].worth)
			part[end].worth = m->worth;
		for (size_t k = begin_of(ui, m, end, n); k <= end; k++) {
			if (m->steal > part[k].col.part[0])
				part[k].col.part[0] = m->steal;
			part[k].col.known = true;
		}
	}
}

/* One that is marked stands close by: it is the same trouble, or its mark would not be seen. */
static bool marked_near(const bool *taken, size_t i, size_t n)
{
	size_t from = i > APART ? i - APART : 0, to = i + APART < n ? i + APART : n - 1;

	for (size_t k = from; k <= to; k++)
		if (taken[k])
			return true;
	return false;
}

static void mark(const struct area *a, int x, const struct part *part, size_t n)
{
	bool taken[UI_MOMENTS] = {false};

	for (int k = 0; k < MARKED; k++) {
		size_t worst = n;

		for (size_t i = 0; i < n; i++)
			if (part[i].worth > 0 && !marked_near(taken, i, n) &&
			    (worst == n || part[i].worth > part[worst].worth))
				worst = i;
		if (worst == n)
			return;
		taken[worst] = true;
		area_put(a, 0, x + (int)worst, ROLE_ALARM, area_glyph(a, 0x25bc, '!'));
	}
}

static void time_text(const struct ui *ui, int64_t wall, const char *form, char *buf, size_t size)
{
	time_t t = (time_t)(wall / NS_PER_S);
	struct tm tm;

	buf[0] = '\0';
	if (ui->cfg.utc ? gmtime_r(&t, &tm) : localtime_r(&t, &tm))
		strftime(buf, size, form, &tm);
}

void ui_draw_timeline(const struct ui *ui, const struct area *a)
{
	bool days = ui->last - ui->first >= 86400 * NS_PER_S;
	const char *form = days ? "%m-%d %H:%M" : "%H:%M:%S";
	struct graph_col col[UI_MOMENTS];
	struct graph g = {.max = 100, .role = {ROLE_STEAL}, .col = col};
	struct part part[UI_MOMENTS];
	char from[LABEL], to[LABEL];
	int x, w;

	if (!ui->nmoments || a->h < 1)
		return;
	time_text(ui, ui->first, form, from, sizeof(from));
	time_text(ui, ui->last, form, to, sizeof(to));
	x = area_text(a, 0, 1, ROLE_DIM, from) + 1;
	w = a->w - x - (int)strlen(to) - 2;
	if (w < 8)
		return;
	w = w < UI_MOMENTS ? w : UI_MOMENTS;
	make_parts(ui, part, (size_t)w);
	for (int i = 0; i < w; i++)
		col[i] = part[i].col;
	g.n = (size_t)w;
	graph_line(a, 0, x, w, &g);
	mark(a, x, part, (size_t)w);
	area_text(a, 0, x + w + 1, ROLE_DIM, to);
	if (ui->shown)
		area_attr(a, 0, x + (int)part_of(ui, timespec_ns(ui->shown->wall), (size_t)w), 1,
			  CELL_SELECTED);
}
