// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes of a recorded interval: written into memory that grows, read within bounds.
 *
 * Numbers are varints (seven bits a byte, lowest first), signed ones zigzag: most figures are
 * small. Errors stick, so that a caller looks once at the end.
 */
#ifndef KVMTOP_STORE_BYTES_H
#define KVMTOP_STORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero it before first use; store_put_free() gives the memory back. */
struct store_put {
	uint8_t *data;
	size_t n, cap;
	bool failed; /* no memory */
};

void store_put_bytes(struct store_put *p, const void *data, size_t n);
void store_put_u64_slow(struct store_put *p, uint64_t v);
void store_put_free(struct store_put *p);

/*
 * Many numbers at once, without a look at the room before each: room for n bytes more, where the
 * first of them goes; NULL: no memory. What was written ends at `end`.
 */
uint8_t *store_put_room(struct store_put *p, size_t n);
static inline void store_put_end(struct store_put *p, const uint8_t *end)
{
	p->n = (size_t)(end - p->data);
}

#define STORE_VARINT_MOST 10 /* bytes */

static inline uint8_t *store_varint(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

static inline uint64_t store_zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

/* Most numbers are one byte, and there are a million of them in an interval of a large host. */
static inline void store_put_u64(struct store_put *p, uint64_t v)
{
	if (v < 0x80 && p->n < p->cap)
		p->data[p->n++] = (uint8_t)v;
	else
		store_put_u64_slow(p, v);
}

static inline void store_put_i64(struct store_put *p, int64_t v)
{
	store_put_u64(p, store_zigzag(v));
}

static inline void store_put_u8(struct store_put *p, uint8_t v)
{
	if (p->n < p->cap)
		p->data[p->n++] = v;
	else
		store_put_bytes(p, &v, 1);
}

/* Owns nothing. After a fault every further get gives 0. */
struct store_get {
	const uint8_t *at, *end;
	bool failed; /* the bytes ended early, or a number is none */
};

const uint8_t *store_get_bytes(struct store_get *g, size_t n); /* NULL: there are fewer */
uint8_t store_get_u8(struct store_get *g);
uint64_t store_get_u64_slow(struct store_get *g);
size_t store_get_left(const struct store_get *g);

static inline uint64_t store_get_u64(struct store_get *g)
{
	if (g->at < g->end && !(*g->at & 0x80) && !g->failed)
		return *g->at++;
	return store_get_u64_slow(g);
}

static inline int64_t store_get_i64(struct store_get *g)
{
	uint64_t v = store_get_u64(g);

	return (int64_t)((v >> 1) ^ (v & 1 ? UINT64_MAX : 0));
}

#endif
