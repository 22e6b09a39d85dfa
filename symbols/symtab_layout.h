// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a table lies in memory, for symtab.c and symbuild.c alone.
 *
 * One block: leaves, tree, names, module. A leaf has the offsets of 16 symbols in one cache line,
 * and what else is known of them right behind it; the first offsets of 16 leaves are a node above,
 * and so on up. A lookup touches a line a level, the upper ones always in cache: five levels for
 * 500,000 symbols.
 */
#ifndef KVMTOP_SYMTAB_LAYOUT_H
#define KVMTOP_SYMTAB_LAYOUT_H

#include <stdatomic.h>

#include "symtab.h"

#define SYMTAB_NODE 16 /* offsets in a cache line */
#define SYMTAB_LEVELS 8 /* 16^8: more than 2^32 */
#define SYMTAB_PAD UINT32_MAX /* fills the last node; no symbol has this offset */

struct symtab_entry {
	uint32_t size, name; /* bytes; offset in names */
};

struct symtab_leaf {
	uint32_t offset[SYMTAB_NODE];
	struct symtab_entry entry[SYMTAB_NODE];
};

struct symtab {
	_Atomic unsigned refs;
	uint32_t id, n;
	uint32_t nlevels; /* above the leaves */
	uint32_t *level[SYMTAB_LEVELS]; /* [0]: the first offset of each leaf */
	struct symtab_leaf *leaf;
	size_t nleaf;
	char *names;
	size_t names_len;
	const char *module; /* in names */
	uint64_t hash;
	size_t bytes;
};

static inline uint32_t *symtab_offset(const struct symtab *t, uint32_t i)
{
	return &t->leaf[i / SYMTAB_NODE].offset[i % SYMTAB_NODE];
}

static inline struct symtab_entry *symtab_entry(const struct symtab *t, uint32_t i)
{
	return &t->leaf[i / SYMTAB_NODE].entry[i % SYMTAB_NODE];
}

/*
 * Room for n symbols and their names, everything else of it zero; one reference. The caller fills
 * leaves and names, then calls symtab_shared(). NULL: no memory.
 */
struct symtab *symtab_alloc(uint32_t n, size_t names_len);
/* Complete now: t, or the equal one of the cache (NULL: none) in its place. */
struct symtab *symtab_shared(struct symcache *cache, struct symtab *t);

#endif
