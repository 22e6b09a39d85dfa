// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts tracepoints for a moment, without a ring: whether this KVM fires kvm_exit at all shows
 * only while guests run, and doctor is asked exactly where `n/a` stands in the columns.
 */
#include "kvm_count.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <time.h>

#include <perf/cpumap.h>
#include <perf/evsel.h>

/* On all online CPUs, of all processes. NULL: not to be had. */
static struct perf_evsel *open_counter(uint64_t id, struct perf_cpu_map *cpus)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(a),
		.config = id,
	};
	struct perf_evsel *e = perf_evsel__new(&a);

	if (e && perf_evsel__open(e, cpus, NULL) < 0) {
		perf_evsel__delete(e);
		return NULL;
	}
	return e;
}

static uint64_t sum(struct perf_evsel *e, int ncpus)
{
	struct perf_counts_values v;
	uint64_t all = 0;

	for (int i = 0; i < ncpus; i++)
		if (perf_evsel__read(e, i, 0, &v) >= 0)
			all += v.val;
	return all;
}

static void drop(struct perf_evsel *e)
{
	if (!e)
		return;
	perf_evsel__close(e);
	perf_evsel__delete(e);
}

int kvm_count(const uint64_t *id, uint64_t *count, size_t n, unsigned ms)
{
	const struct timespec while_counting = {ms / 1000, (long)(ms % 1000) * 1000000};
	struct perf_cpu_map *cpus = perf_cpu_map__new(NULL);
	struct perf_evsel *e[KVM_COUNT_MAX] = {0};
	int rc = cpus && n <= KVM_COUNT_MAX ? 0 : -EINVAL;

	for (size_t i = 0; !rc && i < n; i++)
		if (!(e[i] = open_counter(id[i], cpus)))
			rc = -EACCES;
	if (!rc) {
		nanosleep(&while_counting, NULL);
		for (size_t i = 0; i < n; i++)
			count[i] = sum(e[i], perf_cpu_map__nr(cpus));
	}
	for (size_t i = 0; i < n && i < KVM_COUNT_MAX; i++)
		drop(e[i]);
	perf_cpu_map__put(cpus);
	return rc;
}
