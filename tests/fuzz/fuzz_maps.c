// SPDX-License-Identifier: GPL-2.0-only
/* /proc/<pid>/maps of any bytes: every mapping has an extent and a name, and the text ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in = malloc(len ? len : 1); /* exactly as large: a read beyond it is seen */
	size_t at = 0, n = 0;
	struct mapping m;

	if (!in)
		return 0;
	memcpy(in, data, len);
	while (maps_next(in, len, &at, &m)) {
		if (m.start >= m.end || at > len || ++n > len || !m.name[0])
			abort();
		if (strnlen(m.name, sizeof(m.name)) == sizeof(m.name) ||
		    strnlen(m.path, sizeof(m.path)) == sizeof(m.path))
			abort();
	}
	free(in);
	return 0;
}
