// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of metrics: made from the field table by its units, so that a new field is a metric
 * without a word about it here; a few are called otherwise.
 */
#ifndef KVMTOP_FORMAT_PROM_NAMES_H
#define KVMTOP_FORMAT_PROM_NAMES_H

#include <stdbool.h>

#include "field.h"

#define PROM_NAME_SIZE 80

struct prom_name {
	char name[PROM_NAME_SIZE]; /* "kvmtop_vm_cpu_ratio" */
	bool counter; /* of all since the start: the getter's total; else a gauge of the interval */
	bool adds; /* of rows with the same labels there is a sum */
	double divisor; /* by which the field's unit becomes seconds, bytes or a ratio */
	const char *unit_help; /* the same in words, " / 100"; "" */
};

/*
 * level: "host", "vm", "vcpu" or "other" (batch_level()), of which only tables that have rows of
 * several take notice. False: the field is no metric but a text, a number that names something or
 * what would say nothing without its text.
 */
bool prom_name(enum field_table t, const struct field *f, const char *level, struct prom_name *out);

#endif
