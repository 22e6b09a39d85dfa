// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's TSC and the host's: guest = ((host * ratio) >> frac_bits) + offset, modulo 2^64; and
 * the changes of a vCPU's offset (epochs) as kvm_write_tsc_offset tells them.
 */
#ifndef KVMTOP_TSC_H
#define KVMTOP_TSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSC_FRAC_MAX 63

struct tsc_scale {
	uint64_t ratio; /* guest cycles a host cycle, times 2^frac_bits; 0: not scaled */
	unsigned frac_bits; /* at most TSC_FRAC_MAX */
};

/*
 * The first host cycle at which the guest reads `guest`: rounded up, so that at that cycle the
 * guest reads what it read. scale NULL: not scaled.
 */
uint64_t tsc_to_host(uint64_t guest, const struct tsc_scale *scale, uint64_t offset);
/*
 * An offset as people and kernels write it: signed, or unsigned modulo 2^64, decimal or 0x; all of
 * the text. 0 or -EINVAL, -ERANGE.
 */
int tsc_parse_offset(const char *text, size_t len, uint64_t *out);

/* One write of an offset. */
struct tsc_epoch {
	uint64_t at; /* the host's TSC */
	uint64_t prev, next;
	unsigned vcpu; /* KVM's id */
	int tid, tgid; /* who wrote it; 0: not known */
	bool gap; /* prev is not what the epoch before left: one between them is not known */
};

/* One vCPU of one VM: its epochs in the order of the trace. */
struct tsc_chain {
	unsigned vcpu;
	struct tsc_epoch *epoch;
	size_t n, cap;
};

/* All vCPUs that were seen. Zeroed: empty. */
struct tsc_epochs {
	struct tsc_chain *chain;
	size_t n, cap;
};

/*
 * Sets e->vcpu, prev and next from the event's text, "vcpu=0 prev=0 next=18446704815674872663";
 * false: it is none.
 */
bool tsc_epoch_parse(const char *text, size_t len, struct tsc_epoch *e);
/*
 * Adds a copy to the chain that it continues, or begins one: VMs have vCPUs of the same number, and
 * a trace says only who wrote. To be added in the order of time. A write that two buffers recorded
 * is added once. 0 or -ENOMEM.
 */
int tsc_epochs_add(struct tsc_epochs *all, const struct tsc_epoch *e);
void tsc_epochs_free(struct tsc_epochs *all);

#endif
