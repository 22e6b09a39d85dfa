// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of a report out of one of kvmtop's own recordings, or a range of one: what its
 * intervals have of exits and accesses, added up.
 */
#ifndef KVMTOP_REPORT_RECORDING_H
#define KVMTOP_REPORT_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report_slots.h"
#include "snapshot.h"
#include "store_tally.h"

struct filter;
struct store_span;

struct recorded_row {
	uint8_t kind, dir;
	bool other;
	uint32_t isa;
	uint64_t key;
	char *name; /* owned, as it was recorded */
	struct tally sum;
	struct store_bounds bounds; /* of the parts' percentiles */
	bool no_heat; /* some part has no histogram */
	uint32_t heat[HEAT_BUCKETS];
};

/* Where CPUs were, as far as it was recorded: of each interval the symbols with most samples. */
struct recorded_symbol {
	uint64_t n;
	uint8_t domain; /* enum ip_domain, DOMAIN_NR of `other` */
	bool other; /* what was no row of an interval */
	char *name, *module; /* owned, as recorded */
};

struct recorded_samples {
	uint64_t all;
	double domain[DOMAIN_NR]; /* how many of them */
	struct recorded_symbol *row;
	size_t n;
	struct report_slots slots; /* while reading */
};

struct report_recording {
	const struct filter
		*filter; /* -p, -M: only these VMs; --vcpu: only these vCPUs; NULL: all */
	unsigned kinds; /* KIND_BIT */
	struct recorded_row *row;
	size_t n;
	struct report_slots slots;
	int64_t first, last; /* ns since 1970: where the first interval begins and the last ends */
	int64_t length; /* ns, all intervals together */
	int64_t gap; /* ns between intervals in which nobody recorded, ngaps times */
	int64_t known[KIND_NR]; /* ns in which that kind was collected */
	char *why, *mend; /* owned: why no events at all were had when they were not; NULL: they
			     could */
	unsigned costly; /* KIND_BIT: given up to keep within a limit … */
	char *limit; /* owned: … in the recorder's words */
	uint64_t intervals, damaged, skipped, lost, ngaps;
	int64_t end; /* of the interval before */
	bool matched; /* some VM, or vCPU, that was asked for was there */
	uint64_t userexits; /* whether asked for or not */
	bool entries; /* exits have times */
	struct recorded_samples samples;
};

/*
 * Reads the intervals of an open span. Set filter and kinds, the rest zero. 0, -ENOENT: there are
 * none, -EBADMSG: none could be read, or another -errno. report_recording_free() in any case.
 */
int report_recording_read(struct report_recording *r, const struct store_span *span);
/* For report_recording_read() and tests: one interval. 0 or -ENOMEM. */
int report_recording_add(struct report_recording *r, const struct snapshot *s);
/* report_recorded_symbols.c: of the VMs that are asked for, else of all together. 0 or -ENOMEM. */
int recorded_samples_add(struct recorded_samples *r, const struct snapshot *s,
			 const struct filter *filter);
void recorded_samples_sort(struct recorded_samples *r);
void recorded_samples_free(struct recorded_samples *r);
void report_recording_free(struct report_recording *r);

#endif
