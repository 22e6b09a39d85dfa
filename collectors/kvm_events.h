// SPDX-License-Identifier: GPL-2.0-only
/* The collector of the kvm tracepoints. */
#ifndef KVMTOP_KVM_EVENTS_H
#define KVMTOP_KVM_EVENTS_H

#include "collector.h"

extern const struct collector collector_kvm_events;

#define KVM_NO_EXITS                                                                               \
	"this KVM fires no kvm_entry and kvm_exit: other kinds are counted, times are n/a"
#define KVM_OTHERS_ENOUGH 16 /* events of other kinds without an exit: there are no exits */

/*
 * Whether this KVM fires kvm_exit, by how many of them and of returns to the VMM came in a moment,
 * and by /proc/cpuinfo where no guest ran in it. enum source_state; *why: in words.
 */
int kvm_exits_state(uint64_t exits, uint64_t returns, const char *cpuinfo, const char **why);

/* collector_kvm_events.probe: kvm_events_probe.c */
void kvm_events_probe(const struct collector_env *env, struct probes *out);

#endif
