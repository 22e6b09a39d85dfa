// SPDX-License-Identifier: GPL-2.0-only
/*
 * What of a snapshot is recorded, where not all of it: of a vCPU its four largest keys a kind of
 * exit and `other`, without histograms, of symbols the twenty with most samples of each VM and
 * `other`, none of vCPUs,
 * of who had the CPU while it waited the first eight of a VM and the first three of a vCPU, the
 * rest as `other`, so that the rows still add up to all that it waited.
 */
#ifndef KVMTOP_STORE_REDUCE_H
#define KVMTOP_STORE_REDUCE_H

#include "snapshot.h"

#define STORE_VCPU_KEYS 4
#define STORE_SYMBOLS_MOST 20
#define STORE_VM_WAITED 8
#define STORE_VCPU_WAITED 3
/* … of those that had the CPU for so many percent of the time. */
#define STORE_VM_WAITED_PCT 0.1
#define STORE_VCPU_WAITED_PCT 1.0

/*
 * One reference to the caller; NULL: no memory. Its texts and histograms are those of s, which must
 * stay as long.
 */
struct snapshot *store_reduce(const struct snapshot *s);
/*
 * The same of a longer interval: of vCPUs without the kinds of exits that are within vm exits
 * (where there are vm exits), and without totals since the start; VMs have both. Times of exits are
 * rounded to STORE_TIME_BITS, counts of histograms to STORE_HEAT_BITS.
 */
#define STORE_TIME_BITS 9 /* 0.1% */
#define STORE_HEAT_BITS 5 /* 1.6% */
struct snapshot *store_reduce_longer(const struct snapshot *s);

#endif
