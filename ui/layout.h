// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where everything goes: a pure function of the window's size, of what is open and of the
 * columns.
 */
#ifndef KVMTOP_LAYOUT_H
#define KVMTOP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

struct rect {
	int y, x, h, w;
};

#define LAYOUT_MIN_ROWS 6
#define LAYOUT_MIN_COLS 40
#define LAYOUT_SPLIT_ROWS 30 /* from here the pane has the lower half */

struct layout_in {
	int rows, cols;
	bool pane_shown; /* below 30 lines: in place of the list */
	bool timeline; /* a line above the keys, where there is room */
	bool list_small; /* the list is one row (level vCPU): the pane gets the rest */
};

struct layout {
	bool tiny; /* too small: say so and wait */
	struct rect head; /* identity, host line, findings: 3 lines, fewer when low */
	struct rect list; /* with its column heads; h 0: not shown */
	struct rect pane; /* with its title line; h 0: not shown */
	struct rect timeline; /* h 0: not shown */
	struct rect keys; /* bottom bar */
};

void layout_compute(const struct layout_in *in, struct layout *out);

/* A column of a table, as its default set has it. Widths in columns of the terminal. */
struct column {
	const char *field; /* title or id in the field table */
	short width; /* 0: the field's own */
	short gap; /* blanks before it */
	bool grow; /* takes what is left */
	short from, below; /* shown in windows at least / less than this wide; 0: always */
	short drop; /* what must go first in a narrow window has 1; 0: stays */
	short wide_from, wide; /* from this window's width on it is `wide` */
	const char *instead; /* only while this field does not exist */
	const char *also; /* a second field shown in the same cell … */
	char join; /* … '@': "60.2@3"; '%': "MSR_WRITE 41%" */
};

struct column_place {
	short col; /* index into the columns given */
	short x, w; /* where, and how wide */
};

/*
 * Which columns a window of `width` shows and where; out has room for n. Returns how many were
 * placed. A growing column has at least its `width`. `first` columns after the first one are
 * scrolled away; a scrolled table drops none: they are reached by scrolling.
 */
size_t layout_columns(const struct column *cols, size_t n, int width, int first,
		      struct column_place *out);
/* The `first` from which on all that is right of it has room: there is nothing to scroll to. */
int layout_last_scroll(const struct column *cols, size_t n, int width);

#endif
