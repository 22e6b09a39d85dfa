// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compressed records of a perf.data file: one stream of zstd, cut into records, that unpacks to
 * records, which may begin in one piece and end in the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "perfdata_priv.h"

#define ROOM ((size_t)256 << 10) /* above the largest record, 64 KiB */

struct unpack {
	ZSTD_DCtx *ctx;
	size_t have; /* bytes in out[] */
	uint8_t out[ROOM];
};

void perfdata_unpack_free(struct unpack *u)
{
	if (!u)
		return;
	ZSTD_freeDCtx(u->ctx);
	free(u);
}

static struct unpack *unpack_new(void)
{
	struct unpack *u = malloc(sizeof(*u));

	if (!u)
		return NULL;
	u->have = 0;
	u->ctx = ZSTD_createDCtx();
	if (!u->ctx) {
		free(u);
		return NULL;
	}
	/* What a small file may make us allocate. */
	(void)ZSTD_DCtx_setParameter(u->ctx, ZSTD_d_windowLogMax, 25);
	return u;
}

/* Hands on what is whole, keeps the rest at the front. */
static int hand_on(const struct perfdata *p, struct unpack *u, perfdata_raw_fn fn, void *ctx)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && u->have - at >= sizeof(struct perf_event_header)) {
		struct perf_event_header h = header_of(p, u->out + at);

		if (h.size < sizeof(h))
			return -EBADMSG;
		if (h.size > u->have - at)
			break;
		/* Compressed once more, or with data behind it: perf writes none such. */
		if (h.type == USER_COMPRESSED || h.type == USER_COMPRESSED2 ||
		    h.type == USER_AUXTRACE || h.type == USER_TRACING_DATA)
			return -EBADMSG;
		rc = fn(ctx, u->out + at, h);
		at += h.size;
	}
	memmove(u->out, u->out + at, u->have - at);
	u->have -= at;
	return rc;
}

int perfdata_unpack(struct perfdata *p, const uint8_t *bytes, size_t n, perfdata_raw_fn fn,
		    void *ctx)
{
	ZSTD_inBuffer in = {bytes, n, 0};
	struct unpack *u = p->unpack;
	bool full = true;

	if (!u) {
		u = p->unpack = unpack_new();
		if (!u)
			return -ENOMEM;
	}
	/* A full output may leave more inside. */
	while (in.pos < in.size || full) {
		ZSTD_outBuffer out = {u->out, ROOM, u->have};
		size_t left = ZSTD_decompressStream(u->ctx, &out, &in);
		int rc;

		if (ZSTD_isError(left))
			return -EBADMSG;
		full = out.pos == ROOM;
		if (out.pos == u->have && in.pos < in.size && !left)
			continue; /* the end of a frame; the next begins */
		u->have = out.pos;
		rc = hand_on(p, u, fn, ctx);
		if (rc)
			return rc;
		if (u->have == ROOM)
			return -EBADMSG;
	}
	return 0;
}
