// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opening and closing of rings and events through libperf.
 */
#include <errno.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "perf_access.h"
#include "perf_alive.h"
#include "perf_rings.h"

#define FDS_KEPT 16

struct cpu_event {
	struct perf_evsel *evsel; /* NULL: not open here */
	uint64_t lost; /* as last read */
};

struct cpu_ring {
	int cpu;
	int64_t gone; /* when it was seen offline; 0: it is online */
	struct perf_cpu_map *map; /* this CPU alone */
	struct perf_evlist *evlist;
	struct perf_evsel *owner; /* the dummy; belongs to evlist */
	struct ring ring;
	struct perf_alive alive;
	struct cpu_event event[RING_EVENTS];
};

struct perf_rings {
	int epfd;
	size_t bytes, page;
	bool late_wakeups;
	bool halved; /* bytes is less than what was asked for */
	bool no_lost; /* the kernel is older than PERF_FORMAT_LOST */
	bool ips; /* samples of an address */
	bool used[RING_EVENTS]; /* slots that are open */
	struct perf_event_attr attr[RING_EVENTS]; /* theirs, as asked for */
	uint64_t unread[RING_EVENTS]; /* losses of events that are closed by now */
	struct cpu_ring **cpu; /* sorted by CPU; a gone one may stand beside its successor */
	struct ring **ring; /* the same, as ring_merge wants them */
	size_t n;
	struct ring_merge *merge;
};

/* libperf asks for a printer; what it would print goes to people in our own words. */
static int quiet(enum libperf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static size_t default_bytes(unsigned ncpus)
{
	size_t bytes = RING_MAX;

	while (bytes > RING_MIN && (uint64_t)bytes * (ncpus ? ncpus : 1) > RINGS_ALL)
		bytes /= 2;
	return bytes;
}

int perf_rings_new(size_t bytes, unsigned ncpus, bool late_wakeups, struct perf_rings **out)
{
	struct perf_rings *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->bytes = bytes ? bytes : default_bytes(ncpus);
	r->late_wakeups = late_wakeups;
	r->merge = ring_merge_new();
	r->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (!r->merge || r->epfd < 0) {
		int err = r->merge ? -errno : -ENOMEM;

		perf_rings_free(r);
		return err;
	}
	if (r->bytes < r->page || r->bytes & (r->bytes - 1)) {
		perf_rings_free(r);
		return -EINVAL;
	}
	libperf_init(quiet);
	*out = r;
	return 0;
}

int perf_rings_fd(const struct perf_rings *r)
{
	return r->epfd;
}

void perf_rings_woken(struct perf_rings *r)
{
	struct epoll_event ev[64];

	/* Asking is taking: a ring's poll flag is cleared by whoever reads it. */
	while (epoll_wait(r->epfd, ev, 64, 0) == 64)
		;
}

void perf_rings_sample_ips(struct perf_rings *r)
{
	r->ips = true;
	ring_merge_apart(r->merge);
}

size_t perf_rings_bytes(const struct perf_rings *r)
{
	return r->bytes;
}

bool perf_rings_halved(const struct perf_rings *r)
{
	return r->halved;
}

unsigned perf_rings_cpus(const struct perf_rings *r)
{
	return (unsigned)r->n;
}

bool perf_rings_has_lost(const struct perf_rings *r)
{
	return !r->no_lost;
}

/* ---- one ring ---- */

/* What all events of one ring must have in common, beside what is asked for. */
static struct perf_event_attr full_attr(const struct perf_rings *r,
					const struct perf_event_attr *asked)
{
	struct perf_event_attr a = *asked;

	a.size = sizeof(a);
	a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	if (r->ips)
		a.sample_type |= PERF_SAMPLE_IP | (asked->sample_type & PERF_SAMPLE_CALLCHAIN);
	else
		a.sample_type |= PERF_SAMPLE_RAW;
	a.sample_id_all = 1; /* LOST records carry their time */
	a.use_clockid = 1;
	a.clockid = CLOCK_MONOTONIC;
	a.watermark = 1;
	/* Samples come at a known rate: half a ring of them is some ticks. */
	a.wakeup_watermark = (uint32_t)(r->late_wakeups ? r->bytes : r->bytes / (r->ips ? 2 : 4));
	return a;
}

void perf_rings_evlist_free(struct perf_evlist *evlist)
{
	struct perf_evsel *e;

	if (!evlist)
		return;
	perf_evlist__munmap(evlist);
	perf_evlist__close(evlist);
	perf_evlist__for_each_evsel(evlist, e)
	{
		perf_cpu_map__put(perf_evsel__cpus(e));
		perf_thread_map__put(perf_evsel__threads(e));
	}
	perf_evlist__delete(evlist);
}

static int evlist_open(const struct perf_rings *r, struct cpu_ring *c)
{
	const struct perf_event_attr dummy = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED, /* perf_alive.h */
	};
	struct perf_event_attr a = full_attr(r, &dummy);
	struct perf_thread_map *threads = perf_thread_map__new_dummy();

	c->evlist = perf_evlist__new();
	c->owner = perf_evsel__new(&a);
	if (!threads || !c->evlist || !c->owner) {
		perf_thread_map__put(threads);
		perf_evsel__delete(c->owner);
		return -ENOMEM;
	}
	perf_evlist__add(c->evlist, c->owner);
	perf_evlist__set_maps(c->evlist, c->map, threads);
	perf_thread_map__put(threads); /* evlist holds it */
	return perf_evlist__open(c->evlist);
}

