// SPDX-License-Identifier: GPL-2.0-only
/* Rows of exits and accesses with their histogram over time; see exit_rows.h. */
#include "exit_rows.h"

#include <stdio.h>
#include <string.h>

#include "exit_fine.h"
#include "text.h"
#include "widget_graph.h"
#include "widget_heatmap.h"

#define DETAIL_FROM 9 /* lines that a pane needs before the detail is shown */
#define HEAT_MAX 13 /* lines below the table at most: shares, title, histogram */

static const struct snap_exits *selected_exits(const struct pane_ctx *c)
{
	if (c->vcpu)
		return &c->vcpu->ex;
	if (c->host)
		return &c->snap->host.ex;
	return c->vm ? &c->vm->ex : NULL;
}

static uint64_t row_id(const struct snap_exit *e)
{
	const uint64_t part[] = {e->kind, e->isa, e->key, e->dir, e->other};

	return row_id_of(part, sizeof(part) / sizeof(part[0]));
}

void exit_rows_add(const struct pane_ctx *c, enum kvm_kind kind, struct row_list *out)
{
	const struct snap_exits *ex = selected_exits(c);

	for (uint32_t i = 0; ex && i < ex->n; i++) {
		const struct snap_exit *e = &c->snap->exits[ex->first + i];
		const struct tally *t = c->view->totals ? &e->total : &e->now;

		if (e->kind != kind || (e->idle && c->view->no_idle) || !t->count)
			continue;
		if (row_list_add(out, e, row_id(e)) < 0)
			return;
	}
}

static const struct snap_exit *find_row(const struct snapshot *s, const struct snap_exits *ex,
					uint64_t id)
{
	for (uint32_t i = 0; ex && i < ex->n; i++)
		if (row_id(&s->exits[ex->first + i]) == id)
			return &s->exits[ex->first + i];
	return NULL;
}

/* The row of the same identity in another snapshot, of the same host, VM or vCPU; NULL: none. */
static const struct snap_exit *row_in(const struct snapshot *s, const struct pane_ctx *c,
				      uint64_t id)
{
	const struct snap_vm *vm = c->vm ? snap_vm_by_id(s, c->vm->id) : NULL;
	const struct snap_vcpu *v = c->vcpu ? snap_vcpu_by_id(s, c->vcpu->id) : NULL;
	const struct snap_exits *ex = c->vcpu ? (v ? &v->ex : NULL) : (vm ? &vm->ex : NULL);

	return find_row(s, c->host ? &s->host.ex : ex, id);
}

#define MAX_COLS EXIT_COLS

/* The first of the last snapshots that fit into the width. */
static size_t first_shown(const struct pane_ctx *c, int width)
{
	size_t n = c->at + 1, most = width < MAX_COLS ? (size_t)width : MAX_COLS;

	return n > most ? n - most : 0;
}

static bool draw_heat(const struct pane_ctx *c, const struct area *a, uint64_t id)
{
	const uint32_t *col[MAX_COLS];
	struct heatmap m = {.col = col, .n = 0};

	for (size_t i = first_shown(c, a->w); i <= c->at; i++) {
		const struct snapshot *s = history_at(c->history, i);
		const struct snap_exit *e = s ? row_in(s, c, id) : NULL;

		col[m.n++] = e ? e->heat : NULL;
	}
	return heatmap_draw(a, &m);
}

static struct graph_col rate_of(const struct pane_ctx *c, const struct snapshot *s, uint64_t id,
				enum kvm_kind kind)
{
	const struct snap_exit *e = s ? row_in(s, c, id) : NULL;
	struct graph_col g = {.known = s && s->open_kinds & KIND_BIT(kind)};

	if (e && value_has(e->now.rate))
		g.part[0] = e->now.rate.v;
	return g;
}

#define RATE_LABEL 8 /* columns left of a graph of rates */

