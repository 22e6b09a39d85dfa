// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where CPUs were in a recording of `perf kvm record` (cycles, cpu-clock): by domain, and by symbol
 * of the guests' kernels as far as there are files of them.
 */
#ifndef KVMTOP_REPORT_SAMPLES_H
#define KVMTOP_REPORT_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report_host.h"
#include "sample.h"

struct guest_files;
struct out;
struct perfdata;
struct recorded_samples;
struct perfdata_record;
struct report_query;
struct symbols;
struct sysroot;

/* One address of one process, then one row. */
struct report_sample {
	uint64_t ip; /* of a row: the page of what has no name, else 0 */
	uint64_t n;
	int32_t pid;
	uint8_t domain; /* enum ip_domain */
	bool idle; /* the idle task */
	uint16_t slice;
	const char *name, *module; /* NULL: none */
};

struct report_samples {
	const struct report_query *q;
	/* For a comparison: rows are of one process and one of `slices` slices of the time from
	 * slice_from on. 0: of all. */
	int64_t slice_from, slice_ns;
	unsigned slices;
	struct report_sample *row; /* sorted once named, most samples first */
	size_t n, room;
	uint32_t *slot; /* open addressing while reading: index + 1 */
	size_t nslots;
	uint64_t domain[DOMAIN_NR], all;
	struct symbols *symbols; /* owns the names */
	char why[512]; /* why a guest's addresses have none, "" */
	struct report_host host;
	char host_why[512]; /* the same of the host's kernel */
};

/* Is there an event that samples addresses? */
bool report_samples_in(const struct perfdata *p);
/* s: zero but for slices. 0 or -errno; report_samples_free() in any case. */
int report_samples_read(struct report_samples *s, const struct report_query *q, struct perfdata *p);
/* Which domain a sample is of. False: of none. */
bool report_samples_domain(const struct perfdata_record *r, uint8_t *domain);
/* What a row is called, unescaped. Returns buf. */
const char *report_samples_row_name(const struct report_sample *r, char *buf, size_t size);
/*
 * Names the addresses of guests' kernels, and but for a comparison of the host's where it is this
 * machine's, as p says; waits for the files, 20 s at most.
 */
int report_samples_name(struct report_samples *s, const struct perfdata *p,
			const struct sysroot *root, const struct guest_files *files);
void report_samples_put_text(const struct report_samples *s, struct out *o);
void report_samples_put_csv(const struct report_samples *s, struct out *o);
void report_samples_put_json(const struct report_samples *s, const char *file, struct out *o);
/* The same of a recording of kvmtop's own: the table as text; members of its JSON object. */
void report_samples_put_recorded(const struct recorded_samples *s, struct out *o);
void report_samples_put_members(const struct recorded_samples *s, struct out *o);
void report_samples_free(struct report_samples *s);

#endif
