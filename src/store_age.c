// SPDX-License-Identifier: GPL-2.0-only
/* What becomes of old intervals: tiers and the size limit (store.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "store_merge.h"
#include "store_priv.h"
#include "store_reduce.h"
#include "store_schema.h"
#include "store_time.h"

/* Longer intervals than this many are made of several rounds: all parts are in memory at once. */
#define GROUP_MOST 64
/* Groups a call and tier: one suffices in the long run, more catch up. */
#define ROUNDS 4
/* Of a size limit that is too small for all each tier keeps this many, as long as there is another.
 */
#define FINEST_LEAST 60

/* ---- words ---- */

bool store_keep_parse(const char *text, struct store_keep *out)
{
	struct store_keep k = {.max_bytes = out->max_bytes};

	for (const char *p = text;; p++) {
		size_t n = strcspn(p, ","), every = strcspn(p, ":");
		struct store_tier *t = &k.tier[k.n];

		if (k.n == STORE_TIERS || every >= n ||
		    !store_duration_parse(p, every, &t->every_ns) ||
		    !store_duration_parse(p + every + 1, n - every - 1, &t->keep_ns))
			return false;
		/* Each is coarser than the one before and reaches further back. */
		if (t->keep_ns < t->every_ns ||
		    (k.n && (t->every_ns <= t[-1].every_ns || t->keep_ns <= t[-1].keep_ns)))
			return false;
		k.n++;
		p += n;
		if (!*p)
			break;
	}
	*out = k;
	return true;
}

const char *store_keep_text(const struct store_keep *k, char *buf, size_t size)
{
	char every[24], keep[24];
	size_t at = 0;

	snprintf(buf, size, "%s", "");
	for (unsigned i = 0; i < k->n && at < size; i++)
		at += (size_t)snprintf(
			buf + at, size - at, "%s%s for %s", i ? ", " : "",
			store_duration_text(k->tier[i].every_ns, every, sizeof(every)),
			store_duration_text(k->tier[i].keep_ns, keep, sizeof(keep)));
	return buf;
}

bool store_size_parse(const char *text, int64_t *out)
{
	static const char units[] = "KMGT";
	int64_t v = 0;
	const char *u;

	for (; *text >= '0' && *text <= '9'; text++) {
		if (v > (int64_t)1 << 40)
			return false;
		v = v * 10 + (*text - '0');
	}
	u = *text ? strchr(units, *text) : NULL;
	if (*text && (!u || text[1]))
		return false;
	for (const char *p = units; u && p <= u; p++) {
		if (v > INT64_MAX / 2048)
			return false;
		v *= 1024;
	}
	*out = v;
	return v >= 1 << 20;
}

void store_keep_measured(struct store_keep *k, int64_t ns)
{
	unsigned gone = 0;

	while (gone + 1 < k->n && k->tier[gone + 1].every_ns <= ns)
		gone++;
	k->n -= gone;
	memmove(k->tier, k->tier + gone, k->n * sizeof(k->tier[0]));
	k->tier[0].every_ns = ns;
}

/* How many intervals there are where the tiers end at these ages. */
static double intervals_of(const struct store_keep *k, const double *end)
{
	double n = 0;

	for (unsigned i = 0; i < k->n; i++)
		n += (end[i] - (i ? end[i - 1] : 0)) / (double)k->tier[i].every_ns;
	return n;
}

/* The i-th tier ends earlier, and those behind it not before it, so that there are `most`. */
static void end_earlier(const struct store_keep *k, double *end, unsigned i, double most)
{
	double before = i ? end[i - 1] : 0, every = (double)k->tier[i].every_ns;
	double least = before + (i + 1 < k->n ? FINEST_LEAST * every : 0);
	double saves = 1 / every - (i + 1 < k->n ? 1 / (double)k->tier[i + 1].every_ns : 0);
	double to = end[i] - (intervals_of(k, end) - most) / saves;

	end[i] = fmin(end[i], fmax(to, least));
	for (unsigned j = i + 1; j < k->n; j++)
		end[j] = fmax(end[j], end[i]);
}

