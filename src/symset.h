// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples by key: of one vCPU, one VM, or the host. Bounded: so many keys are kept, within an
 * interval four times as many are told apart, what finds no room counts as `other`. After each
 * interval the keys that were sampled least make room, so that what becomes hot has its row.
 */
#ifndef KVMTOP_SYMSET_H
#define KVMTOP_SYMSET_H

#include <stdbool.h>
#include <stdint.h>

#include "sample.h"

/* What called a symbol, in samples whose call chain says that. */
struct sym_caller {
	struct symbol_key key;
	uint32_t now, score; /* as those of sym_cell */
	uint64_t total;
};

#define SYM_CALLERS 8 /* of a symbol: those that are told apart */

struct sym_callers {
	unsigned n;
	struct sym_caller caller[SYM_CALLERS];
};

struct sym_cell {
	struct symbol_key key;
	uint32_t now; /* samples of the interval */
	uint32_t score; /* … and of those before, of less weight each */
	uint64_t total; /* of all intervals that are over */
	bool guessed; /* in this interval: guest kernel or user by the kernel's word only */
	struct sym_callers *callers; /* NULL: none known */
};

#define SYM_HINTS 64 /* a power of two */

struct sym_set {
	struct sym_cell *cell; /* in no order but after sym_set_sort() */
	unsigned n, room;
	uint8_t hint[SYM_HINTS]; /* by a key's hash: where one like it was found last */
	uint32_t now[DOMAIN_NR], other_now; /* of the interval, `other` too */
	uint64_t total[DOMAIN_NR], other_total; /* of those that are over */
};

#define SYM_TOLD 4 /* times the keys that are kept: those told apart within an interval */

/* Counts n samples; `keep` is how many keys are kept. */
void sym_set_add(struct sym_set *s, const struct symbol_key *k, uint32_t n, bool guessed,
		 unsigned keep);
/* Says who called, of n samples that were counted by sym_set_add() just now. */
void sym_set_called(struct sym_set *s, const struct symbol_key *k, const struct symbol_key *caller,
		    uint32_t n);
/* A cell's callers, the most frequent ones of the interval first; how many there are. */
unsigned sym_cell_callers(const struct sym_cell *c, const struct sym_caller **out);
uint64_t sym_set_now(const struct sym_set *s); /* all samples of the interval */
uint64_t sym_set_total(const struct sym_set *s); /* since start or reset, this interval too */
/* The key with most samples in the interval; NULL: none, or most went to `other`. */
const struct sym_cell *sym_set_top(const struct sym_set *s);
/* The keys sampled most in this interval first, then those of before. */
void sym_set_sort(struct sym_set *s);
/* Ends the interval. */
void sym_set_next(struct sym_set *s, unsigned keep);
void sym_set_reset(struct sym_set *s); /* the totals */
void sym_set_free(struct sym_set *s); /* what it points to, not s */

static inline bool symbol_key_equal(const struct symbol_key *a, const struct symbol_key *b)
{
	return a->value == b->value && a->table == b->table && a->domain == b->domain &&
	       a->reason == b->reason;
}

static inline unsigned symbol_key_hash(const struct symbol_key *k)
{
	uint64_t h = k->value ^ (uint64_t)k->table << 40 ^ (uint64_t)k->domain << 36 ^
		     (uint64_t)k->reason << 32;

	return (unsigned)((h * 0x9e3779b97f4a7c15u) >> 40);
}

#endif
