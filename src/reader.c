// SPDX-License-Identifier: GPL-2.0-only
/* Snapshot queues between the collecting thread and its readers; see reader.h. */
#include "reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tsc_late.h"

struct reader {
	struct engine *engine;
	pthread_mutex_t lock;
	struct demand demand;
	bool demand_changed;
	int fd;
	uint64_t skipped;
	int failure; /* -errno, until it is asked for or over */
	bool keeps_tsc;
	struct snapshot *late; /* TSC offsets of those that were dropped, see tsc_late.h */
	struct snapshot *taken_late; /* the same, up to the last that was taken */
	unsigned depth, head, n;
	struct snapshot *queue[];
};

struct reader *reader_new(struct engine *e, unsigned depth)
{
	struct reader *r = calloc(1, sizeof(*r) + depth * sizeof(r->queue[0]));

	if (!r)
		return NULL;
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->fd < 0) {
		free(r);
		return NULL;
	}
	r->engine = e;
	r->depth = depth;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

static struct snapshot *pop(struct reader *r)
{
	struct snapshot *s = r->queue[r->head];

	r->head = (r->head + 1) % r->depth;
	r->n--;
	return s;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	while (r->n)
		snapshot_unref(pop(r));
	snapshot_unref(r->late);
	snapshot_unref(r->taken_late);
	close(r->fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void wake(const struct reader *r)
{
	uint64_t one = 1;

	/* A full counter means that it is readable already. */
	if (write(r->fd, &one, sizeof(one)) < 0)
		return;
}

void reader_put(struct reader *r, struct snapshot *s)
{
	struct snapshot *dropped = NULL;

	snapshot_ref(s);
	pthread_mutex_lock(&r->lock);
	if (r->n == r->depth) {
		dropped = pop(r);
		r->skipped++;
		/* Without memory for it that, too, is lost. */
		if (r->keeps_tsc)
			(void)tsc_late_add(&r->late, dropped);
	}
	r->queue[(r->head + r->n++) % r->depth] = s;
	r->failure = 0;
	pthread_mutex_unlock(&r->lock);
	snapshot_unref(dropped);
	wake(r);
}

void reader_fail(struct reader *r, int rc)
{
	pthread_mutex_lock(&r->lock);
	r->failure = rc;
	pthread_mutex_unlock(&r->lock);
	wake(r);
}

int reader_failure(struct reader *r)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = r->failure;
	r->failure = 0;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int reader_fd(const struct reader *r)
{
	return r->fd;
}

struct snapshot *reader_take(struct reader *r, uint64_t *skipped)
{
	struct snapshot *s = NULL;
	uint64_t n, one = 1;
	bool more;

	/* Cleared before the look, so that a snapshot that comes meanwhile is announced anew. */
	if (read(r->fd, &n, sizeof(n)) < 0)
		n = 0;
	pthread_mutex_lock(&r->lock);
	if (r->n)
		s = pop(r);
	more = r->n > 0;
	if (skipped)
		*skipped = r->skipped;
	r->skipped = 0;
	if (s && r->late) {
		/* In the same breath: what is dropped from now on is newer than s. */
		snapshot_unref(r->taken_late);
		r->taken_late = r->late;
		r->late = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	if (more) {
		ssize_t told = write(r->fd, &one, sizeof(one));

		(void)told; /* it fails only where the reader is told already */
	}
	return s;
}

void reader_keep_tsc(struct reader *r)
{
	r->keeps_tsc = true;
}

struct snapshot *reader_tsc(struct reader *r)
{
	struct snapshot *late = r->taken_late;

	r->taken_late = NULL;
	return late;
}

void reader_demand(struct reader *r, const struct demand *d)
{
	bool changed;

	pthread_mutex_lock(&r->lock);
	/* Padding that differs makes the engine look once more, and find nothing new.
	 * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	changed = memcmp(&r->demand, d, sizeof(*d)) != 0;
	r->demand = *d;
	r->demand_changed |= changed;
	pthread_mutex_unlock(&r->lock);
	if (changed)
		engine_poke(r->engine);
}

bool reader_wants(struct reader *r, struct demand *out)
{
	bool changed;

	pthread_mutex_lock(&r->lock);
	*out = r->demand;
	changed = r->demand_changed;
	r->demand_changed = false;
	pthread_mutex_unlock(&r->lock);
	return changed;
}
