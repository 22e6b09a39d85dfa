// SPDX-License-Identifier: GPL-2.0-only
/*
 * A recording of perf's, run through kvmtop's own rings, decoding, pairing and model: each record
 * is put into a ring of its CPU as the kernel would have, and what comes out is shown as `perf kvm
 * stat report` shows it. For the test that both say the same of one recording.
 */
#ifndef KVMTOP_TESTS_REPLAY_H
#define KVMTOP_TESTS_REPLAY_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "kvm_format.h"
#include "model_fixture.h"
#include "perfdata_whole.h"
#include "ring.h"

#define REPLAY_CPUS 64
#define REPLAY_RING (128u << 10)
#define REPLAY_PAGE 4096
#define REPLAY_KEYS 4096

/* One thread of the recording; perf knows it from its first kvm_entry on. */
struct replay_thread {
	int32_t tid;
	bool entered;
};

struct replay {
	struct fixture fx;
	struct kvm_format *format;
	struct ring_merge *merge;
	struct ring ring[REPLAY_CPUS], *rings[REPLAY_CPUS];
	struct replay_thread *thread;
	size_t nthread;
	bool as_perf; /* leave out what perf leaves out */
	uint64_t samples, left_out, lost, broken, undecoded;
	int64_t last;
	int err;
};

/* ---- perf's known fault ---- */

/*
 * perf 6.1 makes its note of a thread at its first kvm_entry (only that tells it the vCPU), so what
 * a thread did before is not counted: mostly the exit that was under way when recording began, or
 * where a vCPU's first KVM_RUN stood.
 */
static inline bool replay_perf_counts(struct replay *r, const struct sample *s)
{
	size_t i = 0;

	while (i < r->nthread && r->thread[i].tid != s->tid)
		i++;
	if (i == r->nthread)
		return false;
	if (s->type == EV_ENTRY)
		r->thread[i].entered = true;
	return r->thread[i].entered;
}

static inline void replay_note_thread(struct replay *r, int32_t pid, int32_t tid)
{
	struct inv_vm *vm;

	for (size_t i = 0; i < r->nthread; i++)
		if (r->thread[i].tid == tid)
			return;
	r->thread = reallocarray(r->thread, r->nthread + 1, sizeof(*r->thread));
	r->thread[r->nthread++] = (struct replay_thread){.tid = tid};
	vm = inventory_find(r->fx.inv, pid, 1, "k");
	if (!vm)
		vm = inventory_add_vm(r->fx.inv, pid, 1, "k");
	inventory_add_thread(r->fx.inv, vm, pid, tid, 1, ROLE_VCPU);
}

/* ---- out of the rings ---- */

static inline void replay_batch(void *ctx, const struct ring_record *rec, size_t n)
{
	struct replay *r = ctx;

	for (size_t i = 0; i < n; i++) {
		struct loss l = {.cpu = rec[i].ring->cpu, .from = rec[i].prev, .to = rec[i].time};
		struct sample s;
		const uint8_t *raw;
		uint32_t len;

		if (rec[i].h->type == PERF_RECORD_LOST && record_lost(rec[i].h, &l.n)) {
			r->lost += l.n;
			r->fx.sink->loss(r->fx.sink->ctx, &l);
			continue;
		}
		if (!record_raw(rec[i].h, &raw, &len) ||
		    !kvm_format_decode(r->format, raw, len, &s)) {
			r->undecoded++;
			continue;
		}
		s.time = rec[i].time;
		s.cpu = rec[i].ring->cpu;
		r->samples++;
		if (r->as_perf && !replay_perf_counts(r, &s))
			r->left_out++;
		else
			r->fx.sink->samples(r->fx.sink->ctx, &s, 1);
	}
}

static inline void replay_drain(struct replay *r, int64_t watermark)
{
	if (ring_merge_drain(r->merge, r->rings, REPLAY_CPUS, watermark, replay_batch, r))
		r->err = -ENOMEM;
}

/* ---- into the rings ---- */

static inline struct ring *replay_ring(struct replay *r, unsigned cpu)
{
	if (!r->rings[cpu]) {
		void *mem = calloc(1, REPLAY_PAGE + REPLAY_RING);

		if (!mem)
			return NULL;
		/* somewhere in it, so that records wrap */
		((struct perf_event_mmap_page *)mem)->data_head = REPLAY_RING - 1000;
		((struct perf_event_mmap_page *)mem)->data_tail = REPLAY_RING - 1000;
		r->rings[cpu] = &r->ring[cpu];
		ring_init(r->rings[cpu], mem, REPLAY_PAGE, REPLAY_RING, (uint16_t)cpu, 0);
	}
	return r->rings[cpu];
}

static inline void replay_put(struct ring *ring, const void *bytes, size_t n)
{
	uint64_t head = ring->page->data_head;

	for (size_t i = 0; i < n; i++)
		((uint8_t *)ring->data)[(head + i) & (ring->size - 1)] =
			((const uint8_t *)bytes)[i];
	ring->page->data_head = head + n;
}

