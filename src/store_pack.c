// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes of an interval as they lie in the recording: packed by zstd, up to version 3 of the schema
 * by zlib. zstd takes a seventh of the time, which is the writer's largest single cost, and the
 * result is smaller.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "store_pack.h"

#define LEVEL 1
#define LEVEL_LONGER 5 /* of longer intervals: there are few, and they stay */
/* A block of at most 128 KiB takes at least four bytes, deflate makes at most a thousand of one. */
#define MOST_OF_ONE (32 << 10)

static bool make_room(struct store_put *to, size_t n)
{
	uint8_t *data;

	if (to->cap >= n)
		return true;
	data = realloc(to->data, n);
	if (!data)
		return false;
	to->data = data;
	to->cap = n;
	return true;
}

int store_pack(struct store_packer *p, const struct store_put *from, bool longer,
	       struct store_put *to)
{
	size_t n = ZSTD_compressBound(from->n);

	if (!p->in)
		p->in = ZSTD_createCCtx();
	if (!p->in || !make_room(to, n))
		return -ENOMEM;
	n = ZSTD_compressCCtx(p->in, to->data, to->cap, from->data, from->n,
			      longer ? LEVEL_LONGER : LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	to->n = n;
	return 0;
}

static bool is_zstd(const void *from, size_t n)
{
	static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};

	return n >= sizeof(magic) && !memcmp(from, magic, sizeof(magic));
}

int store_unpack(struct store_packer *p, const void *from, size_t n, size_t want,
		 struct store_put *to)
{
	bool zstd = is_zstd(from, n);
	uLongf len = want;
	bool whole;

	if (!want || want > STORE_UNPACKED_MOST || want / MOST_OF_ONE > n)
		return -EBADMSG;
	if (zstd && !p->out)
		p->out = ZSTD_createDCtx();
	if ((zstd && !p->out) || !make_room(to, want))
		return -ENOMEM;
	if (zstd)
		whole = ZSTD_decompressDCtx(p->out, to->data, want, from, n) == want;
	else
		whole = uncompress(to->data, &len, from, n) == Z_OK && len == want;
	if (!whole)
		return -EBADMSG;
	to->n = want;
	return 0;
}

void store_packer_free(struct store_packer *p)
{
	ZSTD_freeCCtx(p->in);
	ZSTD_freeDCtx(p->out);
	*p = (struct store_packer){0};
}
