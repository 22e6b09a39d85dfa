// SPDX-License-Identifier: GPL-2.0-only
/* Counts of an interval in which events are missing say so, each kind for itself, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "field.h"
#include "model_fixture.h"

#define MSR 0x7c

/* An exit and a port write in the middle of the interval that begins at t. */
static void some_events(struct fixture *f, int64_t t)
{
	ev_exit(f, t + 500 * MS, 101, 0, MSR);
	ev(f, t + 500 * MS + 10, 101, EV_PIO, 0x3f8, DIR_WRITE);
	ev_entry(f, t + 500 * MS + 100, 101, 0);
}

static struct fixture started(void)
{
	struct fixture f = fixture_new(8, 64);

	fixture_vm(&f, "web01", 100, 2);
	commit_drop(&f, 1 * SEC);
	return f;
}

static void lose(struct fixture *f, int type, uint64_t n)
{
	struct loss_count c = {.type = type, .n = n};

	f->sink->loss_count(f->sink->ctx, &c);
}

static void window(struct fixture *f, int64_t from, int64_t to)
{
	struct loss l = {.cpu = 1, .from = from, .to = to};

	f->sink->loss(f->sink->ctx, &l);
}

static void unwatched(struct fixture *f, uint16_t cpu, int64_t from, int64_t to)
{
	struct loss l = {.cpu = cpu, .from = from, .to = to, .unwatched = true};

	f->sink->loss(f->sink->ctx, &l);
}

/* The states of an exit row's count and rate, which are always the same. */
static int row_state(const struct snapshot *s, enum kvm_kind kind, const char *name, bool total)
{
	const struct snap_exit *x = find_row(s, "web01", -1, kind, name);
	struct cell count, rate;

	assert_non_null(x);
	count = field_find(TABLE_EXIT, "count")->get(s, x, total);
	rate = field_find(TABLE_EXIT, "count_per_s")->get(s, x, total);
	assert_int_equal(count.v.state, rate.v.state);
	assert_int_equal(count.v.why, rate.v.why);
	assert_true(value_has(count.v));
	return count.v.state;
}

struct states {
	int rate, pct, exits, ports; /* EXIT/s, %EXIT, counts of exits and of ports */
};

static void check(const struct snapshot *s, struct states want)
{
	assert_int_equal(s->vms[0].ex.rate.state, want.rate);
	assert_int_equal(s->vcpus[0].ex.rate.state, want.rate);
	assert_int_equal(s->vcpus[1].ex.rate.state, want.rate);
	assert_int_equal(s->host.exits_rate.state, want.rate);
	assert_int_equal(s->vms[0].ex.pct.state, want.pct);
	assert_int_equal(s->vcpus[1].ex.pct.state, want.pct);
	assert_int_equal(s->host.exit_pct.state, want.pct);
	assert_int_equal(row_state(s, KIND_VMEXIT, "msr", false), want.exits);
	assert_int_equal(row_state(s, KIND_IOPORT, "0x3f8:POUT", false), want.ports);
	assert_int_equal(s->kinds[KIND_IOPORT].rate.state, want.ports);
	assert_int_equal(s->kinds[KIND_VMEXIT].rate.state, want.exits);
}

#define K VALUE_KNOWN
#define P VALUE_PARTIAL