static void draw_rate_graph(const struct area *a, const struct graph_col *col, size_t n)
{
	struct graph g = {.col = col, .n = n, .max = 1, .role = {ROLE_GUEST}};
	struct area part = area_sub(a, 0, RATE_LABEL, a->h, a->w - RATE_LABEL);
	char top[16];

	for (size_t i = 0; i < n; i++)
		if (col[i].part[0] > g.max)
			g.max = col[i].part[0];
	g.max = graph_ceiling(g.max);
	fmt_count(top, sizeof(top), value_known(g.max), 5);
	area_right(a, 0, 7, ROLE_DIM, top);
	area_right(a, a->h - 1, 7, ROLE_DIM, "0/s");
	graph_draw(&part, &g);
}

/* What cannot be timed has its rate over time instead. */
static void draw_rate(const struct pane_ctx *c, const struct area *a, uint64_t id,
		      enum kvm_kind kind)
{
	struct graph_col col[MAX_COLS];
	size_t n = 0;

	for (size_t i = first_shown(c, a->w - RATE_LABEL); i <= c->at; i++)
		col[n++] = rate_of(c, history_at(c->history, i), id, kind);
	draw_rate_graph(a, col, n);
}

/* The same in slices of the interval. */
static bool draw_fine(const struct area *a, const struct snap_exit *e, const struct fine *f)
{
	const struct heatmap m = {.col = f->col, .n = f->n};
	struct graph_col col[MAX_COLS];

	if (e->has_time)
		return heatmap_draw(a, &m);
	for (size_t i = 0; i < f->n; i++)
		col[i] = (struct graph_col){.known = f->known[i],
					    .part = {(double)f->count[i] * 1e9 / (double)f->ns}};
	draw_rate_graph(a, col, f->n);
	return true;
}

/* What the graph below draws; for times the histogram, and why there is none. */
static void draw_graph_title(const struct area *a, const struct snap_exit *e, const struct fine *f)
{
	char name[128], cut[64], ns[16], events[16];
	int x;

	text_escape(name, sizeof(name), e->name);
	text_cut_middle(cut, sizeof(cut), name, 30);
	area_fill(a, 0, 0, a->w, ROLE_FRAME, area_glyph(a, 0x2500, '-'));
	x = area_textf(a, 0, 1, ROLE_STRONG, " %s: ", cut);
	if (f) {
		fmt_ns(ns, sizeof(ns), value_known((double)f->ns), 6);
		fmt_count(events, sizeof(events), value_known((double)f->events), 6);
		x = area_textf(a, 0, x, ROLE_TEXT, "%s, %s a column ",
			       e->has_time ? "how long they took" : "rate", ns);
		x = area_textf(a, 0, x, f->lost ? ROLE_WARN : ROLE_DIM, "(%s events taken", events);
		if (f->lost)
			x = area_textf(a, 0, x, ROLE_WARN, ", %llu not",
				       (unsigned long long)f->lost);
		area_text(a, 0, x, f->lost ? ROLE_WARN : ROLE_DIM, ") ");
	} else if (e->has_time)
		area_text(a, 0, x, ROLE_TEXT, "how long they took, over time ");
	else if (a->w - x >= 62)
		area_text(a, 0, x, ROLE_TEXT,
			  "rate over time (no histogram: this KVM does not time it) ");
	else
		area_text(a, 0, x, ROLE_TEXT, "rate over time (not timed here) ");
}

static void draw_detail(const struct pane_ctx *c, const struct area *a, const struct table_row *row)
{
	const struct snap_exit *e = row->row;
	struct area graph = area_sub(a, 1, 0, a->h - 1, a->w);
	struct fine *f = exit_fine_new(c, e, e->has_time ? graph.w : graph.w - RATE_LABEL);
	char why[320];

	draw_graph_title(a, e, f);
	if (f && !draw_fine(&graph, e, f)) {
		area_text(&graph, 0, 1, ROLE_DIM, "no times of it yet");
	} else if (!f && exit_fine_asked(c)) {
		exit_fine_missing(c, why, sizeof(why));
		area_text(&graph, 0, 1, ROLE_NOTICE, why);
	}
	exit_fine_free(f);
	if (exit_fine_asked(c))
		return;
	if (!e->has_time)
		draw_rate(c, &graph, row->id, e->kind);
	else if (!draw_heat(c, &graph, row->id))
		area_text(&graph, 0, 1, ROLE_DIM, "no times of it yet");
}

