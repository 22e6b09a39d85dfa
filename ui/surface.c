// SPDX-License-Identifier: GPL-2.0-only
/* Cells, and how text gets into them (surface.h). */
#include "surface.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static struct surf_cell *cells_new(int rows, int cols)
{
	return calloc((size_t)rows * (size_t)cols, sizeof(struct surf_cell));
}

struct surface *surface_new(int rows, int cols)
{
	struct surface *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (surface_resize(s, rows, cols) < 0) {
		free(s);
		return NULL;
	}
	return s;
}

void surface_free(struct surface *s)
{
	if (!s)
		return;
	free(s->cell);
	free(s);
}

int surface_resize(struct surface *s, int rows, int cols)
{
	struct surf_cell *cell;

	rows = rows < 1 ? 1 : rows;
	cols = cols < 1 ? 1 : cols;
	cell = cells_new(rows, cols);
	if (!cell)
		return -ENOMEM;
	free(s->cell);
	s->cell = cell;
	s->rows = rows;
	s->cols = cols;
	surface_clear(s);
	return 0;
}

void surface_clear(struct surface *s)
{
	for (int i = 0; i < s->rows * s->cols; i++)
		s->cell[i] = (struct surf_cell){.cp = ' ', .width = 1, .role = ROLE_TEXT};
	s->cur_y = s->cur_x = -1;
}

static void dump_cp(FILE *to, uint32_t cp)
{
	if (cp < 0x80) {
		fputc((int)cp, to);
	} else if (cp < 0x800) {
		fputc((int)(0xc0 | cp >> 6), to);
		fputc((int)(0x80 | (cp & 0x3f)), to);
	} else if (cp < 0x10000) {
		fputc((int)(0xe0 | cp >> 12), to);
		fputc((int)(0x80 | (cp >> 6 & 0x3f)), to);
		fputc((int)(0x80 | (cp & 0x3f)), to);
	} else {
		fputc((int)(0xf0 | cp >> 18), to);
		fputc((int)(0x80 | (cp >> 12 & 0x3f)), to);
		fputc((int)(0x80 | (cp >> 6 & 0x3f)), to);
		fputc((int)(0x80 | (cp & 0x3f)), to);
	}
}

void surface_dump(const struct surface *s, FILE *to)
{
	for (int y = 0; y < s->rows; y++) {
		const struct surf_cell *row = s->cell + (ptrdiff_t)y * s->cols;
		int end = s->cols;

		while (end > 0 && row[end - 1].cp == ' ' && row[end - 1].width == 1)
			end--;
		for (int x = 0; x < end; x++) {
			if (row[x].width == 0)
				continue;
			dump_cp(to, row[x].cp);
			if (row[x].mark)
				dump_cp(to, row[x].mark);
		}
		fputc('\n', to);
	}
}

void surface_dump_roles(const struct surface *s, FILE *to)
{
	for (int y = 0; y < s->rows; y++) {
		const struct surf_cell *row = s->cell + (ptrdiff_t)y * s->cols;

		for (int x = 0; x < s->cols; x++)
			fputc(theme_role_letter(row[x].role, row[x].attr), to);
		fputc('\n', to);
	}
}

struct area area_all(struct surface *s)
{
	return (struct area){.s = s, .h = s->rows, .w = s->cols};
}

struct area area_sub(const struct area *a, int y, int x, int h, int w)
{
	int y1 = y + h, x1 = x + w;

	y = y < 0 ? 0 : y;
	x = x < 0 ? 0 : x;
	y1 = y1 > a->h ? a->h : y1;
	x1 = x1 > a->w ? a->w : x1;
	return (struct area){
		.s = a->s,
		.y = a->y + y,
		.x = a->x + x,
		.h = y1 > y ? y1 - y : 0,
		.w = x1 > x ? x1 - x : 0,
	};
}

static struct surf_cell *cell_at(const struct area *a, int y, int x)
{
	if (y < 0 || x < 0 || y >= a->h || x >= a->w)
		return NULL;
	y += a->y;
	x += a->x;
	if (y < 0 || x < 0 || y >= a->s->rows || x >= a->s->cols)
		return NULL;
	return a->s->cell + (ptrdiff_t)y * a->s->cols + x;
}

