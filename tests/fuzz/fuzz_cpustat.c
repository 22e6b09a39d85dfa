// SPDX-License-Identifier: GPL-2.0-only
/* The CPU controller's files: cpu.stat, cpu.max, cpu.cfs_quota_us, and cgroup paths. */
#include <assert.h>
#include <stdint.h>

#include "cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *buf = (const char *)data;
	struct cgroup_throttled t;
	uint64_t a, b;

	cgroup_parse_throttled(buf, size, &t);
	cgroup_parse_max(buf, size, &a, &b);
	cgroup_parse_number(buf, size, &a);
	for (size_t n = size, up; (up = cgroup_parent(buf, n)) > 0; n = up)
		assert(up < n); /* climbing ends */
	return 0;
}
