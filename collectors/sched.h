// SPDX-License-Identifier: GPL-2.0-only
/* The collector `sched`: CPU, run delay and quota of every thread of a VM. */
#ifndef KVMTOP_COLLECTORS_SCHED_H
#define KVMTOP_COLLECTORS_SCHED_H

#include "collector.h"

extern const struct collector collector_sched;

#endif
