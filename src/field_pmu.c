// SPDX-License-Identifier: GPL-2.0-only
/* Fields of guests' PMUs: one row a counter of a vCPU. */
#include "field_tables.h"

#define P struct snap_pmc

static struct cell pmc_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const P *)row)->vm)};
}

static struct cell pmc_vcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.v = field_vcpu_number(s, ((const P *)row)->vcpu)};
}

/* What a guest did not select is neither on nor off. */
static struct cell pmc_enabled(const struct snapshot *s, const void *row, bool total)
{
	const P *x = row;

	(void)s;
	(void)total;
	if (x->enabled)
		return (struct cell){.text = "on", .mark = x->wrong ? '!' : 0};
	return (struct cell){.text = x->select && *x->select ? "off" : ""};
}

static struct cell pmc_source(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = ((const P *)row)->inferred ? "inferred" : "debugfs"};
}

GET_TEXT(pmc_counter, P, counter)
GET_TEXT(pmc_event, P, event)
GET_TEXT(pmc_mode, P, mode)
GET_TEXT(pmc_select, P, select)
GET_TEXT(pmc_host_event, P, host_event)
GET_TEXT(pmc_note, P, note)
GET_VALUE(pmc_value, P, value)
GET_VALUE(pmc_rate, P, rate)
GET_VALUE(pmc_running, P, running)
GET_VALUE(pmc_overflows, P, overflows)
GET_VALUE(pmc_accesses, P, accesses)

/* clang-format off */
static const struct field pmu_fields[] = {
	{"vm", "VM", "name of the VM", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, pmc_vm},
	{"vcpu", "vCPU", "the VMM's number of the vCPU", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, pmc_vcpu},
	{"counter", "CNT", "the counter: gp0, gp1 and so on; fixed0 and so on for the fixed-function ones", UNIT_TEXT, 7, FIELD_SORT_UP, 0, 0,
	 pmc_counter},
	{"event", "EVENT", "what it counts, by the architectural and generic events' names; else r, umask and event as perf writes them; empty: nothing is selected",
	 UNIT_TEXT, 18, FIELD_SORT_UP, 0, 0, pmc_event},
	{"mode", "MODE", "when it counts: user, kernel; int: an overflow interrupts; edge, cmask, inv; guest-only, host-only (AMD)", UNIT_TEXT, 15,
	 FIELD_SORT_UP | FIELD_PROSE, 0, 0, pmc_mode},
	{"select", "SELECT", "the event select register as the guest wrote it; of a fixed counter its four bits of fixed_ctr_ctrl", UNIT_TEXT, 12,
	 FIELD_SORT_UP, 0, 0, pmc_select},
	{"enabled", "ON", "on: enabled by its own bits and the global ones (!: it does not count all the same, or not all the time); off", UNIT_TEXT, 3,
	 FIELD_SORT_UP, 0, 0, pmc_enabled},
	{"value", "VALUE", "what RDPMC gives", UNIT_COUNT, 8, 0, 0, 0, pmc_value},
	{"events_per_s", "EVENT/s", "events a second since the reading before; not known where it was set or overflowed meanwhile", UNIT_RATE, 8, 0, 0, 0,
	 pmc_rate},
	{"overflows", "OVERFL", "overflows since the vCPU was made", UNIT_COUNT, 7, 0, 0, 0, pmc_overflows},
	{"host_event", "HOST", "the host's perf event behind it: active, inactive (its thread is not on a CPU), off, error (the host uses the counter), gone, none; host: it counts what the host does with the vCPU",
	 UNIT_TEXT, 8, FIELD_SORT_UP, 0, 0, pmc_host_event},
	{"running_pct", "%RUN", "the time for which that event was on one of the CPU's counters: less than 100 where several share it", UNIT_PCT, 5, 0, 0, 0,
	 pmc_running},
	{"msr_per_s", "MSR/s", "the guest's accesses to its registers a second, an exit each", UNIT_RATE, 6, 0, 0, 0, pmc_accesses},
	{"source", "SOURCE", "debugfs (a kernel with our patches) or inferred (from what the guest wrote since kvmtop looks)", UNIT_TEXT, 8, FIELD_SORT_UP, 0,
	 0, pmc_source},
	{"note", "NOTE", "why it does not count, or counts less than the guest believes", UNIT_TEXT, 40, FIELD_SORT_UP | FIELD_PROSE, 0, 0, pmc_note},
};
/* clang-format on */

const struct field_list field_list_pmu = FIELD_LIST("pmu", pmu_fields, P);
