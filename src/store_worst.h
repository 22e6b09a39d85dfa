// SPDX-License-Identifier: GPL-2.0-only
/* Which moments of a recording's time line are worth going to, the worst first. */
#ifndef KVMTOP_STORE_WORST_H
#define KVMTOP_STORE_WORST_H

#include "store.h"

#define STORE_WORST_MOST 512 /* moments that are looked at */

/*
 * How bad each of n moments (store_moments()) is: its steal from STEAL_NOTICE on; less than that,
 * but more than 0, where there are more findings than in the quietest moment: those that are there
 * all the time say nothing about when.
 */
void store_worth(const struct store_moment *m, int n, double *worth);
/*
 * The k-th worst of them, 0 the worst; NULL: there are not so many that stand out. Of equally bad
 * ones that follow each other the first stands out, and one every while.
 */
const struct store_moment *store_worst(const struct store_moment *m, int n, int k);

#endif
