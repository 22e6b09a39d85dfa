// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hash of things by number (tid, pid, id): the link of the chain is inside the thing, so that
 * putting it in and taking it out never fails.
 */
#ifndef KVMTOP_INVENTORY_HASH_H
#define KVMTOP_INVENTORY_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inv_link {
	struct inv_link *next;
	uint32_t key;
};

struct inv_hash {
	struct inv_link **bucket;
	size_t nbucket, n; /* nbucket: a power of two */
};

bool inv_hash_init(struct inv_hash *t); /* false: no memory */
void inv_hash_free(struct inv_hash *t); /* the hash, not what is in it, nor t */
void inv_hash_add(struct inv_hash *t, struct inv_link *l, uint32_t key);
/* Taking out what is not in is fine. */
void inv_hash_del(struct inv_hash *t, struct inv_link *l);
/* The one added last with this number, NULL: none; then the next one of the same number. */
struct inv_link *inv_hash_get(const struct inv_hash *t, uint32_t key);
struct inv_link *inv_hash_next(struct inv_link *l);

#endif
