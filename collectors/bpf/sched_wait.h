// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory that sched_wait.bpf.c writes and wait_read.c reads: arrays of these structs, mapped by
 * both. Included by both, so of fixed-size members only.
 *
 * Nothing here is ever set back while a thread is watched: counters grow, and kvmtop takes
 * differences. What several CPUs may write at once is written by atomic operations. Index 0 of a
 * thread is never used: it means none.
 */
#ifndef KVMTOP_BPF_SCHED_WAIT_H
#define KVMTOP_BPF_SCHED_WAIT_H

#include <linux/types.h>

#define SW_RECORD 128 /* bytes of an event's record that are looked at */
#define SW_COMM 16
#define SW_SLOTS 64 /* watched threads that can wait for one CPU at once */
#define SW_SETS 8 /* a thread's table of who ran: sets of … */
#define SW_WAYS 8 /* … so many places */
#define SW_CELLS (SW_SETS * SW_WAYS)
#define SW_OCTAVES 34 /* as hist.h places them; above: the last step */
#define SW_STEPS 32
#define SW_TASK (1ull << 63) /* in an id: made of a name, and no VM's number */
#define SW_IDLE SW_TASK /* the idle task, whatever the CPU */

static inline __u64 sw_mix(__u64 v)
{
	v *= 0x9e3779b97f4a7c15ull;
	return v ^ v >> 29;
}

/* The id of who has this name. */
static inline __u64 sw_task_id(__u64 comm0, __u64 comm1)
{
	return SW_TASK | (sw_mix(comm0) + sw_mix(comm1 ^ 0x5bd1e995)) | 1;
}

/* Where the fields of the four events are, in bytes. */
struct sw_config {
	__u32 need_switch, need_wakeup, need_migrate; /* of a record, rounded up to 8 */
	__u32 prev_pid, prev_state, next_pid, next_comm;
	__u32 wake_pid, wake_cpu;
	__u32 migrate_pid, migrate_to;
};

/* A watched thread: of a vCPU. */
struct sw_thread {
	__u32 tid;
	__s32 cpu; /* where it waits, -1: it does not */
	__u32 slot; /* its place there, SW_SLOTS: there was none */
	__u32 on; /* it runs */
	__u32 woken; /* this wait began with a wake-up */
	__u32 unused;
	__u64 begin; /* of this wait, ns CLOCK_MONOTONIC */
	__u64 queued; /* since then in this CPU's queue: not in `done` yet */
	__u64 since; /* from here on it is not accounted yet */
	__u64 done; /* ns in queues that it left, as the kernel counts its run delay */
	__u64 waits, wakeups; /* how many ended; of those that began with a wake-up */
	__u64 other; /* ns: who ran found no place */
};

/* Who ran while it waited. */
struct sw_cell {
	__u64 id; /* the number of a VM, or SW_TASK | hash of the name; 0: free */
	__u64 ns;
	__u64 comm[SW_COMM / 8];
};

struct sw_set {
	struct sw_cell way[SW_WAYS];
};

/* From wake-up to running. */
struct sw_wake {
	__u32 n[SW_OCTAVES][SW_STEPS];
};

struct sw_cpu {
	__u32 seen; /* it switched since the programs are there: `tid` is known */
	__u32 tid; /* who runs */
	__u32 used; /* slots in use */
	__u32 switches; /* of tasks, on its way round; only this CPU writes it */
	__u64 comm[SW_COMM / 8];
	__u32 slot[SW_SLOTS]; /* the threads that wait */
} __attribute__((aligned(64)));

#endif
