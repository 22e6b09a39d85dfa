// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between the files of the collector `vms`.
 *
 * Three lists: every process (vms_procs.c: what was looked at, and when again), debugfs'
 * folders (vms_dirs.c) and the processes that hold VMs (vms_scan.c).
 */
#ifndef KVMTOP_COLLECTORS_VMS_PRIV_H
#define KVMTOP_COLLECTORS_VMS_PRIV_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "collector.h"
#include "inventory.h"
#include "procfs.h"
#include "sysroot.h"
#include "vms_libvirt.h"

#define VMS_KVM_DIR "sys/kernel/debug/kvm"
#define VMS_RESCAN_TICKS 10

/* What a VM's cookie points to; freed with the VM. */
struct vm_note {
	uint32_t stamp; /* of the look that saw it last */
	int fd; /* its descriptor's number, -1 unknown */
	nlink_t nlink; /* of its folder: changes with a new vCPU */
	bool parked; /* has vCPUs whose threads ended: plugged in again they get new ones */
};

/* A process that holds VMs, or is thought to. */
struct vmm {
	pid_t pid, ppid;
	pid_t inner; /* its number in its own pid namespace */
	uint64_t start;
	char comm[16];
	char base_name[256]; /* as found on the command line; libvirt's file has it too */
	int pidfd; /* in vms.epoll; -1 none */
	int task_fd; /* /proc/<pid>/task, O_PATH; -1 none */
	long nthreads; /* when the task list was read last */
	unsigned phase; /* which tick of the ten is its own */
	unsigned scans;
	uint32_t stamp; /* of the task list read last */
	int64_t died; /* seen to have ended then, ns; 0: lives */
	int64_t vcpus_due; /* which thread runs which vCPU is looked at again then, ns */
	int64_t unsure_until; /* no answer could be found: not asked again before, ns */
	int64_t asked, ask_cost; /* by an event of an unknown vCPU: when, how long it took, ns */
	bool dirty; /* look again at once */
	bool no_fds; /* /proc/<pid>/fd may not be read */
	bool young; /* has a thread that was read for the first time just now */
	bool waiting; /* a vCPU has not run yet: its thread comes later */
	bool unnamed; /* some vCPU threads have names: the others' come when they first run */
	struct stat xml; /* of libvirt's file, as read last */
	struct libvirt_domain domain; /* what it said */
	struct inv_vm **vm; /* living ones */
	size_t nvm, room;
};

enum proc_state {
	PROC_NEW, /* never looked at */
	PROC_YOUNG, /* looked at once */
	PROC_SETTLED,
};

struct vms_proc {
	pid_t pid;
	pid_t helper_of; /* a kernel thread that works for this thread's VM, 0 none */
	uint64_t start;
	int64_t due; /* look again then, ns */
	int64_t born; /* when it was listed first, ns */
	uint8_t state; /* enum proc_state */
	bool kthread, listed, attached;
	bool inner; /* helper_of is a number of the VMM's own pid namespace */
	struct vmm *vmm; /* NULL: holds no VM */
};

struct vms_procs {
	struct vms_proc *p; /* by pid */
	size_t n, room;
	pid_t *list; /* the listing that is being merged */
	size_t list_room;
	size_t unchecked; /* PROC_NEW ones */
	pid_t last_pid; /* of loadavg, at the last listing */
};

/* A VM's folder in debugfs. */
struct kvm_dir {
	char name[40];
	pid_t id; /* the thread that made it */
	int fd; /* the VM's descriptor in that process, at that time */
	pid_t pid; /* of the process; 0 not known yet */
	int64_t since; /* when it was looked for first, ns; 0: not yet */
	bool asked; /* all processes were looked at for its sake */
	bool seen;
};

struct vms_dirs {
	struct kvm_dir *d; /* by name */
	size_t n, room;
	size_t unresolved;
	struct stat folder; /* as it was when it was listed last */
	int64_t asked; /* when all processes were looked at last for one, ns */
	bool usable; /* it is debugfs, and its ids are ours */
	bool listed; /* at least once */
};

struct vms {
	struct sysroot *root;
	struct inventory *inv;
	const struct sink *sink;
	struct vms_procs procs;
	struct vms_dirs dirs;
	struct vmm **vmm;
	size_t nvmm, vmm_room;
	unsigned tick;
	uint32_t stamp;
	int epoll; /* the timer and the processes that may end */
	int timer; /* armed while discovery has more to do */
	bool armed;
	bool foreign_ns; /* /proc is of another pid namespace than debugfs' ids */
	struct inv_thread *unknown; /* whose VM is being looked for now */
	pid_t unknown_pid; /* its process */
	char *buf; /* for command lines */
	size_t buf_size;
	char said[64]; /* the state of sources as the sink knows it */
};

