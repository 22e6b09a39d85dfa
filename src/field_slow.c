// SPDX-License-Identifier: GPL-2.0-only
/* The figures of single slow exits. */
#include "field_tables.h"

#define S struct snap_slow

static struct cell slow_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const S *)row)->vm)};
}

static struct cell slow_vcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.v = field_vcpu_number(s, ((const S *)row)->vcpu)};
}

static struct cell slow_domain(const struct snapshot *s, const void *row, bool total)
{
	const S *x = row;

	(void)s;
	(void)total;
	return (struct cell){.text = x->rip && *x->rip ? field_domain_name(x->key.domain) : ""};
}

GET_TEXT(slow_time, S, time)
GET_TEXT(slow_at, S, at)
GET_COUNT(slow_tid, S, tid)
GET_TEXT(slow_exit, S, exit)
GET_COUNT(slow_ns, S, ns)
GET_TEXT(slow_user, S, user)
GET_VALUE(slow_user_ns, S, user_ns)
GET_TEXT(slow_rip, S, rip)
GET_TEXT(slow_name, S, name)
GET_TEXT(slow_module, S, module)
GET_TEXT(slow_why, S, why)

/* clang-format off */
static const struct field slow_fields[] = {
	{"ended", "ENDED", "when the exit ended, to the microsecond", UNIT_TEXT, 32, 0, 0, 0, slow_time},
	{"at", "AT", "the same: the time of day", UNIT_TEXT, 12, 0, 0, 0, slow_at},
	{"vm", "VM", "name of the VM", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, slow_vm},
	{"vcpu", "vCPU", "the VMM's number of the vCPU", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, slow_vcpu},
	{"tid", "TID", "the vCPU's thread", UNIT_NUMBER, 7, FIELD_SORT_UP, 0, 0, slow_tid},
	{"key", "EXIT", "the kernel's name of the exit", UNIT_TEXT, 18, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0,
	 slow_exit},
	{"took_ns", "TOOK", "time from exit to entry: longer than --slow says; idle exits are left out", UNIT_NS, 6, 0, 0, 0,
	 slow_ns},
	{"user_exit", "VMM DID", "what the VMM was asked for meanwhile, the last time if several; empty: it was not asked, the kernel was slow",
	 UNIT_TEXT, 16, FIELD_SORT_UP | FIELD_PROSE, 0, 0, slow_user},
	{"user_ns", "IN VMM", "of TOOK: from then to the entry", UNIT_NS, 6, 0, 0, 0, slow_user_ns},
	{"symbol", "SYMBOL", "the guest's function that made the exit; where it has no name, where it is by page", UNIT_TEXT, 26,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, slow_name},
	{"module", "MODULE", "the guest's module that it is in, empty for its kernel itself", UNIT_TEXT, 14,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, slow_module},
	{"domain", "DOMAIN", "guest-kernel or guest-user", UNIT_TEXT, 13, FIELD_SORT_UP, 0, 0, slow_domain},
	{"rip", "RIP", "the guest's instruction pointer at the exit", UNIT_TEXT, 18, FIELD_SORT_UP, 0, 0, slow_rip},
	{"reason", "REASON", "why it has no name", UNIT_TEXT, 30, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, slow_why},
};
/* clang-format on */

const struct field_list field_list_slow = FIELD_LIST("slow", slow_fields, S);
