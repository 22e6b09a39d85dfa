// SPDX-License-Identifier: GPL-2.0-only
/* Lines of /proc/<pid>/maps that may be run. */
#ifndef KVMTOP_MAPS_H
#define KVMTOP_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end, offset, inode; /* inode 0: no file */
	char path[PATH_MAX]; /* without " (deleted)"; "" for anonymous memory */
	char name[64]; /* the last part; "[vdso]"; "[anon]" */
};

/* The next one at or after *at, any bytes; false: no more. */
bool maps_next(const char *text, size_t len, size_t *at, struct mapping *out);

#endif
