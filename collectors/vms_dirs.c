// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs' kvm folder: a subfolder a VM, named after the *thread* that made it and the
 * descriptor that it got.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "vms_priv.h"

#define ASK_AFTER (2 * NS_PER_S)
#define ASK_EVERY (10 * NS_PER_S)

pid_t vms_tgid(const struct vms *s, pid_t tid)
{
	char buf[4096];
	ssize_t n = sysroot_readf(s->root, buf, sizeof(buf), "proc/%d/status", (int)tid);
	const char *p;

	if (n < 0 && n != -EFBIG)
		return (pid_t)n;
	/* The name stands before it, on one line: the kernel escapes newlines there. */
	p = strstr(buf, "\nTgid:");
	return p ? (pid_t)strtol(p + 6, NULL, 10) : -ESRCH;
}

/* Longer names were refused before. */
static void set_name(struct kvm_dir *k, const char *name)
{
	size_t n = strnlen(name, sizeof(k->name) - 1);

	memcpy(k->name, name, n);
	k->name[n] = '\0';
}

static int by_name(const void *a, const void *b)
{
	const struct kvm_dir *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct kvm_dir *find_dir(struct vms_dirs *l, size_t n, const char *name)
{
	struct kvm_dir key;

	set_name(&key, name);
	return n ? bsearch(&key, l->d, n, sizeof(*l->d), by_name) : NULL;
}

static int add_dir(struct vms_dirs *l, const char *name, pid_t id, int fd)
{
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		struct kvm_dir *bigger = realloc(l->d, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		l->d = bigger;
		l->room = room;
	}
	l->d[l->n] = (struct kvm_dir){.id = id, .fd = fd, .seen = true};
	set_name(&l->d[l->n++], name);
	return 0;
}

static void mark_dirty(struct vms *s, pid_t pid)
{
	for (size_t i = 0; i < s->nvmm; i++)
		if (s->vmm[i]->pid == pid)
			s->vmm[i]->dirty = true;
}

static void drop_unseen(struct vms *s)
{
	struct vms_dirs *l = &s->dirs;
	size_t keep = 0;

	l->unresolved = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!l->d[i].seen) {
			mark_dirty(s, l->d[i].pid);
			continue;
		}
		l->unresolved += !l->d[i].pid;
		l->d[keep++] = l->d[i];
	}
	l->n = keep;
}

static void merge(struct vms *s, DIR *d)
{
	struct vms_dirs *l = &s->dirs;
	const size_t old = l->n;
	struct dirent *e;

	for (size_t i = 0; i < old; i++)
		l->d[i].seen = false;
	while ((e = readdir(d))) {
		struct kvm_dir *known;
		pid_t id;
		int fd;

		if (strlen(e->d_name) >= sizeof(known->name) ||
		    procfs_parse_kvm_dir(e->d_name, &id, &fd))
			continue;
		known = find_dir(l, old, e->d_name);
		if (known)
			known->seen = true;
		else if (add_dir(l, e->d_name, id, fd))
			break;
	}
	drop_unseen(s);
	if (l->n > 1)
		qsort(l->d, l->n, sizeof(*l->d), by_name);
}

/*
 * A new folder changes the link count, a removed one the time: while both stand still
 * nothing came or went, and listing can be saved. Only a real debugfs is that exact.
 */