double store_expected(const struct store *st, int64_t *reach)
{
	const struct store_keep *k = &st->keep;
	double most = (double)k->max_bytes / (double)(st->last_bytes ? st->last_bytes : 1);
	double end[STORE_TIERS] = {0}, n;

	for (unsigned i = 0; i < k->n; i++)
		end[i] = (double)k->tier[i].keep_ns;
	n = intervals_of(k, end);
	for (unsigned i = 0; i < k->n && k->max_bytes && n > most; i++) {
		end_earlier(k, end, i, most);
		n = intervals_of(k, end);
	}
	*reach = k->n ? (int64_t)end[k->n - 1] : 0;
	/* Not even the least of the finest: as many of them as there is room for. */
	if (k->n && k->max_bytes && n > most) {
		*reach = (int64_t)(most * (double)k->tier[0].every_ns);
		n = most;
	}
	return n * (double)st->last_bytes;
}

/* ---- groups ---- */

struct row {
	int64_t id, time, session, segment;
	uint64_t merged, skipped;
};

/* One that no clock has is that of a damaged row, which is older than all. */
static int64_t sound_time(int64_t time)
{
	return time >= 0 && time <= STORE_TIME_MOST ? time : 0;
}

/* The oldest intervals of a tier. Returns how many, or -errno. */
static int oldest(struct store *st, unsigned tier, struct row *row, int most)
{
	sqlite3_stmt *s = store_stmt(st, ST_OLDEST);
	int n = 0, rc = SQLITE_DONE;

	if (!s)
		return store_errno(st);
	sqlite3_bind_int(s, 1, (int)tier);
	sqlite3_bind_int(s, 2, most);
	while (n < most && (rc = sqlite3_step(s)) == SQLITE_ROW)
		row[n++] = (struct row){.id = sqlite3_column_int64(s, 0),
					.time = sound_time(sqlite3_column_int64(s, 1)),
					.session = sqlite3_column_int64(s, 2),
					.merged = (uint64_t)sqlite3_column_int64(s, 3),
					.skipped = (uint64_t)sqlite3_column_int64(s, 4),
					.segment = sqlite3_column_int64(s, 5)};
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		n = store_errno(st);
	sqlite3_reset(s);
	return n;
}

static bool segment_open(const struct store *st, int64_t segment)
{
	for (int i = 0; i < STORE_TIERS; i++)
		if (st->segment[i].id == segment)
			return true;
	return false;
}

static int drop(struct store *st, const struct row *row, int n)
{
	static const enum store_statement parts[] = {ST_DEL_FRAME, ST_DEL_VM, ST_DEL_VCPU,
						     ST_DEL_WAITED, ST_DEL_INTERVAL};
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]) && !rc; k++)
			rc = store_run_with(st, parts[k], row[i].id);
		/* Texts go with the last interval that has them. */
		if ((i + 1 < n && row[i + 1].segment == row[i].segment) ||
		    segment_open(st, row[i].segment))
			continue;
		if (!rc)
			rc = store_run_with(st, ST_DEL_TEXT, row[i].segment);
		if (!rc)
			rc = store_run_with(st, ST_DEL_SEGMENT, row[i].segment);
	}
	return rc;
}

static int write_merged(struct store *st, struct snapshot *const *part, size_t nparts,
			const struct row *row, int n, unsigned tier)
{
	uint64_t merged = 0, skipped = 0;
	struct snapshot *s = NULL, *kept;
	int rc = 0;

	for (int i = 0; i < n; i++) {
		merged += row[i].merged;
		skipped += row[i].skipped;
	}
	rc = drop(st, row, n);
	if (rc || !nparts) /* all of them damaged */
		return rc;
	rc = store_merge(part, nparts, &s);
	/* Many intervals have more keys, symbols and tasks together than each of them. */
	kept = rc ? NULL : store_reduce_longer(s);
	if (!rc && !kept)
		rc = -ENOMEM;
	/* In place of the newest of them: the order of ids is that of time, whatever was merged. */
	if (!rc)
		rc = store_add(st, kept, tier, row[n - 1].session, row[n - 1].id, skipped,
			       (unsigned)merged);
	snapshot_unref(kept);
	snapshot_unref(s);
	return rc;
}

static int merge_rows(struct store *st, const struct row *row, int n, unsigned tier)
{
	struct snapshot *part[GROUP_MOST];
	size_t nparts = 0;
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		rc = store_read_part(st, row[i].id, &part[nparts]);
		if (!rc)
			nparts++;
		else if (rc == -EBADMSG || rc == -ENOENT)
			rc = 0;
	}
	if (!rc)
		rc = write_merged(st, part, nparts, row, n, tier);
	for (size_t i = 0; i < nparts; i++)
		snapshot_unref(part[i]);
	return rc;
}

