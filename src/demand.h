// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the readers of snapshots (screen, batch, recording) need now. It goes from them to the
 * collectors, so that events are open only while somebody looks; both include this and not each
 * other.
 */
#ifndef KVMTOP_DEMAND_H
#define KVMTOP_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

/* demand.slow_ns: what is asked for when nothing else is said, and what can be (ns). */
#define SLOW_DEFAULT_NS 500000u
#define SLOW_LEAST_NS 1000u
#define SLOW_MOST_NS 60000000000u
/* So many VMs may be asked for by themselves; who wants more asks for all. */
#define DEMAND_VMS 16

/* The engine merges those of all readers. */
struct demand {
	unsigned kinds; /* KIND_BIT: keep these events open */
	unsigned given_up; /* the engine: these cost too much, and are closed at once */
	bool exits_all_vcpus; /* exit rows for every vCPU, not only the selected VM's */
	bool threads; /* the other threads of VMMs every tick */
	bool tasks; /* the busiest tasks that belong to no VM */
	bool others_quiet; /* the engine: all that is no VM does next to nothing */
	bool samples; /* where the CPUs are: hot symbols */
	bool samples_all; /* rows of symbols for every VM and vCPU, not only the selected VM's */
	bool exit_code; /* which guest code makes the exits */
	bool exit_where; /* the engine: some exits tell whether guests' symbols fit */
	bool exit_places; /* the engine: a guest's symbols wait for places where it exits */
	bool exit_off; /* the engine: how long threads in exits have no CPU */
	uint8_t sample_shift; /* the engine: sample 2^n times more seldom than wanted */
	bool waits; /* who had the CPU while vCPUs of the selected VM waited */
	bool waits_all; /* the same for every VM */
	uint64_t slow_ns; /* single exits that take longer are told apart; 0: none */
	bool slow_past; /* those of past intervals too, as far as they are kept */
	unsigned
		slices; /* KIND_BIT: of the selected vCPU each event, for its histogram over time */
	int64_t slice_ns; /* how finely; 0: none */
	bool pmu; /* the PMUs of the selected VM's vCPUs */
	bool pmu_all; /* those of all VMs */
	bool pins; /* PIN and NODE are on screen */
	uint32_t vm; /* selected VM (inv_vm.id), 0 none */
	uint32_t vcpu; /* selected vCPU (inv_vcpu.id), 0 none */
	uint32_t code_vm[DEMAND_VMS]; /* exit_code: of these as well (inv_vm.id), 0 none */
};

/* Room for one more in code_vm; false: it is full. */
static inline bool demand_add_code(struct demand *d, uint32_t vm)
{
	for (unsigned i = 0; i < DEMAND_VMS; i++)
		if (!d->code_vm[i] || d->code_vm[i] == vm) {
			d->code_vm[i] = vm;
			return true;
		}
	return false;
}

/* Is it asked which guest code makes the exits of this VM? */
static inline bool demand_code_of(const struct demand *d, uint32_t vm)
{
	bool wanted = d->samples_all || d->vm == vm;

	for (unsigned i = 0; i < DEMAND_VMS && !wanted; i++)
		wanted = d->code_vm[i] == vm;
	return d->exit_code && wanted;
}

#endif
