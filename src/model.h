// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model: takes readings and events, makes snapshots.
 *
 * One instance, touched by the collecting thread only. Formulas are those of
 * docs/metrics.md.
 */
#ifndef KVMTOP_MODEL_H
#define KVMTOP_MODEL_H

#include "collector.h"
#include "sample.h"
#include "snapshot.h"

#define OTHER_TASK_PCT 5.0 /* of a CPU: a task below it does not explain the row (other) */

struct inventory;
struct kvm_names; /* kvm_names.h: names and idle-ness of exit reasons */
struct model;

struct inv_vm;

/* Who knows the names behind keys; what the pointers point to is valid until the next call. */
struct symbol_namer {
	void *ctx;
	/* False: it has none (any more); the module ("": none) may be known all the same. */
	bool (*name)(void *ctx, const struct symbol_key *k, const char **name, const char **module);
	/* What is at an address of the guest. */
	void (*find)(void *ctx, const struct inv_vm *vm, uint64_t addr, struct symbol_key *k);
	/* Why an address of this kind has no name: one line. vm NULL: of no VM. */
	const char *(*reason)(void *ctx, const struct inv_vm *vm, const struct symbol_key *k);
	/* The same for a whole guest, and what mends it. False: it has its names. */
	bool (*guest)(void *ctx, const struct inv_vm *vm, const char **why, const char **mend);
};

struct model_config {
	const char *node, *kernel, *boot_id;
	bool root;
	bool no_entry_exit; /* what to think of this KVM until one of the two is seen */
	const char *self; /* how this program is called, own_path.h; NULL: kvmtop */
	long clk_tck; /* ticks a second of /proc/<pid>/stat */
	unsigned vcpu_keys; /* 8; the rest is `other` */
	unsigned vm_keys; /* 64 */
};

/* names may be NULL (numbers are shown). Both outlive the model. */
struct model *model_new(const struct model_config *c, struct inventory *inv,
			const struct kvm_names *names);
void model_free(struct model *m);
const struct sink *model_sink(struct model *m);
/* Samples with their answers, by the engine. */
void model_hits(struct model *m, const struct symbol_hit *h, size_t n);
/* NULL: addresses are shown. It outlives the model. */
void model_set_namer(struct model *m, const struct symbol_namer *n);
void model_demand(struct model *m, const struct demand *d);
/* Zeroes what is counted since the start. */
void model_reset(struct model *m);
/* Own cost for the header; percent of the host. */
void model_self(struct model *m, struct value cpu, struct value guest);
void model_discovery(struct model *m, unsigned done, unsigned all);
/*
 * Ends the interval at watermark (ns) and freezes it; wall labels it. The first call sets
 * the baseline only: dt is 0 in its snapshot. Returns a snapshot with one reference, NULL
 * without memory (the interval then goes on).
 */
struct snapshot *model_commit(struct model *m, int64_t watermark, struct timespec wall,
			      bool first_rates, double delay_s);

#endif
