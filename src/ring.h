// SPDX-License-Identifier: GPL-2.0-only
/*
 * Walks perf rings and merges them in time order across CPUs.
 *
 * Works on memory only: opening is perf_rings.c. Head belongs to the kernel, tail to us:
 * libperf's own reader drops what arrives between its last read and its "done".
 * Events are expected with sample_type TID|TIME|RAW, or IP|TID|TIME where `time_at` says so, and
 * with sample_id_all.
 */
#ifndef KVMTOP_RING_H
#define KVMTOP_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t size; /* of data: a power of two */
	uint64_t tail; /* how far we have read; what the kernel knows may be behind */
	uint64_t head; /* as read at the beginning of a drain */
	int64_t next_time; /* where the record at tail has its place: a LOST begins when the loss
			      did */
	int64_t next_own; /* the time that stands in it */
	int64_t last_time; /* of the record handed over last */
	uint16_t cpu;
	uint16_t time_at; /* where a sample has its time, from the record's begin */
	bool was_full; /* loss may have happened that no LOST record tells yet; reader clears it */
	uint64_t broken; /* times that its content made no sense and was skipped to the head */
};

/* Takes a mapped ring of `size` data bytes behind `page_size` bytes of control page. */
void ring_init(struct ring *r, void *base, size_t page_size, size_t size, uint16_t cpu,
	       int64_t now);

uint64_t ring_head(const struct ring *r); /* how far the kernel has written */

struct ring_record {
	const struct perf_event_header *h; /* whole, h->size bytes; valid during the call */
	int64_t time;
	int64_t prev; /* time of the record before it in the same ring */
	struct ring *ring;
};

/* Gets records in time order, several at once. */
typedef void (*ring_batch_fn)(void *ctx, const struct ring_record *r, size_t n);

#define RING_TIME_RAW 16 /* behind header, pid, tid */
#define RING_TIME_IP 24 /* behind header, ip, pid, tid */

struct ring_merge;

struct ring_merge *ring_merge_new(void); /* NULL: no memory */
void ring_merge_free(struct ring_merge *m);
/* From now on ring by ring, each in order: for who does not ask which of two CPUs was first. */
void ring_merge_apart(struct ring_merge *m);
/*
 * Hands over all records with time ≤ watermark (ns) of all rings (NULLs are skipped), in
 * time order, and releases their room. A LOST record comes at the begin of its window (prev,
 * time], so that the pairs that overlap it are known while they are still open. The clock that made
 * the watermark must have been read before this call reads the heads. 0 or -ENOMEM (nothing was
 * read then).
 */
int ring_merge_drain(struct ring_merge *m, struct ring *const *rings, size_t n, int64_t watermark,
		     ring_batch_fn fn, void *ctx);

/* Bounds of a tracepoint sample's raw data; false: shorter than it claims. */
static inline bool record_raw(const struct perf_event_header *h, const uint8_t **raw, uint32_t *len)
{
	const uint8_t *p = (const uint8_t *)h + sizeof(*h);

	if (h->size < RING_TIME_RAW + 12) /* pid, tid, time, raw size */
		return false;
	__builtin_memcpy(len, p + 16, sizeof(*len));
	*raw = p + 20;
	return *len <= h->size - sizeof(*h) - 20u;
}

/* A sample of IP|TID|TIME; false: the record is too short. */
static inline bool record_ip(const struct perf_event_header *h, uint64_t *ip, int32_t *pid,
			     int32_t *tid)
{
	const uint8_t *p = (const uint8_t *)h + sizeof(*h);

	if (h->size < RING_TIME_IP + 8)
		return false;
	__builtin_memcpy(ip, p, sizeof(*ip));
	__builtin_memcpy(pid, p + 8, sizeof(*pid));
	__builtin_memcpy(tid, p + 12, sizeof(*tid));
	return true;
}

/*
 * The call chain behind it, of samples that have one: `n` words at `chain`, at any address. False:
 * there is none, or it is cut short.
 */
static inline bool record_chain(const struct perf_event_header *h, const void **chain, uint64_t *n)
{
	const uint8_t *p = (const uint8_t *)h + RING_TIME_IP + 8;

	if (h->size < RING_TIME_IP + 16)
		return false;
	__builtin_memcpy(n, p, sizeof(*n));
	*chain = p + 8;
	return *n <= (h->size - RING_TIME_IP - 16u) / sizeof(*n);
}

/* Number of events that a LOST record stands for; false: the record is too short. */
static inline bool record_lost(const struct perf_event_header *h, uint64_t *n)
{
	if (h->size < sizeof(*h) + 16) /* id, lost */
		return false;
	__builtin_memcpy(n, (const uint8_t *)h + sizeof(*h) + 8, sizeof(*n));
	return true;
}

#endif
