// SPDX-License-Identifier: GPL-2.0-only
/* The collector of the kvm tracepoints. */
#ifndef KVMTOP_KVM_EVENTS_H
#define KVMTOP_KVM_EVENTS_H

#include "collector.h"

extern const struct collector collector_kvm_events;

#define KVM_NO_EXITS                                                                               \
	"this KVM fires no kvm_entry and kvm_exit: other kinds are counted, times are n/a"
#define KVM_OTHERS_ENOUGH 16 /* events of other kinds without an exit: there are no exits */

/* collector_kvm_events.probe: kvm_events_probe.c */
void kvm_events_probe(const struct collector_env *env, struct probes *out);

#endif
