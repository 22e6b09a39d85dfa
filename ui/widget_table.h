// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic table: rows of a field table under column heads, sorted, filtered, with a
 * selection that follows its row.
 */
#ifndef KVMTOP_WIDGET_TABLE_H
#define KVMTOP_WIDGET_TABLE_H

#include "field.h"
#include "layout.h"
#include "surface.h"
#include "view.h"

/* A kind of table: which fields it shows and how it is sorted when nobody says otherwise. */
struct table_def {
	const char *id; /* in the settings file */
	const char *title;
	enum field_table table;
	const struct column
		*cols; /* the default set, in order; fields that do not exist are left out */
	size_t ncols;
	const char *sort[3]; /* default order: by title, then, then */
};

struct table_row {
	const void *row; /* of the field table's struct */
	uint64_t id; /* never 0 for a real row; stays the same from snapshot to snapshot */
	bool last; /* stays below all others and shows "-" for 0: the row "(other)" */
	bool first; /* stays above all others, and is selected only by a key: the row "(all)" */
};

struct row_list {
	struct table_row *row;
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int row_list_add(struct row_list *l, const void *row, uint64_t id);
void row_list_free(struct row_list *l); /* frees the rows, not l */
/* An id for a row that several numbers tell from all others: the same whenever they are. */
uint64_t row_id_of(const uint64_t *part, size_t n);

struct table_ctx {
	const struct snapshot *snap;
	const struct table_def *def;
	const struct column_choice *choice; /* NULL: the default columns */
	struct table_state *state;
	bool totals; /* figures since start or reset */
	bool focused; /* the selection bar is bright */
	const char *filter, *search; /* "" none */
};

/* Takes out what the filter does not match, sorts, and moves the selection to a row that is there.
 */
void table_arrange(const struct table_ctx *c, struct row_list *rows);
/* The same where rows are arranged already and only the selection may have changed. */
void table_mend(const struct table_ctx *c, const struct row_list *rows);
/* Draws heads (first line) and rows; scrolls so that the selection is on screen. */
void table_draw(const struct table_ctx *c, const struct area *a, const struct row_list *rows);
/* Line of the selected row, -1: no rows. */
int table_selected(const struct table_ctx *c, const struct row_list *rows);
/* The line that is selected while nobody chose one: the first that has its place by the order. */
int table_default(const struct row_list *rows);
/* Moves the selection; `by` may be far too large. */
void table_move(const struct table_ctx *c, const struct row_list *rows, long by);
/* Next row whose text matches (from the one after the selection, round). False: none. */
bool table_search(const struct table_ctx *c, const struct row_list *rows, bool back);
/* Sorts by the next column to the right (left): among those on screen in a window of this width. */
void table_sort_step(const struct table_ctx *c, int width, bool left);
/* The field that it is sorted by now; NULL: none of this table. */
const struct field *table_sort_field(const struct table_ctx *c);
/* The same where its column is not on screen in a window of this width; NULL: it is there. */
const struct field *table_hidden_sort(const struct table_ctx *c, int width);
/* The columns in force (default set or choice). Returns how many; out holds VIEW_COLUMNS. */
size_t table_columns(const struct table_ctx *c, struct column *out);
/* A figure as the table shows it, with its mark: "31.0q", "48.2k". role: by its threshold. */
void table_cell(const struct table_ctx *c, const struct field *f, const struct table_row *r,
		int width, char *out, size_t size, enum role *role);

#endif
