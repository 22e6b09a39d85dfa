// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pane 8: what guests do with their PMUs: why a counter may lie on this host, the PMU of the
 * selected counter's vCPU, and a row a counter with what it counts and why it does not.
 */
#include <stdio.h>

#include "page.h"
#include "pane.h"
#include "text.h"

static const struct column cols[] = {
	{.field = "vcpu", .width = 4},
	{.field = "counter", .width = 6, .gap = 1},
	{.field = "event", .width = 16, .gap = 1},
	{.field = "mode", .width = 15, .gap = 1, .drop = 5},
	{.field = "select", .width = 12, .gap = 1, .from = 132, .drop = 1},
	{.field = "enabled", .width = 4, .gap = 1},
	{.field = "value", .width = 6, .gap = 1, .drop = 4},
	{.field = "events_per_s", .width = 7, .gap = 1, .from = 100, .drop = 2},
	{.field = "host_event", .width = 8, .gap = 1, .from = 118, .drop = 2},
	{.field = "running_pct", .width = 5, .gap = 1, .from = 100, .drop = 3},
	{.field = "msr_per_s", .width = 6, .gap = 1, .from = 88, .drop = 2},
	{.field = "note", .width = 17, .gap = 1, .grow = true, .drop = 6},
};

static const struct table_def def = {
	.id = "pmu",
	.title = "PMU",
	.table = TABLE_PMU,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"vcpu", "counter"},
};

/* The same in every snapshot: the vCPU's number is never used again. */
static uint64_t row_id(const struct pane_ctx *c, const struct snap_pmc *x)
{
	return (uint64_t)c->snap->vcpus[x->vcpu].id << 9 | (uint64_t)x->fixed << 8 | x->nr;
}

static bool is_of(const struct pane_ctx *c, const struct snap_pmc *x)
{
	return c->vcpu ? &c->snap->vcpus[x->vcpu] == c->vcpu
		       : c->vm && &c->snap->vms[x->vm] == c->vm;
}

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	for (size_t i = 0; i < c->snap->npmcs; i++) {
		const struct snap_pmc *x = &c->snap->pmcs[i];

		if (is_of(c, x) && row_list_add(out, x, row_id(c, x)) < 0)
			return;
	}
}

/* Of the selected counter, else the one that the pane is of. */
static const struct snap_vcpu *vcpu_of(const struct pane_ctx *c)
{
	const struct snap_pmc *x = pane_selected(c);

	if (x)
		return &c->snap->vcpus[x->vcpu];
	if (c->vcpu)
		return c->vcpu;
	return c->vm && c->vm->vcpu_n ? &c->snap->vcpus[c->vm->vcpu_first] : NULL;
}

/* Its registers, and where all comes from, have a line of their own where one is too short. Returns
 * how many lines it took. */
static int draw_vcpu(const struct area *a, int y, const struct snap_vcpu *v)
{
	const char *global = v->pmu.global ? v->pmu.global : "";
	int x = area_textf(a, y, 0, ROLE_STRONG, "vCPU %d", v->index), lines = 1;

	x = area_text(a, y, x + 2, ROLE_TEXT, v->pmu.what);
	if (x + (int)(utf8_width(global) + utf8_width(v->pmu.source)) + 4 > a->w && a->h > 9) {
		x = 0;
		y++;
		lines++;
	}
	if (*global)
		x = area_text(a, y, x + 2, ROLE_DIM, global);
	area_text(a, y, x + 2, ROLE_DIM, v->pmu.source);
	return lines;
}

/* The counter whose note is told in full: the selected one, else the first that is wrong. */
static const struct snap_pmc *noted(const struct pane_ctx *c)
{
	const struct snap_pmc *x = pane_selected(c);

	if (x && x->note && x->note[0])
		return x;
	for (size_t i = 0; i < c->rows->n; i++) {
		const struct snap_pmc *other = c->rows->row[i].row;

		if (other && other->wrong)
			return other;
	}
	return NULL;
}

/* Below the table, where there is room. Returns how many lines it took. */
static int draw_note(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_pmc *x = a->h > (int)c->rows->n + 2 || a->h > 7 ? noted(c) : NULL;
	char text[240];

	if (!x || !c->snap->vcpus)
		return 0;
	snprintf(text, sizeof(text), "vCPU %d, %s: %s", c->snap->vcpus[x->vcpu].index, x->counter,
		 x->note);
	return pane_draw_reason(a, text, "");
}

/* In two lines where one is too short, and there is room. Returns how many. */
static int draw_why(const struct area *a, const char *why)
{
	struct page p = {.width = a->w + 1}; /* to the right it may touch the edge */
	struct area part = area_sub(a, 0, 0, 2, a->w);
	int top = 0;

	if ((int)utf8_width(why) <= a->w || a->h < 9) {
		area_text(a, 0, 0, ROLE_NOTICE, why);
		return 1;
	}
	page_add(&p, ROLE_NOTICE, NULL, ROLE_NOTICE, why);
	page_draw(&p, &part, &top);
	page_free(&p);
	return 2;
}

static void draw(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_vcpu *v = vcpu_of(c);
	struct area part;
	int y = 0, below;

	if (a->h > 3 && c->snap->host.pmu_why && c->snap->host.pmu_why[0])
		y += draw_why(a, c->snap->host.pmu_why);
	if (a->h > 4 && v && v->pmu.source && v->pmu.source[0])
		y += draw_vcpu(a, y, v);
	part = area_sub(a, y, 0, a->h - y, a->w);
	below = draw_note(c, &part);
	part = area_sub(a, y, 0, a->h - y - below, a->w);
	pane_draw_table(c, &part);
}

static void demand(const struct view *v, struct demand *d)
{
	(void)v;
	d->pmu = true;
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	const struct snap_pmu *p = c->vcpu ? &c->vcpu->pmu : c->vm ? &c->vm->pmu : NULL;
	char rate[16], pct[16];

	if (!p || !value_has(p->accesses))
		return;
	fmt_count(rate, sizeof(rate), p->accesses, 6);
	if (!value_has(p->pct)) {
		snprintf(out, size, "%s MSR exits/s", rate);
		return;
	}
	fmt_pct(pct, sizeof(pct), p->pct, 5);
	snprintf(out, size, "%s MSR exits/s, %s%% of the time", rate, pct);
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	const struct snap_vcpu *v = vcpu_of(c);
	const char *why = c->snap->host.pmu_why;

	if (c->rows->n)
		return false;
	if (!c->vm) {
		snprintf(out, size, "%s",
			 c->host ? "select one VM to see its PMUs" : pane_no_vm(c));
		return true;
	}
	if (v && v->pmu.source && v->pmu.source[0])
		snprintf(out, size, "the guest has not touched its PMU since kvmtop looks%s%s",
			 why && why[0] ? "; " : "", why && why[0] ? why : "");
	else if (!pane_source_missing(c->snap, "vpmu", out, size))
		snprintf(out, size, "%s", value_why_text(WHY_NOT_ASKED));
	return true;
}

const struct pane pane_pmu = {
	.key = '8',
	.id = "pmu",
	.title = "PMU",
	.help = "the counters of guests' PMUs: what they count, and why one does not",
	.table = &def,
	.rows = rows,
	.draw = draw,
	.subtitle = subtitle,
	.demand = demand,
	.missing = missing,
};
