// SPDX-License-Identifier: GPL-2.0-only
/* The collector `sched` over a made tree: a VM, its threads and what came through the sink. */
#ifndef KVMTOP_TESTS_SCHED_TREE_H
#define KVMTOP_TESTS_SCHED_TREE_H

#include <dirent.h>

#include "sched.h"
#include "vms_tree.h"

#define PID 500
#define GROUP "/machine.slice/vm.scope"
#define V2 "sys/fs/cgroup"

/* What came through the sink in the last tick. */
struct got {
	struct {
		pid_t tid;
		struct thread_reading r;
	} thread[64];
	struct {
		pid_t tid;
		struct quota_reading r;
	} quota[64];
	struct {
		pid_t tid;
		char pin[32], node[32];
	} place[64];
	size_t nthread, nquota, nplace;
};

struct fix {
	struct host h;
	struct got got;
	struct sink sink;
	struct collector_env env;
	struct inv_vm *vm;
	void *sched;
};

static inline void on_thread(void *ctx, const struct thread_reading *r)
{
	struct got *g = ctx;

	g->thread[g->nthread].tid = r->thread->tid;
	g->thread[g->nthread++].r = *r;
}

static inline void on_quota(void *ctx, const struct quota_reading *r)
{
	struct got *g = ctx;

	g->quota[g->nquota].tid = r->thread->tid;
	g->quota[g->nquota++].r = *r;
}

static inline void on_place(void *ctx, const struct place_reading *r)
{
	struct got *g = ctx;

	g->place[g->nplace].tid = r->thread->tid;
	snprintf(g->place[g->nplace].pin, 32, "%s", r->pin ? r->pin : "");
	snprintf(g->place[g->nplace++].node, 32, "%s", r->node ? r->node : "");
}

static inline void start(struct fix *f, const char *dir)
{
	assert_int_equal(sysroot_open(dir, &f->h.root), 0);
	f->h.inv = inventory_new();
	assert_non_null(f->h.inv);
	f->sink = (struct sink){
		.ctx = &f->got, .thread = on_thread, .quota = on_quota, .place = on_place};
	f->env = (struct collector_env){.root = f->h.root, .inv = f->h.inv, .sink = &f->sink};
	assert_int_equal(collector_sched.open(&f->env, &f->sched), 0);
}

static inline void set_up(struct fix *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->h.dir, "/tmp/kvmtop-sched-XXXXXX");
	assert_non_null(mkdtemp(f->h.dir));
	start(f, f->h.dir);
	f->vm = inventory_add_vm(f->h.inv, PID, 5000, "500-10");
}

static inline void tear_down(struct fix *f)
{
	collector_sched.close(f->sched);
	inventory_free(f->h.inv);
	sysroot_close(f->h.root);
	tree_remove(f->h.dir);
}

static inline void tick(struct fix *f)
{
	memset(&f->got, 0, sizeof(f->got));
	f->h.now += NS_PER_S;
	assert_int_equal(collector_sched.tick(f->sched, f->h.now, f->h.now), 0);
}

static inline void text(const struct fix *f, const char *path, const char *what)
{
	put(&f->h, what, strlen(what), "%s", path);
}

/* Files of a thread, in the inventory too; tids from PID + 1. */
static inline struct inv_thread *add_thread(struct fix *f, int tid, enum inv_role role,
					    const char *group)
{
	char line[256];
	struct inv_thread *t = inventory_add_thread(f->h.inv, f->vm, PID, tid, 5001, role);

	assert_non_null(t);
	thread_of(&f->h, PID, tid, "CPU 0/KVM", 5001, 7);
	put(&f->h, "1000 200 3\n", 11, "proc/%d/task/%d/schedstat", PID, tid);
	snprintf(line, sizeof(line), "0::%s\n", group);
	put(&f->h, line, strlen(line), "proc/%d/task/%d/cgroup", PID, tid);
	if (role == ROLE_VCPU)
		inventory_set_thread(f->h.inv, inventory_add_vcpu(f->h.inv, f->vm, tid - PID - 1),
				     t);
	return t;
}

static inline const struct quota_reading *quota_of(const struct fix *f, pid_t tid)
{
	for (size_t i = 0; i < f->got.nquota; i++)
		if (f->got.quota[i].tid == tid)
			return &f->got.quota[i].r;
	fail_msg("no quota of %d", tid);
	return NULL;
}

static inline unsigned open_below(const char *dir)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");

	while ((e = readdir(d))) {
		char link[256];
		ssize_t len = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[len > 0 ? len : 0] = '\0';
		n += !strncmp(link, dir, strlen(dir)) && link[strlen(dir)];
	}
	closedir(d);
	return n;
}

#endif