/* A cell is about to be overwritten: the other half of a wide character goes blank. */
static void split_wide(const struct area *a, struct surf_cell *c)
{
	const struct surf_cell *end = a->s->cell + (ptrdiff_t)a->s->rows * a->s->cols;
	struct surf_cell *other = NULL;

	if (c->width == 0 && c > a->s->cell)
		other = c - 1;
	else if (c->width == 2 && c + 1 < end)
		other = c + 1;
	if (!other)
		return;
	other->cp = ' ';
	other->mark = 0;
	other->width = 1;
}

static void set_cell(const struct area *a, struct surf_cell *c, uint32_t cp, int width,
		     enum role role)
{
	split_wide(a, c);
	*c = (struct surf_cell){.cp = cp, .width = (uint8_t)width, .role = (uint8_t)role};
}

int area_put(const struct area *a, int y, int x, enum role role, uint32_t cp)
{
	struct surf_cell *c, *right;
	int w;

	if (cp < 0x20 || (cp >= 0x7f && cp <= 0x9f))
		cp = '?';
	c = cell_at(a, y, x);
	if (cp < 0x7f && c && c->width == 1) { /* nearly all of them */
		*c = (struct surf_cell){.cp = cp, .width = 1, .role = (uint8_t)role};
		return 1;
	}
	w = utf8_width_cp(cp);
	if (w == 0) {
		/* It belongs to the character before; there is room for one. */
		c = cell_at(a, y, x - 1);
		if (c && c->width == 0)
			c = cell_at(a, y, x - 2);
		if (c && !c->mark && c->cp != ' ')
			c->mark = cp;
		return 0;
	}
	right = w == 2 ? cell_at(a, y, x + 1) : NULL;
	if (w == 2 && (!c || !right)) {
		if (c)
			set_cell(a, c, ' ', 1, role);
		if (right)
			set_cell(a, right, ' ', 1, role);
		return w;
	}
	if (!c)
		return w;
	split_wide(a, c);
	if (right) {
		split_wide(a, right);
		*right = (struct surf_cell){.role = (uint8_t)role};
	}
	*c = (struct surf_cell){.cp = cp, .width = (uint8_t)w, .role = (uint8_t)role};
	return w;
}

int area_text(const struct area *a, int y, int x, enum role role, const char *text)
{
	uint32_t cp;

	while (*text) {
		text += utf8_next(text, &cp);
		x += area_put(a, y, x, role, cp);
	}
	return x;
}

int area_textf(const struct area *a, int y, int x, enum role role, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return area_text(a, y, x, role, text);
}

int area_text_cut(const struct area *a, int y, int x, enum role role, const char *text)
{
	int end = area_text(a, y, x, role, text);

	if (end > a->w)
		area_put(a, y, a->w - 1, ROLE_FRAME, '~');
	return end;
}

int area_right(const struct area *a, int y, int end, enum role role, const char *text)
{
	int x = end - (int)utf8_width(text);

	area_text(a, y, x, role, text);
	return x;
}

void area_fill(const struct area *a, int y, int x, int w, enum role role, uint32_t cp)
{
	int end = x + w > a->w ? a->w : x + w;

	for (x = x < 0 ? 0 : x; x < end; x++)
		area_put(a, y, x, role, cp);
}

void area_clear(const struct area *a, enum role role)
{
	for (int y = 0; y < a->h; y++)
		area_fill(a, y, 0, a->w, role, ' ');
}

void area_attr(const struct area *a, int y, int x, int w, unsigned attr)
{
	int end = x + w > a->w ? a->w : x + w;

	for (x = x < 0 ? 0 : x; x < end; x++) {
		struct surf_cell *c = cell_at(a, y, x);

		if (c)
			c->attr |= (uint8_t)attr;
	}
}

uint32_t area_glyph(const struct area *a, uint32_t cp, char ascii)
{
	return a->s->ascii ? (unsigned char)ascii : cp;
}

void area_cursor(const struct area *a, int y, int x)
{
	if (!cell_at(a, y, x))
		return;
	a->s->cur_y = a->y + y;
	a->s->cur_x = a->x + x;
}
