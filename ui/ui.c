// SPDX-License-Identifier: GPL-2.0-only
/* The screen as a whole: which snapshot is shown, where things go, who draws (ui.h). */
#include "ui.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "settings.h"
#include "text.h"
#include "ui_priv.h"

/* Intervals that a message stays on screen when no key takes it away. */
#define MESSAGE_TICKS 5
#define SLICE_LEAST (10 * NS_PER_MS)

/* A line that says nothing is most likely a slip: it is told at the start, which goes on. */
static void read_settings(struct ui *ui)
{
	struct settings_wrong wrong;
	char text[PATH_MAX + 160], more[40] = "";
	int bad = settings_read(ui->settings, &ui->view, &wrong);

	if (bad <= 0)
		return;
	if (bad > 1)
		snprintf(more, sizeof(more), ", and %d more line%s", bad - 1, bad > 2 ? "s" : "");
	snprintf(text, sizeof(text), "settings, line %d: '%s' is left out%s (%s)", wrong.line,
		 wrong.text, more, ui->settings);
	ui_message(ui, ROLE_WARN, text);
}

struct ui *ui_new(const struct ui_config *c)
{
	struct ui *ui = calloc(1, sizeof(*ui));

	if (!ui)
		return NULL;
	ui->cfg = *c;
	ui->rows = 24;
	ui->cols = 80;
	view_init(&ui->view);
	ui->view.slow_ns = c->slow_ns;
	ui->history = history_new(HISTORY_BYTES);
	ui->settings = c->settings ? strdup(c->settings) : NULL;
	if (!ui->history || (c->settings && !ui->settings)) {
		ui_free(ui);
		return NULL;
	}
	if (ui->settings)
		read_settings(ui);
	return ui;
}

void ui_free(struct ui *ui)
{
	if (!ui)
		return;
	snapshot_unref(ui->newest);
	snapshot_unref(ui->shown);
	history_free(ui->history);
	row_list_free(&ui->list_rows);
	row_list_free(&ui->pane_rows);
	row_list_free(&ui->task_rows);
	free(ui->settings);
	free(ui);
}

void ui_show(struct ui *ui, struct snapshot *s)
{
	/* Rows point into the one that goes; another may come to stand at its address. */
	ui->made.snap = NULL;
	ui->list_rows.n = ui->pane_rows.n = ui->task_rows.n = 0;
	snapshot_ref(s);
	snapshot_unref(ui->shown);
	ui->shown = s;
	ui->view.at = s->time;
}

/* Where vCPUs run and no kvm_exit comes, the pane Exits begins with what does come. */
static void choose_exit_kind(struct ui *ui, const struct snapshot *s)
{
	if (ui->exit_kind_chosen || s->dt <= 0 || !s->nvcpus)
		return;
	if (!(s->open_kinds & KIND_BIT(KIND_USEREXIT)) || s->host.entry_exit)
		return;
	ui->view.exit_kind = KIND_USEREXIT;
	ui->exit_kind_chosen = true;
}

void ui_snapshot(struct ui *ui, struct snapshot *s)
{
	choose_exit_kind(ui, s);
	snapshot_unref(ui->newest);
	ui->newest = snapshot_ref(s);
	history_push(ui->history, s);
	if (ui->view.paused && ui->shown)
		return;
	ui_show(ui, s);
	/* A message has been read by then; the keys are wanted back. */
	if (ui->message[0] && ++ui->message_age > MESSAGE_TICKS)
		ui->message[0] = '\0';
}

void ui_forget(struct ui *ui)
{
	struct history *none = history_new(HISTORY_BYTES);

	/* Without memory the old past stays, which is a fault of the graphs only. */
	if (!none)
		return;
	history_free(ui->history);
	ui->history = none;
}

void ui_playing(struct ui *ui, double speed)
{
	ui->speed = speed;
}

void ui_message(struct ui *ui, enum role role, const char *text)
{
	text_escape(ui->message, sizeof(ui->message), text);
	ui->message_age = 0;
	ui->message_role = role;
}

bool ui_sort(struct ui *ui, const char *column, bool reverse)
{
	bool known = !column;

	for (int i = 0; i < LIST_NR; i++) {
		struct table_state *st = &ui->view.list[i];
		const struct field *f = column ? field_find(list_defs[i].table, column) : NULL;

		st->reverse = reverse;
		if (!f)
			continue;
		snprintf(st->sort, sizeof(st->sort), "%s", f->title);
		known = true;
	}
	return known;
}

void ui_totals(struct ui *ui, bool on)
{
	ui->view.totals = on || ui->view.totals;
}

void ui_layout(const struct ui *ui, struct layout *out)
{
	const struct layout_in in = {
		.rows = ui->rows,
		.cols = ui->cols,
		.pane_shown = ui->view.pane_shown,
		.timeline = ui->nmoments > 0,
		.list_small = ui->view.level == LEVEL_VCPU,
	};

	layout_compute(&in, out);
}

bool ui_pane_has_focus(const struct ui *ui)
{
	struct layout l;

	ui_layout(ui, &l);
	if (!l.pane.h)
		return false;
	return ui->view.pane_focus || !l.list.h || ui->view.level == LEVEL_VCPU;
}

bool ui_symbols_have_focus(const struct ui *ui)
{
	return ui->view.pane == '4' && ui_pane_has_focus(ui);
}

char *ui_focus_filter(struct ui *ui)
{
	return ui_pane_has_focus(ui) ? ui->view.pane_filter : ui->view.filter;
}

static struct area sub(const struct area *a, const struct rect *r)
{
	return area_sub(a, r->y, r->x, r->h, r->w);
}

