// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables that --table knows, their columns, and the rows of one interval in order. What a
 * format writes is a walk over these.
 */
#ifndef KVMTOP_BATCH_TABLE_H
#define KVMTOP_BATCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "field.h"
#include "filter.h"

struct when;

/* Rows of one or two field tables; `cpu` has VMs, their vCPUs and what is no VM together. */
struct batch_table {
	const char *name;
	const char *what; /* one line for help */
	enum field_table first, second; /* the same where there is one only */
	bool other; /* has the row (other) */
	bool vcpu_rows; /* exits, symbols: those of vCPUs, not those of VMs */
	const char *text_fields; /* what the text format shows by default */
};

extern const struct batch_table batch_tables[];
extern const size_t batch_ntables;
const struct batch_table *batch_table_find(const char *name); /* NULL: none */

/* One column, which may be a field of either field table. */
struct batch_column {
	const struct field *f; /* of either: its name, unit, width */
	const struct field *by[TABLE_NR];
};

struct batch_columns {
	struct batch_column *col;
	size_t n;
};

/*
 * The fields of a list "cpu_pct,steal_pct", or all of the table where fields is NULL. Owned by
 * the caller. 0, -ENOMEM, or -EINVAL with one line in err.
 */
int batch_columns_make(const struct batch_table *t, const char *fields, struct batch_columns *out,
		       char *err, size_t size);
void batch_columns_free(struct batch_columns *c);
/* By id or title in either field table of t; NULL: none. */
const struct field *batch_field_find(const struct batch_table *t, const char *name);

struct batch_row {
	enum field_table table;
	bool other; /* the row (other): row is NULL */
	const void *row;
	const struct snap_vm *vm; /* NULL: of the host */
	const struct snap_vcpu *vcpu; /* NULL: of the VM or host */
};

struct batch_rows {
	struct batch_row *row;
	size_t n, cap;
};

/* What the rows of an interval are chosen and ordered by. */
struct batch_query {
	const struct batch_table *table;
	const struct filter *filter;
	struct when *when; /* NULL: all */
	const char *sort; /* NULL: by `order` */
	bool reverse, total;
	bool as_screen; /* without sort: worst first, else as found */
};

/*
 * The rows that pass filter and when. `rows` is used again from interval to interval and freed
 * by batch_rows_free(). 0 or -ENOMEM.
 */
int batch_rows_collect(const struct batch_query *q, const struct snapshot *s,
		       struct batch_rows *rows);
void batch_rows_free(struct batch_rows *r);
/* A row's figure in a column; pending where the row has no such field. */
struct cell batch_cell(const struct snapshot *s, const struct batch_row *r,
		       const struct batch_column *c, bool total);
/* "host", "vm", "vcpu", "other". */
const char *batch_level(const struct batch_row *r);

#endif
