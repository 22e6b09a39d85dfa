// SPDX-License-Identifier: GPL-2.0-only
/*
 * One look at a process that holds VMs: which VMs, which vCPUs, which threads.
 *
 * Anything may end in the middle of it; what cannot be read any more is simply not seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "vms_identify.h"
#include "vms_priv.h"

/* Descriptors are looked at again now and then even where debugfs tells what changes. */
#define FULL_EVERY 16

int vms_read_stat(const struct vms *s, pid_t pid, pid_t tid, struct proc_stat *st)
{
	char buf[1024];
	ssize_t n;

	if (tid)
		n = sysroot_readf(s->root, buf, sizeof(buf), "proc/%d/task/%d/stat", (int)pid,
				  (int)tid);
	else
		n = sysroot_readf(s->root, buf, sizeof(buf), "proc/%d/stat", (int)pid);
	return n < 0 ? (int)n : procfs_parse_stat(buf, (size_t)n, st);
}

/* What says nothing about a process, but of ourselves. */
static bool is_our_lack(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

long vms_nthreads(const struct vms *s, const struct vmm *m)
{
	struct proc_stat ps;
	struct stat st;
	int err;

	/* The folder counts its threads as links, none when the process is gone. */
	if (m->task_fd >= 0 && !fstat(m->task_fd, &st) && st.st_nlink != 3)
		return (long)st.st_nlink - 2;
	err = vms_read_stat(s, m->pid, 0, &ps);
	if (is_our_lack(err))
		return m->nthreads;
	/* A last thread may be a zombie that nobody has waited for: it has no VM any more. */
	if (err || ps.start != m->start || ps.state == 'Z' || ps.state == 'X')
		return 0;
	return ps.num_threads;
}

/* The last number of "NSpid:\t4711\t12"; the host's where the kernel does not say. */
static pid_t inner_pid(const struct vms *s, pid_t pid)
{
	char buf[4096];
	ssize_t n = sysroot_readf(s->root, buf, sizeof(buf), "proc/%d/status", (int)pid);
	char *p = n > 0 || n == -EFBIG ? strstr(buf, "\nNSpid:") : NULL;
	char *last;

	if (!p)
		return pid;
	p += strlen("\nNSpid:");
	p[strcspn(p, "\n")] = '\0';
	last = strrchr(p, '\t');
	return last ? (pid_t)strtol(last, NULL, 10) : pid;
}

/* Tells at once when the process ends; only for pids of our own namespace. */
static void watch_end(struct vms *s, struct vmm *m)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = m};

	m->pidfd = -1;
	if (!sysroot_is_host(s->root))
		return;
	m->pidfd = (int)syscall(SYS_pidfd_open, m->pid, 0);
	if (m->pidfd >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, m->pidfd, &ev)) {
		close(m->pidfd);
		m->pidfd = -1;
	}
}

static struct vmm *new_vmm(struct vms *s, pid_t pid, const struct proc_stat *st)
{
	struct vmm *m;
	char path[64];

