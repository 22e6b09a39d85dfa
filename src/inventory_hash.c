// SPDX-License-Identifier: GPL-2.0-only
/* A hash of things by number (inventory_hash.h). */
#include <stdlib.h>

#include "inventory_hash.h"

static size_t slot_of(const struct inv_hash *t, uint32_t key)
{
	/* pids are often consecutive: the multiplication spreads them over the high bits. */
	return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (t->nbucket - 1);
}

/* Without memory for a larger array the old one serves on, with longer chains. */
static void grow(struct inv_hash *t)
{
	struct inv_hash big = {.nbucket = t->nbucket * 2, .n = t->n};

	big.bucket = calloc(big.nbucket, sizeof(struct inv_link *));
	if (!big.bucket)
		return;
	for (size_t i = 0; i < t->nbucket; i++) {
		struct inv_link *l = t->bucket[i], *next;

		for (; l; l = next) {
			struct inv_link **slot = &big.bucket[slot_of(&big, l->key)];

			next = l->next;
			l->next = *slot;
			*slot = l;
		}
	}
	free(t->bucket);
	*t = big;
}

void inv_hash_add(struct inv_hash *t, struct inv_link *l, uint32_t key)
{
	struct inv_link **slot;

	if (t->n >= t->nbucket)
		grow(t);
	slot = &t->bucket[slot_of(t, key)];
	l->key = key;
	l->next = *slot;
	*slot = l;
	t->n++;
}

/* Taking out what is not in is fine: gone objects left before. */
void inv_hash_del(struct inv_hash *t, struct inv_link *l)
{
	struct inv_link **p = &t->bucket[slot_of(t, l->key)];

	while (*p && *p != l)
		p = &(*p)->next;
	if (!*p)
		return;
	*p = l->next;
	t->n--;
}

struct inv_link *inv_hash_get(const struct inv_hash *t, uint32_t key)
{
	struct inv_link *l = t->bucket[slot_of(t, key)];

	while (l && l->key != key)
		l = l->next;
	return l;
}

struct inv_link *inv_hash_next(struct inv_link *l)
{
	uint32_t key = l->key;

	do {
		l = l->next;
	} while (l && l->key != key);
	return l;
}

bool inv_hash_init(struct inv_hash *t)
{
	t->nbucket = 64;
	t->bucket = calloc(t->nbucket, sizeof(struct inv_link *));
	return t->bucket;
}

void inv_hash_free(struct inv_hash *t)
{
	free(t->bucket);
}
