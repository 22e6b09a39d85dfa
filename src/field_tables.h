// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of the field table, a file a level, and what their getters are made with. Only
 * field*.c include this.
 */
#ifndef KVMTOP_FIELD_TABLES_H
#define KVMTOP_FIELD_TABLES_H

#include "field.h"

extern const struct field_list field_list_host, field_list_vm, field_list_vcpu, field_list_exit,
	field_list_symbol, field_list_code, field_list_waited, field_list_slow, field_list_pmu,
	field_list_cpu, field_list_thread, field_list_task, field_list_finding;

#define FIELD_LIST(title, table, row)                                                              \
	{                                                                                          \
		.name = (title), .field = (table), .n = sizeof(table) / sizeof((table)[0]),        \
		.row_size = sizeof(row)                                                            \
	}

/* A getter for a member that is a struct value, a number or a text. */
#define GET_VALUE(fn, type, member)                                                                \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		(void)s;                                                                           \
		(void)total;                                                                       \
		return (struct cell){.v = ((const type *)row)->member};                            \
	}

/* A count that is 0 where it could not be read. */
#define GET_SOME(fn, type, member)                                                                 \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		double n = (double)((const type *)row)->member;                                    \
                                                                                                   \
		(void)s;                                                                           \
		(void)total;                                                                       \
		return (struct cell){.v = n > 0 ? value_known(n) : value_pending()};               \
	}

#define GET_COUNT(fn, type, member)                                                                \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		(void)s;                                                                           \
		(void)total;                                                                       \
		return (struct cell){.v = value_known((double)((const type *)row)->member)};       \
	}

/* A number whose negative values mean "not known". */
#define GET_ID(fn, type, member)                                                                   \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		double id = (double)((const type *)row)->member;                                   \
                                                                                                   \
		(void)s;                                                                           \
		(void)total;                                                                       \
		return (struct cell){.v = id < 0 ? value_pending() : value_known(id)};             \
	}

#define GET_TEXT(fn, type, member)                                                                 \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		(void)s;                                                                           \
		(void)total;                                                                       \
		return (struct cell){.text = ((const type *)row)->member};                         \
	}

/* What a task's state letter is as text; static storage. */
const char *field_state_text(char state);
/* The VM that an index into the snapshot names; its name, "" for none. */
const char *field_vm_name(const struct snapshot *s, int64_t vm);
/* The VMM's number of a vCPU that an index names. */
struct value field_vcpu_number(const struct snapshot *s, int64_t vcpu);

#endif
