// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvm_events' source that counts inside the kernel: loads the programs of bpf/kvm_count.bpf.c, and
 * attaches them to the tracepoints that are asked for. What was loaded goes when the last
 * descriptor is closed, however kvmtop ends.
 *
 * One instance, for the collecting thread only.
 */
#ifndef KVMTOP_COLLECTORS_KVM_BPF_H
#define KVMTOP_COLLECTORS_KVM_BPF_H

#include "kvm_access.h"
#include "kvm_bpf_read.h"
#include "kvm_format.h"

struct kvm_bpf;
struct sysroot;

/*
 * Loads for these formats; attaches nothing but to the end of threads. few: room for a handful of
 * keys, for tests. several(ctx, tid): whether this thread's process has several VMs. 0 or -errno;
 * -EOPNOTSUPP: made without BPF, or events that it cannot count.
 */
int kvm_bpf_new(const struct sysroot *root, const char *tracefs, const struct kvm_format *f,
		bool few, bool (*several)(void *ctx, int32_t tid), void *ctx, struct kvm_bpf **out);
void kvm_bpf_free(struct kvm_bpf *b); /* NULL is fine */
/* Why it cannot be had, after -errno. */
void kvm_bpf_why(int err, struct kvm_reason *out);

/* One event of kvm_events[] of this tracepoint id. */
int kvm_bpf_attach(struct kvm_bpf *b, unsigned event, uint64_t id);
bool kvm_bpf_is_attached(const struct kvm_bpf *b, unsigned event);
void kvm_bpf_detach(struct kvm_bpf *b, unsigned event);
/*
 * After kinds were attached and detached. What is open is void where that changes whether
 * kvm_entry and kvm_exit are among them.
 */
void kvm_bpf_kinds(struct kvm_bpf *b, bool entry_exit);

/* Exits that take longer (ns), but idle ones, are told one by one at the tick; 0: none. */
void kvm_bpf_slow(struct kvm_bpf *b, uint64_t ns);

/*
 * Whether the sink is told for how long of their exits threads had no CPU (thread_open.off_ns),
 * and that it is (sink.off_told): each change of tasks on the host passes through a program then.
 * Where it cannot be had nothing happens.
 */
void kvm_bpf_switches(struct kvm_bpf *b, bool on, const struct sink *sink);

/* Readable when a thread had its first event. */
int kvm_bpf_fd(const struct kvm_bpf *b);
/* Tells the sink of those, by aggregates without events. */
void kvm_bpf_news(struct kvm_bpf *b, const struct sink *sink);
/* Ends the interval; see kvm_counts_read(). */
void kvm_bpf_tick(struct kvm_bpf *b, int64_t watermark, const struct sink *sink,
		  struct kvm_counts_state *out);

#endif
