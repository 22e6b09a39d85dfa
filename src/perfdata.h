// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a perf.data file: the events it was recorded with, their formats, and its records in time
 * order.
 *
 * Works on the file's bytes in memory, all of which are untrusted: nothing is read beyond them.
 * Files as `perf record` writes them to a disk on this machine's byte order; not its pipe mode, and
 * not compressed ones.
 */
#ifndef KVMTOP_PERFDATA_H
#define KVMTOP_PERFDATA_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfdata;

/*
 * Takes len bytes, which must outlive it. -EBADMSG: no perf.data, or a broken one; -ENOTSUP: pipe
 * mode, the other byte order, or compressed; -ENOMEM. *out is freed with perfdata_free().
 */
int perfdata_parse(const void *bytes, size_t len, struct perfdata **out);
/* Reads the file into memory of its own. Also -errno of open(2) and read(2). */
int perfdata_open(int dir_fd, const char *path, struct perfdata **out);
void perfdata_free(struct perfdata *p);

/* How many events it was recorded with, and their attributes (as far as this kernel's go). */
size_t perfdata_events(const struct perfdata *p);
const struct perf_event_attr *perfdata_attr(const struct perfdata *p, size_t event);

/*
 * Calls fn for each event format (the text of tracefs' format file, not terminated) that came
 * along, until it returns non-zero; returns that, or 0. A recording that was cut off has none.
 */
typedef int (*perfdata_format_fn)(void *ctx, const char *system, const char *text, size_t len);
int perfdata_formats(const struct perfdata *p, perfdata_format_fn fn, void *ctx);

struct perfdata_record {
	const uint8_t *bytes; /* the whole record, `size` of them; not aligned */
	const uint8_t *raw; /* a tracepoint's data, raw_len bytes; NULL none */
	int64_t time; /* ns, of the recording's clock; 0: it has none */
	uint64_t ip;
	uint32_t type; /* PERF_RECORD_* of the kernel's kind only */
	uint32_t raw_len;
	uint32_t event; /* index for perfdata_attr() */
	uint16_t misc, size;
	int32_t pid, tid, cpu; /* -1: not recorded */
};

/*
 * All records in time order, those of one time as they stand in the file; until fn returns
 * non-zero. Returns that, 0 or -ENOMEM. What makes no sense is left out and counted.
 */
typedef int (*perfdata_record_fn)(void *ctx, const struct perfdata_record *r);
int perfdata_read(struct perfdata *p, perfdata_record_fn fn, void *ctx);
/* Records that were left out by the last perfdata_read(), bytes at the end that are none. */
uint64_t perfdata_broken(const struct perfdata *p);

#endif
