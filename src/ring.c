// SPDX-License-Identifier: GPL-2.0-only
/*
 * One pass over all rings: a heap of the rings by the time of their next record. Within
 * a ring records are in order, so the least head is the next record of all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

#define BATCH 128
#define RECORD_MAX 65536 /* a header's size has 16 bits */
#define FULL_SLACK 4096 /* less room than this: a record may not have fitted */
#define RECORD_MIN 24 /* no record is shorter: a header, and the time that all have */

struct ring_merge {
	struct ring **heap;
	size_t n, room;
	struct ring_record batch[BATCH];
	size_t filled;
	bool copied; /* batch has a record in `copy` */
	bool apart; /* ring by ring */
	uint8_t copy[RECORD_MAX] __attribute__((aligned(8))); /* of a record that wraps */
};

struct ring_merge *ring_merge_new(void)
{
	return calloc(1, sizeof(struct ring_merge));
}

void ring_merge_free(struct ring_merge *m)
{
	if (!m)
		return;
	free(m->heap);
	free(m);
}

void ring_merge_apart(struct ring_merge *m)
{
	m->apart = true;
}

void ring_init(struct ring *r, void *base, size_t page_size, size_t size, uint16_t cpu, int64_t now)
{
	*r = (struct ring){.page = base, .size = size, .cpu = cpu, .last_time = now};
	r->time_at = RING_TIME_RAW;
	r->data = (const uint8_t *)base + page_size;
	r->tail = r->page->data_tail & ~7ULL;
}

/* Pairs with the kernel's barrier before it moves the head: data are read after it. */
uint64_t ring_head(const struct ring *r)
{
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/*
 * All reads of the room that is given back are done before the kernel sees it free. That
 * is also the last moment at which a ring that filled up meanwhile can be told.
 */
static void write_tail(struct ring *r)
{
	if (ring_head(r) - r->page->data_tail + FULL_SLACK > r->size)
		r->was_full = true;
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

static const struct perf_event_header *at_tail(const struct ring *r)
{
	return (const void *)(r->data + (r->tail & (r->size - 1)));
}

/* Copies out of the ring, across its end where need be. */
static void peek(const struct ring *r, uint64_t pos, void *to, size_t n)
{
	size_t off = (size_t)(pos & (r->size - 1)), first = r->size - off;

	if (first > n)
		first = n;
	memcpy(to, r->data + off, first);
	memcpy((uint8_t *)to + first, r->data, n - first);
}

/*
 * Of a sample at its place, of all others at the end (sample_id_all). A sample that is too short
 * for it is no sample of ours; its last bytes are as good as any. It never wraps either, being one
 * of the words of 8 bytes that a record and the ring are made of.
 */
static int64_t record_time(const struct ring *r, const struct perf_event_header *h)
{
	bool sample = h->type == PERF_RECORD_SAMPLE && h->size >= r->time_at + 8u;
	uint64_t pos = r->tail + (sample ? r->time_at : h->size - 8u);
	int64_t t;

	memcpy(&t, r->data + (pos & (r->size - 1)), sizeof(t));
	return t;
}

/*
 * Looks at the record at tail and notes its time; false: no more. The header never
 * wraps: records are multiples of 8 bytes, and so is the ring.
 */
static bool look(struct ring *r)
{
	uint64_t left = r->head - r->tail;
	const struct perf_event_header *h = at_tail(r);

	if (!left)
		return false;
	if (left < sizeof(*h) || h->size < RECORD_MIN || h->size > left || h->size & 7) {
		r->broken++;
		r->tail = r->head;
		return false;
	}
	/* The data lie in the cache of the CPU that wrote them: fetch ahead, some 16 records. */
	__builtin_prefetch(r->data + ((r->tail + 1024) & (r->size - 1)));
	r->next_own = r->next_time = record_time(r, h);
	if (__builtin_expect(h->type == PERF_RECORD_LOST, 0) && r->last_time < r->next_own)
		r->next_time = r->last_time;
	return true;
}

/* ---- the heap: least next_time first ---- */

static void sift_down(struct ring_merge *m, size_t i)
{
	struct ring *moving = m->heap[i];

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= m->n)
			break;
		if (c + 1 < m->n && m->heap[c + 1]->next_time < m->heap[c]->next_time)
			c++;
		if (m->heap[c]->next_time >= moving->next_time)
			break;
		m->heap[i] = m->heap[c];
		i = c;
	}
	m->heap[i] = moving;
}

