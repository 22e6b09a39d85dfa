// SPDX-License-Identifier: GPL-2.0-only
/*
 * How symbol maps are built (symbols.h): the parsers add symbols in any order, symbuild_finish()
 * sorts them, settles aliases and sizes, and cuts them into tables that can be shared.
 */
#ifndef KVMTOP_SYMTAB_H
#define KVMTOP_SYMTAB_H

#include "symbols.h"

struct symbuild;
struct symcache;

/* The lower is preferred where several symbols have one address. */
enum symbol_rank { RANK_GLOBAL, RANK_LOCAL, RANK_WEAK, RANK_MARKER };

struct symbuild *symbuild_new(void); /* NULL: no memory */
void symbuild_free(struct symbuild *b);
/*
 * Code. size 0: not known, up to the next symbol. module: a number from symbuild_module(). 0,
 * -ENOMEM or -E2BIG (more than any kernel has).
 */
int symbuild_add(struct symbuild *b, uint64_t addr, uint64_t size, enum symbol_rank rank,
		 unsigned module, const char *name, size_t len);
/* Something else begins here (data): the symbol before ends. */
int symbuild_bound(struct symbuild *b, uint64_t addr);
/* Number of the module of this name, made at first use; 0 is "" (the kernel). -errno. */
int symbuild_module(struct symbuild *b, const char *name, size_t len);
/* All code of the module lies in [lo, hi): names what has no symbol, ends its last symbol. */
int symbuild_range(struct symbuild *b, unsigned module, uint64_t lo, uint64_t hi);
/* Takes b in any case. cache NULL: tables of its own, without numbers. 0, -ENOMEM or -E2BIG. */
int symbuild_finish(struct symbuild *b, struct symcache *cache, struct symmap **out);

/* --- for the cache --- */

uint64_t symtab_hash(const struct symtab *t); /* of content and module */
bool symtab_equal(const struct symtab *a, const struct symtab *b);
void symtab_set_id(struct symtab *t, uint32_t id); /* before anybody else has it */
bool symtab_unused(const struct symtab *t); /* but for one reference */

/* Keeps one table of each content. Any thread. */
struct symcache *symcache_new(void);
void symcache_free(struct symcache *c); /* the tables live on with their users */
/* Takes a reference to t and returns one: t itself, or the equal one that was there. */
struct symtab *symcache_share(struct symcache *c, struct symtab *t);
bool symcache_symbol(struct symcache *c, uint32_t table, uint32_t index, struct symbol *out);
/* Frees tables that nobody else has had since the call before. */
void symcache_trim(struct symcache *c);
size_t symcache_count(struct symcache *c); /* tables */

/* --- parts of maps --- */

/* Addresses [lo, hi) are those of a table, moved by bias: address = relative + bias. */
struct symmap_part {
	uint64_t lo, hi, bias;
	struct symtab *tab; /* may have no symbols: then only a name */
};

bool symmap_unused(const struct symmap *m); /* but for one reference */
/* The same tables at the same places (tables of one cache). */
bool symmap_equal(const struct symmap *a, const struct symmap *b);
size_t symmap_parts(const struct symmap *m, const struct symmap_part **out);
/* A table that has a name and no symbols; cache may be NULL. NULL: no memory. */
struct symtab *symtab_nameless(struct symcache *cache, const char *module);
/*
 * From parts in any order; references are taken. Of those that overlap the later gives way, those
 * without symbols to all others. NULL: no memory.
 */
struct symmap *symmap_new(const struct symmap_part *part, size_t n);

#endif
