// SPDX-License-Identifier: GPL-2.0-only
/* Writing intervals (store.h): one transaction each. */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "clock.h"
#include "field.h"
#include "store_priv.h"
#include "store_reduce.h"
#include "store_schema.h"

/*
 * A segment's texts are kept as long as one of its intervals is; where texts change all the time
 * (VMs that come and go) they must be gone with them. In intervals of the tier.
 */
#define SEGMENT_INTERVALS 1200
#define SEGMENT_TEXTS 50000

static uint32_t text_id(void *ctx, const char *text)
{
	return store_dict_id(&((struct store_segment *)ctx)->dict, text);
}

/* What the database did not take must not be believed to be there. */
void store_forget_segments(struct store *st)
{
	for (int i = 0; i < STORE_TIERS; i++) {
		store_dict_clear(&st->segment[i].dict);
		st->segment[i] = (struct store_segment){0};
	}
}

static int open_segment(struct store *st, unsigned tier, int64_t wall)
{
	struct store_segment *g = &st->segment[tier];
	int64_t every = st->keep.n ? st->keep.tier[tier].every_ns : NS_PER_S;
	int64_t most = STORE_AGO_MOST / SEGMENT_INTERVALS;
	int rc;

	if (g->id && wall < g->until && g->dict.n < SEGMENT_TEXTS)
		return 0;
	store_dict_clear(&g->dict);
	every = every < most ? every : most;
	*g = (struct store_segment){.saved = 1, .until = wall + every * SEGMENT_INTERVALS};
	rc = store_run(st, ST_SEGMENT);
	g->id = sqlite3_last_insert_rowid(st->db);
	return rc;
}

static int save_texts(struct store *st, struct store_segment *g)
{
	sqlite3_stmt *s = store_stmt(st, ST_TEXT);
	int rc = s ? 0 : store_errno(st);

	while (!rc && g->saved < g->dict.n) {
		sqlite3_bind_int64(s, 1, g->id);
		sqlite3_bind_int64(s, 2, g->saved);
		sqlite3_bind_text(s, 3, g->dict.text[g->saved], -1, SQLITE_STATIC);
		rc = store_run(st, ST_TEXT);
		g->saved++;
	}
	return rc;
}

/* In thousandths, NULL where it is not known. */
static void bind_value(sqlite3_stmt *s, int at, struct value v)
{
	if (value_has(v) && fabs(v.v) < 1e15)
		sqlite3_bind_int64(s, at, llround(v.v * 1000));
	else
		sqlite3_bind_null(s, at);
}

static int add_vm(struct store *st, const struct snap_vm *vm, size_t n, int64_t id,
		  struct store_segment *g)
{
	sqlite3_stmt *s = store_stmt(st, ST_VM);
	uint32_t name = store_dict_id(&g->dict, vm->name);
	uint32_t vm_id = store_dict_id(&g->dict, vm->vm_id);
	uint32_t top = store_dict_id(&g->dict, vm->ex.top ? vm->ex.top : "");

	if (!s)
		return store_errno(st);
	if (!name || !vm_id || !top)
		return -ENOMEM;
	sqlite3_bind_int64(s, 1, id);
	sqlite3_bind_int64(s, 2, (int64_t)n);
	sqlite3_bind_int64(s, 3, name);
	sqlite3_bind_int64(s, 4, vm_id);
	sqlite3_bind_int(s, 5, vm->pid);
	bind_value(s, 6, vm->use.cpu);
	bind_value(s, 7, vm->use.guest);
	bind_value(s, 8, vm->use.sys);
	bind_value(s, 9, vm->use.steal);
	bind_value(s, 10, vm->use.throt);
	bind_value(s, 11, vm->steal_max);
	sqlite3_bind_int(s, 12, vm->steal_max_vcpu);
	bind_value(s, 13, vm->ex.rate);
	bind_value(s, 14, vm->ex.pct);
	sqlite3_bind_int64(s, 15, top);
	sqlite3_bind_text(s, 16, vm->why_text ? vm->why_text : "", -1, SQLITE_STATIC);
	return store_run(st, ST_VM);
}

