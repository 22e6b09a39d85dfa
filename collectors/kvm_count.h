// SPDX-License-Identifier: GPL-2.0-only
/* How often tracepoints fire, counted for a moment (kvm_count.c). */
#ifndef KVMTOP_KVM_COUNT_H
#define KVMTOP_KVM_COUNT_H

#include <stddef.h>
#include <stdint.h>

#define KVM_COUNT_MAX 4 /* tracepoints at once */

/*
 * Counts the n tracepoints of these ids on all CPUs for so many milliseconds, in which it sleeps.
 * 0, or -errno where one cannot be opened: then count is not written.
 */
int kvm_count(const uint64_t *id, uint64_t *count, size_t n, unsigned ms);

#endif
