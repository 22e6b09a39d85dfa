// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow exits of one VM, one by one: the last few, and how many there were. Made at the first one,
 * so that a VM without any costs nothing.
 */
#ifndef KVMTOP_EXITS_SLOW_H
#define KVMTOP_EXITS_SLOW_H

#include <stdint.h>

#include "sample.h"

#define EX_SLOW_LINES 32

struct ex_vm;

struct ex_slow_line {
	struct slow_exit x; /* vcpu_id says nothing where .vcpu is known */
	uint32_t vcpu; /* inv_vcpu.id, 0 not known */
};

struct ex_slow {
	uint64_t now, total; /* slow exits: of this interval, and of those before */
	unsigned fresh; /* lines that this interval made; more than there is room for: lost ones */
	unsigned n, next; /* lines that are there; where the next one goes */
	struct ex_slow_line line[EX_SLOW_LINES]; /* a ring */
};

/* n slow exits in this interval, whether their lines come or not. */
void ex_slow_count(struct ex_vm *vm, unsigned n);
/* One line; where there is no room the oldest goes. vcpu NULL: by x->tid. */
void ex_slow_add(struct ex_vm *vm, const struct inv_vcpu *vcpu, const struct slow_exit *x);
/* Line i of s->n, the oldest first. */
const struct ex_slow_line *ex_slow_line(const struct ex_slow *s, unsigned i);
/* How many of them are of this interval: the last ones. */
unsigned ex_slow_fresh(const struct ex_slow *s);
/* A provisional VM turned out to be `into`. */
void ex_slow_take(struct ex_vm *into, struct ex_vm *from);
void ex_slow_next(struct ex_slow *s); /* the next interval; NULL is fine */
void ex_slow_reset(struct ex_slow *s); /* zeroes the total; NULL is fine */

#endif
