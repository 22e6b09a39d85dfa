// SPDX-License-Identifier: GPL-2.0-only
/* The field table (src/field*.c): its own order, looking up, getters, the one comparator. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "field.h"

static bool is_id(const char *id)
{
	for (const char *p = id; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_')
			return false;
	return *id != '\0';
}

static void check_field(enum field_table t, size_t i)
{
	const struct field_list *l = field_list(t);
	const struct field *f = &l->field[i];

	assert_true(is_id(f->id));
	assert_true(f->title[0] && strlen(f->title) <= 12);
	assert_null(strchr(f->help, '\n'));
	assert_true(strlen(f->help) >= 5);
	assert_true(f->help[strlen(f->help) - 1] != '.'); /* lists add their own ends */
	assert_non_null(f->get);
	assert_true(f->width >= 1);
	assert_true(f->alarm == 0 || f->alarm >= f->warn);
	assert_true(f->unit == UNIT_TEXT || !(f->flags & FIELD_UNTRUSTED));
	for (size_t j = 0; j < i; j++) {
		assert_string_not_equal(l->field[j].id, f->id);
		/* MAX and max would be one column to whoever asks by title */
		assert_int_not_equal(strcasecmp(l->field[j].title, f->title), 0);
	}
	assert_ptr_equal(field_find(t, f->id), f);
	assert_ptr_equal(field_find(t, f->title), f);
}

static void tables_are_in_order(void **state)
{
	(void)state;
	for (int t = 0; t < TABLE_NR; t++) {
		assert_true(field_list(t)->n > 3);
		for (size_t i = 0; i < field_list(t)->n; i++)
			check_field(t, i);
	}
}

static void getters_cope_with_an_empty_row(void **state)
{
	static const max_align_t zero[256];
	struct snapshot s = {0};

	(void)state;
	for (int t = 0; t < TABLE_NR; t++) {
		const struct field_list *l = field_list(t);

		assert_true(l->row_size <= sizeof(zero));
		for (size_t i = 0; i < l->n; i++) {
			struct cell c = l->field[i].get(&s, zero, i % 2);

			if (l->field[i].unit != UNIT_TEXT)
				assert_true(c.v.state <= VALUE_NA && isfinite(c.v.v));
		}
	}
}

static void names_are_found_with_and_without_units(void **state)
{
	(void)state;
	assert_string_equal(field_find(TABLE_VM, "STEAL")->id, "steal_pct");
	assert_string_equal(field_find(TABLE_VM, "%steal")->id, "steal_pct");
	assert_string_equal(field_find(TABLE_VM, "max@v")->id, "steal_max_pct");
	assert_string_equal(field_find(TABLE_VM, "exits")->id, "exits_per_s");
	assert_string_equal(field_find(TABLE_VM, "cpu")->id, "cpu_pct");
	assert_string_equal(field_find(TABLE_VM, "vcpu")->id, "nvcpu");
	/* where there is a column of just that title, it wins over one that has it as %CPU */
	assert_string_equal(field_find(TABLE_VCPU, "cpu")->id, "cpu");
	assert_null(field_find(TABLE_VM, "nonsense"));
	assert_null(field_find(TABLE_VM, ""));
	assert_null(field_find(TABLE_VM, "s"));
}

static int order(const char *a, const char *b, bool descending)
{
	struct snap_vm x = {.name = a}, y = {.name = b};
	struct snapshot s = {0};

	return field_compare(field_find(TABLE_VM, "name"), &s, &x, &y, false, descending);
}

static void text_sorts_as_people_expect(void **state)
{
	(void)state;
	assert_true(order("vm2", "vm10", false) < 0);
	assert_true(order("vm10", "vm2", false) > 0);
	assert_true(order("VM2", "vm10", false) < 0);
	assert_true(order("vm02", "vm2", false) != 0); /* equal in value, still one order */
	assert_true(order("vm", "vm1", false) < 0);
	assert_true(order("a9b2", "a9b11", false) < 0);
	assert_true(order("99999999999999999999998", "99999999999999999999999", false) < 0);
	assert_int_equal(order("same", "same", false), 0);
	assert_true(order("\xff", "a", false) > 0);
}