	if (s->nvmm == s->vmm_room) {
		size_t room = s->vmm_room ? s->vmm_room * 2 : 16;
		struct vmm **bigger = realloc(s->vmm, room * sizeof(struct vmm *));

		if (!bigger)
			return NULL;
		s->vmm = bigger;
		s->vmm_room = room;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->pid = pid;
	m->inner = inner_pid(s, pid);
	m->start = st->start;
	m->ppid = st->ppid;
	m->phase = (unsigned)s->nvmm;
	memcpy(m->comm, st->comm, sizeof(m->comm) - 1);
	m->task_fd = -1;
	snprintf(path, sizeof(path), "proc/%d/task", (int)pid);
	if (sysroot_is_live(s->root))
		m->task_fd = sysroot_openat(s->root, path, O_PATH | O_DIRECTORY);
	watch_end(s, m);
	s->vmm[s->nvmm++] = m;
	return m;
}

struct vmm *vms_vmm_get(struct vms *s, struct vms_proc *p, const struct proc_stat *st)
{
	if (p->vmm && p->vmm->start != st->start)
		vms_drop(s, p->vmm);
	p->start = st->start;
	if (!p->vmm)
		p->vmm = new_vmm(s, p->pid, st);
	return p->vmm;
}

/* A VM that its process gives up may live on in another: is that whose folder stays unknown? */
static void ask_again(struct vms *s)
{
	for (size_t i = 0; i < s->dirs.n && s->dirs.unresolved; i++)
		s->dirs.d[i].asked &= s->dirs.d[i].pid != 0;
}

/* Its process is looked at anew, and so is whose the folders are that were its own. */
static void forget_vmm(struct vms *s, const struct vmm *m)
{
	for (size_t i = 0; i < s->procs.n; i++)
		if (s->procs.p[i].vmm == m) {
			s->procs.p[i].vmm = NULL;
			s->procs.p[i].due = 0;
			s->procs.p[i].born = clock_mono_ns();
		}
	for (size_t i = 0; i < s->dirs.n; i++)
		if (s->dirs.d[i].pid == m->pid) {
			s->dirs.d[i].pid = 0;
			s->dirs.unresolved++;
		}
	ask_again(s);
}

void vms_drop(struct vms *s, struct vmm *m)
{
	size_t keep = 0;

	for (size_t i = 0; i < m->nvm; i++)
		inventory_vm_gone(s->inv, m->vm[i]);
	for (size_t i = 0; i < s->nvmm; i++)
		if (s->vmm[i] != m)
			s->vmm[keep++] = s->vmm[i];
	s->nvmm = keep;
	forget_vmm(s, m);
	if (m->pidfd >= 0)
		close(m->pidfd);
	if (m->task_fd >= 0)
		close(m->task_fd);
	libvirt_free(&m->domain);
	free(m->vm);
	free(m);
}

static struct vm_note *note_of(const struct inv_vm *vm)
{
	return vm->cookie[INV_COOKIE_VMS];
}

static int remember_vm(struct vmm *m, struct inv_vm *vm, int fd)
{
	struct vm_note *note = note_of(vm);

	if (!note)
		note = calloc(1, sizeof(*note));
	if (!note)
		return -ENOMEM;
	note->fd = fd;
	vm->cookie[INV_COOKIE_VMS] = note;
	if (m->nvm == m->room) {
		size_t room = m->room ? m->room * 2 : 1;
		struct inv_vm **bigger = realloc(m->vm, room * sizeof(struct inv_vm *));

		if (!bigger)
			return -ENOMEM;
		m->vm = bigger;
		m->room = room;
	}
	m->vm[m->nvm++] = vm;
	return 0;
}

struct inv_vm *vms_take_vm(struct vms *s, struct vmm *m, const char *key, int fd, bool alone)
{
	struct inv_vm *vm = inventory_find(s->inv, m->pid, m->start, key);
	struct inv_thread *u = s->unknown;

