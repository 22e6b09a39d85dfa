// SPDX-License-Identifier: GPL-2.0-only
/*
 * A surface of cells that panes draw into: the screen before it is one.
 *
 * A cell has a character, a role (theme.h says what colour that is) and attributes. Everything
 * outside an area is cut off, a wide character never halved. Tests read surfaces; only
 * term_ncurses.c turns one into a screen.
 */
#ifndef KVMTOP_SURFACE_H
#define KVMTOP_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "theme.h"

struct surf_cell {
	uint32_t cp;
	uint32_t mark; /* one combining character, 0 none */
	uint8_t width; /* 1, 2, or 0: the right half of a wide one */
	uint8_t role; /* enum role */
	uint8_t attr; /* enum cell_attr */
	uint8_t none; /* always 0: cells that are equal are so in each byte */
};

struct surface {
	int rows, cols;
	struct surf_cell *cell; /* rows × cols */
	int cur_y, cur_x; /* the cursor; -1: hidden */
	bool ascii; /* the terminal is not UTF-8: draw lines and graphs with ASCII */
};

/* A part of a surface; coordinates below are relative to it. Copied freely. */
struct area {
	struct surface *s;
	int y, x, h, w;
};

struct surface *surface_new(int rows, int cols); /* NULL: no memory; sizes below 1 become 1 */
void surface_free(struct surface *s);
/* Another size; what was drawn is lost. -ENOMEM leaves it as it was. */
int surface_resize(struct surface *s, int rows, int cols);
void surface_clear(struct surface *s);
/* Plain text, blanks at the end of a line left out; the same with a letter a role. */
void surface_dump(const struct surface *s, FILE *to);
void surface_dump_roles(const struct surface *s, FILE *to);

struct area area_all(struct surface *s);
/* A part of an area, cut to it; it may come out empty (h or w 0). */
struct area area_sub(const struct area *a, int y, int x, int h, int w);

/*
 * Writes text (already escaped: what is still a control character becomes '?') and returns
 * the column after it, as if nothing had been cut.
 */
int area_text(const struct area *a, int y, int x, enum role role, const char *text);
int area_textf(const struct area *a, int y, int x, enum role role, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* The same with ~ in the area's last column where the text was cut. */
int area_text_cut(const struct area *a, int y, int x, enum role role, const char *text);
/* Writes text so that it ends before column `end`. Returns its first column. */
int area_right(const struct area *a, int y, int end, enum role role, const char *text);
/* One character; returns the columns that it takes. */
int area_put(const struct area *a, int y, int x, enum role role, uint32_t cp);
void area_fill(const struct area *a, int y, int x, int w, enum role role, uint32_t cp);
void area_clear(const struct area *a, enum role role);
/* Adds attributes to cells that are there already: the selection bar, a search's match. */
void area_attr(const struct area *a, int y, int x, int w, unsigned attr);
/* The first character where the terminal can show it, else the ASCII one. */
uint32_t area_glyph(const struct area *a, uint32_t cp, char ascii);
void area_cursor(const struct area *a, int y, int x);

#endif
