// SPDX-License-Identifier: GPL-2.0-only
/*
 * What CPU quotas held the vCPU threads back: groups are kept by path and read once a tick,
 * however many threads are in them. Part of the collector `sched`.
 */
#ifndef KVMTOP_COLLECTORS_SCHED_QUOTA_H
#define KVMTOP_COLLECTORS_SCHED_QUOTA_H

#include <stdint.h>

#include "collector.h"
#include "inventory.h"

struct quotas;
struct group;

/* One thread's part; zeroed at first. */
struct thread_quota {
	struct group *group; /* its own; ->parent up to the machine's scope */
	uint64_t throttled_ns; /* what held it back, summed by us: grows only */
	int64_t due; /* its group is looked up again then, ns */
	int cpu; /* the collector's: where it was last, -1 not known */
	bool ready; /* the collector's: it ran or wanted to since the last tick */
	unsigned tick; /* in which it was counted last */
};

struct quotas *quotas_new(const struct collector_env *env); /* NULL: no memory */
void quotas_free(struct quotas *q);
/*
 * A new tick at now (ns): every group will be read anew when it is asked for first. may_hold: how
 * many descriptors of groups with a limit may stay open. Returns how many do.
 */
unsigned quotas_tick(struct quotas *q, unsigned may_hold, int64_t now);
/*
 * Counts the thread into its groups; call for all threads, VM by VM and its vCPUs first, before any
 * quotas_push().
 */
void quotas_count(struct quotas *q, struct thread_quota *tq, const struct inv_thread *t);
/* Reads what is due and hands the thread's figures to the sink. */
void quotas_push(struct quotas *q, struct thread_quota *tq, struct inv_thread *t, int64_t now);
/* Forgets groups that nobody was counted into for a while. */
void quotas_sweep(struct quotas *q);

#endif