static void each_kind_for_itself(void **state)
{
	static const struct {
		int type;
		struct states want;
	} cases[] = {
		{EV_EXIT, {P, P, P, K}}, {EV_ENTRY, {K, P, K, K}}, /* counted at their begin, but
								      their time is missing */
		{EV_PIO, {K, K, K, P}},	 {EV_MMIO, {K, K, K, K}},  {-1, {P, P, P, P}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = started();
		struct snapshot *s;

		some_events(&f, 1 * SEC);
		lose(&f, cases[i].type, 5);
		s = commit(&f, 2 * SEC);
		check(s, cases[i].want);
		assert_int_equal(s->host.lost, 5);
		snapshot_unref(s);
		some_events(&f, 2 * SEC);
		s = commit(&f, 3 * SEC); /* the next one is whole */
		check(s, (struct states){K, K, K, K});
		assert_int_equal(row_state(s, KIND_VMEXIT, "msr", true), cases[i].want.exits);
		assert_int_equal(row_state(s, KIND_IOPORT, "0x3f8:POUT", true),
				 cases[i].want.ports);
		snapshot_unref(s);
		model_reset(f.m);
		some_events(&f, 3 * SEC);
		s = commit(&f, 4 * SEC);
		assert_int_equal(row_state(s, KIND_VMEXIT, "msr", true), K);
		assert_int_equal(row_state(s, KIND_IOPORT, "0x3f8:POUT", true), K);
		snapshot_unref(s);
		fixture_free(&f);
	}
}

static void no_loss_is_no_mark(void **state)
{
	struct fixture f = started();
	struct snapshot *s;

	(void)state;
	some_events(&f, 1 * SEC);
	lose(&f, EV_EXIT, 0);
	s = commit(&f, 2 * SEC);
	check(s, (struct states){K, K, K, K});
	snapshot_unref(s);
	fixture_free(&f);
}

/* The counters are read after the end of the interval: some of what they tell may be the next's. */
static void a_loss_over_the_border_marks_both(void **state)
{
	struct fixture f = started();
	struct snapshot *s;

	(void)state;
	some_events(&f, 1 * SEC);
	lose(&f, EV_PIO, 9);
	s = commit(&f, 2 * SEC);
	check(s, (struct states){K, K, K, P});
	snapshot_unref(s);
	some_events(&f, 2 * SEC);
	window(&f, 2 * SEC - 5 * MS, 2 * SEC + 3 * MS);
	s = commit(&f, 3 * SEC);
	assert_int_equal(row_state(s, KIND_IOPORT, "0x3f8:POUT", false), P);
	assert_int_equal(row_state(s, KIND_VMEXIT, "msr", false), K);
	snapshot_unref(s);
	some_events(&f, 3 * SEC);
	s = commit(&f, 4 * SEC);
	check(s, (struct states){K, K, K, K});
	snapshot_unref(s);
	/* A LOST record that comes long after: what was lost was counted long ago. */
	some_events(&f, 4 * SEC);
	window(&f, 3 * SEC, 4 * SEC + 900 * MS);
	s = commit(&f, 5 * SEC);
	check(s, (struct states){K, K, K, K});
	snapshot_unref(s);
	fixture_free(&f);
}

static const struct snap_finding *find_rule(const struct snapshot *s, const char *rule)
{
	for (size_t i = 0; i < s->nfindings; i++)
		if (!strcmp(s->findings[i].rule, rule))
			return &s->findings[i];
	return NULL;
}

static void a_cpu_that_nobody_watched(void **state)
{
	struct fixture f = started();
	const struct snap_finding *x;
	struct snapshot *s;

	(void)state;
	some_events(&f, 1 * SEC);
	unwatched(&f, 1, 1 * SEC - 300 * MS, 2 * SEC);
	s = commit(&f, 2 * SEC);
	check(s, (struct states){P, P, P, P});
	assert_int_equal(s->vms[0].ex.rate.why, WHY_UNWATCHED);
	assert_int_equal(s->host.lost, 0);
	x = find_rule(s, "unwatched");
	assert_non_null(x);
	assert_string_equal(x->text,
			    "CPU 1 was not watched for up to 1.3 s: events there are missing");
	assert_int_equal(x->vm, -1);
	assert_true(x->next[0]);
	snapshot_unref(s);
	some_events(&f, 2 * SEC);
	s = commit(&f, 3 * SEC);
	check(s, (struct states){K, K, K, K});
	assert_null(find_rule(s, "unwatched"));
	assert_int_equal(row_state(s, KIND_VMEXIT, "msr", true), P);
	snapshot_unref(s);
	fixture_free(&f);
}

/* A resume opens all rings anew, and so a little after the end of the interval. */
static void many_cpus_and_a_gap_into_the_next_interval(void **state)
{
	struct fixture f = started();
	struct snapshot *s;

	(void)state;
	some_events(&f, 1 * SEC);
	for (uint16_t cpu = 1; cpu < 64; cpu++)
		unwatched(&f, cpu, 2 * SEC - cpu * MS, 2 * SEC + 6 * MS);
	s = commit(&f, 2 * SEC);
	check(s, (struct states){P, P, P, P});
	assert_string_equal(find_rule(s, "unwatched")->text,
			    "CPU 63 and 62 more were not watched for up to 0.1 s: events there are "
			    "missing");
	snapshot_unref(s);
	some_events(&f, 2 * SEC);
	s = commit(&f, 3 * SEC); /* its first 6 ms are missing */
	check(s, (struct states){P, P, P, P});
	assert_non_null(find_rule(s, "unwatched"));
	snapshot_unref(s);
	some_events(&f, 3 * SEC);
	unwatched(&f, 7, 3 * SEC, 4 * SEC); /* another one: by itself */
	s = commit(&f, 4 * SEC);
	assert_string_equal(find_rule(s, "unwatched")->text,
			    "CPU 7 was not watched for up to 1.0 s: events there are missing");
	snapshot_unref(s);
	s = commit(&f, 5 * SEC);
	assert_null(find_rule(s, "unwatched"));
	snapshot_unref(s);
	fixture_free(&f);
}

/* An old kernel: that the ring was full is all that is known. */
static void a_full_ring_without_counters(void **state)
{
	struct fixture f = started();
	struct loss l = {.from = 1 * SEC, .to = 2 * SEC, .uncounted = true};
	struct snapshot *s;

	(void)state;
	some_events(&f, 1 * SEC);
	f.sink->loss(f.sink->ctx, &l);
	s = commit(&f, 2 * SEC);
	check(s, (struct states){P, P, P, P});
	assert_null(find_rule(s, "unwatched"));
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_for_itself),
		cmocka_unit_test(no_loss_is_no_mark),
		cmocka_unit_test(a_loss_over_the_border_marks_both),
		cmocka_unit_test(a_cpu_that_nobody_watched),
		cmocka_unit_test(many_cpus_and_a_gap_into_the_next_interval),
		cmocka_unit_test(a_full_ring_without_counters),
	};

	return cmocka_run_group_tests_name("exits_missing", tests, NULL, NULL);
}
