// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `sched`: the scheduler's counters of the threads that the inventory knows, and their
 * quotas.
 *
 * One pass of a BPF program reads them all (sched_iter.h). Where that may not be had, and for a
 * thread that it left out, stat and schedstat are read: those of vCPU threads every tick through
 * held descriptors, since a pread costs a quarter of an open, and a held one answers ESRCH after
 * death, so that a reused tid is never read under it.
 */
#include "sched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "procfs.h"
#include "sched_iter.h"
#include "sched_place.h"
#include "sched_priv.h"
#include "sched_quota.h"
#include "sysroot.h"

#define FIRST_NS (40 * NS_PER_MS) /* for a screen's first tick, but for so many threads */
#define FIRST_THREADS 500
#define OTHERS_EVERY 5 /* ticks: threads that are no vCPU, unless their pane is open */
#define PLACES_EVERY 10 /* ticks: pins and nodes while they are on screen */
#define PLACES_AT_ONCE 2000 /* vCPUs, 60 us each, when they are asked for; the rest in turn */
#define FDS_ELSEWHERE 1024 /* descriptors left for rings, files, the screen */
#define READ_APART_MAX NS_PER_MS /* between the clock and the counters */
#define TICK (4 * NS_PER_MS) /* run time is at most that old, where HZ is 250 */

/* A thread's cookie. */
struct sched_task {
	int stat, schedstat; /* held; -1: opened anew each time */
	bool tried; /* to hold them */
	bool asked; /* its switches, for it did not run through */
	struct thread_quota quota;
	struct sched_iter *wanted; /* the iterator that knows it, NULL: none */
	unsigned tick; /* in which it was read last */
	int64_t time; /* of the last reading, 0 none */
	unsigned readings;
	uint64_t run_ns, nr_sched, utime, stime;
	/* What stat, which scales ticks to run time, had more than the iterator when it took over.
	 */
	bool scaled;
	int64_t utime_more, stime_more;
};

struct sched {
	const struct collector_env *env;
	struct quotas *quotas;
	struct sched_iter *iter; /* NULL: not to be used */
	bool iter_works; /* it did in the last tick */
	bool iter_told; /* what came of it */
	unsigned tick;
	unsigned held, may_hold; /* descriptors */
	unsigned held_groups; /* of cgroups, kept by quotas */
	long hz; /* ticks of /proc a second */
	bool threads, pins;
	size_t pins_now; /* wanted since the last tick: so many more at once */
};

static void drop_task(struct inv_thread *t)
{
	struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

	if (!k)
		return;
	if (k->wanted)
		sched_iter_drop(k->wanted, t->tid, t);
	if (k->stat >= 0)
		close(k->stat);
	if (k->schedstat >= 0)
		close(k->schedstat);
	free(k);
	t->cookie[INV_COOKIE_SCHED] = NULL;
}

/* The inventory may outlive this collector: no state of ours is behind ctx. */
static void thread_free(void *ctx, struct inv_thread *t)
{
	(void)ctx;
	drop_task(t);
}

/*
 * Room for two descriptors a vCPU, and how many may be held so that the others, discovery
 * first (one a VM), never find the table full. Root may go above its hard limit.
 */
static unsigned raise_nofile(const struct sched *s)
{
	rlim_t elsewhere = FDS_ELSEWHERE + 2 * inventory_nvm(s->env->inv);
	rlim_t want = 2 * inventory_nvcpu(s->env->inv) + s->held_groups + elsewhere;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return 0;
	if (l.rlim_cur < want) {
		const struct rlimit more = {want, l.rlim_max > want ? l.rlim_max : want};
		const struct rlimit most = {l.rlim_max, l.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &more) < 0)
			setrlimit(RLIMIT_NOFILE, &most);
		getrlimit(RLIMIT_NOFILE, &l);
	}
	return l.rlim_cur > elsewhere ? (unsigned)(l.rlim_cur - elsewhere) : 0;
}

