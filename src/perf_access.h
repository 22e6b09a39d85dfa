// SPDX-License-Identifier: GPL-2.0-only
/* What libperf keeps to itself and a ring with an own tail needs (src/libperf/access.c). */
#ifndef KVMTOP_PERF_ACCESS_H
#define KVMTOP_PERF_ACCESS_H

struct perf_evsel;
struct perf_mmap;

/* Of the first CPU and thread of an opened event; -1 while it is not open. Owned by evsel. */
int perf_access_fd(const struct perf_evsel *evsel);
/* The control page, the data follow; NULL while not mapped. Owned by map. */
void *perf_access_base(const struct perf_mmap *map);

#endif
