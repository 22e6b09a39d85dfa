// SPDX-License-Identifier: GPL-2.0-only
/* The generic table: columns, cells, drawing (widget_table.h); its order is in table_order.c. */
#include "widget_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

#define CELL_TEXT 512

static const struct column *default_column(const struct table_def *d, const struct field *f)
{
	for (size_t i = 0; i < d->ncols; i++)
		if (field_find(d->table, d->cols[i].field) == f)
			return &d->cols[i];
	return NULL;
}

/* A chosen column is always shown: what the window has no room for is scrolled to. */
static struct column chosen_column(const struct table_def *d, const struct field *f)
{
	const struct column *def = default_column(d, f);
	struct column c = {.field = f->title, .width = f->width, .gap = 1};

	if (def) {
		c = *def;
		c.from = c.below = c.drop = 0;
	}
	return c;
}

static struct column with_width(struct column c, const struct field *f)
{
	if (!c.width)
		c.width = f->width;
	return c;
}

size_t table_columns(const struct table_ctx *c, struct column *out)
{
	const struct table_def *d = c->def;
	size_t n = 0;

	if (c->choice && c->choice->n) {
		for (size_t i = 0; i < c->choice->n && n < VIEW_COLUMNS; i++) {
			const struct field *f = field_find(d->table, c->choice->title[i]);

			if (f)
				out[n++] = with_width(chosen_column(d, f), f);
		}
		if (n)
			return n;
	}
	for (size_t i = 0; i < d->ncols && n < VIEW_COLUMNS; i++) {
		const struct column *col = &d->cols[i];
		const struct field *f = field_find(d->table, col->field);

		if (f && !(col->instead && field_find(d->table, col->instead)))
			out[n++] = with_width(*col, f);
	}
	return n;
}

/* Whether a cell has nothing to say: a synthetic row has no vCPUs or PID, not 0 of them. */
static bool is_blank(const struct table_row *r, const struct field *f, const struct cell *cell)
{
	return (r->last || (r->first && f->unit == UNIT_NUMBER)) && value_has(cell->v) &&
	       cell->v.v == 0;
}

static void format_figure(const struct field *f, struct value v, int width, char *out, size_t size)
{
	switch (f->unit) {
	case UNIT_PCT:
		fmt_pct(out, size, v, width);
		break;
	case UNIT_NS:
		fmt_ns(out, size, v, width);
		break;
	case UNIT_NUMBER:
		if (value_has(v))
			snprintf(out, size, "%.0f", v.v);
		else
			fmt_count(out, size, v, width);
		break;
	case UNIT_KB:
		if (value_has(v))
			v.v *= 1024;
		fmt_count(out, size, v, width);
		break;
	default:
		fmt_count(out, size, v, width);
	}
}

/* The second field of a cell: "@3" or " 41%"; "" where it is not known. */
static void format_also(const struct table_ctx *c, const struct column *col,
			const struct table_row *r, char *out, size_t size)
{
	const struct field *f = col->also ? field_find(c->def->table, col->also) : NULL;
	struct cell cell;

	out[0] = '\0';
	if (!f)
		return;
	cell = f->get(c->snap, r->row, c->totals);
	if (!value_has(cell.v) || cell.v.v < 0)
		return;
	if (col->join == '@')
		snprintf(out, size, "@%.0f", cell.v.v);
	else
		snprintf(out, size, " %.0f%%", cell.v.v);
}

/* "ceph-osd 22%" is a name and its share: where it must be cut, the name is. */
static void split_share(char *text, char *also, size_t size)
{
	char *blank = strrchr(text, ' ');
	size_t n;

	if (!blank || blank == text)
		return;
	n = strspn(blank + 1, "0123456789");
	if (!n || n > 3 || strcmp(blank + 1 + n, "%") != 0)
		return;
	snprintf(also, size, "%s", blank);
	*blank = '\0';
}

/* As many whole words as there is room for, and a mark where there are more. */
static void cut_words(char *out, size_t size, const char *text, size_t width)
{
	size_t end = 0;

	text_cut_middle(out, size, text, width);
	if (utf8_width(text) <= width)
		return;
	for (const char *p = strchr(text, ' '); p; p = strchr(p + 1, ' ')) {
		snprintf(out, size, "%.*s", (int)(p - text), text);
		if (utf8_width(out) + 2 > width)
			break;
		end = (size_t)(p - text);
	}
	if (end)
		snprintf(out, size, "%.*s ~", (int)end, text);
	else
		text_cut_middle(out, size, text, width);
}

