// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `host_cpu`: ticks of every CPU, run-queue waits, topology, load and memory of the
 * host, and the busiest tasks that are no VM's.
 */
#include "host_cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "host_tasks.h"
#include "host_topology.h"
#include "hoststat.h"
#include "sysroot.h"

#define FILE_MIN (64u << 10)
#define FILE_MAX (8u << 20) /* /proc/schedstat of 4096 CPUs, with its domains' lines, is less */
/* Ticks, unless the list of tasks is on screen: they cost four calls each, most of an idle tick. */
#define TASKS_EVERY 5
#define MAX_CPUS 4096

struct host_cpu {
	const struct collector_env *env;
	struct host_tasks *tasks;
	struct cpu_reading *cpu; /* by appearance; once seen they stay, offline ones too */
	unsigned ncpu;
	int *slot; /* CPU number → index + 1 */
	uint64_t online_set; /* which CPUs were on in the last reading, as a sum of hashes */
	char *buf; /* grows to the largest file */
	size_t size;
	unsigned tick;
	bool want_tasks;
};

/* Reads a file whole; what is beyond FILE_MAX is cut. Length or -errno. */
static ssize_t read_whole(const struct sysroot *root, const char *path, char **buf, size_t *size)
{
	for (;;) {
		ssize_t n = *buf ? sysroot_read(root, path, *buf, *size) : -EFBIG;
		size_t more = *size ? *size * 2 : FILE_MIN;
		char *grown;

		if (n != -EFBIG)
			return n;
		if (*buf && more > FILE_MAX)
			return (ssize_t)strlen(*buf);
		grown = realloc(*buf, more);
		if (!grown)
			return -ENOMEM;
		*buf = grown;
		*size = more;
	}
}

static void host_close(void *state)
{
	struct host_cpu *h = state;

	if (!h)
		return;
	host_tasks_free(h->tasks);
	free(h->cpu);
	free(h->slot);
	free(h->buf);
	free(h);
}

static int host_open(const struct collector_env *env, void **state)
{
	struct host_cpu *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->env = env;
	h->slot = calloc(MAX_CPUS, sizeof(*h->slot));
	h->tasks = host_tasks_new(env);
	if (!h->slot || !h->tasks) {
		host_close(h);
		return -ENOMEM;
	}
	*state = h;
	return 0;
}

static void host_demand(void *state, const struct demand *d)
{
	((struct host_cpu *)state)->want_tasks = d->tasks;
}

static struct cpu_reading *cpu_at(struct host_cpu *h, int cpu)
{
	struct cpu_reading *grown;