static void draw_tiny(const struct area *a)
{
	area_text(a, 0, 0, ROLE_WARN, "window too small");
	area_textf(a, 1, 0, ROLE_DIM, "%dx%d, need %dx%d", a->w, a->h, LAYOUT_MIN_COLS,
		   LAYOUT_MIN_ROWS);
}

static void draw_page(struct ui *ui, const struct area *a)
{
	struct page p = {.width = a->w};
	struct area text = area_sub(a, 1, 0, a->h - 1, a->w);

	area_clear(a, ROLE_TEXT);
	if (ui->mode == MODE_HELP) {
		help_draw_tabs(ui, a);
		help_page(ui, &p);
	} else {
		area_fill(a, 0, 0, a->w, ROLE_HEAD, ' ');
		area_text(a, 0, 1, ROLE_HEAD, "The row in full");
		info_page(ui, &p);
	}
	page_draw(&p, &text, &ui->page_top);
	page_free(&p);
}

static void draw_body(struct ui *ui, const struct area *all, const struct layout *l)
{
	struct rect body = {.y = l->list.y, .h = l->list.h + l->pane.h, .w = ui->cols};
	struct area a = sub(all, &body);

	switch (ui->mode) {
	case MODE_HELP:
	case MODE_INFO:
		draw_page(ui, &a);
		return;
	case MODE_SORT:
	case MODE_COLUMNS:
		menu_draw(&ui->menu, &a);
		return;
	case MODE_TASKS:
		ui_draw_tasks(ui, &a);
		return;
	case MODE_MAIN:
		break;
	}
	/* The list first: where its selection moved, the pane follows in the same picture. */
	a = sub(all, &l->list);
	ui_list_rows(ui);
	ui_draw_list(ui, &a);
	if (l->pane.h) {
		a = sub(all, &l->pane);
		ui_draw_pane(ui, &a);
	}
}

void ui_draw(struct ui *ui, struct surface *s)
{
	struct area all = area_all(s), a;
	struct layout l;

	surface_clear(s);
	ui->rows = s->rows;
	ui->cols = s->cols;
	ui_layout(ui, &l);
	if (l.tiny) {
		draw_tiny(&all);
		return;
	}
	a = sub(&all, &l.head);
	ui_draw_head(ui, &a);
	if (ui->shown)
		draw_body(ui, &all, &l);
	a = sub(&all, &l.timeline);
	ui_draw_timeline(ui, &a);
	a = sub(&all, &l.keys);
	ui_draw_keys(ui, &a);
}

/* What is opened or only selected: its exits are kept in detail, a row a vCPU. */
static void demand_selected(const struct ui *ui, struct demand *out)
{
	const struct view *v = &ui->view;
	uint64_t sel = v->list[view_list(v)].sel;
	const struct snap_vcpu *c;

	out->vm = v->vm;
	out->vcpu = v->vcpu;
	/* Above 32 bits it is the row "(other)" or "(all)". */
	if (!ui->shown || sel > UINT32_MAX)
		return;
	if (view_list(v) == LIST_VMS) {
		out->vm = (uint32_t)sel;
		return;
	}
	c = snap_vcpu_by_id(ui->shown, (uint32_t)sel);
	if (!c || v->level == LEVEL_VCPU)
		return;
	out->vcpu = c->id;
	out->vm = ui->shown->vms[c->vm].id;
}

static bool needs_samples(const char *title)
{
	static const char *const titles[] = {"HOT SYMBOL", "%HOT",    "SAMPLES", "%HOSTK",
					     "%HOSTU",	   "%GUESTK", "%GUESTU", "WHY"};

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (!strcmp(titles[i], title))
			return true;
	return false;
}

/* WHY is a symbol where that is the largest, HOT SYMBOL always; others where they were chosen. */
static bool list_wants_samples(const struct ui *ui)
{
	const struct column_choice *chosen = &ui->view.list_columns[view_list(&ui->view)];
	const struct table_def *d = &list_defs[view_list(&ui->view)];

	for (size_t i = 0; i < chosen->n; i++)
		if (needs_samples(chosen->title[i]))
			return true;
	for (size_t i = 0; !chosen->n && i < d->ncols; i++)
		if (needs_samples(d->cols[i].field) && ui->cols >= d->cols[i].from)
			return true;
	return false;
}

/* A tenth of the interval, but no time in which nothing can be seen, in ns. */
static int64_t slice_of(const struct ui *ui)
{
	double delay = ui->shown && ui->shown->delay_s > 0 ? ui->shown->delay_s : ui->cfg.delay_s;
	int64_t ns = (int64_t)(delay * (double)NS_PER_S) / 10;

	return ns > SLICE_LEAST ? ns : SLICE_LEAST;
}

void ui_demand(const struct ui *ui, struct demand *out)
{
	const struct view *v = &ui->view;
	const struct pane *p = pane_by_key(v->pane);
	struct layout l;

	ui_layout(ui, &l);
	memset(out, 0, sizeof(*out));
	out->kinds = KIND_BIT(KIND_VMEXIT);
	out->tasks = ui->mode == MODE_TASKS;
	out->pins = v->level != LEVEL_HOST || v->all_vcpus || ui->mode == MODE_INFO;
	out->samples = list_wants_samples(ui);
	out->slow_ns = v->slow_ns;
	out->slow_past = v->slow_ns > 0;
	out->slice_ns = slice_of(ui);
	demand_selected(ui, out);
	if (p && l.pane.h && p->demand)
		p->demand(v, out);
}
