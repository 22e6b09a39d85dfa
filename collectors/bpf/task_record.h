// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the programs in task_iter.bpf.c write for each thread, and sched_iter.c reads.
 *
 * Included by both, so of fixed-size members only.
 */
#ifndef KVMTOP_BPF_TASK_RECORD_H
#define KVMTOP_BPF_TASK_RECORD_H

#include <linux/types.h>

struct task_record {
	__u64 token; /* what was stored under the thread's id */
	__u64 time; /* ns, CLOCK_MONOTONIC */
	__u64 start; /* ns since boot */
	__u64 run_ns, delay_ns, nr_sched; /* as schedstat has them */
	__u64 utime, stime, gtime; /* ns as accounted by ticks; utime contains gtime */
	__u64 minflt, majflt, blkio_ns;
	__u64 vol, nonvol; /* switches */
	__u32 tid;
	__u32 state; /* __state and exit_state, the kernel's bits */
	__s32 cpu;
	__u32 on_cpu; /* it has a CPU at this moment */
};

/* Of a thread that nobody stored a token for; a process's own figures are in that of its leader. */
struct other_record {
	__u64 run_ns; /* its own; the leader's has what threads of it ran that ended */
	__u64 start; /* ns since boot */
	__u32 tid, pid; /* equal: the process's leader */
	__u32 state; /* as above */
	__u32 worker; /* the kernel's PF_WQ_WORKER: /proc has a longer name for it */
	char comm[16];
};

#endif
