// SPDX-License-Identifier: GPL-2.0-only
/* The collector guest_sampling: where the CPUs are, in guests and in the host. */
#ifndef KVMTOP_COLLECTORS_GUEST_SAMPLING_H
#define KVMTOP_COLLECTORS_GUEST_SAMPLING_H

#include <linux/perf_event.h>

#include "collector.h"

extern const struct collector collector_guest_sampling;

/*
 * A sample's record (IP|TID|TIME, and CALLCHAIN where the event has it), as one sample. False: it
 * is none, or cut short.
 */
bool ip_sample_decode(const struct perf_event_header *h, struct ip_sample *out);
/* Whether its call chain is marked as a guest's, which only some kernels can tell. */
bool ip_sample_guest_chain(const struct perf_event_header *h);

#endif
