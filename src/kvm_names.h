// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of exit reasons, MSRs, hypercalls and KVM_EXIT_*: from the event's own `format`
 * where there is one, else from built-in tables; and which exits are idle.
 */
#ifndef KVMTOP_KVM_NAMES_H
#define KVMTOP_KVM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample.h"

struct kvm_names;

struct kvm_names *kvm_names_new(void); /* built-in tables only; NULL: no memory */
void kvm_names_free(struct kvm_names *n);
/*
 * Takes the value → name pairs out of an event's format text (`print fmt:`), by event
 * name ("kvm_exit", "kvm_userspace_exit"). Total: text that cannot be read is ignored
 * and -EINVAL returned, what was there before stays.
 */
int kvm_names_load(struct kvm_names *n, const char *event, const char *format, size_t len);

/*
 * Writes the row's name as docs/metrics.md shows it: "MSR_WRITE", "0xfee00380:W", "0x3f8:POUT",
 * "0x6e0:W", "KVM_EXIT_IO"; an unknown number as "0x1f". Always terminated. Returns buf.
 */
const char *kvm_names_key(const struct kvm_names *n, enum kvm_kind kind, uint32_t isa, uint64_t key,
			  enum ev_dir dir, char *buf, size_t size);
/* What an MSR, a port or an MMIO page is ("TSC_DEADLINE"), "" where not known. Static storage. */
const char *kvm_names_note(const struct kvm_names *n, enum kvm_kind kind, uint64_t key);
/* Waiting, not handling (docs/metrics.md, "Idle exits"). Called per key, not per event. */
bool kvm_names_idle(uint32_t isa, uint64_t reason);
/* The same of a user exit: a VMM without KVM's own APIC waits itself while its guest is halted. */
bool kvm_names_idle_user(uint64_t reason);

#endif
