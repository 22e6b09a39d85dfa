// SPDX-License-Identifier: GPL-2.0-only
/* The report of `kvmtop doctor`: what the host is, and the state of each source. */
#ifndef KVMTOP_FORMAT_DOCTOR_H
#define KVMTOP_FORMAT_DOCTOR_H

#include "collector.h"
#include "out.h"

struct doctor_fact {
	const char *id; /* "perf_event_paranoid": as JSON names it */
	char value[200]; /* "" not known */
};

struct doctor_line {
	const char *collector;
	struct probe probe;
};

struct doctor_report {
	struct doctor_fact fact[24];
	size_t nfacts;
	struct doctor_line line[64];
	size_t nlines;
};

void format_doctor_text(struct out *o, const struct doctor_report *r);
int format_doctor_json(struct out *o, const struct doctor_report *r); /* 0 or -ENOMEM */

#endif
