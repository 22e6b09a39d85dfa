// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `vms`: finds the VMs of every VMM, their vCPUs and threads.
 *
 * A tick is cheap: debugfs' kvm folder and the list of processes are compared with what
 * is known, each known VMM is asked how many threads it has, and only what changed is
 * looked at. What a first look at a large host takes is spread over slices (a timer in
 * the engine's epoll), so that no frame waits for it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "vms.h"
#include "vms_priv.h"

#define SLICE_NS (8 * NS_PER_MS)
#define PAUSE_NS (4 * NS_PER_MS) /* between slices: events are to be read too */
#define OPEN_NS (40 * NS_PER_MS) /* a small host is all there at the first frame */
#define WAIT_SCANS 100 /* a vCPU that was made and never runs is not asked for ever */
#define VCPUS_YOUNG 4 /* looks: so long a VMM's vCPUs may still find their threads */
/* A vCPU changes threads without a trace: seen so soon, where that takes few files a second. */
#define VCPUS_EVERY (5 * NS_PER_S)
/* After an answer that left it open: it was the other's turn by then. */
#define UNSURE_PAUSE NS_PER_S
#define VCPUS_SELDOM (40 * NS_PER_S) /* and on the largest hosts */
#define VCPUS_A_SECOND 40 /* of 25 us each */
#define ASK_SHARE 10 /* answers take at most one part in so many of the time */
#define BUF_SIZE (128 * 1024)

static void free_note(void *ctx, struct inv_vm *vm)
{
	(void)ctx;
	free(vm->cookie[INV_COOKIE_VMS]);
	vm->cookie[INV_COOKIE_VMS] = NULL;
}

/* The sink is told when a source comes or goes, not every tick. */
static void say_sources(struct vms *s)
{
	const struct collector_env env = {.root = s->root};
	struct probes p = {0};
	char now[sizeof(s->said)];

	if (!s->sink || !s->sink->source)
		return;
	snprintf(now, sizeof(now), "%d", s->dirs.usable);
	if (!strcmp(now, s->said))
		return;
	memcpy(s->said, now, sizeof(now));
	vms_probe(&env, &p);
	for (size_t i = 0; i < p.n; i++)
		s->sink->source(s->sink->ctx, p.p[i].source, p.p[i].state, p.p[i].why, p.p[i].mend);
}

/* Looks at processes whose time has come; false: the deadline came first. */
static bool check_due(struct vms *s, int64_t now, int64_t deadline)
{
	for (size_t i = 0; i < s->procs.n; i++) {
		if (s->procs.p[i].due > now)
			continue;
		if (clock_mono_ns() >= deadline)
			return false;
		vms_procs_check(s, &s->procs.p[i], now);
	}
	return true;
}

static void arm(struct vms *s, bool more)
{
	const struct itimerspec t = {.it_value.tv_nsec = more ? PAUSE_NS : 0};

	if (more || s->armed)
		timerfd_settime(s->timer, 0, &t, NULL);
	s->armed = more;
}

static void slice(struct vms *s, int64_t now, int64_t budget)
{
	int64_t deadline = clock_mono_ns() + budget;
	bool done = vms_dirs_resolve(s, now, deadline) && check_due(s, now, deadline);

	vms_procs_attach_helpers(s);
	arm(s, !done);
}

static struct vmm *vmm_of(const struct vms *s, const struct inv_thread *t)
{
	for (size_t i = 0; i < s->nvmm; i++)
		if (s->vmm[i]->pid == t->vm->pid && s->vmm[i]->start == t->vm->start)
			return s->vmm[i];
	return NULL;
}

/*
 * A vCPU's first run: debugfs names its thread from now on. A VM that starts a thousand of them
 * asks a thousand times, and each answer takes a thousand files.
 */
static void answer(void *ctx, struct inv_thread *t)
{
	struct vms *s = ctx;
	struct vmm *m = vmm_of(s, t);
	int64_t now = clock_mono_ns();

	if (!m || m->died || now - m->asked < ASK_SHARE * m->ask_cost)
		return;
	if (!vms_scan(s, m, LOOK_VCPUS))
		return;
	m->asked = clock_mono_ns();
	m->ask_cost = m->asked - now;
}

static void vms_close(void *state)
{
	struct vms *s = state;

	if (!s)
		return;
	inventory_on_ask(s->inv, NULL, NULL);
	while (s->nvmm)
		vms_drop(s, s->vmm[s->nvmm - 1]);
	vms_procs_free(s);
	vms_dirs_free(s);
	if (s->timer >= 0)
		close(s->timer);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->vmm);
	free(s->buf);
	free(s);
}