	if (vm && note_of(vm))
		return vm;
	if (!vm && alone && u && s->unknown_pid == m->pid && u->vm->flags & INV_PROVISIONAL)
		vm = inventory_identify(s->inv, u->vm, m->pid, m->start, key);
	if (!vm)
		vm = inventory_add_vm(s->inv, m->pid, m->start, key);
	if (!vm || remember_vm(m, vm, fd))
		return NULL;
	vms_name(s, m, vm);
	return vm;
}

/* The VM of descriptor fd, NULL: none is known. */
static struct inv_vm *vm_of_fd(const struct vmm *m, int fd)
{
	for (size_t i = 0; i < m->nvm; i++)
		if (note_of(m->vm[i])->fd == fd)
			return m->vm[i];
	return NULL;
}

static void see(const struct vmm *m, struct inv_vm *vm)
{
	if (vm)
		note_of(vm)->stamp = m->stamp;
}

static size_t see_dirs(struct vms *s, struct vmm *m, size_t nvm)
{
	const struct vms_dirs *l = &s->dirs;
	size_t found = 0;

	for (size_t i = 0; i < l->n; i++)
		found += l->d[i].pid == m->pid;
	for (size_t i = 0; found && i < l->n; i++) {
		struct inv_vm *vm;

		if (l->d[i].pid != m->pid)
			continue;
		/* It may be known by its descriptor since before debugfs was mounted. */
		vm = vm_of_fd(m, l->d[i].fd);
		if (!vm || strncmp(vm->key, "fd:", 3) != 0)
			vm = vms_take_vm(s, m, l->d[i].name, l->d[i].fd, found < 2 && nvm < 2);
		see(m, vm);
	}
	return found;
}

/*
 * A descriptor can be handed to any process, but KVM lets none use it but those with the memory of
 * the one that made the VM: a VM that is known already is not the receiver's.
 */
static bool is_handed(const struct vms *s, const struct vmm *m, int fd)
{
	for (size_t i = 0; i < s->nvmm; i++) {
		const struct vmm *o = s->vmm[i];

		for (size_t j = 0; o != m && !o->died && j < o->nvm; j++) {
			int theirs = note_of(o->vm[j])->fd;

			if (theirs >= 0 && vms_fd_is_same(s, o->pid, theirs, m->pid, fd))
				return true;
		}
	}
	return false;
}

static void see_fds(struct vms *s, struct vmm *m, const struct kvm_fds *f)
{
	char key[24];

	for (size_t i = 0; i < f->n; i++) {
		struct inv_vm *vm;

		if (f->f[i].what != KVM_LINK_VM)
			continue;
		vm = vm_of_fd(m, f->f[i].fd);
		if (!vm && (vms_fd_is_inherited(s, m->pid, m->ppid, f->f[i].fd) ||
			    is_handed(s, m, f->f[i].fd)))
			continue;
		if (!vm) {
			snprintf(key, sizeof(key), "fd:%d", f->f[i].fd);
			vm = vms_take_vm(s, m, key, f->f[i].fd, f->nvm < 2);
		}
		see(m, vm);
	}
}

/* Without a new look at all descriptors: those that are known to be VMs, are they still? */
static void see_known_fds(struct vms *s, struct vmm *m)
{
	for (size_t i = 0; i < m->nvm; i++)
		if (!strncmp(m->vm[i]->key, "fd:", 3) &&
		    vms_fd_is_vm(s, m->pid, note_of(m->vm[i])->fd))
			see(m, m->vm[i]);
}

static bool is_guess(const struct inv_vm *vm)
{
	return !strcmp(vm->key, "guess");
}

/* A guess holds as long as nothing better is known and threads look like vCPUs. */
static void see_guess(struct vms *s, struct vmm *m)
{
	struct inv_vm *vm = NULL;

	for (size_t i = 0; i < m->nvm; i++) {
		if (note_of(m->vm[i])->stamp == m->stamp)
			return;
		if (is_guess(m->vm[i]))
			vm = m->vm[i];
	}
	if (!vm && !m->no_fds)
		return;
	vm = vms_take_vm(s, m, "guess", -1, true);
	if (!vm)
		return;
	vm->flags |= INV_GUESSED;
	see(m, vm);
}

static void drop_unseen(struct vms *s, struct vmm *m)
{
	size_t keep = 0;

	for (size_t i = 0; i < m->nvm; i++) {
		if (note_of(m->vm[i])->stamp == m->stamp)
			m->vm[keep++] = m->vm[i];
		else
			inventory_vm_gone(s->inv, m->vm[i]);
	}
	if (keep < m->nvm)
		ask_again(s);
	m->nvm = keep;
}

static void vcpus_of_fds(struct vms *s, struct vmm *m, const struct kvm_fds *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct inv_vm *vm;
		int id = f->f[i].kvm_id;

		if (f->f[i].what != KVM_LINK_VCPU)
			continue;
		vm = vm_of_fd(m, vms_fds_owner(f, i));
		/* A VM with a folder in debugfs has its vCPUs there, and surely. */
		if (!vm || strncmp(vm->key, "fd:", 3) != 0)
			continue;
		if (id < 0) {
			id = 0;
			for (size_t j = 0; j < i; j++)
				id += f->f[j].what == KVM_LINK_VCPU &&
				      vms_fds_owner(f, j) == note_of(vm)->fd;
		}
		inventory_add_vcpu(s->inv, vm, id);
	}
}

static void scan_vms(struct vms *s, struct vmm *m, bool full)
{
	struct kvm_fds fds = {0};
	int err = full ? vms_fds_read(s, m->pid, &fds) : 0;

	if (is_our_lack(err)) {
		full = false;
		m->dirty = true; /* again in the next tick */
	}
	m->stamp = ++s->stamp;
	if (full)
		m->no_fds = err == -EACCES || err == -EPERM;
	see_dirs(s, m, fds.nvm);
	if (full && !err)
		see_fds(s, m, &fds);
	else
		see_known_fds(s, m);
	see_guess(s, m);
	drop_unseen(s, m);
	if (full && !err)
		vcpus_of_fds(s, m, &fds);
	vms_fds_free(&fds);
}

/* A thread's cookie: the stamp of the list that had it last, and how often it was read. */
enum { READ_BITS = 2, READ_ENOUGH = 2 };

static uint32_t thread_stamp(const struct inv_thread *t)
{
	return (uint32_t)((uintptr_t)t->cookie[INV_COOKIE_VMS] >> READ_BITS);
}

