// SPDX-License-Identifier: GPL-2.0-only
/* Rings in memory, filled as the kernel does it: order, wrapping, watermark, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ring.h"

enum { PAGE = 4096, SIZE = 4096 };

struct made {
	uint8_t *mem;
	struct ring ring;
};

static void make_ring(struct made *m, uint16_t cpu)
{
	m->mem = aligned_alloc(PAGE, PAGE + SIZE);
	memset(m->mem, 0, PAGE);
	memset(m->mem + PAGE, 0xa5, SIZE);
	ring_init(&m->ring, m->mem, PAGE, SIZE, cpu, 1);
}

static struct perf_event_mmap_page *page_of(struct made *m)
{
	return (struct perf_event_mmap_page *)m->mem;
}

static void put_bytes(struct made *m, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->mem[PAGE + ((page_of(m)->data_head + i) & (SIZE - 1))] = ((const uint8_t *)p)[i];
	page_of(m)->data_head += n;
}

/* A sample of TID|TIME|RAW whose raw data say who wrote it. */
static void put_sample(struct made *m, int64_t time, uint32_t mark, size_t size)
{
	uint8_t rec[512] = {0};
	struct perf_event_header h = {PERF_RECORD_SAMPLE, 0, (uint16_t)size};
	uint32_t raw = (uint32_t)size - 28;

	memcpy(rec, &h, sizeof(h));
	memcpy(rec + 16, &time, 8);
	memcpy(rec + 24, &raw, 4);
	memcpy(rec + 28, &mark, 4);
	memset(rec + 32, (int)mark, size - 32);
	put_bytes(m, rec, size);
}

static void put_lost(struct made *m, int64_t time, uint64_t n)
{
	uint64_t rec[5] = {0, 7, n, 0, (uint64_t)time};
	struct perf_event_header h = {PERF_RECORD_LOST, 0, 40};

	memcpy(rec, &h, sizeof(h));
	put_bytes(m, rec, sizeof(rec));
}

struct seen {
	size_t n, calls;
	struct {
		int64_t time, prev;
		uint32_t mark, type;
		uint16_t cpu;
	} r[4096];
	bool damaged;
};

static void note(void *ctx, const struct ring_record *r, size_t n)
{
	struct seen *s = ctx;

	s->calls++;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = (const uint8_t *)r[i].h;

		assert_true(s->n < 4096);
		s->r[s->n].time = r[i].time;
		s->r[s->n].prev = r[i].prev;
		s->r[s->n].cpu = r[i].ring->cpu;
		s->r[s->n].type = r[i].h->type;
		if (r[i].h->type == PERF_RECORD_SAMPLE) {
			memcpy(&s->r[s->n].mark, p + 28, 4);
			for (size_t b = 32; b < r[i].h->size; b++)
				s->damaged |= p[b] != (uint8_t)s->r[s->n].mark;
		}
		s->n++;
	}
}

static void drain_with(struct ring_merge *merge, struct made *m, size_t n, int64_t watermark,
		       struct seen *s)
{
	struct ring *rings[8];

	assert_non_null(merge);
	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < n; i++)
		rings[i] = &m[i].ring;
	assert_int_equal(ring_merge_drain(merge, rings, n, watermark, note, s), 0);
	ring_merge_free(merge);
	assert_false(s->damaged);
}

static void drain(struct made *m, size_t n, int64_t watermark, struct seen *s)
{
	drain_with(ring_merge_new(), m, n, watermark, s);
}

static void free_rings(struct made *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(m[i].mem);
}