/* How many of the rows, from the first on, are of one longer interval and one run. */
static int group_size(const struct row *row, int n, int64_t every)
{
	int k = 1;

	while (k < n && row[k].session == row[0].session &&
	       (row[k].time - 1) / every == (row[0].time - 1) / every)
		k++;
	return k;
}

/*
 * When a row was recorded. What a clock had that was put back since is at least as old as what was
 * recorded after that.
 */
static int64_t recorded_at(struct store *st, unsigned tier, const struct row *row)
{
	sqlite3_stmt *s = row->time > st->last_wall ? store_stmt(st, ST_TIME_AFTER) : NULL;
	int64_t at = row->time;

	if (!s)
		return at;
	sqlite3_bind_int(s, 1, (int)tier);
	sqlite3_bind_int64(s, 2, row->id);
	sqlite3_bind_int64(s, 3, st->last_wall);
	if (sqlite3_step(s) == SQLITE_ROW)
		at = sound_time(sqlite3_column_int64(s, 0));
	sqlite3_reset(s);
	return at;
}

/*
 * One group of a tier's oldest goes to the next tier, or away after the last. `before`: what ended
 * by then is too old. 1: done, 0: none is old enough, -errno.
 */
static int age_group(struct store *st, unsigned tier, int64_t before)
{
	bool last = tier + 1 >= st->keep.n;
	int64_t every = st->keep.tier[last ? tier : tier + 1].every_ns, at, end;
	struct row row[GROUP_MOST] = {0};
	int n = oldest(st, tier, row, GROUP_MOST), rc;

	if (n <= 0)
		return n;
	n = group_size(row, n, every);
	at = recorded_at(st, tier, &row[0]);
	if (at > before)
		return 0;
	end = ((at - 1) / every + 1) * every;
	/* One of an earlier run, or before the clock was put back, is whole. */
	if (end > before && row[0].session == st->session && at == row[0].time)
		return 0;
	rc = last ? drop(st, row, n) : merge_rows(st, row, n, tier + 1);
	return rc ? rc : 1;
}

static int64_t count_of(struct store *st, unsigned tier)
{
	sqlite3_stmt *s = store_stmt(st, ST_COUNT);
	int64_t n = 0;

	if (!s)
		return 0;
	sqlite3_bind_int(s, 1, (int)tier);
	if (sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return n;
}

static bool too_large(struct store *st)
{
	int64_t pages = store_pragma(st, "page_count"), unused = store_pragma(st, "freelist_count");

	return st->keep.max_bytes > 0 &&
	       (pages - unused) * store_pragma(st, "page_size") > st->keep.max_bytes;
}

/* The oldest of the finest tier that has more than it needs; else the oldest of all goes. */
static int shrink(struct store *st)
{
	for (unsigned i = 0; i + 1 < st->keep.n; i++)
		if (count_of(st, i) > FINEST_LEAST)
			return age_group(st, i, INT64_MAX);
	for (unsigned i = st->keep.n; i-- > 0;)
		if (count_of(st, i) > (i ? 0 : 1))
			return age_group(st, i, INT64_MAX);
	return 0;
}

static int age_all(struct store *st)
{
	int rc = 0;

	for (unsigned i = 0; i < st->keep.n; i++) {
		rc = 1;
		for (int round = 0; round < ROUNDS && rc > 0; round++)
			rc = age_group(st, i, st->last_wall - st->keep.tier[i].keep_ns);
		if (rc < 0)
			return rc;
	}
	rc = 1;
	for (int round = 0; round < ROUNDS && rc > 0 && too_large(st); round++)
		rc = shrink(st);
	return rc < 0 ? rc : 0;
}

int store_age(struct store *st)
{
	int rc;

	if (!st->keep.n)
		return 0;
	st->steps = 0;
	rc = store_run(st, ST_BEGIN);
	if (rc)
		return rc;
	rc = age_all(st);
	if (!rc)
		rc = store_run(st, ST_COMMIT);
	if (rc) {
		if (!sqlite3_get_autocommit(st->db))
			store_run(st, ST_ROLLBACK);
		store_forget_segments(st);
	}
	return rc;
}
