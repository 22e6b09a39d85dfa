// SPDX-License-Identifier: GPL-2.0-only
/* Decimal digits and lines of "key value": what the parsers of the kernel's small files share. */
#ifndef KVMTOP_DECIMAL_H
#define KVMTOP_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The digits at *p, which is then behind them; false: there are none. A number that is too large
 * sticks at the greatest. Independent of the locale.
 */
static inline bool decimal_take(const char **p, const char *end, uint64_t *out)
{
	const char *s = *p;
	uint64_t v = 0;

	while (s < end && *s >= '0' && *s <= '9') {
		unsigned d = (unsigned)(*s++ - '0');

		if (v < UINT64_MAX / 10)
			v = v * 10 + d;
		else
			v = v > (UINT64_MAX - d) / 10 ? UINT64_MAX : v * 10 + d;
	}
	if (s == *p)
		return false;
	*p = s;
	*out = v;
	return true;
}

/* What stands behind `key` and `sep` at the begin of a line; *end is its end. NULL: no such line.
 */
static inline const char *decimal_line(const char *buf, size_t len, const char *key, char sep,
				       const char **end)
{
	size_t klen = strlen(key);

	for (const char *p = buf, *stop = buf + len; p < stop; p = *end + 1) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));

		*end = nl ? nl : stop;
		if ((size_t)(*end - p) > klen && !memcmp(p, key, klen) && p[klen] == sep)
			return p + klen + 1;
	}
	return NULL;
}

#endif
