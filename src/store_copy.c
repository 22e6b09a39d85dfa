// SPDX-License-Identifier: GPL-2.0-only
/* Intervals of a recording as a recording of their own (store.h). */
#include <errno.h>
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

int store_copy_end(struct store *to)
{
	to->steps = 0;
	return store_run(to, ST_COMMIT);
}
