// SPDX-License-Identifier: GPL-2.0-only
/* Times as one number. */
#ifndef KVMTOP_CLOCK_H
#define KVMTOP_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL

static inline int64_t timespec_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static inline int64_t clock_mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return timespec_ns(t);
}

#endif