static int add_vcpu(struct store *st, const struct snap_vcpu *c, size_t n, int64_t id)
{
	sqlite3_stmt *s = store_stmt(st, ST_VCPU);

	if (!s)
		return store_errno(st);
	sqlite3_bind_int64(s, 1, id);
	sqlite3_bind_int64(s, 2, c->vm);
	sqlite3_bind_int(s, 3, c->index);
	sqlite3_bind_int64(s, 4, (int64_t)n);
	bind_value(s, 5, c->use.cpu);
	bind_value(s, 6, c->use.guest);
	bind_value(s, 7, c->use.sys);
	bind_value(s, 8, c->use.steal);
	bind_value(s, 9, c->use.throt);
	bind_value(s, 10, c->ex.rate);
	bind_value(s, 11, c->ex.pct);
	return store_run(st, ST_VCPU);
}

/* Of who had the CPU what a VM's vCPUs waited a hundredth of their time for; the rest is in frames.
 */
#define WAITED_ROWS 4
#define WAITED_PCT 1.0

static int add_waited_row(struct store *st, const struct snap_waited *w, size_t n, int64_t id,
			  struct store_segment *g)
{
	sqlite3_stmt *q = store_stmt(st, ST_WAITED);
	uint32_t by = store_dict_id(&g->dict, w->name ? w->name : "");

	if (!q)
		return store_errno(st);
	if (!by)
		return -ENOMEM;
	sqlite3_bind_int64(q, 1, id);
	sqlite3_bind_int64(q, 2, w->vm);
	sqlite3_bind_int64(q, 3, (int64_t)n);
	sqlite3_bind_int64(q, 4, by);
	sqlite3_bind_text(q, 5, field_waited_kind((enum waited_kind)w->kind), -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 6, (int64_t)w->ns);
	bind_value(q, 7, w->share);
	bind_value(q, 8, w->pct);
	return store_run(st, ST_WAITED);
}

static int add_waited(struct store *st, const struct snapshot *s, const struct snap_waits *w,
		      int64_t id, struct store_segment *g)
{
	size_t n = 0;
	int rc = 0;

	for (uint32_t i = w->first; i < w->first + w->n && n < WAITED_ROWS && !rc; i++)
		if (value_has(s->waited[i].pct) && s->waited[i].pct.v >= WAITED_PCT)
			rc = add_waited_row(st, &s->waited[i], n++, id, g);
	return rc;
}

static int add_rows(struct store *st, const struct snapshot *s, int64_t id, struct store_segment *g)
{
	int rc = 0;

	for (size_t i = 0; i < s->nvms && !rc; i++) {
		const struct snap_vm *vm = &s->vms[i];

		rc = add_vm(st, vm, i, id, g);
		if (!rc)
			rc = add_waited(st, s, &vm->waits, id, g);
		for (size_t k = 0; k < vm->vcpu_n && !rc; k++)
			rc = add_vcpu(st, &s->vcpus[vm->vcpu_first + k], k, id);
	}
	return rc;
}

static struct value steal_max(const struct snapshot *s)
{
	struct value most = value_pending();

	for (size_t i = 0; i < s->nvms; i++)
		if (value_has(s->vms[i].steal_max) &&
		    (!value_has(most) || s->vms[i].steal_max.v > most.v))
			most = s->vms[i].steal_max;
	return most;
}

