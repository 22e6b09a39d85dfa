// SPDX-License-Identifier: GPL-2.0-only
/* A recording in a folder of its own, for tests of src/store*.c. */
#ifndef KVMTOP_TESTS_STORE_FILE_H
#define KVMTOP_TESTS_STORE_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "store.h"

struct file {
	char dir[64], path[96];
};

static inline int make_dir(void **state)
{
	struct file *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/test-store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/r.db", f->dir);
	*state = f;
	return 0;
}

static inline int drop_dir(void **state)
{
	static const char *const names[] = {"r.db", "r.db-wal", "r.db-shm", "link.db"};
	struct file *f = *state;
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		unlink(path);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

/* With these tiers, and no more bytes than `most`; 0: as many as it takes. */
static inline struct store *create_tiers(const struct file *f, const char *tiers, int64_t most)
{
	struct store_keep keep = {.max_bytes = most};
	struct store *st = NULL;
	char err[300] = "";

	assert_true(!tiers || store_keep_parse(tiers, &keep));
	if (store_create(f->path, &keep, &st, err, sizeof(err)))
		fail_msg("%s", err);
	return st;
}

/* One that keeps all as it is. */
static inline struct store *create(const struct file *f)
{
	return create_tiers(f, NULL, 0);
}

static inline struct store *open_again(const struct file *f)
{
	struct store *st = NULL;
	char err[300] = "";

	if (store_open(f->path, &st, err, sizeof(err)))
		fail_msg("%s", err);
	return st;
}

#endif
