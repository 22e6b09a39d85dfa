// SPDX-License-Identifier: GPL-2.0-only
/*
 * All processes: each is looked at when it is new, at the age of one and of five seconds (it
 * may open /dev/kvm then), and after that every 30 to 60 seconds.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "grow.h"
#include "vms_identify.h"
#include "vms_priv.h"

#define SECOND NS_PER_S
#define SETTLED_EVERY (30 * SECOND) /* and up to as much again */
#define YOUNG_NS (5 * SECOND)
#define LIST_TICKS 4 /* where debugfs tells of new VMs */

/* The number given out last, as long as nobody was born since there is nothing to list. */
static pid_t last_pid(const struct vms *s)
{
	char buf[128];
	const char *blank;

	/* The file speaks of the reader's own namespace, not of the procfs that it is in. */
	if (!sysroot_is_host(s->root) ||
	    sysroot_read(s->root, "proc/loadavg", buf, sizeof(buf)) <= 0)
		return 0;
	blank = strrchr(buf, ' ');
	return blank ? (pid_t)strtol(blank, NULL, 10) : 0;
}

static int by_pid(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Fills procs.list; the number of pids or -errno. */
static ssize_t read_list(struct vms *s)
{
	struct vms_procs *l = &s->procs;
	bool sorted = true;
	size_t n = 0;
	struct dirent *e;
	DIR *d = sysroot_opendir(s->root, "proc");

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		int pid;

		if (procfs_parse_id(e->d_name, &pid) || !pid)
			continue;
		if (!grow(&l->list, n, &l->list_room, sizeof(*l->list)))
			break;
		sorted = sorted && (!n || l->list[n - 1] < pid);
		l->list[n++] = pid;
	}
	closedir(d);
	if (!sorted)
		qsort(l->list, n, sizeof(*l->list), by_pid);
	return (ssize_t)n;
}

