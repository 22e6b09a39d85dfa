// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that will be read soon, asked for beforehand: what lies far apart is then waited for
 * once, not once each. Only hints: nothing depends on what is there.
 */
#ifndef KVMTOP_FETCH_H
#define KVMTOP_FETCH_H

#include <stddef.h>

#define FETCH_LINE                                                                                 \
	64 /* bytes that come at once; where a line is longer, some are asked for twice */

static inline void fetch(const void *at, size_t bytes)
{
	const char *p = at;

	for (size_t i = 0; i < bytes; i += FETCH_LINE)
		__builtin_prefetch(p + i);
	/* A function that does nothing else does nothing to the compiler, which leaves it out. */
	__asm__ volatile("");
}

#endif
