// SPDX-License-Identifier: GPL-2.0-only
/* Whether a CPU's events are still attached to it (perf_alive.h). */
#include <unistd.h>

#include "clock.h"
#include "perf_alive.h"

bool perf_alive(struct perf_alive *a, uint64_t head, int fd, int64_t now)
{
	uint64_t v[4] = {0}; /* value, time enabled, and what else libperf asked for */

	if (head != a->head || !a->last) {
		a->head = head;
		a->last = now;
		return true;
	}
	if (now - a->last < NS_PER_S)
		return true;
	if (read(fd, v, sizeof(v)) < 16)
		return true; /* it cannot be told */
	if (v[1] == a->enabled)
		return false;
	a->enabled = v[1];
	a->last = now;
	return true;
}
