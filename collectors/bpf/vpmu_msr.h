// SPDX-License-Identifier: GPL-2.0-only
/*
 * What vpmu_msr.bpf.c and vpmu_msrs.c share: a hash of what each thread's guest did to each MSR of
 * a PMU. Of fixed-size members only.
 */
#ifndef KVMTOP_BPF_VPMU_MSR_H
#define KVMTOP_BPF_VPMU_MSR_H

#include <linux/types.h>

#define VM_RECORD 64 /* bytes of the event's record that are looked at */
#define VM_RANGES 16

struct vm_range {
	__u32 first, last;
};

/* Where the fields of kvm_msr are, in bytes, and which MSRs count. */
struct vm_config {
	__u32 need; /* of a record, rounded up to 8 */
	__u32 write, ecx, data, exception; /* exception 0: the event has none */
	struct vm_range range[VM_RANGES]; /* unused ones: first 1, last 0 */
};

struct vm_key {
	__u32 tid, msr;
};

/* Only the thread that runs the vCPU writes it. */
struct vm_access {
	__u64 last; /* ns CLOCK_MONOTONIC */
	__u64 value; /* of the last write that took effect */
	__u64 written; /* ns, when that was */
	__u64 count; /* reads and writes */
	__u64 refused; /* of them: #GP */
	__u32 has_value;
	__u32 write_refused; /* the last write was */
};

#endif
