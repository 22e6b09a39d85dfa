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
void store_put_u8(struct store_put *p, uint8_t v);
void store_put_u64(struct store_put *p, uint64_t v);
void store_put_i64(struct store_put *p, int64_t v);
void store_put_free(struct store_put *p);

/* Owns nothing. After a fault every further get gives 0. */
struct store_get {
	const uint8_t *at, *end;
	bool failed; /* the bytes ended early, or a number is none */
};

const uint8_t *store_get_bytes(struct store_get *g, size_t n); /* NULL: there are fewer */
uint8_t store_get_u8(struct store_get *g);
uint64_t store_get_u64(struct store_get *g);
int64_t store_get_i64(struct store_get *g);
size_t store_get_left(const struct store_get *g);

#endif
