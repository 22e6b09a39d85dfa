// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log-linear histogram of nanoseconds: 32 steps an octave (error ≤ 1/32 ≈ 3 %), sparse:
 * an octave's counters are allocated at its first use.
 */
#ifndef KVMTOP_HIST_H
#define KVMTOP_HIST_H

#include <stdint.h>

#define HIST_STEPS 32
#define HIST_OCTAVES 48 /* 2^5 … 2^52 ns; below 32 ns one step a ns; above: the last step */

struct hist {
	uint64_t used; /* a bit an octave that has counters */
	uint32_t (*octave)[HIST_STEPS]; /* those, lowest first */
};

/* -ENOMEM when the octave cannot be had (the value is then not counted). Counters saturate. */
int hist_add(struct hist *h, uint64_t ns, uint32_t n);
/*
 * The same for n steps at once, or up to the first 0: octave * HIST_STEPS + step in the high half
 * of each, how often in the low one. What is no octave is left out.
 */
int hist_add_few(struct hist *h, const uint32_t *few, unsigned n);
/* The same to two. */
int hist_add_few_twice(struct hist *h, struct hist *also, const uint32_t *few, unsigned n);
int hist_merge(struct hist *into, const struct hist *from);
void hist_clear(struct hist *h); /* keeps the memory */
void hist_trim(struct hist *h); /* frees octaves that are empty */
void hist_free(struct hist *h); /* frees the counters, not h */
/* The value below which share (0…1) of all lies: middle of its step; 0 when empty. */
uint64_t hist_quantile(const struct hist *h, double share);
/* The same for n shares in ascending order, in one pass; returns hist_count(). */
uint64_t hist_quantiles(const struct hist *h, const double *share, uint64_t *out, unsigned n);
/* The same of the sum of two, which is not made. */
uint64_t hist_quantiles_of_both(const struct hist *a, const struct hist *b, const double *share,
				uint64_t *out, unsigned n);
uint64_t hist_count(const struct hist *h);
/* The number of the step that holds a time, and a step's middle, which is what quantiles are. */
unsigned hist_step(uint64_t ns);
uint64_t hist_step_middle(unsigned step);
/* Adds to HEAT_BUCKETS half octaves from 2^4 ns (snapshot.h); below 2^4: the first. */
void hist_heat(const struct hist *h, uint32_t *heat);
/* The heat bucket of a time. */
unsigned hist_heat_bucket(uint64_t ns);
/* Lower bound of a heat bucket in ns. */
uint64_t hist_heat_floor(unsigned bucket);

#endif
