// SPDX-License-Identifier: GPL-2.0-only
/*
 * Made snapshots for tests of the screen: a host with VMs whose figures follow from a seed, so
 * that a picture of them is the same everywhere.
 */
#ifndef KVMTOP_MADE_SNAPSHOT_H
#define KVMTOP_MADE_SNAPSHOT_H

#include "snapshot.h"

struct made {
	unsigned nvms; /* the first four are the sample's; more are made */
	unsigned step; /* which interval: figures change a little */
	bool no_root; /* a source is missing */
	bool no_exits; /* this KVM fires no kvm_entry and kvm_exit */
	bool dropped; /* events were given up for their cost */
	bool no_samples; /* nothing is sampled */
	bool few_samples; /* fewer than asked for */
	bool no_symbols; /* nobody knows the guests' symbols */
	bool callers; /* the host's kernel tells guests' call chains */
	bool slow; /* slow exits are looked for */
	bool code_lost; /* of the exits that tell which code makes them */
	bool fine; /* the events of the first VM's vCPU 3 come one by one */
	bool pmu; /* debugfs has the PMUs of the first VM's vCPUs 0 and 1 */
	bool pmu_inferred; /* the same, from what they wrote */
	bool pmu_ours; /* of pmu: kvmtop has a counter, too, and the first line two */
	bool no_waits; /* nobody sees who has the CPU */
	bool used_up; /* a quota: its vCPUs wait for one another within it */
	bool names; /* names that want escaping and wide characters */
	unsigned seed; /* ≠ 0: any figures at all, unknown ones too (fuzzing) */
};

/* One reference; NULL: no memory. */
struct snapshot *made_snapshot(const struct made *m);

#endif
