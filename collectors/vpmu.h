// SPDX-License-Identifier: GPL-2.0-only
/* The collector of guests' PMUs; registry.c lists it. */
#ifndef KVMTOP_COLLECTORS_VPMU_H
#define KVMTOP_COLLECTORS_VPMU_H

#include <stdbool.h>
#include <stddef.h>

#include "collector.h"

struct sysroot;

extern const struct collector collector_vpmu;

/* The kernel has the series of kernel-support/, as far as a parameter of its kvm tells. */
bool vpmu_patched(const struct sysroot *root);
/* Why a guest's counters may lie on this host: one line into out[size]. */
void vpmu_host_why(const struct sysroot *root, char *out, size_t size);

#endif
