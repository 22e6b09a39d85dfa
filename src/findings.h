// SPDX-License-Identifier: GPL-2.0-only
/*
 * Findings: what is wrong, in words, by a table of rules over a snapshot.
 */
#ifndef KVMTOP_FINDINGS_H
#define KVMTOP_FINDINGS_H

#include "snapshot.h"

struct findings; /* what held before: since when */

struct findings *findings_new(void); /* NULL: no memory */
void findings_free(struct findings *f);
/*
 * Looks at all rows of s, which must be whole but for its findings, and puts the findings in,
 * most pressing first. 0 or -ENOMEM (s has none then).
 */
int findings_make(struct findings *f, struct snapshot *s);

#endif
