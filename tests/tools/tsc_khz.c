// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints how many kHz this machine's time stamp counter makes, or nothing where it has none.
 *
 * The lab's kernel (tests/lab/run.sh) is told: it would measure it while it boots, and on a busy
 * machine an emulated CPU that is held up between two readings measures nonsense, after which all
 * its clocks are wrong.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifdef __x86_64__
#include <x86intrin.h>

#define TRIES 50
#define APART_NS 200000000

struct reading {
	uint64_t tsc, gap;
	int64_t ns;
};

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* Both clocks at one moment: of many pairs the one that took least. */
static struct reading both(void)
{
	struct reading best = {.gap = UINT64_MAX};

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = __rdtsc();
		int64_t ns = now();
		uint64_t gap = __rdtsc() - before;

		if (gap < best.gap)
			best = (struct reading){before + gap / 2, gap, ns};
	}
	return best;
}

int main(void)
{
	struct reading a = both(), b;

	nanosleep(&(struct timespec){.tv_nsec = APART_NS}, NULL);
	b = both();
	printf("%.0f\n", (double)(b.tsc - a.tsc) * 1e6 / (double)(b.ns - a.ns));
	return 0;
}
#else
int main(void)
{
	return 0;
}
#endif
