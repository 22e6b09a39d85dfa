// SPDX-License-Identifier: GPL-2.0-only
/* Windows into rectangles, columns into places (layout.h). No state, no drawing. */
#include "layout.h"

#include <string.h>

#define LEFT_MARGIN 1
#define MAX_COLUMNS 64

static void split(const struct layout_in *in, int top, int height, struct layout *out)
{
	int list = height;

	if (in->rows < LAYOUT_SPLIT_ROWS) {
		/* A list of one row can stay above its pane where there is some room. */
		if (in->list_small && in->pane_shown && height >= 10)
			list = 2;
		else if (in->pane_shown)
			list = 0;
	} else {
		list = in->list_small ? 3 : height - height / 2;
	}
	out->list = (struct rect){.y = top, .h = list, .w = in->cols};
	out->pane = (struct rect){.y = top + list, .h = height - list, .w = in->cols};
	if (in->rows < LAYOUT_SPLIT_ROWS && !in->pane_shown)
		out->pane.h = 0;
}

void layout_compute(const struct layout_in *in, struct layout *out)
{
	int head;

	memset(out, 0, sizeof(*out));
	if (in->rows < LAYOUT_MIN_ROWS || in->cols < LAYOUT_MIN_COLS) {
		out->tiny = true;
		return;
	}
	/* A low window keeps rows for the list: first the host line goes, then the findings. */
	head = in->rows >= 10 ? 3 : in->rows >= 8 ? 2 : 1;
	out->head = (struct rect){.h = head, .w = in->cols};
	out->keys = (struct rect){.y = in->rows - 1, .h = 1, .w = in->cols};
	out->timeline =
		(struct rect){.y = in->rows - 2, .h = in->timeline && head == 3, .w = in->cols};
	split(in, head, in->rows - head - 1 - out->timeline.h, out);
}

static int column_width(const struct column *c, int width)
{
	if (c->wide_from && width >= c->wide_from)
		return c->wide;
	return c->width;
}

static int total_width(const struct column *cols, const bool *in, size_t n, int width)
{
	int sum = LEFT_MARGIN;

	for (size_t i = 0; i < n; i++)
		if (in[i])
			sum += cols[i].gap + column_width(&cols[i], width);
	return sum;
}

/* Takes columns out, the lowest drop number first, until the rest fits. */
static void drop_columns(const struct column *cols, bool *in, size_t n, int width)
{
	while (total_width(cols, in, n, width) > width) {
		size_t victim = n;

		for (size_t i = 0; i < n; i++)
			if (in[i] && cols[i].drop &&
			    (victim == n || cols[i].drop < cols[victim].drop))
				victim = i;
		if (victim == n)
			return;
		in[victim] = false;
	}
}

static bool is_shown(const struct column *c, int i, int width, int first)
{
	/* Scrolled: all of them are within reach, but none twice. */
	if (first > 0)
		return i > first && !(c->below && width >= c->below) &&
		       !(c->instead && width < c->from);
	return (!c->from || width >= c->from) && (!c->below || width < c->below);
}

size_t layout_columns(const struct column *cols, size_t n, int width, int first,
		      struct column_place *out)
{
	bool in[MAX_COLUMNS] = {false};
	size_t placed = 0;
	int x = LEFT_MARGIN, spare;

	if (n > MAX_COLUMNS)
		n = MAX_COLUMNS;
	for (size_t i = 0; i < n; i++)
		in[i] = i == 0 || is_shown(&cols[i], (int)i, width, first);
	if (first <= 0)
		drop_columns(cols, in, n, width);
	spare = width - total_width(cols, in, n, width);
	for (size_t i = 0; i < n; i++) {
		int w = column_width(&cols[i], width);

		if (!in[i])
			continue;
		x += cols[i].gap;
		if (cols[i].grow && spare > 0) {
			w += spare;
			spare = 0;
		}
		/* A figure without its last digits is another figure: whole, or not at all. */
		if (x >= width || (x + w > width && placed > 1))
			break;
		if (x + w > width)
			w = width - x;
		out[placed++] =
			(struct column_place){.col = (short)i, .x = (short)x, .w = (short)w};
		x += w;
	}
	return placed;
}

int layout_last_scroll(const struct column *cols, size_t n, int width)
{
	int first = 0;

	if (n > MAX_COLUMNS)
		n = MAX_COLUMNS;
	for (; first + 2 < (int)n; first++) {
		bool in[MAX_COLUMNS] = {true};

		/* Unscrolled, a window also leaves columns out: those are what can be scrolled to.
		 */
		for (int i = 1; i < (int)n; i++)
			in[i] = i > first && is_shown(&cols[i], i + 1, width, 1);
		if (total_width(cols, in, n, width) <= width)
			break;
	}
	return first;
}
