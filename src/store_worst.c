// SPDX-License-Identifier: GPL-2.0-only
/* The worst moments of a recording (store_worst.h). */
#include "store_worst.h"

/* A trouble that lasts has so many places to go to in the whole of a time line. */
#define PLACES 16

void store_worth(const struct store_moment *m, int n, double *worth)
{
	unsigned usual = n ? m[0].findings : 0;

	for (int i = 1; i < n; i++)
		usual = m[i].findings < usual ? m[i].findings : usual;
	for (int i = 0; i < n; i++) {
		double more = m[i].findings - usual;

		worth[i] = m[i].steal_max >= STEAL_NOTICE ? m[i].steal_max
							  : STEAL_NOTICE * more / (more + 1);
	}
}

/* Where a row of equally bad moments began that the i-th belongs to. */
static int row_begin(const double *worth, int i)
{
	while (i && worth[i - 1] == worth[i])
		i--;
	return i;
}

/* One that is worse stands close by: it is the same trouble. */
static bool overshadowed(const double *worth, int n, int i)
{
	int begin = row_begin(worth, i), end = i + 1;

	while (end < n && worth[end] == worth[i])
		end++;
	return (begin && worth[begin - 1] > worth[i]) || (end < n && worth[end] > worth[i]);
}

/* Of a row each so many-th: all of it may be what somebody looks for, but not moment by moment. */
static bool stands_out(const double *worth, int n, int i)
{
	int apart = n / PLACES > 1 ? n / PLACES : 1;

	return worth[i] > 0 && !overshadowed(worth, n, i) && (i - row_begin(worth, i)) % apart == 0;
}

/* Of those that are as bad, where another trouble began comes first. */
static bool is_worse(const double *worth, int a, int b)
{
	if (worth[a] != worth[b])
		return worth[a] > worth[b];
	return row_begin(worth, a) == a && row_begin(worth, b) != b;
}

const struct store_moment *store_worst(const struct store_moment *m, int n, int k)
{
	bool taken[STORE_WORST_MOST] = {false};
	double worth[STORE_WORST_MOST];
	int found = -1;

	n = n < STORE_WORST_MOST ? n : STORE_WORST_MOST;
	store_worth(m, n, worth);
	for (; k >= 0; k--) {
		found = -1;
		for (int i = 0; i < n; i++)
			if (!taken[i] && stands_out(worth, n, i) &&
			    (found < 0 || is_worse(worth, i, found)))
				found = i;
		if (found < 0)
			return NULL;
		taken[found] = true;
	}
	return found < 0 ? NULL : &m[found];
}
