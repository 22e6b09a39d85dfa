// SPDX-License-Identifier: GPL-2.0-only
/*
 * Do the TSCs of the host's CPUs agree? A thread is on one CPU at a time: one that runs a vCPU and
 * is seen elsewhere before it has left guest mode here was there earlier than the stamps say.
 */
#ifndef KVMTOP_MERGE_SYNC_H
#define KVMTOP_MERGE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

struct merge_sync;
struct tracetext_event;

struct merge_apart {
	unsigned cpu; /* the other one */
	uint64_t by; /* cycles, at least */
};

struct merge_sync *merge_sync_new(void); /* NULL: no memory */
void merge_sync_free(struct merge_sync *s);
/*
 * The host's next event, in the order of stamps: true where it shows that its CPU and another one
 * are apart.
 */
bool merge_sync_apart(struct merge_sync *s, const struct tracetext_event *e,
		      struct merge_apart *apart);

#endif
