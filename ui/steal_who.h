// SPDX-License-Identifier: GPL-2.0-only
/* Who had the CPU while the selected VM or vCPU waited: a part of the pane Steal. */
#ifndef KVMTOP_STEAL_WHO_H
#define KVMTOP_STEAL_WHO_H

#include "pane.h"

/* How many lines it wants, with its head; 0: it has nothing to say. */
int steal_who_lines(const struct pane_ctx *c);
/* Head, then a line each who had it, the largest first; or why nobody is known. */
void steal_who_draw(const struct pane_ctx *c, const struct area *a);

#endif
