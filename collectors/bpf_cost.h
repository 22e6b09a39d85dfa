// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a group of programs in the kernel costs those in whose way they run, measured: now and then
 * the kernel is asked for a moment how long they run. To keep it measuring would cost each program
 * of the host two looks at the clock every time.
 */
#ifndef KVMTOP_COLLECTORS_BPF_COST_H
#define KVMTOP_COLLECTORS_BPF_COST_H

#include <stdint.h>

#define BPF_COST_PROGRAMS 16

struct bpf_cost {
	int program[BPF_COST_PROGRAMS]; /* their descriptors, which are the caller's */
	unsigned n;
	double each; /* ns a unit; until the first measuring what the caller took it for */
	int measuring; /* the descriptor that keeps the kernel measuring; -1: it does not */
	int64_t next; /* ns: when to measure again */
	uint64_t ns, runs; /* of all programs, when it began */
};

/* assumed: ns a unit before anything was measured. */
void bpf_cost_init(struct bpf_cost *c, double assumed);
/* Nothing where fd < 0 or there is no room. */
void bpf_cost_add(struct bpf_cost *c, int fd);
/*
 * Once an interval: `units` is what the programs had to do in it, by whatever the caller counts
 * (events, changes of tasks). Returns what that cost, in ns.
 */
uint64_t bpf_cost_tick(struct bpf_cost *c, int64_t now, uint64_t units);
/*
 * Instead of bpf_cost_tick(), for programs that look themselves how long they take: `samples` runs
 * of all `runs` in the interval took `ns`. Returns what all of them cost, in ns.
 */
uint64_t bpf_cost_sampled(struct bpf_cost *c, uint64_t ns, uint64_t samples, uint64_t runs);
void bpf_cost_end(struct bpf_cost *c); /* no more measuring; the caller keeps the programs */

#endif
