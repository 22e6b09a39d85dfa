// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU controller's files of a cgroup, v1 and v2: text in, numbers out. Any bytes are
 * taken; 0 or -EBADMSG.
 */
#ifndef KVMTOP_CGROUP_H
#define KVMTOP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cpu.stat of a group with a quota. */
struct cgroup_throttled {
	uint64_t ns; /* throttled_usec (v2) or throttled_time (v1): summed over the CPUs */
	/* The periods that were not idle, and those that used the quota up; 0: not told. */
	uint64_t periods, used_up;
};

/* -EBADMSG where it has no throttled time. */
int cgroup_parse_throttled(const char *buf, size_t len, struct cgroup_throttled *out);
/* cpu.max: "40000 100000", "max 100000"; quota 0: none. */
int cgroup_parse_max(const char *buf, size_t len, uint64_t *quota_us, uint64_t *period_us);
/* cpu.cfs_quota_us or cpu.cfs_period_us; -1 (no quota) gives 0. */
int cgroup_parse_number(const char *buf, size_t len, uint64_t *us);
/*
 * Length of the path of the parent that still belongs to the VM, 0: none. The machine's scope
 * (…/machine-qemu….scope) is the topmost; without one it is the last below the root.
 */
size_t cgroup_parent(const char *path, size_t len);

#endif
