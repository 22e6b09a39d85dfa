// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who runs on a CPU while a vCPU's thread waits for it.
 *
 * A watched thread that can run and does not stands in a slot of the CPU whose queue it is in. When
 * that CPU changes tasks, the time since the last change belongs to the one that goes, for each who
 * waits. A thread that is moved while it waits is accounted up to that moment and goes to a slot of
 * the other CPU.
 *
 * The kernel holds the lock of the queue at every one of these events, so that they are in order
 * for one thread; only the slot on the CPU that a thread moves to is taken without its lock. Where
 * the fields of an event are is told before loading, in constants read from its `format`.
 */
#include "sched_wait.h"
#include "programs.h"

#include <stdbool.h>

#define STATES 0xff /* of prev_state: why it sleeps; 0: it could go on */

MAPPED_ARRAY(threads, struct sw_thread);
MAPPED_ARRAY(sets, struct sw_set); /* SW_SETS a thread */
MAPPED_ARRAY(wakes, struct sw_wake);
MAPPED_ARRAY(cpus, struct sw_cpu);

/* tid of a watched thread: its index. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} watched SEC(".maps");

/* tid of a thread of a VM: the VM's number. All others are told apart by their name. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, __u32);
	__type(value, __u32);
} members SEC(".maps");

const volatile struct sw_config config SEC(".rodata.config");

/* Who has the CPU, and until when. */
struct who {
	__u64 now, id;
	__u64 comm[SW_COMM / 8];
	__u32 tid;
	__u32 left; /* watched threads that are still to be found in the slots */
};

/* ---- the record ---- */

static __always_inline __u32 number(const __u8 *raw, __u32 at)
{
	return *(const volatile __u32 *)(raw + at);
}

/* ---- memory ---- */

static __always_inline struct sw_thread *thread_at(__u32 index)
{
	return bpf_map_lookup_elem(&threads, &index);
}

static __always_inline struct sw_cpu *cpu_at(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* 0: nobody asked about it. */
static __always_inline __u32 index_of(__u32 tid)
{
	__u32 *found = tid ? bpf_map_lookup_elem(&watched, &tid) : NULL;

	return found ? *found : 0;
}

static __always_inline void set_who(struct who *w, __u32 tid, __u64 comm0, __u64 comm1)
{
	__u32 *vm = tid ? bpf_map_lookup_elem(&members, &tid) : NULL;

	w->tid = tid;
	w->comm[0] = comm0;
	w->comm[1] = comm1;
	if (!tid)
		w->id = SW_IDLE;
	else if (vm)
		w->id = *vm;
	else
		w->id = sw_task_id(comm0, comm1);
}

/* ---- accounting ---- */

static __always_inline void add(struct sw_thread *t, __u32 index, const struct who *w, __u64 ns)
{
	__u32 at = index * SW_SETS + (__u32)(sw_mix(w->id) >> 61);
	struct sw_set *s = bpf_map_lookup_elem(&sets, &at);

	if (!s)
		return;
	for (int i = 0; i < SW_WAYS; i++)
		if (s->way[i].id == w->id) {
			__sync_fetch_and_add(&s->way[i].ns, ns);
			return;
		}
	for (int i = 0; i < SW_WAYS; i++)
		if (!s->way[i].id && !__sync_val_compare_and_swap(&s->way[i].id, 0, w->id)) {
			s->way[i].comm[0] = w->comm[0];
			s->way[i].comm[1] = w->comm[1];
			__sync_fetch_and_add(&s->way[i].ns, ns);
			return;
		}
	__sync_fetch_and_add(&t->other, ns);
}

/* Each moment of a wait is taken once, also where kvmtop takes what is in progress. */
__noinline int account(struct who *w, __u32 index)
{
	struct sw_thread *t = thread_at(index);
	__u64 from;

	if (!w)
		return 0;
	w->left--;
	if (!t || t->tid == w->tid)
		return 0;
	from = *(volatile __u64 *)&t->since;
	if ((__s64)(w->now - from) <= 0)
		return 0;
	if (__sync_val_compare_and_swap(&t->since, from, w->now) == from)
		add(t, index, w, w->now - from);
	return 0;
}

static __always_inline void account_all(struct sw_cpu *c, struct who *w)
{
	w->left = c->used;
	/* The lowest free slot is taken, so that those in use stand close together. */
	for (int i = 0; i < SW_SLOTS && w->left; i++) {
		__u32 index = *(volatile __u32 *)&c->slot[i];

		if (index)
			account(w, index);
	}
}

/* ---- slots ---- */

static __always_inline void take_slot(struct sw_thread *t, __u32 index, __u32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);

	t->slot = SW_SLOTS;
	t->cpu = (__s32)cpu;
	if (!c)
		return;
	for (__u32 i = 0; i < SW_SLOTS; i++)
		if (!c->slot[i] && !__sync_val_compare_and_swap(&c->slot[i], 0, index)) {
			__sync_fetch_and_add(&c->used, 1);
			t->slot = i;
			return;
		}
}

static __always_inline void leave_slot(struct sw_thread *t, __u32 index)
{
	struct sw_cpu *c = cpu_at((__u32)t->cpu);
	__u32 slot = t->slot;

	t->cpu = -1;
	if (!c || slot >= SW_SLOTS)
		return;
	if (__sync_val_compare_and_swap(&c->slot[slot & (SW_SLOTS - 1)], index, 0) == index)
		__sync_fetch_and_add(&c->used, (__u32)-1);
}

/* ---- what happens to a watched thread ---- */

static __always_inline __u32 highest_bit(__u64 v)
{
	__u32 n = 0;

	for (int i = 32; i; i /= 2)
		if (v >> i) {
			n += i;
			v >>= i;
		}
	return n;
}

