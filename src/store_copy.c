// SPDX-License-Identifier: GPL-2.0-only
/* Intervals of a recording as a recording of their own (store.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host_facts.h"
#include "store_priv.h"
#include "store_schema.h"

int store_copy_new(const char *path, struct store **out, char *err, size_t size)
{
	const struct store_keep keep = {0};
	int rc = store_create(path, &keep, out, err, size);

	if (rc)
		return rc;
	/* Nobody else sees it before it is whole: no file beside it, and nothing is waited for. */
	rc = store_exec(*out, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF");
	if (!rc)
		rc = store_run(*out, ST_BEGIN);
	if (rc) {
		store_close(*out);
		*out = NULL;
	}
	return rc;
}

/* What is of the interval and not of its figures. */
struct origin {
	unsigned tier, merged;
	uint64_t skipped;
};

static int origin_of(struct store *from, int64_t id, struct origin *o)
{
	sqlite3_stmt *s = store_stmt(from, ST_ORIGIN);
	int rc;

	if (!s)
		return store_errno(from);
	sqlite3_bind_int64(s, 1, id);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		*o = (struct origin){.tier = (unsigned)sqlite3_column_int(s, 0),
				     .merged = (unsigned)sqlite3_column_int(s, 1),
				     .skipped = (uint64_t)sqlite3_column_int64(s, 2)};
	rc = rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : store_errno(from);
	sqlite3_reset(s);
	if (!rc && o->tier >= STORE_TIERS)
		o->tier = STORE_TIERS - 1;
	return rc;
}

int store_copy(struct store *from, const struct store_at *at, const struct snapshot *s,
	       struct store *to)
{
	struct origin o = {0};
	int rc;

	from->steps = to->steps = 0;
	rc = origin_of(from, at->id, &o);
	if (!rc)
		rc = store_add(to, s, o.tier, at->session, at->id, o.skipped, o.merged);
	if (!rc)
		to->last_id = at->id;
	return rc;
}

/* One row, in the order of the table's columns: the fourth and the fifth are the VM's. */
static int copy_tsc_row(sqlite3_stmt *row, char *(*name)(void *ctx, const char *text), void *ctx,
			struct store *to)
{
	sqlite3_stmt *q = store_stmt(to, ST_TSC);
	char *text[2] = {NULL, NULL};
	int rc = q ? 0 : store_errno(to);

	for (int i = 0; i < 11 && !rc; i++) {
		const char *from =
			i == 3 || i == 4 ? (const char *)sqlite3_column_text(row, i) : NULL;

		if (i == 3 || i == 4) {
			text[i - 3] = name(ctx, from ? from : "");
			sqlite3_bind_text(q, i + 1, text[i - 3], -1, SQLITE_STATIC);
			rc = text[i - 3] ? 0 : -ENOMEM;
		} else if (sqlite3_column_type(row, i) == SQLITE_INTEGER) {
			sqlite3_bind_int64(q, i + 1, sqlite3_column_int64(row, i));
		} else {
			sqlite3_bind_null(q, i + 1);
		}
	}
	if (!rc)
		rc = store_run(to, ST_TSC);
	free(text[0]);
	free(text[1]);
	return rc;
}

int store_copy_tsc(struct store *from, int64_t last, char *(*name)(void *ctx, const char *text),
		   void *ctx, struct store *to)
{
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_DONE;

	from->steps = to->steps = 0;
	if (from->version < STORE_VERSION_FACTS)
		return 0;
	s = store_stmt(from, ST_TSC_UP_TO);
	if (!s)
		return store_errno(from);
	sqlite3_bind_int64(s, 1, last);
	while (!rc && (step = sqlite3_step(s)) == SQLITE_ROW)
		rc = copy_tsc_row(s, name, ctx, to);
	if (!rc && step != SQLITE_DONE)
		rc = store_errno(from);
	sqlite3_reset(s);
	return rc;
}

int store_copy_end(struct store *to)
{
	to->steps = 0;
	return store_run(to, ST_COMMIT);
}
