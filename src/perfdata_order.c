// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of a perf.data file's records. Each CPU's are in order, and stand in the file one piece
 * a CPU and round of perf's reading; so what waits is a few runs that are merged, and a mark of a
 * round (FINISHED_ROUND) says that nothing older than the round before will come.
 */
#include <errno.h>
#include <stdlib.h>

#include "grow.h"
#include "perfdata_priv.h"

/* More is not kept waiting: a recording without marks of rounds would fill all memory. */
#define WAITING_MAX ((size_t)192 << 20)

/* Records of one CPU and round, which are in order. */
struct run {
	size_t at, end; /* entries; end: once all are there */
	uint64_t time; /* of the one at `at` */
};

struct order {
	struct perfdata *p;
	const struct perfdata_reader *reader;
	size_t stride; /* of an entry: its time, then the slot */
	uint8_t *entry; /* n of them */
	size_t n, room;
	uint64_t last; /* time of the last of them */
	struct run *run; /* as they stand in the file */
	size_t nruns, run_room;
	size_t *heap; /* of runs, the one with the oldest record on top */
	size_t nheap, heap_room;
	uint64_t newest; /* of all so far */
	uint64_t limit; /* what the next mark of a round lets go */
	uint64_t before; /* the limit of the round before */
	uint64_t given; /* up to where all was handed out */
};

static uint64_t time_of(const struct order *o, size_t i)
{
	uint64_t t;

	memcpy(&t, o->entry + i * o->stride, sizeof(t));
	return t;
}

/* ---- merging ---- */

/* Of one time: as they stand in the file. */
static bool older(const struct order *o, size_t a, size_t b)
{
	const struct run *x = &o->run[a], *y = &o->run[b];

	return x->time != y->time ? x->time < y->time : a < b;
}

static void sift_down(struct order *o, size_t i)
{
	for (;;) {
		size_t child = 2 * i + 1, swap;

		if (child >= o->nheap)
			return;
		if (child + 1 < o->nheap && older(o, o->heap[child + 1], o->heap[child]))
			child++;
		if (!older(o, o->heap[child], o->heap[i]))
			return;
		swap = o->heap[i];
		o->heap[i] = o->heap[child];
		o->heap[child] = swap;
		i = child;
	}
}

/* Runs stand one behind the other: the next one's beginning is where one ends. */
static void end_runs(struct order *o)
{
	size_t end = o->n;

	for (size_t i = o->nruns; i--;) {
		o->run[i].end = end;
		end = o->run[i].at;
	}
}

static int make_heap(struct order *o)
{
	o->nheap = 0;
	end_runs(o);
	for (size_t i = 0; i < o->nruns; i++) {
		if (!grow(&o->heap, o->nheap, &o->heap_room, sizeof(*o->heap)))
			return -ENOMEM;
		o->run[i].time = time_of(o, o->run[i].at);
		o->heap[o->nheap++] = i;
	}
	for (size_t i = o->nheap / 2; i--;)
		sift_down(o, i);
	return 0;
}

/* The second oldest: how far the oldest run can go on by itself. */
static bool next_run(const struct order *o, size_t *run)
{
	if (o->nheap < 2)
		return false;
	*run = o->heap[1];
	if (o->nheap > 2 && older(o, o->heap[2], o->heap[1]))
		*run = o->heap[2];
	return true;
}

/* What is left moves to the front; runs that are through go. */
static void pack(struct order *o)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < o->nruns; i++) {
		struct run r = o->run[i];
		size_t left = r.end - r.at;

		if (!left)
			continue;
		memmove(o->entry + n * o->stride, o->entry + r.at * o->stride, left * o->stride);
		o->run[kept++] = (struct run){n, n + left, 0};
		n += left;
	}
	o->n = n;
	o->nruns = kept;
	if (n)
		o->last = time_of(o, n - 1);
}

/* ---- handing out ---- */

static int give(const struct order *o, const uint8_t *entry, uint64_t t)
{
	return o->reader->give(o->reader->ctx, (int64_t)t, entry + sizeof(t));
}

/* The oldest run, as long as it is the oldest. */
static int give_run(struct order *o, uint64_t limit, size_t *most)
{
	size_t top = o->heap[0], other = top, n;
	struct run *r = &o->run[top];
	const uint8_t *entry = o->entry + r->at * o->stride;
	int rc = 0;

	/* Of one time: the run that stands first in the file. */
	if (next_run(o, &other) && o->run[other].time - (other < top) < limit)
		limit = o->run[other].time - (other < top);
	n = r->end - r->at < *most ? r->end - r->at : *most;
	for (size_t i = 0; i < n && !rc && r->time <= limit; i++) {
		rc = give(o, entry, r->time);
		o->given = r->time;
		entry += o->stride;
		r->at++;
		--*most;
		if (r->at < r->end)
			memcpy(&r->time, entry, sizeof(r->time));
	}
	return rc;
}

