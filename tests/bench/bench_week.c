// SPDX-License-Identifier: GPL-2.0-only
/*
 * A week of recording, made at once: `bench_week FILE VCPUS [all]` writes a recording as it is
 * after a week with the default tiers, ending now, and prints rows for bench.py: its size, and how
 * long it takes to open it and read an interval anywhere in it. The file stays.
 *
 * What is older than an hour is written in the length that it has by then, and goes through all
 * tiers all the same. Every figure differs from interval to interval and from row to row by a
 * random fifth: what is always the same packs into nothing. What follows from others (rates,
 * shares, means, sums, a histogram's outline) does so here too, as the model makes it; what changes
 * slowly (totals since the start) or seldom (names, TSC offsets) does not. With `all` totals change
 * at random as well, and each count of a histogram by itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "hist.h"
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

static double moved(double v)
{
	return v * about_one();
}

static uint64_t moved_count(uint64_t n, double times)
{
	return (uint64_t)((double)n * times * about_one());
}

/* A time as a histogram says it. */
static uint64_t step(double ns)
{
	return hist_step_middle(hist_step((uint64_t)ns));
}

static struct value share(uint64_t part, uint64_t whole)
{
	return whole ? value_known(100.0 * (double)part / (double)whole) : value_pending();
}

/* ---- exits: of `times` seconds, or since the start ---- */

static void move_tally(struct tally *t, double times, double seconds)
{
	double avg = moved(t->avg_ns);

	t->count = t->timed = moved_count(t->count, times);
	t->time_ns = (uint64_t)((double)t->timed * avg);
	t->avg_ns = t->timed ? (double)t->time_ns / (double)t->timed : 0;
	t->stderr_pct *= about_one();
	t->min_ns = (uint64_t)moved((double)t->min_ns);
	t->max_ns = (uint64_t)moved((double)t->max_ns);
	t->p50_ns = step(moved((double)t->p50_ns));
	t->p99_ns = step(moved((double)t->p99_ns));
	t->p999_ns = step(moved((double)t->p999_ns));
	t->rate = value_known((double)t->count / seconds);
}

/* How many took no longer than ns: by its figures, evenly in the logarithm between them. */
static double below(const struct tally *t, double ns)
{
	const double time[] = {(double)t->min_ns, (double)t->p50_ns, (double)t->p99_ns,
			       (double)t->p999_ns, (double)t->max_ns};
	const double part[] = {0, 0.5, 0.99, 0.999, 1};

	for (unsigned i = 1; i < 5; i++)
		if (ns < time[i])
			return ns <= time[i - 1] ? part[i - 1]
						 : part[i - 1] + (part[i] - part[i - 1]) *
									 log(ns / time[i - 1]) /
									 log(time[i] / time[i - 1]);
	return 1;
}

static void move_exit(struct snap_exit *x, double seconds, bool everything)
{
	uint32_t *heat = (uint32_t *)x->heat;
	const struct tally *t = &x->now;

	move_tally(&x->now, seconds, seconds);
	if (everything)
		move_tally(&x->total, 1000, 1000);
	for (unsigned b = 0; heat && b + 1 < HEAT_BUCKETS; b++)
		heat[b] = (uint32_t)((double)t->timed *
				     (below(t, (double)hist_heat_floor(b + 1)) -
				      below(t, (double)hist_heat_floor(b))) *
				     (everything ? about_one() : 1));
}

/* Of a row's level and kind. */
static void sum_kind(const struct snap_exit *rows, uint32_t n, unsigned kind, uint64_t sum[4])
{
	memset(sum, 0, 4 * sizeof(*sum));
	for (uint32_t i = 0; i < n; i++) {
		if (rows[i].kind != kind)
			continue;
		sum[0] += rows[i].now.count;
		sum[1] += rows[i].now.time_ns;
		sum[2] += rows[i].total.count;
		sum[3] += rows[i].total.time_ns;
	}
}

