// SPDX-License-Identifier: GPL-2.0-only
/*
 * TSC offsets in recordings (store.h): a table of its own, which is not merged with the intervals.
 * A guest may write its TSC as often as it likes, so that the oldest rows go.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "snapshot.h"
#include "store_priv.h"
#include "tsc_late.h"

#define ROWS_MOST 200000 /* of all VMs; about 16 MiB */

static void bind_if(sqlite3_stmt *q, int at, uint64_t v, bool known)
{
	if (known)
		sqlite3_bind_int64(q, at, (int64_t)v);
	else
		sqlite3_bind_null(q, at);
}

static int add_one(struct store *st, const struct snapshot *s, const struct snap_tsc_event *e,
		   int64_t wall, int64_t id)
{
	const struct snap_vm *vm = &s->vms[e->vm];
	sqlite3_stmt *q = store_stmt(st, ST_TSC);

	if (!q)
		return store_errno(st);
	sqlite3_bind_int64(q, 1, id);
	sqlite3_bind_int64(q, 2, st->session);
	sqlite3_bind_int64(q, 3, wall);
	sqlite3_bind_text(q, 4, vm->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 5, vm->vm_id, -1, SQLITE_STATIC);
	sqlite3_bind_int(q, 6, e->kvm_id);
	bind_if(q, 7, e->at, e->at);
	bind_if(q, 8, e->prev, e->at);
	sqlite3_bind_int64(q, 9, (int64_t)e->next);
	bind_if(q, 10, e->ratio, e->ratio);
	bind_if(q, 11, e->frac_bits, e->ratio);
	return store_run(st, ST_TSC);
}

static int add_all(struct store *st, const struct snapshot *s, int64_t wall, int64_t id)
{
	int rc = 0;

	for (size_t i = 0; i < s->ntsc_events && !rc; i++)
		rc = add_one(st, s, &s->tsc_events[i], wall, id);
	return rc;
}

int store_add_tsc(struct store *st, const struct snapshot *s, int64_t id)
{
	int64_t wall = timespec_ns(s->wall);
	int rc = st->late ? add_all(st, st->late, wall, id) : 0;

	if (!rc)
		rc = add_all(st, s, wall, id);
	if (rc || (!s->ntsc_events && !st->late))
		return rc;
	return store_run_with(st, ST_OLD_TSC, ROWS_MOST);
}

int store_late_tsc(struct store *st, const struct snapshot *s)
{
	return tsc_late_add(&st->late, s);
}

int store_tsc(struct store *st, const char *vm, int (*fn)(void *ctx, const struct store_tsc *t),
	      void *ctx)
{
	int rc = -ENOENT, step = SQLITE_DONE;
	sqlite3_stmt *q;

	st->steps = 0;
	if (st->version < STORE_VERSION_FACTS)
		return -ENOENT;
	q = store_stmt(st, ST_TSC_OF);
	if (!q)
		return store_errno(st);
	sqlite3_bind_text(q, 1, vm, -1, SQLITE_STATIC);
	while ((step = sqlite3_step(q)) == SQLITE_ROW) {
		const struct store_tsc t = {
			.vcpu = sqlite3_column_int(q, 0),
			.at = (uint64_t)sqlite3_column_int64(q, 1),
			.prev = (uint64_t)sqlite3_column_int64(q, 2),
			.next = (uint64_t)sqlite3_column_int64(q, 3),
			.ratio = (uint64_t)sqlite3_column_int64(q, 4),
			.frac_bits = (unsigned)sqlite3_column_int(q, 5) & 63,
		};

		rc = t.vcpu < 0 ? -EBADMSG : fn(ctx, &t);
		if (rc)
			break;
	}
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		rc = store_errno(st);
	sqlite3_reset(q);
	return rc;
}
