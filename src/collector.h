// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a collector is: one file, one const vtable, one row in collectors/registry.c.
 *
 * All calls come from the collecting thread. Functions return 0 or -errno; they
 * never print and never exit. What cannot be had is said with probe() and with
 * sink->source(), in words.
 */
#ifndef KVMTOP_COLLECTOR_H
#define KVMTOP_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "demand.h"
#include "sample.h"

struct sysroot;
struct inventory;
struct kvm_names;
struct sched_iter;

enum events_how { EVENTS_AUTO, EVENTS_BPF, EVENTS_PERF };
enum sample_with { SAMPLE_AUTO, SAMPLE_HW, SAMPLE_CLOCK };

/* What the command line fixes for the run. */
struct collector_config {
	double delay_s;
	bool first_frame; /* a screen waits for the first tick: what takes long comes later */
	bool threads_by_proc; /* two files a thread, though one BPF program could read them all */
	uint8_t events_how; /* enum events_how: count in the kernel, or take each event */
	bool few_keys; /* tests: room for a handful of keys in the kernel */
	unsigned sample_hz; /* samples a second and CPU; 0: none */
	uint8_t sample_with; /* enum sample_with */
	bool sample_host, sample_guest; /* which domains; both or neither: all */
	bool tsc_writes; /* each write of a TSC offset, by an ftrace instance of its own */
	bool lost_test; /* tests: smallest ring, no early wake-ups */
};

struct collector_env {
	struct sysroot *root;
	struct inventory *inv;
	const struct sink *sink;
	struct kvm_names *names; /* kvm_events puts the kernel's own names in */
	const struct collector_config *config;
	struct sched_iter *iter; /* threads in one pass (collectors/sched_iter.h); NULL: by files */
};

#define PROBE_TEXT 240
struct probe {
	char source[32]; /* what is probed: "kvm_exit tracepoint", "debugfs" … */
	int state; /* enum source_state */
	char why[PROBE_TEXT]; /* "works", or exactly why not */
	char mend[PROBE_TEXT]; /* the command that mends it, or "" */
};

struct probes {
	size_t n;
	struct probe p[16];
};

struct collector {
	const char *name; /* for --collectors and the JSON "sources" */
	const char *what; /* one line for help, doctor and the man page */
	/*
	 * Looks without side effects; needs no open(). env->sink and env->inv may be NULL; without
	 * a sink nothing is collected, and it may take a moment to look.
	 */
	void (*probe)(const struct collector_env *env, struct probes *out);
	int (*open)(const struct collector_env *env, void **state);
	int (*fd)(void *state); /* for epoll, -1 none; may be NULL */
	int (*ready)(void *state, int64_t now_ns); /* the fd is readable; may be NULL */
	/*
	 * Once an interval. `watermark` is the end W of the interval (docs/metrics.md,
	 * "Time"): event sources hand over everything up to it. May be NULL.
	 */
	int (*tick)(void *state, int64_t now_ns, int64_t watermark);
	void (*demand)(void *state, const struct demand *d); /* may be NULL */
	void (*close)(void *state); /* NULL state is fine */
};

/* collectors/registry.c: the visible table, in the order in which they tick; ends with NULL. */
extern const struct collector *const collectors[];

/* Appends one line to a probe; text is cut at PROBE_TEXT; silently full at 16. */
void probe_add(struct probes *p, const char *source, int state, const char *mend, const char *why,
	       ...) __attribute__((format(printf, 5, 6)));

#endif
