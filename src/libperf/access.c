// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two accessors that libperf does not have: the descriptor of an opened event and the
 * memory of a mapped ring. Compiled by scripts/libperf.sh against the private headers of
 * the very tree that libperf is built from, and put into its archive, so that the
 * structs cannot differ.
 */
#include <linux/list.h>
#include <internal/evsel.h>
#include <internal/mmap.h>
#include <internal/xyarray.h>

#include "../perf_access.h"

int perf_access_fd(const struct perf_evsel *evsel)
{
	int *fd;

	if (!evsel->fd)
		return -1;
	fd = (int *)xyarray__entry(evsel->fd, 0, 0);
	return fd ? *fd : -1;
}

void *perf_access_base(const struct perf_mmap *map)
{
	return map->base;
}
