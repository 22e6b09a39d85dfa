// SPDX-License-Identifier: GPL-2.0-only
/*
 * From what a VMM's process shows to the VM's name. Pure functions: everything they
 * take is untrusted and returned as found.
 */
#ifndef KVMTOP_COLLECTORS_VMS_IDENTIFY_H
#define KVMTOP_COLLECTORS_VMS_IDENTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define VMS_NAME_MAX 256

struct vm_identity {
	char vmm[16]; /* qemu, firecracker, cloud-hypervisor cut to 15, …; "" not known */
	char name[VMS_NAME_MAX]; /* "" not known */
	char uuid[64]; /* "" not known */
};

/*
 * cmdline: /proc/<pid>/cmdline, len bytes with NULs between the arguments. exe: the target
 * of /proc/<pid>/exe or "". cgroup: the path of the process's cgroup or "".
 */
void vms_identify(const char *cmdline, size_t len, const char *exe, const char *comm, pid_t pid,
		  const char *cgroup, struct vm_identity *out);
/* The machine's name in a path like …/machine-qemu\x2d1\x2dweb01.scope/…; false: none. */
bool vms_machine_name(const char *cgroup, char *out, size_t size);
/* A VMM known by its program's name ("qemu-system-x86_64" → "qemu"), NULL: none. */
const char *vms_vmm_of(const char *program);
/* The number in a vCPU thread's name ("CPU 3/KVM"), -1: that is none. */
int vms_vcpu_index(const char *comm);
/*
 * "vhost-4711": a kernel helper of that thread; 0: that is none. *inner: the number is one of the
 * VMM's own pid namespace (kvm-pit), else it is the host's.
 */
pid_t vms_helper_of(const char *comm, bool *inner);

#endif
