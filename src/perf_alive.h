// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a CPU's events are still attached to it.
 *
 * A CPU that goes offline loses its perf events for good: when it comes back they are silent, and
 * nothing but their enabled time, which stands still, tells it. One that was away between two looks
 * at the list of CPUs (or during a suspend of the host) would otherwise count nothing from then on.
 */
#ifndef KVMTOP_PERF_ALIVE_H
#define KVMTOP_PERF_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

struct perf_alive {
	uint64_t head, enabled; /* as last seen */
	int64_t last; /* when the events were known to be attached (ns) */
};

/*
 * To be asked often. Only where the head of the ring stood still for a second the event is read
 * (PERF_FORMAT_TOTAL_TIME_ENABLED): that interrupts its CPU, which must not be one with busy
 * guests.
 */
bool perf_alive(struct perf_alive *a, uint64_t head, int fd, int64_t now);

#endif
