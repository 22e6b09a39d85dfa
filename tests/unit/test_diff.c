// SPDX-License-Identifier: GPL-2.0-only
/* Comparisons: rates by hand, who is whom, and what is noise (src/diff*.c). */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "clock.h"
#include "diff.h"
#include "out_text.h"
#include "snapshot.h"

/* ---- snapshots by hand ---- */

struct guest {
	const char *name, *uuid, *vm_id;
	int pid;
	unsigned nvcpu;
	uint64_t outs, time_ns, hlts; /* of the interval */
	double waited, wake_us; /* % of a vCPU's time that db02 had the CPU; 0: not watched */
	double steal, cpu;
	uint64_t samples;
};

static void put_waits(struct snapshot *s, struct snap_vm *vm, const struct guest *g, size_t n)
{
	struct snap_waited *w = snapshot_alloc(s, n, sizeof(*w));

	for (size_t i = 0; i < n; i++) {
		if (g[i].waited <= 0)
			continue;
		w[s->nwaited] = (struct snap_waited){.vm = (uint32_t)i,
						     .vcpu = -1,
						     .kind = WAITED_VM,
						     .name = "db02",
						     .pct = value_known(g[i].waited)};
		vm[i].waits = (struct snap_waits){.pct = value_known(g[i].waited),
						  .wake_p99 = value_known(g[i].wake_us * 1000),
						  .first = (uint32_t)s->nwaited++,
						  .n = 1};
	}
	s->waited = w;
}

static struct snapshot *interval(const struct guest *g, size_t n, int64_t dt, unsigned at)
{
	struct snapshot *s = snapshot_new();
	struct snap_vm *vm;
	struct snap_exit *x;
	struct snap_symbol *y;

	assert_non_null(s);
	vm = snapshot_alloc(s, n, sizeof(*vm));
	x = snapshot_alloc(s, 2 * n, sizeof(*x));
	y = snapshot_alloc(s, n, sizeof(*y));
	s->dt = dt;
	s->wall = (struct timespec){.tv_sec = 1790000000 + at};
	s->open_kinds = KIND_BIT(KIND_VMEXIT);
	s->sampling = (struct snap_sampling){.open = true, .hz = 100};
	s->host.boot_id = "b";
	s->host.node = "n";
	for (size_t i = 0; i < n; i++) {
		vm[i] = (struct snap_vm){
			.name = g[i].name,
			.uuid = g[i].uuid ? g[i].uuid : "",
			.vm_id = g[i].vm_id,
			.pid = g[i].pid,
			.nvcpu = g[i].nvcpu,
			.use = {.steal = value_known(g[i].steal), .cpu = value_known(g[i].cpu)},
			.ex = {.first = (uint32_t)(2 * i), .n = 2},
			.sym = {.first = (uint32_t)i, .rows = 1}};
		x[2 * i] = (struct snap_exit){
			.name = "IO_INSTRUCTION", .has_time = true, .vm = (uint32_t)i, .vcpu = -1};
		x[2 * i].now = (struct tally){.count = g[i].outs, .time_ns = g[i].time_ns};
		x[2 * i + 1] = (struct snap_exit){.name = "HLT",
						  .has_time = true,
						  .idle = true,
						  .vm = (uint32_t)i,
						  .vcpu = -1};
		x[2 * i + 1].now = (struct tally){.count = g[i].hlts, .time_ns = 1000};
		y[i] = (struct snap_symbol){.vm = (int32_t)i,
					    .vcpu = -1,
					    .name = "native_write_msr",
					    .module = "",
					    .samples = g[i].samples};
		y[i].key.domain = DOMAIN_GUEST_KERNEL;
	}
	s->vms = vm;
	s->nvms = n;
	s->exits = x;
	s->nexits = 2 * n;
	s->symbols = y;
	s->nsymbols = n;
	put_waits(s, vm, g, n);
	return s;
}

/* n intervals of 0.5 s; what is counted varies by the pattern. */
static void fill(struct diff_side *side, const struct guest *g, size_t nvms, unsigned n,
		 unsigned seed)
{
	struct guest now[4] = {0};

	for (unsigned i = 0; i < n; i++) {
		struct snapshot *s;

		for (size_t k = 0; k < nvms; k++) {
			now[k] = g[k];
			seed = seed * 1103515245u + 12345u;
			now[k].outs += now[k].outs * (seed >> 16 & 15) / 100;
		}
		s = interval(now, nvms, NS_PER_S / 2, i);
		assert_int_equal(diff_add(side, s, i, n), 0);
		snapshot_unref(s);
	}
}

