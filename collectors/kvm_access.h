// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kvm_events needs before it can open anything: where tracefs is, which events there
 * are, which CPUs are online; and why not, in words.
 */
#ifndef KVMTOP_KVM_ACCESS_H
#define KVMTOP_KVM_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "collector.h"

struct kvm_format;
struct kvm_names;
struct perf_rings;
struct sysroot;

/* What this process may do; read once, made up in tests. */
struct kvm_rights {
	bool root; /* effective uid 0 */
	bool perfmon; /* CAP_PERFMON or CAP_SYS_ADMIN */
	bool ipc_lock; /* CAP_IPC_LOCK: any amount may be locked */
	unsigned long nofile, memlock; /* hard limits; bytes */
};

struct kvm_reason {
	char why[PROBE_TEXT], mend[PROBE_TEXT];
};

void kvm_rights_read(struct kvm_rights *r);

/* The folder below which `events/` is, relative to the root; NULL: *err says why (-errno). */
const char *kvm_tracefs(const struct sysroot *root, int *err);
/*
 * Loads the format of every event that is there, and the names in them (names may be NULL).
 * How many could be read, or -errno: -ENOENT for none.
 */
int kvm_load_formats(const struct sysroot *root, const char *tracefs, struct kvm_format *f,
		     struct kvm_names *names);
/* The online ones; *cpu is malloc'ed and the caller's. Their number or -errno. */
int kvm_online_cpus(const struct sysroot *root, int **cpu);
/*
 * perf_rings_set_cpus() with those, at each tick: *held is the descriptor of their list, -1 at
 * first, and the caller's to close.
 */
int kvm_follow_cpus(const struct sysroot *root, int *held, struct perf_rings *rings, int64_t now,
		    void (*unwatched)(void *ctx, int cpu, int64_t since), void *ctx);

/* True where no event and no BPF program can tell of root's threads: it is a recorded tree, or a
 * container's. */
bool kvm_no_events(const struct sysroot *root, struct kvm_reason *out);
/*
 * Why the events cannot be had. err: 0, or what opening them gave (-errno; -ENOBUFS: the rings
 * may not be locked). False where nothing stands against it.
 */
bool kvm_why_not(const struct sysroot *root, const struct kvm_rights *rights, int err,
		 struct kvm_reason *out);
/* The same for events that need no tracefs. */
bool kvm_why_no_perf(const struct sysroot *root, const struct kvm_rights *rights, int err,
		     struct kvm_reason *out);
/* Rings had to be halved to `bytes`. */
void kvm_why_halved(const struct kvm_rights *rights, size_t bytes, struct kvm_reason *out);
/* Why fewer or smaller rings than wanted: `bytes` a ring in use, `fds` wanted. False: all fine. */
bool kvm_why_partial(const struct sysroot *root, const struct kvm_rights *rights, unsigned ncpus,
		     size_t bytes, unsigned long fds, struct kvm_reason *out);

#endif
