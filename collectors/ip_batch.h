// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples of one look at the rings, those alike as one with their number: a busy CPU is found at
 * the same few addresses again and again, and what is there is asked for once.
 */
#ifndef KVMTOP_COLLECTORS_IP_BATCH_H
#define KVMTOP_COLLECTORS_IP_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sample.h"

#define IP_BATCH 512 /* different ones */
#define IP_PLACES 1024 /* a power of two, twice as many */

/* All zero: empty. */
struct ip_batch {
	struct ip_sample s[IP_BATCH];
	uint16_t place[IP_PLACES]; /* by hash: index in s + 1, 0 none */
	unsigned n;
};

/* Counts s->n samples. False: another one of s has no room, and b is as it was. */
bool ip_batch_add(struct ip_batch *b, const struct ip_sample *s);
void ip_batch_clear(struct ip_batch *b);

#endif
