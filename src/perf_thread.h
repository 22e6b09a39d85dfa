// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tracepoints of one thread alone, through a perf ring of its own. The kernel switches such an
 * event on with the thread and off with it: what other threads do passes it by and costs them
 * nothing.
 */
#ifndef KVMTOP_PERF_THREAD_H
#define KVMTOP_PERF_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring.h"

#define PERF_THREAD_EVENTS 16

struct perf_thread;

/*
 * Opens n tracepoints (ids of tracefs) on thread tid; bytes: of the ring, a power of two of at
 * least a page. 0 or -errno: -ESRCH where the thread has ended.
 */
int perf_thread_new(pid_t tid, const uint64_t *id, size_t n, size_t bytes,
		    struct perf_thread **out);
void perf_thread_free(struct perf_thread *t); /* NULL is fine */
/* Of the event that owns the ring, for epoll, edge-triggered: it hangs up with the thread. */
int perf_thread_fd(const struct perf_thread *t);
/* As ring_merge_drain(). */
int perf_thread_drain(struct perf_thread *t, int64_t watermark, ring_batch_fn fn, void *ctx);
/*
 * How many events found no room since the last call, by the kernel's own counters. Its LOST records
 * tell the same, but a ring's last one only with the next event that has room. False: this kernel
 * has no such counters (before 6.0), the records are all there is.
 */
bool perf_thread_lost(struct perf_thread *t, uint64_t *n);

#endif
