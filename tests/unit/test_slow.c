// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow exits on their way out: the limit as it is typed, key and pane, batch formats, and
 * intervals that become longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "format.h"
#include "keymap.h"
#include "options.h"
#include "store_code.h"
#include "store_merge.h"
#include "text.h"
#include "ui_fixture.h"
#include "written.h"
/* The helpers are part of each test program that needs them. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */
#include "ui_fixture.c" /* NOLINT(bugprone-suspicious-include) */

/* ---- the limit ---- */

static void times_as_typed(void **state)
{
	static const char *const bad[] = {"",	   "us",   "500",   "500 us", "-1us",	 "+1us",
					  "0.9us", "61s",  "1e3us", "0x10us", "1.2.3us", "nanus",
					  ".us",   "1uss", "infs",  " 1us",   "1US"};
	uint64_t ns = 7;

	(void)state;
	assert_true(text_parse_ns("500us", 1000, 60000000000, &ns));
	assert_int_equal(ns, 500000);
	assert_true(text_parse_ns("1.5ms", 1000, 60000000000, &ns));
	assert_int_equal(ns, 1500000);
	assert_true(text_parse_ns("1000ns", 1000, 60000000000, &ns));
	assert_int_equal(ns, 1000);
	assert_true(text_parse_ns("60s", 1000, 60000000000, &ns));
	assert_int_equal(ns, 60000000000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (text_parse_ns(bad[i], 1000, 60000000000, &ns))
			fail_msg("'%s' is taken for a time", bad[i]);
	assert_int_equal(ns, 60000000000);
}

static void the_option(void **state)
{
	char *good[] = {(char *)"kvmtop", (char *)"--slow", (char *)"2ms", NULL};
	char *bad[] = {(char *)"kvmtop", (char *)"--slow", (char *)"2", NULL};
	struct options o;
	char err[300];

	(void)state;
	assert_int_equal(options_parse(3, good, &o, err, sizeof(err)), 0);
	assert_int_equal(o.slow_ns, 2000000);
	options_free(&o);
	assert_int_equal(options_parse(3, bad, &o, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "as in 500us or 2ms"));
	options_free(&o);
}

/* ---- the screen ---- */

static void x_asks_and_ends(void **state)
{
	struct fixture *f = *state;
	struct demand d;

	ui_demand(f->ui, &d);
	assert_int_equal(d.slow_ns, 0);
	type(f, "x");
	assert_true(on_screen(f, "exits longer than"));
	press(f, UK_ENTER); /* what is proposed */
	ui_demand(f->ui, &d);
	assert_int_equal(d.slow_ns, SLOW_DEFAULT_NS);
	assert_true(d.slow_past);
	f->made.slow = true;
	next_snapshot(f);
	type(f, "j"); /* no message any more; instance-0000a1 is selected, and pane 0 on screen */
	assert_true(on_screen(f, "vp_notify"));
	assert_true(on_screen(f, "KVM_EXIT_IO"));
	type(f, "x");
	ui_demand(f->ui, &d);
	assert_int_equal(d.slow_ns, 0);
	type(f, "x");
	press(f, UK_CTRL('U'));
	type(f, "3ms");
	press(f, UK_ENTER);
	ui_demand(f->ui, &d);
	assert_int_equal(d.slow_ns, 3000000);
	type(f, "x");
	type(f, "x");
	type(f, "soon");
	press(f, UK_ENTER);
	assert_true(on_screen(f, "1us to 60s"));
	ui_demand(f->ui, &d);
	assert_int_equal(d.slow_ns, 0);
}

static void not_in_replay(void **state)
{
	struct fixture *f = *state;
	struct demand d;

	type(f, "x");
	assert_true(on_screen(f, "not in replay"));
	ui_demand(f->ui, &d);
	assert_int_equal(d.slow_ns, 0);
	f->made.slow = true;
	next_snapshot(f);
	type(f, "0");
	assert_true(on_screen(f, "vp_notify"));
}

/* ---- batch ---- */

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void as_text_and_csv(void **state)
{
	const struct made m = {.nvms = 2, .slow = true};
	struct snapshot *s = made_snapshot(&m);
	char *text = written(&format_text, s, "slow", false);

	(void)state;
	assert_non_null(strstr(text, "2026-03-06T14:22:02.517004+00:00 instance-0000a1"));
	assert_null(strstr(text, "14:21:58.100200")); /* of an interval before */
	free(text);
	text = written(&format_csv, s, "slow", false);
	assert_int_equal(lines(text), 3);
	assert_non_null(strstr(text, ",slow,IO_INSTRUCTION,2026-03-06T14:22:02.517004+00:00,"));
	assert_non_null(strstr(text, ",2004512,KVM_EXIT_IO,1995004,vp_notify,virtio_pci,"));
	assert_non_null(strstr(text, ",1481230123,,,"));
	free(text);
	text = written(&format_csv, s, "slow", true);
	assert_int_equal(lines(text), 4);
	free(text);
	text = written(&format_csv, s, "vm", true);
	assert_non_null(strstr(text, "slow_exits"));
	free(text);
	snapshot_unref(s);
}

static void as_json(void **state)
{
	const struct made m = {.nvms = 2, .slow = true};
	struct snapshot *s = made_snapshot(&m);
	char *text = written(&format_json, s, "slow", false);
	json_t *o = json_loads(text, 0, NULL), *a, *x;

	(void)state;
	a = json_object_get(json_array_get(json_object_get(o, "vms"), 0), "slow");
	assert_int_equal(json_array_size(a), 1);
	x = json_array_get(a, 0);
	assert_string_equal(json_string_value(json_object_get(x, "key")), "IO_INSTRUCTION");
	assert_int_equal(json_integer_value(json_object_get(x, "took_ns")), 2004512);
	assert_int_equal(json_integer_value(json_object_get(x, "user_ns")), 1995004);
	assert_string_equal(json_string_value(json_object_get(x, "rip")), "0xffffffff816ce8ee");
	a = json_object_get(json_array_get(json_object_get(o, "vms"), 1), "slow");
	x = json_array_get(a, 0);
	assert_true(json_is_null(json_object_get(x, "user_exit")));
	assert_true(json_is_null(json_object_get(x, "user_ns")));
	json_decref(o);
	free(text);
	snapshot_unref(s);
}

/* ---- recordings ---- */

/* A snapshot of n lines, of the first VM, each a millisecond after the one before. */
static struct snapshot *with_lines(unsigned step, unsigned n)
{
	const struct made m = {.nvms = 2, .step = step, .slow = true};
	struct snapshot *s = made_snapshot(&m);
	struct snap_slow *x = snapshot_alloc(s, n, sizeof(*x));
	struct snap_vm *vms = (struct snap_vm *)s->vms;

	for (unsigned i = 0; i < n; i++) {
		x[i] = s->slow[1];
		x[i].end = s->time + (int64_t)i * 1000000;
	}
	s->slow = x;
	s->nslow = n;
	vms[0].slow = (struct snap_slows){.count = n + 1, .total = 100, .n = n};
	vms[1].slow = (struct snap_slows){0};
	return s;
}

static void longer_intervals_have_the_last_lines(void **state)
{
	struct snapshot *part[2] = {with_lines(0, 40), with_lines(1, 40)}, *sum = NULL;

	(void)state;
	assert_int_equal(store_merge(part, 2, &sum), 0);
	assert_int_equal(store_check(sum), 0);
	assert_int_equal(sum->slow_ns, 500000);
	assert_int_equal(sum->vms[0].slow.count, 82);
	assert_int_equal(sum->vms[0].slow.n, sum->nslow);
	assert_int_equal(sum->nslow, 64);
	for (size_t i = 1; i < sum->nslow; i++)
		assert_true(sum->slow[i].end > sum->slow[i - 1].end);
	assert_int_equal(sum->slow[63].end, part[1]->slow[39].end);
	assert_int_equal(sum->slow[0].end, part[0]->slow[16].end);
	assert_int_equal((int64_t)sum->slow[0].user_ns.v, 1995004);
	snapshot_unref(sum);
	snapshot_unref(part[0]);
	snapshot_unref(part[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_as_typed),
		cmocka_unit_test(the_option),
		cmocka_unit_test_setup_teardown(x_asks_and_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(not_in_replay, setup_replay, teardown),
		cmocka_unit_test(as_text_and_csv),
		cmocka_unit_test(as_json),
		cmocka_unit_test(longer_intervals_have_the_last_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
