// SPDX-License-Identifier: GPL-2.0-only
/* Fields of exit rows: one row a kind and key, of a VM or of one of its vCPUs. */
#include "field_tables.h"

static const char *const kind_names[KIND_NR] = {
	[KIND_VMEXIT] = "vmexit", [KIND_MMIO] = "mmio",		  [KIND_IOPORT] = "ioport",
	[KIND_MSR] = "msr",	  [KIND_HYPERCALL] = "hypercall", [KIND_USEREXIT] = "userexit",
	[KIND_HALT] = "halt",
};

const char *field_kind_name(enum kvm_kind kind)
{
	return (unsigned)kind < KIND_NR ? kind_names[kind] : "";
}

static const struct tally *tally_of(const void *row, bool total)
{
	const struct snap_exit *x = row;

	return total ? &x->total : &x->now;
}

static struct cell exit_vm(const struct snapshot *s, const void *row, bool total)
{
	uint32_t vm = ((const struct snap_exit *)row)->vm;

	(void)total;
	return (struct cell){.text = vm == SNAP_NO_VM ? "(all)" : field_vm_name(s, vm)};
}

static struct cell exit_vcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.v = field_vcpu_number(s, ((const struct snap_exit *)row)->vcpu)};
}

static struct cell exit_kind(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = field_kind_name(((const struct snap_exit *)row)->kind)};
}

static struct cell exit_idle(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = ((const struct snap_exit *)row)->idle ? "idle" : ""};
}

GET_TEXT(exit_name, struct snap_exit, name)
GET_TEXT(exit_note, struct snap_exit, note)

static bool not_kept(const void *row, bool total)
{
	return tally_of(row, total)->low == WHY_NOT_KEPT;
}

/* A figure over completed pairs: not to be had where nothing can be timed, pending without one. */
static struct cell timed_cell(const void *row, bool total, double v)
{
	if (!((const struct snap_exit *)row)->has_time)
		return (struct cell){.v = value_na(WHY_NO_ENTRY_EXIT)};
	if (not_kept(row, total))
		return (struct cell){.v = value_na(WHY_NOT_KEPT)};
	if (!tally_of(row, total)->timed)
		return (struct cell){.v = value_pending()};
	return (struct cell){.v = value_known(v)};
}

/* A count of completed pairs or their sum: 0 is a figure here. */
static struct cell sum_cell(const void *row, bool total, double v)
{
	if (!((const struct snap_exit *)row)->has_time)
		return (struct cell){.v = value_na(WHY_NO_ENTRY_EXIT)};
	if (not_kept(row, total))
		return (struct cell){.v = value_na(WHY_NOT_KEPT)};
	return (struct cell){.v = value_known(v)};
}

static struct cell exit_count(const struct snapshot *s, const void *row, bool total)
{
	const struct tally *t = tally_of(row, total);
	double n = (double)t->count;

	(void)s;
	if (not_kept(row, total))
		return (struct cell){.v = value_na(WHY_NOT_KEPT)};
	return (struct cell){.v = t->low ? value_partial(n, t->low) : value_known(n)};
}

static struct cell exit_rate(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	return (struct cell){.v = tally_of(row, total)->rate};
}

static struct cell exit_count_pct(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	return (struct cell){.v = tally_of(row, total)->count_pct};
}

static struct cell exit_time_pct(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	if (!((const struct snap_exit *)row)->has_time)
		return (struct cell){.v = value_na(WHY_NO_ENTRY_EXIT)};
	return (struct cell){.v = tally_of(row, total)->time_pct};
}

static struct cell exit_timed(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	return sum_cell(row, total, (double)tally_of(row, total)->timed);
}

static struct cell exit_time(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	return sum_cell(row, total, (double)tally_of(row, total)->time_ns);
}

#define GET_TIMED(fn, member)                                                                      \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		(void)s;                                                                           \
		return timed_cell(row, total, (double)tally_of(row, total)->member);               \
	}

