// SPDX-License-Identifier: GPL-2.0-only
/* A perf ring of one thread, through libperf (perf_thread.h). */
#include "perf_thread.h"

#include <errno.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "perf_access.h"
#include "perf_rings.h"

struct perf_thread {
	struct perf_evlist *evlist;
	struct perf_evsel *owner; /* the first; belongs to evlist */
	struct perf_cpu_map *cpus; /* any */
	struct perf_thread_map *threads;
	struct ring ring;
	struct ring_merge *merge;
	bool no_lost; /* the kernel is older than PERF_FORMAT_LOST */
	uint64_t lost; /* as last read */
};

/* libperf asks for a printer; what it would print goes to people in our own words. */
static int quiet(enum libperf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static int add_event(struct perf_thread *t, uint64_t id, size_t bytes)
{
	const struct perf_event_attr a = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(a),
		.config = id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.read_format = t->no_lost ? 0 : PERF_FORMAT_LOST,
		.sample_id_all = 1, /* LOST records carry their time */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(bytes / 4),
	};
	struct perf_evsel *e = perf_evsel__new((struct perf_event_attr *)&a);

	if (!e)
		return -ENOMEM;
	perf_evlist__add(t->evlist, e);
	if (!t->owner)
		t->owner = e;
	return 0;
}

static int map_ring(struct perf_thread *t, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_mmap *map;

	errno = 0;
	if (perf_evlist__mmap(t->evlist, (int)(bytes / page)) < 0)
		return errno ? -errno : -ENOMEM;
	map = perf_evlist__next_mmap(t->evlist, NULL, false);
	if (!map || !perf_access_base(map))
		return -ENOMEM;
	ring_init(&t->ring, perf_access_base(map), page, bytes, 0, clock_mono_ns());
	return 0;
}

static int open_all(struct perf_thread *t, pid_t tid, const uint64_t *id, size_t n, size_t bytes)
{
	int rc = 0;

	t->evlist = perf_evlist__new();
	t->cpus = perf_cpu_map__dummy_new();
	t->threads = perf_thread_map__new_dummy();
	t->merge = ring_merge_new();
	if (!t->evlist || !t->cpus || !t->threads || !t->merge)
		return -ENOMEM;
	perf_thread_map__set_pid(t->threads, 0, tid);
	for (size_t i = 0; i < n && !rc; i++)
		rc = add_event(t, id[i], bytes);
	if (rc)
		return rc;
	perf_evlist__set_maps(t->evlist, t->cpus, t->threads);
	rc = perf_evlist__open(t->evlist);
	return rc ? rc : map_ring(t, bytes);
}

static void drop_all(struct perf_thread *t)
{
	perf_rings_evlist_free(t->evlist);
	perf_cpu_map__put(t->cpus);
	perf_thread_map__put(t->threads);
	ring_merge_free(t->merge);
	*t = (struct perf_thread){0};
}

int perf_thread_new(pid_t tid, const uint64_t *id, size_t n, size_t bytes, struct perf_thread **out)
{
	struct perf_thread *t;
	int rc;

	if (!n || n > PERF_THREAD_EVENTS || tid <= 0)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	libperf_init(quiet);
	rc = open_all(t, tid, id, n, bytes);
	if (rc == -EINVAL) {
		drop_all(t);
		t->no_lost = true;
		rc = open_all(t, tid, id, n, bytes);
	}
	if (rc) {
		perf_thread_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void perf_thread_free(struct perf_thread *t)
{
	if (!t)
		return;
	drop_all(t);
	free(t);
}

int perf_thread_fd(const struct perf_thread *t)
{
	return perf_access_fd(t->owner);
}

int perf_thread_drain(struct perf_thread *t, int64_t watermark, ring_batch_fn fn, void *ctx)
{
	struct ring *rings[] = {&t->ring};

	return ring_merge_drain(t->merge, rings, 1, watermark, fn, ctx);
}

/* Only of a ring that was full: it takes a system call an event. */
bool perf_thread_lost(struct perf_thread *t, uint64_t *n)
{
	struct perf_evsel *e;
	uint64_t sum = 0;

	*n = 0;
	if (t->no_lost || !t->ring.was_full)
		return !t->no_lost;
	t->ring.was_full = false;
	perf_evlist__for_each_evsel(t->evlist, e)
	{
		struct perf_counts_values v = {0};

		if (!perf_evsel__read(e, 0, 0, &v))
			sum += v.lost;
	}
	if (sum > t->lost) {
		*n = sum - t->lost;
		t->lost = sum;
	}
	return true;
}