static void set_exits(const struct snapshot *s, struct snap_exits *ex, double seconds,
		      bool everything)
{
	struct snap_exit *rows = (struct snap_exit *)&s->exits[ex->first];
	uint64_t sum[4], count = 0, most = 0, top = 0, busy = 0;

	for (uint32_t i = 0; i < ex->n; i++) {
		struct snap_exit *x = &rows[i];

		move_exit(x, seconds, everything);
		if (x->kind != KIND_VMEXIT)
			continue;
		count += x->now.count;
		busy += x->idle ? 0 : x->now.time_ns;
		most = !x->idle && x->now.max_ns > most ? x->now.max_ns : most;
		top = !x->idle && x->now.time_ns > top ? x->now.time_ns : top;
	}
	for (uint32_t i = 0; i < ex->n; i++) {
		sum_kind(rows, ex->n, rows[i].kind, sum);
		rows[i].now.count_pct = share(rows[i].now.count, sum[0]);
		rows[i].now.time_pct = share(rows[i].now.time_ns, sum[1]);
		rows[i].total.count_pct = share(rows[i].total.count, sum[2]);
		rows[i].total.time_pct = share(rows[i].total.time_ns, sum[3]);
	}
	ex->rate = value_known((double)count / seconds);
	ex->pct.v = moved(ex->pct.v);
	ex->off_pct.v = moved(ex->off_pct.v);
	ex->on_pct.v = ex->pct.v - ex->off_pct.v;
	ex->p50.v = (double)step(moved(ex->p50.v));
	ex->p99.v = (double)step(moved(ex->p99.v));
	ex->max.v = (double)most;
	ex->top_pct = share(top, busy);
}

/* ---- samples ---- */

static void set_samples(struct snap_samples *y, double seconds)
{
	uint64_t n = moved_count((uint64_t)y->n.v, seconds), left = n, part;

	for (unsigned d = 0; d < DOMAIN_NR; d++) {
		part = (uint64_t)moved((double)n * y->domain[d].v / 100);
		part = d == DOMAIN_NR - 1 || part > left ? left : part;
		y->domain[d] = share(part, n);
		left -= part;
	}
	y->hot_pct = share((uint64_t)moved((double)n * y->hot_pct.v / 100), n);
	y->n.v = (double)n;
	y->n_total.v = (double)(n + moved_count((uint64_t)y->n_total.v, 1000));
}

static void set_symbols(const struct snapshot *s, struct snap_samples *y, double seconds)
{
	struct snap_symbol *rows = (struct snap_symbol *)&s->symbols[y->first];
	uint64_t now = 0, total = 0;

	set_samples(y, seconds);
	for (uint32_t i = 0; i < y->rows; i++) {
		now += rows[i].samples = moved_count(rows[i].samples, seconds);
		total += rows[i].samples_total = moved_count(rows[i].samples_total, 1000);
	}
	for (uint32_t i = 0; i < y->rows; i++) {
		rows[i].pct = share(rows[i].samples, now);
		rows[i].pct_total = share(rows[i].samples_total, total);
	}
}

/* ---- CPU ---- */

static void set_use(struct snap_use *u)
{
	struct value *const each[] = {&u->cpu,	 &u->guest, &u->sys, &u->steal,
				      &u->throt, &u->csw,   &u->mig};

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		each[i]->v = moved(each[i]->v);
	u->usr.v = fmax(u->cpu.v - u->guest.v - u->sys.v, 0);
	u->wait.v = fmax(u->steal.v - u->throt.v, 0);
	u->demand.v = u->cpu.v + u->steal.v;
}