static int sched_open(const struct collector_env *env, void **state)
{
	struct inv_observer o = {.thread_free = thread_free};
	struct sched *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->env = env;
	s->hz = sysconf(_SC_CLK_TCK);
	s->quotas = quotas_new(env);
	err = s->quotas ? inventory_observe(env->inv, &o) : -ENOMEM;
	if (err) {
		quotas_free(s->quotas);
		free(s);
		return err;
	}
	s->iter = env->iter;
	if (s->iter && env->config && !env->config->first_frame)
		sched_iter_wait(s->iter); /* one source from the first baseline on */
	*state = s;
	return 0;
}

static void sched_close(void *state)
{
	struct sched *s = state;

	if (!s)
		return;
	for (struct inv_vm *vm = inventory_first(s->env->inv); vm; vm = vm->next)
		for (struct inv_thread *t = vm->threads; t; t = t->next)
			drop_task(t);
	quotas_free(s->quotas);
	free(s);
}

static void sched_demand(void *state, const struct demand *d)
{
	struct sched *s = state;

	s->threads = d->threads;
	if (d->pins && !s->pins)
		s->pins_now = PLACES_AT_ONCE;
	s->pins = d->pins;
}

/* ---- reading ---- */

static int hold(struct sched *s, const struct inv_thread *t, const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "proc/%d/task/%d/%s", t->pid, t->tid, file);
	fd = sysroot_openat(s->env->root, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	s->held++;
	return fd;
}

static struct sched_task *task_of(struct sched *s, struct inv_thread *t)
{
	struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return NULL;
		k->stat = k->schedstat = -1;
		t->cookie[INV_COOKIE_SCHED] = k;
	}
	/* Also one that was known before it was seen to run a vCPU. */
	if (t->role == ROLE_VCPU && !k->tried && !s->iter_works &&
	    s->held + s->held_groups + 2 <= s->may_hold) {
		k->tried = true;
		k->stat = hold(s, t, "stat");
		k->schedstat = hold(s, t, "schedstat");
	}
	return k;
}

static ssize_t read_file(const struct sched *s, const struct inv_thread *t, int fd,
			 const char *file, char *buf, size_t size)
{
	if (fd >= 0)
		return fd_read_once(fd, buf, size);
	return sysroot_readf(s->env->root, buf, size, "proc/%d/task/%d/%s", t->pid, t->tid, file);
}

static bool is_gone(ssize_t err)
{
	return err == -ESRCH || err == -ENOENT;
}

static bool switches(const char *status, const char *key, uint64_t *out)
{
	const char *p = strstr(status, key);

	if (p)
		*out = strtoull(p + strlen(key), NULL, 10);
	return p != NULL;
}

/* Did the thread, runnable now, all but run through since the last reading? */
static bool ran_through(const struct sched_task *k, const struct thread_reading *r)
{
	int64_t dt = r->time - k->time, run = (int64_t)(r->run_ns - k->run_ns);
	int64_t near = dt / 20 + TICK;

	return k->time && run > dt - near && run < dt + near;
}

/*
 * A runnable thread that did not run all the time waited, or slept and woke, or was
 * interrupted: only its switches tell (use.c). They cost 15 us, so only such a thread is
 * asked, and once more after it.
 */
static void add_switches(const struct sched *s, struct sched_task *k, struct thread_reading *r)
{
	char buf[4096];
	bool asked = k->asked;

	k->asked = r->state == 'R' && r->has_sched && !ran_through(k, r);
	if (r->state != 'R' || !r->has_sched || (!k->asked && !asked))
		return;
	if (sysroot_readf(s->env->root, buf, sizeof(buf), "proc/%d/task/%d/status", r->thread->pid,
			  r->thread->tid) <= 0)
		return;
	r->has_vol = switches(buf, "\nvoluntary_ctxt_switches:", &r->vol);
	r->has_nonvol = switches(buf, "\nnonvoluntary_ctxt_switches:", &r->nonvol);
}