static int reserve(struct vms_procs *l, size_t n)
{
	struct vms_proc *bigger;

	if (n <= l->room)
		return 0;
	n += n / 2;
	bigger = realloc(l->p, n * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	l->p = bigger;
	l->room = n;
	return 0;
}

/* Where pid stands in the table, or would. */
static size_t place(const struct vms_procs *l, pid_t pid)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->p[mid].pid < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct vms_proc *vms_procs_get(struct vms *s, pid_t pid, int64_t now)
{
	struct vms_procs *l = &s->procs;
	size_t at = place(l, pid);

	if (at < l->n && l->p[at].pid == pid)
		return &l->p[at];
	if (reserve(l, l->n + 1))
		return NULL;
	memmove(&l->p[at + 1], &l->p[at], (l->n - at) * sizeof(*l->p));
	l->p[at] = (struct vms_proc){.pid = pid, .due = now, .born = now};
	l->n++;
	l->unchecked++;
	return &l->p[at];
}

/* Its VMs are ended by the tick, which asks every VMM. */
static void forget(struct vms *s, struct vms_proc *p)
{
	struct inv_thread *t = p->attached ? inventory_thread(s->inv, p->pid) : NULL;

	if (t && t->pid == p->pid && t->role == ROLE_HELPER)
		inventory_thread_gone(s->inv, t);
}

/* Takes out who is not listed any more; counts the new ones of the listing. */
static size_t drop_missing(struct vms *s, size_t n)
{
	struct vms_procs *l = &s->procs;
	size_t i = 0, keep = 0, known = 0;

	for (size_t k = 0; k < l->n; k++) {
		struct vms_proc p = l->p[k];

		while (i < n && l->list[i] < p.pid)
			i++;
		if (i < n && l->list[i] == p.pid) {
			l->p[keep++] = p;
			known++;
			continue;
		}
		l->p[k].vmm = NULL;
		l->unchecked -= p.state == PROC_NEW;
		forget(s, &p);
	}
	l->n = keep;
	return n - known;
}

/* From the ends backwards, so that one pass moves everything to its place. */
static void insert_new(struct vms_procs *l, size_t n, size_t fresh, int64_t now)
{
	size_t old = l->n, to = l->n + fresh;

	l->n = to;
	while (n && to > old) {
		pid_t pid = l->list[n - 1];

		if (old && l->p[old - 1].pid == pid) {
			l->p[--to] = l->p[--old];
		} else {
			l->p[--to] = (struct vms_proc){.pid = pid, .due = now, .born = now};
			l->unchecked++;
		}
		n--;
	}
}

int vms_procs_list(struct vms *s, int64_t now)
{
	struct vms_procs *l = &s->procs;
	size_t fresh;
	ssize_t n;
	pid_t last;

	if (s->dirs.usable && s->tick % LIST_TICKS)
		return 0;
	last = last_pid(s);
	if (last && last == l->last_pid && s->tick % VMS_RESCAN_TICKS)
		return 0;
	n = read_list(s);
	if (n < 0)
		return (int)n;
	l->last_pid = last;
	fresh = drop_missing(s, (size_t)n);
	if (reserve(l, l->n + fresh))
		return -ENOMEM;
	insert_new(l, (size_t)n, fresh, now);
	return 0;
}

/* Its descriptors may not be read: threads that look like vCPUs are all there is. */
static bool guess(struct vms *s, const struct proc_stat *st)
{
	return (st->gtime || vms_vmm_of(st->comm)) && vms_looks_like_vmm(s, st->pid);
}

/*
 * Is it worth the reading of all its descriptors? With debugfs new VMs show there, and whose a
 * folder is that bears the number of a thread that ended and whose vCPUs never ran, only
 * descriptors tell.
 */
static bool want_fds(const struct vms *s, const struct proc_stat *st)
{
	if (!s->dirs.usable || s->dirs.unresolved || st->gtime)
		return true;
	for (size_t i = 0; i < s->dirs.n; i++)
		if (s->dirs.d[i].pid == st->pid)
			return true;
	return false;
}

/* All of it has ended, and nobody has waited for it: what it still tells is of the past. */
static bool is_over(const struct proc_stat *st)
{
	return (st->state == 'Z' || st->state == 'X') && st->num_threads <= 1;
}

/* 1: it has a VM; 0: none; 2: it has opened /dev/kvm and may soon have one. */
static int look(struct vms *s, const struct vms_proc *p, const struct proc_stat *st)
{
	struct kvm_fds fds;
	int found, err;

	if (is_over(st) || !want_fds(s, st))
		return 0;
	err = vms_fds_read(s, p->pid, &fds);
	if (err == -EACCES || err == -EPERM)
		return guess(s, st);
	found = fds.nvm ? 1 : fds.dev ? 2 : 0;
	vms_fds_free(&fds);
	return found;
}

/*
 * When it was born, on our clock. Of a recorded tree's processes that is not known: those of
 * the first listing are taken for old ones, as they are on a host that has run for a while.
 */
static int64_t birth(const struct vms *s, uint64_t start, int64_t now)
{
	struct timespec up;
	int64_t age;

	if (!sysroot_is_live(s->root) || clock_gettime(CLOCK_BOOTTIME, &up))
		return s->tick ? now : now - 2 * SETTLED_EVERY;
	age = timespec_ns(up) - (int64_t)(start * (uint64_t)(SECOND / sysconf(_SC_CLK_TCK)));
	return age > 0 ? now - age : now;
}

static int64_t next_due(const struct vms_proc *p, int64_t now, bool eager)
{
	if (eager && now - p->born < 2 * SETTLED_EVERY)
		return now; /* a VMM that starts: every tick until its VM is there */
	if (now - p->born < SECOND)
		return p->born + SECOND;
	if (now - p->born < YOUNG_NS)
		return p->born + YOUNG_NS;
	return now + SETTLED_EVERY + p->pid % 30 * SECOND; /* not all in one tick */
}

static void set_state(struct vms_procs *l, struct vms_proc *p, enum proc_state state)
{
	l->unchecked -= p->state == PROC_NEW && state != PROC_NEW;
	p->state = (uint8_t)state;
}

/* Another process has the number now. */
static void start_anew(struct vms *s, struct vms_proc *p, uint64_t start, int64_t now)
{
	struct vms_proc was = *p;

	p->vmm = NULL;
	p->attached = p->kthread = false;
	p->helper_of = 0;
	p->born = birth(s, start, now);
	p->start = start;
	if (p->state != PROC_NEW)
		s->procs.unchecked++;
	p->state = PROC_NEW;
	if (was.start)
		forget(s, &was);
}

int vms_procs_check(struct vms *s, struct vms_proc *p, int64_t now)
{
	struct proc_stat st;
	struct vmm *m;
	int found, err = vms_read_stat(s, p->pid, 0, &st);

	if (err) {
		p->due = now + SECOND; /* the next listing takes it out */
		set_state(&s->procs, p, PROC_YOUNG);
		return err;
	}
	if (p->start != st.start)
		start_anew(s, p, st.start, now);
	p->kthread = st.flags & PROC_PF_KTHREAD;
	if (p->kthread) {
		p->helper_of = vms_helper_of(st.comm, &p->inner);
		p->due = INT64_MAX;
		set_state(&s->procs, p, PROC_SETTLED);
		return 0;
	}
	found = p->vmm ? 0 : look(s, p, &st);
	p->due = next_due(p, now, !p->vmm && (found == 2 || vms_vmm_of(st.comm)));
	set_state(&s->procs, p, p->state == PROC_NEW ? PROC_YOUNG : PROC_SETTLED);
	m = found == 1 ? vms_vmm_get(s, p, &st) : NULL;
	if (m) {
		m->no_fds = true; /* until its descriptors are read */
		vms_scan(s, m, LOOK_ALL);
	}
	return 0;
}

void vms_procs_due(struct vms *s, int64_t now)
{
	for (size_t i = 0; i < s->procs.n; i++)
		if (!s->procs.p[i].kthread)
			s->procs.p[i].due = now;
}

/*
 * Some thread of the VM that a helper works for, NULL none is known. Of several containers whose
 * VMMs have the number, the youngest that was there before the helper.
 */
static struct inv_thread *owner_of(const struct vms *s, const struct vms_proc *p)
{
	const struct vmm *best = NULL;

	if (!p->inner)
		return inventory_thread(s->inv, p->helper_of);
	for (size_t i = 0; i < s->nvmm; i++) {
		const struct vmm *m = s->vmm[i];

		if (m->inner == p->helper_of && m->start <= p->start &&
		    (!best || m->start > best->start))
			best = m;
	}
	return best ? inventory_thread(s->inv, best->pid) : NULL;
}

void vms_procs_attach_helpers(struct vms *s)
{
	for (size_t i = 0; i < s->procs.n; i++) {
		struct vms_proc *p = &s->procs.p[i];
		struct inv_thread *owner, *t;
		struct proc_stat st;

		if (!p->helper_of || (p->attached && inventory_thread(s->inv, p->pid)))
			continue;
		owner = owner_of(s, p);
		if (!owner || owner->flags & INV_PROVISIONAL || vms_read_stat(s, p->pid, 0, &st))
			continue;
		t = inventory_add_thread(s->inv, owner->vm, p->pid, p->pid, st.start, ROLE_HELPER);
		if (!t)
			continue;
		memcpy(t->comm, st.comm, sizeof(t->comm) - 1);
		p->attached = true;
	}
}

void vms_procs_free(struct vms *s)
{
	free(s->procs.p);
	free(s->procs.list);
}