/* Whose part of a row it is: a vCPU's, or on the host a VM's. */
struct share {
	const struct snap_vm *vm; /* NULL: of .vcpu */
	int vcpu;
	uint64_t count;
};

#define MAX_SHARES 64 /* no line has room for more */

struct shares {
	struct share share[MAX_SHARES]; /* the largest first */
	size_t n;
	uint64_t found; /* also of those that have no place here */
	uint64_t whole; /* the row's own count: VMs that are gone, keys that did not fit */
};

static uint64_t count_in(const struct pane_ctx *c, const struct snap_exits *ex, uint64_t id)
{
	const struct snap_exit *e = find_row(c->snap, ex, id);

	if (!e)
		return 0;
	return c->view->totals ? e->total.count : e->now.count;
}

static void add_share(struct shares *s, const struct share *one)
{
	size_t at = s->n < MAX_SHARES ? s->n : MAX_SHARES - 1;

	if (!one->count)
		return;
	s->found += one->count;
	if (s->n < MAX_SHARES)
		s->n++;
	else if (s->share[at].count >= one->count)
		return;
	for (; at && s->share[at - 1].count < one->count; at--)
		s->share[at] = s->share[at - 1];
	s->share[at] = *one;
}

static void collect_shares(const struct pane_ctx *c, uint64_t id, struct shares *out)
{
	const struct snapshot *s = c->snap;

	out->n = 0;
	out->found = 0;
	for (size_t i = 0; c->host && i < s->nvms; i++) {
		struct share one = {.vm = &s->vms[i], .count = count_in(c, &s->vms[i].ex, id)};

		add_share(out, &one);
	}
	for (uint32_t i = 0; c->vm && i < c->vm->vcpu_n; i++) {
		const struct snap_vcpu *v = &s->vcpus[c->vm->vcpu_first + i];
		struct share one = {.vcpu = v->index, .count = count_in(c, &v->ex, id)};

		add_share(out, &one);
	}
	out->whole = count_in(c, selected_exits(c), id);
	/* In `other` a vCPU may have what its VM has a row for. */
	if (out->whole < out->found)
		out->whole = out->found;
}

static int draw_share(const struct area *a, int x, const struct share *share, double pct)
{
	char safe[256], name[64];

	if (!share->vm)
		return area_textf(a, 0, x, ROLE_TEXT, "%d %.0f%%", share->vcpu, pct);
	text_escape(safe, sizeof(safe), share->vm->name);
	text_cut_middle(name, sizeof(name), safe, 20);
	return area_textf(a, 0, x, ROLE_TEXT, "%s %.0f%%", name, pct);
}

/*
 * "by vCPU: 3 72%  0 20%  1 8%"; of all VMs "by VM (rest 8%): web01 72%  db 20%".
 * Returns the lines it took: none for a vCPU, whose exits are all its own.
 */
static int draw_shares(const struct pane_ctx *c, const struct area *a, uint64_t id)
{
	char of_rest[24] = "";
	struct shares s;
	double rest;
	int x;

	if (c->vcpu)
		return 0;
	collect_shares(c, id, &s);
	if (!s.n)
		return 0;
	rest = 100.0 * (double)(s.whole - s.found) / (double)s.whole;
	if (rest >= 0.5)
		snprintf(of_rest, sizeof(of_rest), " (rest %.0f%%)", rest);
	x = area_textf(a, 0, 1, ROLE_DIM, "by %s%s:", c->host ? "VM" : "vCPU", of_rest);
	for (size_t i = 0; i < s.n && x < a->w; i++)
		x = draw_share(a, x + 2, &s.share[i],
			       100.0 * (double)s.share[i].count / (double)s.whole);
	return 1;
}

/* An exit that is still open is in no table yet: it is said above it. */
static int draw_open(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_exits *ex = selected_exits(c);
	char ns[16], name[64];

	if (!ex || !value_has(ex->open_ns) || ex->open_ns.v < 1e9)
		return 0;
	fmt_ns(ns, sizeof(ns), ex->open_ns, 8);
	text_escape(name, sizeof(name), ex->open);
	area_textf(a, 0, 1, ROLE_ALARM, "in exit %s (%s), not in the table until it ends", ns,
		   name);
	return 1;
}

