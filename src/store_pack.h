// SPDX-License-Identifier: GPL-2.0-only
/* Packing of a recording's intervals. */
#ifndef KVMTOP_STORE_PACK_H
#define KVMTOP_STORE_PACK_H

#include "store_bytes.h"

/* An interval unpacked; more is damage. */
#define STORE_UNPACKED_MOST ((size_t)256 << 20)

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

/* What is kept from one interval to the next; zero it before first use. */
struct store_packer {
	struct ZSTD_CCtx_s *in;
	struct ZSTD_DCtx_s *out;
};

/* Into `to`, whose memory grows; longer: of a longer interval. 0 or -ENOMEM. */
int store_pack(struct store_packer *p, const struct store_put *from, bool longer,
	       struct store_put *to);
/* want: the length unpacked. 0, -ENOMEM, or -EBADMSG where it is damaged. */
int store_unpack(struct store_packer *p, const void *from, size_t n, size_t want,
		 struct store_put *to);
void store_packer_free(struct store_packer *p);

#endif
