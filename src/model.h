// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model: takes readings and events, makes snapshots.
 *
 * One instance, touched by the collecting thread only. Formulas are those of
 * metrics.md.
 */
#ifndef KVMTOP_MODEL_H
#define KVMTOP_MODEL_H

#include "collector.h"
#include "sample.h"
#include "snapshot.h"

struct inventory;
struct kvm_names; /* kvm_names.h: names and idle-ness of exit reasons */
struct model;

struct model_config {
	const char *node, *kernel, *boot_id;
	bool root;
	long clk_tck; /* ticks a second of /proc/<pid>/stat */
	unsigned vcpu_keys; /* 8, product.md "Limits" */
	unsigned vm_keys; /* 64 */
};

/* names may be NULL (numbers are shown). Both outlive the model. */
struct model *model_new(const struct model_config *c, struct inventory *inv,
			const struct kvm_names *names);
void model_free(struct model *m);
const struct sink *model_sink(struct model *m);
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
