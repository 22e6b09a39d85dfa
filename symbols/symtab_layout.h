// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a table lies in memory, for symtab.c and symbuild.c alone.
 *
 * One block: offsets, tree, entries, names, module. The tree is the sorted offsets cut into nodes
 * of one cache line; each level above has the first offset of every node below. So a lookup
 * touches one line a level, the upper ones always in cache: five lines for 500,000 symbols.
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

struct symtab {
	_Atomic unsigned refs;
	uint32_t id, n;
	uint32_t nlevels;
	uint32_t *level[SYMTAB_LEVELS]; /* [0]: all offsets */
	struct symtab_entry *entry;
	char *names;
	size_t names_len;
	const char *module; /* in names */
	uint64_t hash;
	size_t bytes;
};

/*
 * Room for n symbols and their names, everything else of it zero; one reference. The caller fills
 * level[0], entry and names, then calls symtab_shared(). NULL: no memory.
 */
struct symtab *symtab_alloc(uint32_t n, size_t names_len);
/* Complete now: t, or the equal one of the cache (NULL: none) in its place. */
struct symtab *symtab_shared(struct symcache *cache, struct symtab *t);

#endif
