// SPDX-License-Identifier: GPL-2.0-only
/* gzip and xz data of any bytes: unpacked to no more than was asked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const size_t limit = 1 << 20;
	char *in = malloc(len ? len : 1); /* exactly as large: a read beyond it is seen */
	struct bytes out;

	if (!in)
		return 0;
	memcpy(in, data, len);
	if (bytes_unpack(in, len, limit, &out) == 0) {
		if (out.len > limit)
			abort();
		bytes_free(&out);
	} else if (out.data || out.len) {
		abort();
	}
	free(in);
	return 0;
}
