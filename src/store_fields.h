// SPDX-License-Identifier: GPL-2.0-only
/*
 * What of a snapshot is recorded: each table of it, and each member of a row by a number that
 * never changes. A recording holds a column a number, so that an older kvmtop skips what it does
 * not know and a newer one finds nothing where there was nothing.
 *
 * A new member of a snapshot's struct needs a row here; a test says when that was forgotten.
 */
#ifndef KVMTOP_STORE_FIELDS_H
#define KVMTOP_STORE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

enum store_type {
	STORE_U8, /* also bool and char */
	STORE_I32, /* int, pid_t; as the difference to the row before */
	STORE_U32, /* unsigned, enums; as the difference to the row before */
	STORE_U64,
	STORE_I64,
	STORE_NUMBER, /* double */
	STORE_VALUE, /* struct value */
	STORE_TEXT, /* few and often the same: kept once a segment of the recording */
	STORE_LINE, /* texts that change with every interval */
	STORE_HEAT, /* HEAT_BUCKETS counts or NULL */
	STORE_PART, /* a struct: .part, of .n members */
};

struct store_field {
	uint8_t id; /* 1…, never used again for something else */
	uint8_t type; /* enum store_type */
	uint8_t n; /* that many of them in a row, 0 as 1; parts: each with an id of its own */
	uint8_t size; /* bytes of one */
	uint16_t at; /* offset */
	uint16_t most; /* STORE_U8, STORE_U32: the largest value that is one, 0: any */
	const struct store_field *part; /* ends with id 0 */
	uint8_t rule; /* enum store_rule: it follows from others */
};

enum store_table_id {
	STORE_INTERVAL = 1, /* struct snapshot itself, without its tables */
	STORE_HOST,
	STORE_VMS,
	STORE_VCPUS,
	STORE_EXITS,
	STORE_SYMBOLS,
	STORE_THREADS,
	STORE_TASKS,
	STORE_CPUS,
	STORE_FINDINGS,
	STORE_SOURCES,
	STORE_KINDS,
	STORE_KINDS_TOTAL,
	STORE_SAMPLING,
	STORE_CODE,
	STORE_WAITED,
	STORE_SLOW,
	STORE_SLICES,
	STORE_STREAM,
	STORE_PMCS,
	STORE_TABLES_END,
};

struct store_table {
	uint8_t id;
	const char *name;
	const struct store_field *field; /* ends with id 0 */
	size_t row_size;
	size_t rows_at; /* offset in struct snapshot of the rows or of the pointer to them */
	size_t n_at; /* offset of their number; 0: there are `fixed`, in the snapshot itself */
	size_t fixed;
};

extern const struct store_table store_tables[];
extern const size_t store_ntables;

/* The rows of a table and how many. */
const void *store_rows(const struct store_table *t, const struct snapshot *s, size_t *n);

/* A member of a row with all parts resolved. */
struct store_leaf {
	const struct store_field *f;
	uint32_t id; /* of the column */
	size_t at;
};

#define STORE_LEAVES 160 /* no table has more; a test holds it */
#define STORE_RULED 192 /* nor are there more members that follow from others, in all tables */
/* All members of a table; returns how many. */
size_t store_leaves(const struct store_table *t, struct store_leaf *out);

#endif
