// SPDX-License-Identifier: GPL-2.0-only
/* The menus of the table that has the focus: sort column, columns to show. */
#include <stdio.h>
#include <string.h>

#include "ui_priv.h"

static struct column_choice *focus_choice(struct ui *ui)
{
	if (ui_pane_has_focus(ui))
		return &ui->view.pane_columns[pane_index(ui->view.pane)];
	return &ui->view.list_columns[view_list(&ui->view)];
}

void ui_open_sort(struct ui *ui)
{
	struct table_ctx c;
	const struct field_list *l;
	const struct field *now;

	if (!ui_focus_table(ui, &c))
		return;
	menu_start(&ui->menu, "Sort by", false);
	l = field_list(c.def->table);
	now = table_sort_field(&c);
	for (size_t i = 0; i < l->n; i++) {
		if (l->field[i].flags & FIELD_JSON_ONLY)
			continue;
		if (&l->field[i] == now)
			ui->menu.cur = (int)ui->menu.n;
		menu_add(&ui->menu, l->field[i].title, l->field[i].help, &l->field[i] == now);
	}
	ui->mode = MODE_SORT;
}

static bool in_columns(const struct column *cols, size_t n, enum field_table t,
		       const struct field *f)
{
	for (size_t i = 0; i < n; i++)
		if (field_find(t, cols[i].field) == f)
			return true;
	return false;
}

/* The columns on screen now: what a window of this width leaves out is not "on". */
static size_t shown_columns(const struct ui *ui, const struct table_ctx *c, struct column *out)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	size_t n = table_columns(c, cols);

	if (!c->choice || !c->choice->n)
		n = layout_columns(cols, n, ui->cols, 0, place);
	else
		for (size_t i = 0; i < n; i++)
			place[i].col = (short)i;
	for (size_t i = 0; i < n; i++)
		out[i] = cols[place[i].col];
	return n;
}

static void fill_columns(struct ui *ui, const struct table_ctx *c)
{
	const struct field_list *l = field_list(c->def->table);
	struct column cols[VIEW_COLUMNS];
	size_t n = shown_columns(ui, c, cols);

	menu_start(&ui->menu, "Columns: space on/off, + - move, R as at first", true);
	for (size_t i = 0; i < n; i++) {
		const struct field *f = field_find(c->def->table, cols[i].field);

		menu_add(&ui->menu, f->title, f->help, true);
	}
	for (size_t i = 0; i < l->n; i++)
		if (!(l->field[i].flags & FIELD_JSON_ONLY) &&
		    !in_columns(cols, n, c->def->table, &l->field[i]))
			menu_add(&ui->menu, l->field[i].title, l->field[i].help, false);
}

void ui_open_columns(struct ui *ui)
{
	struct table_ctx c;

	if (!ui_focus_table(ui, &c))
		return;
	fill_columns(ui, &c);
	ui->mode = MODE_COLUMNS;
}

static void take_sort(struct ui *ui)
{
	struct table_ctx c;

	ui->mode = MODE_MAIN;
	if (!ui->menu.n || !ui_focus_table(ui, &c))
		return;
	snprintf(c.state->sort, sizeof(c.state->sort), "%s", ui->menu.item[ui->menu.cur].title);
	c.state->reverse = false;
}

static void take_columns(struct ui *ui)
{
	struct column_choice *ch = focus_choice(ui);

	ch->n = 0;
	for (size_t i = 0; i < ui->menu.n && ch->n < VIEW_COLUMNS; i++)
		if (ui->menu.item[i].on)
			snprintf(ch->title[ch->n++], sizeof(ch->title[0]), "%s",
				 ui->menu.item[i].title);
}

static void defaults(struct ui *ui)
{
	struct table_ctx c;

	focus_choice(ui)->n = 0;
	ui->mode = MODE_MAIN;
	if (ui_focus_table(ui, &c))
		fill_columns(ui, &c);
	ui->mode = MODE_COLUMNS;
}

static void columns_act(struct ui *ui, enum action a)
{
	switch (a) {
	case ACT_TOGGLE:
		if (ui->menu.n)
			ui->menu.item[ui->menu.cur].on = !ui->menu.item[ui->menu.cur].on;
		break;
	case ACT_MOVE_UP:
		menu_shift(&ui->menu, -1);
		break;
	case ACT_MOVE_DOWN:
		menu_shift(&ui->menu, 1);
		break;
	case ACT_DEFAULTS:
		defaults(ui);
		return;
	default:
		return;
	}
	take_columns(ui);
}

void ui_menu_act(struct ui *ui, enum action a)
{
	if (a == ACT_OPEN && ui->mode == MODE_SORT)
		take_sort(ui);
	else if (a == ACT_QUIT || a == ACT_BACK || a == ACT_OPEN)
		ui->mode = MODE_MAIN;
	else if (ui->mode == MODE_COLUMNS)
		columns_act(ui, a);
}
