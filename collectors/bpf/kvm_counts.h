// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory that kvm_count.bpf.c counts into and kvm_bpf_read.c reads: arrays of these structs,
 * mapped by both. Included by both, so of fixed-size members only.
 *
 * Whatever is counted has two halves. The programs write into the one of the current epoch;
 * kvmtop begins a new epoch, waits until no program is left in the old one, and reads that in
 * peace. A thread runs on one CPU at a time and writes into its own memory only, so nothing here
 * needs atomic additions but what threads share: `struct kc_control`. Index 0 of an array is never
 * used: it means none.
 */
#ifndef KVMTOP_BPF_KVM_COUNTS_H
#define KVMTOP_BPF_KVM_COUNTS_H

#include <linux/types.h>

#define KC_RECORD 96 /* bytes of an event's record that are looked at */
#define KC_TYPES 10 /* enum ev_type */
#define KC_KINDS 7 /* enum kvm_kind */
#define KC_KINDS_ROOM 8
#define KC_PAIRS 6 /* kinds that begin and end: all but halt */
#define KC_OCTAVES 48
#define KC_STEPS 32
#define KC_CPUS 4096
#define KC_EXIT_BUCKETS 8
/* Exits have their own: no port or MSR takes their place, of which a Linux that boots has 310. */
#define KC_BUCKETS (KC_EXIT_BUCKETS + 64)
#define KC_CHAIN 16 /* keys a bucket */
#define KC_CHAIN_FEW 4 /* beyond these only while half of all slots are free */
/*
 * Slots that a thread takes at once, so that its keys lie side by side: else each of them would be
 * in another page, and to come there is what reading them takes.
 */
#define KC_CHUNK 8
#define KC_STALE 8 /* epochs without an event: the key's place is given to another */
#define KC_FEW 8 /* different times of a key and epoch that need no octave */
#define KC_IDLE 16 /* reasons of exits in which the guest waits */
#define KC_SIBLINGS 16 /* vCPUs that one thread has run */
#define KC_SAMPLE 256
#define KC_SAMPLE_MAX 10000 /* ns; what takes longer was interrupted, or waited for its CPU */
#define KC_KNOWN 1024 /* words of the bits that tell threads apart that run no vCPU */

/* Where a field of a record is; size 0: the event has none. */
struct kc_field {
	__u16 offset;
	__u8 size, is_signed;
};

/* The shape of one event, as kvm_format.h has it. */
struct kc_layout {
	struct kc_field key, aux, dir, extra, vcpu;
	__u32 isa;
	__u8 dir_rule, key_rule;
	__u16 need; /* bytes of a record that are looked at */
	__u8 direct; /* they can be loaded word by word */
	__u8 unused[3];
};

struct kc_idle {
	__u64 key;
	__u32 isa, unused;
};

struct kc_config {
	__u32 threads, slots, octaves; /* entries of the arrays; powers of two */
	__u32 margin; /* this many programs can be between looking and taking */
	__u32 next_pid, unused; /* where sched_switch's record has it; 0: not known */
	struct kc_layout layout[KC_TYPES];
	struct kc_idle idle[KC_IDLE]; /* isa 0: no more */
};

/* What is free: threads, chunks of slots, octaves. */
enum kc_pool { KC_POOL_THREADS, KC_POOL_SLOTS, KC_POOL_OCTAVES, KC_POOLS };

/* First, in a cache line that hardly ever changes, what every event asks for. */
struct kc_control {
	__u32 epoch; /* counted from 1; its lowest bit is the half that is written */
	__u32 generation; /* changes with entry_exit: what is open then is void */
	__u32 entry_exit; /* kvm_entry and kvm_exit are open */
	__u32 seen; /* one of them fired */
	__u64 start[2]; /* ns: where the interval of a half begins */
	__u64 slow_ns; /* exits that take longer are told one by one; 0: none */
	__u64 fpu_since; /* ns: kvm_fpu is attached from here on; what began before may be over */
	__u64 switch_since; /* the same of sched_switch, which is not attached where it is 0 */
	__u32 ended; /* threads: their numbers may be others' */
	__u32 unused;
	__u32 dirty[2]; /* threads of that half in the list */
	__u32 head[KC_POOLS]; /* how many were taken from the list of free ones … */
	__u32 tail[KC_POOLS]; /* … of so many that were put into it */
	__u64 lost[KC_TYPES]; /* events for which there was no memory at all */
	__u64 other; /* events counted without their key */
	__u64 no_octave; /* times that are in no histogram */
};

