// SPDX-License-Identifier: GPL-2.0-only
/* The TSC of a running VM's vCPU as debugfs has it: kvm/<vm>/vcpu<N>/tsc-offset and its scaling. */
#ifndef KVMTOP_TSC_DEBUGFS_H
#define KVMTOP_TSC_DEBUGFS_H

#include <stdint.h>

#include "tsc.h"

struct sysroot;

/*
 * key is the VM's folder ("4711-9"). scale->ratio is 0 where it is not scaled. 0 or -errno: -ENOENT
 * where the kernel has no such file, -EINVAL where it is not a number.
 */
int tsc_debugfs_read(const struct sysroot *root, const char *key, int kvm_id, uint64_t *offset,
		     struct tsc_scale *scale);

/* The two parts of it. */
int tsc_debugfs_offset(const struct sysroot *root, const char *key, int kvm_id, uint64_t *offset);
/* -ENOENT, and not scaled, where the host's CPU cannot scale: KVM makes no such file then. */
int tsc_debugfs_scale(const struct sysroot *root, const char *key, int kvm_id,
		      struct tsc_scale *scale);

#endif