/* Hands out what is not younger than `limit`, at most `most` of them. */
static int flush(struct order *o, uint64_t limit, size_t most)
{
	int rc = make_heap(o);

	while (!rc && most && o->nheap && o->run[o->heap[0]].time <= limit) {
		rc = give_run(o, limit, &most);
		if (o->run[o->heap[0]].at == o->run[o->heap[0]].end)
			o->heap[0] = o->heap[--o->nheap];
		sift_down(o, 0);
	}
	pack(o);
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

__attribute__((noinline)) static int make_room(struct order *o)
{
	int rc;

	if (o->room * o->stride >= WAITING_MAX) {
		o->p->sum.early = true;
		rc = flush(o, UINT64_MAX, o->n / 2);
		if (rc)
			return rc;
	}
	return grow(&o->entry, o->n, &o->room, o->stride) ? 0 : -ENOMEM;
}

__attribute__((noinline)) static bool new_run(struct order *o)
{
	if (!grow(&o->run, o->nruns, &o->run_room, sizeof(*o->run)))
		return false;
	o->run[o->nruns++] = (struct run){.at = o->n};
	return true;
}

static inline int put(struct order *o, const struct perfdata_record *r)
{
	uint64_t t = (uint64_t)r->time;
	uint8_t *entry;
	int rc = o->n < o->room ? 0 : make_room(o);

	if (rc)
		return rc;
	entry = o->entry + o->n * o->stride;
	memcpy(entry, &t, sizeof(t));
	rc = o->reader->take(o->reader->ctx, r, entry + sizeof(t));
	if (rc < 0)
		return rc;
	if (!t || t == UINT64_MAX)
		return rc ? give(o, entry, t) : 0;
	/* Also of one that is not wanted: perf's rounds count all. */
	o->newest = t > o->newest ? t : o->newest;
	o->p->sum.unordered += t < o->given;
	/* Without a question whether it is wanted, which no processor foresees. */
	if (((rc != 0) & ((t < o->last) | !o->nruns)) && !new_run(o))
		return -ENOMEM;
	o->n += (size_t)rc;
	o->last = rc ? t : o->last;
	return 0;
}

static void count(struct perfdata *p, const struct perfdata_record *r)
{
	struct cursor c = body_of(p, r->bytes, r->size);
	struct perfdata_sum *sum = &p->sum;

	if (r->type == PERF_RECORD_LOST) {
		sum->lost_records++;
		(void)take_u64(&c);
		sum->lost += take_u64(&c);
	} else if (r->type == PERF_RECORD_LOST_SAMPLES) {
		sum->lost_samples += take_u64(&c);
	}
}

__attribute__((noinline)) static int on_other(struct order *o, struct perfdata_record *r)
{
	if (r->type == USER_FINISHED_ROUND) {
		o->p->sum.rounds++;
		return finished_round(o);
	}
	if (r->type >= USER_TYPE_START)
		return 0;
	count(o->p, r);
	if (perfdata_decode(o->p, r))
		return put(o, r);
	o->p->sum.broken++;
	return 0;
}

static int on_record(void *ctx, const uint8_t *bytes, struct perf_event_header h)
{
	struct order *o = ctx;
	struct perfdata_record r;

	r.bytes = bytes;
	r.type = h.type;
	r.misc = h.misc;
	r.size = h.size;
	r.swapped = o->p->swapped;
	o->p->sum.records++;
	if (h.type != PERF_RECORD_SAMPLE)
		return on_other(o, &r);
	o->p->sum.samples++;
	return on_other(o, &r);
}

/* The way of a million of them: samples that are at hand, in one loop. */
static size_t on_samples(void *ctx, const uint8_t *at, size_t left, int *rc)
{
	struct perfdata_record r = {.type = PERF_RECORD_SAMPLE};
	struct order *o = ctx;
	uint64_t n = 0;
	size_t all = left;

	while (!*rc && left >= sizeof(struct perf_event_header)) {
		struct perf_event_header h = header_at(at);

		if (h.type != PERF_RECORD_SAMPLE || h.size > left)
			break;
		r.bytes = at;
		r.misc = h.misc;
		r.size = h.size;
		if (!perfdata_quick(o->p, &r))
			break;
		*rc = put(o, &r);
		at += h.size;
		left -= h.size;
		n++;
	}
	o->p->sum.records += n;
	o->p->sum.samples += n;
	return all - left;
}

int perfdata_run(struct perfdata *p, const struct perfdata_reader *reader)
{
	struct order o = {
		.p = p,
		.reader = reader,
		.stride = sizeof(uint64_t) + ((reader->slot + 7) & ~(size_t)7),
	};
	bool quick = !reader->events && !p->swapped;
	int rc = perfdata_layouts(p);

	if (!rc && p->nattr)
		rc = perfdata_stream(p, false, on_record, quick ? on_samples : NULL, &o);
	if (!rc)
		rc = flush(&o, UINT64_MAX, SIZE_MAX);
	free(o.entry);
	free(o.run);
	free(o.heap);
	return rc;
}
