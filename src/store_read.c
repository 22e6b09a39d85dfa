// SPDX-License-Identifier: GPL-2.0-only
/* Finding and reading intervals (store.h). */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "store_priv.h"
#include "store_schema.h"

int store_range(struct store *st, struct store_range *out)
{
	sqlite3_stmt *s;
	int rc;

	st->steps = 0;
	s = store_stmt(st, ST_RANGE);
	if (!s)
		return store_errno(st);
	if (sqlite3_step(s) != SQLITE_ROW) {
		rc = store_errno(st);
	} else if (sqlite3_column_type(s, 3) == SQLITE_NULL || sqlite3_column_int64(s, 2) <= 0) {
		/* Intervals none of which makes sense are not the same as none. */
		rc = sqlite3_column_int(s, 4) ? -EBADMSG : -ENOENT;
	} else {
		*out = (struct store_range){.first = sqlite3_column_int64(s, 0),
					    .last = sqlite3_column_int64(s, 1),
					    .newest = sqlite3_column_int64(s, 3),
					    .n = (uint64_t)sqlite3_column_int64(s, 2)};
		rc = 0;
	}
	sqlite3_reset(s);
	return rc;
}

int store_moments(struct store *st, const struct store_range *r, struct store_moment *out, size_t n)
{
	int64_t each = n ? (r->last - r->first) / (int64_t)n + 1 : 1;
	int found = 0, rc = SQLITE_DONE;
	sqlite3_stmt *s;

	st->steps = 0;
	s = store_stmt(st, ST_MOMENTS);
	if (!s)
		return store_errno(st);
	sqlite3_bind_int64(s, 1, r->first);
	sqlite3_bind_int64(s, 2, each > 0 ? each : 1);
	sqlite3_bind_int64(s, 3, r->last);
	sqlite3_bind_int64(s, 4, (int64_t)n);
	while ((size_t)found < n && (rc = sqlite3_step(s)) == SQLITE_ROW)
		out[found++] = (struct store_moment){
			.id = sqlite3_column_int64(s, 0),
			.wall = sqlite3_column_int64(s, 1),
			.steal_max = sqlite3_column_double(s, 2) / 1e3,
			.dt = sqlite3_column_int64(s, 3),
			.findings = (unsigned)sqlite3_column_int(s, 4),
		};
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		found = store_errno(st);
	sqlite3_reset(s);
	return found;
}

/* What a statement of intervals finds. */
static int take_at(struct store *st, sqlite3_stmt *s, struct store_at *out)
{
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		*out = (struct store_at){.id = sqlite3_column_int64(s, 0),
					 .wall = sqlite3_column_int64(s, 1),
					 .dt = sqlite3_column_int64(s, 2),
					 .session = sqlite3_column_int64(s, 3),
					 .skipped = (uint64_t)sqlite3_column_int64(s, 4)};
	rc = rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : store_errno(st);
	sqlite3_reset(s);
	return rc;
}

int store_next_within(struct store *st, int64_t id, int64_t from, int64_t to, struct store_at *out)
{
	sqlite3_stmt *s;
	int rc;

	st->steps = 0;
	s = store_stmt(st, ST_WITHIN);
	if (!s)
		return store_errno(st);
	sqlite3_bind_int64(s, 1, id);
	sqlite3_bind_int64(s, 2, from);
	sqlite3_bind_int64(s, 3, to);
	rc = take_at(st, s, out);
	return !rc && out->id <= id ? -EBADMSG : rc;
}

int store_find(struct store *st, enum store_seek how, int64_t time_or_id, struct store_at *out)
{
	static const enum store_statement statements[] = {
		[STORE_AT] = ST_AT,	    [STORE_FROM] = ST_FROM,   [STORE_NEXT] = ST_NEXT,
		[STORE_BEFORE] = ST_BEFORE, [STORE_FIRST] = ST_FIRST, [STORE_LAST] = ST_LAST,
	};
	sqlite3_stmt *s;
	int rc;

	st->steps = 0;
	s = store_stmt(st, statements[how]);
	if (!s)
		return store_errno(st);
	if (how != STORE_FIRST && how != STORE_LAST)
		sqlite3_bind_int64(s, 1, time_or_id);
	rc = take_at(st, s, out);
	/* In a damaged file ids need not be in order: who goes on by them would never end. */
	if (!rc && ((how == STORE_NEXT && out->id <= time_or_id) ||
		    (how == STORE_BEFORE && out->id >= time_or_id)))
		return -EBADMSG;
	if (rc == -ENOENT && how == STORE_AT)
		return store_find(st, STORE_FIRST, 0, out);
	return rc;
}

/* Texts are read when an interval names them first, and kept for those that follow. */
static const char *text_of(void *ctx, uint32_t id)
{
	struct store *st = ctx;
	const char *text = store_dict_text(&st->read_dict, id);
	sqlite3_stmt *s;

	if (text)
		return text;
	s = store_stmt(st, ST_GET_TEXT);
	if (!s)
		return NULL;
	sqlite3_bind_int64(s, 1, st->read_segment);
	sqlite3_bind_int64(s, 2, id);
	if (sqlite3_step(s) == SQLITE_ROW) {
		const char *found = (const char *)sqlite3_column_text(s, 0);

		if (found && !store_dict_set(&st->read_dict, id, found))
			text = store_dict_text(&st->read_dict, id);
	}
	sqlite3_reset(s);
	return text;
}

/* From one boot to the next, and from one recorder to the next, the wall clock is what goes on. */
static void use_wall_clock(struct snapshot *s)
{
	struct snap_finding *f = (struct snap_finding *)s->findings;
	int64_t wall = timespec_ns(s->wall);

	for (size_t i = 0; i < s->nfindings; i++)
		f[i].since = wall - (s->time - f[i].since);
	s->since = wall - (s->time - s->since);
	s->time = wall;
}

static int unpack_row(struct store *st, sqlite3_stmt *s, bool part, struct snapshot **out)
{
	const struct store_texts texts = {.ctx = st, .text = text_of};
	int64_t segment = sqlite3_column_int64(s, 0), length = sqlite3_column_int64(s, 1);
	const void *data = sqlite3_column_blob(s, 2);
	int n = sqlite3_column_bytes(s, 2), rc;

	if (!data || n <= 0 || length <= 0)
		return -EBADMSG;
	rc = store_unpack(&st->packer, data, (size_t)n, (size_t)length, &st->packed);
	if (rc)
		return rc;
	if (segment != st->read_segment) {
		store_dict_clear(&st->read_dict);
		st->read_segment = segment;
	}
	return part ? store_decode_part(st->packed.data, st->packed.n, &texts, out)
		    : store_decode(st->packed.data, st->packed.n, &texts, out);
}

static int read_one(struct store *st, int64_t id, bool part, struct snapshot **out)
{
	sqlite3_stmt *s;
	int rc;

	st->steps = 0;
	s = store_stmt(st, ST_READ);
	if (!s)
		return store_errno(st);
	sqlite3_bind_int64(s, 1, id);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		rc = unpack_row(st, s, part, out);
	else
		rc = rc == SQLITE_DONE ? -ENOENT : store_errno(st);
	sqlite3_reset(s);
	if (!rc)
		use_wall_clock(*out);
	return rc;
}

int store_read(struct store *st, int64_t id, struct snapshot **out)
{
	return read_one(st, id, false, out);
}

int store_read_part(struct store *st, int64_t id, struct snapshot **out)
{
	return read_one(st, id, true, out);
}
