// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU quotas of cgroups v1 and v2; see sched_quota.h.
 *
 * A thread is held back by its own group and by each above it up to the machine's scope. They
 * overlap in time, so the one that held back most counts; its time is shared by the vCPUs in
 * it, since it is a sum over CPUs.
 */
#include "sched_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "procfs.h"
#include "sysroot.h"

#define LOOKUP_TICKS 10 /* a thread may be moved to another group: looked at that often */

struct group {
	struct group *next, *parent;
	bool v1, readable, is_new;
	int fd; /* of cpu.stat, held; -1: not there */
	uint64_t throttled_ns, delta_ns;
	uint64_t quota_us, period_us;
	unsigned tick; /* in which it was read */
	unsigned counted; /* tick of the members below */
	unsigned members; /* vCPU threads in it and below it */
	size_t len;
	char path[];
};

struct quotas {
	const struct collector_env *env;
	struct group *groups;
	unsigned tick;
};

/* Where the CPU controller is mounted; which of them exist differs from host to host. */
static const char *const v1_mounts[] = {"sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", NULL};
static const char *const v2_mounts[] = {"sys/fs/cgroup", "sys/fs/cgroup/unified", NULL};

struct quotas *quotas_new(const struct collector_env *env)
{
	struct quotas *q = calloc(1, sizeof(*q));

	if (q) {
		q->env = env;
		q->tick = 1;
	}
	return q;
}

static void free_group(struct group *g)
{
	if (g->fd >= 0)
		close(g->fd);
	free(g);
}

void quotas_free(struct quotas *q)
{
	if (!q)
		return;
	while (q->groups) {
		struct group *g = q->groups;

		q->groups = g->next;
		free_group(g);
	}
	free(q);
}

void quotas_tick(struct quotas *q)
{
	q->tick++;
}

static ssize_t read_group(const struct quotas *q, const struct group *g, const char *file,
			  char *buf, size_t size)
{
	ssize_t n = -ENOENT;

	for (const char *const *m = g->v1 ? v1_mounts : v2_mounts; *m && n < 0; m++)
		n = sysroot_readf(q->env->root, buf, size, "%s%s/%s", *m, g->path, file);
	return n;
}

