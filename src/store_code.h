// SPDX-License-Identifier: GPL-2.0-only
/*
 * A snapshot as bytes and back, column by column (store_fields.h).
 *
 * Bytes are outside data: whoever wrote the file chose them. What is not a whole, consistent
 * snapshot is refused; what comes out of store_decode() can be shown like any other.
 */
#ifndef KVMTOP_STORE_CODE_H
#define KVMTOP_STORE_CODE_H

#include "snapshot.h"
#include "store_bytes.h"

/* Texts that repeat are kept apart and go by number; number 0 is the empty text. */
struct store_texts {
	void *ctx;
	uint32_t (*id)(void *ctx, const char *text); /* 0: no memory */
	const char *(*text)(void *ctx, uint32_t id); /* valid until the next call; NULL: none */
};

/* 0 or -ENOMEM. */
int store_encode(const struct snapshot *s, const struct store_texts *t, struct store_put *out);
/* One reference to the caller. 0, -ENOMEM, or -EBADMSG where it is damaged. */
int store_decode(const void *data, size_t n, const struct store_texts *t, struct snapshot **out);
/*
 * The same for a longer interval that is recorded: without figures that it has anew, out of its own
 * counts, or not at all, such as totals of vCPUs; only their states are set.
 */
int store_decode_part(const void *data, size_t n, const struct store_texts *t,
		      struct snapshot **out);
/* store_check.c: every index leads somewhere, every number is one. 0 or -EBADMSG. */
int store_check(const struct snapshot *s);

#endif
