// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which guest code makes the exits of one VM: exits by (reason, address of the guest). Bounded, and
 * kept for VMs that somebody asks about only: counting here is on the events' way.
 */
#ifndef KVMTOP_EXITS_CODE_H
#define KVMTOP_EXITS_CODE_H

#include <stdbool.h>
#include <stdint.h>

#define EX_CODE_PLACES 256 /* a power of two */
#define EX_CODE_MOST (EX_CODE_PLACES * 3 / 4) /* pairs that are told apart */

struct ex_code_cell {
	uint64_t key, rip; /* exit reason, guest address */
	uint64_t total; /* of intervals that are over */
	uint32_t isa, now; /* both counts 0: the place is free */
};

struct ex_code {
	unsigned n;
	uint64_t missed, missed_total; /* exits of pairs that found no place */
	bool lost, lost_before; /* of some nobody told: in this interval, before it */
	struct ex_code_cell cell[EX_CODE_PLACES]; /* by hash */
};

void ex_code_add(struct ex_code *c, uint32_t isa, uint64_t key, uint64_t rip);
/* Ends the interval: what was seen least makes room where it is short. */
void ex_code_next(struct ex_code *c);
void ex_code_reset(struct ex_code *c); /* the totals */

#endif
