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
/*
 * Ticks, unless the list of tasks is on screen: they cost four calls each, most of an idle tick.
 * Where nothing of the host's own is busy they would explain nothing.
 */
#define TASKS_EVERY 5
#define TASKS_SELDOM 30
#define MAX_CPUS 4096

/* Read at each tick; the kernel's own are held open: opening costs more than reading. */
enum host_file { FILE_STAT, FILE_SCHEDSTAT, FILE_MEMINFO, FILE_LOADAVG, FILE_NR };

static const struct {
	const char *path;
	bool piece; /* the kernel writes it in one */
} files[FILE_NR] = {
	[FILE_STAT] = {"proc/stat", true},
	[FILE_SCHEDSTAT] = {"proc/schedstat", false},
	[FILE_MEMINFO] = {"proc/meminfo", true},
	[FILE_LOADAVG] = {"proc/loadavg", true},
};

struct host_cpu {
	const struct collector_env *env;
	struct host_tasks *tasks;
	struct cpu_reading *cpu; /* by appearance; once seen they stay, offline ones too */
	unsigned ncpu;
	int *slot; /* CPU number → index + 1 */
	uint64_t online_set; /* which CPUs were on in the last reading, as a sum of hashes */
	int fd[FILE_NR]; /* held; negative: none */
	char *buf; /* grows to the largest file */
	size_t size;
	unsigned tick;
	unsigned tasks_tick; /* in which they were read last */
	unsigned task_readings;
	bool tasks_late; /* … after so long that it says little of the last interval */
	bool want_tasks, others_quiet;
};

static ssize_t read_once(const struct sysroot *root, enum host_file f, int fd, char *buf,
			 size_t size)
{
	if (fd < 0)
		return sysroot_read(root, files[f].path, buf, size);
	return files[f].piece ? fd_read_once(fd, buf, size) : fd_read_all(fd, buf, size);
}

/* Reads a file whole; what is beyond FILE_MAX is cut. fd < 0: it is opened. Length or -errno. */
static ssize_t read_whole(const struct sysroot *root, enum host_file f, int fd, char **buf,
			  size_t *size)
{
	for (;;) {
		ssize_t n = *buf ? read_once(root, f, fd, *buf, *size) : -EFBIG;
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

static ssize_t read_file(struct host_cpu *h, enum host_file f)
{
	const struct sysroot *root = h->env->root;

	if (h->fd[f] < 0 && sysroot_is_live(root))
		h->fd[f] = sysroot_openat(root, files[f].path, O_RDONLY);
	return read_whole(root, f, h->fd[f], &h->buf, &h->size);
}

static void host_close(void *state)
{
	struct host_cpu *h = state;

	if (!h)
		return;
	for (int f = 0; f < FILE_NR; f++)
		if (h->fd[f] >= 0)
			close(h->fd[f]);
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
	for (int f = 0; f < FILE_NR; f++)
		h->fd[f] = -1;
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
	struct host_cpu *h = state;

	h->want_tasks = d->tasks;
	h->others_quiet = d->others_quiet;
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
	ssize_t n = read_file(h, FILE_STAT);

	if (n < 0)
		return (int)n;
	r->time = clock_mono_ns();
	take_cpus(h, (size_t)n, r);
	return 0;
}

static void read_waits(struct host_cpu *h)
{
	ssize_t n = read_file(h, FILE_SCHEDSTAT);
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
	ssize_t n = read_file(h, FILE_MEMINFO);

	if (n > 0) {
		hoststat_meminfo(h->buf, (size_t)n, "MemTotal", &r->mem_total_kb);
		hoststat_meminfo(h->buf, (size_t)n, "MemAvailable", &r->mem_avail_kb);
	}
	if (read_file(h, FILE_LOADAVG) > 0)
		r->load1 = strtod(h->buf, NULL);
}

/*
 * Where nobody asks for the list, a screen waits for the first tick's frame, which therefore leaves
 * them; the next two give the first figures.
 */
static bool tasks_due(const struct host_cpu *h)
{
	unsigned since = h->tick - h->tasks_tick;

	if (h->want_tasks)
		return true;
	if (h->tick == 0)
		return false;
	if (h->task_readings < 2)
		return true;
	return h->others_quiet ? since >= TASKS_SELDOM : h->tasks_late || since >= TASKS_EVERY;
}

static void read_tasks(struct host_cpu *h)
{
	h->tasks_late = h->tick - h->tasks_tick > TASKS_EVERY;
	h->tasks_tick = h->tick;
	if (host_tasks_read(h->tasks) > 0)
		h->task_readings = 0;
	h->task_readings++;
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
		read_tasks(h);
	h->tick++;
	return err;
}

static void host_probe(const struct collector_env *env, struct probes *out)
{
	char *buf = NULL;
	size_t at = 0, size = 0;
	ssize_t n = read_whole(env->root, FILE_STAT, -1, &buf, &size);
	uint64_t wait;
	int cpu;

	if (n < 0)
		probe_add(out, "host CPU", SOURCE_OFF, "mount -t proc proc /proc",
			  "/proc/stat cannot be read: %s", strerror((int)-n));
	else
		probe_add(out, "host CPU", SOURCE_OK, NULL, "works: /proc/stat");
	n = read_whole(env->root, FILE_SCHEDSTAT, -1, &buf, &size);
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
