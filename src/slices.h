// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exits and accesses of one vCPU in slices of time, finer than the interval: how many began in a
 * slice, and of those that ended in it how long they took. Made of each event; bounded. Pairs are
 * those of exits.c.
 */
#ifndef KVMTOP_SLICES_H
#define KVMTOP_SLICES_H

#include <stdint.h>

#include "exits_cells.h"
#include "sample.h"
#include "snapshot.h"

#define SLICES_CELLS 1024 /* a power of two */
#define SLICES_MOST (SLICES_CELLS * 3 / 4) /* (slice, key) that are told apart */

struct slice_cell {
	int64_t at; /* where the slice begins, a multiple of its length */
	struct ex_key key;
	uint32_t count, timed; /* both 0: the place is free */
	uint32_t heat[HEAT_BUCKETS];
};

struct slice_pair {
	bool open;
	int64_t begin;
	struct ex_key key;
};

struct slices {
	int64_t ns; /* length of a slice */
	uint64_t events; /* taken since the last slices_next() */
	uint64_t missed; /* of those what found no place */
	struct slice_pair pair[KIND_HALT];
	bool read_timed; /* this exit's MMIO read has its time */
	size_t n;
	struct slice_cell cell[SLICES_CELLS];
};

struct slices *slices_new(int64_t ns); /* NULL: no memory */
void slices_free(struct slices *s); /* NULL is fine */
/* Events of the vCPU, in time order. */
void slices_add(struct slices *s, const struct sample *x, size_t n);
/* Events are missing: what is open has perhaps ended long ago. */
void slices_torn(struct slices *s);
/* The next interval; what is open stays so. */
void slices_next(struct slices *s);

#endif
