// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's own files: /proc/stat, /proc/schedstat, CPU lists. Text in, numbers out; any
 * bytes are taken, nothing is allocated.
 */
#ifndef KVMTOP_HOSTSTAT_H
#define KVMTOP_HOSTSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample.h"

/*
 * Goes through /proc/stat: cpu -1 is the sum's line. Returns false when there is no further
 * "cpu" line; *at starts at 0.
 */
bool hoststat_next_cpu(const char *buf, size_t len, size_t *at, int *cpu, struct cpu_ticks *t);
/* The same for /proc/schedstat: time tasks waited to run on the CPU, ns (its 8th figure). */
bool hoststat_next_wait(const char *buf, size_t len, size_t *at, int *cpu, uint64_t *wait_ns);
/* "0-3,8": calls back for each CPU below max. -EBADMSG at the first thing that is no list. */
int hoststat_cpulist(const char *buf, size_t len, int max, void (*each)(void *ctx, int cpu),
		     void *ctx);
/* The CPU of a list of one; -1: it has more, or is none. */
int hoststat_only_cpu(const char *list);
/* "MemAvailable:   123 kB" of /proc/meminfo; false: not there. */
bool hoststat_meminfo(const char *buf, size_t len, const char *key, uint64_t *kb);

#endif