/* As hist.c places it. */
static __always_inline void add_wake(__u32 index, __u64 ns)
{
	struct sw_wake *h = bpf_map_lookup_elem(&wakes, &index);
	__u32 octave = 0, step = (__u32)ns & (SW_STEPS - 1), bit;

	if (!h)
		return;
	if (ns >= SW_STEPS) {
		bit = highest_bit(ns);
		octave = bit - 4;
		step = (__u32)(ns >> ((bit - 5) & 63)) & (SW_STEPS - 1);
	}
	if (octave >= SW_OCTAVES) {
		octave = SW_OCTAVES - 1;
		step = SW_STEPS - 1;
	}
	__sync_fetch_and_add(&h->n[octave][step & (SW_STEPS - 1)], 1);
}

__noinline int begin_wait(__u32 index, __u32 cpu, __u64 now, __u32 woken)
{
	struct sw_thread *t = thread_at(index);

	if (!t || t->cpu >= 0)
		return 0;
	t->begin = t->queued = now;
	*(volatile __u64 *)&t->since = now;
	t->woken = woken;
	take_slot(t, index, cpu);
	return 0;
}

__noinline int end_wait(__u32 index, __u64 now)
{
	struct sw_thread *t = thread_at(index);
	__u64 ns;

	if (!t)
		return 0;
	t->on = 1;
	if (t->cpu < 0)
		return 0;
	leave_slot(t, index);
	ns = now > t->begin ? now - t->begin : 0;
	t->done += now > t->queued ? now - t->queued : 0;
	t->waits++;
	if (t->woken) {
		t->wakeups++;
		add_wake(index, ns);
	}
	return 0;
}

/*
 * It goes from its CPU. Where it was taken to wait it had come unseen, for the kernel leaves a
 * program out while another one runs: what was accounted till then was its wait.
 */
__noinline int leave_cpu(__u32 index, __u32 cpu, __u64 now, __u32 state)
{
	struct sw_thread *t = thread_at(index);

	if (!t)
		return 0;
	if (t->cpu >= 0) {
		leave_slot(t, index);
		t->done += t->since - t->queued;
	}
	t->on = 0;
	if (!(state & STATES))
		begin_wait(index, cpu, now, 0);
	return 0;
}

/* ---- events ---- */

SEC("tp")
int kvmtop_switch(void *ctx)
{
	__u64 raw[SW_RECORD / 8];
	const __u8 *r = (const __u8 *)raw;
	__u32 cpu = bpf_get_smp_processor_id(), prev, next, index;
	struct sw_cpu *c = cpu_at(cpu);
	struct who w = {};

	if (!c || bpf_probe_read_kernel(raw, config.need_switch, ctx))
		return PASS_ON;
	c->switches++;
	w.now = bpf_ktime_get_ns();
	prev = number(r, config.prev_pid);
	next = number(r, config.next_pid);
	if (c->used) {
		__u64 comm[SW_COMM / 8] = {};

		bpf_get_current_comm(comm, sizeof(comm));
		set_who(&w, prev, comm[0], comm[1]);
		account_all(c, &w);
	}
	index = index_of(next);
	if (index)
		end_wait(index, w.now);
	index = index_of(prev);
	if (index)
		leave_cpu(index, cpu, w.now, number(r, config.prev_state));
	c->tid = next;
	c->comm[0] = *(const volatile __u64 *)(r + config.next_comm);
	c->comm[1] = *(const volatile __u64 *)(r + config.next_comm + 8);
	c->seen = 1;
	return PASS_ON;
}

static __always_inline int on_wakeup(void *ctx)
{
	__u64 raw[SW_RECORD / 8];
	const __u8 *r = (const __u8 *)raw;
	struct sw_thread *t;
	__u32 index;

	if (bpf_probe_read_kernel(raw, config.need_wakeup, ctx))
		return PASS_ON;
	index = index_of(number(r, config.wake_pid));
	t = index ? thread_at(index) : NULL;
	/* One that was about to sleep goes on without having left its CPU. */
	if (t && !t->on)
		begin_wait(index, number(r, config.wake_cpu), bpf_ktime_get_ns(), 1);
	return PASS_ON;
}

SEC("tp")
int kvmtop_wakes(void *ctx)
{
	return on_wakeup(ctx);
}

SEC("tp")
int kvmtop_new(void *ctx)
{
	return on_wakeup(ctx);
}

SEC("tp")
int kvmtop_migrate(void *ctx)
{
	__u64 raw[SW_RECORD / 8];
	const __u8 *r = (const __u8 *)raw;
	struct sw_thread *t;
	struct sw_cpu *c;
	struct who w = {};
	__u32 index;

	if (bpf_probe_read_kernel(raw, config.need_migrate, ctx))
		return PASS_ON;
	index = index_of(number(r, config.migrate_pid));
	t = index ? thread_at(index) : NULL;
	if (!t || t->cpu < 0)
		return PASS_ON;
	c = cpu_at((__u32)t->cpu);
	w.now = bpf_ktime_get_ns();
	if (c && c->seen && t->slot < SW_SLOTS) {
		set_who(&w, c->tid, c->comm[0], c->comm[1]);
		account(&w, index);
	}
	leave_slot(t, index);
	/* For the kernel one wait ends here, and another begins. */
	t->done += w.now > t->queued ? w.now - t->queued : 0;
	t->queued = w.now;
	*(volatile __u64 *)&t->since = w.now;
	take_slot(t, index, number(r, config.migrate_to));
	return PASS_ON;
}

const char _license[] SEC("license") = "GPL";
