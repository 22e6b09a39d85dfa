// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which event takes the samples: hardware cycles or cpu-clock.
 *
 * Sampling must not hurt a guest. A hardware counter of ours may be one that a guest needs, and
 * where the kernel has a mediated vPMU an open event that counts guests keeps a VM from starting
 * at all. cpu-clock needs no counter.
 */
#ifndef KVMTOP_COLLECTORS_SAMPLING_EVENT_H
#define KVMTOP_COLLECTORS_SAMPLING_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "collector.h"

struct sysroot;

/* What the host says of its PMU. */
struct pmu_facts {
	bool pmu; /* the kernel drives a hardware PMU */
	bool guests; /* guests may have a vPMU: KVM's parameter enable_pmu */
	bool mediated; /* … and then own the hardware while they run */
};

void pmu_facts_read(const struct sysroot *root, struct pmu_facts *out);

struct sampling_choice {
	bool hw;
	const char *why; /* why not what was asked for, or how auto decided; static */
};

void sampling_choose(enum sample_with with, const struct pmu_facts *f, struct sampling_choice *out);

/*
 * The event to open. Of hardware only the domains asked for count; cpu-clock knows no such thing,
 * so its records are chosen by what they say.
 */
struct perf_event_attr sampling_attr(bool hw, bool host, bool guest, unsigned hz);
/* Each sample tells its caller too: of a guest's, where the kernel tells that. */
void sampling_attr_caller(struct perf_event_attr *a);
/* "cycles", "cycles:G", "cycles:H", "cpu-clock": as perf names them. */
const char *sampling_event_name(bool hw, bool host, bool guest);

#endif
