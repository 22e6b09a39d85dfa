// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps kvmtop's cost within --max-overhead: its own CPU time plus what the open events
 * are estimated to add to the guests, both in percent of the host.
 */
#ifndef KVMTOP_GOVERNOR_H
#define KVMTOP_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot.h"

#define GOVERNOR_SOURCE "overhead" /* by that name a snapshot's sources have its words */

struct governor {
	double max_pct; /* 0: never drops anything */
	unsigned dropped; /* KIND_BIT of what was given up; KIND_VMEXIT: entry and exit */
	bool no_waits; /* nobody watches who has the CPU any more */
	bool no_slices; /* the selected vCPU's events are not taken one by one any more */
	bool no_code; /* nor are exits, for which code makes them */
	bool no_exit_off; /* exits are not told apart any more by whether they had a CPU */
	uint8_t sample_shift; /* samples are taken 2^n times more seldom; before kinds are dropped
			       */
	int64_t over_since, retry_at, backoff;
	int64_t cpu_ns; /* own CPU time at the last look */
	int64_t time;
	double self_pct, guest_pct;
};

void governor_init(struct governor *g, double max_pct);
/* Own CPU time since the last call, in percent of ncpu CPUs; < 0 at the first. */
double governor_self(struct governor *g, int64_t now, unsigned ncpu);
/*
 * Looks at an interval's events and samples and decides what may stay open. True when `dropped`,
 * `sample_shift` or one of the no_… changed.
 */
bool governor_look(struct governor *g, const struct snapshot *s);
/* True where something was given up, not only made coarser. */
bool governor_gave_up(const struct governor *g);
/* "msr, mmio", and "single events" of a vCPU, "waits", for the screen; buf is returned. */
const char *governor_text(const struct governor *g, char *buf, unsigned long size);
/* Do such words have events of that kind among what was given up? */
bool governor_names(const char *text, enum kvm_kind kind);

#endif
