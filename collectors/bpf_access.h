// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the collectors share that load programs of their own beside those that count events (waits,
 * vpmu): whether they can be had at all, and why not, in words.
 */
#ifndef KVMTOP_COLLECTORS_BPF_ACCESS_H
#define KVMTOP_COLLECTORS_BPF_ACCESS_H

#include "kvm_access.h"

/*
 * The folder of tracefs, as kvm_tracefs(), on a host of which programs can tell; NULL: *err says
 * why (-errno).
 */
const char *bpf_tracefs(const struct sysroot *root, int *err);
/* Why they cannot be had, after -errno. */
void bpf_why_not(const struct sysroot *root, int err, struct kvm_reason *out);

#endif