static void text_cell(const struct table_ctx *c, const struct field *f, const struct column *col,
		      const struct cell *cell, const struct table_row *r, int width, char *out,
		      size_t size)
{
	char safe[CELL_TEXT], also[24], cut[CELL_TEXT];
	int room;

	text_escape(safe, sizeof(safe), cell->text ? cell->text : "");
	format_also(c, col, r, also, sizeof(also));
	if (!also[0])
		split_share(safe, also, sizeof(also));
	if (!safe[0])
		also[0] = '\0';
	room = width - (int)strlen(also) - (cell->mark ? 1 : 0);
	room = room > 0 ? room : 0;
	if (f->flags & FIELD_WORDS)
		cut_words(cut, sizeof(cut), safe, (size_t)room);
	else
		text_cut_middle(cut, sizeof(cut), safe, (size_t)room);
	snprintf(out, size, "%s%s", cut, also);
	if (cell->mark && strlen(out) + 2 < size)
		strncat(out, (char[]){cell->mark, '\0'}, 2);
}

static char mark_of(const struct field *f, const struct cell *cell)
{
	if (cell->mark)
		return cell->mark;
	if (f->warn > 0 && value_has(cell->v) && cell->v.v >= f->warn)
		return '!';
	return 0;
}

static void figure_cell(const struct table_ctx *c, const struct field *f, const struct column *col,
			const struct cell *cell, const struct table_row *r, int width, char *out,
			size_t size)
{
	char mark[2] = {mark_of(f, cell), '\0'};
	char figure[64], also[24];
	int room;

	format_also(c, col, r, also, sizeof(also));
	if (!value_has(cell->v))
		also[0] = '\0';
	room = width - (int)strlen(also) - (int)strlen(mark);
	format_figure(f, cell->v, room > 1 ? room : 1, figure, sizeof(figure));
	/* "60.2@3q" would read as a vCPU's name. */
	if (mark[0] == 'q')
		snprintf(out, size, "%s%s%s", figure, mark, also);
	else
		snprintf(out, size, "%s%s%s", figure, also, mark);
}

static enum role cell_role(const struct field *f, const struct cell *cell, bool first)
{
	if (f->unit == UNIT_TEXT)
		return first ? ROLE_STRONG : ROLE_TEXT;
	if (!value_has(cell->v))
		return ROLE_DIM;
	if (cell->mark == 'q' && f->warn > 0 && cell->v.v >= f->warn)
		return ROLE_QUOTA;
	return theme_level(cell->v.v, f->warn, f->alarm);
}

static void make_cell(const struct table_ctx *c, const struct field *f, const struct column *col,
		      const struct table_row *r, int width, char *out, size_t size, enum role *role)
{
	struct cell cell = f->get(c->snap, r->row, c->totals);

	*role = cell_role(f, &cell, false);
	if (f->unit == UNIT_TEXT) {
		text_cell(c, f, col, &cell, r, width, out, size);
	} else if (is_blank(r, f, &cell)) {
		snprintf(out, size, "-");
		*role = ROLE_DIM;
	} else {
		figure_cell(c, f, col, &cell, r, width, out, size);
	}
}

void table_cell(const struct table_ctx *c, const struct field *f, const struct table_row *r,
		int width, char *out, size_t size, enum role *role)
{
	const struct column *def = default_column(c->def, f);
	const struct column plain = {.field = f->title};

	make_cell(c, f, def ? def : &plain, r, width, out, size, role);
}

static void draw_head(const struct table_ctx *c, const struct area *a, const struct column *cols,
		      const struct column_place *place, size_t n)
{
	const struct field *sort = table_sort_field(c);
	bool up = sort && !!(sort->flags & FIELD_SORT_UP) != c->state->reverse;

	area_fill(a, 0, 0, a->w, ROLE_HEAD, ' ');
	if (c->state->hscroll > 0)
		area_put(a, 0, 0, ROLE_HEAD, '<');
	for (size_t i = 0; i < n; i++) {
		const struct field *f = field_find(c->def->table, cols[place[i].col].field);
		bool on = f == sort;
		enum role role = on ? ROLE_HEAD_SORT : ROLE_HEAD;
		int x = place[i].x, end = x + place[i].w, w = f ? (int)utf8_width(f->title) : 0;

		if (!f)
			continue;
		if (f->unit != UNIT_TEXT)
			/* It may use the gap, not what the column before shows. */
			x = end - (w <= place[i].w + cols[place[i].col].gap ? w : place[i].w);
		else if (w > place[i].w && i + 1 < n)
			w = place[i].w;
		if (on)
			area_put(a, 0, x - 1, role,
				 up ? area_glyph(a, 0x25b4, '^') : area_glyph(a, 0x25be, 'v'));
		area_textf(a, 0, x, role, "%.*s", end - x < w ? end - x : w, f->title);
	}
}

