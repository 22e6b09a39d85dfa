// SPDX-License-Identifier: GPL-2.0-only
/* A process's KVM descriptors, as /proc/<pid>/fd names them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "grow.h"
#include "vms_priv.h"

static int add_fd(struct kvm_fds *f, int fd, enum kvm_link what, int kvm_id)
{
	if (!grow(&f->f, f->n, &f->room, sizeof(*f->f)))
		return -ENOMEM;
	f->f[f->n++] = (struct kvm_fd){.fd = fd, .what = what, .kvm_id = kvm_id};
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct kvm_fd *x = a, *y = b;

	return (x->fd > y->fd) - (x->fd < y->fd);
}

/* Two descriptors of one open file are one VM; only the kernel can tell, and only here. */
bool vms_fd_is_same(const struct vms *s, pid_t pid1, int a, pid_t pid2, int b)
{
	if (!sysroot_is_host(s->root))
		return false;
	return syscall(SYS_kcmp, pid1, pid2, KCMP_FILE, (long)a, (long)b) == 0;
}

static void drop_duplicates(const struct vms *s, pid_t pid, struct kvm_fds *f)
{
	size_t keep = 0;

	f->nvm = 0;
	for (size_t i = 0; i < f->n; i++) {
		bool dup = false;

		for (size_t j = 0; j < keep && !dup && f->f[i].what == KVM_LINK_VM; j++)
			dup = f->f[j].what == KVM_LINK_VM &&
			      vms_fd_is_same(s, pid, f->f[j].fd, pid, f->f[i].fd);
		if (dup)
			continue;
		f->nvm += f->f[i].what == KVM_LINK_VM;
		f->f[keep++] = f->f[i];
	}
	f->n = keep;
}

int vms_fds_read(const struct vms *s, pid_t pid, struct kvm_fds *out)
{
	char path[64], link[64];
	struct dirent *e;
	DIR *d;
	int err = 0;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	d = sysroot_opendir(s->root, path);
	if (!d)
		return -errno;
	while (!err && (e = readdir(d))) {
		enum kvm_link what;
		int fd, kvm_id;
		ssize_t n;

		if (procfs_parse_id(e->d_name, &fd))
			continue;
		n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue; /* closed meanwhile */
		link[n] = '\0';
		what = procfs_parse_kvm_link(link, &kvm_id);
		if (what == KVM_LINK_DEV)
			out->dev = true;
		else if (what != KVM_LINK_NONE)
			err = add_fd(out, fd, what, kvm_id);
	}
	closedir(d);
	if (out->n > 1)
		qsort(out->f, out->n, sizeof(*out->f), by_number);
	drop_duplicates(s, pid, out);
	return err;
}

void vms_fds_free(struct kvm_fds *f)
{
	free(f->f);
	memset(f, 0, sizeof(*f));
}

bool vms_fd_is_vm(const struct vms *s, pid_t pid, int fd)
{
	char link[64];
	int kvm_id;

	return sysroot_readlinkf(s->root, link, sizeof(link), "proc/%d/fd/%d", (int)pid, fd) > 0 &&
	       procfs_parse_kvm_link(link, &kvm_id) == KVM_LINK_VM;
}

bool vms_fd_is_inherited(const struct vms *s, pid_t pid, pid_t ppid, int fd)
{
	return vms_fd_is_vm(s, ppid, fd) && vms_fd_is_same(s, ppid, fd, pid, fd);
}

/* True when an earlier vCPU descriptor of the same id stands between this VM and vCPU i. */
static bool taken(const struct kvm_fds *f, size_t vm, size_t i)
{
	for (size_t j = vm + 1; j < i; j++)
		if (f->f[j].what == KVM_LINK_VCPU && f->f[j].kvm_id == f->f[i].kvm_id)
			return true;
	return false;
}

int vms_fds_owner(const struct kvm_fds *f, size_t i)
{
	int first = -1;

	for (size_t j = 0; j < f->n && first < 0; j++)
		if (f->f[j].what == KVM_LINK_VM)
			first = f->f[j].fd;
	/* A vCPU is made after its VM, mostly before the next VM. */
	for (size_t j = i; j-- > 0;)
		if (f->f[j].what == KVM_LINK_VM && !taken(f, j, i))
			return f->f[j].fd;
	return first;
}
