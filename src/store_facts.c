// SPDX-License-Identifier: GPL-2.0-only
/* Facts of the host in recordings (store.h): a set of them holds until the next one begins. */
#include <errno.h>
#include <string.h>

#include "host_facts.h"
#include "store_priv.h"
#include "store_schema.h"

static int add_all(struct store *st, const struct host_facts *f, int64_t since)
{
	sqlite3_stmt *s = store_stmt(st, ST_FACT);
	int rc = s ? 0 : store_errno(st);

	for (size_t i = 0; i < f->n && !rc; i++) {
		sqlite3_bind_int64(s, 1, since);
		sqlite3_bind_text(s, 2, f->fact[i].name, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 3, f->fact[i].value, -1, SQLITE_STATIC);
		rc = store_run(st, ST_FACT);
	}
	return rc;
}

int store_write_facts(struct store *st, const struct host_facts *f)
{
	int64_t since = st->last_id + 1;
	int rc;

	st->steps = 0;
	rc = store_run(st, ST_BEGIN);
	if (rc)
		return rc;
	rc = store_run_with(st, ST_DEL_FACTS, since);
	if (!rc)
		rc = add_all(st, f, since);
	if (!rc) /* those of intervals that are gone */
		rc = store_run(st, ST_OLD_FACTS);
	if (!rc)
		rc = store_run(st, ST_COMMIT);
	if (rc && !sqlite3_get_autocommit(st->db))
		store_run(st, ST_ROLLBACK);
	return rc;
}

int store_copy_facts(struct store *to, const struct host_facts *f, int64_t since)
{
	to->steps = 0;
	return add_all(to, f, since);
}

/* Texts of the file: each is refused where it is longer than what we write. */
static int take(sqlite3_stmt *s, struct host_facts *out)
{
	const char *name = (const char *)sqlite3_column_text(s, 0);
	const char *value = (const char *)sqlite3_column_text(s, 1);

	if (!name || !value || strlen(name) > HOST_FACT_BYTES || strlen(value) > HOST_FACT_BYTES)
		return -EBADMSG;
	return host_facts_add(out, name, value);
}

int store_facts(struct store *st, int64_t id, struct host_facts *out)
{
	sqlite3_stmt *s;
	int rc = 0, step = SQLITE_DONE;

	*out = (struct host_facts){0};
	st->steps = 0;
	if (st->version < STORE_VERSION_FACTS)
		return -ENOENT;
	s = store_stmt(st, ST_FACTS);
	if (!s)
		return store_errno(st);
	sqlite3_bind_int64(s, 1, id);
	while (!rc && (step = sqlite3_step(s)) == SQLITE_ROW)
		rc = take(s, out);
	if (!rc && step != SQLITE_DONE)
		rc = store_errno(st);
	sqlite3_reset(s);
	if (!rc && !out->n)
		rc = -ENOENT;
	if (rc)
		host_facts_free(out);
	return rc == -E2BIG ? -EBADMSG : rc;
}
