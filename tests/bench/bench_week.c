// SPDX-License-Identifier: GPL-2.0-only
/*
 * A week of recording, made at once: `bench_week FILE VCPUS` writes a recording as it is after a
 * week with the default tiers, ending now, and prints rows for bench.py: its size, and how long it
 * takes to open it and read an interval anywhere in it. The file stays.
 *
 * What is older than an hour is written in the length that it has by then, and goes through all
 * tiers all the same. Every figure differs from interval to interval and from row to row, as real
 * ones do: what is always the same packs into nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "made_snapshot.h"
#include "store.h"
#include "store_fields.h"

#define TIERS "1s:1h,10s:24h,60s:7d"
#define STEPS 5
#define SEEKS 200

static uint64_t random_bits(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Between 0.8 and 1.2. */
static double about_one(void)
{
	return 0.8 + 0.4 * (double)(random_bits() >> 40) / (1 << 24);
}

/* As a histogram says it. */
static uint64_t coarse(double v)
{
	int shift = v >= 64 ? 58 - __builtin_clzll((uint64_t)v) : 0;

	return (uint64_t)v >> shift << shift;
}

/* Of this interval; what is since the start changes slowly, for which the step is enough. */
static void move_exit(struct snap_exit *x)
{
	double many = about_one(), slow = about_one();
	struct tally *t = &x->now;

	t->count = t->timed = (uint64_t)((double)t->count * many);
	t->avg_ns *= slow;
	t->time_ns = (uint64_t)((double)t->timed * t->avg_ns);
	t->stderr_pct *= about_one();
	t->min_ns = (uint64_t)((double)t->min_ns * slow);
	t->max_ns = (uint64_t)((double)t->max_ns * slow * about_one());
	t->p50_ns = coarse((double)t->p50_ns * slow);
	t->p99_ns = coarse((double)t->p99_ns * slow);
	t->p999_ns = coarse((double)t->p999_ns * slow);
	t->rate.v = (double)t->count;
	t->count_pct.v *= many;
	t->time_pct.v *= many * slow;
}

static void move_values(const struct store_leaf *l, char *row)
{
	struct value v;

	for (unsigned k = 0; k < l->f->n; k++, row += sizeof(v)) {
		memcpy(&v, row + l->at, sizeof(v));
		v.v *= about_one();
		memcpy(row + l->at, &v, sizeof(v));
	}
}

static void move_figures(struct snapshot *s)
{
	struct store_leaf leaf[STORE_LEAVES];

	for (size_t i = 0; i < s->nexits; i++)
		move_exit((struct snap_exit *)&s->exits[i]);
	for (size_t i = 0; i < store_ntables; i++) {
		const struct store_table *t = &store_tables[i];
		size_t n, nleaf = store_leaves(t, leaf);
		char *rows = (char *)store_rows(t, s, &n);

		if (t->id == STORE_EXITS)
			continue;
		for (size_t r = 0; r < n; r++)
			for (size_t l = 0; l < nleaf; l++)
				if (leaf[l].f->type == STORE_VALUE)
					move_values(&leaf[l], rows + r * t->row_size);
	}
}

/* From `from` to `to` seconds before the end. */
static int write_part(struct store *st, unsigned nvms, int64_t end, int64_t from, int64_t to,
		      int64_t each)
{
	int rc = 0;

	for (int64_t t = end - from + each; t <= end - to && !rc; t += each) {
		const struct made m = {.nvms = nvms, .step = (unsigned)(t / each % STEPS)};
		struct snapshot *s = made_snapshot(&m);

		if (!s)
			return -1;
		move_figures(s);
		s->dt = each * NS_PER_S;
		s->wall = (struct timespec){.tv_sec = t};
		rc = store_write(st, s, 0);
		if (!rc)
			rc = store_age(st);
		snapshot_unref(s);
	}
	return rc;
}

static int write_week(const char *path, unsigned nvms, int64_t end, double *mib)
{
	struct store_keep keep = {0};
	struct store *st;
	char err[300] = "";
	int rc;

	unlink(path);
	if (!store_keep_parse(TIERS, &keep) || store_create(path, &keep, &st, err, sizeof(err))) {
		fprintf(stderr, "bench_week: %s\n", err);
		return 1;
	}
	rc = write_part(st, nvms, end, 7 * 86400, 86400, 60);
	if (!rc)
		rc = write_part(st, nvms, end, 86400, 3600, 10);
	if (!rc)
		rc = write_part(st, nvms, end, 3600, 0, 1);
	*mib = (double)store_bytes(st) / (1 << 20);
	store_close(st);
	return rc;
}

/* Opened anew each time, as replay does with --at. ms, or below 0. */
static double seek(const char *path, int64_t end)
{
	int64_t at = (end - (int64_t)(random_bits() % (7 * 86400))) * NS_PER_S;
	int64_t start = clock_mono_ns();
	struct snapshot *s = NULL;
	struct store_at found;
	struct store *st;
	char err[300];

	if (store_open(path, &st, err, sizeof(err)))
		return -1;
	if (!store_find(st, STORE_AT, at, &found) && !store_read(st, found.id, &s))
		snapshot_unref(s);
	store_close(st);
	return s ? (double)(clock_mono_ns() - start) / 1e6 : -1;
}

int main(int argc, char **argv)
{
	unsigned vcpus = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	int64_t end = time(NULL);
	double mib = 0;

	if (!vcpus) {
		fprintf(stderr, "usage: bench_week FILE VCPUS\n");
		return 2;
	}
	/* Of the made shapes a VM has 4.5: a few more vCPUs than asked for. */
	if (write_week(argv[1], (vcpus * 2 + 8) / 9, end, &mib))
		return 1;
	printf("{\"what\": \"a week of %u vCPUs: recording\", \"unit\": \"MiB\", \"ours\": [%.1f],"
	       " \"limit\": %.0f}\n",
	       vcpus, mib, 1536.0 * vcpus / 310);
	printf("{\"what\": \"  opened and read at any time\", \"unit\": \"ms\", \"limit\": 200, "
	       "\"ours\": [");
	for (int i = 0; i < SEEKS; i++) {
		double ms = seek(argv[1], end);

		if (ms < 0)
			return 1;
		printf("%s%.2f", i ? ", " : "", ms);
	}
	printf("]}\n");
	return 0;
}
