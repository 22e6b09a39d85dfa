// SPDX-License-Identifier: GPL-2.0-only
/* Fields of who had the CPU while vCPUs waited: one row a VM or task that had it. */
#include "field_tables.h"

#define W struct snap_waited

static const char *const kinds[] = {
	[WAITED_VM] = "vm",	  [WAITED_TASK] = "task",	    [WAITED_IDLE] = "idle",
	[WAITED_OTHER] = "other", [WAITED_UNKNOWN] = "unexplained",
};

static struct cell waited_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const W *)row)->vm)};
}

static struct cell waited_vcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.v = field_vcpu_number(s, ((const W *)row)->vcpu)};
}

const char *field_waited_kind(enum waited_kind kind)
{
	return (unsigned)kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : "";
}

static struct cell waited_kind(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = field_waited_kind((enum waited_kind)((const W *)row)->kind)};
}

GET_TEXT(waited_name, W, name)
GET_COUNT(waited_ns, W, ns)
GET_VALUE(waited_share, W, share)
GET_VALUE(waited_pct, W, pct)

/* clang-format off */
static const struct field waited_fields[] = {
	{"vm", "VM", "name of the VM whose vCPUs waited", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, waited_vm},
	{"vcpu", "vCPU", "the VMM's number of the vCPU that waited; empty for the whole VM", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0,
	 waited_vcpu},
	{"by", "HAD THE CPU", "the VM (its own or another) or task that had the CPU; (idle): nobody, its own quota held it back or the CPU was on its way out of idling; while its own quota holds it back (%THROT), whoever runs stands here; other: what did not fit; unexplained: run delay of the kernel that is in no other row",
	 UNIT_TEXT, 20, FIELD_SORT_UP | FIELD_UNTRUSTED | FIELD_PROSE, 0, 0, waited_name},
	{"by_kind", "KIND", "what that is: vm, task, idle, other or unexplained", UNIT_TEXT, 11, FIELD_SORT_UP, 0, 0, waited_kind},
	{"time_ns", "TIME", "how long it had the CPU in the interval while they waited for it", UNIT_NS, 7, 0, 0, 0, waited_ns},
	{"share_pct", "SHARE", "its share of all that they waited; the rows of a VM add up to 100", UNIT_PCT, 6, 0, 0, 0, waited_share},
	{"waited_pct", "%WAITED", "100 x that time / interval; of a VM the mean over its vCPUs", UNIT_PCT, 7, 0, 0, 0, waited_pct},
};
/* clang-format on */

const struct field_list field_list_waited = FIELD_LIST("waited", waited_fields, W);
