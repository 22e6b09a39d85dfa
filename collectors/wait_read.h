// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads what the programs of bpf/sched_wait.bpf.c wrote, out of the memory shared with them: what
 * came since the last reading, and what of a wait is in progress.
 */
#ifndef KVMTOP_COLLECTORS_WAIT_READ_H
#define KVMTOP_COLLECTORS_WAIT_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/sched_wait.h"
#include "hist.h"
#include "sample.h"

/* The shared arrays; whose memory they are is not this file's concern. */
struct wait_memory {
	uint32_t threads, cpus; /* entries; index 0 of threads is never used */
	struct sw_thread *thread;
	struct sw_set *set; /* SW_SETS a thread */
	struct sw_wake *wake;
	struct sw_cpu *cpu;
	uint32_t (*vm_of)(void *ctx, int32_t tid); /* the VM that a thread is of, 0: none */
	void *ctx;
};

/* What of a thread was read already. */
struct wait_seen {
	uint64_t id[SW_CELLS], ns[SW_CELLS];
	uint8_t still[SW_CELLS]; /* readings without a change */
	int64_t time; /* of the reading before, 0: there was none */
	uint64_t done, other, wakeups;
	bool has_delay; /* and the wait in which it was found, if it was in one, is over */
	uint64_t delay; /* the kernel's run delay */
	int64_t ahead; /* ns: waits that ended between the kernel's figure and ours, at most 0 */
	struct sw_wake wake;
};

#define WAIT_PARTS (SW_CELLS + 2)
/* What a reading points to. */
struct wait_buffer {
	struct wait_part part[WAIT_PARTS];
	char comm[WAIT_PARTS][SW_COMM + 1];
	uint64_t id[WAIT_PARTS];
	size_t n;
	uint64_t left; /* ns that the parts may still have together */
	uint32_t room[SW_OCTAVES][HIST_STEPS];
	struct hist wake;
};

/* The place of a thread that is to be watched: nothing in it. */
void wait_place_init(struct wait_memory *m, uint32_t index, int32_t tid);
/* It waits on this CPU already, as far as is known from elsewhere. */
void wait_place_waiting(struct wait_memory *m, uint32_t index, uint32_t cpu, int64_t now);
/* Nobody watches it any more: no CPU's slot has it. */
void wait_place_end(struct wait_memory *m, uint32_t index);

/*
 * What came since the last reading; sets all of *out but thread. delay: the thread's run delay as
 * the kernel tells it, NULL: not known. What out points to is in buf.
 *
 * The programs go on between `now` and the look at what they wrote, for long where we wait for a
 * CPU ourselves: what has no room in the time since the last reading is left to the next one.
 */
void wait_read(struct wait_memory *m, uint32_t index, int64_t now, const uint64_t *delay,
	       struct wait_seen *seen, struct wait_buffer *buf, struct wait_reading *out);

/* Changes of tasks on all CPUs since the last call; seen: a number a CPU, zero at first. */
uint64_t wait_switches(const struct wait_memory *m, uint32_t *seen);

#endif