static bool unchanged(const struct vms *s)
{
	const struct stat *was = &s->dirs.folder;
	struct stat st;

	return sysroot_is_live(s->root) && s->dirs.listed &&
	       !sysroot_stat(s->root, VMS_KVM_DIR, &st) && st.st_dev == was->st_dev &&
	       st.st_ino == was->st_ino && st.st_nlink == was->st_nlink &&
	       st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

void vms_dirs_list(struct vms *s)
{
	struct vms_dirs *l = &s->dirs;
	DIR *d;
	int fd;

	if (unchanged(s))
		return;
	l->usable = !s->foreign_ns && vms_is_debugfs(s->root);
	fd = l->usable ? sysroot_openat(s->root, VMS_KVM_DIR, O_RDONLY | O_DIRECTORY) : -1;
	if (fd == -EMFILE || fd == -ENFILE)
		return; /* says nothing about the folder */
	if (fd < 0) {
		l->usable = false;
		l->listed = false;
		for (size_t i = 0; i < l->n; i++)
			l->d[i].seen = false;
		drop_unseen(s);
		return;
	}
	/* Before it is read: what comes meanwhile changes it. */
	d = fstat(fd, &l->folder) ? NULL : fdopendir(fd);
	l->listed = d != NULL;
	if (!d) {
		close(fd);
		return;
	}
	merge(s, d);
	closedir(d);
}

/* A thread that ran a vCPU of this folder, 0 none. */
static pid_t some_vcpu_thread(const struct vms *s, const struct kvm_dir *k)
{
	char path[96], buf[32];
	struct dirent *e;
	pid_t tid = 0;
	DIR *d;

	snprintf(path, sizeof(path), VMS_KVM_DIR "/%s", k->name);
	d = sysroot_opendir(s->root, path);
	while (d && !tid && (e = readdir(d))) {
		int kvm_id;

		if (!procfs_parse_vcpu_dir(e->d_name, &kvm_id) &&
		    sysroot_readf(s->root, buf, sizeof(buf), "%s/%s/pid", path, e->d_name) > 0)
			tid = (pid_t)strtol(buf, NULL, 10);
	}
	if (d)
		closedir(d);
	return tid;
}

/* 1: the process holds a VM under this number, 0: it does not, -errno: may not be known. */
static int holds_vm(const struct vms *s, pid_t pid, int fd)
{
	char link[64];
	int kvm_id;
	ssize_t n = sysroot_readlinkf(s->root, link, sizeof(link), "proc/%d/fd/%d", (int)pid, fd);

	if (n == -ENOENT)
		return 0;
	if (n < 0)
		return (int)n;
	return procfs_parse_kvm_link(link, &kvm_id) == KVM_LINK_VM;
}

/*
 * The number in the name may have a new owner by now (the thread that made the VM ended),
 * so the process must hold the VM; else whoever runs its vCPUs is believed.
 */
static pid_t process_of(const struct vms *s, const struct kvm_dir *k)
{
	pid_t maker = vms_tgid(s, k->id), tid, pid;
	int holds = maker > 0 ? holds_vm(s, maker, k->fd) : 0;

	if (holds == 1)
		return maker;
	tid = some_vcpu_thread(s, k);
	pid = tid > 0 ? vms_tgid(s, tid) : 0;
	if (pid > 0)
		return pid;
	return holds < 0 ? maker : 0;
}

/* The same maker's other VMs come along, so that one look at the process sees them all. */
static void claim(struct vms *s, struct kvm_dir *k, pid_t pid)
{
	struct vms_dirs *l = &s->dirs;

	k->pid = pid;
	l->unresolved--;
	for (size_t i = 0; i < l->n && l->unresolved; i++)
		if (!l->d[i].pid && l->d[i].id == k->id && holds_vm(s, pid, l->d[i].fd) == 1) {
			l->d[i].pid = pid;
			l->unresolved--;
		}
}

static void resolve(struct vms *s, struct kvm_dir *k, int64_t now)
{
	struct proc_stat st;
	struct vms_proc *p;
	struct vmm *m;
	pid_t pid = process_of(s, k);

	if (!k->since)
		k->since = now;
	/* A zombie's VM is being taken down. */
	if (pid <= 0 || vms_read_stat(s, pid, 0, &st) || st.state == 'Z' || st.state == 'X')
		return;
	p = vms_procs_get(s, pid, now);
	m = p ? vms_vmm_get(s, p, &st) : NULL;
	if (!m)
		return;
	claim(s, k, pid);
	vms_scan(s, m, LOOK_ALL);
}

void vms_dirs_claim(struct vms *s, pid_t pid)
{
	struct vms_dirs *l = &s->dirs;

	for (size_t i = 0; i < l->n && l->unresolved; i++)
		if (!l->d[i].pid && process_of(s, &l->d[i]) == pid) {
			l->d[i].pid = pid;
			l->unresolved--;
		}
}

bool vms_dirs_resolve(struct vms *s, int64_t now, int64_t deadline)
{
	struct vms_dirs *l = &s->dirs;

	for (size_t i = 0; i < l->n && l->unresolved; i++) {
		if (l->d[i].pid)
			continue;
		if (clock_mono_ns() >= deadline)
			return false;
		resolve(s, &l->d[i], now);
	}
	return true;
}

size_t vms_dirs_untried(const struct vms *s)
{
	const struct vms_dirs *l = &s->dirs;
	size_t n = 0;

	for (size_t i = 0; i < l->n && l->unresolved; i++)
		n += !l->d[i].pid && !l->d[i].since;
	return n;
}

bool vms_dirs_ask(struct vms *s, int64_t now)
{
	struct vms_dirs *l = &s->dirs;
	bool ask = false;

	for (size_t i = 0; i < l->n && l->unresolved; i++) {
		const struct kvm_dir *k = &l->d[i];

		ask |= !k->pid && k->since && !k->asked && now - k->since >= ASK_AFTER;
	}
	if (!ask || (l->asked && now - l->asked < ASK_EVERY))
		return false;
	for (size_t i = 0; i < l->n; i++)
		l->d[i].asked |= !l->d[i].pid;
	l->asked = now;
	return true;
}

void vms_dirs_free(struct vms *s)
{
	free(s->dirs.d);
}
