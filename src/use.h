// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU and steal of a thread out of its readings, and their sums over a VM: the arithmetic of
 * docs/metrics.md, "CPU of a thread, a vCPU, a VM" and "Steal".
 */
#ifndef KVMTOP_USE_H
#define KVMTOP_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "sample.h"
#include "snapshot.h"

/* Figures in ticks need a window of a second to have the scale of those in ns. */
struct use_ticks {
	int64_t time;
	uint64_t utime, stime, gtime, gstime;
	int64_t wait_ns; /* the wait that was in progress, no ticks */
};

/* Of one thread; all zero before the first reading. */
struct use_state {
	bool seen; /* .last is a baseline */
	struct thread_reading last;
	struct use_ticks base, mid;
	int64_t wait_ns; /* w: the wait in progress at .last */
	double guest_share, sys_share; /* of run time, over the last whole window */
	bool shares_known, shares_partial;
	struct snap_use use; /* without quota */
};

/*
 * Takes one reading; clk_tck: ticks a second. A counter that went backwards makes the
 * figures pending and the reading the new baseline.
 */
void use_reading(struct use_state *u, const struct thread_reading *r, long clk_tck);

/* Of one quota: what held a VM, or one thread's own group, back. */
struct use_quota {
	bool seen;
	int64_t time;
	uint64_t throttled_ns;
	uint64_t quota_us, period_us;
	bool used_up, shared; /* as the reading says */
	double limit_pct;
	bool whole; /* the interval was many periods long */
	struct value throt; /* percent; NA where there is no cgroup */
};

void use_quota_reading(struct use_quota *q, const struct quota_reading *r);

/* The thread's figures, with what its quota did to it (quota NULL: nothing is known of one). */
void use_result(const struct use_state *u, const struct use_quota *quota, struct snap_use *out);

/*
 * A VM out of its threads: sums of CPU over all, means of steal and its parts over the
 * vCPUs. What is pending is left out and marks the result partial; where no vCPU is known yet the
 * result is pending.
 */
struct use_sum {
	struct {
		double v;
		unsigned known, pending, na;
		unsigned vcpus_known, vcpus_pending;
		bool partial;
		uint8_t why;
	} part[12];
	unsigned vcpus;
	double vcpu_steal, quota_steal; /* of all vCPUs; of those whose own quota it is */
};

void use_sum_add(struct use_sum *s, const struct snap_use *u, bool is_vcpu);
void use_sum_result(const struct use_sum *s, struct snap_use *out);

#endif