/* -EPERM or -ENOMEM: so much memory may not be locked. */
static int evlist_map(const struct perf_rings *r, struct cpu_ring *c, int64_t now)
{
	struct perf_mmap *map;

	errno = 0;
	if (perf_evlist__mmap(c->evlist, (int)(r->bytes / r->page)) < 0)
		return errno ? -errno : -ENOMEM;
	map = perf_evlist__next_mmap(c->evlist, NULL, false);
	if (!map || !perf_access_base(map))
		return -ENOMEM;
	ring_init(&c->ring, perf_access_base(map), r->page, r->bytes, (uint16_t)c->cpu, now);
	if (r->ips)
		c->ring.time_at = RING_TIME_IP;
	return 0;
}

/* Halves the rings, this one and all later ones, until they may be locked; else -ENOBUFS. */
static int open_and_map(struct perf_rings *r, struct cpu_ring *c, int64_t now)
{
	for (;;) {
		int rc = evlist_open(r, c);

		if (rc)
			return rc;
		rc = evlist_map(r, c, now);
		if (rc != -EPERM && rc != -ENOMEM)
			return rc;
		if (r->bytes <= RING_MIN)
			return -ENOBUFS;
		r->bytes /= 2;
		r->halved = true;
		perf_rings_evlist_free(c->evlist);
		c->evlist = NULL;
	}
}

static void event_close(struct perf_rings *r, struct cpu_ring *c, unsigned slot)
{
	struct cpu_event *e = &c->event[slot];
	struct perf_counts_values v = {0};

	if (!e->evsel)
		return;
	if (!r->no_lost && !perf_evsel__read(e->evsel, 0, 0, &v) && v.lost > e->lost)
		r->unread[slot] += v.lost - e->lost;
	perf_evsel__close(e->evsel);
	perf_evsel__delete(e->evsel);
	*e = (struct cpu_event){0};
}

static void cpu_ring_free(struct perf_rings *r, struct cpu_ring *c)
{
	if (!c)
		return;
	for (unsigned s = 0; s < RING_EVENTS; s++)
		event_close(r, c, s);
	perf_rings_evlist_free(c->evlist);
	perf_cpu_map__put(c->map);
	free(c);
}

/* The last ones are for looking at VMs: without those no event has one that it is of. */
static bool are_scarce(int fd)
{
	struct rlimit l;

	return !getrlimit(RLIMIT_NOFILE, &l) && l.rlim_cur != RLIM_INFINITY &&
	       (rlim_t)fd + FDS_KEPT >= l.rlim_cur;
}

