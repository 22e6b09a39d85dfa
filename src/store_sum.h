// SPDX-License-Identifier: GPL-2.0-only
/* Any number of intervals as one, in bounded memory. */
#ifndef KVMTOP_STORE_SUM_H
#define KVMTOP_STORE_SUM_H

#include <stdint.h>

#include "snapshot.h"

struct store_sum;

struct store_sum *store_sum_new(void); /* NULL: no memory */
void store_sum_free(struct store_sum *sum); /* NULL is fine */
/*
 * One more, in order of time; a reference is taken. What was of another run of the recorder before
 * is forgotten: VMs have other numbers there. 0 or -errno.
 */
int store_sum_add(struct store_sum *sum, struct snapshot *s, int64_t session);
/* All together; the caller's reference. -ENOENT: there was none, or another -errno. */
int store_sum_take(struct store_sum *sum, struct snapshot **out);

#endif
