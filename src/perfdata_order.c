// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of a perf.data file's records. Each CPU's are in order, and stand in the file one piece
 * a CPU and round of perf's reading; so what waits is a few runs that are merged, and a mark of a
 * round (FINISHED_ROUND) says that nothing older than the round before will come.
 */
#include <errno.h>
#include <stdlib.h>

#include "perfdata_priv.h"

/* More is not kept waiting: a recording without marks of rounds would fill all memory. */
#define WAITING_MAX ((size_t)192 << 20)

struct order {
	struct perfdata *p;
	const struct perfdata_reader *reader;
	size_t stride; /* of an entry: its time, then the slot */
	uint8_t *entry, *other; /* n of them; the merge goes to and fro */
	size_t n, room, other_room;
	size_t *run, nruns, run_room; /* where runs begin */
	uint64_t newest; /* of all so far */
	uint64_t limit; /* what the next mark of a round lets go */
	uint64_t before; /* the limit of the round before */
	uint64_t given; /* up to where all was handed out */
};

static uint64_t time_of(const struct order *o, const uint8_t *entries, size_t i)
{
	uint64_t t;

	memcpy(&t, entries + i * o->stride, sizeof(t));
	return t;
}

/* ---- sorting ---- */

static int find_runs(struct order *o)
{
	uint64_t last = 0;

	o->nruns = 0;
	for (size_t i = 0; i <= o->n; i++) {
		uint64_t t = i < o->n ? time_of(o, o->entry, i) : 0;

		if (i && i < o->n && t >= last) {
			last = t;
			continue;
		}
		last = t;
		if (!perfdata_grow(&o->run, o->nruns, &o->run_room, sizeof(*o->run)))
			return -ENOMEM;
		o->run[o->nruns++] = i; /* the last is the end */
	}
	return 0;
}

/* Merges [a, b) and [b, c) of `from` to the same place of `to`; those of one time in their order.
 */
static void merge(const struct order *o, const uint8_t *from, uint8_t *to, size_t a, size_t b,
		  size_t c)
{
	size_t i = a, k = b, s = o->stride;
	uint8_t *out = to + a * s;

	while (i < b && k < c) {
		size_t take_from = time_of(o, from, i) <= time_of(o, from, k) ? i++ : k++;

		memcpy(out, from + take_from * s, s);
		out += s;
	}
	memcpy(out, from + i * s, (b - i) * s);
	out += (b - i) * s;
	memcpy(out, from + k * s, (c - k) * s);
}

/* One pass: neighbours become one run. */
static void merge_pairs(struct order *o)
{
	size_t n = 0, i = 0;
	uint8_t *swap;

	for (; i + 1 < o->nruns; i += 2) {
		size_t a = o->run[i], b = o->run[i + 1];
		size_t c = i + 2 < o->nruns ? o->run[i + 2] : b;

		merge(o, o->entry, o->other, a, b, c);
		o->run[n++] = a;
	}
	o->run[n++] = o->n;
	o->nruns = n;
	swap = o->entry;
	o->entry = o->other;
	o->other = swap;
}

static int sort(struct order *o)
{
	int rc = find_runs(o);

	if (rc || o->nruns <= 2)
		return rc;
	if (o->other_room < o->room) {
		uint8_t *more = realloc(o->other, o->room * o->stride);

		if (!more)
			return -ENOMEM;
		o->other = more;
		o->other_room = o->room;
	}
	while (o->nruns > 2)
		merge_pairs(o);
	return 0;
}

/* ---- handing out ---- */

static int give(struct order *o, const uint8_t *entry)
{
	uint64_t t;

	memcpy(&t, entry, sizeof(t));
	return o->reader->give(o->reader->ctx, (int64_t)t, entry + sizeof(t));
}

/* Hands out what is not younger than `limit`, at most `most` of them. */
static int flush(struct order *o, uint64_t limit, size_t most)
{
	size_t i = 0;
	int rc = sort(o);

	for (; !rc && i < o->n && i < most && time_of(o, o->entry, i) <= limit; i++)
		rc = give(o, o->entry + i * o->stride);
	if (i)
		o->given = time_of(o, o->entry, i - 1);
	memmove(o->entry, o->entry + i * o->stride, (o->n - i) * o->stride);
	o->n -= i;
	return rc;
}

static int finished_round(struct order *o)
{
	int rc = 0;

	if (o->limit)
		rc = flush(o, o->limit, o->n);
	if (o->limit > o->before) /* the record of that time went, whoever wanted it */
		o->given = o->limit;
	o->before = o->limit;
	o->limit = o->newest;
	return rc;
}

