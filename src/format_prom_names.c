// SPDX-License-Identifier: GPL-2.0-only
/* Names of metrics (format_prom_names.h). */
#include "format_prom_names.h"

#include <stdio.h>
#include <string.h>

enum type { GAUGE, COUNTER };

/* What is called otherwise than by its id, or is another type than its unit says. */
static const struct special {
	enum field_table table;
	const char *id;
	const char *name; /* behind level; NULL: no metric */
	enum type type;
} specials[] = {
	{TABLE_HOST, "ncpu", "cpus", GAUGE},
	{TABLE_HOST, "nvm", "vms", GAUGE},
	{TABLE_HOST, "nvcpu", "vcpus", GAUGE},
	{TABLE_HOST, "lost", NULL, GAUGE}, /* lost_total has them */
	{TABLE_HOST, "lost_total", "lost_events_total", COUNTER},
	{TABLE_HOST, "code_lost", "code_lost_exits_total", COUNTER},
	{TABLE_HOST, "late", "late_events", GAUGE},
	{TABLE_HOST, "unmatched", "unmatched_events", GAUGE},
	{TABLE_HOST, "sampling_hz", "sampling_hertz", GAUGE},
	{TABLE_HOST, "sampling_lost", "sampling_lost_samples", GAUGE},
	{TABLE_VM, "nvcpu", "vcpus", GAUGE},
	{TABLE_VM, "nthread", "threads", GAUGE},
	{TABLE_VM, "p50_ns", "exit_p50_seconds", GAUGE},
	{TABLE_VM, "p99_ns", "exit_p99_seconds", GAUGE},
	{TABLE_VM, "max_ns", "exit_max_seconds", GAUGE},
	{TABLE_VM, "open_ns", "open_exit_seconds", GAUGE},
	{TABLE_VM, "lost", "lost_events", GAUGE},
	{TABLE_VCPU, "cpu", "pcpu", GAUGE},
	{TABLE_VCPU, "p50_ns", "exit_p50_seconds", GAUGE},
	{TABLE_VCPU, "p99_ns", "exit_p99_seconds", GAUGE},
	{TABLE_VCPU, "max_ns", "exit_max_seconds", GAUGE},
	{TABLE_VCPU, "open_ns", "open_exit_seconds", GAUGE},
	{TABLE_VCPU, "lost", "lost_events", GAUGE},
	{TABLE_VCPU, "tsc_changes", "tsc_changes_total", COUNTER},
	{TABLE_VCPU, "pmu_msrs", "pmu_msr_exits_total", COUNTER},
	{TABLE_VCPU, "pmu_refused", "pmu_refused_total", COUNTER},
	{TABLE_EXIT, "count", "exits_total", COUNTER},
	{TABLE_EXIT, "timed", "timed_exits_total", COUNTER},
	{TABLE_EXIT, "time_ns", "exit_seconds_total", COUNTER},
	{TABLE_SYMBOL, "caller_pct", NULL, GAUGE},
	{TABLE_CODE, "count", "exit_code_exits_total", COUNTER},
	{TABLE_WAITED, "time_ns", "waited_by_seconds", GAUGE},
	{TABLE_WAITED, "waited_pct", "waited_by_ratio", GAUGE},
	{TABLE_PMU, "overflows", "pmc_overflows_total", COUNTER},
	{TABLE_CPU, "nvcpu", "vcpus", GAUGE},
	{TABLE_CPU, "npinned", "pinned_vcpus", GAUGE},
	{TABLE_FINDING, "value", NULL, GAUGE}, /* each rule has a unit of its own */
	{TABLE_FINDING, "threshold", NULL, GAUGE},
	{TABLE_FINDING, "for_ns", "seconds", GAUGE},
};

/* What stands in front of the id. level: NULL where rows are of several. */
static const struct {
	const char *level, *part;
} prefixes[TABLE_NR] = {
	[TABLE_HOST] = {"host", ""},	       [TABLE_VM] = {"vm", ""},
	[TABLE_VCPU] = {"vcpu", ""},	       [TABLE_EXIT] = {NULL, "exit_reason_"},
	[TABLE_SYMBOL] = {NULL, "symbol_"},    [TABLE_CODE] = {"vm", "exit_code_"},
	[TABLE_WAITED] = {NULL, "waited_by_"}, [TABLE_SLOW] = {"vm", "slow_"},
	[TABLE_PMU] = {"vcpu", "pmc_"},	       [TABLE_CPU] = {"pcpu", ""},
	[TABLE_THREAD] = {"thread", ""},       [TABLE_TASK] = {"task", ""},
	[TABLE_FINDING] = {"finding", ""},
};

/* How an id's ending changes with the unit. */
static const struct unit {
	enum field_unit unit;
	const char *end, *instead;
	double divisor;
	const char *help;
} units[] = {
	{UNIT_PCT, "pct", "ratio", 100, " / 100"},	 {UNIT_NS, "ns", "seconds", 1e9, " / 10^9"},
	{UNIT_KB, "kb", "bytes", 1.0 / 1024, " x 1024"}, {UNIT_RATE, "per_s", "per_second", 1, ""},
	{UNIT_RATIO, "_s", "_seconds", 1, ""},
};

static const struct special *special_of(enum field_table t, const char *id)
{
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (specials[i].table == t && strcmp(specials[i].id, id) == 0)
			return &specials[i];
	return NULL;
}

static const struct unit *unit_of(enum field_unit unit)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].unit == unit)
			return &units[i];
	return NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* By the id and its unit. */
static void make_name(char *out, size_t size, const char *front, const struct field *f,
		      const struct unit *u, bool counter)
{
	int n = (int)strlen(f->id);
	const char *end = "";

	if (u && ends_with(f->id, u->end)) {
		n -= (int)strlen(u->end);
		end = u->instead;
	}
	snprintf(out, size, "%s%.*s%s%s", front, n, f->id, end, counter ? "_total" : "");
}

bool prom_name(enum field_table t, const struct field *f, const char *level, struct prom_name *out)
{
	const struct special *special = special_of(t, f->id);
	const struct unit *u = unit_of(f->unit);
	char front[40];

	if (f->unit == UNIT_TEXT || (special && !special->name) ||
	    (!special && f->unit == UNIT_NUMBER) || t == TABLE_SLOW)
		return false;
	*out = (struct prom_name){
		.counter = special ? special->type == COUNTER
				   : f->unit == UNIT_COUNT && (f->flags & FIELD_TOTAL),
		.adds = t == TABLE_SYMBOL || t == TABLE_CODE || t == TABLE_WAITED,
		.divisor = u ? u->divisor : 1,
		.unit_help = u ? u->help : "",
	};
	if (prefixes[t].level)
		level = prefixes[t].level;
	if (special) {
		snprintf(out->name, sizeof(out->name), "kvmtop_%s_%s", level, special->name);
		return true;
	}
	snprintf(front, sizeof(front), "kvmtop_%s_%s", level, prefixes[t].part);
	make_name(out->name, sizeof(out->name), front, f, u, out->counter);
	return true;
}
