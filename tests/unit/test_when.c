// SPDX-License-Identifier: GPL-2.0-only
/* --when and the selection of VMs and vCPUs (src/when.c, src/filter.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "batch_table.h"
#include "filter.h"
#include "made.h"
#include "when.h"

static struct when *parsed(const char *text, const char *table)
{
	struct when *w = NULL;
	char err[400];

	if (when_parse(text, batch_table_find(table), &w, err, sizeof(err)))
		fail_msg("%s: %s", text, err);
	return w;
}

/* Whether the expression holds for VM i of the made snapshot. */
static bool holds(const char *text, int i)
{
	struct batch_row r = {.table = TABLE_VM};
	struct when *w = parsed(text, "vm");
	struct made m;
	bool now;

	made_fill(&m);
	r.row = r.vm = &m.vm[i];
	when_begin(w);
	now = when_row(w, &m.s, &r, false);
	when_end(w);
	assert_int_equal(when_matched(w), now);
	when_free(w);
	return now;
}

static void compares(void **state)
{
	(void)state;
	assert_true(holds("steal_max_pct>20", 1));
	assert_false(holds("steal_max_pct>20", 0));
	assert_true(holds("steal_max_pct >= 60.2", 1));
	assert_false(holds("steal_max_pct > 60.2", 1));
	assert_true(holds("pid = 77", 1));
	assert_true(holds("pid == 77", 1));
	assert_true(holds("pid != 78", 1));
	assert_true(holds("p99_ns > 48us and p99_ns < 1ms", 0));
	assert_true(holds("exits_per_s>1.2k", 0));
	assert_true(holds("MAX@v > 20%", 1));
	assert_true(holds("%CPU<=371.24", 0));
	assert_true(holds("name = web01", 0));
	assert_true(holds("name != \"web 01\"", 0));
	assert_true(holds("name = 'web01' and name != 'web 01'", 0));
	assert_true(holds("why = \"steal 31%\"", 0));
	assert_true(holds("uuid = \"\"", 1));
}

static void joins(void **state)
{
	(void)state;
	assert_true(holds("pid=1 or pid=77 and cpu>99", 1));
	assert_false(holds("(pid=77 or pid=4711) and cpu>200", 1));
	assert_true(holds("not pid=1", 1));
	assert_true(holds("not (pid=1 or pid=2) AND not pid=3", 1));
	assert_true(holds("((((pid=77))))", 1));
}

static void unknown_fulfils_nothing(void **state)
{
	(void)state;
	/* n/a on this made host; pending */
	assert_false(holds("exit_pct>=0", 0));
	assert_false(holds("not exit_pct>=0", 0));
	assert_false(holds("exit_pct!=5", 0));
	assert_false(holds("sys_pct<5", 0));
	assert_true(holds("exit_pct>5 or pid=4711", 0));
	assert_false(holds("exit_pct>5 and pid=4711", 0));
	assert_true(holds("guest_pct>1", 0)); /* partial is known */
}

static void holds_for_some_intervals(void **state)
{
	struct when *w = parsed("steal_max_pct>50 for 3", "vm");
	static const double steal[] = {60, 60, 60, 60, 10, 60, 60, 60};
	static const bool want[] = {false, false, true, true, false, false, false, true};
	struct batch_row r = {.table = TABLE_VM};
	struct made m;

	(void)state;
	made_fill(&m);
	for (size_t i = 0; i < sizeof(want); i++) {
		when_begin(w);
		for (int k = 0; k < 2; k++) {
			m.vm[k].steal_max = value_known(k ? steal[i] : 55);
			r.row = r.vm = &m.vm[k];
			assert_int_equal(when_row(w, &m.s, &r, false), k ? want[i] : i >= 2);
		}
		when_end(w);
	}
	/* It was not looked at in one interval: begins anew. */
	when_begin(w);
	when_end(w);
	when_begin(w);
	assert_false(when_row(w, &m.s, &r, false));
	when_end(w);
	when_free(w);
}