/* vms_procs.c */
int vms_procs_list(struct vms *s, int64_t now);
struct vms_proc *vms_procs_get(struct vms *s, pid_t pid, int64_t now); /* added when new */
/* Looks at one process: is it a VMM? 0, or -errno when it is gone. */
int vms_procs_check(struct vms *s, struct vms_proc *p, int64_t now);
void vms_procs_attach_helpers(struct vms *s);
void vms_procs_due(struct vms *s, int64_t now); /* all are to be looked at now */
void vms_procs_free(struct vms *s);

/* vms_dirs.c */
void vms_dirs_list(struct vms *s);
/* Finds the process of each new folder and its VMs, until the deadline; true: all done. */
bool vms_dirs_resolve(struct vms *s, int64_t now, int64_t deadline);
size_t vms_dirs_untried(const struct vms *s); /* whose process was not looked for yet */
/*
 * True when a folder's process stays unknown and all are to be asked for their descriptors: once a
 * folder, and not often, since the folder of a VM that ends is like that for a moment.
 */
bool vms_dirs_ask(struct vms *s, int64_t now);
/* Gives a process the new folders that are its own, before it is looked at. */
void vms_dirs_claim(struct vms *s, pid_t pid);
void vms_dirs_free(struct vms *s);
/* The process that thread `tid` belongs to; -errno: it is gone. */
pid_t vms_tgid(const struct vms *s, pid_t tid);

/* vms_scan.c */
/* Reads stat of a process or (tid != 0) of one of its threads. */
int vms_read_stat(const struct vms *s, pid_t pid, pid_t tid, struct proc_stat *st);
/* The VMM of that process, made when there is none; NULL: no memory. */
struct vmm *vms_vmm_get(struct vms *s, struct vms_proc *p, const struct proc_stat *st);
/*
 * Brings a VMM's VMs, vCPUs and threads up to date. A VMM without VMs is dropped: the
 * pointer is then dead and false is returned.
 */
enum vms_look {
	LOOK_THREADS, /* which threads there are, and new vCPUs */
	LOOK_VCPUS, /* and which thread runs which vCPU */
	LOOK_ALL, /* and the process's descriptors */
};

bool vms_scan(struct vms *s, struct vmm *m, enum vms_look look);
/* Which thread runs which vCPU, as debugfs says it; nothing else. */
void vms_look_vcpus(struct vms *s, struct vmm *m);
/* A VM of that key in m; adopts the provisional one of s->unknown when `alone`. */
struct inv_vm *vms_take_vm(struct vms *s, struct vmm *m, const char *key, int fd, bool alone);
/* The thread list alone. 0 or -errno: the process ended. */
int vms_scan_tasks(struct vms *s, struct vmm *m);
void vms_drop(struct vms *s, struct vmm *m);
/* How many threads it has now; 0: it ended. */
long vms_nthreads(const struct vms *s, const struct vmm *m);

/* vms_fds.c */
struct kvm_fd {
	int fd;
	enum kvm_link what;
	int kvm_id;
};

struct kvm_fds {
	struct kvm_fd *f; /* by number, without duplicates of one VM */
	size_t n, room;
	size_t nvm;
	bool dev; /* /dev/kvm is open */
};

int vms_fds_read(const struct vms *s, pid_t pid, struct kvm_fds *out); /* 0 or -errno */
void vms_fds_free(struct kvm_fds *f);
/* The descriptor is a VM still. */
bool vms_fd_is_vm(const struct vms *s, pid_t pid, int fd);
/* A fork of a VMM has its parent's VM open too, and is none. */
bool vms_fd_is_inherited(const struct vms *s, pid_t pid, pid_t ppid, int fd);
/* The descriptors are one and the same VM; false where the kernel does not say. */
bool vms_fd_is_same(const struct vms *s, pid_t pid1, int fd1, pid_t pid2, int fd2);
/* The VM descriptor that vCPU descriptor f->f[i] belongs to; guessed where there are several. */
int vms_fds_owner(const struct kvm_fds *f, size_t i);

/* vms_match.c */
/*
 * Which thread runs which vCPU, and under which number: by what is known without debugfs. True
 * where some of its vCPUs' threads have a name with a number and others have not (yet).
 */
bool vms_match(struct vms *s, struct vmm *m, struct inv_vm *vm);
/* Makes vCPUs of the threads that look like some, when nothing else may be read. */
void vms_guess_vcpus(struct vms *s, struct vmm *m, struct inv_vm *vm);
/* True when the process has threads that look like vCPUs. */
bool vms_looks_like_vmm(const struct vms *s, pid_t pid);

/* vms_name.c */
void vms_name(struct vms *s, struct vmm *m, struct inv_vm *vm);
/* Title, pins … of libvirt's file, which is read again when it changed. */
void vms_libvirt(struct vms *s, struct vmm *m);

/* vms_probe.c */
void vms_probe(const struct collector_env *env, struct probes *out);
bool vms_is_debugfs(const struct sysroot *root); /* mounted, and no other file system there */

#endif
