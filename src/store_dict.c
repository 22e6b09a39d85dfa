// SPDX-License-Identifier: GPL-2.0-only
/* The texts of a segment of a recording (store_priv.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_priv.h"

/* More than a segment has: numbers come from the file. */
#define TEXTS_MOST (1u << 22)

void store_dict_clear(struct store_dict *d)
{
	for (uint32_t i = 1; i < d->n; i++)
		free(d->text[i]);
	free(d->text);
	free(d->slot);
	*d = (struct store_dict){0};
}

static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h ^ h >> 15;
}

/* The slot of a text, or the free one where it would go. */
static uint32_t *find_slot(struct store_dict *d, const char *text)
{
	uint32_t mask = d->nslot - 1, at = hash_of(text) & mask;

	while (d->slot[at] && strcmp(d->text[d->slot[at]], text) != 0)
		at = (at + 1) & mask;
	return &d->slot[at];
}

static int grow_slots(struct store_dict *d)
{
	uint32_t n = d->nslot ? d->nslot * 2 : 256;
	uint32_t *slot = calloc(n, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	free(d->slot);
	d->slot = slot;
	d->nslot = n;
	for (uint32_t i = 1; i < d->n; i++)
		if (d->text[i])
			*find_slot(d, d->text[i]) = i;
	return 0;
}

/* Room for the numbers up to `id`. */
static int grow(struct store_dict *d, uint32_t id)
{
	uint32_t cap = d->cap ? d->cap : 128;
	char **text;

	if (id >= TEXTS_MOST)
		return -EBADMSG;
	while (cap <= id)
		cap *= 2;
	if (cap != d->cap) {
		text = realloc(d->text, cap * sizeof(*text));
		if (!text)
			return -ENOMEM;
		memset(text + d->cap, 0, (cap - d->cap) * sizeof(*text));
		d->text = text;
		d->cap = cap;
	}
	if (d->n <= id)
		d->n = id + 1;
	return 0;
}

uint32_t store_dict_id(struct store_dict *d, const char *text)
{
	uint32_t *slot, id = d->n ? d->n : 1;
	char *copy;

	if ((uint64_t)d->n * 2 >= d->nslot && grow_slots(d))
		return 0;
	slot = find_slot(d, text);
	if (*slot)
		return *slot;
	copy = strdup(text);
	if (!copy || grow(d, id)) {
		free(copy);
		return 0;
	}
	d->text[id] = copy;
	*slot = id;
	return id;
}

const char *store_dict_text(const struct store_dict *d, uint32_t id)
{
	return id && id < d->n ? d->text[id] : NULL;
}

int store_dict_set(struct store_dict *d, uint32_t id, const char *text)
{
	char *copy;
	int rc = id ? grow(d, id) : -EBADMSG;

	if (rc)
		return rc;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(d->text[id]);
	d->text[id] = copy;
	return 0;
}
