// SPDX-License-Identifier: GPL-2.0-only
/* Intervals added up to the tables of a report, by hand (src/report_recording.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "filter.h"
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */
#include "report_recording.h"
#include "store_file.h"
#include "store_span.h"

#define MSR_WRITE 32

static const struct recorded_row *find(const struct report_recording *r, unsigned kind,
				       uint64_t key)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->row[i].kind == kind && r->row[i].key == key && !r->row[i].other)
			return &r->row[i];
	return NULL;
}

/* What the snapshots have of one VM's exits of this reason. */
static struct tally sum_of(struct snapshot *const *s, size_t n, const char *vm)
{
	struct tally sum = {.min_ns = UINT64_MAX};

	for (size_t i = 0; i < n; i++) {
		const struct snap_exits *ex = &s[i]->host.ex;

		for (size_t v = 0; v < s[i]->nvms; v++)
			if (vm && strcmp(s[i]->vms[v].name, vm) == 0)
				ex = &s[i]->vms[v].ex;
		for (uint32_t k = ex->first; k < ex->first + ex->n; k++) {
			const struct snap_exit *x = &s[i]->exits[k];

			if (x->kind != KIND_VMEXIT || x->key != MSR_WRITE)
				continue;
			sum.count += x->now.count;
			sum.timed += x->now.timed;
			sum.time_ns += x->now.time_ns;
			if (x->now.max_ns > sum.max_ns)
				sum.max_ns = x->now.max_ns;
			if (x->now.timed && x->now.min_ns < sum.min_ns)
				sum.min_ns = x->now.min_ns;
		}
	}
	return sum;
}

static void assert_same(const struct recorded_row *row, const struct tally *want)
{
	assert_non_null(row);
	assert_true(want->count > 0);
	assert_int_equal(row->sum.count, want->count);
	assert_int_equal(row->sum.timed, want->timed);
	assert_int_equal(row->sum.time_ns, want->time_ns);
	assert_int_equal(row->sum.min_ns, want->min_ns);
	assert_int_equal(row->sum.max_ns, want->max_ns);
	assert_string_equal(row->name, "MSR_WRITE");
}

static void write_intervals(const struct file *f, struct snapshot **s, unsigned n)
{
	struct store *st = create(f);

	for (unsigned i = 0; i < n; i++) {
		s[i] = made_snapshot(&(struct made){.nvms = 4, .step = i});
		assert_non_null(s[i]);
		/* Six seconds after the third nobody recorded; two were skipped before the fifth.
		 */
		s[i]->wall.tv_sec = 1790000000 + (time_t)i + (i > 2 ? 6 : 0) + (i > 3 ? 2 : 0);
		assert_int_equal(store_write(st, s[i], i == 4 ? 2 : 0), 0);
	}
	store_close(st);
}

static struct report_recording read_back(const struct file *f, const struct filter *filter)
{
	struct report_recording r = {.filter = filter, .kinds = KIND_BIT(KIND_VMEXIT)};
	struct store_span span;
	char err[300] = "";

