// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvm_exit beside the programs that count it in the kernel: from which guest code exits come is in
 * the events alone. Every exit of some VMs, from rings of their vCPUs' threads, while somebody
 * asks which code makes them; some exits of all VMs, where guests' symbols are to be checked.
 */
#ifndef KVMTOP_COLLECTORS_KVM_BESIDE_H
#define KVMTOP_COLLECTORS_KVM_BESIDE_H

#include "collector.h"
#include "kvm_format.h"
#include "perf_rings.h"

struct kvm_beside;

/*
 * Nothing is open yet; what is given must outlive it. The rings are its own while the programs
 * count. 0 or -errno.
 */
int kvm_beside_new(const struct collector_env *env, const struct kvm_format *f,
		   struct perf_rings *rings, struct kvm_beside **out);
void kvm_beside_free(struct kvm_beside *b); /* NULL is fine */
int kvm_beside_fd(const struct kvm_beside *b); /* for epoll, beside that of the rings */

void kvm_beside_demand(struct kvm_beside *b, const struct demand *d);
/* How many exits all VMs made in so many ns, 0: not known yet. */
void kvm_beside_pace(struct kvm_beside *b, uint64_t exits, int64_t passed);
/* Opens and closes by demand, also as CPUs and threads come and go; on: programs count exits. */
void kvm_beside_follow(struct kvm_beside *b, bool on);
/*
 * Tells sink.code and sink.exits what came up to `watermark` (ns), sink.code_lost, and by
 * sink.program_cost how many were taken.
 */
void kvm_beside_drain(struct kvm_beside *b, int64_t watermark);

#endif
