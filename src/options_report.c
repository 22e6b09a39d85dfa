// SPDX-License-Identifier: GPL-2.0-only
/* The options of report (options_priv.h), and what can be judged of them together. */
#include <string.h>

#include "commands.h"
#include "options_priv.h"
#include "report_out.h"

int options_parse_input(struct options *o, const char *arg, char *err, size_t size)
{
	if (!*arg)
		return options_bad(err, size,
				   "--input '': no file: give what perf kvm stat record wrote, or "
				   "- for standard input");
	o->input = arg;
	return 0;
}

int options_parse_perf_compat(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->perf_compat = true;
	return 0;
}

int options_parse_explain_perf(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->explain_perf = true;
	return 0;
}

static int check_compat(const struct options *o, char *err, size_t size)
{
	if (o->explain_perf || o->format != FORMAT_TEXT || o->reverse)
		return options_bad(err, size,
				   "--perf-compat: perf has text in its own order only: leave "
				   "--format, --reverse and --explain-perf away");
	if (o->kinds & (o->kinds - 1))
		return options_bad(err, size,
				   "--perf-compat: perf reports one kind: give --event vmexit, "
				   "mmio, ioport or msr");
	if (o->kinds & (KIND_BIT(KIND_HYPERCALL) | KIND_BIT(KIND_USEREXIT)))
		return options_bad(err, size,
				   "--perf-compat: perf has no such kind: give --event vmexit, "
				   "mmio, ioport or msr");
	if (o->sort && strcmp(o->sort, "sample") != 0 && strcmp(o->sort, "time") != 0)
		return options_bad(err, size,
				   "--perf-compat: perf 6.1 orders by sample or time only");
	return 0;
}

int options_check_report(struct options *o, char *err, size_t size)
{
	enum report_sort sort;
	char buf[40];

	if (o->kinds == KIND_ALL)
		o->kinds = REPORT_KINDS;
	if (o->kinds & ~REPORT_KINDS)
		return options_bad(err, size,
				   "--event halt: not in a report: give some of vmexit, mmio, "
				   "ioport, msr, hypercall, userexit, or all");
	if (!o->kinds)
		o->kinds = KIND_BIT(KIND_VMEXIT);
	if (o->sort && !report_sort_find(o->sort, &sort))
		return options_bad(err, size,
				   "-k '%s': not a column of a report: give sample, time, max_t, "
				   "min_t, mean_t, stderr, p50, p99, p999 or key",
				   options_shown(o->sort, buf, sizeof(buf)));
	if ((o->perf_compat || o->explain_perf) && o->vcpus && strchr(o->vcpus, ','))
		return options_bad(err, size, "--vcpu: perf takes one vCPU: give one");
	return o->perf_compat ? check_compat(o, err, size) : 0;
}
