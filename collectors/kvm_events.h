// SPDX-License-Identifier: GPL-2.0-only
/* The collector of the kvm tracepoints. */
#ifndef KVMTOP_KVM_EVENTS_H
#define KVMTOP_KVM_EVENTS_H

#include "collector.h"

extern const struct collector collector_kvm_events;

#endif
