// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parsers of the small files of /proc and of KVM's names: text in, plain structs out.
 *
 * They never allocate, take any bytes, and return 0 or -EBADMSG unless said otherwise.
 */
#ifndef KVMTOP_PROCFS_H
#define KVMTOP_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bits of proc_stat.flags (the kernel's PF_*; stable, but in no uapi header). */
#define PROC_PF_IO_WORKER 0x00000010u /* io_uring's worker */
#define PROC_PF_USER_WORKER 0x00004000u /* kernel thread of a process (vhost since 6.4) */
#define PROC_PF_KTHREAD 0x00200000u

/*
 * /proc/<pid>/stat. Fields after nfields were not there and read 0 (cpu: -1): ask nfields
 * where 0 is not the same as unknown. Times in clock ticks.
 */
struct proc_stat {
	pid_t pid, ppid;
	char comm[64]; /* any bytes but NUL: blanks, brackets, newlines */
	char state;
	unsigned flags; /* PROC_PF_* */
	unsigned nfields; /* numbered as in proc(5): 52 on a stock kernel of 2023 */
	uint64_t minflt, majflt;
	uint64_t utime, stime; /* utime contains gtime */
	long num_threads;
	uint64_t start; /* field 22, since boot */
	int cpu; /* field 39, last pCPU; -1 unknown or absurd */
	uint64_t blkio_ticks; /* field 42 */
	uint64_t gtime; /* field 43 */
	uint64_t gstime; /* field 53, of this project's kernels */
};

enum {
	PROC_STAT_START = 22,
	PROC_STAT_CPU = 39,
	PROC_STAT_BLKIO = 42,
	PROC_STAT_GTIME = 43,
	PROC_STAT_GSTIME = 53,
};

int procfs_parse_stat(const char *buf, size_t len, struct proc_stat *out);

/* /proc/<pid>/schedstat. */
struct proc_schedstat {
	uint64_t run_ns, delay_ns, nr_sched;
};

int procfs_parse_schedstat(const char *buf, size_t len, struct proc_schedstat *out);

/*
 * The path in /proc/<pid>/cgroup of one v1 controller ("cpu", "name=systemd"), or of the
 * v2 hierarchy (controller NULL); " (deleted)" is taken off. Length, -ENOENT when there is
 * no such line, -ENAMETOOLONG.
 */
ssize_t procfs_parse_cgroup(const char *buf, size_t len, const char *controller, char *out,
			    size_t size);

/* A folder of debugfs' kvm: "<id>-<fd>"; id is the thread that made the VM. */
int procfs_parse_kvm_dir(const char *name, pid_t *id, int *fd);
/* A folder in one of those: "vcpu<N>". */
int procfs_parse_vcpu_dir(const char *name, int *kvm_id);

enum kvm_link {
	KVM_LINK_NONE,
	KVM_LINK_DEV, /* /dev/kvm: may become a VM */
	KVM_LINK_VM,
	KVM_LINK_VCPU,
};

/* What a descriptor's link says; *kvm_id: -1 where the kernel does not name it. */
enum kvm_link procfs_parse_kvm_link(const char *link, int *kvm_id);

/* A decimal number and nothing else, at most INT_MAX. */
int procfs_parse_id(const char *s, int *out);

#endif