/* 1: the kernel knows no PERF_FORMAT_LOST, try again without. */
static int event_try(struct perf_rings *r, struct cpu_ring *c, unsigned slot)
{
	struct perf_event_attr a = full_attr(r, &r->attr[slot]);
	struct perf_evsel *e;
	int rc;

	a.read_format = r->no_lost ? 0 : PERF_FORMAT_LOST;
	e = perf_evsel__new(&a);
	if (!e)
		return -ENOMEM;
	rc = perf_evsel__open(e, c->map, NULL);
	if (rc) {
		perf_evsel__delete(e);
		if (rc == -EINVAL && !r->no_lost) {
			r->no_lost = true;
			return 1;
		}
		return rc;
	}
	c->event[slot] = (struct cpu_event){.evsel = e};
	if (are_scarce(perf_access_fd(e)))
		rc = -EMFILE;
	else if (ioctl(perf_access_fd(e), PERF_EVENT_IOC_SET_OUTPUT, perf_access_fd(c->owner)))
		rc = -errno;
	if (rc)
		event_close(r, c, slot);
	return rc;
}

static int event_open(struct perf_rings *r, struct cpu_ring *c, unsigned slot)
{
	int rc = event_try(r, c, slot);

	return rc == 1 ? event_try(r, c, slot) : rc;
}

static int cpu_ring_new(struct perf_rings *r, int cpu, int64_t now, struct cpu_ring **out)
{
	struct cpu_ring *c = calloc(1, sizeof(*c));
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = cpu};
	char list[16];
	int rc;

	if (!c)
		return -ENOMEM;
	snprintf(list, sizeof(list), "%d", cpu);
	c->cpu = cpu;
	c->map = perf_cpu_map__new(list);
	rc = c->map ? open_and_map(r, c, now) : -ENOMEM;
	if (!rc && epoll_ctl(r->epfd, EPOLL_CTL_ADD, perf_access_fd(c->owner), &ev))
		rc = -errno;
	for (unsigned s = 0; !rc && s < RING_EVENTS; s++)
		if (r->used[s])
			rc = event_open(r, c, s);
	if (rc) {
		cpu_ring_free(r, c);
		return rc;
	}
	*out = c;
	return 0;
}

/* ---- the set of them ---- */

/* Descriptors are raised to what may be had: three a CPU are a lot on a large host. */
static void raise_nofile(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

static int insert(struct perf_rings *r, struct cpu_ring *c)
{
	struct cpu_ring **cpu = reallocarray(r->cpu, r->n + 1, sizeof(*cpu));
	struct ring **ring;

	if (!cpu)
		return -ENOMEM;
	r->cpu = cpu;
	ring = reallocarray(r->ring, r->n + 1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	r->ring = ring;
	r->cpu[r->n] = c;
	r->ring[r->n++] = &c->ring;
	return 0;
}

static void remove_at(struct perf_rings *r, size_t i)
{
	cpu_ring_free(r, r->cpu[i]);
	r->n--;
	r->cpu[i] = r->cpu[r->n];
	r->ring[i] = r->ring[r->n];
}

void perf_rings_free(struct perf_rings *r)
{
	if (!r)
		return;
	while (r->n)
		remove_at(r, r->n - 1);
	ring_merge_free(r->merge);
	if (r->epfd >= 0)
		close(r->epfd);
	free(r->cpu);
	free(r->ring);
	free(r);
}

static bool listed(const int *cpu, size_t n, int which)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cpu[mid] == which)
			return true;
		if (cpu[mid] < which)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

static bool has_live_ring(const struct perf_rings *r, int cpu)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->cpu[i]->cpu == cpu && !r->cpu[i]->gone)
			return true;
	return false;
}

static int add_cpu(struct perf_rings *r, int cpu, int64_t now)
{
	struct cpu_ring *c;
	int rc = cpu_ring_new(r, cpu, now, &c);

	if (rc == -EMFILE) {
		raise_nofile();
		rc = cpu_ring_new(r, cpu, now, &c);
	}
	if (rc)
		return rc;
	rc = insert(r, c);
	if (rc)
		cpu_ring_free(r, c);
	return rc;
}

static bool attached(struct cpu_ring *c, int64_t now)
{
	return perf_alive(&c->alive, ring_head(&c->ring), perf_access_fd(c->owner), now);
}

/* When the ring that a CPU had before its present one was alive; 0: it had none. */
static int64_t last_alive(const struct perf_rings *r, int cpu)
{
	int64_t t = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->cpu[i]->cpu == cpu && r->cpu[i]->gone && r->cpu[i]->alive.last > t)
			t = r->cpu[i]->alive.last;
	return t;
}

