// SPDX-License-Identifier: GPL-2.0-only
/* Perf rings of some threads (thread_events.h). */
#include "thread_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "grow.h"
#include "kvm_decode.h"
#include "perf_thread.h"

#define RING_BYTES (512u << 10)
#define RING_LEAST (64u << 10)
#define RINGS_ALL (16u << 20) /* bytes: of many threads each has less */
#define BATCH 128
_Static_assert(KVM_EVENTS <= PERF_THREAD_EVENTS, "all events at once");

struct thread_ring {
	pid_t tid;
	struct perf_thread *ring;
	bool wanted;
};

struct thread_events {
	thread_events_fn fn;
	void *ctx;
	const struct kvm_format *format;
	uint64_t id[KVM_EVENTS];
	size_t nid;
	int epfd;
	struct thread_ring *thread;
	size_t n, room;
	size_t bytes; /* of a ring; 0: by the rule */
	uint64_t lost;
	uint64_t told; /* of lost events, by the records of the ring that is being drained */
	struct sample batch[BATCH];
	size_t filled;
};

/* ---- from records to samples ---- */

static void flush(struct thread_events *e)
{
	if (e->filled)
		e->fn(e->ctx, e->batch, e->filled);
	e->filled = 0;
}

static void on_batch(void *ctx, const struct ring_record *r, size_t n)
{
	struct thread_events *e = ctx;

	for (size_t i = 0; i < n; i++) {
		uint64_t lost;

		if (r[i].h->type == PERF_RECORD_LOST && record_lost(r[i].h, &lost))
			e->told += lost;
		if (kvm_decode(e->format, &r[i], &e->batch[e->filled]) && ++e->filled == BATCH)
			flush(e);
	}
}

static void drain(struct thread_events *e, const struct thread_ring *t, int64_t watermark)
{
	uint64_t lost;

	e->told = 0;
	(void)perf_thread_drain(t->ring, watermark, on_batch, e);
	flush(e);
	e->lost += perf_thread_lost(t->ring, &lost) ? lost : e->told;
}

void thread_events_drain(struct thread_events *e, int64_t watermark)
{
	struct epoll_event ready;

	/* Asking is taking: it is quiet until a ring fills again. */
	while (e->n && epoll_wait(e->epfd, &ready, 1, 0) > 0)
		;
	for (size_t i = 0; i < e->n; i++)
		drain(e, &e->thread[i], watermark);
}

uint64_t thread_events_lost(struct thread_events *e)
{
	uint64_t n = e->lost;

	e->lost = 0;
	return n;
}

/* ---- opening and closing ---- */

static void close_at(struct thread_events *e, size_t at)
{
	struct thread_ring *t = &e->thread[at];

	epoll_ctl(e->epfd, EPOLL_CTL_DEL, perf_thread_fd(t->ring), NULL);
	perf_thread_free(t->ring);
	*t = e->thread[--e->n];
}

static size_t ring_bytes(const struct thread_events *e, size_t threads)
{
	size_t bytes = RING_BYTES;

	if (e->bytes)
		return e->bytes;
	while (bytes > RING_LEAST && bytes * threads > RINGS_ALL)
		bytes /= 2;
	return bytes;
}

static int open_one(struct thread_events *e, pid_t tid, size_t bytes)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	struct thread_ring t = {.tid = tid, .wanted = true};
	int rc;

	if (!grow(&e->thread, e->n, &e->room, sizeof(*e->thread)))
		return -ENOMEM;
	rc = perf_thread_new(tid, e->id, e->nid, bytes, &t.ring);
	if (rc)
		return rc;
	if (epoll_ctl(e->epfd, EPOLL_CTL_ADD, perf_thread_fd(t.ring), &ev)) {
		rc = -errno;
		perf_thread_free(t.ring);
		return rc;
	}
	e->thread[e->n++] = t;
	return 0;
}

static struct thread_ring *find(const struct thread_events *e, pid_t tid)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->thread[i].tid == tid)
			return &e->thread[i];
	return NULL;
}

int thread_events_follow(struct thread_events *e, const pid_t *tid, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		struct thread_ring *t = find(e, tid[i]);
		int rc = t ? 0 : open_one(e, tid[i], ring_bytes(e, n));

		if (t)
			t->wanted = true;
		if (rc && rc != -ESRCH && !err)
			err = rc;
	}
	for (size_t i = e->n; i-- > 0;) {
		if (!e->thread[i].wanted) {
			drain(e, &e->thread[i], INT64_MAX);
			close_at(e, i);
		} else {
			e->thread[i].wanted = false;
		}
	}
	return err ? err : (int)e->n;
}

int thread_events_choose(struct thread_events *e, const struct kvm_format *f, const uint64_t *id,
			 size_t n)
{
	(void)thread_events_follow(e, NULL, 0);
	e->nid = 0;
	if (!n || n > KVM_EVENTS)
		return -EINVAL;
	memcpy(e->id, id, n * sizeof(*id));
	e->nid = n;
	e->format = f;
	return 0;
}

int thread_events_new(thread_events_fn fn, void *ctx, size_t bytes, struct thread_events **out)
{
	struct thread_events *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return -ENOMEM;
	e->fn = fn;
	e->ctx = ctx;
	e->bytes = bytes;
	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epfd < 0) {
		rc = -errno;
		free(e);
		return rc;
	}
	*out = e;
	return 0;
}

void thread_events_free(struct thread_events *e)
{
	if (!e)
		return;
	while (e->n)
		close_at(e, e->n - 1);
	close(e->epfd);
	free(e->thread);
	free(e);
}

int thread_events_fd(const struct thread_events *e)
{
	return e->epfd;
}
