// SPDX-License-Identifier: GPL-2.0-only
/* The worst moments of a recording (store_worst.h). */
#include "store_worst.h"

/* A trouble that lasts has so many places to go to in the whole of a time line. */
#define PLACES 16

/* Where a row of equally bad moments began that m[i] belongs to. */
static int row_begin(const struct store_moment *m, int i)
{
	while (i && m[i - 1].steal_max == m[i].steal_max)
		i--;
	return i;
}

/* One that is worse stands close by: it is the same trouble. */
static bool overshadowed(const struct store_moment *m, int n, int i)
{
	int begin = row_begin(m, i), end = i + 1;

	while (end < n && m[end].steal_max == m[i].steal_max)
		end++;
	return (begin && m[begin - 1].steal_max > m[i].steal_max) ||
	       (end < n && m[end].steal_max > m[i].steal_max);
}

/* Of a row each so many-th: all of it may be what somebody looks for, but not moment by moment. */
static bool stands_out(const struct store_moment *m, int n, int i)
{
	int apart = n / PLACES > 1 ? n / PLACES : 1;

	return m[i].steal_max >= STEAL_NOTICE && !overshadowed(m, n, i) &&
	       (i - row_begin(m, i)) % apart == 0;
}

/* Of those that are as bad, where another trouble began comes first. */
static bool is_worse(const struct store_moment *m, int a, int b)
{
	if (m[a].steal_max != m[b].steal_max)
		return m[a].steal_max > m[b].steal_max;
	return row_begin(m, a) == a && row_begin(m, b) != b;
}

const struct store_moment *store_worst(const struct store_moment *m, int n, int k)
{
	bool taken[STORE_WORST_MOST] = {false};
	int found = -1;

	n = n < STORE_WORST_MOST ? n : STORE_WORST_MOST;
	for (; k >= 0; k--) {
		found = -1;
		for (int i = 0; i < n; i++)
			if (!taken[i] && stands_out(m, n, i) &&
			    (found < 0 || is_worse(m, i, found)))
				found = i;
		if (found < 0)
			return NULL;
		taken[found] = true;
	}
	return found < 0 ? NULL : &m[found];
}
