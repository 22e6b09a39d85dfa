// SPDX-License-Identifier: GPL-2.0-only
/* /proc/stat, /proc/schedstat, /proc/meminfo, CPU lists. */
#include <assert.h>
#include <stdint.h>

#include "hoststat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cpu(void *ctx, int cpu)
{
	(void)ctx;
	assert(cpu >= 0 && cpu < 512);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *buf = (const char *)data;
	struct cpu_ticks t;
	uint64_t v;
	size_t at;
	int cpu;

	for (at = 0; hoststat_next_cpu(buf, size, &at, &cpu, &t);)
		assert(cpu >= -1 && at <= size + 1);
	for (at = 0; hoststat_next_wait(buf, size, &at, &cpu, &v);)
		assert(cpu >= 0 && at <= size + 1);
	hoststat_meminfo(buf, size, "MemTotal", &v);
	hoststat_cpulist(buf, size, 512, check_cpu, NULL);
	return 0;
}