/* Marks what a search found in a cell that was just drawn at x. */
static void mark_match(const struct table_ctx *c, const struct area *a, int y, int x,
		       const char *text)
{
	const char *hit = c->search && *c->search ? strcasestr(text, c->search) : NULL;
	char before[CELL_TEXT];

	if (!hit)
		return;
	snprintf(before, sizeof(before), "%.*s", (int)(hit - text), text);
	area_attr(a, y, x + (int)utf8_width(before), (int)utf8_width(c->search), CELL_MATCH);
}

static void draw_row(const struct table_ctx *c, const struct area *a, int y,
		     const struct table_row *r, const struct column *cols,
		     const struct field *const *field, const struct column_place *place, size_t n)
{
	char text[CELL_TEXT];

	for (size_t i = 0; i < n; i++) {
		const struct column *col = &cols[place[i].col];
		const struct field *f = field[i];
		int x = place[i].x, w = place[i].w;
		enum role role;

		make_cell(c, f, col, r, w, text, sizeof(text), &role);
		if (i == 0 && role == ROLE_TEXT)
			role = ROLE_STRONG;
		if (r->last)
			role = ROLE_DIM;
		if (f->unit == UNIT_TEXT) {
			area_text(a, y, x, role, text);
			mark_match(c, a, y, x, text);
		} else {
			area_right(a, y, x + w, role, text);
		}
	}
}

static void scroll_to(struct table_state *st, int line, int height, size_t n)
{
	if (line < st->top)
		st->top = line;
	if (line >= st->top + height)
		st->top = line - height + 1;
	if (st->top > (int)n - height)
		st->top = (int)n - height;
	if (st->top < 0)
		st->top = 0;
}

void table_draw(const struct table_ctx *c, const struct area *a, const struct row_list *rows)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	const struct field *field[VIEW_COLUMNS]; /* of the placed ones */
	size_t n = table_columns(c, cols), placed;
	int line = table_selected(c, rows), height = a->h - 1;

	if (a->h < 1 || n == 0)
		return;
	if (c->state->hscroll > layout_last_scroll(cols, n, a->w))
		c->state->hscroll = layout_last_scroll(cols, n, a->w);
	placed = layout_columns(cols, n, a->w, c->state->hscroll, place);
	draw_head(c, a, cols, place, placed);
	if (height < 1)
		return;
	/* A selection that nobody made does not pull the worst rows off the screen. */
	if (!c->state->touched && line >= height) {
		line = c->state->line = table_default(rows);
		c->state->sel = rows->row[line].id;
	}
	scroll_to(c->state, line < 0 ? 0 : line, height, rows->n);
	for (size_t i = 0; i < placed; i++)
		field[i] = field_find(c->def->table, cols[place[i].col].field);
	for (int y = 0; y < height && c->state->top + y < (int)rows->n; y++) {
		int at = c->state->top + y;

		draw_row(c, a, y + 1, &rows->row[at], cols, field, place, placed);
		if (at == line)
			area_attr(a, y + 1, 0, a->w, c->focused ? CELL_SELECTED : CELL_BLURRED);
	}
}

const struct field *table_hidden_sort(const struct table_ctx *c, int width)
{
	const struct field *sort = table_sort_field(c);
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	size_t n = table_columns(c, cols), placed;

	placed = layout_columns(cols, n, width, c->state->hscroll, place);
	for (size_t i = 0; i < placed; i++)
		if (field_find(c->def->table, cols[place[i].col].field) == sort)
			return NULL;
	return sort;
}

void table_sort_step(const struct table_ctx *c, int width, bool left)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	size_t n = table_columns(c, cols), placed, at = 0;
	const struct field *now = table_sort_field(c), *next;

	placed = layout_columns(cols, n, width, c->state->hscroll, place);
	if (!placed)
		return;
	while (at < placed && field_find(c->def->table, cols[place[at].col].field) != now)
		at++;
	if (at == placed)
		at = left ? 0 : placed - 1;
	at = (at + (left ? placed - 1 : 1)) % placed;
	next = field_find(c->def->table, cols[place[at].col].field);
	snprintf(c->state->sort, sizeof(c->state->sort), "%s", next->title);
	c->state->reverse = false;
}
