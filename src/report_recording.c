// SPDX-License-Identifier: GPL-2.0-only
/* Intervals of a recording added up (report_recording.h). */
#include "report_recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "filter.h"
#include "governor.h"
#include "store_span.h"
#include "store_tally.h"

#define EVENTS_SOURCE "kvm_events" /* the collector's name */
/* What a tick is late by is no gap, nor what the wall clock was set by. */
#define GAP_LEAST (NS_PER_S / 2)

/* ---- rows ---- */

static bool same(const void *rows, uint32_t row, const void *what)
{
	const struct recorded_row *r = (const struct recorded_row *)rows + row;
	const struct snap_exit *x = what;

	return r->key == x->key && r->kind == x->kind && r->dir == x->dir && r->isa == x->isa &&
	       r->other == x->other;
}

static uint64_t hash_of(const struct snap_exit *x)
{
	uint64_t h = (x->key ^ (uint64_t)x->kind << 56 ^ (uint64_t)x->dir << 48 ^
		      (uint64_t)x->other << 40) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return h >> 32;
}

static struct recorded_row *row_of(struct report_recording *r, const struct snap_exit *x)
{
	struct recorded_row *row;
	uint32_t *at;

	if (report_slots_room(&r->slots, &r->row, r->n, sizeof(*r->row)))
		return NULL;
	at = report_slots_find(&r->slots, hash_of(x), same, r->row, x);
	if (*at)
		return &r->row[*at - 1];
	row = &r->row[r->n];
	*row = (struct recorded_row){.kind = x->kind,
				     .dir = x->dir,
				     .other = x->other,
				     .isa = x->isa,
				     .key = x->key,
				     .name = strdup(x->name)};
	if (!row->name)
		return NULL;
	*at = (uint32_t)++r->n;
	return row;
}

static int add_exit(struct report_recording *r, const struct snap_exit *x)
{
	struct recorded_row *row = row_of(r, x);

	if (!row)
		return -ENOMEM;
	if (x->now.timed) {
		store_bounds_add(&row->bounds, &x->now);
		row->no_heat = row->no_heat || !x->heat;
		r->entries = true;
	}
	store_tally_add(&row->sum, &x->now);
	for (unsigned b = 0; x->heat && b < HEAT_BUCKETS; b++)
		if (__builtin_add_overflow(row->heat[b], x->heat[b], &row->heat[b]))
			row->heat[b] = UINT32_MAX;
	return 0;
}

/* ---- intervals ---- */

static int add_exits(struct report_recording *r, const struct snapshot *s,
		     const struct snap_exits *ex)
{
	int rc = 0;

	r->matched = true;
	for (uint32_t i = ex->first; i < ex->first + ex->n && !rc; i++) {
		const struct snap_exit *x = &s->exits[i];

		r->userexits += x->kind == KIND_USEREXIT ? x->now.count : 0;
		if (x->kind < KIND_NR && r->kinds >> x->kind & 1 && (x->now.count || x->now.timed))
			rc = add_exit(r, x);
	}
	return rc;
}

static int add_vm(struct report_recording *r, const struct snapshot *s, const struct snap_vm *vm)
{
	int rc = 0;

	if (!filter_has_vcpus(r->filter))
		return add_exits(r, s, &vm->ex);
	for (uint32_t i = vm->vcpu_first; i < vm->vcpu_first + vm->vcpu_n && !rc; i++)
		if (filter_vcpu(r->filter, &s->vcpus[i]))
			rc = add_exits(r, s, &s->vcpus[i].ex);
	return rc;
}

/* The last words about it; those before are gone. */
static int keep(char **words, const char *last)
{
	if (*words && strcmp(*words, last) == 0)
		return 0;
	free(*words);
	*words = strdup(last);
	return *words ? 0 : -ENOMEM;
}

/* The last reason that the recorder had: what was not collected may not have been there. */
static int note_why(struct report_recording *r, const struct snapshot *s)
{
	const struct snap_source *events = snapshot_source(s, EVENTS_SOURCE);
	int rc;

	if (!events || events->state != SOURCE_OFF)
		return 0;
	rc = keep(&r->why, events->why);
	return rc ? rc : keep(&r->mend, events->mend);
}

/* What the recorder gave up because it would have cost too much. */
static int note_costly(struct report_recording *r, const struct snapshot *s)
{
	const struct snap_source *cost = snapshot_source(s, GOVERNOR_SOURCE);

	if (!cost || cost->state != SOURCE_PARTIAL)
		return 0;
	for (unsigned k = 0; k < KIND_NR; k++)
		if (r->kinds >> k & 1 && governor_names(cost->why, (enum kvm_kind)k))
			r->costly |= KIND_BIT(k);
	return keep(&r->limit, cost->why);
}

int report_recording_add(struct report_recording *r, const struct snapshot *s)
{
	int rc = note_why(r, s);

	if (!rc)
		rc = note_costly(r, s);
	if (!rc)
		rc = recorded_samples_add(&r->samples, s, r->filter);
	if (rc)
		return rc;
	r->lost += s->host.lost;
	r->length += s->dt;
	r->intervals++;
	for (unsigned k = 0; k < KIND_NR; k++)
		if (s->open_kinds & KIND_BIT(k))
			r->known[k] += s->dt;
	/* What all VMs did has also those in it that are gone. */
	if (!r->filter || (!filter_has_vms(r->filter) && !filter_has_vcpus(r->filter)))
		return add_exits(r, s, &s->host.ex);
	for (size_t i = 0; i < s->nvms && !rc; i++)
		if (filter_vm(r->filter, &s->vms[i]))
			rc = add_vm(r, s, &s->vms[i]);
	return rc;
}

/* Skipped ones are counted as such, and are no gap of the recorder. */
static void note_time(struct report_recording *r, const struct store_at *at)
{
	int64_t begin = at->wall - at->dt, hole = begin - r->end;

	if (!r->end)
		r->first = begin;
	else if (!at->skipped && hole > GAP_LEAST) {
		r->gap += hole;
		r->ngaps++;
	}
	if (r->end)
		r->skipped += at->skipped;
	r->end = r->last = at->wall;
}

int report_recording_read(struct report_recording *r, const struct store_span *span)
{
	struct store_at at = {0};
	struct snapshot *s;
	int rc;

	while (!(rc = store_span_next(span->store, span->from, span->to, &at))) {
		note_time(r, &at);
		rc = store_read(span->store, at.id, &s);
		if (rc == -EBADMSG || rc == -ENOENT) {
			r->damaged++;
			continue;
		}
		if (!rc) {
			rc = report_recording_add(r, s);
			snapshot_unref(s);
		}
		if (rc)
			return rc;
	}
	for (size_t i = 0; i < r->n; i++)
		store_tally_percentiles(&r->row[i].sum, r->row[i].no_heat ? NULL : r->row[i].heat,
					&r->row[i].bounds);
	recorded_samples_sort(&r->samples);
	if (rc != -ENOENT)
		return rc;
	return r->intervals ? 0 : r->damaged ? -EBADMSG : -ENOENT;
}

void report_recording_free(struct report_recording *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->row[i].name);
	free(r->row);
	report_slots_free(&r->slots);
	free(r->why);
	free(r->mend);
	free(r->limit);
	recorded_samples_free(&r->samples);
	*r = (struct report_recording){0};
}
