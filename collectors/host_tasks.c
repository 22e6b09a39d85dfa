// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks of no VM; see host_tasks.h.
 *
 * One pass of a BPF program tells what each thread ran (sched_iter.h). Where that may not be had
 * the host's own /proc is read by libproc2, four calls a process; it has that path built in, so
 * below --root the files are read here.
 */
#include "host_tasks.h"

#include <dirent.h>
#include <errno.h>
#include <libproc2/pids.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "grow.h"
#include "inventory.h"
#include "procfs.h"
#include "sched_iter.h"
#include "sysroot.h"

#define BUSIEST 10

struct task {
	pid_t pid;
	uint64_t start; /* ticks since boot: a pid is used again */
	uint64_t run_ns; /* files have it in whole ticks */
	double pct; /* < 0: no baseline */
	char state;
	bool worker; /* of the kernel: /proc says for which queue */
	char comm[64];
};

struct task_list {
	struct task *task;
	size_t n, cap;
};

struct host_tasks {
	const struct collector_env *env;
	struct pids_info *pids; /* NULL below --root */
	struct task_list now, before; /* sorted by pid */
	struct task_list threads; /* of `now`, that are no leaders: pid is their process's */
	int64_t time; /* of `before`, 0 none */
	bool by_iter; /* `before` is */
	uint64_t tick_ns; /* of /proc */
};

static enum pids_item items[] = {PIDS_ID_PID, PIDS_TICS_ALL, PIDS_TICS_BEGAN, PIDS_STATE, PIDS_CMD};
enum { ITEM_PID, ITEM_TICKS, ITEM_START, ITEM_STATE, ITEM_CMD, ITEM_NR };

struct host_tasks *host_tasks_new(const struct collector_env *env)
{
	struct host_tasks *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->env = env;
	h->tick_ns = (uint64_t)(NS_PER_S / sysconf(_SC_CLK_TCK));
	if (sysroot_is_host(env->root) && procps_pids_new(&h->pids, items, ITEM_NR) < 0)
		h->pids = NULL;
	return h;
}

void host_tasks_free(struct host_tasks *h)
{
	if (!h)
		return;
	if (h->pids)
		procps_pids_unref(&h->pids);
	free(h->now.task);
	free(h->before.task);
	free(h->threads.task);
	free(h);
}

static struct task *add_task(struct task_list *l)
{
	if (!grow(&l->task, l->n, &l->cap, sizeof(*l->task)))
		return NULL;
	memset(&l->task[l->n], 0, sizeof(l->task[0]));
	return &l->task[l->n++];
}

static int read_libproc(struct host_tasks *h)
{
	struct pids_fetch *f = procps_pids_reap(h->pids, PIDS_FETCH_TASKS_ONLY);

	if (!f)
		return errno ? -errno : -EIO;
	for (int i = 0; i < f->counts->total; i++) {
		struct pids_stack *p = f->stacks[i];
		struct task *t = add_task(&h->now);

		if (!t)
			return -ENOMEM;
		t->pid = PIDS_VAL(ITEM_PID, s_int, p, h->pids);
		t->run_ns = PIDS_VAL(ITEM_TICKS, ull_int, p, h->pids) * h->tick_ns;
		t->start = PIDS_VAL(ITEM_START, ull_int, p, h->pids);
		t->state = PIDS_VAL(ITEM_STATE, s_ch, p, h->pids);
		snprintf(t->comm, sizeof(t->comm), "%s", PIDS_VAL(ITEM_CMD, str, p, h->pids));
	}
	return 0;
}

static int read_one(struct host_tasks *h, pid_t pid)
{
	char buf[1024];
	struct proc_stat st;
	ssize_t n = sysroot_readf(h->env->root, buf, sizeof(buf), "proc/%d/stat", pid);
	struct task *t;

	if (n < 0 || procfs_parse_stat(buf, (size_t)n, &st) < 0)
		return 0; /* gone meanwhile */
	t = add_task(&h->now);
	if (!t)
		return -ENOMEM;
	t->pid = pid;
	t->start = st.start;
	t->run_ns = (st.utime + st.stime) * h->tick_ns;
	t->state = st.state;
	snprintf(t->comm, sizeof(t->comm), "%s", st.comm);
	return 0;
}

static int read_files(struct host_tasks *h)
{
	DIR *d = sysroot_opendir(h->env->root, "proc");
	struct dirent *e;
	int pid, err = 0;

	if (!d)
		return -errno;
	while (!err && (e = readdir(d)))
		if (procfs_parse_id(e->d_name, &pid) == 0)
			err = read_one(h, pid);
	closedir(d);
	return err;
}

