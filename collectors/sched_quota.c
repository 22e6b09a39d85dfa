// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU quotas of cgroups v1 and v2; see sched_quota.h.
 *
 * A thread is held back by its own group and by each above it up to the machine's scope. They
 * overlap in time, so the one that held back most counts. The kernel sums that time over the CPUs
 * on which the group had something to run: it is the time of each of the threads there, and divided
 * by the CPUs, not by the threads. Four vCPUs that share a CPU are held back by all of it, and one
 * that was idle by none.
 */
#include "sched_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "clock.h"
#include "procfs.h"
#include "sysroot.h"

/*
 * Which group a thread is in: each look costs an open. A thread that is new may be moved, a VMM
 * does so; later it is a person's doing, who moves all threads of a VM, so one of them is looked at
 * often.
 */
#define LOOKUP_NEW NS_PER_S /* and up to seven more, so that not all are in one tick */
#define LOOKUP_ONE (5 * NS_PER_S)
#define LOOKUP_REST (40 * NS_PER_S) /* and up to seven more */
#define VMS_A_SECOND 40 /* of more VMs, the one thread less often */
#define LIMIT_TICKS 10 /* a group's limit is looked at so often at least */
#define GROUPS_A_TICK 64 /* so many groups' limits are looked at every tick; of more in turn */
#define BUCKETS 1024 /* 16,000 vCPUs in a group each: 17 a bucket */
#define CPU_WORDS 16 /* CPUs told apart in a group, modulo: of a larger host a few count as one */

struct group {
	struct group *next, *parent; /* next: in its bucket */
	bool v1;
	bool known; /* what it held back is known: there is no limit, or cpu.stat could be read */
	bool has_base; /* .last is a baseline */
	const char *mount; /* where it was found, NULL: not there */
	int fd; /* of cpu.stat, held while there is a limit; -1: opened anew each time */
	struct cgroup_throttled last;
	uint64_t delta_ns; /* held back in this tick */
	bool begun; /* the limit is new: what it held back before this tick is not known */
	bool used_up; /* in half of its last periods or more it had its whole quota */
	uint64_t quota_us, period_us; /* quota 0: no limit */
	char *limit; /* the file that says so, NULL none */
	unsigned turn; /* spreads the looks at the limits over ticks */
	unsigned tick; /* in which it was read, 0 never */
	unsigned counted; /* tick of the members below */
	unsigned members; /* vCPU threads in it and below it */
	unsigned ready; /* of them those that ran or wanted to */
	unsigned ncpus; /* on which any thread did */
	const struct inv_vm *vm; /* whose; only to be compared */
	bool shared; /* by several VMs */
	uint64_t cpus[CPU_WORDS];
	size_t len;
	char path[]; /* "" is the root */
};

struct quotas {
	const struct collector_env *env;
	struct group *bucket[BUCKETS];
	unsigned ngroups, made; /* now; ever */
	unsigned held, may_hold; /* descriptors */
	unsigned tick;
	int64_t now, one_every; /* of this tick, ns */
	const struct inv_vm *vm; /* whose threads are being counted */
	bool moved; /* one of them is in another group than before */
	unsigned nvm; /* counted in this tick */
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

static void release(struct quotas *q, struct group *g)
{
	if (g->fd < 0)
		return;
	close(g->fd);
	g->fd = -1;
	q->held--;
}

static void free_group(struct quotas *q, struct group *g)
{
	release(q, g);
	q->ngroups--;
	free(g->limit);
	free(g);
}

void quotas_free(struct quotas *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (q->bucket[i]) {
			struct group *g = q->bucket[i];

			q->bucket[i] = g->next;
			free_group(q, g);
		}
	free(q);
}

unsigned quotas_tick(struct quotas *q, unsigned may_hold, int64_t now)
{
	q->tick++;
	q->now = now;
	q->one_every = q->nvm * NS_PER_S / VMS_A_SECOND;
	if (q->one_every > LOOKUP_REST)
		q->one_every = LOOKUP_REST;
	if (q->one_every < LOOKUP_ONE)
		q->one_every = LOOKUP_ONE;
	q->nvm = 0;
	q->vm = NULL;
	q->may_hold = may_hold;
	return q->held;
}

/* ---- groups ---- */

/* FNV-1a. */
static struct group **bucket_of(struct quotas *q, const char *path, size_t len, bool v1)
{
	uint32_t h = 2166136261u ^ v1;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 16777619u;
	return &q->bucket[(h ^ h >> 16) % BUCKETS];
}

static struct group *find_group(struct group *g, const char *path, size_t len, bool v1)
{
	while (g && (g->v1 != v1 || g->len != len || memcmp(g->path, path, len)))
		g = g->next;
	return g;
}

static struct group *get_group(struct quotas *q, const char *path, size_t len, bool v1)
{
	struct group **b = bucket_of(q, path, len, v1), *g = find_group(*b, path, len, v1);
	size_t up;