struct kc_busy {
	__u64 n; /* odd: a program runs on this CPU */
	__u64 switches; /* of tasks, that were looked at */
	__u64 last; /* the thread of the last event here: index << 32 | tid; 0: none */
	__u64 runs; /* for events: one in KC_SAMPLE looks how long it takes */
	__u64 sampled_ns;
	__u32 samples;
	__u32 ended; /* as control had it at the last event */
	__u64 unused[2]; /* a cache line each */
};

struct kc_half {
	__u32 epoch;
	__u32 next; /* slot of the same thread that was written in this epoch */
	__u64 count, timed;
	__u64 sum, min, max; /* ns */
	__u64 within; /* ns of sum that are not before the interval */
	__u64 sumsq_low, sumsq_high;
	__u64 octaves; /* a bit each: its counters of this half are of this epoch */
};

#define KC_TAG(kind, dir, isa) ((__u64)(kind) | (__u64)(dir) << 8 | (__u64)(isa) << 32)

/*
 * What a slot counted in an epoch: an array of its own, first all slots' for one half, then for the
 * other. Two cache lines, and all that is read of a key with few different times: where a million
 * keys changed, the lines that are touched are what the reading takes.
 */
struct kc_count {
	__u64 key, tag;
	struct kc_half sums;
	__u32 few[KC_FEW]; /* KC_PLACE of a step << 16 | times in it; the first 0 ends them */
};

#define KC_PLACE(octave, step) ((octave)*KC_STEPS + (step))
#define KC_FEW_MAX 0xffff /* times; more of them are in the octave */

struct kc_slot {
	__u64 key, tag;
	__u32 next; /* in its bucket */
	__u32 before; /* of a chunk's first slot: that of the thread's chunk before it; 0: none */
	__u32 octave[KC_OCTAVES];
};

struct kc_octave {
	__u32 n[2][KC_STEPS];
};

struct kc_pair {
	__u64 begin, key, tag;
	__u64 rip; /* of exits: where the guest was */
	__u32 slot, unused;
};

/* A thread that had its first event. */
struct kc_news {
	__u32 tid, index;
};

/* An exit that took longer than control.slow_ns. */
struct kc_slow {
	__u64 begin, end, key, rip;
	__u64 user_begin, user_key; /* the last user exit in it; 0: none */
	__u32 isa, tid;
	__s32 vcpu;
	__u32 epoch;
	__u32 kind, unused; /* an exit, or what the VMM had of it (a user exit) */
};

/* How long the thread had no CPU in the exit that is open. */
struct kc_off {
	__u64 since; /* when it left its CPU; 0: it has one */
	__u64 ns; /* before that, in `epoch` only */
	__u32 epoch;
	__u32 blind; /* a switch was not seen: nothing can be said of this exit */
};

/* What was open when an epoch ended. */
struct kc_open {
	struct kc_pair exit, user;
	struct kc_off off;
	__u32 open, unused;
};

/* 2 KiB, so that none lies in two pages; what every event asks for is in the first cache line. */
struct kc_thread {
	__u32 tid, tgid;
	__s32 vcpu; /* KVM's id, -1 not known */
	__u32 epoch; /* the last in which it had an event */
	__u32 generation;
	__u32 open; /* KIND_BIT */
	__u32 sibling; /* the same thread with another vCPU */
	__u8 read_timed, dead;
	__u8 several; /* kvmtop says: its process has several VMs, and vCPUs of one number */
	__u8 in_vmm; /* a user exit came, and nothing since that says that it is over */
	__u8 lent; /* another thread runs its vCPU now */
	__u8 owner; /* by_vcpu says that it is this one that runs it */
	__u8 away; /* the thread runs another vCPU now */
	__u8 blind[2]; /* exits of that half's epoch of which no time off the CPU is known */
	__u8 unused[3];
	__u32 dirty[2]; /* its slots written in that half's epoch */
	__u32 unmatched[2];
	struct kc_pair pair[KC_PAIRS];
	__u32 others[2]; /* KIND_BIT: which of other[] that half's epoch has */
	__u32 slow[2]; /* slow exits; for some there may have been no room in the ring */
	struct kc_off off;
	__u64 off_ns[2]; /* of exits that ended, idle ones left out */
	__u32 bucket[KC_BUCKETS];
	struct kc_open before; /* as this epoch found it */
	struct kc_half other[2][KC_KINDS_ROOM]; /* of keys that found no place; in no histogram */
	__u32 chunk,
		used; /* the first slot of its newest chunk, of which so many are keys'; 0: none */
	__u64 room;
};

#endif
