// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole records of a small perf.data file, in the order in which perfdata_run() hands them out: all
 * of them are kept in memory to the end.
 */
#ifndef KVMTOP_TESTS_PERFDATA_WHOLE_H
#define KVMTOP_TESTS_PERFDATA_WHOLE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata.h"

typedef int (*perfdata_record_fn)(void *ctx, const struct perfdata_record *r);

struct perfdata_whole {
	perfdata_record_fn fn;
	void *ctx;
	struct perfdata_kept *last;
};

struct perfdata_kept {
	struct perfdata_kept *before;
	struct perfdata_record r;
	uint8_t bytes[];
};

static inline int perfdata_keep(void *ctx, const struct perfdata_record *r, void *slot)
{
	struct perfdata_whole *w = ctx;
	struct perfdata_kept *k = malloc(sizeof(*k) + r->size);

	if (!k)
		return -ENOMEM;
	*k = (struct perfdata_kept){.before = w->last, .r = *r};
	memcpy(k->bytes, r->bytes, r->size);
	k->r.bytes = k->bytes;
	if (r->raw)
		k->r.raw = k->bytes + (r->raw - r->bytes);
	w->last = k;
	memcpy(slot, &k, sizeof(k));
	return 1;
}

static inline int perfdata_give(void *ctx, int64_t time, const void *slot)
{
	struct perfdata_whole *w = ctx;
	struct perfdata_kept *k;

	(void)time;
	memcpy(&k, slot, sizeof(k));
	return w->fn(w->ctx, &k->r);
}

static inline int perfdata_read(struct perfdata *p, perfdata_record_fn fn, void *ctx)
{
	struct perfdata_whole w = {fn, ctx, NULL};
	struct perfdata_reader reader = {sizeof(void *), true, perfdata_keep, perfdata_give, &w};
	int rc = perfdata_run(p, &reader);

	while (w.last) {
		struct perfdata_kept *k = w.last;

		w.last = k->before;
		free(k);
	}
	return rc;
}

#endif