/* %EXIT in its two parts, where there is room and they are known. */
static int draw_on_off(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_exits *ex = selected_exits(c);
	const struct snap_exit *first = c->rows->n ? c->rows->row[0].row : NULL;

	if (!ex || !value_has(ex->on_pct) || !value_has(ex->off_pct) || !first ||
	    first->kind != KIND_VMEXIT)
		return 0;
	area_textf(a, 0, 1, ROLE_DIM,
		   "in exits %.1f%% of the time: %s%.1f%% with a CPU, %.1f%% without", ex->pct.v,
		   ex->on_pct.state == VALUE_PARTIAL ? "~" : "", ex->on_pct.v, ex->off_pct.v);
	return 1;
}

static const struct table_row *selected_row(const struct pane_ctx *c)
{
	int at = c->rows->n ? table_selected(&c->table, c->rows) : -1;

	return at >= 0 ? &c->rows->row[at] : NULL;
}

void exit_rows_draw(const struct pane_ctx *c, const struct area *a)
{
	int top = draw_open(c, a), h = a->h - top, heat = 0;
	const struct table_row *row = selected_row(c);
	struct area part;

	if (h > DETAIL_FROM) {
		part = area_sub(a, top, 0, 1, a->w);
		top += draw_on_off(c, &part);
		h = a->h - top;
	}
	if (h >= DETAIL_FROM && row) {
		int spare = h - 1 - (int)c->rows->n - 1;

		heat = h / 2 > spare ? h / 2 : spare;
		heat = heat > HEAT_MAX ? HEAT_MAX : heat;
	}
	part = area_sub(a, top, 0, h - heat, a->w);
	pane_draw_table(c, &part);
	if (!heat)
		return;
	part = area_sub(a, top + h - heat, 0, 1, a->w);
	heat -= draw_shares(c, &part, row->id);
	part = area_sub(a, top + h - heat, 0, heat, a->w);
	if (c->view->detail == row->id)
		exit_code_draw(c, &part, row->row);
	else
		draw_detail(c, &part, row);
}

bool exit_rows_open(const struct pane_ctx *c, struct view *view)
{
	const struct table_row *row = selected_row(c);

	if (!row)
		return false;
	view->detail = view->detail == row->id ? 0 : row->id;
	return true;
}

void exit_rows_subtitle(const struct pane_ctx *c, enum kvm_kind kind, char *out, size_t size)
{
	/* The usual case, of the interval, is not said: the names of the other panes need the room.
	 */
	snprintf(out, size, "%s%s%s", field_kind_name(kind),
		 c->view->totals ? ", since start or reset" : "",
		 c->view->no_idle && kind == KIND_VMEXIT ? ", without idle" : "");
}

bool exit_rows_missing(const struct pane_ctx *c, enum kvm_kind kind, char *out, size_t size)
{
	if (c->rows->n)
		return false;
	if (!c->vm && c->view->level != LEVEL_HOST) {
		snprintf(out, size, "%s", pane_no_vm(c));
		return true;
	}
	if (!c->snap->open_kinds && pane_source_missing(c->snap, "kvm_events", out, size))
		return true;
	if (!c->vm && !c->host && c->snap->nvms) {
		snprintf(out, size,
			 "only VMs exit: select one, or (all), the first row, for all together");
		return true;
	}
	if (kind == KIND_VMEXIT && !c->snap->host.entry_exit) {
		snprintf(out, size,
			 "no kvm_exit seen yet: no guest has run, or this KVM fires none; e shows "
			 "userexit");
		return true;
	}
	if (!(c->snap->open_kinds & KIND_BIT(kind))) {
		if (pane_source_missing(c->snap, "overhead", out, size))
			return true;
		snprintf(out, size,
			 "opening the %s events: the first figures come with the next interval",
			 field_kind_name(kind));
		return true;
	}
	snprintf(out, size, "none in this interval");
	return true;
}
