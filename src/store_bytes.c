// SPDX-License-Identifier: GPL-2.0-only
/* Varints into and out of memory (store_bytes.h). */
#include "store_bytes.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 4096

static bool make_room(struct store_put *p, size_t n)
{
	size_t cap = p->cap ? p->cap : FIRST_CAP;
	uint8_t *data;

	if (p->failed)
		return false;
	if (p->cap - p->n >= n)
		return true;
	while (cap - p->n < n)
		cap *= 2;
	data = realloc(p->data, cap);
	if (!data) {
		p->failed = true;
		return false;
	}
	p->data = data;
	p->cap = cap;
	return true;
}

void store_put_bytes(struct store_put *p, const void *data, size_t n)
{
	if (!n || !make_room(p, n))
		return;
	memcpy(p->data + p->n, data, n);
	p->n += n;
}

void store_put_u64_slow(struct store_put *p, uint64_t v)
{
	if (!make_room(p, 10))
		return;
	while (v >= 0x80) {
		p->data[p->n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	p->data[p->n++] = (uint8_t)v;
}

void store_put_free(struct store_put *p)
{
	free(p->data);
	*p = (struct store_put){0};
}

size_t store_get_left(const struct store_get *g)
{
	return g->failed ? 0 : (size_t)(g->end - g->at);
}

const uint8_t *store_get_bytes(struct store_get *g, size_t n)
{
	const uint8_t *at = g->at;

	if (store_get_left(g) < n) {
		g->failed = true;
		return NULL;
	}
	g->at += n;
	return at;
}

uint8_t store_get_u8(struct store_get *g)
{
	const uint8_t *p = store_get_bytes(g, 1);

	return p ? *p : 0;
}

uint64_t store_get_u64_slow(struct store_get *g)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t b = store_get_u8(g);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return g->failed ? 0 : v;
	}
	g->failed = true;
	return 0;
}
