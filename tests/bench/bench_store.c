// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a recorder of 1,000 vCPUs costs: CPU time of an interval of a second, written and aged as
 * `kvmtop record` does, by a thread of its own, alone and with the merging of older intervals; rows
 * for bench.py. `bench_store DIR [N]` writes N intervals into a recording in DIR.
 */
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "made_snapshot.h"
#include "store.h"

#define VMS 222 /* of the made shapes: 1,000 vCPUs */
#define STEPS 5

/* The threads of a store: this one. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return timespec_ns(t);
}

struct cost {
	double write_ms, age_ms, bytes; /* of an interval */
};

struct job {
	const char *path, *tiers;
	unsigned n;
	struct snapshot *const *s; /* STEPS */
	struct cost cost;
};

static int run(const char *path, const char *tiers, unsigned n, struct snapshot *const *s,
	       struct cost *out)
{
	struct store_keep keep = {0};
	struct store *st = NULL;
	int64_t write_ns = 0, age_ns = 0, t0;
	char err[300] = "";

	unlink(path);
	if (!store_keep_parse(tiers, &keep) || store_create(path, &keep, &st, err, sizeof(err))) {
		fprintf(stderr, "bench_store: %s\n", err);
		return 1;
	}
	for (unsigned i = 0; i < n; i++) {
		s[i % STEPS]->wall = (struct timespec){.tv_sec = 1790000000 + i};
		t0 = cpu_ns();
		if (store_write(st, s[i % STEPS], 0))
			return 1;
		write_ns += cpu_ns() - t0;
		t0 = cpu_ns();
		if (store_age(st))
			return 1;
		age_ns += cpu_ns() - t0;
	}
	*out = (struct cost){(double)write_ns / 1e6 / n, (double)age_ns / 1e6 / n,
			     (double)store_bytes(st) / n};
	store_close(st);
	unlink(path);
	return 0;
}

/* NULL: done. */
static void *writer(void *ctx)
{
	struct job *j = ctx;

	store_hold_memory();
	return run(j->path, j->tiers, j->n, j->s, &j->cost) ? j : NULL;
}

static bool work(struct job *j)
{
	pthread_t t;
	void *failed;

	return !pthread_create(&t, NULL, writer, j) && !pthread_join(t, &failed) && !failed;
}

static void row(const char *what, double value, const char *unit, double limit)
{
	printf("{\"what\": \"%s\", \"unit\": \"%s\", \"ours\": [%.2f]", what, unit, value);
	if (limit > 0)
		printf(", \"limit\": %g", limit);
	printf("}\n");
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 200;
	struct snapshot *s[STEPS];
	/* As it is for the first hour, and as it is for ever after: one merged for each written. */
	struct job young = {.tiers = "1s:1h,10s:24h,60s:7d"},
		   old = {.tiers = "1s:20s,10s:1m,60s:7d"};
	char path[PATH_MAX];
	bool done;

	if (argc < 2 || !n) {
		fprintf(stderr, "usage: bench_store DIR [N]\n");
		return 2;
	}
	for (unsigned i = 0; i < STEPS; i++) {
		const struct made m = {.nvms = VMS, .step = i};

		s[i] = made_snapshot(&m);
		if (!s[i])
			return 1;
		s[i]->dt = NS_PER_S;
	}
	snprintf(path, sizeof(path), "%s/bench.db", argv[1]);
	young.path = old.path = path;
	young.n = old.n = n;
	young.s = old.s = s;
	done = work(&young) && work(&old);
	if (done) {
		row("recorder, 1,000 vCPUs: own CPU, nothing to merge", young.cost.write_ms / 10,
		    "% of a CPU", 1.5);
		row("recorder, 1,000 vCPUs: own CPU, older ones merged",
		    (old.cost.write_ms + old.cost.age_ms) / 10, "% of a CPU", 1.5);
		row("recorder: bytes a vCPU and interval, VM's share in it",
		    young.cost.bytes / (double)s[0]->nvcpus, "bytes", 0);
	}
	for (unsigned i = 0; i < STEPS; i++)
		snapshot_unref(s[i]);
	return done ? 0 : 1;
}