static int add_interval(struct store *st, const struct snapshot *s, unsigned tier, int64_t session,
			int64_t id, uint64_t skipped, unsigned merged)
{
	sqlite3_stmt *q = store_stmt(st, ST_INTERVAL);

	if (!q)
		return store_errno(st);
	sqlite3_bind_int64(q, 1, id);
	sqlite3_bind_int64(q, 2, timespec_ns(s->wall));
	sqlite3_bind_int64(q, 3, s->dt);
	sqlite3_bind_int(q, 4, (int)tier);
	sqlite3_bind_int64(q, 5, session);
	sqlite3_bind_int64(q, 6, st->segment[tier].id);
	sqlite3_bind_int64(q, 7, merged);
	sqlite3_bind_int64(q, 8, (int64_t)skipped);
	sqlite3_bind_int64(q, 9, (int64_t)s->host.lost);
	sqlite3_bind_int64(q, 10, (int64_t)s->nvms);
	sqlite3_bind_int64(q, 11, (int64_t)s->nvcpus);
	bind_value(q, 12, s->host.usr);
	bind_value(q, 13, s->host.sys);
	bind_value(q, 14, s->host.guest);
	bind_value(q, 15, s->host.idle);
	bind_value(q, 16, s->host.steal);
	bind_value(q, 17, steal_max(s));
	bind_value(q, 18, s->host.exits_rate);
	sqlite3_bind_int64(q, 19, (int64_t)s->nfindings);
	return store_run(st, ST_INTERVAL);
}

static int add_frame(struct store *st, int64_t id, bool longer)
{
	sqlite3_stmt *q = store_stmt(st, ST_FRAME);
	int rc = store_pack(&st->packer, &st->bytes, longer, &st->packed);

	if (rc)
		return rc;
	if (!q)
		return store_errno(st);
	sqlite3_bind_int64(q, 1, id);
	sqlite3_bind_int64(q, 2, (int64_t)st->bytes.n);
	sqlite3_bind_blob64(q, 3, st->packed.data, st->packed.n, SQLITE_STATIC);
	return store_run(st, ST_FRAME);
}

int store_add(struct store *st, const struct snapshot *s, unsigned tier, int64_t session,
	      int64_t id, uint64_t skipped, unsigned merged)
{
	struct store_segment *g = &st->segment[tier];
	const struct store_texts texts = {.ctx = g, .id = text_id};
	int rc = open_segment(st, tier, timespec_ns(s->wall));

	if (!rc)
		rc = store_encode(s, &texts, &st->bytes);
	if (!rc)
		rc = add_rows(st, s, id, g);
	if (!rc)
		rc = save_texts(st, g);
	if (!rc)
		rc = add_interval(st, s, tier, session, id, skipped, merged);
	if (!rc)
		rc = add_frame(st, id, tier > 0);
	return rc;
}

static int write_interval(struct store *st, const struct snapshot *s, uint64_t skipped)
{
	struct snapshot *kept = store_reduce(s);
	int64_t id = st->last_id + 1;
	int rc = -ENOMEM;

	st->steps = 0;
	if (kept)
		rc = store_run(st, ST_BEGIN);
	if (rc) {
		snapshot_unref(kept);
		return rc;
	}
	rc = store_add(st, kept, 0, st->session, id, skipped, 1);
	if (!rc)
		rc = store_add_tsc(st, s, id);
	snapshot_unref(kept);
	if (!rc)
		rc = store_run(st, ST_COMMIT);
	if (rc) {
		/* After some errors SQLite has rolled back by itself. */
		if (!sqlite3_get_autocommit(st->db))
			store_run(st, ST_ROLLBACK);
		store_forget_segments(st);
		return rc;
	}
	/* A row of vm or vcpu takes about that much, its place in the trees included. */
	st->last_bytes = st->packed.n + 64 * (s->nvms + s->nvcpus) + 256;
	st->last_id = id;
	st->last_wall = timespec_ns(s->wall);
	return 0;
}

/* Ten intervals of a host of 2,000 vCPUs, which become one. */
#define HELD_MOST (256 << 20)
#define HELD_BLOCK (32 << 20) /* the largest that there is */

void store_hold_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, HELD_BLOCK);
	mallopt(M_TRIM_THRESHOLD, HELD_MOST);
}

int store_write(struct store *st, const struct snapshot *s, uint64_t skipped)
{
	int rc = write_interval(st, s, skipped);

	if (rc) {
		(void)store_late_tsc(st, s); /* without memory they are lost as the interval is */
		return rc;
	}
	snapshot_unref(st->late);
	st->late = NULL;
	return 0;
}