static int vms_open(const struct collector_env *env, void **state)
{
	const struct inv_observer o = {.vm_free = free_note};
	struct epoll_event timer = {.events = EPOLLIN};
	struct vms *s = calloc(1, sizeof(*s));
	int64_t now = clock_mono_ns();
	int err = -ENOMEM;

	*state = NULL;
	if (!s)
		return err;
	s->root = env->root;
	s->inv = env->inv;
	s->sink = env->sink;
	s->buf_size = BUF_SIZE;
	s->buf = malloc(s->buf_size);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!s->buf)
		goto fail;
	err = s->timer < 0 || s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->timer, &timer)
		      ? -errno
		      : inventory_observe(s->inv, &o);
	if (err)
		goto fail;
	inventory_on_ask(s->inv, answer, s);
	s->foreign_ns = sysroot_is_foreign(s->root);
	vms_dirs_list(s);
	vms_procs_list(s, now);
	slice(s, now, OPEN_NS);
	say_sources(s);
	*state = s;
	return 0;
fail:
	vms_close(s);
	return err;
}

static int vms_fd(void *state)
{
	return ((struct vms *)state)->epoll;
}

/* Processes that end are noticed when they do, so that the tick knows that it was before W. */
static int vms_ready(void *state, int64_t now)
{
	struct vms *s = state;
	struct epoll_event ev[16];
	int n = epoll_wait(s->epoll, ev, 16, 0);
	bool timer = false;
	uint64_t count;

	for (int i = 0; i < n; i++) {
		struct vmm *m = ev[i].data.ptr;

		if (!m) {
			timer = true;
			continue;
		}
		if (!m->died)
			m->died = now;
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, m->pidfd, NULL);
	}
	if (!timer)
		return 0;
	s->armed = false;
	if (read(s->timer, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	slice(s, now, SLICE_NS); /* last: it may free a VMM */
	return 0;
}

static bool lost_its_vm(const struct vms *s, const struct vmm *m)
{
	for (size_t i = 0; i < m->nvm; i++) {
		int fd;

		if (!strncmp(m->vm[i]->key, "fd:", 3) && !procfs_parse_id(m->vm[i]->key + 3, &fd) &&
		    !vms_fd_is_vm(s, m->pid, fd))
			return true;
	}
	return false;
}

/*
 * A process that ended stays until the events of its last moments have been handed over: the
 * watermark is some milliseconds behind, and they are to find their VM.
 */
static void end_vmm(struct vms *s, struct vmm *m, int64_t now, int64_t watermark)
{
	if (!m->died)
		m->died = now;
	if (watermark >= m->died)
		vms_drop(s, m);
}

static void refresh_vmm(struct vms *s, struct vmm *m, int64_t now, int64_t watermark)
{
	bool periodic = (s->tick + m->phase) % VMS_RESCAN_TICKS == 0;
	long n = m->died ? 0 : vms_nthreads(s, m);

	if (!n)
		end_vmm(s, m, now, watermark);
	else if (m->dirty || lost_its_vm(s, m))
		vms_scan(s, m, LOOK_ALL);
	else if ((periodic && m->scans < VCPUS_YOUNG) || (m->waiting && m->scans < WAIT_SCANS))
		vms_scan(s, m, LOOK_VCPUS);
	else if (periodic || n != m->nthreads || m->young || (m->unnamed && m->scans < WAIT_SCANS))
		vms_scan(s, m, LOOK_THREADS);
}

/* Each VMM in its turn: all of them in five seconds, or as few as is cheap. */
static void look_again(struct vms *s, int64_t now)
{
	int64_t every = (int64_t)inventory_nvcpu(s->inv) * NS_PER_S / VCPUS_A_SECOND;

	if (every > VCPUS_SELDOM)
		every = VCPUS_SELDOM;
	if (every < VCPUS_EVERY)
		every = VCPUS_EVERY;
	for (size_t i = 0; i < s->nvmm; i++) {
		struct vmm *m = s->vmm[i];

		if (m->died || now < m->vcpus_due)
			continue;
		if (m->vcpus_due)
			vms_look_vcpus(s, m);
		/* The first time it was looked at a moment ago; they are spread from then on. */
		m->vcpus_due = now + (m->vcpus_due ? every : every * (m->phase % 16 + 1) / 16);
	}
}

static int vms_tick(void *state, int64_t now, int64_t watermark)
{
	struct vms *s = state;
	int err;

	s->tick++;
	vms_dirs_list(s);
	err = vms_procs_list(s, now);
	/* Backwards: a VMM that ended is taken out, those behind it have been seen. */
	for (size_t i = s->nvmm; i-- > 0;)
		if (i < s->nvmm)
			refresh_vmm(s, s->vmm[i], now, watermark);
	look_again(s, now);
	if (vms_dirs_ask(s, now))
		vms_procs_due(s, now);
	slice(s, now, SLICE_NS);
	say_sources(s);
	return err;
}

/* The provisional VM of this thread has served, or its thread is gone. */
static void end_provisional(struct vms *s, pid_t tid, const char *comm, pid_t pid)
{
	struct inv_vm *vm = inventory_find(s->inv, tid, 0, "");

	if (vm)
		inventory_provisional_gone(s->inv, vm, comm, pid);
}

static bool is_provisional(struct vms *s, pid_t tid)
{
	const struct inv_thread *t = inventory_thread(s->inv, tid);

	return t && t->flags & INV_PROVISIONAL;
}

/* An event came from it, so it runs a vCPU, whatever else may be known of its process. */
static void guess_from_event(struct vms *s, struct vmm *m, pid_t tid)
{
	struct proc_stat st;
	struct inv_vm *vm;

	if (m->nvm || vms_read_stat(s, m->pid, tid, &st))
		return;
	vm = vms_take_vm(s, m, "guess", -1, true);
	if (!vm)
		return;
	vm->flags |= INV_GUESSED;
	inventory_add_thread(s->inv, vm, m->pid, tid, st.start, ROLE_VCPU);
	m->no_fds = true;
}

static void find_owner(struct vms *s, pid_t tid, pid_t pid, int64_t now)
{
	struct proc_stat st;
	struct vms_proc *p;
	struct vmm *m;

	if (vms_read_stat(s, pid, 0, &st)) {
		end_provisional(s, tid, "", 0);
		return;
	}
	p = vms_procs_get(s, pid, now);
	m = p ? vms_vmm_get(s, p, &st) : NULL;
	if (!m)
		return;
	m->dirty = true;
	vms_dirs_claim(s, pid);
	if (vms_scan(s, m, LOOK_ALL) && !is_provisional(s, tid))
		return;
	/* vms_scan() may have dropped it, and with it the pointer. */
	p = vms_procs_get(s, pid, now);
	m = p ? vms_vmm_get(s, p, &st) : NULL;
	if (!m)
		return;
	guess_from_event(s, m, tid);
	if (m->nvm)
		vms_scan(s, m, LOOK_ALL);
	else
		vms_drop(s, m);
	if (is_provisional(s, tid))
		end_provisional(s, tid, st.comm, pid);
}

/* A known thread that uses guest time runs a vCPU, whichever: debugfs knows. */
static void find_vcpu(struct vms *s, pid_t tid, int64_t now)
{
	struct inv_thread *t = inventory_thread(s->inv, tid);
	struct vmm *m = t && !t->vcpu ? vmm_of(s, t) : NULL;

	if (!m || now < m->unsure_until)
		return;
	answer(s, t);
	m = vmm_of(s, t); /* it may have been dropped; the thread is freed later */
	if (m && !t->vcpu)
		m->unsure_until = now + UNSURE_PAUSE;
}

static void resolve_one(struct vms *s, pid_t tid, int64_t now)
{
	pid_t pid = vms_tgid(s, tid);

	if (pid > 0) {
		s->unknown = inventory_thread(s->inv, tid);
		s->unknown_pid = pid;
		find_owner(s, tid, pid, now);
		s->unknown = NULL;
	} else {
		end_provisional(s, tid, "", 0);
	}
}

int vms_resolve(void *state, int64_t now)
{
	struct vms *s = state;
	bool listed = false;
	pid_t tid;

	while (s && (tid = inventory_take_unknown(s->inv))) {
		if (!listed)
			vms_dirs_list(s); /* so that its VM gets its folder's name */
		listed = true;
		if (is_provisional(s, tid))
			resolve_one(s, tid, now);
		else
			find_vcpu(s, tid, now);
		/* Its thread found its VM, perhaps with another's: the empty shell goes. */
		if (!is_provisional(s, tid))
			end_provisional(s, tid, "", 0);
	}
	return 0;
}

void vms_progress(void *state, unsigned *done, unsigned *all)
{
	const struct vms *s = state;

	*done = *all = 0;
	if (!s)
		return;
	if (s->dirs.usable) {
		*all = (unsigned)s->dirs.n;
		*done = (unsigned)(s->dirs.n - vms_dirs_untried(s));
	} else {
		*all = (unsigned)s->procs.n;
		*done = (unsigned)(s->procs.n - s->procs.unchecked);
	}
}

const struct collector collector_vms = {
	.name = "vms",
	.what = "finds VMs, their vCPUs and threads: debugfs, /proc, libvirt's files",
	.probe = vms_probe,
	.open = vms_open,
	.fd = vms_fd,
	.ready = vms_ready,
	.tick = vms_tick,
	.close = vms_close,
};