static int heap_room(struct ring_merge *m, size_t n)
{
	struct ring **heap;

	if (n <= m->room)
		return 0;
	heap = reallocarray(m->heap, n, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	m->heap = heap;
	m->room = n;
	return 0;
}

/* Until when the top ring may be read on before another one's record comes first. */
static int64_t top_limit(const struct ring_merge *m, int64_t watermark)
{
	int64_t limit = watermark;

	for (size_t c = 1; c <= 2 && c < m->n && !m->apart; c++)
		if (m->heap[c]->next_time < limit)
			limit = m->heap[c]->next_time;
	return limit;
}

/* ---- handing over ---- */

static void flush(struct ring_merge *m, ring_batch_fn fn, void *ctx)
{
	const struct ring *last = NULL;

	if (m->filled)
		fn(ctx, m->batch, m->filled);
	for (size_t i = 0; i < m->filled; i++) { /* all that was read of it was handed over */
		if (m->batch[i].ring != last)
			write_tail(m->batch[i].ring);
		last = m->batch[i].ring;
	}
	m->filled = 0;
	m->copied = false;
}

static const struct perf_event_header *copy_out(struct ring_merge *m, const struct ring *r,
						size_t size)
{
	peek(r, r->tail, m->copy, size);
	m->copied = true;
	return (const void *)m->copy;
}

static void take(struct ring_merge *m, struct ring *r, ring_batch_fn fn, void *ctx)
{
	const struct perf_event_header *h = at_tail(r);
	size_t size = h->size, off = (size_t)(r->tail & (r->size - 1));

	if (m->filled == BATCH || (off + size > r->size && m->copied))
		flush(m, fn, ctx);
	if (off + size > r->size)
		h = copy_out(m, r, size);
	m->batch[m->filled++] = (struct ring_record){h, r->next_own, r->last_time, r};
	r->last_time = r->next_own;
	r->tail += size;
}

static void fill_heap(struct ring_merge *m, struct ring *const *rings, size_t n)
{
	m->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct ring *r = rings[i];

		if (!r)
			continue;
		r->head = ring_head(r);
		if (r->head - r->tail > r->size) { /* no ring of ours can hold that much */
			r->broken++;
			r->tail = r->head;
		}
		if (r->head - r->tail + FULL_SLACK > r->size)
			r->was_full = true; /* and nothing of it may be due yet */
		if (look(r))
			m->heap[m->n++] = r;
	}
	for (size_t i = m->n / 2; i-- > 0;)
		sift_down(m, i);
}

int ring_merge_drain(struct ring_merge *m, struct ring *const *rings, size_t n, int64_t watermark,
		     ring_batch_fn fn, void *ctx)
{
	int rc = heap_room(m, n);

	if (rc)
		return rc;
	fill_heap(m, rings, n);
	while (m->n && m->heap[0]->next_time <= watermark) {
		struct ring *r = m->heap[0];
		int64_t limit = top_limit(m, watermark);
		bool more;

		do {
			take(m, r, fn, ctx);
			more = look(r);
		} while (more && r->next_time <= limit);
		if (!more)
			m->heap[0] = m->heap[--m->n];
		if (m->n)
			sift_down(m, 0);
	}
	flush(m, fn, ctx);
	for (size_t i = 0; i < n; i++)
		if (rings[i] && rings[i]->page->data_tail != rings[i]->tail)
			write_tail(rings[i]); /* skipped what was broken */
	return 0;
}