static int fill_stat(const struct sched *s, struct inv_thread *t, const struct sched_task *k,
		     struct thread_reading *r)
{
	char buf[1024];
	struct proc_stat st;
	ssize_t n = read_file(s, t, k->stat, "stat", buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	if (procfs_parse_stat(buf, (size_t)n, &st) < 0)
		return -EBADMSG;
	if (t->start && st.nfields >= PROC_STAT_START && st.start != t->start)
		return -ESRCH; /* the tid is another thread's now */
	r->state = st.state;
	r->cpu = st.cpu;
	r->utime = st.utime;
	r->stime = st.stime;
	r->gtime = st.gtime;
	r->has_gtime = st.nfields >= PROC_STAT_GTIME;
	r->gstime = st.gstime;
	r->has_gstime = st.nfields >= PROC_STAT_GSTIME;
	r->minflt = st.minflt;
	r->majflt = st.majflt;
	r->blkio_ticks = st.blkio_ticks;
	return 0;
}

static int fill_schedstat(const struct sched *s, const struct inv_thread *t,
			  const struct sched_task *k, struct thread_reading *r)
{
	char buf[128];
	struct proc_schedstat ss;
	ssize_t n = read_file(s, t, k->schedstat, "schedstat", buf, sizeof(buf));

	if (n < 0)
		return is_gone(n) && k->schedstat >= 0 ? -ESRCH : 0;
	if (procfs_parse_schedstat(buf, (size_t)n, &ss) == 0) {
		r->has_sched = true;
		r->run_ns = ss.run_ns;
		r->delay_ns = ss.delay_ns;
		r->nr_sched = ss.nr_sched;
	}
	return 0;
}

/*
 * All counters of one moment. stat comes first: on a CPU without a tick (nohz_full) reading the
 * thread's own stat brings its run time up to date; schedstat alone, or after the process's
 * stat, would show nothing for a second and then all of it, as if it had been starved. The figures
 * of an interval are as good as its Δt: where this process lost the CPU between clock and counters,
 * they are read once more.
 */
static int fill(const struct sched *s, struct inv_thread *t, const struct sched_task *k,
		struct thread_reading *r)
{
	int64_t begin = 0;