static void unknown_sorts_last_either_way(void **state)
{
	const struct field *f = field_find(TABLE_VM, "steal_pct");
	struct snap_vm known = {.use.steal = value_known(0)};
	struct snap_vm na = {.use.steal = value_na(WHY_NO_SOURCE)}, pending = {0};
	struct snap_vm nan = {.use.steal = value_known(NAN)};
	struct snapshot s = {0};

	(void)state;
	assert_true(field_compare(f, &s, &known, &na, false, false) < 0);
	assert_true(-field_compare(f, &s, &known, &na, false, true) < 0);
	assert_true(-field_compare(f, &s, &nan, &known, false, true) > 0);
	assert_int_equal(field_compare(f, &s, &na, &pending, false, true), 0);
	assert_true(order("", "a", false) > 0);
	assert_true(-order("", "a", true) > 0);
	assert_true(-order("a", "b", true) > 0);
}

static void exits_give_interval_and_totals(void **state)
{
	struct snap_exit x = {
		.kind = KIND_IOPORT, .vcpu = -1, .has_time = true, .name = "0x3f8:POUT"};
	const struct field *count = field_find(TABLE_EXIT, "count");
	const struct field *avg = field_find(TABLE_EXIT, "avg_ns");
	struct snapshot s = {0};

	(void)state;
	x.now = (struct tally){.count = 7};
	x.total = (struct tally){.count = 90, .timed = 3, .avg_ns = 1500};
	assert_float_equal(count->get(&s, &x, false).v.v, 7, 0);
	assert_float_equal(count->get(&s, &x, true).v.v, 90, 0);
	/* no pair ended: there is no mean, rather than a mean of 0 */
	assert_int_equal(avg->get(&s, &x, false).v.state, VALUE_PENDING);
	assert_float_equal(avg->get(&s, &x, true).v.v, 1500, 0);
	x.has_time = false;
	assert_int_equal(avg->get(&s, &x, true).v.state, VALUE_NA);
	assert_int_equal(field_find(TABLE_EXIT, "vcpu")->get(&s, &x, false).v.state, VALUE_PENDING);
	assert_string_equal(field_find(TABLE_EXIT, "kind")->get(&s, &x, false).text, "ioport");
}

static void own_quota_is_marked(void **state)
{
	struct snap_vm vm = {.use = {.steal = value_known(60), .own_quota = true},
			     .quota_us = 40000,
			     .period_us = 100000};
	struct snapshot s = {0};

	(void)state;
	assert_int_equal(field_find(TABLE_VM, "steal_pct")->get(&s, &vm, false).mark, 'q');
	assert_float_equal(field_find(TABLE_VM, "quota_pct")->get(&s, &vm, false).v.v, 40, 1e-9);
	vm.use.own_quota = false;
	vm.quota_us = 0;
	assert_int_equal(field_find(TABLE_VM, "steal_pct")->get(&s, &vm, false).mark, 0);
	assert_int_equal(field_find(TABLE_VM, "quota_pct")->get(&s, &vm, false).v.state,
			 VALUE_PENDING);
}

static void none_found_is_not_none_looked_for(void **state)
{
	static const char *const ids[] = {"nvm", "nvcpu"};
	struct snap_source off = {.name = "vms", .state = SOURCE_OFF};
	struct snapshot s = {.sources = &off};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct field *f = field_find(TABLE_HOST, ids[i]);

		s.nsources = 0;
		assert_int_equal(f->get(&s, &s.host, false).v.state, VALUE_KNOWN);
		s.nsources = 1;
		assert_int_equal(f->get(&s, &s.host, false).v.state, VALUE_NA);
	}
}

static void rows_are_those_of_the_table(void **state)
{
	struct snap_vm vms[2] = {{.name = "a"}, {.name = "b"}};
	struct snapshot s = {.vms = vms, .nvms = 2};
	size_t n;

	(void)state;
	assert_ptr_equal(field_rows(&s, TABLE_VM, &n), vms);
	assert_int_equal(n, 2);
	assert_ptr_equal(field_rows(&s, TABLE_HOST, &n), &s.host);
	assert_int_equal(n, 1);
	assert_null(field_rows(&s, TABLE_TASK, &n));
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_in_order),
		cmocka_unit_test(getters_cope_with_an_empty_row),
		cmocka_unit_test(names_are_found_with_and_without_units),
		cmocka_unit_test(text_sorts_as_people_expect),
		cmocka_unit_test(unknown_sorts_last_either_way),
		cmocka_unit_test(exits_give_interval_and_totals),
		cmocka_unit_test(own_quota_is_marked),
		cmocka_unit_test(none_found_is_not_none_looked_for),
		cmocka_unit_test(rows_are_those_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