static int open_group(const struct quotas *q, const struct group *g)
{
	char path[4400];
	int fd = -1;

	for (const char *const *m = g->v1 ? v1_mounts : v2_mounts; *m && fd < 0; m++)
		if (snprintf(path, sizeof(path), "%s%s/cpu.stat", *m, g->path) < (int)sizeof(path))
			fd = sysroot_openat(q->env->root, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : fd;
}

static struct group *find_group(const struct quotas *q, const char *path, size_t len, bool v1)
{
	for (struct group *g = q->groups; g; g = g->next)
		if (g->v1 == v1 && g->len == len && !memcmp(g->path, path, len))
			return g;
	return NULL;
}

static struct group *get_group(struct quotas *q, const char *path, size_t len, bool v1)
{
	struct group *g = find_group(q, path, len, v1);
	size_t up;

	if (g)
		return g;
	g = calloc(1, sizeof(*g) + len + 1);
	if (!g)
		return NULL;
	memcpy(g->path, path, len);
	g->len = len;
	g->v1 = v1;
	g->is_new = true;
	g->fd = open_group(q, g);
	g->next = q->groups;
	q->groups = g;
	up = cgroup_parent(path, len);
	if (up)
		g->parent = get_group(q, path, up, v1);
	return g;
}

static struct group *lookup(struct quotas *q, const struct inv_thread *t, bool *at_root)
{
	char buf[4096], path[2048];
	ssize_t n = sysroot_readf(q->env->root, buf, sizeof(buf), "proc/%d/task/%d/cgroup", t->pid,
				  t->tid),
		len;
	bool v1 = true;

	*at_root = false;
	if (n == -EFBIG)
		n = (ssize_t)strlen(buf);
	if (n < 0)
		return NULL;
	len = procfs_parse_cgroup(buf, (size_t)n, "cpu", path, sizeof(path));
	if (len < 0) {
		v1 = false;
		len = procfs_parse_cgroup(buf, (size_t)n, NULL, path, sizeof(path));
	}
	*at_root = len == 1;
	/* A path that climbs is of another cgroup namespace. */
	if (len <= 1 || strstr(path, ".."))
		return NULL;
	return get_group(q, path, (size_t)len, v1);
}

void quotas_count(struct quotas *q, struct thread_quota *tq, const struct inv_thread *t)
{
	/* Not counted in the last tick: its group may have been swept meanwhile. */
	if (tq->tick + 1 != q->tick || ++tq->age > LOOKUP_TICKS) {
		tq->group = lookup(q, t, &tq->at_root);
		tq->age = 1;
	}
	tq->tick = q->tick;
	for (struct group *g = tq->group; g; g = g->parent) {
		if (g->counted != q->tick)
			g->members = 0;
		g->counted = q->tick;
		g->members++;
	}
}

static void read_quota(const struct quotas *q, struct group *g)
{
	char buf[128];
	ssize_t n;

	if (!g->v1) {
		n = read_group(q, g, "cpu.max", buf, sizeof(buf));
		if (n < 0 || cgroup_parse_max(buf, (size_t)n, &g->quota_us, &g->period_us))
			g->quota_us = 0;
		return;
	}
	n = read_group(q, g, "cpu.cfs_quota_us", buf, sizeof(buf));
	if (n < 0 || cgroup_parse_number(buf, (size_t)n, &g->quota_us))
		g->quota_us = 0;
	if (!g->quota_us)
		return;
	n = read_group(q, g, "cpu.cfs_period_us", buf, sizeof(buf));
	if (n < 0 || cgroup_parse_number(buf, (size_t)n, &g->period_us) || !g->period_us)
		g->quota_us = 0;
}

static void read_once(struct quotas *q, struct group *g)
{
	char buf[1024];
	uint64_t ns = 0;
	ssize_t n;

	if (g->tick == q->tick)
		return;
	g->tick = q->tick;
	n = g->fd >= 0 ? fd_read_all(g->fd, buf, sizeof(buf)) : -ENOENT;
	g->readable = n >= 0 && cgroup_parse_throttled(buf, (size_t)n, &ns) == 0;
	g->delta_ns = g->readable && !g->is_new && ns > g->throttled_ns ? ns - g->throttled_ns : 0;
	if (g->readable) {
		g->throttled_ns = ns;
		g->is_new = false;
	}
	/* The limit itself seldom changes: looked at while it bites, and now and then. */
	if (g->readable && (g->delta_ns || q->tick % LOOKUP_TICKS == 0 || !g->period_us))
		read_quota(q, g);
}

static bool tighter(const struct group *g, const struct quota_reading *r)
{
	return g->quota_us && g->period_us &&
	       (!r->quota_us || (double)g->quota_us / (double)g->period_us <
					(double)r->quota_us / (double)r->period_us);
}

void quotas_push(struct quotas *q, struct thread_quota *tq, struct inv_thread *t, int64_t now)
{
	struct quota_reading r = {.vm = t->vm, .thread = t, .time = now, .shared_by = 1};

	uint64_t most = 0;

	r.has = tq->at_root; /* nothing can hold it back there: 0, not unknown */
	for (struct group *g = tq->group; g; g = g->parent) {
		uint64_t part;

		read_once(q, g);
		if (!g->readable)
			continue;
		r.has = true;
		part = g->delta_ns / (g->members ? g->members : 1);
		if (part > most || !r.group) {
			most = part > most ? part : most;
			r.group = g->path;
		}
		if (tighter(g, &r)) {
			r.quota_us = g->quota_us;
			r.period_us = g->period_us;
		}
	}
	tq->throttled_ns += most;
	r.throttled_ns = tq->throttled_ns;
	q->env->sink->quota(q->env->sink->ctx, &r);
}

void quotas_sweep(struct quotas *q)
{
	struct group **at = &q->groups;

	/*
	 * A child counts its parents too, so whoever was not counted has no child that was, and
	 * a thread looks its group up anew before it counts again.
	 */
	while (*at) {
		struct group *g = *at;

		if (q->tick - g->counted <= 3 * LOOKUP_TICKS) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		free_group(g);
	}
}