/* ---- taking in ---- */

static int make_room(struct order *o)
{
	int rc;

	if (o->n < o->room)
		return 0;
	if (o->room * o->stride >= WAITING_MAX) {
		o->p->sum.early = true;
		rc = flush(o, UINT64_MAX, o->n / 2);
		if (rc)
			return rc;
	}
	return perfdata_grow(&o->entry, o->n, &o->room, o->stride) ? 0 : -ENOMEM;
}

static int put(struct order *o, const struct perfdata_record *r)
{
	uint64_t t = (uint64_t)r->time;
	uint8_t *entry;
	int rc = make_room(o);

	if (rc)
		return rc;
	entry = o->entry + o->n * o->stride;
	memcpy(entry, &t, sizeof(t));
	rc = o->reader->take(o->reader->ctx, r, entry + sizeof(t));
	/* Also of one that is not wanted: perf's rounds count all. */
	if (t != UINT64_MAX && t > o->newest)
		o->newest = t;
	o->p->sum.unordered += t && t < o->given;
	if (rc <= 0)
		return rc;
	if (!t || t == UINT64_MAX)
		return give(o, entry);
	o->n++;
	return 0;
}

static void count(struct perfdata_sum *sum, const uint8_t *bytes, struct perf_event_header h)
{
	struct cursor c = {bytes + sizeof(h), h.size - sizeof(h), true};

	sum->records++;
	sum->samples += h.type == PERF_RECORD_SAMPLE;
	sum->rounds += h.type == USER_FINISHED_ROUND;
	if (h.type == PERF_RECORD_LOST) {
		sum->lost_records++;
		(void)take_u64(&c);
		sum->lost += take_u64(&c);
	} else if (h.type == PERF_RECORD_LOST_SAMPLES) {
		sum->lost_samples += take_u64(&c);
	}
}

static int on_record(void *ctx, const uint8_t *bytes, struct perf_event_header h)
{
	struct order *o = ctx;
	struct perfdata_record r = {.bytes = bytes, .type = h.type, .misc = h.misc, .size = h.size};

	count(&o->p->sum, bytes, h);
	if (h.type == USER_FINISHED_ROUND)
		return finished_round(o);
	if (h.type >= USER_TYPE_START)
		return 0;
	if (perfdata_decode(o->p, &r))
		return put(o, &r);
	o->p->sum.broken++;
	return 0;
}

int perfdata_run(struct perfdata *p, const struct perfdata_reader *reader)
{
	struct order o = {
		.p = p,
		.reader = reader,
		.stride = sizeof(uint64_t) + ((reader->slot + 7) & ~(size_t)7),
	};
	int rc = p->nattr ? perfdata_stream(p, false, on_record, &o) : 0;

	if (!rc)
		rc = flush(&o, UINT64_MAX, SIZE_MAX);
	free(o.entry);
	free(o.other);
	free(o.run);
	return rc;
}

/* ---- whole records ---- */

struct whole {
	perfdata_record_fn fn;
	void *ctx;
	struct kept *last;
};

struct kept {
	struct kept *before;
	struct perfdata_record r;
	uint8_t bytes[];
};

static int keep(void *ctx, const struct perfdata_record *r, void *slot)
{
	struct whole *w = ctx;
	struct kept *k = malloc(sizeof(*k) + r->size);

	if (!k)
		return -ENOMEM;
	*k = (struct kept){.before = w->last, .r = *r};
	memcpy(k->bytes, r->bytes, r->size);
	k->r.bytes = k->bytes;
	if (r->raw)
		k->r.raw = k->bytes + (r->raw - r->bytes);
	w->last = k;
	memcpy(slot, &k, sizeof(k));
	return 1;
}

static int give_whole(void *ctx, int64_t time, const void *slot)
{
	struct whole *w = ctx;
	struct kept *k;

	(void)time;
	memcpy(&k, slot, sizeof(k));
	return w->fn(w->ctx, &k->r);
}

int perfdata_read(struct perfdata *p, perfdata_record_fn fn, void *ctx)
{
	struct whole w = {fn, ctx, NULL};
	struct perfdata_reader reader = {sizeof(void *), keep, give_whole, &w};
	int rc = perfdata_run(p, &reader);

	while (w.last) {
		struct kept *k = w.last;

		w.last = k->before;
		free(k);
	}
	return rc;
}
