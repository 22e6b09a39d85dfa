// SPDX-License-Identifier: GPL-2.0-only
/* What the engine asks of the collector `vms` beside the vtable. */
#ifndef KVMTOP_COLLECTORS_VMS_H
#define KVMTOP_COLLECTORS_VMS_H

#include <stdint.h>
#include <sys/types.h>

#include "collector.h"

extern const struct collector collector_vms;

/*
 * Works off inventory_take_unknown(): whose thread was it that an event came from? Call it
 * right after a drain; costs nothing while there are none. 0 or -errno.
 */
int vms_resolve(void *state, int64_t now_ns);
/* First discovery: how far it is; done == all when it is complete. */
void vms_progress(void *state, unsigned *done, unsigned *all);

#endif
