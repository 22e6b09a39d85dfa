// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each event of some threads, and of no other: perf rings of these threads alone (perf_thread.h),
 * decoded to samples. What other threads do passes them by, in the kernel.
 */
#ifndef KVMTOP_COLLECTORS_THREAD_EVENTS_H
#define KVMTOP_COLLECTORS_THREAD_EVENTS_H

#include <stdint.h>
#include <sys/types.h>

#include "kvm_format.h"

struct thread_events;

/* Samples of one thread in time order; those of several come in turns. */
typedef void (*thread_events_fn)(void *ctx, const struct sample *s, size_t n);

/* None is open yet. bytes: of each ring, a power of two; 0: by how many there are. 0 or -errno. */
int thread_events_new(thread_events_fn fn, void *ctx, size_t bytes, struct thread_events **out);
void thread_events_free(
	struct thread_events *e); /* NULL is fine; what is in the rings is not told */
/* For epoll: a ring is filling. Owned by e. */
int thread_events_fd(const struct thread_events *e);
/*
 * Which tracepoints, n ids of this format, which must outlive them; closes what is open. -EINVAL:
 * none, or too many.
 */
int thread_events_choose(struct thread_events *e, const struct kvm_format *f, const uint64_t *id,
			 size_t n);
/*
 * Whose: opens those that are not open and closes others, of which the last is told. Returns how
 * many are open, without threads that have ended; -errno where another could not be opened.
 */
int thread_events_follow(struct thread_events *e, const pid_t *tid, size_t n);
/* Tells what came up to `watermark` (ns). */
void thread_events_drain(struct thread_events *e, int64_t watermark);
/*
 * Events that found no room in their ring, of what was drained since the last call, rings that were
 * closed included.
 */
uint64_t thread_events_lost(struct thread_events *e);

#endif
