// SPDX-License-Identifier: GPL-2.0-only
/* Rows of a table: which, in what order, and which of them is selected (widget_table.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "text.h"
#include "widget_table.h"

#define MAX_KEYS 4

int row_list_add(struct row_list *l, const void *row, uint64_t id)
{
	if (!grow(&l->row, l->n, &l->cap, sizeof(*l->row)))
		return -ENOMEM;
	l->row[l->n++] = (struct table_row){.row = row, .id = id};
	return 0;
}

void row_list_free(struct row_list *l)
{
	free(l->row);
	*l = (struct row_list){0};
}

/* FNV-1a, by words. */
uint64_t row_id_of(const uint64_t *part, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ part[i]) * 0x100000001b3u;
	return h ? h : 1;
}

const struct field *table_sort_field(const struct table_ctx *c)
{
	const struct field *f = NULL;

	if (c->state->sort[0])
		f = field_find(c->def->table, c->state->sort);
	for (size_t i = 0; !f && i < 3 && c->def->sort[i]; i++)
		f = field_find(c->def->table, c->def->sort[i]);
	return f;
}

static bool field_matches(const struct table_ctx *c, const struct field *f,
			  const struct table_row *r, const char *text)
{
	struct cell cell;
	char buf[512];

	if (f->unit != UNIT_TEXT && f->unit != UNIT_NUMBER)
		return false;
	cell = f->get(c->snap, r->row, c->totals);
	if (f->unit == UNIT_NUMBER) {
		if (!value_has(cell.v))
			return false;
		snprintf(buf, sizeof(buf), "%.0f", cell.v.v);
		return strcmp(buf, text) == 0;
	}
	text_escape(buf, sizeof(buf), cell.text ? cell.text : "");
	return strcasestr(buf, text) != NULL;
}

/* Text anywhere in a text field, or a number (PID, CPU) that is just this. */
static bool row_matches(const struct table_ctx *c, const struct table_row *r, const char *text)
{
	const struct field_list *l = field_list(c->def->table);

	for (size_t i = 0; i < l->n; i++)
		if (field_matches(c, &l->field[i], r, text))
			return true;
	return false;
}

static void apply_filter(const struct table_ctx *c, struct row_list *rows)
{
	size_t kept = 0;

	if (!c->filter || !*c->filter)
		return;
	for (size_t i = 0; i < rows->n; i++)
		if (row_matches(c, &rows->row[i], c->filter))
			rows->row[kept++] = rows->row[i];
	rows->n = kept;
}

struct order {
	const struct table_ctx *c;
	const struct field *key[MAX_KEYS];
	bool descending[MAX_KEYS];
	size_t n;
};

static void add_key(struct order *o, const struct field *f, bool reverse)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->key[i] == f)
			return;
	if (!f || o->n == MAX_KEYS)
		return;
	o->key[o->n] = f;
	o->descending[o->n++] = !(f->flags & FIELD_SORT_UP) != reverse;
}

static int compare(const void *x, const void *y, void *arg)
{
	const struct table_row *a = x, *b = y;
	const struct order *o = arg;

	if (a->first != b->first)
		return a->first ? -1 : 1;
	if (a->last != b->last)
		return a->last ? 1 : -1;
	for (size_t i = 0; i < o->n; i++) {
		int r = field_compare(o->key[i], o->c->snap, a->row, b->row, o->c->totals,
				      o->descending[i]);

		if (r)
			return o->descending[i] ? -r : r;
	}
	/* A fixed last word: rows that are equal must not dance from tick to tick. */
	return a->id < b->id ? -1 : a->id > b->id;
}

static void sort_rows(const struct table_ctx *c, struct row_list *rows)
{
	struct order o = {.c = c};

	add_key(&o, table_sort_field(c), c->state->reverse);
	for (size_t i = 0; i < 3 && c->def->sort[i]; i++)
		add_key(&o, field_find(c->def->table, c->def->sort[i]), false);
	if (rows->n > 1)
		qsort_r(rows->row, rows->n, sizeof(*rows->row), compare, &o);
}

int table_default(const struct row_list *rows)
{
	size_t i = 0;

	while (i + 1 < rows->n && rows->row[i].first)
		i++;
	return (int)i;
}

/* The selected row is gone: what stands in its place now is selected. */
void table_mend(const struct table_ctx *c, const struct row_list *rows)
{
	struct table_state *st = c->state;

	for (size_t i = 0; i < rows->n; i++) {
		if (rows->row[i].id == st->sel) {
			st->line = (int)i;
			return;
		}
	}
	if (!rows->n)
		return;
	if (st->sel == 0)
		st->line = table_default(rows);
	if (st->line >= (int)rows->n)
		st->line = (int)rows->n - 1;
	/* Before the first true interval there is no order yet that is worth holding on to. */
	if (st->sel != 0 || (c->snap->dt > 0 && !c->snap->first_rates))
		st->sel = rows->row[st->line].id;
}

void table_arrange(const struct table_ctx *c, struct row_list *rows)
{
	apply_filter(c, rows);
	sort_rows(c, rows);
	table_mend(c, rows);
}

int table_selected(const struct table_ctx *c, const struct row_list *rows)
{
	if (!rows->n)
		return -1;
	if (c->state->line < 0 || c->state->line >= (int)rows->n)
		return 0;
	return c->state->line;
}

static void select_line(const struct table_ctx *c, const struct row_list *rows, long line)
{
	c->state->line = (int)line;
	c->state->sel = rows->row[line].id;
	c->state->touched = true;
}

void table_move(const struct table_ctx *c, const struct row_list *rows, long by)
{
	long line = table_selected(c, rows);

	if (line < 0)
		return;
	if (by > (long)rows->n)
		by = (long)rows->n;
	if (by < -(long)rows->n)
		by = -(long)rows->n;
	line += by;
	if (line < 0)
		line = 0;
	if (line >= (long)rows->n)
		line = (long)rows->n - 1;
	select_line(c, rows, line);
}

bool table_search(const struct table_ctx *c, const struct row_list *rows, bool back)
{
	long n = (long)rows->n, at = table_selected(c, rows);

	if (!c->search || !*c->search)
		return false;
	for (long i = 1; i <= n; i++) {
		long line = back ? (at - i + n) % n : (at + i) % n;

		if (row_matches(c, &rows->row[line], c->search)) {
			select_line(c, rows, line);
			return true;
		}
	}
	return false;
}