static unsigned thread_reads(const struct inv_thread *t)
{
	return (unsigned)((uintptr_t)t->cookie[INV_COOKIE_VMS] & ((1u << READ_BITS) - 1));
}

static void thread_mark(struct inv_thread *t, uint32_t stamp, unsigned reads)
{
	if (reads > READ_ENOUGH)
		reads = READ_ENOUGH;
	t->cookie[INV_COOKIE_VMS] = (void *)(((uintptr_t)stamp << READ_BITS) | reads);
}

static bool is_of(const struct inv_thread *t, const struct vmm *m)
{
	return t && t->vm->pid == m->pid && t->vm->start == m->start;
}

static enum inv_role role_of(const struct proc_stat *st)
{
	bool kernel = st->flags & PROC_PF_USER_WORKER && !(st->flags & PROC_PF_IO_WORKER);
	bool inner;

	return kernel || vms_helper_of(st->comm, &inner) ||
			       !strncmp(st->comm, "kvm-nx-lpage-re", 15)
		       ? ROLE_HELPER
		       : ROLE_VMM;
}

static void set_comm(struct vms *s, struct inv_thread *t, const char *comm)
{
	char name[sizeof(t->comm)] = "";

	memcpy(name, comm, strnlen(comm, sizeof(name) - 1));
	if (!memcmp(name, t->comm, sizeof(name)))
		return;
	memcpy(t->comm, name, sizeof(name));
	inventory_touch(s->inv);
}

/*
 * A thread that was read twice (its name comes a moment after its birth) is only counted;
 * every eighth look reads it again, in case its number has a new owner.
 */
static void see_task(struct vms *s, struct vmm *m, pid_t tid)
{
	struct inv_thread *t = inventory_thread(s->inv, tid);
	bool known = t && is_of(t, m) && !(t->flags & INV_PROVISIONAL);
	unsigned reads = known ? thread_reads(t) : 0;
	struct proc_stat st;

	/* A thread names itself: one that is starved from the start does so late. */
	if (reads >= READ_ENOUGH && !m->unnamed && ((unsigned)tid + m->scans) % 8) {
		thread_mark(t, m->stamp, reads);
		return;
	}
	if (vms_read_stat(s, m->pid, tid, &st))
		return;
	known = known && t->start == st.start;
	t = inventory_add_thread(s->inv, known ? t->vm : m->vm[0], m->pid, tid, st.start,
				 known ? t->role : role_of(&st));
	if (!t)
		return;
	thread_mark(t, m->stamp, (known ? reads : 0) + 1);
	/* Its name may come a moment after its birth; at the first look at a host they are old. */
	m->young = m->young || (!known && s->tick);
	set_comm(s, t, st.comm);
}

int vms_scan_tasks(struct vms *s, struct vmm *m)
{
	char path[64];
	struct dirent *e;
	long n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "proc/%d/task", (int)m->pid);
	d = sysroot_opendir(s->root, path);
	if (!d)
		return -errno;
	m->stamp = ++s->stamp;
	m->young = false;
	while ((e = readdir(d))) {
		int tid;

		if (procfs_parse_id(e->d_name, &tid) || !tid)
			continue;
		see_task(s, m, tid);
		n++;
	}
	closedir(d);
	m->nthreads = n;
	for (size_t i = 0; i < m->nvm; i++)
		for (struct inv_thread *t = m->vm[i]->threads; t; t = t->next)
			if ((t->pid == m->pid || t->flags & INV_PROVISIONAL) &&
			    thread_stamp(t) != m->stamp)
				inventory_thread_gone(s->inv, t);
	return 0;
}

/* What debugfs says runs this vCPU now; a thread of another process is not believed. */
static void set_vcpu_thread(struct vms *s, struct vmm *m, struct inv_vcpu *v, pid_t tid)
{
	struct inv_thread *t = tid > 0 ? inventory_thread(s->inv, tid) : NULL;

	if (!tid) {
		m->waiting = true; /* has not run yet */
		return;
	}
	if (!is_of(t, m) || v->thread == t)
		return;
	if (t->vm != v->vm && !t->nvcpus)
		inventory_move_thread(s->inv, t, v->vm);
	inventory_set_thread(s->inv, v, t);
}

