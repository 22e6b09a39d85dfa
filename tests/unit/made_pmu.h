// SPDX-License-Identifier: GPL-2.0-only
/* The PMU part of made_snapshot.c, which includes it once. */
#ifndef KVMTOP_MADE_PMU_H
#define KVMTOP_MADE_PMU_H

#include "snapshot.h"

/* The first vCPU has a counter that counts, one that shares, and one that the host took. */
static inline void made_counters(struct snap_pmc *x, bool in)
{
	struct value na = value_na(WHY_NO_SOURCE);
	const struct snap_pmc all[] = {
		{.counter = "gp0",
		 .event = "cycles",
		 .select = "0x53003c",
		 .mode = "user+kernel int",
		 .host_event = in ? "" : "active",
		 .value = in ? na : value_known(182736455),
		 .rate = in ? na : value_known(2.4e9),
		 .running = in ? na : value_known(100)},
		{.nr = 1,
		 .counter = "gp1",
		 .event = "cache-misses",
		 .select = "0x41412e",
		 .mode = "user",
		 .host_event = in ? "" : "inactive",
		 .wrong = !in,
		 .note = in ? "" : "counts for 63% of the time: it shares a counter of the host",
		 .value = in ? na : value_known(90211),
		 .rate = in ? na : value_known(12000),
		 .running = in ? na : value_known(63)},
		{.nr = 2,
		 .counter = "gp2",
		 .event = "r01b1",
		 .select = "0x4201b1",
		 .mode = "kernel",
		 .host_event = in ? "" : "error",
		 .wrong = !in,
		 .note = in ? "" : "does not count: the host uses the PMU",
		 .value = in ? na : value_known(0),
		 .rate = in ? na : value_known(0),
		 .running = in ? na : value_pending()},
	};

	for (int i = 0; i < 6; i++) {
		x[i] = all[i % 3];
		x[i].vcpu = i / 3;
		x[i].enabled = true;
		x[i].inferred = in;
		x[i].accesses = value_known(i < 3 ? 40 : 0);
		x[i].overflows = in ? na : value_known(0);
		if (in)
			x[i].note = "inferred: whether it counts only the kernel knows";
		else if (!x[i].note)
			x[i].note = "";
	}
}

static inline void made_pmu(struct snapshot *s, bool inferred, bool ours)
{
	struct snap_vcpu *v = (struct snap_vcpu *)s->vcpus;
	struct snap_vm *vms = (struct snap_vm *)s->vms;
	struct snap_pmc *x = snapshot_alloc(s, 6, sizeof(*x));

	if (!x)
		return;
	made_counters(x, inferred);
	s->pmcs = x;
	s->npmcs = 6;
	s->host.pmu_why =
		snapshot_printf(s, "%s%s", ours ? "kvmtop itself samples by cycles; " : "",
				"the NMI watchdog holds a counter a CPU; perf and event "
				"filters may take others");
	vms[0].pmu.accesses = value_known(120);
	vms[0].pmu.pct = value_known(0.3);
	for (uint32_t i = 0; i < 2; i++)
		v[i].pmu = (struct snap_pmu){
			.accesses = value_known(i ? 0 : 120),
			.total = value_known(120),
			.refused = value_known(0),
			.pct = value_known(i ? 0 : 0.6),
			.source = inferred ? "inferred" : "debugfs",
			.what = inferred ? "inferred from 120 accesses"
					 : "version 2, 6 counters of 48 bits, 3 fixed of 48 bits",
			.global = "ctrl 0x7 status 0x0",
			.first = 3 * i,
			.n = 3,
		};
}

#endif