static void merges_by_time_up_to_the_watermark(void **state)
{
	struct made m[3];
	struct seen s;
	unsigned seed = 1;
	int64_t t = 1000;

	(void)state;
	for (uint16_t i = 0; i < 3; i++)
		make_ring(&m[i], i);
	for (uint32_t i = 0; i < 120; i++) {
		seed = seed * 1103515245 + 12345;
		t += (seed >> 16) % 3; /* equal times too */
		put_sample(&m[(seed >> 20) % 3], t, i, 40);
	}
	drain(m, 3, 1000 + 60, &s);
	for (size_t i = 0; i < s.n; i++)
		assert_true(s.r[i].time <= 1060 && (!i || s.r[i].time >= s.r[i - 1].time));
	assert_in_range(s.n, 1, 119);
	for (size_t first = s.n; first; first = 0) {
		drain(m, 3, INT64_MAX, &s);
		assert_int_equal(first + s.n, 120);
		assert_true(s.r[0].time > 1060);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(page_of(&m[i])->data_tail, page_of(&m[i])->data_head);
	drain(m, 3, INT64_MAX, &s);
	assert_int_equal(s.n + s.calls, 0);
	free_rings(m, 3);
}

/* Where nobody asks which CPU was first, each ring is read through, in its order. */
static void rings_apart_come_one_after_the_other(void **state)
{
	struct ring_merge *merge = ring_merge_new();
	struct made m[3];
	struct seen s;
	unsigned changes = 0;

	(void)state;
	for (uint16_t i = 0; i < 3; i++)
		make_ring(&m[i], i);
	for (uint32_t i = 0; i < 90; i++)
		put_sample(&m[i % 3], 1000 + i, i, 40);
	ring_merge_apart(merge);
	drain_with(merge, m, 3, 1000 + 59, &s);
	assert_int_equal(s.n, 60);
	for (size_t i = 1; i < s.n; i++) {
		assert_true(s.r[i].time <= 1059);
		assert_true(s.r[i].cpu != s.r[i - 1].cpu || s.r[i].time > s.r[i - 1].time);
		changes += s.r[i].cpu != s.r[i - 1].cpu;
	}
	assert_int_equal(changes, 2);
	drain(m, 3, INT64_MAX, &s);
	assert_int_equal(s.n, 30);
	assert_int_equal(s.r[0].time, 1060);
	free_rings(m, 3);
}

/* Nothing is released that was not handed over. */
static void later_events_stay_in_their_ring(void **state)
{
	struct made m[1];
	struct seen s;

	(void)state;
	make_ring(m, 0);
	put_sample(m, 100, 1, 64);
	put_sample(m, 200, 2, 64);
	drain(m, 1, 199, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(page_of(m)->data_tail, 64);
	drain(m, 1, 200, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.r[0].prev, 100);
	assert_int_equal(page_of(m)->data_tail, 128);
	free_rings(m, 1);
}

/* Records of sizes that do not divide the ring: each lap wraps in another place. */
static void wrapped_records_are_whole(void **state)
{
	static const size_t sizes[] = {40, 72, 104, 136, 88, 56};
	struct made m[2];
	struct seen s;
	uint32_t k = 0;

	(void)state;
	make_ring(&m[0], 0);
	make_ring(&m[1], 1);
	for (int lap = 0; lap < 200; lap++) {
		size_t total = 0, put = 0;

		while (total + 272 < SIZE) {
			put_sample(&m[0], k, k & 0x7f, sizes[k % 6]);
			put_sample(&m[1], k, k & 0x7f, sizes[k % 6]); /* both wrap at once */
			total += sizes[k++ % 6];
			put += 2;
		}
		drain(m, 2, INT64_MAX, &s);
		assert_int_equal(s.n, put);
	}
	assert_int_equal(m[0].ring.broken + m[1].ring.broken, 0);
	free_rings(m, 2);
}

static void a_loss_tells_its_window(void **state)
{
	struct made m[2];
	struct seen s;
	uint64_t n;

	(void)state;
	make_ring(&m[0], 0);
	make_ring(&m[1], 1);
	put_sample(&m[0], 100, 1, 40);
	put_sample(&m[1], 150, 2, 40);
	put_lost(&m[0], 200, 33);
	assert_true(record_lost((const void *)(m[0].mem + PAGE + 40), &n));
	assert_int_equal(n, 33);
	put_sample(&m[0], 201, 3, 40);
	drain(m, 2, 1000, &s);
	assert_int_equal(s.n, 4);
	assert_int_equal(s.r[1].type, PERF_RECORD_LOST);
	assert_int_equal(s.r[1].prev, 100); /* of its own ring, not 150 */
	assert_int_equal(s.r[1].time, 200);
	free_rings(m, 2);
}

/* Pairs on other CPUs that end inside the window must find it open. */
static void a_loss_comes_when_it_began(void **state)
{
	struct made m[2];
	struct seen s;

	(void)state;
	for (int i = 0; i < 2; i++)
		make_ring(&m[i], (uint16_t)i);
	put_sample(&m[0], 100, 1, 40);
	put_lost(&m[0], 200, 33);
	put_sample(&m[0], 201, 2, 40);
	put_sample(&m[1], 120, 3, 40);
	put_sample(&m[1], 180, 4, 40);
	drain(m, 2, 150, &s); /* its own time is past the watermark, its begin is not */
	assert_int_equal(s.n, 3);
	assert_int_equal(s.r[0].mark, 1);
	assert_int_equal(s.r[1].type, PERF_RECORD_LOST);
	assert_int_equal(s.r[1].prev, 100);
	assert_int_equal(s.r[1].time, 200);
	assert_int_equal(s.r[2].mark, 3);
	drain(m, 2, 1000, &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.r[0].mark, 4);
	assert_int_equal(s.r[1].mark, 2);
	free_rings(m, 2);
}

static void a_full_ring_is_noted(void **state)
{
	struct made m[1];
	struct seen s;

	(void)state;
	m->mem = aligned_alloc(PAGE, PAGE + 4 * SIZE);
	memset(m->mem, 0, PAGE);
	ring_init(&m->ring, m->mem, PAGE, 4 * SIZE, 0, 1);
	drain(m, 1, 10, &s);
	assert_false(m->ring.was_full);
	for (int64_t t = 100; page_of(m)->data_head + 40 < 4 * SIZE;) {
		uint8_t rec[40] = {0};
		struct perf_event_header h = {PERF_RECORD_SAMPLE, 0, 40};

		memcpy(rec, &h, sizeof(h));
		memcpy(rec + 16, &t, 8);
		memcpy(m->mem + PAGE + page_of(m)->data_head, rec, 40);
		page_of(m)->data_head += 40;
	}
	drain(m, 1, 10, &s); /* nothing is due, but events may have been lost */
	assert_int_equal(s.n, 0);
	assert_true(m->ring.was_full);
	free_rings(m, 1);
}

static void damage_is_skipped_and_counted(void **state)
{
	static const struct perf_event_header bad[] = {
		{PERF_RECORD_SAMPLE, 0, 0},	{PERF_RECORD_SAMPLE, 0, 8},
		{PERF_RECORD_SAMPLE, 0, 16},	{PERF_RECORD_SAMPLE, 0, 41},
		{PERF_RECORD_SAMPLE, 0, 65528}, {PERF_RECORD_LOST, 0, 16},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct made m[1];
		struct seen s;

		make_ring(m, 0);
		put_sample(m, 100, 1, 40);
		put_bytes(m, &bad[i], sizeof(bad[i]));
		put_bytes(m, "garbage garbage garbage ", 24);
		drain(m, 1, INT64_MAX, &s);
		assert_int_equal(s.n, 1);
		assert_int_equal(m->ring.broken, 1);
		put_sample(m, 300, 2, 40);
		drain(m, 1, INT64_MAX, &s);
		assert_int_equal(s.n, 1); /* goes on behind the damage */
		free_rings(m, 1);
	}
}

static void a_head_beyond_the_ring_is_damage(void **state)
{
	struct made m[1];
	struct seen s;

	(void)state;
	make_ring(m, 0);
	page_of(m)->data_head = 1ULL << 40;
	drain(m, 1, INT64_MAX, &s);
	assert_int_equal(s.n, 0);
	assert_int_equal(m->ring.broken, 1);
	free_rings(m, 1);
}

static void raw_bounds(void **state)
{
	uint8_t rec[64] = {0};
	struct perf_event_header *h = (struct perf_event_header *)rec;
	const uint8_t *raw;
	uint32_t len = 20;

	(void)state;
	h->size = 48;
	memcpy(rec + 24, &len, 4);
	assert_true(record_raw(h, &raw, &len));
	assert_ptr_equal(raw, rec + 28);
	assert_int_equal(len, 20);
	len = 21;
	memcpy(rec + 24, &len, 4);
	assert_false(record_raw(h, &raw, &len));
	h->size = 24;
	assert_false(record_raw(h, &raw, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merges_by_time_up_to_the_watermark),
		cmocka_unit_test(rings_apart_come_one_after_the_other),
		cmocka_unit_test(later_events_stay_in_their_ring),
		cmocka_unit_test(wrapped_records_are_whole),
		cmocka_unit_test(a_loss_tells_its_window),
		cmocka_unit_test(a_loss_comes_when_it_began),
		cmocka_unit_test(a_full_ring_is_noted),
		cmocka_unit_test(damage_is_skipped_and_counted),
		cmocka_unit_test(a_head_beyond_the_ring_is_damage),
		cmocka_unit_test(raw_bounds),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