GET_TIMED(exit_min, min_ns)
GET_TIMED(exit_max, max_ns)
GET_TIMED(exit_avg, avg_ns)
GET_TIMED(exit_stderr, stderr_pct)

static struct cell percentile_cell(const void *row, bool total, double v)
{
	struct cell c = timed_cell(row, total, v);

	if (!value_has(c.v) || tally_of(row, total)->pctl == PCTL_ALL)
		return c;
	c.v = tally_of(row, total)->pctl == PCTL_PART ? value_partial(v, WHY_NOT_ASKED)
						      : value_na(WHY_NOT_ASKED);
	return c;
}

#define GET_PERCENTILE(fn, member)                                                                 \
	static struct cell fn(const struct snapshot *s, const void *row, bool total)               \
	{                                                                                          \
		(void)s;                                                                           \
		return percentile_cell(row, total, (double)tally_of(row, total)->member);          \
	}

GET_PERCENTILE(exit_p50, p50_ns)
GET_PERCENTILE(exit_p99, p99_ns)
GET_PERCENTILE(exit_p999, p999_ns)

/* clang-format off */
static const struct field exit_fields[] = {
	{"vm", "VM", "name of the VM; (all): all VMs of the host together", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, exit_vm},
	{"vcpu", "vCPU", "the VMM's number of the vCPU; empty for the whole VM or host", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0,
	 exit_vcpu},
	{"kind", "KIND", "vmexit, mmio, ioport, msr, hypercall, userexit or halt", UNIT_TEXT, 9, FIELD_SORT_UP, 0, 0,
	 exit_kind},
	{"key", "REASON", "the kernel's name of the exit; address, port or MSR with its direction; other: what did not fit",
	 UNIT_TEXT, 20, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, exit_name},
	{"note", "WHAT", "what the address, port or MSR is, where that is known", UNIT_TEXT, 18, FIELD_SORT_UP | FIELD_PROSE, 0, 0,
	 exit_note},
	{"idle", "IDLE", "idle: the guest waits in it, so it is left out of %EXIT, TOP EXIT and p99", UNIT_TEXT, 4,
	 FIELD_SORT_UP, 0, 0, exit_idle},
	{"count", "COUNT", "events that began in the interval (with totals: since the start)", UNIT_COUNT, 7,
	 FIELD_TOTAL, 0, 0, exit_count},
	{"count_per_s", "RATE/s", "COUNT / interval", UNIT_RATE, 6, FIELD_TOTAL, 0, 0, exit_rate},
	{"count_pct", "COUNT%", "share of COUNT among the rows of the same kind", UNIT_PCT, 6, FIELD_TOTAL, 0, 0,
	 exit_count_pct},
	{"timed", "TIMED", "completed pairs of begin and end: times are over these", UNIT_COUNT, 7, FIELD_TOTAL, 0, 0,
	 exit_timed},
	{"time_ns", "TIME", "sum of the times of the completed pairs", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_time},
	{"time_pct", "TIME%", "share of TIME among the rows of the same kind", UNIT_PCT, 6, FIELD_TOTAL, 0, 0,
	 exit_time_pct},
	{"min_ns", "MIN", "the shortest", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_min},
	{"avg_ns", "AVG", "the mean: TIME / TIMED", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_avg},
	{"stderr_pct", "+-%", "relative standard error of the mean: 100 x sqrt(M2 / (n - 1) / n) / mean", UNIT_PCT, 5,
	 FIELD_TOTAL, 0, 0, exit_stderr},
	{"p50_ns", "p50", "half of them took no longer", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_p50},
	{"p99_ns", "p99", "99% of them took no longer", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_p99},
	{"p999_ns", "p99.9", "99.9% of them took no longer", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_p999},
	{"max_ns", "MAX", "the longest", UNIT_NS, 6, FIELD_TOTAL, 0, 0, exit_max},
};
/* clang-format on */

const struct field_list field_list_exit = FIELD_LIST("exit", exit_fields, struct snap_exit);
