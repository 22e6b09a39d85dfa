// SPDX-License-Identifier: GPL-2.0-only
/* Samples alike, counted (ip_batch.h). */
#include "ip_batch.h"

#include <string.h>

static unsigned home(const struct ip_sample *s)
{
	return (unsigned)(((s->ip ^ (uint64_t)(uint32_t)s->tid << 40) * 0x9e3779b97f4a7c15u) >>
			  48) &
	       (IP_PLACES - 1);
}

static bool alike(const struct ip_sample *a, const struct ip_sample *b)
{
	return a->ip == b->ip && a->tid == b->tid && a->caller == b->caller &&
	       a->domain == b->domain;
}

bool ip_batch_add(struct ip_batch *b, const struct ip_sample *s)
{
	unsigned i = home(s);

	for (; b->place[i]; i = (i + 1) & (IP_PLACES - 1)) {
		struct ip_sample *x = &b->s[b->place[i] - 1];

		if (!alike(x, s))
			continue;
		x->n += s->n;
		return true;
	}
	if (b->n == IP_BATCH)
		return false;
	b->s[b->n++] = *s;
	b->place[i] = (uint16_t)b->n;
	return true;
}

void ip_batch_clear(struct ip_batch *b)
{
	if (b->n)
		memset(b->place, 0, sizeof(b->place));
	b->n = 0;
}