	for (int i = 0; i < 2; i++) {
		int err = fill_stat(s, t, k, r);

		begin = clock_mono_ns();
		if (!err)
			err = fill_schedstat(s, t, k, r);
		if (err)
			return err;
		r->time = clock_mono_ns();
		if (r->time - begin < READ_APART_MAX)
			break;
	}
	r->time = begin + (r->time - begin) / 2;
	return 0;
}

/* Did it run, or want to, since the last reading? One that its quota holds back is runnable. */
static bool was_ready(const struct sched_task *k, const struct thread_reading *r)
{
	int64_t dt = r->time - k->time;

	return !r->has_sched || !k->time || r->state == 'R' ||
	       (int64_t)(r->run_ns - k->run_ns) > dt / 100;
}

static void hand_on(struct sched *s, struct sched_task *k, const struct thread_reading *r)
{
	k->quota.cpu = r->cpu;
	k->quota.ready = was_ready(k, r);
	k->tick = s->tick;
	k->time = r->time;
	k->readings++;
	k->run_ns = r->run_ns;
	k->nr_sched = r->nr_sched;
	k->utime = r->utime;
	k->stime = r->stime;
	s->env->sink->thread(s->env->sink->ctx, r);
}

/* Two sources of ticks, scaled and not: from one to the other none may seem to go backwards. */
static void keep_up(const struct sched_task *k, struct thread_reading *r)
{
	if (!k->scaled || !k->time)
		return;
	r->utime = r->utime > k->utime ? r->utime : k->utime;
	r->stime = r->stime > k->stime ? r->stime : k->stime;
}

static void read_thread(struct sched *s, struct inv_thread *t)
{
	struct sched_task *k = task_of(s, t);
	struct thread_reading r = {.thread = t, .cpu = -1};
	int err;

	if (!k)
		return;
	err = fill(s, t, k, &r);
	if (is_gone(err)) {
		inventory_thread_gone(s->env->inv, t);
		return;
	}
	if (err)
		return;
	add_switches(s, k, &r);
	keep_up(k, &r);
	hand_on(s, k, &r);
}

/* ---- all of them in one pass ---- */

/*
 * On a CPU without a tick (nohz_full) the kernel brings the run time of a thread up to date when
 * its stat is read, but for the iterator it stands still for a second.
 */
static bool stands_still(const struct sched_task *k, const struct thread_reading *r)
{
	return r->on_cpu && k->time && r->nr_sched == k->nr_sched && r->run_ns == k->run_ns &&
	       r->time - k->time > 2 * TICK;
}

static uint64_t ticks_of(uint64_t ns, long hz)
{
	return ns / (uint64_t)(NS_PER_S / hz);
}

/*
 * The iterator has ticks as they fell, stat scales them so that they add up to the run time. A
 * thread that was read from files before goes on from there, or its shares would begin anew.
 */
static void add_scaled(const struct sched *s, struct sched_task *k, struct thread_reading *r)
{
	struct thread_reading before = *r;

	if (!k->scaled && k->time && fill_stat(s, r->thread, k, &before) == 0) {
		k->utime_more = (int64_t)(before.utime - r->utime);
		k->stime_more = (int64_t)(before.stime - r->stime);
	}
	r->utime += (uint64_t)k->utime_more;
	r->stime += (uint64_t)k->stime_more;
	keep_up(k, r);
	k->scaled = true;
}

static void on_record(void *ctx, void *token, const struct task_record *c)
{
	struct sched *s = ctx;
	struct inv_thread *t = token;
	struct sched_task *k = t->cookie[INV_COOKIE_SCHED];
	struct thread_reading r = {
		.thread = t,
		.time = (int64_t)c->time,
		.has_sched = true,
		.has_gtime = true,
		.has_vol = true,
		.has_nonvol = true,
		.has_on_cpu = true,
		.state = sched_iter_letter(c->state),
		.cpu = c->cpu,
		.on_cpu = c->on_cpu,
		.run_ns = c->run_ns,
		.delay_ns = c->delay_ns,
		.nr_sched = c->nr_sched,
		.utime = ticks_of(c->utime, s->hz),
		.stime = ticks_of(c->stime, s->hz),
		.gtime = ticks_of(c->gtime, s->hz),
		.minflt = c->minflt,
		.majflt = c->majflt,
		.blkio_ticks = ticks_of(c->blkio_ns, s->hz),
		.vol = c->vol,
		.nonvol = c->nonvol,
	};

	if (t->flags & INV_GONE)
		return;
	if (t->start && ticks_of(c->start, s->hz) != t->start)
		return; /* another thread's tid by now, or /proc counts from another boot */
	if (stands_still(k, &r))
		return;
	add_scaled(s, k, &r);
	hand_on(s, k, &r);
}

/* Threads that the iterator does not know yet; what it knows it forgets when they are freed. */
static void want_all(struct sched *s)
{
	for (struct inv_vm *vm = inventory_first(s->env->inv); vm; vm = vm->next)
		for (struct inv_thread *t = vm->threads; t; t = t->next) {
			struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

			if (t->flags & INV_GONE || (k && k->wanted))
				continue;
			k = task_of(s, t);
			if (k && sched_iter_want(s->iter, t->tid, t) == 0)
				k->wanted = s->iter;
		}
}

static void read_in_one_pass(struct sched *s)
{
	enum sched_iter_state state = s->iter ? sched_iter_state(s->iter) : ITER_LOADING;

	if (state == ITER_LOADING)
		return;
	if (!s->iter_told)
		sched_say_iter(s->env, s->iter, state == ITER_WORKS);
	s->iter_told = true;
	if (state == ITER_FAILED)
		return;
	s->iter_works = true;
	want_all(s);
	if (sched_iter_read(s->iter, on_record, s) < 0)
		s->iter_works = false; /* by files what is missing; the next tick tries again */
}

static bool due(const struct sched *s, const struct inv_thread *t)
{
	const struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

	if (t->flags & INV_GONE || (k && k->tick == s->tick))
		return false;
	/* A thread that is new needs its baseline and its first figures at once. */
	return t->role == ROLE_VCPU || s->threads || !k || k->readings < 2 ||
	       (s->tick + (unsigned)t->tid) % OTHERS_EVERY == 0;
}

static void read_vm(struct sched *s, struct inv_vm *vm)
{
	for (struct inv_thread *t = vm->threads; t; t = t->next)
		if (due(s, t))
			read_thread(s, t);
}

static void count_quotas(struct sched *s, struct inv_vm *vm, bool vcpus)
{
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

		if (k && (t->role == ROLE_VCPU) == vcpus && !(t->flags & INV_GONE))
			quotas_count(s->quotas, &k->quota, t);
	}
}

