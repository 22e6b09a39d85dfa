// SPDX-License-Identifier: GPL-2.0-only
/* Makes trees for --root as a test goes: processes, threads, descriptors, debugfs' folders. */
#ifndef KVMTOP_TESTS_VMS_TREE_H
#define KVMTOP_TESTS_VMS_TREE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "inventory.h"
#include "made_tree.h"
#include "sysroot.h"
#include "vms.h"

struct host {
	char dir[64];
	struct sysroot *root;
	struct inventory *inv;
	void *vms;
	int64_t now;
};

static inline void path_of(const struct host *h, char *full, size_t size, const char *fmt,
			   va_list ap)
{
	int n = snprintf(full, size, "%s/", h->dir);

	vsnprintf(full + n, size - (size_t)n, fmt, ap);
}

__attribute__((format(printf, 4, 5))) static inline void put(const struct host *h, const char *text,
							     size_t len, const char *fmt, ...)
{
	char full[512];
	va_list ap;

	va_start(ap, fmt);
	path_of(h, full, sizeof(full), fmt, ap);
	va_end(ap);
	tree_put_bytes(full, text, len);
}

__attribute__((format(printf, 2, 3))) static inline void unmake(const struct host *h,
								const char *fmt, ...)
{
	char full[512];
	va_list ap;

	va_start(ap, fmt);
	path_of(h, full, sizeof(full), fmt, ap);
	va_end(ap);
	tree_remove(full);
}

/* The recording's line of a vCPU thread with other numbers in it. */
static inline void put_stat(const struct host *h, const char *path, int tid, const char *comm,
			    unsigned flags, int nthreads, int start, int gtime)
{
	char line[512];
	int n = snprintf(line, sizeof(line),
			 "%d (%s) S 1 1 1 0 -1 %u 1 0 0 0 %d 0 0 0 20 0 %d 0 %d 19750912 426 "
			 "18446744073709551615 1 2 3 0 0 0 0 6 0 0 0 0 -1 1 0 0 0 %d 0 1 2 3 4 5 6 "
			 "7 0\n",
			 tid, comm, flags, gtime, nthreads, start, gtime);

	put(h, line, (size_t)n, "%s/stat", path);
}

static inline void thread_of(const struct host *h, int pid, int tid, const char *comm, int start,
			     int gtime)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "proc/%d/task/%d", pid, tid);
	put_stat(h, path, tid, comm, 4194368, 1, start, gtime);
	/* Every thread answers under its own number too, though it is not listed. */
	snprintf(text, sizeof(text), "Name:\t%s\nTgid:\t%d\n", "x", pid);
	put(h, text, strlen(text), "proc/%d/status", tid);
}

/* cmdline with blanks between the arguments. */
static inline void process(const struct host *h, int pid, const char *comm, int start, int gtime,
			   const char *cmdline, const char *cgroup)
{
	char path[64], buf[512];
	size_t n = strlen(cmdline);

	memcpy(buf, cmdline, n + 1);
	for (size_t i = 0; i < n; i++)
		buf[i] = buf[i] == ' ' ? '\0' : buf[i];
	snprintf(path, sizeof(path), "proc/%d", pid);
	put_stat(h, path, pid, comm, 4194304, 1, start, gtime);
	put(h, buf, n + 1, "proc/%d/cmdline", pid);
	snprintf(buf, sizeof(buf), "0::%s\n", cgroup);
	put(h, buf, strlen(buf), "proc/%d/cgroup", pid);
	put(h, "", 0, "proc/%d/fd/keep", pid);
	thread_of(h, pid, pid, comm, start, 0);
}

static inline void descriptor(const struct host *h, int pid, int fd, const char *link)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/proc/%d/fd/%d", h->dir, pid, fd);
	assert_int_equal(symlink(link, full), 0);
}

static inline void kvm_vcpu(const struct host *h, const char *dir, int id, int tid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", tid);
	put(h, text, strlen(text), "sys/kernel/debug/kvm/%s/vcpu%d/pid", dir, id);
}

/* A QEMU with n vCPUs and debugfs, threads pid + 1 … named as QEMU does. */
static inline void qemu(const struct host *h, int pid, const char *name, int n, bool debugfs)
{
	char text[128];

	snprintf(text, sizeof(text), "qemu-system-x86_64 -name guest=%s,debug-threads=on", name);
	process(h, pid, "qemu-system-x86", 5000, 9, text, "/machine.slice/x.scope");
	descriptor(h, pid, 9, "/dev/kvm");
	descriptor(h, pid, 10, "anon_inode:kvm-vm");
	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "CPU %d/KVM", i);
		thread_of(h, pid, pid + 1 + i, text, 5001, 9);
		snprintf(text, sizeof(text), "anon_inode:kvm-vcpu:%d", i);
		descriptor(h, pid, 11 + i, text);
		snprintf(text, sizeof(text), "%d-10", pid);
		if (debugfs)
			kvm_vcpu(h, text, i, pid + 1 + i);
	}
}

#endif