	if (cpu < 0 || cpu >= MAX_CPUS)
		return NULL;
	if (h->slot[cpu])
		return &h->cpu[h->slot[cpu] - 1];
	grown = reallocarray(h->cpu, h->ncpu + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	h->cpu = grown;
	h->cpu[h->ncpu] = (struct cpu_reading){
		.cpu = cpu, .node = -1, .core = -1, .package = -1, .sibling = -1};
	h->slot[cpu] = (int)++h->ncpu;
	return &h->cpu[h->ncpu - 1];
}

static void note_present(void *ctx, int cpu)
{
	(void)cpu_at(ctx, cpu);
}

/* CPUs that are there though they are off, and where all of them sit. */
static void read_topology(struct host_cpu *h)
{
	char list[4096];
	ssize_t n =
		sysroot_read(h->env->root, "sys/devices/system/cpu/present", list, sizeof(list));

	if (n > 0)
		hoststat_cpulist(list, (size_t)n, MAX_CPUS, note_present, h);
	for (unsigned i = 0; i < h->ncpu; i++)
		topology_of(h->env->root, &h->cpu[i]);
}

/* A CPU without a line is offline: its last figures stay, marked so. */
static void take_cpus(struct host_cpu *h, size_t len, struct host_reading *r)
{
	uint64_t set = 0;
	struct cpu_ticks t;
	size_t at = 0;
	int cpu;

	for (unsigned i = 0; i < h->ncpu; i++)
		h->cpu[i].online = false;
	while (hoststat_next_cpu(h->buf, len, &at, &cpu, &t)) {
		struct cpu_reading *c = cpu < 0 ? NULL : cpu_at(h, cpu);

		if (cpu < 0)
			r->all = t;
		if (!c)
			continue;
		c->t = t;
		c->online = true;
		set += ((uint64_t)cpu + 1) * 0x9e3779b97f4a7c15u;
	}
	/* Siblings, cores and nodes are known of CPUs that are on only. */
	if (set != h->online_set)
		read_topology(h);
	h->online_set = set;
}

static int read_stat(struct host_cpu *h, struct host_reading *r)
{
	ssize_t n = read_whole(h->env->root, "proc/stat", &h->buf, &h->size);

	if (n < 0)
		return (int)n;
	r->time = clock_mono_ns();
	take_cpus(h, (size_t)n, r);
	return 0;
}

static void read_waits(struct host_cpu *h)
{
	ssize_t n = read_whole(h->env->root, "proc/schedstat", &h->buf, &h->size);
	size_t at = 0;
	uint64_t wait;
	int cpu;

	for (unsigned i = 0; i < h->ncpu; i++)
		h->cpu[i].has_wait = false;
	if (n <= 0)
		return;
	while (hoststat_next_wait(h->buf, (size_t)n, &at, &cpu, &wait)) {
		struct cpu_reading *c = cpu_at(h, cpu);

		if (!c)
			continue;
		c->has_wait = true;
		c->wait_ns = wait;
	}
}

static void read_rest(struct host_cpu *h, struct host_reading *r)
{
	ssize_t n = read_whole(h->env->root, "proc/meminfo", &h->buf, &h->size);

	if (n > 0) {
		hoststat_meminfo(h->buf, (size_t)n, "MemTotal", &r->mem_total_kb);
		hoststat_meminfo(h->buf, (size_t)n, "MemAvailable", &r->mem_avail_kb);
	}
	if (read_whole(h->env->root, "proc/loadavg", &h->buf, &h->size) > 0)
		r->load1 = strtod(h->buf, NULL);
}

/*
 * Where nobody asks for the list, a screen waits for the first tick's frame, which therefore leaves
 * them; the next two give the first figures.
 */
static bool tasks_due(const struct host_cpu *h)
{
	if (h->want_tasks)
		return true;
	if (h->tick == 0)
		return false;
	return h->tick <= 2 || h->tick % TASKS_EVERY == 0;
}

static int host_tick(void *state, int64_t now, int64_t watermark)
{
	struct host_cpu *h = state;
	struct host_reading r = {0};
	int err = read_stat(h, &r);

	(void)now;
	(void)watermark;
	if (!err) {
		read_waits(h);
		read_rest(h, &r);
		r.ncpu = h->ncpu;
		r.cpu = h->cpu;
		h->env->sink->host(h->env->sink->ctx, &r);
	}
	if (tasks_due(h))
		host_tasks_read(h->tasks);
	h->tick++;
	return err;
}

static void host_probe(const struct collector_env *env, struct probes *out)
{
	char *buf = NULL;
	size_t at = 0, size = 0;
	ssize_t n = read_whole(env->root, "proc/stat", &buf, &size);
	uint64_t wait;
	int cpu;

	if (n < 0)
		probe_add(out, "host CPU", SOURCE_OFF, "mount -t proc proc /proc",
			  "/proc/stat cannot be read: %s", strerror((int)-n));
	else
		probe_add(out, "host CPU", SOURCE_OK, NULL, "works: /proc/stat");
	n = read_whole(env->root, "proc/schedstat", &buf, &size);
	if (n > 0 && hoststat_next_wait(buf, (size_t)n, &at, &cpu, &wait))
		probe_add(out, "run-queue wait", SOURCE_OK, NULL, "works: /proc/schedstat");
	else
		probe_add(
			out, "run-queue wait", SOURCE_PARTIAL, NULL,
			"no /proc/schedstat on this kernel (CONFIG_SCHEDSTATS): the column WAIT of "
			"the pane CPUs is n/a; steal of vCPUs does not need it");
	free(buf);
}

const struct collector collector_host_cpu = {
	.name = "host_cpu",
	.what = "the host's CPUs, run-queue waits and busiest tasks that belong to no VM",
	.probe = host_probe,
	.open = host_open,
	.tick = host_tick,
	.demand = host_demand,
	.close = host_close,
};