/* Sums and means over its vCPUs, with some threads of its own beside them. */
static void set_vm_use(const struct snapshot *s, struct snap_vm *vm)
{
	struct snap_use sum = {0}, *u = &vm->use;
	double n = vm->vcpu_n, io = moved(vm->io_pct.v), most = 0;

	for (uint32_t i = vm->vcpu_first; i < vm->vcpu_first + vm->vcpu_n; i++) {
		const struct snap_use *c = &s->vcpus[i].use;

		sum.cpu.v += c->cpu.v;
		sum.guest.v += c->guest.v;
		sum.sys.v += c->sys.v;
		sum.steal.v += c->steal.v / n;
		sum.throt.v += c->throt.v / n;
		sum.wait.v += c->wait.v / n;
		sum.demand.v += c->demand.v / n;
		sum.csw.v += c->csw.v;
		sum.mig.v += c->mig.v;
		most = fmax(most, c->steal.v);
	}
	vm->vcpu_pct.v = sum.cpu.v;
	vm->io_pct.v = io;
	vm->steal_max.v = most;
	u->cpu.v = sum.cpu.v + io;
	u->guest.v = sum.guest.v;
	u->sys.v = sum.sys.v + io / 2;
	u->usr.v = fmax(u->cpu.v - u->guest.v - u->sys.v, 0);
	u->steal.v = sum.steal.v;
	u->throt.v = sum.throt.v;
	u->wait.v = sum.wait.v;
	u->demand.v = sum.demand.v;
	u->csw.v = moved(sum.csw.v);
	u->mig.v = moved(sum.mig.v);
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

/* What there is little of. */
static void move_rest(struct snapshot *s)
{
	struct store_leaf leaf[STORE_LEAVES];

	for (size_t i = 0; i < store_ntables; i++) {
		const struct store_table *t = &store_tables[i];
		size_t n, nleaf = store_leaves(t, leaf);
		char *rows = (char *)store_rows(t, s, &n);

		if (t->id == STORE_EXITS || t->id == STORE_VMS || t->id == STORE_VCPUS ||
		    t->id == STORE_SYMBOLS)
			continue;
		for (size_t r = 0; r < n; r++)
			for (size_t l = 0; l < nleaf; l++)
				if (leaf[l].f->type == STORE_VALUE)
					move_values(&leaf[l], rows + r * t->row_size);
	}
}

static void move_figures(struct snapshot *s, double seconds, bool everything)
{
	struct snap_vm *vms = (struct snap_vm *)s->vms;
	struct snap_vcpu *vcpus = (struct snap_vcpu *)s->vcpus;

	for (size_t i = 0; i < s->nvcpus; i++) {
		set_use(&vcpus[i].use);
		set_exits(s, &vcpus[i].ex, seconds, everything);
		set_samples(&vcpus[i].sym, seconds);
	}
	for (size_t i = 0; i < s->nvms; i++) {
		set_vm_use(s, &vms[i]);
		set_exits(s, &vms[i].ex, seconds, everything);
		set_symbols(s, &vms[i].sym, seconds);
	}
	move_rest(s);
	set_exits(s, &s->host.ex, seconds, everything);
	set_symbols(s, &s->host.sym, seconds);
	set_symbols(s, &s->host.other_sym, seconds);
}

/* From `from` to `to` seconds before the end. */
static int write_part(struct store *st, unsigned nvms, int64_t end, int64_t from, int64_t to,
		      int64_t each, bool everything)
{
	int rc = 0;

	for (int64_t t = end - from + each; t <= end - to && !rc; t += each) {
		const struct made m = {.nvms = nvms, .step = (unsigned)(t / each % STEPS)};
		struct snapshot *s = made_snapshot(&m);

		if (!s)
			return -1;
		s->dt = each * NS_PER_S;
		s->since = s->time - 1000 * NS_PER_S;
		move_figures(s, (double)each, everything);
		s->wall = (struct timespec){.tv_sec = t};
		rc = store_write(st, s, 0);
		if (!rc)
			rc = store_age(st);
		snapshot_unref(s);
	}
	return rc;
}

static int write_week(const char *path, unsigned nvms, int64_t end, bool everything, double *mib)
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
	rc = write_part(st, nvms, end, 7 * 86400, 86400, 60, everything);
	if (!rc)
		rc = write_part(st, nvms, end, 86400, 3600, 10, everything);
	if (!rc)
		rc = write_part(st, nvms, end, 3600, 0, 1, everything);
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
	unsigned vcpus = argc >= 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	int64_t end = time(NULL);
	double mib = 0;

	if (!vcpus) {
		fprintf(stderr, "usage: bench_week FILE VCPUS [all]\n");
		return 2;
	}
	/* Of the made shapes a VM has 4.5: a few more vCPUs than asked for. */
	if (write_week(argv[1], (vcpus * 2 + 8) / 9, end, argc > 3, &mib))
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
