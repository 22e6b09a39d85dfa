// SPDX-License-Identifier: GPL-2.0-only
/* /proc/modules of any bytes: what it names lies in order and does not overlap. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in = malloc(len ? len : 1); /* exactly as large: a read beyond it is seen */
	struct symbuild *b = symbuild_new();
	const struct symmap_part *p;
	struct modules_facts facts;
	struct symmap *m;
	struct symbol s;
	size_t n;

	if (!in || !b)
		abort();
	memcpy(in, data, len);
	modules_parse(in, len, b, &facts);
	if (symbuild_finish(b, NULL, &m) == 0) {
		n = symmap_parts(m, &p);
		if (n > facts.modules)
			abort();
		for (size_t i = 0; i < n; i++)
			if ((i && p[i].lo < p[i - 1].hi) || symmap_lookup(m, p[i].lo, &s) ||
			    !s.module)
				abort();
		symmap_unref(m);
	}
	free(in);
	return 0;
}
