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

/* The parameter: '-' guests have clocks for counters where the host has no PMU, '1' always, '0'
 * never; '\0' there is none. */
static char soft(const struct sysroot *root)
{
	char buf[16];
	ssize_t n = sysroot_read(root, "sys/module/kvm/parameters/soft_pmu", buf, sizeof(buf));

	return n > 0 ? buf[0] : '\0';
}

bool vpmu_patched(const struct sysroot *root)
{
	return soft(root) != '\0';
}

#define BY_A_CLOCK "cycles by a clock, no other CPU event"

void vpmu_host_why(const struct sysroot *root, char *out, size_t size)
{
	struct pmu_facts f;

	pmu_facts_read(root, &f);
	if (!f.guests)
		snprintf(out, size, "no guest has a PMU: kvm.enable_pmu=N%s",
			 f.pmu ? "" : ", for this host has none");
	else if (soft(root) == '1')
		snprintf(out, size, "kvm.soft_pmu=1: guests count " BY_A_CLOCK);
	else if (!f.pmu)
		snprintf(out, size, "%s",
			 soft(root) ? "this host has no PMU: guests count " BY_A_CLOCK
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