/* What kvmtop's own events are opened with: sample_type TID|TIME|RAW, sample_id_all. */
static inline void replay_put_sample(struct ring *ring, const struct perfdata_record *p)
{
	size_t size = sizeof(struct perf_event_header) + 20 + p->raw_len, pad = -size & 7;
	struct perf_event_header h = {PERF_RECORD_SAMPLE, p->misc, (uint16_t)(size + pad)};
	uint64_t none = 0;

	replay_put(ring, &h, sizeof(h));
	replay_put(ring, &p->pid, 4);
	replay_put(ring, &p->tid, 4);
	replay_put(ring, &p->time, 8);
	replay_put(ring, &p->raw_len, 4);
	replay_put(ring, p->raw, p->raw_len);
	replay_put(ring, &none, pad);
}

static inline void replay_put_lost(struct ring *ring, const struct perfdata_record *p)
{
	struct perf_event_header h = {PERF_RECORD_LOST, p->misc, sizeof(h) + 32};

	if (p->size < sizeof(h) + 16)
		return;
	replay_put(ring, &h, sizeof(h));
	replay_put(ring, p->bytes + sizeof(h), 16); /* id, lost */
	replay_put(ring, &p->pid, 4);
	replay_put(ring, &p->tid, 4);
	replay_put(ring, &p->time, 8);
}

static inline int replay_record(void *ctx, const struct perfdata_record *p)
{
	struct replay *r = ctx;
	struct ring *ring;

	if (p->cpu < 0 || p->cpu >= REPLAY_CPUS ||
	    (p->type != PERF_RECORD_SAMPLE && p->type != PERF_RECORD_LOST))
		return 0;
	ring = replay_ring(r, (unsigned)p->cpu);
	if (!ring)
		return -ENOMEM;
	if (ring->page->data_head - ring->page->data_tail > REPLAY_RING / 2)
		replay_drain(r, p->time - 1);
	if (p->type == PERF_RECORD_LOST) {
		replay_put_lost(ring, p);
	} else if (p->raw && p->raw_len < REPLAY_PAGE) {
		replay_note_thread(r, p->pid, p->tid);
		replay_put_sample(ring, p);
	}
	r->last = p->time;
	return r->err;
}

/* ---- formats ---- */

static inline int replay_format(void *ctx, const char *system, const char *text, size_t len)
{
	struct replay *r = ctx;
	char name[64] = "";
	size_t n = len < 128 ? len : 128;
	char head[129];

	memcpy(head, text, n);
	head[n] = '\0';
	if (sscanf(head, "name: %63s", name) != 1)
		return 0;
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (!strcmp(kvm_events[i].system, system) && !strcmp(kvm_events[i].event, name)) {
			(void)kvm_format_load(r->format, i, text, len);
			(void)kvm_names_load(r->fx.names, name, text, len);
		}
	return 0;
}

/* Reads all of the recording; the snapshot of all of it, or NULL with r->err set. */
static inline struct snapshot *replay_all(struct replay *r, struct perfdata *p, bool as_perf)
{
	memset(r, 0, sizeof(*r));
	r->as_perf = as_perf;
	r->fx = fixture_new(REPLAY_KEYS, REPLAY_KEYS);
	r->format = kvm_format_new();
	r->merge = ring_merge_new();
	(void)perfdata_formats(p, replay_format, r);
	commit_drop(&r->fx, 0);
	r->err = perfdata_read(p, replay_record, r);
	r->broken = perfdata_sum(p)->broken;
	if (r->err)
		return NULL;
	replay_drain(r, INT64_MAX);
	return commit(&r->fx, r->last + 1);
}

static inline void replay_free(struct replay *r)
{
	for (unsigned i = 0; i < REPLAY_CPUS; i++)
		if (r->rings[i])
			free(r->rings[i]->page);
	ring_merge_free(r->merge);
	kvm_format_free(r->format);
	fixture_free(&r->fx);
	free(r->thread);
}

/* ---- as perf shows it ---- */

static inline uint64_t replay_timed(const struct snapshot *s, enum kvm_kind kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nexits; i++)
		if (s->exits[i].vm == SNAP_NO_VM && s->exits[i].kind == kind)
			n += s->exits[i].total.timed;
	return n;
}

/*
 * A row of perf's table with single blanks between its figures: samples, their share, share of
 * time, minimum, maximum, mean and its error. False: perf has no such row.
 */
static inline bool replay_row(const struct snapshot *s, const struct snap_exit *e, char *buf,
			      size_t size)
{
	const struct tally *t = &e->total;

	if (e->vm != SNAP_NO_VM || !t->timed)
		return false;
	snprintf(buf, size, "%s %" PRIu64 " %.2f%% %.2f%% %.2fus %.2fus %.2fus +-%.2f%%", e->name,
		 t->timed, 100.0 * (double)t->timed / (double)replay_timed(s, e->kind),
		 t->time_pct.v, (double)t->min_ns / 1e3, (double)t->max_ns / 1e3, t->avg_ns / 1e3,
		 t->stderr_pct);
	return true;
}

#endif
