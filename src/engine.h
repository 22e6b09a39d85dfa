// SPDX-License-Identifier: GPL-2.0-only
/*
 * The collecting thread and how its snapshots reach those who read them.
 *
 * The engine owns the inventory, the model and the collectors' states; all of them are
 * touched by its thread only. Everything below may be called from any other thread.
 */
#ifndef KVMTOP_ENGINE_H
#define KVMTOP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "collector.h"
#include "snapshot.h"

struct engine;
struct reader;

struct engine_config {
	const char *root; /* --root DIR, NULL: the host */
	const char *collectors; /* --collectors: comma-separated names, NULL: all */
	double delay_s; /* 0.1 … 3600 */
	bool short_first; /* first intervals of 0.25, 0.25, 0.5 s (the screen) */
	double max_overhead_pct;
	const struct guest_files
		*guest_files; /* symbols.h; NULL: none named; outlives the engine */
	struct collector_config collector;
};

/* 0 or -errno; err gets one line that says what and how to mend it. */
int engine_new(const struct engine_config *c, struct engine **out, char *err, size_t errsize);
int engine_start(struct engine *e);
/* Ends the thread and joins it. */
void engine_stop(struct engine *e);
void engine_free(struct engine *e); /* stops it first; NULL is fine */

/*
 * A reader gets each snapshot; up to `depth` wait for it. Above that the oldest is dropped
 * and counted (depth 1: the newest wins, as a screen wants it). Make readers before
 * engine_start(); they are freed with the engine. NULL with errno set.
 */
struct reader *engine_reader(struct engine *e, unsigned depth);
int reader_fd(const struct reader *r); /* an eventfd, readable when a snapshot waits */
/* The oldest waiting snapshot (the caller's reference) or NULL; *skipped: dropped since last. */
struct snapshot *reader_take(struct reader *r, uint64_t *skipped);
/* 0, or -errno: why no snapshot came for three intervals. Said once, and wakes as one does. */
int reader_failure(struct reader *r);
/* Snapshots that are dropped leave what they tell of TSC offsets; before engine_start(). */
void reader_keep_tsc(struct reader *r);
/* What those left that were dropped before the last one taken (tsc_late.h), or NULL. */
struct snapshot *reader_tsc(struct reader *r);
void reader_demand(struct reader *r, const struct demand *d);

void engine_set_delay(struct engine *e, double delay_s);
void engine_reset(struct engine *e); /* totals */
void engine_tick_now(struct engine *e); /* ends the interval at once (tests, SIGTERM in batch) */

#endif