	if (g)
		return g;
	g = calloc(1, sizeof(*g) + len + 1);
	if (!g)
		return NULL;
	memcpy(g->path, path, len);
	g->len = len;
	g->v1 = v1;
	g->fd = -1;
	g->turn = q->made++;
	g->next = *b;
	*b = g;
	q->ngroups++;
	up = cgroup_parent(path, len);
	if (up)
		g->parent = get_group(q, path, up, v1);
	return g;
}

static struct group *lookup(struct quotas *q, const struct inv_thread *t)
{
	char buf[4096], path[2048];
	ssize_t n = sysroot_readf(q->env->root, buf, sizeof(buf), "proc/%d/task/%d/cgroup", t->pid,
				  t->tid),
		len;
	bool v1 = true;

	if (n == -EFBIG)
		n = (ssize_t)strlen(buf);
	if (n < 0)
		return NULL;
	len = procfs_parse_cgroup(buf, (size_t)n, "cpu", path, sizeof(path));
	if (len < 0) {
		v1 = false;
		len = procfs_parse_cgroup(buf, (size_t)n, NULL, path, sizeof(path));
	}
	/* A path that climbs is of another cgroup namespace. */
	if (len <= 0 || strstr(path, "/.."))
		return NULL;
	/* "/" may be a namespace's root, which can have a limit: it is a group like others. */
	return get_group(q, path, len == 1 ? 0 : (size_t)len, v1);
}

/* fresh: not counted in the last tick; its group may have been swept meanwhile. */
static void follow(struct quotas *q, struct thread_quota *tq, const struct inv_thread *t,
		   bool fresh)
{
	bool first = q->vm != t->vm;
	struct group *before = tq->group;

	if (first) {
		q->vm = t->vm;
		q->moved = false;
		q->nvm++;
	}
	if (!fresh && !q->moved && q->now < tq->due)
		return;
	tq->group = lookup(q, t);
	q->moved |= !fresh && tq->group != before;
	tq->due = q->now + (fresh ? LOOKUP_NEW : first ? q->one_every : LOOKUP_REST);
	if (fresh || !first)
		tq->due += t->tid % 8 * NS_PER_S;
}

static void begin_count(struct group *g, unsigned tick, const struct inv_vm *vm)
{
	g->counted = tick;
	g->members = g->ready = g->ncpus = 0;
	g->vm = vm;
	g->shared = false;
	memset(g->cpus, 0, sizeof(g->cpus));
}

static void count_cpu(struct group *g, int cpu)
{
	unsigned bit = (unsigned)cpu % (64 * CPU_WORDS);
	uint64_t *w = &g->cpus[bit / 64];

	if (cpu >= 0 && *w >> bit % 64 & 1)
		return;
	g->ncpus++;
	if (cpu >= 0)
		*w |= 1ULL << bit % 64;
}

void quotas_count(struct quotas *q, struct thread_quota *tq, const struct inv_thread *t)
{
	bool vcpu = t->role == ROLE_VCPU;

	follow(q, tq, t, tq->tick + 1 != q->tick);
	tq->tick = q->tick;
	for (struct group *g = tq->group; g; g = g->parent) {
		if (g->counted != q->tick)
			begin_count(g, q->tick, t->vm);
		g->members += vcpu;
		g->ready += vcpu && tq->ready;
		g->shared |= g->vm != t->vm;
		if (tq->ready)
			count_cpu(g, tq->cpu);
	}
}

/* ---- reading ---- */

static ssize_t read_group(const struct quotas *q, const struct group *g, const char *file,
			  char *buf, size_t size)
{
	if (!g->mount)
		return -ENOENT;
	return sysroot_readf(q->env->root, buf, size, "%s%s/%s", g->mount, g->path, file);
}

static int open_in(const struct quotas *q, const char *mount, const struct group *g,
		   const char *file, int flags)
{
	char path[4400];

	if (snprintf(path, sizeof(path), "%s%s%s", mount, g->path, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return sysroot_openat(q->env->root, path, flags | O_CLOEXEC);
}

static void find_mount(const struct quotas *q, struct group *g)
{
	g->mount = NULL;
	for (const char *const *m = g->v1 ? v1_mounts : v2_mounts; *m && !g->mount; m++) {
		int fd = open_in(q, *m, g, "", O_PATH | O_DIRECTORY);

		if (fd < 0)
			continue;
		close(fd);
		g->mount = *m;
	}
}

static void read_limit(const struct quotas *q, struct group *g)
{
	char buf[128];
	ssize_t n;

	g->quota_us = 0;
	if (!g->v1) {
		n = read_group(q, g, "cpu.max", buf, sizeof(buf));
		if (n < 0 || cgroup_parse_max(buf, (size_t)n, &g->quota_us, &g->period_us))
			g->quota_us = 0; /* the controller is not on for it: it cannot hold back */
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

/* For whom wants to change it. */
static void name_limit(struct group *g)
{
	free(g->limit);
	if (!g->mount || !g->quota_us ||
	    asprintf(&g->limit, "/%s%s/%s", g->mount, g->path,
		     g->v1 ? "cpu.cfs_quota_us" : "cpu.max") < 0)
		g->limit = NULL;
}

/* Limits seldom change: on a host with many groups not all are looked at in one tick. */
static bool limit_due(const struct quotas *q, const struct group *g)
{
	unsigned every = 1 + q->ngroups / GROUPS_A_TICK;

	if (every > LIMIT_TICKS)
		every = LIMIT_TICKS;
	return !g->tick || (q->tick + g->turn) % every == 0;
}

static ssize_t read_throttled(struct quotas *q, struct group *g, char *buf, size_t size)
{
	ssize_t n;

	if (g->fd < 0 && q->held < q->may_hold) {
		g->fd = open_in(q, g->mount, g, "/cpu.stat", O_RDONLY);
		q->held += g->fd >= 0;
	}
	if (g->fd < 0)
		return read_group(q, g, "cpu.stat", buf, size);
	n = fd_read_once(g->fd, buf, size);
	if (n < 0) /* the group was removed; one of the same name may come */
		release(q, g);
	return n;
}

/* In an interval in which no period ended what the last one said still holds. */
static void add_difference(struct group *g, const struct cgroup_throttled *now)
{
	const struct cgroup_throttled *last = &g->last;

	if (now->ns > last->ns)
		g->delta_ns = now->ns - last->ns;
	if (now->periods < last->periods || now->used_up < last->used_up)
		g->used_up = false; /* another group of that name */
	else if (now->periods > last->periods)
		g->used_up = now->used_up - last->used_up >= (now->periods - last->periods + 1) / 2;
}

static void read_stat(struct quotas *q, struct group *g)
{
	struct cgroup_throttled now = {0};
	char buf[1024];
	ssize_t n = read_throttled(q, g, buf, sizeof(buf));

	g->known = n >= 0 && cgroup_parse_throttled(buf, (size_t)n, &now) == 0;
	if (g->known && g->has_base)
		add_difference(g, &now);
	else
		g->used_up = false;
	g->begun = g->known && !g->has_base;
	g->has_base = g->known;
	g->last = now;
}

/* Without a limit nothing is held back, and cpu.stat need not be read: but once when it ends. */
static void read_once(struct quotas *q, struct group *g)
{
	if (g->tick == q->tick)
		return;
	if (limit_due(q, g)) {
		find_mount(q, g);
		read_limit(q, g);
		name_limit(g);
	}
	g->tick = q->tick;
	g->delta_ns = 0;
	g->begun = false;
	g->known = g->mount != NULL;
	if (g->mount && (g->quota_us || g->has_base))
		read_stat(q, g);
	if (g->mount && g->quota_us)
		return;
	release(q, g);
	g->known = g->mount != NULL;
	g->has_base = g->used_up = false;
}

static bool tighter(const struct group *g, const struct quota_reading *r)
{
	return g->quota_us && g->period_us &&
	       (!r->quota_us || (double)g->quota_us / (double)g->period_us <
					(double)r->quota_us / (double)r->period_us);
}

/* How long the group held the thread back in this tick. */
static uint64_t part_of(const struct group *g, const struct thread_quota *tq)
{
	if (!g->ready)
		return g->delta_ns / (g->members ? g->members : 1);
	return tq->ready ? g->delta_ns / (g->ncpus ? g->ncpus : 1) : 0;
}

static double percent_of(const struct group *g)
{
	return g->quota_us && g->period_us ? 100.0 * (double)g->quota_us / (double)g->period_us : 0;
}

static void look_at_group(const struct group *g, const struct thread_quota *tq, uint64_t *most,
			  struct quota_reading *r)
{
	uint64_t part = part_of(g, tq);
	bool tight = tighter(g, r);

	r->has = true;
	r->begun |= g->begun;
	r->used_up |= g->used_up && g->ncpus <= 1;
	if (tight) {
		r->quota_us = g->quota_us;
		r->period_us = g->period_us;
	}
	if (part > *most || (tight && !*most)) {
		r->limit = g->limit;
		r->limit_pct = percent_of(g);
		r->shared = g->shared;
	}
	*most = part > *most ? part : *most;
}

void quotas_push(struct quotas *q, struct thread_quota *tq, struct inv_thread *t, int64_t now)
{
	struct quota_reading r = {.vm = t->vm, .thread = t, .time = now};
	uint64_t most = 0;

	for (struct group *g = tq->group; g; g = g->parent) {
		read_once(q, g);
		if (g->known)
			look_at_group(g, tq, &most, &r);
	}
	tq->throttled_ns += most;
	r.throttled_ns = tq->throttled_ns;
	q->env->sink->quota(q->env->sink->ctx, &r);
}

static void sweep_bucket(struct quotas *q, struct group **at)
{
	while (*at) {
		struct group *g = *at;

		if (q->tick - g->counted <= 3 * LIMIT_TICKS) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		free_group(q, g);
	}
}

void quotas_sweep(struct quotas *q)
{
	/*
	 * A child counts its parents too, so whoever was not counted has no child that was, and
	 * a thread looks its group up anew before it counts again.
	 */
	for (size_t i = 0; i < BUCKETS; i++)
		sweep_bucket(q, &q->bucket[i]);
}
