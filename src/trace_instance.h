// SPDX-License-Identifier: GPL-2.0-only
/*
 * An ftrace instance of our own: a buffer beside the one that everybody uses, which nobody else
 * empties, fills or sets a clock for.
 */
#ifndef KVMTOP_TRACE_INSTANCE_H
#define KVMTOP_TRACE_INSTANCE_H

#include <stdint.h>
#include <sys/types.h>

struct trace_instance {
	int instances, fd; /* the folder of all instances, ours in it; -1: none */
	char name[48];
};

/*
 * Makes "kvmtop-<our pid>-<what>", its clock x86-tsc, not tracing yet, and takes away those of a
 * kvmtop that was killed. 0 or -errno with one line in err.
 */
int trace_instance_make(const char *tracefs, const char *what, struct trace_instance *out,
			char *err, size_t size);
/* Writes text into one of its files, in place of what was there. 0 or -errno. */
int trace_instance_set(const struct trace_instance *i, const char *file, const char *text);
/* "kvm/kvm_exit": 0, -ENOENT where this kernel has none, -errno. */
int trace_instance_event(const struct trace_instance *i, const char *event);
/*
 * KiB a CPU for all events of one VM: two seconds of one that only leaves guest mode where there
 * are few CPUs; of many no more than 256 MiB are taken, as the kernel gives each CPU as much.
 */
unsigned trace_instance_kb(long ncpus);
/* Only events of these processes' threads, and of those that they start. 0 or -errno. */
int trace_instance_only(const struct trace_instance *i, pid_t pid);
/* Copies what was traced, as text, into a file. Bytes or -errno. */
int64_t trace_instance_copy(const struct trace_instance *i, int to);
/* Events that were overwritten or dropped since there was no room. */
uint64_t trace_instance_lost(const struct trace_instance *i);
void trace_instance_remove(struct trace_instance *i); /* twice is fine */

#endif
