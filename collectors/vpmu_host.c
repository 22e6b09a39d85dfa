// SPDX-License-Identifier: GPL-2.0-only
/* What of the host stands against the counters of its guests (vpmu.h). */
#include <stdio.h>

#include "sampling_event.h"
#include "sysroot.h"
#include "vpmu.h"

static bool watchdog(const struct sysroot *root)
{
	char buf[16];

	return sysroot_read(root, "proc/sys/kernel/nmi_watchdog", buf, sizeof(buf)) > 0 &&
	       buf[0] == '1';
}

/* A kernel with our patches gives guests counters all the same. */
static bool has_soft(const struct sysroot *root)
{
	char buf[16];

	return sysroot_read(root, "sys/module/kvm/parameters/soft_pmu", buf, sizeof(buf)) > 0;
}

void vpmu_host_why(const struct sysroot *root, char *out, size_t size)
{
	struct pmu_facts f;

	pmu_facts_read(root, &f);
	if (!f.guests)
		snprintf(out, size, "no guest has a PMU: kvm.enable_pmu=N%s",
			 f.pmu ? "" : ", for this host has none");
	else if (!f.pmu)
		snprintf(out, size, "%s",
			 has_soft(root)
				 ? "this host has no PMU: guests count cycles by a clock, other "
				   "events of the CPU stand still"
				 : "this host has no PMU: no counter of a guest counts");
	else if (f.mediated)
		snprintf(out, size,
			 "mediated: a guest owns the counters while it runs; its MSR writes make "
			 "no exit");
	else
		snprintf(out, size, "%s",
			 watchdog(root)
				 ? "the NMI watchdog holds a counter a CPU; perf and event filters "
				   "may take others"
				 : "perf on the host and the VM's event filter may take counters "
				   "from guests");
}