static void push_quotas(struct sched *s, struct inv_vm *vm)
{
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

		if (k && k->quota.tick && t->role == ROLE_VCPU && !(t->flags & INV_GONE))
			quotas_push(s->quotas, &k->quota, t, clock_mono_ns());
	}
}

static void count_held(struct sched *s)
{
	s->held = 0;
	for (struct inv_vm *vm = inventory_first(s->env->inv); vm; vm = vm->next)
		for (struct inv_thread *t = vm->threads; t; t = t->next) {
			const struct sched_task *k = t->cookie[INV_COOKIE_SCHED];

			if (k)
				s->held += (unsigned)((k->stat >= 0) + (k->schedstat >= 0));
		}
}

/* Each VM in its turn: its threads' files and its memory's map are costly. */
static void read_places(struct sched *s)
{
	for (struct inv_vm *vm = inventory_first(s->env->inv); vm; vm = vm->next) {
		bool now = s->pins_now >= vm->nvcpu && s->pins_now > 0;

		if (!now && (s->tick + vm->id) % PLACES_EVERY)
			continue;
		s->pins_now -= now ? vm->nvcpu : 0;
		sched_places(s->env, vm);
	}
	s->pins_now = 0;
}

static int sched_tick(void *state, int64_t now, int64_t watermark)
{
	struct sched *s = state;
	struct inv_vm *first = inventory_first(s->env->inv);
	bool limited = s->tick == 0 && s->env->config && s->env->config->first_frame;
	int64_t deadline = clock_mono_ns() + FIRST_NS;
	size_t done = 0;

	(void)watermark;
	s->tick++;
	s->may_hold = raise_nofile(s);
	count_held(s);
	read_in_one_pass(s);
	for (struct inv_vm *vm = first; vm; vm = vm->next)
		if (!limited || done < FIRST_THREADS || clock_mono_ns() < deadline) {
			read_vm(s, vm);
			done += vm->nthread;
		}
	s->held_groups =
		quotas_tick(s->quotas, s->may_hold > s->held ? s->may_hold - s->held : 0, now);
	for (struct inv_vm *vm = first; vm; vm = vm->next) {
		count_quotas(s, vm, true);
		count_quotas(s, vm, false);
	}
	for (struct inv_vm *vm = first; vm; vm = vm->next)
		push_quotas(s, vm);
	quotas_sweep(s->quotas);
	if (s->pins)
		read_places(s);
	return 0;
}

const struct collector collector_sched = {
	.name = "sched",
	.what = "CPU, guest time, steal and quota of each thread of a VM, from /proc and cgroups",
	.probe = sched_probe,
	.open = sched_open,
	.tick = sched_tick,
	.demand = sched_demand,
	.close = sched_close,
};