/* Many rows that come and go are told apart and do not pile up. */
static void counts_many_rows(void **state)
{
	struct when *w = parsed("steal_max_pct>50 for 2", "vm");
	struct batch_row r = {.table = TABLE_VM};
	struct made m;

	(void)state;
	made_fill(&m);
	r.row = r.vm = &m.vm[1];
	for (uint32_t i = 0; i < 200; i++) {
		when_begin(w);
		for (uint32_t id = i * 50; id < i * 50 + 100; id++) {
			m.vm[1].id = id;
			assert_int_equal(when_row(w, &m.s, &r, false), i > 0 && id < i * 50 + 50);
		}
		when_end(w);
	}
	when_free(w);
}

static void refuses(void **state)
{
	static const char *const bad[] = {"",
					  " ",
					  "and",
					  "steal",
					  "steal>",
					  "steal>x",
					  "steal>1..2",
					  "steal>1 and",
					  "steal>1 or or steal>2",
					  "(steal>1",
					  "steal>1)",
					  "steal>1 for",
					  "steal>1 for 0",
					  "steal>1 for 3 x",
					  "steal>1 for 99999999999",
					  "steal=>1",
					  "steal>5parsecs",
					  "nope>1",
					  "name<x",
					  "name=",
					  "name=\"x",
					  "name='x\"",
					  "not",
					  "steal>1 steal>2"};
	char deep[400], err[400];
	struct when *w = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (when_parse(bad[i], batch_table_find("vm"), &w, err, sizeof(err)) != -22)
			fail_msg("'%s' was taken", bad[i]);
		assert_memory_equal(err, "--when: ", 8);
		assert_null(strchr(err, '\n'));
	}
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(when_parse(deep, batch_table_find("vm"), &w, err, sizeof(err)), -22);
	assert_non_null(strstr(err, "nested"));
	assert_null(w);
}

static struct filter *selecting(const char *vm, const char *pids, const char *vcpus)
{
	struct filter *f = filter_new();
	char err[200];

	if (vm)
		assert_int_equal(filter_add_vm(f, vm, err, sizeof(err)), 0);
	if (pids)
		assert_int_equal(filter_add_pids(f, pids, err, sizeof(err)), 0);
	if (vcpus)
		assert_int_equal(filter_add_vcpus(f, vcpus, err, sizeof(err)), 0);
	return f;
}

static void expect_vm(const char *vm, const char *pids, bool first, bool second)
{
	struct filter *f = selecting(vm, pids, NULL);
	struct made m;

	made_fill(&m);
	assert_int_equal(filter_vm(f, &m.vm[0]), first);
	assert_int_equal(filter_vm(f, &m.vm[1]), second);
	filter_free(f);
}

static void selects_vms(void **state)
{
	(void)state;
	expect_vm(NULL, NULL, true, true);
	expect_vm("web01", NULL, true, false);
	expect_vm("web", NULL, false, false); /* a name, not a part of one */
	expect_vm("/^web/", NULL, true, false);
	expect_vm("/e/", NULL, true, true);
	expect_vm("6f1c2c1e-0000-4000-8000-000000000001", NULL, true, false);
	expect_vm("77-12345", NULL, false, true);
	expect_vm(NULL, "77", false, true);
	expect_vm(NULL, "7", false, false); /* a prefix of a pid is another pid */
	expect_vm(NULL, "1,4711", true, false);
	expect_vm("web01", "77", false, false);
	expect_vm("/", NULL, false, false); /* too short for an expression: a name */
}

static void selects_vcpus(void **state)
{
	struct snap_vcpu v = {.index = 1, .kvm_id = 4};
	struct filter *f;

	(void)state;
	f = selecting(NULL, NULL, "0,1");
	assert_true(filter_vcpu(f, &v));
	filter_free(f);
	f = selecting(NULL, NULL, "4");
	assert_false(filter_vcpu(f, &v));
	filter_free(f);
	f = selecting(NULL, NULL, "id:4");
	assert_true(filter_vcpu(f, &v) && filter_has_vcpus(f) && !filter_has_vms(f));
	filter_free(f);
	filter_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares),
		cmocka_unit_test(joins),
		cmocka_unit_test(unknown_fulfils_nothing),
		cmocka_unit_test(holds_for_some_intervals),
		cmocka_unit_test(counts_many_rows),
		cmocka_unit_test(refuses),
		cmocka_unit_test(selects_vms),
		cmocka_unit_test(selects_vcpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
