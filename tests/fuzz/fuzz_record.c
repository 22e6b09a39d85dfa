// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as the content of two perf rings, read in two passes: no read beyond a record,
 * no time that runs backwards within a ring's own order, no byte released twice.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_format.h"
#include "ring.h"

enum { PAGE = 4096, SIZE = 4096 };

static const char pio_format[] =
	"name: kvm_pio\nID: 110\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned int rw;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned int port;\toffset:12;\tsize:4;\tsigned:0;\n";

struct reader {
	struct kvm_format *format;
	int64_t watermark;
	uint64_t bytes;
};

/* A copy of exactly its size: a sanitizer sees the first byte that is read beyond it. */
static void decode(const struct reader *r, const struct perf_event_header *h)
{
	uint8_t *copy = malloc(h->size);
	struct sample s;
	const uint8_t *raw;
	uint64_t lost;
	uint32_t len;

	if (!copy)
		return;
	memcpy(copy, h, h->size);
	h = (const void *)copy;
	if (h->type == PERF_RECORD_LOST)
		(void)record_lost(h, &lost);
	if (record_raw(h, &raw, &len) && kvm_format_decode(r->format, raw, len, &s) &&
	    s.type != EV_PIO)
		abort();
	free(copy);
}

static void on_batch(void *ctx, const struct ring_record *rec, size_t n)
{
	struct reader *r = ctx;

	for (size_t i = 0; i < n; i++) {
		bool lost = rec[i].h->type == PERF_RECORD_LOST && rec[i].prev < rec[i].time;

		/* A loss comes when it began. */
		if ((lost ? rec[i].prev : rec[i].time) > r->watermark)
			abort();
		r->bytes += rec[i].h->size;
		decode(r, rec[i].h);
	}
}

static uint8_t *make_ring(struct ring *r, uint16_t cpu, uint64_t start, const uint8_t *data,
			  size_t len)
{
	uint8_t *mem = aligned_alloc(PAGE, PAGE + SIZE);
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)mem;

	if (!mem)
		abort();
	memset(mem, 0, PAGE + SIZE);
	len &= ~7ul;
	page->data_tail = start & ~7ull;
	page->data_head = page->data_tail + len;
	for (size_t i = 0; i < len && i < SIZE; i++)
		mem[PAGE + ((page->data_tail + i) & (SIZE - 1))] = data[i];
	ring_init(r, mem, PAGE, SIZE, cpu, 0);
	return mem;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ring ring[2], *rings[2] = {&ring[0], &ring[1]};
	struct ring_merge *m = ring_merge_new();
	struct reader r = {.format = kvm_format_new()};
	uint8_t *mem[2];
	uint16_t start;
	size_t half;

	if (len >= 4 && m && r.format) {
		kvm_format_load(r.format, 3, pio_format, sizeof(pio_format) - 1);
		memcpy(&start, data, sizeof(start));
		half = (len - 4) * data[2] / 255;
		mem[0] = make_ring(&ring[0], 0, start, data + 4, half);
		mem[1] = make_ring(&ring[1], 1, (uint64_t)start << data[3] % 40, data + 4 + half,
				   len - 4 - half);
		r.watermark = 1000;
		ring_merge_drain(m, rings, 2, r.watermark, on_batch, &r);
		r.watermark = INT64_MAX;
		ring_merge_drain(m, rings, 2, r.watermark, on_batch, &r);
		if (r.bytes > len || ring[0].page->data_tail != ring[0].page->data_head ||
		    ring[1].page->data_tail != ring[1].page->data_head)
			abort();
		free(mem[0]);
		free(mem[1]);
	}
	ring_merge_free(m);
	kvm_format_free(r.format);
	return 0;
}
