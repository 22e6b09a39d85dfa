// SPDX-License-Identifier: GPL-2.0-only
/* The collector of each event of one vCPU alone. */
#ifndef KVMTOP_VCPU_EVENTS_H
#define KVMTOP_VCPU_EVENTS_H

#include "collector.h"

extern const struct collector collector_vcpu_events;

#endif
