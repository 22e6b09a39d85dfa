// SPDX-License-Identifier: GPL-2.0-only
/* Where vCPU threads may run and where their VM's memory is: costly, read on demand only. */
#ifndef KVMTOP_COLLECTORS_SCHED_PLACE_H
#define KVMTOP_COLLECTORS_SCHED_PLACE_H

#include "collector.h"

struct inv_vm;

/* Hands pin and node of each of the VM's vCPU threads to the sink. */
void sched_places(const struct collector_env *env, const struct inv_vm *vm);

#endif
