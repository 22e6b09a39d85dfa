// SPDX-License-Identifier: GPL-2.0-only
/*
 * The field table: one row a figure, from which columns, sorting, --fields, CSV,
 * JSON and the man page's list are all made.
 */
#ifndef KVMTOP_FIELD_H
#define KVMTOP_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "snapshot.h"

enum field_table {
	TABLE_HOST,
	TABLE_VM,
	TABLE_VCPU,
	TABLE_EXIT,
	TABLE_SYMBOL,
	TABLE_CODE,
	TABLE_WAITED,
	TABLE_SLOW,
	TABLE_PMU,
	TABLE_CPU,
	TABLE_THREAD,
	TABLE_TASK,
	TABLE_FINDING,
	TABLE_NR
};

enum field_unit {
	UNIT_TEXT,
	UNIT_COUNT, /* integer; k/M on screen above 9,999 */
	UNIT_NUMBER, /* identifier: pid, CPU, vCPU: never shortened */
	UNIT_PCT, /* percent */
	UNIT_RATE, /* per second */
	UNIT_NS, /* nanoseconds; on screen ns/us/ms/s */
	UNIT_KB,
	UNIT_RATIO, /* a plain number with decimals */
};

enum field_flag {
	FIELD_TOTAL = 1, /* differs between interval and totals (tally) */
	FIELD_SORT_UP = 2, /* sorts ascending first (names, numbers) */
	FIELD_UNTRUSTED = 4, /* text that a guest or VMM chose */
	FIELD_JSON_ONLY = 8,
	FIELD_WORDS = 32, /* a list of words: cut between two of them */
	FIELD_PROSE = 16, /* words for people: the text format joins them by _ */
};

/* What a getter returns: text for UNIT_TEXT, else v. mark: 0, 'q' (own quota), '~' guessed, '!' …
 */
struct cell {
	struct value v;
	const char *text;
	char mark;
};

struct field {
	const char *id; /* "steal_pct": --fields, CSV, JSON */
	const char *title; /* "%STEAL": column head; unique in its table */
	const char *help; /* one sentence: the definition, with its formula */
	enum field_unit unit;
	unsigned char width; /* on screen, default */
	unsigned char flags;
	double warn, alarm; /* thresholds for colour and '!'; 0: none */
	/* total: since start/reset rather than of the interval. row is of the table's struct. */
	struct cell (*get)(const struct snapshot *s, const void *row, bool total);
};

struct field_list {
	const char *name; /* "host", "vm", "vcpu", "exit", "symbol", "exit-code", "waited", "slow",
			     "pmu", "cpu", "thread", "task", "finding" */
	const struct field *field;
	size_t n;
	size_t row_size;
};

const struct field_list *field_list(enum field_table t);
/* By id or title, case-insensitive ("steal_pct", "%STEAL", "steal"); NULL: none. */
const struct field *field_find(enum field_table t, const char *name);
/* First row and count of a table in a snapshot. TABLE_HOST: one row, &s->host. */
const void *field_rows(const struct snapshot *s, enum field_table t, size_t *n);

/* "vmexit", "mmio", …: the kinds as --event, JSON and CSV name them. */
const char *field_kind_name(enum kvm_kind kind);

/* "host-kernel", "guest-user" … */
const char *field_domain_name(enum ip_domain d);
/* "vm", "task" …: by_kind of who had the CPU; "" for what is none. */
const char *field_waited_kind(enum waited_kind kind);

/*
 * The one comparator: <0, 0, >0 for ascending order by f. Values that are not known sort
 * last in either direction when `descending` is given as it will be used; text with
 * numbers inside sorts as people expect (vm2 before vm10).
 */
int field_compare(const struct field *f, const struct snapshot *s, const void *a, const void *b,
		  bool total, bool descending);

#endif
