// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the scheduler's counters of chosen threads in one pass over the kernel's list: a tenth of
 * what two files of /proc a thread cost, and whether a thread has a CPU at this moment comes with
 * it.
 *
 * Members are found by their names in the running kernel's own type information (CO-RE), so the
 * structs below name only what is used. Those that a kernel may lack or call otherwise are asked
 * for.
 */
#include "task_record.h"

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#define OF_THE_KERNEL __attribute__((preserve_access_index))

struct thread_info {
	__u32 cpu;
} OF_THE_KERNEL;

struct sched_entity {
	__u64 sum_exec_runtime;
} OF_THE_KERNEL;

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
} OF_THE_KERNEL;

/* What threads ran that ended, of the whole process. */
struct signal_struct {
	unsigned long long sum_sched_runtime;
} OF_THE_KERNEL;

struct task_delay_info {
	__u64 blkio_delay;
} OF_THE_KERNEL;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu;
	unsigned int cpu; /* before 5.16 on some architectures */
	struct sched_entity se;
	struct sched_info sched_info;
	int exit_state;
	unsigned int flags;
	int pid, tgid;
	__u64 utime, stime, gtime;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	__u64 start_boottime;
	char comm[16];
	struct signal_struct *signal;
	struct task_delay_info *delays;
} OF_THE_KERNEL;

/* Before 5.14. */
struct task_struct___older {
	volatile long state;
} OF_THE_KERNEL;
/* Before 5.5. */
struct task_struct___oldest {
	__u64 real_start_time;
} OF_THE_KERNEL;

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} OF_THE_KERNEL;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} OF_THE_KERNEL;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, __u32);
	__type(value, __u64);
} wanted SEC(".maps");

static __u32 state_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return (__u32)((struct task_struct___older *)t)->state;
}

static __u64 start_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->start_boottime))
		return t->start_boottime;
	return ((struct task_struct___oldest *)t)->real_start_time;
}

static __s32 cpu_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->thread_info.cpu))
		return (__s32)t->thread_info.cpu;
	if (bpf_core_field_exists(t->cpu))
		return (__s32)t->cpu;
	return -1;
}

SEC("iter/task")
int kvmtop_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct task_record r = {};
	struct task_delay_info *delays;
	__u64 *token;
	__u32 tid;

	if (!t)
		return 0;
	tid = (__u32)t->pid;
	token = bpf_map_lookup_elem(&wanted, &tid);
	if (!token)
		return 0;
	r.token = *token;
	r.tid = tid;
	r.start = start_of(t);
	r.state = state_of(t) | (__u32)t->exit_state;
	r.on_cpu = (__u32)t->on_cpu;
	r.cpu = cpu_of(t);
	r.delay_ns = t->sched_info.run_delay;
	r.nr_sched = t->sched_info.pcount;
	r.vol = t->nvcsw;
	r.nonvol = t->nivcsw;
	r.utime = t->utime;
	r.stime = t->stime;
	r.gtime = t->gtime;
	r.minflt = t->min_flt;
	r.majflt = t->maj_flt;
	delays = t->delays;
	if (delays)
		r.blkio_ns = delays->blkio_delay;
	r.run_ns = t->se.sum_exec_runtime;
	r.time = bpf_ktime_get_ns();
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

#define PF_WQ_WORKER 0x20

/* All threads but those, for what the host's other processes do. */
SEC("iter/task")
int kvmtop_others(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct other_record r = {};
	struct signal_struct *signal;
	__u32 tid;

	if (!t)
		return 0;
	tid = (__u32)t->pid;
	if (bpf_map_lookup_elem(&wanted, &tid))
		return 0;
	r.tid = tid;
	r.pid = (__u32)t->tgid;
	r.run_ns = t->se.sum_exec_runtime;
	if (r.tid == r.pid) {
		r.start = start_of(t);
		r.state = state_of(t) | (__u32)t->exit_state;
		r.worker = !!(t->flags & PF_WQ_WORKER);
		bpf_probe_read_kernel_str(r.comm, sizeof(r.comm), t->comm);
		signal = t->signal;
		if (signal)
			r.run_ns += signal->sum_sched_runtime;
	}
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

const char _license[] SEC("license") = "GPL";
