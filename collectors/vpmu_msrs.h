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

#define VPMU_FORGET_NS 30000000000ll

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
 * Since when a thread has its number (ns CLOCK_MONOTONIC, or before it); < 0: nobody knows of it.
 */
typedef int64_t (*vpmu_since)(void *ctx, pid_t tid);
/* What stands there of a thread that ended: at once where its number is another's now. */
static inline bool vpmu_entry_over(const struct vpmu_entry *e, int64_t since, int64_t now)
{
	return since < 0 ? now - e->last > VPMU_FORGET_NS : e->last < since;
}
/* Puts them in the order of threads and of their MSRs, each once: as it was used last. Returns how
 * many that are. */
size_t vpmu_entries_once(struct vpmu_entry *e, size_t n);
/*
 * Reads all there is, in the order of threads and of their MSRs; valid until the next call. What is
 * over is forgotten. Returns the first of *n; NULL: none.
 */
const struct vpmu_entry *vpmu_msrs_read(struct vpmu_msrs *m, int64_t now, vpmu_since since,
					void *ctx, size_t *n);

#endif