static int by_pid(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_pct(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	if (x->pct != y->pct)
		return x->pct < y->pct ? 1 : -1;
	return by_pid(a, b);
}

/* ---- by the iterator ---- */

static void on_record(void *ctx, const struct other_record *r)
{
	struct host_tasks *h = ctx;
	bool leads = r->tid == r->pid;
	struct task *t = add_task(leads ? &h->now : &h->threads);

	if (!t) /* without memory it is one that is not there */
		return;
	t->pid = (pid_t)r->pid;
	t->run_ns = r->run_ns;
	if (!leads)
		return;
	t->start = r->start / h->tick_ns;
	t->state = sched_iter_letter(r->state);
	t->worker = r->worker;
	snprintf(t->comm, sizeof(t->comm), "%.*s", (int)sizeof(r->comm), r->comm);
}

static int read_iter(struct host_tasks *h)
{
	int err;

	h->threads.n = 0;
	err = sched_iter_others(h->env->iter, on_record, h);
	if (err || !h->now.n)
		return err ? err : -ENOENT;
	qsort(h->now.task, h->now.n, sizeof(h->now.task[0]), by_pid);
	for (size_t i = 0; i < h->threads.n; i++) {
		struct task *leader = bsearch(&h->threads.task[i], h->now.task, h->now.n,
					      sizeof(h->now.task[0]), by_pid);

		if (leader)
			leader->run_ns += h->threads.task[i].run_ns;
	}
	return 0;
}

/* "kworker/0:1-events" of "kworker/0:1". */
static void full_name(const struct host_tasks *h, struct task *t)
{
	char buf[sizeof(t->comm)];

	if (!t->worker || t->pct <= 0 ||
	    sysroot_readf(h->env->root, buf, sizeof(buf), "proc/%d/comm", t->pid) <= 0)
		return;
	buf[strcspn(buf, "\n")] = '\0';
	memcpy(t->comm, buf, sizeof(t->comm));
}

/* ---- the busiest ---- */

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct pid_set {
	pid_t *pid;
	size_t n;
};

static struct pid_set vm_pids(struct inventory *inv)
{
	struct pid_set s = {.pid = calloc(inventory_nvm(inv) + 1, sizeof(pid_t))};

	for (struct inv_vm *vm = inventory_first(inv); s.pid && vm; vm = vm->next)
		if (s.n < inventory_nvm(inv))
			s.pid[s.n++] = vm->pid;
	if (s.pid)
		qsort(s.pid, s.n, sizeof(*s.pid), compare_pids);
	return s;
}

/* A VM's process, or a kernel thread that works for one (vhost-<pid>, kvm-pit/<pid>). */
static bool is_vms(const struct host_tasks *h, const struct pid_set *vms, const struct task *t)
{
	const struct inv_thread *known = inventory_thread(h->env->inv, t->pid);

	if (vms->pid && bsearch(&t->pid, vms->pid, vms->n, sizeof(*vms->pid), compare_pids))
		return true;
	return known && (!known->start || !t->start || known->start == t->start);
}

/* Takes out what is a VM's and works out what the rest used since the last reading. */
static void rate(struct host_tasks *h, int64_t now)
{
	struct pid_set vms = vm_pids(h->env->inv);
	double s = (double)(now - h->time) / 1e9;
	size_t kept = 0;

	for (size_t i = 0; i < h->now.n; i++) {
		struct task t = h->now.task[i], *b;

		if (is_vms(h, &vms, &t))
			continue;
		b = h->before.n ? bsearch(&t, h->before.task, h->before.n, sizeof(t), by_pid)
				: NULL;
		t.pct = -1;
		if (h->time && s > 0 && b && t.start == b->start && t.run_ns >= b->run_ns)
			t.pct = 100.0 * (double)(t.run_ns - b->run_ns) / (double)NS_PER_S / s;
		h->now.task[kept++] = t;
	}
	h->now.n = kept;
	free(vms.pid);
}

static void push(struct host_tasks *h)
{
	struct task_reading r[BUSIEST];
	struct task *best = calloc(h->now.n + 1, sizeof(*best));
	size_t n = 0;

	if (!best)
		return;
	if (h->now.n)
		memcpy(best, h->now.task, h->now.n * sizeof(*best));
	qsort(best, h->now.n, sizeof(*best), by_pct);
	for (; n < BUSIEST && n < h->now.n; n++) {
		full_name(h, &best[n]);
		r[n] = (struct task_reading){
			.pid = best[n].pid,
			.comm = best[n].comm,
			.cpu_pct = best[n].pct,
			.state = best[n].state,
		};
	}
	h->env->sink->tasks(h->env->sink->ctx, r, n);
	free(best);
}

/* From where it may be had; true: by the iterator. */
static bool read_all(struct host_tasks *h, int *err)
{
	bool works = h->env->iter && sched_iter_state(h->env->iter) == ITER_WORKS;

	h->now.n = 0;
	*err = works ? read_iter(h) : -ENOENT;
	if (!*err)
		return true;
	h->now.n = 0;
	*err = h->pids ? read_libproc(h) : read_files(h);
	return false;
}

int host_tasks_read(struct host_tasks *h)
{
	struct task_list swap;
	bool by_iter, anew;
	int64_t now;
	int err;

	by_iter = read_all(h, &err);
	if (err)
		return err;
	now = clock_mono_ns();
	/* What ticks counted is no baseline for what was measured. */
	anew = by_iter != h->by_iter;
	if (anew)
		h->before.n = 0;
	h->by_iter = by_iter;
	if (h->now.n)
		qsort(h->now.task, h->now.n, sizeof(h->now.task[0]), by_pid);
	rate(h, now);
	push(h);
	swap = h->before;
	h->before = h->now;
	h->now = swap;
	h->time = now;
	return anew;
}