/* A new vCPU is a new link of the folder; an idle look is spared its files then. */
static bool is_settled(const struct vms *s, const struct inv_vm *vm, const struct stat *st)
{
	for (size_t i = 0; i < vm->nvcpu; i++)
		if (!(vm->vcpu[i]->flags & INV_GONE) &&
		    (!vm->vcpu[i]->thread || vm->vcpu[i]->thread->flags & INV_GONE))
			return false;
	if (note_of(vm)->parked)
		return false;
	return sysroot_is_live(s->root) && note_of(vm)->nlink == st->st_nlink;
}

/*
 * KVM cannot take a vCPU out of a VM: QEMU ends its thread and keeps it for the next one that is
 * plugged in. It is none of the VM's as long as the thread that ran it last is gone.
 */
static bool is_parked(const struct vms *s, pid_t tid)
{
	int err = tid > 0 && !inventory_thread(s->inv, tid) ? (int)vms_tgid(s, tid) : 0;

	return err == -ENOENT || err == -ESRCH;
}

static void see_vcpu(struct vms *s, struct vmm *m, struct inv_vm *vm, int id, pid_t tid)
{
	bool parked = is_parked(s, tid);
	struct inv_vcpu *v = parked ? inventory_vcpu(vm, id) : inventory_add_vcpu(s->inv, vm, id);

	if (parked) {
		note_of(vm)->parked = true;
		if (v)
			inventory_vcpu_gone(s->inv, v);
	} else if (v && tid >= 0) {
		set_vcpu_thread(s, m, v, tid);
	}
}

static void vcpus_of_dir(struct vms *s, struct vmm *m, struct inv_vm *vm, const char *dir, bool all)
{
	char path[96], buf[32];
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(path, sizeof(path), VMS_KVM_DIR "/%s", dir);
	d = sysroot_opendir(s->root, path);
	if (!d)
		return;
	if (!fstat(dirfd(d), &st)) {
		all = all || !is_settled(s, vm, &st);
		note_of(vm)->nlink = st.st_nlink;
	}
	if (all)
		note_of(vm)->parked = false;
	while (all && (e = readdir(d))) {
		pid_t tid = -1;
		int id;

		if (procfs_parse_vcpu_dir(e->d_name, &id))
			continue;
		if (sysroot_readf(s->root, buf, sizeof(buf), "%s/%s/pid", path, e->d_name) > 0)
			tid = (pid_t)strtol(buf, NULL, 10);
		see_vcpu(s, m, vm, id, tid);
	}
	closedir(d);
}

static void scan_vcpus(struct vms *s, struct vmm *m, bool all)
{
	const struct vms_dirs *l = &s->dirs;

	m->waiting = false;
	for (size_t i = 0; i < l->n; i++) {
		struct inv_vm *vm = l->d[i].pid == m->pid ? vm_of_fd(m, l->d[i].fd) : NULL;

		/* Two folders of one number: two makers, one of them has closed it. */
		if (vm && strncmp(vm->key, "fd:", 3) != 0)
			vm = inventory_find(s->inv, m->pid, m->start, l->d[i].name);
		if (vm)
			vcpus_of_dir(s, m, vm, l->d[i].name, all);
	}
}

static void match_all(struct vms *s, struct vmm *m)
{
	m->unnamed = false;
	for (size_t i = 0; i < m->nvm; i++) {
		if (is_guess(m->vm[i]))
			vms_guess_vcpus(s, m, m->vm[i]);
		m->unnamed |= vms_match(s, m, m->vm[i]);
	}
}

void vms_look_vcpus(struct vms *s, struct vmm *m)
{
	uint64_t before = inventory_generation(s->inv);

	scan_vcpus(s, m, true);
	if (inventory_generation(s->inv) != before)
		match_all(s, m);
	vms_libvirt(s, m);
}

bool vms_scan(struct vms *s, struct vmm *m, enum vms_look look)
{
	int err;

	if (m->dirty || !s->dirs.usable || m->scans % FULL_EVERY == 0)
		look = LOOK_ALL;
	m->dirty = false;
	scan_vms(s, m, look == LOOK_ALL);
	err = m->nvm ? vms_scan_tasks(s, m) : -ENOENT;
	if (err && !is_our_lack(err)) {
		vms_drop(s, m);
		return false;
	}
	m->scans++;
	scan_vcpus(s, m, look >= LOOK_VCPUS);
	match_all(s, m);
	if (m->nvm == 1 && is_guess(m->vm[0]) && !m->vm[0]->nvcpu) {
		vms_drop(s, m);
		return false;
	}
	if (look >= LOOK_VCPUS)
		vms_libvirt(s, m);
	return true;
}
