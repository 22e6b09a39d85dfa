// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples by key: of one vCPU, one VM, or the host. Bounded: a key that finds no room counts as
 * `other`, and after each interval the keys that were sampled least make room for new ones, so
 * that what is hot has its row from one of the next intervals on.
 */
#ifndef KVMTOP_SYMSET_H
#define KVMTOP_SYMSET_H

#include <stdbool.h>
#include <stdint.h>

#include "sample.h"

struct sym_cell {
	struct symbol_key key;
	uint32_t now; /* samples of the interval */
	uint32_t score; /* … and of those before, of less weight each */
	uint64_t total; /* of all intervals that are over */
	bool guessed; /* guest kernel or user by the kernel's word only */
};

struct sym_set {
	struct sym_cell *cell; /* in no order */
	unsigned n, room;
	uint32_t now[DOMAIN_NR], other_now; /* of the interval, `other` too */
	uint64_t total[DOMAIN_NR], other_total; /* of those that are over */
};

/* Counts one sample; `limit` keys at most. */
void sym_set_add(struct sym_set *s, const struct symbol_key *k, bool guessed, unsigned limit);
uint64_t sym_set_now(const struct sym_set *s); /* all samples of the interval */
uint64_t sym_set_total(const struct sym_set *s); /* since start or reset, this interval too */
/* The key with most samples in the interval; NULL: none, or most went to `other`. */
const struct sym_cell *sym_set_top(const struct sym_set *s);
/* Ends the interval. */
void sym_set_next(struct sym_set *s, unsigned limit);
void sym_set_reset(struct sym_set *s); /* the totals */
void sym_set_free(struct sym_set *s); /* what it points to, not s */

static inline bool symbol_key_equal(const struct symbol_key *a, const struct symbol_key *b)
{
	return a->value == b->value && a->table == b->table && a->domain == b->domain &&
	       a->reason == b->reason;
}

#endif
