// SPDX-License-Identifier: GPL-2.0-only
/* Varints into and out of memory (store_bytes.h). */
#include "store_bytes.h"

#include <endian.h>
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
	if (make_room(p, STORE_VARINT_MOST))
		store_put_end(p, store_varint(p->data + p->n, v));
}

uint8_t *store_put_room(struct store_put *p, size_t n)
{
	return make_room(p, n) ? p->data + p->n : NULL;
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

/* Eight times seven bits, each in a byte of its own, as one number. */
static uint64_t gather(uint64_t v)
{
	v = (v & 0x7f007f007f007f) | (v & 0x7f007f007f007f00) >> 1;
	v = (v & 0x3fff00003fff) | (v & 0x3fff00003fff0000) >> 2;
	return (v & 0xfffffff) | (v & 0xfffffff00000000) >> 4;
}

uint64_t store_get_u64_slow(struct store_get *g)
{
	const uint8_t *at = g->at, *end = g->failed ? at : g->end;
	uint64_t v = 0, ends;

	if (end - at >= 8) {
		memcpy(&v, at, sizeof(v));
		v = le64toh(v);
		ends = ~v & 0x8080808080808080;
		if (ends) {
			/* Up to and with the first byte whose highest bit is 0. */
			g->at = at + __builtin_ctzll(ends) / 8 + 1;
			return gather(v & (ends ^ (ends - 1)));
		}
		v = 0;
	}
	for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
		uint8_t b = *at++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			g->at = at;
			return v;
		}
	}
	g->failed = true;
	return 0;
}
