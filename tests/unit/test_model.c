// SPDX-License-Identifier: GPL-2.0-only
/* Pairing, tables and rows of the model: every rule of metrics.md, "Exits and their times". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model_fixture.h"

#define NPF 0x400
#define IO 0x7b
#define MSR 0x7c
#define HLT 0x78

static void near(double a, double b)
{
	if (a < b - 1e-6 || a > b + 1e-6)
		fail_msg("%g is not %g", a, b);
}

static void the_first_commit_is_a_baseline(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	s = commit(&f, 1 * SEC);
	assert_int_equal(s->dt, 0);
	assert_int_equal(s->nvms, 1);
	assert_int_equal(s->nvcpus, 2);
	assert_int_equal(s->nthreads, 1);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PENDING);
	assert_string_equal(s->host.node, "node17");
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->dt, 2 * SEC);
	snapshot_unref(s);
	fixture_free(&f);
}

static void an_exit_ends_with_its_entry(void **state)
{
	struct fixture f = fixture_new(8, 64);
	const struct snap_exit *row;
	const struct snap_vm *vm;
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	commit_drop(&f, 1 * SEC);
	for (int i = 0; i < 10; i++) {
		ev_exit(&f, 1 * SEC + (i + 1) * 10 * MS, 101, 0, MSR);
		ev_entry(&f, 1 * SEC + (i + 1) * 10 * MS + (i + 1) * 100 * US, 101, 0);
	}
	s = commit(&f, 2 * SEC);
	row = find_row(s, "web01", -1, KIND_VMEXIT, "msr");
	assert_non_null(row);
	assert_int_equal(row->now.count, 10);
	assert_int_equal(row->now.timed, 10);
	assert_int_equal(row->now.time_ns, 5500 * US);
	assert_int_equal(row->now.min_ns, 100 * US);
	assert_int_equal(row->now.max_ns, 1000 * US);
	near(row->now.avg_ns, 550e3);
	/* Sample deviation 302.765 us of mean 550 us over sqrt(10). */
	assert_true(row->now.stderr_pct > 17.40 && row->now.stderr_pct < 17.41);
	near(row->now.rate.v, 10);
	near(row->now.count_pct.v, 100);
	vm = find_vm(s, "web01");
	near(vm->ex.pct.v, 0.275); /* 5.5 ms of 1 s on 2 vCPUs */
	near(vm->ex.rate.v, 10);
	assert_string_equal(vm->ex.top, "msr");
	near(s->vcpus[0].ex.pct.v, 0.55);
	near(s->vcpus[1].ex.pct.v, 0);
	near(s->host.exits_rate.v, 10);
	assert_int_equal(s->kinds[KIND_VMEXIT].count, 10);
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_commit_is_a_baseline),
		cmocka_unit_test(an_exit_ends_with_its_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