static const struct diff_row *row_of(const struct diff *d, enum diff_what what, const char *name)
{
	for (size_t i = 0; i < d->nrows; i++)
		if (d->row[i].what == what && strcmp(d->row[i].name, name) == 0)
			return &d->row[i];
	fail_msg("no row %s %s", diff_what_name(what), name);
	return NULL;
}

static struct diff compared(const struct guest *a, const struct guest *b, unsigned n)
{
	struct diff d = {.side = {{.label = "A", .path = "a"}, {.label = "B", .path = "b"}}};
	char err[600] = "";

	fill(&d.side[0], a, 1, n, 1);
	fill(&d.side[1], b, 1, n, 2);
	if (diff_match(&d, NULL, 0, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(diff_compare(&d), 0);
	return d;
}

static char *said(const struct diff *d, int format)
{
	int fd;
	struct out *o = out_text_begin(&fd);

	if (format == 0)
		diff_text(d, 0, o);
	else if (format == 1)
		diff_csv(d, o);
	else
		assert_int_equal(diff_json(d, o), 0);
	return out_text_end(o, fd);
}

/* ---- tests ---- */

static void rates_are_per_vcpu_second(void **state)
{
	/* In 0.5 s of two vCPUs is one vCPU-second. */
	const struct guest a = {.name = "web01",
				.vm_id = "1-1",
				.nvcpu = 2,
				.hlts = 10,
				.time_ns = 50000000,
				.steal = 10,
				.cpu = 100,
				.samples = 7};
	/* The same for each vCPU, of twice as many. */
	const struct guest b = {.name = "web01",
				.vm_id = "2-2",
				.nvcpu = 4,
				.hlts = 20,
				.time_ns = 200000000,
				.steal = 30,
				.cpu = 200,
				.samples = 14};
	struct diff d = compared(&a, &b, 8);
	const struct diff_row *r;

	(void)state;
	r = row_of(&d, DIFF_EXITS, "HLT");
	assert_true(fabs(r->a - 10) < 1e-9 && fabs(r->b - 10) < 1e-9);
	assert_true(r->tested && !r->sure);
	r = row_of(&d, DIFF_EXIT_TIME, "IO_INSTRUCTION");
	assert_true(fabs(r->a - 5) < 1e-9 && fabs(r->b - 10) < 1e-9);
	assert_true(r->sure && fabs(r->share_a - 100) < 1e-9);
	r = row_of(&d, DIFF_USE, "steal");
	assert_true(fabs(r->a - 10) < 1e-9 && fabs(r->b - 30) < 1e-9 && r->sure);
	r = row_of(&d, DIFF_USE, "cpu");
	assert_true(fabs(r->a - 50) < 1e-9 && fabs(r->b - 50) < 1e-9 && !r->sure);
	/* 7 samples of 100 Hz are 0.07 s. */
	r = row_of(&d, DIFF_SYMBOLS, "native_write_msr");
	assert_true(fabs(r->a - 7) < 1e-9 && fabs(r->b - 7) < 1e-9);
	/* Waiting is no handling. */
	for (size_t i = 0; i < d.nrows; i++)
		assert_false(d.row[i].what == DIFF_EXIT_TIME && strcmp(d.row[i].name, "HLT") == 0);
	diff_free(&d);
}

static void who_had_the_cpu(void **state)
{
	const struct guest a = {
		.name = "web01", .vm_id = "1-1", .nvcpu = 2, .waited = 4, .wake_us = 50};
	struct guest b = a;
	struct diff d;
	const struct diff_row *r;
	char *text;

	(void)state;
	b.waited = 30;
	b.wake_us = 900;
	d = compared(&a, &b, 8);
	r = row_of(&d, DIFF_WAITED, "db02");
	assert_true(fabs(r->a - 4) < 1e-9 && fabs(r->b - 30) < 1e-9 && r->sure);
	assert_true(fabs(r->share_a - 100) < 1e-9);
	assert_string_equal(diff_kind_name(r), "vm");
	r = row_of(&d, DIFF_WAKES, "p99");
	assert_true(fabs(r->a - 50) < 1e-9 && fabs(r->b - 900) < 1e-9 && r->sure);
	text = said(&d, 0);
	assert_non_null(strstr(text, "who had the CPU while vCPUs waited"));
	free(text);
	diff_free(&d);
	b.waited = 0; /* nobody looked */
	d = compared(&a, &b, 8);
	r = row_of(&d, DIFF_WAITED, "db02");
	assert_true(r->a_known && !r->b_known);
	diff_free(&d);
}

static void what_is_not_known_is_not_zero(void **state)
{
	const struct guest a = {.name = "web01", .vm_id = "1-1", .nvcpu = 1, .outs = 10};
	struct diff d = {.side = {{.label = "A", .path = "a"}, {.label = "B", .path = "b"}}};
	char err[600], *text;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct snapshot *s = interval(&a, 1, NS_PER_S, i);

		assert_int_equal(diff_add(&d.side[0], s, i, 6), 0);
		s->open_kinds = 0; /* nobody counted exits then */
		s->sampling.open = false;
		((struct snap_vm *)s->vms)->use.steal = value_na(WHY_NO_SCHEDSTAT);
		assert_int_equal(diff_add(&d.side[1], s, i, 6), 0);
		snapshot_unref(s);
	}
	assert_int_equal(diff_match(&d, NULL, 0, err, sizeof(err)), 0);
	assert_int_equal(diff_compare(&d), 0);
	assert_true(row_of(&d, DIFF_EXITS, "IO_INSTRUCTION")->a_known);
	assert_false(row_of(&d, DIFF_EXITS, "IO_INSTRUCTION")->b_known);
	assert_false(row_of(&d, DIFF_SYMBOLS, "native_write_msr")->b_known);
	assert_false(row_of(&d, DIFF_USE, "steal")->b_known);
	assert_false(row_of(&d, DIFF_USE, "steal")->sure);
	text = said(&d, 1);
	assert_non_null(
		strstr(text, "exit,web01,web01,vmexit,IO_INSTRUCTION,,1/vCPU-s,10,,,,,100,,"));
	free(text);
	diff_free(&d);
}

static void few_intervals_tell_nothing_of_noise(void **state)
{
	const struct guest a = {.name = "web01", .vm_id = "1-1", .nvcpu = 1, .outs = 10};
	const struct guest b = {.name = "web01", .vm_id = "1-1", .nvcpu = 1, .outs = 1000};
	struct diff d = compared(&a, &b, DIFF_BLOCKS_LEAST - 1);
	char *text = said(&d, 0);

	(void)state;
	assert_false(row_of(&d, DIFF_EXITS, "IO_INSTRUCTION")->tested);
	assert_false(row_of(&d, DIFF_EXITS, "IO_INSTRUCTION")->sure);
	assert_non_null(strstr(text, "? not known"));
	free(text);
	diff_free(&d);
}

static void every_run_says_the_same(void **state)
{
	const struct guest a = {
		.name = "web01", .vm_id = "1-1", .nvcpu = 1, .outs = 500, .samples = 3};
	const struct guest b = {
		.name = "web01", .vm_id = "1-1", .nvcpu = 1, .outs = 510, .samples = 2};

	(void)state;
	for (int format = 0; format < 3; format++) {
		struct diff x = compared(&a, &b, 40), y = compared(&a, &b, 40);
		char *one = said(&x, format), *two = said(&y, format);

		assert_string_equal(one, two);
		free(one);
		free(two);
		diff_free(&x);
		diff_free(&y);
	}
}

/* Intervals are put together in blocks, and nothing is lost by that. */
static void many_intervals(void **state)
{
	const struct guest a = {.name = "web01", .vm_id = "1-1", .nvcpu = 1, .hlts = 3};
	struct diff d = compared(&a, &a, 1234);

	(void)state;
	assert_int_equal(d.side[0].nblocks, DIFF_BLOCKS);
	assert_int_equal(d.side[0].intervals, 1234);
	assert_true(fabs(row_of(&d, DIFF_EXITS, "HLT")->a - 6) < 1e-9);
	diff_free(&d);
}

/* ---- who is whom ---- */

static int matched(struct diff *d, const struct guest *a, size_t na, const struct guest *b,
		   size_t nb, const char *map, char *err)
{
	*d = (struct diff){.side = {{.label = "A", .path = "a"}, {.label = "B", .path = "b"}}};
	fill(&d->side[0], a, na, 2, 1);
	fill(&d->side[1], b, nb, 2, 1);
	err[0] = '\0';
	return diff_match(d, &map, map ? 1 : 0, err, 600);
}

static void vms_are_matched(void **state)
{
	const struct guest a[] = {
		{.name = "web01", .uuid = "u1", .vm_id = "u1", .pid = 10, .nvcpu = 1},
		{.name = "db01", .vm_id = "11-5", .pid = 11, .nvcpu = 1},
		{.name = "tinyvm:12", .vm_id = "12-5", .pid = 12, .nvcpu = 1},
	};
	/* Renamed; the same name with another pid; the same pid, another process. */
	const struct guest b[] = {
		{.name = "db01", .vm_id = "77-9", .pid = 77, .nvcpu = 1},
		{.name = "frontend", .uuid = "u1", .vm_id = "u1", .pid = 78, .nvcpu = 1},
		{.name = "tinyvm:12", .vm_id = "12-8", .pid = 12, .nvcpu = 1},
	};
	struct diff d;
	char err[600];

	(void)state;
	assert_int_equal(matched(&d, a, 3, b, 3, NULL, err), 0);
	assert_int_equal(d.npairs, 2);
	assert_true(d.pair[0].a == 0 && d.pair[0].b == 1 && d.pair[0].by == DIFF_BY_UUID);
	assert_true(d.pair[1].a == 1 && d.pair[1].b == 0 && d.pair[1].by == DIFF_BY_NAME);
	diff_free(&d);
	/* The same process, in the same boot. */
	assert_int_equal(matched(&d, a + 2, 1, a + 2, 1, NULL, err), 0);
	assert_int_equal(d.pair[0].by, DIFF_BY_PROCESS);
	diff_free(&d);
	assert_int_equal(matched(&d, a + 2, 1, b + 2, 1, NULL, err), -ENOENT);
	assert_non_null(strstr(err, "tinyvm:12"));
	diff_free(&d);
	assert_int_equal(matched(&d, a + 2, 1, b + 2, 1, "tinyvm:12=tinyvm:12", err), 0);
	assert_int_equal(d.pair[0].by, DIFF_BY_MAP);
	diff_free(&d);
	assert_int_equal(matched(&d, a, 3, b, 3, "web01=db01", err), 0);
	assert_true(d.pair[0].a == 0 && d.pair[0].b == 0 && d.npairs == 1);
	diff_free(&d);
	assert_int_equal(matched(&d, a, 3, b, 3, "web01=nobody", err), -EINVAL);
	assert_non_null(strstr(err, "web01=nobody"));
	diff_free(&d);
	/* Where there is none nothing can be mapped; where there was none at all the hosts are
	 * left. */
	assert_int_equal(matched(&d, a, 1, NULL, 0, NULL, err), -ENOENT);
	assert_string_equal(err, "no VM is on both sides (A: web01; B: none)");
	diff_free(&d);
	assert_int_equal(matched(&d, NULL, 0, NULL, 0, NULL, err), 0);
	assert_int_equal(d.npairs, 0);
	assert_int_equal(diff_compare(&d), 0);
	diff_free(&d);
}

static void names_are_escaped(void **state)
{
	const struct guest a = {.name = "\x1b[31m\n,\"x", .vm_id = "1-1", .nvcpu = 1, .outs = 10};
	struct diff d = compared(&a, &a, 6);

	(void)state;
	for (int format = 0; format < 3; format++) {
		char *text = said(&d, format);

		assert_null(strchr(text, '\x1b'));
		free(text);
	}
	diff_free(&d);
}

/* ---- noise ---- */

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* Of how many of 400 pairs of series it is said that they differ; by so much they do. */
static unsigned found(unsigned n, double by)
{
	double sum[2][DIFF_BLOCKS], time[DIFF_BLOCKS], low, high;
	struct diff_noise *z = diff_noise_new(1000, n, n);
	uint64_t rng = 42;
	unsigned hits = 0;

	assert_non_null(z);
	for (unsigned i = 0; i < n; i++)
		time[i] = 1;
	for (unsigned k = 0; k < 400; k++) {
		const struct diff_sample a = {sum[0], time, n}, b = {sum[1], time, n};

		for (unsigned i = 0; i < n; i++) {
			sum[0][i] = 100 + 40 * (uniform(&rng) + uniform(&rng) - 1);
			sum[1][i] = by + 100 + 40 * (uniform(&rng) + uniform(&rng) - 1);
		}
		diff_noise_between(z, &a, &b, &low, &high);
		assert_true(low <= high);
		hits += low > 0 || high < 0;
	}
	diff_noise_free(z);
	return hits;
}

static void noise_is_told_from_change(void **state)
{
	(void)state;
	/* 1 % of 400 is 4: what is the same is seldom called different … */
	assert_true(found(5, 0) <= 12);
	assert_true(found(20, 0) <= 12);
	assert_true(found(100, 0) <= 12);
	/* … and what is different nearly always is. */
	assert_true(found(100, 20) >= 396);
	assert_true(found(20, 40) >= 396);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_per_vcpu_second),
		cmocka_unit_test(who_had_the_cpu),
		cmocka_unit_test(what_is_not_known_is_not_zero),
		cmocka_unit_test(few_intervals_tell_nothing_of_noise),
		cmocka_unit_test(every_run_says_the_same),
		cmocka_unit_test(many_intervals),
		cmocka_unit_test(vms_are_matched),
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(noise_is_told_from_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
