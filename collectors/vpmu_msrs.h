// SPDX-License-Identifier: GPL-2.0-only
/*
 * What guests did to the MSRs of their PMUs since somebody looks: by a BPF program on kvm_msr
 * (bpf/vpmu_msr.bpf.c), which passes over all other MSRs and hands nothing over until it is asked.
 *
 * One instance, for the collecting thread only.
 */
#ifndef KVMTOP_COLLECTORS_VPMU_MSRS_H
#define KVMTOP_COLLECTORS_VPMU_MSRS_H

#include <sys/types.h>

#include "pmu.h"

struct sysroot;
struct vpmu_msrs;

struct vpmu_entry {
	pid_t tid;
	int64_t last; /* ns CLOCK_MONOTONIC: its last use */
	struct pmu_access a;
};

/* Attaches to kvm_msr; however kvmtop ends, it goes with it. 0 or -errno; -ENOTSUP: made without
 * BPF, or an event of another shape. */
int vpmu_msrs_new(const struct sysroot *root, const char *tracefs, struct vpmu_msrs **out);
void vpmu_msrs_free(struct vpmu_msrs *m); /* NULL is fine */
/*
 * Reads all there is, in the order of threads and of their MSRs; valid until the next call. Those
 * of threads that nobody knows, `known`, are forgotten after a while. Returns the first of *n;
 * NULL: none.
 */
const struct vpmu_entry *vpmu_msrs_read(struct vpmu_msrs *m, int64_t now,
					bool (*known)(void *ctx, pid_t tid), void *ctx, size_t *n);

#endif
