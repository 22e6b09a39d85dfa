// SPDX-License-Identifier: GPL-2.0-only
/* Files below a folder of a test, for --root and the like: made with all folders on the way. */
#ifndef KVMTOP_TESTS_MADE_TREE_H
#define KVMTOP_TESTS_MADE_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

/* The folders that a path goes through. */
static inline void tree_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static inline void tree_put_bytes(char *path, const void *data, size_t len)
{
	FILE *f;

	tree_parents(path);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void tree_put(const char *dir, const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	tree_put_bytes(full, text, strlen(text));
}

static inline void tree_remove(const char *path)
{
	char cmd[600];

	snprintf(cmd, sizeof(cmd), "rm -r '%s'", path);
	assert_int_equal(system(cmd), 0);
}

/* All of a file, with a NUL behind it; the caller frees it. len may be NULL. */
static inline char *file_text(const char *path, size_t *len)
{
	FILE *f = fopen(path, "r");
	struct stat st;
	char *text;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	if (len)
		*len = (size_t)st.st_size;
	return text;
}

#endif
