// SPDX-License-Identifier: GPL-2.0-only
/* The reasons of figures that are not known, in words. */
#include <stddef.h>

#include "value.h"

static const char *const texts[WHY_NR] = {
	[WHY_NONE] = "",
	[WHY_NO_ENTRY_EXIT] = "this KVM fires no kvm_entry and kvm_exit events",
	[WHY_NO_EVENTS] = "KVM's tracepoints cannot be opened",
	[WHY_NOT_OPEN] = "this kind of event was not collected over the whole interval",
	[WHY_NO_SCHEDSTAT] = "this kernel keeps no schedstat of it",
	[WHY_NO_CGROUP] = "no cgroup with cpu.stat was found",
	[WHY_NO_SOURCE] = "this kernel does not give it",
	[WHY_NO_RIGHT] = "not root, or a capability is missing",
	[WHY_NOT_ASKED] = "costly: read only for rows that are shown",
	[WHY_SHARED] = "the thread runs several vCPUs",
	[WHY_LOST] = "events were lost: it is too low by these",
	[WHY_NO_SLOW] = "single slow exits are not looked for: --slow, or key x",
	[WHY_UNWATCHED] = "a CPU was not watched for a while: events there are missing",
	[WHY_BLIND] = "of some exits it was not seen when they had no CPU: taken as with one",
	[WHY_NOT_KEPT] = "longer intervals of a recording have it of VMs, not of vCPUs",
	[WHY_NO_LOOK] = "VMs could not be looked for",
	[WHY_NO_SWITCHES] =
		"only counting in the kernel tells when vCPUs in exits had no CPU: --events-by bpf",
};

const char *value_why_text(enum value_why why)
{
	if ((unsigned)why >= WHY_NR || !texts[why])
		return "not known";
	return texts[why];
}
