// SPDX-License-Identifier: GPL-2.0-only
/* How a report (report.h) is written: text, CSV, JSON, and as perf 6.1 writes it. */
#ifndef KVMTOP_REPORT_OUT_H
#define KVMTOP_REPORT_OUT_H

#include "report.h"

struct out;
struct perfdata_sum;
struct report_recording;

/* What rows can be ordered by; worst (largest) first. */
enum report_sort {
	SORT_SAMPLE, /* timed pairs, else events */
	SORT_TIME, /* the sum of their times */
	SORT_MAX,
	SORT_MIN,
	SORT_MEAN,
	SORT_STDERR,
	SORT_P50,
	SORT_P99,
	SORT_P999,
	SORT_KEY, /* by name, a first */
};

/* By the words of perf ("sample", "max_t") or the field's id ("timed", "max_ns"). False: none. */
bool report_sort_find(const char *word, enum report_sort *out);

struct report_view {
	const struct report *r; /* a file of perf's, or … */
	const struct perfdata_sum *sum;
	const struct report_recording *rec; /* … a recording of kvmtop's; NULL: none */
	const char *file; /* as it was named */
	const char *of; /* "pid(s) 23,42", NULL: of all VMs */
	enum report_sort sort;
	bool reverse;
};

/* A table a kind. 0, -ENOMEM; errors of writing stay in `o`. */
int report_put_text(const struct report_view *v, struct out *o);
int report_put_csv(const struct report_view *v, struct out *o);
int report_put_json(const struct report_view *v, struct out *o);
/* Each difference of the tables to perf's, after them. */
int report_put_differences(const struct report_view *v, struct out *o);

/*
 * To the byte what `perf kvm stat report` of Linux 6.1 writes of one kind on a machine like that of
 * the recording, whose CPU is cpuid (NULL: not said). -ENOTSUP: perf does not know this CPU, or no
 * such kind there, and writes no table.
 */
int report_put_as_perf(const struct report_view *v, const char *cpuid, enum kvm_kind kind,
		       struct out *o);
/* The name in perf's table: perf 6.1 does not know all. Returns buf. */
const char *report_perf_name(const struct report *r, const struct report_key *k, char *buf,
			     size_t size);

/* ---- between report_out.c, report_lines.c, report_compat.c, report_samples_out.c ---- */

#define REPORT_NAME 128 /* room for a row's name */

/* A row as it is shown. */
struct report_line {
	char name[REPORT_NAME];
	uint64_t count, timed; /* the rest is over timed */
	uint64_t time_ns, min_ns, max_ns, p50, p99, p999;
	double avg_ns, stderr_pct;
	bool no_pctl; /* no histogram was kept: the percentiles are not known */
	double by; /* what the order is by */
};

/* Those of one kind. */
struct report_lines {
	struct report_line *line;
	size_t n;
	size_t before; /* of the kinds before it */
	uint64_t count, timed, time_ns; /* sums */
};

typedef int (*report_put_kind_fn)(const struct report_view *v, enum kvm_kind kind,
				  const struct report_lines *l, struct out *o);
/* Calls put for each kind that is asked for, with its lines in order. 0 or -errno. */
int report_each_kind(const struct report_view *v, report_put_kind_fn put, struct out *o);

const char *report_name(const struct report *r, const struct report_key *k, char *buf, size_t size);
void report_json_text(struct out *o, const char *text); /* in quotes; 4 KiB at most */
const char *report_kind_title(enum kvm_kind kind); /* "vmexit" */

#endif
