// SPDX-License-Identifier: GPL-2.0-only
/* A recording's file of any bytes: refused, or read to its end whatever is in it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host_facts.h"
#include "store.h"

#define INTERVALS_MOST 8

static int take_tsc(void *ctx, const struct store_tsc *t)
{
	(void)ctx;
	(void)t;
	return 0;
}

static void read_all(struct store *st)
{
	struct store_range range;
	struct store_at at;
	struct host_facts facts;
	struct snapshot *s;
	int n = 0;

	(void)store_range(st, &range);
	(void)store_tsc(st, "web01", take_tsc, NULL);
	(void)store_find(st, STORE_AT, 1790000000000000000, &at);
	for (int rc = store_find(st, STORE_FIRST, 0, &at); !rc && n < INTERVALS_MOST; n++) {
		if (!store_read(st, at.id, &s))
			snapshot_unref(s);
		if (!store_facts(st, at.id, &facts))
			host_facts_free(&facts);
		rc = store_find(st, STORE_NEXT, at.id, &at);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	struct store *st;
	char path[40], err[300];

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!store_open(path, &st, err, sizeof(err))) {
		read_all(st);
		store_close(st);
	}
	close(fd);
	return 0;
}
