// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as the content of a ring of samples (IP|TID|TIME): no read beyond a record, nothing
 * decoded but samples, and a model that counts each of them once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest_sampling.h"
#include "ring.h"
#include "symset.h"

enum { PAGE = 4096, SIZE = 4096, KEEP = 8 };

struct reader {
	struct sym_set set;
	uint64_t samples;
};

/* A copy of exactly its size: a sanitizer sees the first byte that is read beyond it. */
static void decode(struct reader *r, const struct perf_event_header *h)
{
	uint8_t *copy = malloc(h->size);
	struct symbol_key k = {0};
	struct ip_sample s;
	uint64_t lost;

	if (!copy)
		return;
	memcpy(copy, h, h->size);
	h = (const void *)copy;
	if (h->type == PERF_RECORD_LOST)
		(void)record_lost(h, &lost);
	if (ip_sample_decode(h, &s)) {
		if (h->type != PERF_RECORD_SAMPLE || s.domain >= DOMAIN_NR)
			abort();
		k.value = s.ip >> 12;
		k.domain = s.domain;
		sym_set_add(&r->set, &k, s.n, s.tid & 1, KEEP);
		if (s.caller) {
			const struct symbol_key caller = {.value = s.caller >> 12,
							  .domain = k.domain};

			if (!DOMAIN_IS_GUEST(s.domain) || !ip_sample_guest_chain(h))
				abort();
			sym_set_called(&r->set, &k, &caller, s.n);
		}
		r->samples++;
	}
	free(copy);
}

static void on_batch(void *ctx, const struct ring_record *rec, size_t n)
{
	for (size_t i = 0; i < n; i++)
		decode(ctx, rec[i].h);
}

/* Whatever came: bounded, and the rows with `other` are all of it. */
static void check(struct reader *r)
{
	uint64_t rows = r->set.other_now;

	for (unsigned i = 0; i < r->set.n; i++)
		rows += r->set.cell[i].now;
	if (r->set.n > KEEP * SYM_TOLD || rows != r->samples || sym_set_now(&r->set) != rows)
		abort();
	sym_set_next(&r->set, KEEP);
	if (r->set.n > KEEP || sym_set_total(&r->set) != r->samples)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reader r = {0};
	struct ring ring, *rings[] = {&ring};
	struct ring_merge *m = ring_merge_new();
	uint8_t *mem = aligned_alloc(PAGE, PAGE + SIZE);
	struct perf_event_mmap_page *page = (void *)mem;

	if (!m || !mem)
		abort();
	memset(mem, 0, PAGE + SIZE);
	len = (len < SIZE ? len : SIZE) & ~7ul;
	memcpy(mem + PAGE, data, len);
	page->data_head = len;
	ring_init(&ring, mem, PAGE, SIZE, 0, 0);
	ring.time_at = RING_TIME_IP;
	ring_merge_drain(m, rings, 1, INT64_MAX, on_batch, &r);
	if (page->data_tail != page->data_head)
		abort();
	check(&r);
	sym_set_free(&r.set);
	ring_merge_free(m);
	free(mem);
	return 0;
}
