// SPDX-License-Identifier: GPL-2.0-only
/* A hash table that grows (report_slots.h). */
#include "report_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 256

static struct report_slot *free_slot(struct report_slot *slot, size_t n, uint32_t hash)
{
	size_t at = hash & (n - 1);

	while (slot[at].row)
		at = (at + 1) & (n - 1);
	return &slot[at];
}

int report_slots_room(struct report_slots *s, void *rows, size_t used, size_t size)
{
	size_t n = s->n ? s->n * 2 : FIRST;
	struct report_slot *slot;
	void *old, *more;

	if (used * 2 < s->n)
		return 0;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memcpy(&old, rows, sizeof(old));
	more = reallocarray(old, n / 2, size);
	if (!more) {
		free(slot);
		return -ENOMEM;
	}
	memcpy(rows, &more, sizeof(more));
	for (size_t i = 0; i < s->n; i++)
		if (s->slot[i].row)
			*free_slot(slot, n, s->slot[i].hash) = s->slot[i];
	free(s->slot);
	s->slot = slot;
	s->n = n;
	return 0;
}

uint32_t *report_slots_find(struct report_slots *s, uint64_t hash,
			    bool (*same)(const void *rows, uint32_t row, const void *what),
			    const void *rows, const void *what)
{
	size_t at = (uint32_t)hash & (s->n - 1);

	while (s->slot[at].row &&
	       (s->slot[at].hash != (uint32_t)hash || !same(rows, s->slot[at].row - 1, what)))
		at = (at + 1) & (s->n - 1);
	s->slot[at].hash = (uint32_t)hash;
	return &s->slot[at].row;
}

void report_slots_free(struct report_slots *s)
{
	free(s->slot);
	*s = (struct report_slots){0};
}