	assert_int_equal(store_span_split(f->path, &span), 0);
	assert_true(store_span_is_recording(&span));
	if (store_span_open(&span, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(report_recording_read(&r, &span), 0);
	store_span_close(&span);
	return r;
}

static void test_sums(void **state)
{
	struct filter *only = filter_new();
	struct snapshot *s[6];
	struct report_recording r;
	struct tally want;
	char err[100];

	write_intervals(*state, s, 6);
	r = read_back(*state, NULL);
	want = sum_of(s, 6, NULL);
	assert_same(find(&r, KIND_VMEXIT, MSR_WRITE), &want);
	assert_null(find(&r, KIND_MSR, 0x6e0)); /* of another kind */
	assert_int_equal(r.intervals, 6);
	assert_int_equal(r.length, 6 * s[0]->dt);
	assert_int_equal(r.skipped, 2);
	assert_int_equal(r.ngaps, 1);
	assert_int_equal(r.gap, INT64_C(7000000000) - s[0]->dt);
	report_recording_free(&r);

	assert_int_equal(filter_add_vm(only, "web01", err, sizeof(err)), 0);
	r = read_back(*state, only);
	want = sum_of(s, 6, "web01");
	assert_same(find(&r, KIND_VMEXIT, MSR_WRITE), &want);
	report_recording_free(&r);
	filter_free(only);
	for (int i = 0; i < 6; i++)
		snapshot_unref(s[i]);
}

static void test_vcpus(void **state)
{
	struct filter *only = filter_new();
	struct snapshot *s[2];
	struct report_recording r;
	char err[100];

	write_intervals(*state, s, 2);
	assert_int_equal(filter_add_vcpus(only, "77", err, sizeof(err)), 0);
	r = read_back(*state, only);
	assert_false(r.matched);
	assert_int_equal(r.n, 0);
	report_recording_free(&r);
	filter_free(only);

	only = filter_new();
	assert_int_equal(filter_add_vcpus(only, "1", err, sizeof(err)), 0);
	r = read_back(*state, only);
	assert_true(r.matched);
	report_recording_free(&r);
	filter_free(only);
	for (int i = 0; i < 2; i++)
		snapshot_unref(s[i]);
}

/* An interval by hand with one row, and a histogram of it or none. */
static struct snapshot *one(uint64_t timed, uint64_t ns, unsigned bucket, bool heat)
{
	struct snapshot *s = snapshot_new();
	struct snap_exit *x = snapshot_alloc(s, 1, sizeof(*x));
	uint32_t *h = snapshot_alloc(s, HEAT_BUCKETS, sizeof(*h));

	s->dt = 1000000000;
	s->open_kinds = KIND_BIT(KIND_VMEXIT);
	s->host.ex = (struct snap_exits){.first = 0, .n = 1};
	h[bucket] = (uint32_t)timed;
	*x = (struct snap_exit){.vm = SNAP_NO_VM,
				.vcpu = -1,
				.name = "X",
				.has_time = true,
				.heat = heat ? h : NULL};
	x->now = (struct tally){.count = timed,
				.timed = timed,
				.time_ns = timed * ns,
				.min_ns = ns,
				.max_ns = ns,
				.avg_ns = (double)ns,
				.p50_ns = ns,
				.p99_ns = ns,
				.p999_ns = ns,
				.pctl = heat ? PCTL_ALL : PCTL_NONE};
	s->exits = x;
	s->nexits = 1;
	return s;
}

/* What was given up to stay cheap is told from what nobody asked for. */
static void test_costly(void **state)
{
	struct snap_source src = {.name = "overhead",
				  .state = SOURCE_OK,
				  .why = "within 2%, without entry/exit",
				  .mend = ""};
	struct report_recording r = {.kinds = KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_MSR)};
	struct snapshot *s = one(300, 1000, 12, true);

	(void)state;
	s->sources = &src;
	s->nsources = 1;
	assert_int_equal(report_recording_add(&r, s), 0);
	assert_int_equal(r.costly, 0);
	assert_null(r.limit);
	src.state = SOURCE_PARTIAL;
	src.why = "mmio, entry/exit not collected: it would cost more than 2%";
	s->open_kinds = 0;
	assert_int_equal(report_recording_add(&r, s), 0);
	assert_int_equal(r.costly, KIND_BIT(KIND_VMEXIT)); /* nobody asks for mmio */
	assert_string_equal(r.limit, src.why);
	src.why = "most samples not collected: it would cost more than 2%";
	assert_int_equal(report_recording_add(&r, s), 0);
	assert_int_equal(r.costly, KIND_BIT(KIND_VMEXIT));
	assert_int_equal(r.known[KIND_VMEXIT], s->dt);
	report_recording_free(&r);
	snapshot_unref(s);
}

static void test_spread(void **state)
{
	struct report_recording r = {.kinds = KIND_BIT(KIND_VMEXIT)};
	struct snapshot *a = one(300, 1000, 12, true), *b = one(100, 64000, 24, true);

	(void)state;
	assert_int_equal(report_recording_add(&r, a), 0);
	assert_int_equal(report_recording_add(&r, b), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.row[0].sum.timed, 400);
	assert_int_equal(r.row[0].heat[12], 300);
	assert_int_equal(r.row[0].heat[24], 100);
	assert_false(r.row[0].no_heat);
	assert_int_equal(r.known[KIND_VMEXIT], 2000000000);
	assert_int_equal(r.known[KIND_MSR], 0);
	/* m2 = 300 (1000 - 16750)^2 + 100 (64000 - 16750)^2 = 2.9767e11; over 399, 400: 1365.73 */
	assert_true(r.row[0].sum.stderr_pct > 8.15 && r.row[0].sum.stderr_pct < 8.16);
	report_recording_free(&r);
	snapshot_unref(a);
	snapshot_unref(b);
}

static void test_no_histogram(void **state)
{
	struct report_recording r = {.kinds = KIND_BIT(KIND_VMEXIT)};
	struct snapshot *a = one(300, 1000, 12, true), *b = one(100, 64000, 24, false);

	(void)state;
	assert_int_equal(report_recording_add(&r, a), 0);
	assert_int_equal(report_recording_add(&r, b), 0);
	assert_true(r.row[0].no_heat);
	assert_int_equal(r.row[0].sum.pctl, PCTL_NONE);
	report_recording_free(&r);
	snapshot_unref(a);
	snapshot_unref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_vcpus, make_dir, drop_dir),
		cmocka_unit_test(test_costly),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_no_histogram),
	};

	return cmocka_run_group_tests_name("report_recording", tests, NULL, NULL);
}
