// SPDX-License-Identifier: GPL-2.0-only
/* Recordings of perf (tests/data/perf), unpacked. */
#ifndef KVMTOP_TESTS_PERF_FILES_H
#define KVMTOP_TESTS_PERF_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PERF_FILE_MOST (2u << 20)

/* "X": tests/data/perf/X.perf.data.xz. The caller frees it. */
static inline uint8_t *unpack(const char *name, size_t *len)
{
	uint8_t *bytes = malloc(PERF_FILE_MOST);
	char command[160];
	FILE *f;

	snprintf(command, sizeof(command), "xz -dc tests/data/perf/%s.perf.data.xz", name);
	f = popen(command, "r");
	assert_non_null(f);
	*len = fread(bytes, 1, PERF_FILE_MOST, f);
	assert_int_equal(pclose(f), 0);
	assert_true(*len > 20000 && *len < PERF_FILE_MOST);
	return bytes;
}

#endif
