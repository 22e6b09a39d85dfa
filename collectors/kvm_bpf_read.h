// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads what the programs of bpf/kvm_count.bpf.c counted, out of the memory shared with them:
 * no system call a key or thread, and only what changed.
 */
#ifndef KVMTOP_COLLECTORS_KVM_BPF_READ_H
#define KVMTOP_COLLECTORS_KVM_BPF_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/kvm_counts.h"
#include "sample.h"

/* What the programs had to do, on all CPUs. */
struct kvm_counts_runs {
	uint64_t switches; /* changes of tasks that were looked at */
	uint64_t events; /* runs for events, some of which are none that is counted */
	uint64_t sampled_ns, samples; /* what so many of these took */
};

/* The shared arrays; whose memory they are is not this file's concern. */
struct kvm_counts {
	uint32_t threads, slots, octaves; /* entries, powers of two */
	uint32_t cpus; /* entries of busy */
	struct kc_control *control;
	struct kc_thread *thread;
	struct kc_slot *slot;
	struct kc_count *count; /* 2 * slots */
	struct kc_octave *octave;
	struct kc_busy *busy;
	uint64_t *dirty; /* 2 * threads */
	uint64_t *free[KC_POOLS]; /* threads, slots / KC_CHUNK, octaves */
	uint64_t lost[KC_TYPES]; /* as of the last reading */
	uint64_t other, no_octave; /* the same */
	struct kvm_counts_runs runs; /* the same */
};

/* What one reading found out beside what it handed over. */
struct kvm_counts_state {
	uint64_t exits, all; /* events: kvm_exit; of all kinds */
	uint64_t other, no_octave; /* counted without their key; times in no histogram */
	struct kvm_counts_runs runs;
};

/* Makes everything free; before the first program runs. */
void kvm_counts_init(struct kvm_counts *c);
/*
 * Ends the interval, the next one begins at `watermark` (ns): hands over what was counted in it,
 * what is open at its end and what could not be counted. Frees the memory of threads that ended.
 */
void kvm_counts_read(struct kvm_counts *c, int64_t watermark, const struct sink *sink,
		     struct kvm_counts_state *out);

#endif
