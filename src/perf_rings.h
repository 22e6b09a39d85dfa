// SPDX-License-Identifier: GPL-2.0-only
/*
 * One perf ring a CPU, and the events (tracepoints, or samples of where the CPU is) that write
 * into it.
 *
 * Each CPU has one evlist with one dummy event, which owns the ring and its wake-ups. A
 * tracepoint is opened on each CPU by itself and sent into that CPU's ring
 * (PERF_EVENT_IOC_SET_OUTPUT). So one kind of event can come and go without touching the
 * others (an evlist cannot be mapped twice), a CPU has one ring however many kinds are
 * open, and inside it all kinds are in order.
 */
#ifndef KVMTOP_PERF_RINGS_H
#define KVMTOP_PERF_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define RING_EVENTS 16 /* slots for events */
#define RING_MIN (64u << 10)
#define RING_MAX (1u << 20)
#define RINGS_ALL (256u << 20) /* together */

struct perf_rings;

/*
 * bytes: of each ring, a power of two of at least a page; 0: by the rule for ncpus.
 * late_wakeups: only a full ring wakes (tests that provoke losses). 0 or -errno.
 */
int perf_rings_new(size_t bytes, unsigned ncpus, bool late_wakeups, struct perf_rings **out);
/*
 * The records are samples of an address (record_ip()), no tracepoints, and come ring by ring.
 * Before the first CPU.
 */
void perf_rings_sample_ips(struct perf_rings *r);
void perf_rings_free(struct perf_rings *r);
int perf_rings_fd(const struct perf_rings *r); /* for epoll: a ring is filling; owned by r */
/* Takes the pending wake-ups, so that the descriptor is quiet until the next one. */
void perf_rings_woken(struct perf_rings *r);
/* In use now: what was asked for, or less where so much may not be locked. */
size_t perf_rings_bytes(const struct perf_rings *r);
bool perf_rings_halved(const struct perf_rings *r); /* it is less */
unsigned perf_rings_cpus(const struct perf_rings *r); /* with a ring */
bool perf_rings_has_lost(const struct perf_rings *r); /* PERF_FORMAT_LOST works (>= 6.0) */

/*
 * The CPUs that are online now (sorted). Rings of new ones are opened with all open
 * events; those that went, or that were away since the last call (perf_alive.h), are drained
 * up to `now` (ns) and closed later. Calls `unwatched` (NULL: do not) for each CPU of which
 * nothing was seen until now: a new one after its events are on, and one that could not be opened;
 * since: when its former ring was known to work, 0 where there was none. A CPU that vanishes
 * meanwhile is none. Returns 0, or -errno of the first that could not be opened: -ENOBUFS where
 * even RING_MIN bytes may not be locked.
 */
int perf_rings_set_cpus(struct perf_rings *r, const int *cpu, size_t n, int64_t now,
			void (*unwatched)(void *ctx, int cpu, int64_t since), void *ctx);
/* Opens the tracepoint `id` on all CPUs under a free slot; all or nothing. 0 or -errno. */
int perf_rings_open(struct perf_rings *r, unsigned slot, uint64_t id);
/*
 * The same for any event: of `a` type, config, frequency or period and what is excluded count, and
 * of samples of an address whether they have a call chain, and of how many addresses
 * (record_chain()).
 */
int perf_rings_open_attr(struct perf_rings *r, unsigned slot, const struct perf_event_attr *a);
/* Ends it; what it wrote stays in the rings. */
void perf_rings_close(struct perf_rings *r, unsigned slot);
bool perf_rings_is_open(const struct perf_rings *r, unsigned slot);

/* As ring_merge_drain(), over all rings; closes rings of gone CPUs that are drained. */
int perf_rings_drain(struct perf_rings *r, int64_t watermark, ring_batch_fn fn, void *ctx);
/*
 * Says for each slot how many events were lost since the last call, where the kernel
 * counts them for each event. Reads only the counters of rings that were full. A ring's LOST
 * record comes with the next event that has room: until then `untold` says that after `from`,
 * the time of its newest record, events may be missing.
 */
void perf_rings_losses(struct perf_rings *r, void (*fn)(void *ctx, unsigned slot, uint64_t n),
		       void (*untold)(void *ctx, uint16_t cpu, int64_t from), void *ctx);

struct perf_evlist;
/* All of it, with the events' own references to their maps, which libperf leaves to its caller. */
void perf_rings_evlist_free(struct perf_evlist *evlist);

#endif