int perf_rings_set_cpus(struct perf_rings *r, const int *cpu, size_t n, int64_t now,
			void (*unwatched)(void *ctx, int cpu, int64_t since), void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < r->n; i++)
		if (!r->cpu[i]->gone &&
		    (!listed(cpu, n, r->cpu[i]->cpu) || !attached(r->cpu[i], now)))
			r->cpu[i]->gone = now;
	for (size_t i = 0; i < n; i++) {
		int rc;

		if (has_live_ring(r, cpu[i]))
			continue;
		rc = add_cpu(r, cpu[i], now);
		if (rc == -ENODEV) /* went while we looked: the next tick knows */
			continue;
		if (rc && !err)
			err = rc;
		if (unwatched)
			unwatched(ctx, cpu[i], last_alive(r, cpu[i]));
	}
	return err;
}

int perf_rings_open(struct perf_rings *r, unsigned slot, uint64_t id)
{
	const struct perf_event_attr a = {
		.type = PERF_TYPE_TRACEPOINT, .config = id, .sample_period = 1};

	return id ? perf_rings_open_attr(r, slot, &a) : -EINVAL;
}

int perf_rings_open_attr(struct perf_rings *r, unsigned slot, const struct perf_event_attr *a)
{
	bool raised = false;

	if (slot >= RING_EVENTS || r->used[slot])
		return -EINVAL;
	r->used[slot] = true;
	r->attr[slot] = *a;
	for (size_t i = 0; i < r->n; i++) {
		int rc = r->cpu[i]->gone ? 0 : event_open(r, r->cpu[i], slot);

		if (rc == -EMFILE && !raised) {
			raised = true;
			raise_nofile();
			rc = event_open(r, r->cpu[i], slot);
		}
		if (rc && rc != -ENODEV) {
			perf_rings_close(r, slot);
			return rc;
		}
	}
	return 0;
}

void perf_rings_close(struct perf_rings *r, unsigned slot)
{
	if (slot >= RING_EVENTS)
		return;
	for (size_t i = 0; i < r->n; i++)
		event_close(r, r->cpu[i], slot);
	r->used[slot] = false;
}

bool perf_rings_is_open(const struct perf_rings *r, unsigned slot)
{
	return slot < RING_EVENTS && r->used[slot];
}

int perf_rings_drain(struct perf_rings *r, int64_t watermark, ring_batch_fn fn, void *ctx)
{
	int rc = ring_merge_drain(r->merge, r->ring, r->n, watermark, fn, ctx);

	for (size_t i = r->n; i-- > 0;)
		if (r->cpu[i]->gone && watermark >= r->cpu[i]->gone)
			remove_at(r, i);
	return rc;
}

/* True when it lost some since it was asked last. */
static bool read_lost(struct cpu_ring *c, uint64_t *sum)
{
	bool any = false;

	for (unsigned s = 0; s < RING_EVENTS; s++) {
		struct perf_counts_values v = {0};
		struct cpu_event *e = &c->event[s];

		if (!e->evsel || perf_evsel__read(e->evsel, 0, 0, &v) || v.lost <= e->lost)
			continue;
		sum[s] += v.lost - e->lost;
		e->lost = v.lost;
		any = true;
	}
	return any;
}

void perf_rings_losses(struct perf_rings *r, void (*fn)(void *ctx, unsigned slot, uint64_t n),
		       void (*untold)(void *ctx, uint16_t cpu, int64_t from), void *ctx)
{
	uint64_t sum[RING_EVENTS];

	memcpy(sum, r->unread, sizeof(sum));
	memset(r->unread, 0, sizeof(r->unread));
	for (size_t i = 0; i < r->n; i++) {
		struct ring *ring = &r->cpu[i]->ring;
		bool drained = ring->tail == ring->head;

		if (!ring->was_full)
			continue;
		ring->was_full = false;
		if ((r->no_lost || read_lost(r->cpu[i], sum)) && drained)
			untold(ctx, ring->cpu, ring->last_time);
	}
	for (unsigned s = 0; s < RING_EVENTS; s++)
		if (sum[s])
			fn(ctx, s, sum[s]);
}
