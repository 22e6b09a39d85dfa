// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pane 5: who waited for a CPU: a row and a graph a vCPU, its own quota apart from the
 * competition, the selected one's last minutes large, and who had the CPU meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "pane.h"
#include "steal_who.h"
#include "text.h"
#include "widget_graph.h"

#define TABLE_W 46 /* columns of the table; the graphs take what is right of it */
#define LARGE_FROM 14 /* lines that the pane needs before the large graph is shown */
#define LARGE_H 6
#define BOTH_FROM 18 /* below, the large graph gives way to who had the CPU */
#define MAX_COLS 512

static const struct column cols[] = {
	{.field = "vcpu", .width = 5},
	{.field = "steal_pct", .width = 7, .gap = 1},
	{.field = "throt_pct", .width = 6, .gap = 1},
	{.field = "wait_pct", .width = 6, .gap = 1, .drop = 1},
	{.field = "cpu_pct", .width = 6, .gap = 1},
	{.field = "demand_pct", .width = 7, .gap = 1, .drop = 2},
};

static const struct table_def def = {
	.id = "steal",
	.title = "Steal",
	.table = TABLE_VCPU,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"steal_pct", "vcpu"},
};

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	for (uint32_t i = 0; c->vm && i < c->vm->vcpu_n; i++) {
		const struct snap_vcpu *v = &c->snap->vcpus[c->vm->vcpu_first + i];

		if ((!c->vcpu || c->vcpu == v) && row_list_add(out, v, v->id) < 0)
			return;
	}
}

/* Competition below, the own quota on top of it. */
static struct graph_col steal_of(const struct snapshot *s, uint32_t id)
{
	const struct snap_vcpu *v = s ? snap_vcpu_by_id(s, id) : NULL;
	struct graph_col g = {.known = v && value_has(v->use.steal)};
	double throt;

	if (!g.known)
		return g;
	throt = value_has(v->use.throt) ? v->use.throt.v : 0;
	throt = throt < v->use.steal.v ? throt : v->use.steal.v;
	g.part[0] = v->use.steal.v - throt;
	g.part[1] = throt;
	return g;
}

static size_t steal_series(const struct pane_ctx *c, uint32_t id, int w, struct graph_col *out)
{
	size_t n = c->at + 1, k = 0;

	n = n > MAX_COLS ? MAX_COLS : n;
	n = w > 0 && n > (size_t)w ? (size_t)w : n;
	for (size_t i = c->at + 1 - n; i <= c->at; i++)
		out[k++] = steal_of(history_at(c->history, i), id);
	return k;
}

static const struct graph steal_graph = {.max = 100, .role = {ROLE_STEAL, ROLE_QUOTA}};

static void draw_lines(const struct pane_ctx *c, const struct area *a)
{
	struct graph_col col[MAX_COLS];
	struct graph g = steal_graph;

	area_text(a, 0, 0, ROLE_HEAD, "last minutes, 0-100%");
	for (int y = 1; y < a->h; y++) {
		size_t at = (size_t)(c->table.state->top + y - 1);

		if (at >= c->rows->n)
			return;
		g.n = steal_series(c, (uint32_t)c->rows->row[at].id, a->w, col);
		g.col = col;
		graph_line(a, y, 0, a->w, &g);
	}
}

static void draw_legend(const struct pane_ctx *c, const struct area *a, const struct snap_vcpu *v)
{
	char what[160] = "";
	int x;

	x = area_textf(a, 0, 1, ROLE_STRONG, "vCPU %d", v->index);
	x = area_text(a, 0, x + 2, ROLE_STEAL, "others' work");
	x = area_text(a, 0, x + 2, ROLE_QUOTA, "its own quota");
	if (c->vm->quota_us && c->vm->period_us)
		snprintf(what, sizeof(what), "quota %.0f%% of a CPU",
			 100.0 * (double)c->vm->quota_us / (double)c->vm->period_us);
	x = area_text(a, 0, x + 2, ROLE_DIM, what);
	area_textf(a, 0, x + 2, ROLE_DIM, "source %s",
		   c->vm->steal_source[0] ? c->vm->steal_source : "-");
}

static void draw_large(const struct pane_ctx *c, const struct area *a, const struct snap_vcpu *v)
{
	struct graph_col col[MAX_COLS];
	struct graph g = steal_graph;
	struct area part = area_sub(a, 1, 5, a->h - 1, a->w - 5);

	draw_legend(c, a, v);
	area_right(a, 1, 4, ROLE_DIM, "100");
	area_right(a, a->h - 1, 4, ROLE_DIM, "0");
	g.n = steal_series(c, v->id, part.w, col);
	g.col = col;
	graph_draw(&part, &g);
}

/* Below the table, which keeps half of the lines where it needs them, its head and three rows. */
static int who_lines(const struct pane_ctx *c, int h)
{
	int want = steal_who_lines(c), room = h - 1 - (int)c->rows->n;

	room = room > h / 2 ? room : h / 2;
	room = room > h - 4 ? h - 4 : room;
	if (room < 2)
		return 0;
	return want < room ? want : room;
}

static int large_lines(const struct pane_ctx *c, int h, const struct snap_vcpu *v)
{
	int lines = h >= LARGE_FROM && v && c->vm ? LARGE_H + 1 : 0;

	return lines && h < BOTH_FROM && who_lines(c, h - lines) < steal_who_lines(c) ? 0 : lines;
}

static void draw(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_vcpu *v = pane_selected(c);
	int large = large_lines(c, a->h, v);
	int who = who_lines(c, a->h - large), h = a->h - large - who;
	int w = a->w > TABLE_W + 12 ? TABLE_W : a->w;
	struct area part = area_sub(a, 0, 0, h, w);

	pane_draw_table(c, &part);
	if (w < a->w) {
		part = area_sub(a, 0, w + 1, h, a->w - w - 1);
		draw_lines(c, &part);
	}
	if (who) {
		part = area_sub(a, h, 0, who, a->w);
		steal_who_draw(c, &part);
	}
	if (large) {
		part = area_sub(a, a->h - large, 0, large, a->w);
		draw_large(c, &part, v);
	}
}

static void demand(const struct view *v, struct demand *d)
{
	(void)v;
	d->waits = true;
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	snprintf(out, size, "waiting%s%s", c->vm && c->vm->steal_source[0] ? ", from " : "",
		 c->vm ? c->vm->steal_source : "");
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	return pane_no_threads(c, "no vCPU of it is known",
			       "select one VM; v lists the vCPUs of all with their %STEAL", out,
			       size);
}

const struct pane pane_steal = {
	.key = '5',
	.id = "steal",
	.title = "Steal",
	.help = "steal a vCPU, its own quota against others, with graphs; who had the CPU while it "
		"waited",
	.table = &def,
	.rows = rows,
	.draw = draw,
	.subtitle = subtitle,
	.demand = demand,
	.missing = missing,
};
