// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads the programs of bpf/sched_wait.bpf.c and attaches them to the scheduler's tracepoints. They
 * are there from wait_bpf_new() to wait_bpf_free(); however kvmtop ends, they go with it.
 *
 * One instance, for the collecting thread only.
 */
#ifndef KVMTOP_COLLECTORS_WAIT_BPF_H
#define KVMTOP_COLLECTORS_WAIT_BPF_H

#include <sys/types.h>

#include "kvm_access.h"
#include "wait_read.h"

struct wait_bpf;
struct sysroot;

/*
 * Room for `threads` watched ones (a power of two). 0 or -errno; -ENOTSUP: made without BPF, or
 * events of another shape.
 */
int wait_bpf_new(const struct sysroot *root, const char *tracefs, uint32_t threads,
		 struct wait_bpf **out);
void wait_bpf_free(struct wait_bpf *b); /* NULL is fine */
/* What the programs write; valid until wait_bpf_free(). */
struct wait_memory *wait_bpf_memory(struct wait_bpf *b);

/* What n changes of tasks cost, ns; once an interval. */
uint64_t wait_bpf_cost(struct wait_bpf *b, int64_t now, uint64_t n);

/* The programs look after this thread, whose place is memory->thread[index]. 0 or -errno. */
int wait_bpf_watch(struct wait_bpf *b, pid_t tid, uint32_t index);
void wait_bpf_unwatch(struct wait_bpf *b, pid_t tid);
/* It is a thread of this VM, whose number (not 0) tells who ran. 0 or -errno. */
int wait_bpf_member(struct wait_bpf *b, pid_t tid, uint32_t vm);
void wait_bpf_no_member(struct wait_bpf *b, pid_t tid);

#endif
