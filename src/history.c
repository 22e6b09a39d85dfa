// SPDX-License-Identifier: GPL-2.0-only
/* The last minutes in memory (history.h). */
#include "history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "snapshot.h"

/* Never fewer than this many, whatever they weigh: stepping back one must always work. */
#define KEEP_LEAST 2
/* The newest stay whole: a minute at one second. */
#define KEEP_NEWEST 60

struct history {
	struct snapshot **at;
	size_t n, cap;
	size_t bytes, budget;
};

struct history *history_new(size_t budget)
{
	struct history *h = calloc(1, sizeof(*h));

	if (h)
		h->budget = budget;
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		snapshot_unref(h->at[i]);
	free(h->at);
	free(h);
}

static void drop(struct history *h, size_t i)
{
	h->bytes -= h->at[i]->bytes;
	snapshot_unref(h->at[i]);
	memmove(h->at + i, h->at + i + 1, (h->n - i - 1) * sizeof(*h->at));
	h->n--;
}

/*
 * The one to give up: of the older ones, that whose neighbours are closest together for its
 * age, so that the distance between those kept grows with age. When only the newest are left,
 * the oldest of them.
 */
static size_t victim(const struct history *h)
{
	size_t best = 0, old = h->n > KEEP_NEWEST ? h->n - KEEP_NEWEST : 0;
	int64_t newest = h->at[h->n - 1]->time;
	double least = 0;

	for (size_t i = 1; i < old; i++) {
		double gap = (double)(h->at[i + 1]->time - h->at[i - 1]->time);
		double age = (double)(newest - h->at[i]->time) + 1;

		if (best == 0 || gap / age < least) {
			least = gap / age;
			best = i;
		}
	}
	/* Thinned to one in ten of its age: from here on the end is cut off. */
	return best && least < 0.2 ? best : 0;
}

int history_push(struct history *h, struct snapshot *s)
{
	if (!grow(&h->at, h->n, &h->cap, sizeof(struct snapshot *)))
		return -ENOMEM;
	h->at[h->n++] = snapshot_ref(s);
	h->bytes += s->bytes;
	while (h->bytes > h->budget && h->n > KEEP_LEAST)
		drop(h, victim(h));
	return 0;
}

size_t history_n(const struct history *h)
{
	return h->n;
}

size_t history_bytes(const struct history *h)
{
	return h->bytes;
}

struct snapshot *history_at(const struct history *h, size_t i)
{
	return i < h->n ? h->at[i] : NULL;
}

size_t history_find(const struct history *h, int64_t time)
{
	size_t lo = 0, hi = h->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (h->at[mid]->time <= time)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}
