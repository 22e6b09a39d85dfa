// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a vCPU, or all of a VM together, waited for in one interval: who had the CPU, and how long
 * it took from wake-up to running. Private to the model.
 */
#ifndef KVMTOP_WAITED_H
#define KVMTOP_WAITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hist.h"
#include "sample.h"
#include "snapshot.h"

#define WAITED_NAME 64

/* One who had the CPU. Equal kinds, VMs and names are one. */
struct waited_by {
	uint8_t kind; /* enum waited_kind */
	uint32_t vm; /* inv_vm.id, 0 none */
	uint64_t ns;
	char name[WAITED_NAME]; /* unescaped */
};

struct waited {
	bool seen; /* there was a reading with figures in the interval */
	bool whole; /* what nobody explains is known */
	int64_t dt; /* ns, summed over threads */
	struct waited_by *by;
	size_t n, room;
	uint64_t wakeups;
	struct hist wake;
};

/* Adds to the one of this kind, VM and name; without memory, or above a bound, to `other`. */
void waited_add(struct waited *w, enum waited_kind kind, uint32_t vm, const char *name,
		uint64_t ns);
/* The largest first; `other` and what is unexplained behind them. */
void waited_sort(struct waited *w);
uint64_t waited_sum(const struct waited *w);
/* Ready for the next interval; keeps the memory. */
void waited_clear(struct waited *w);
void waited_free(struct waited *w); /* what it holds; fine when zeroed */

#endif
