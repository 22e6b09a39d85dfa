// SPDX-License-Identifier: GPL-2.0-only
/*
 * Golden screens: made snapshots and scripted keys in, the surface's text compared with
 * tests/golden/NAME.txt, its roles with NAME.roles. GOLDEN_WRITE=1 writes them anew: look at
 * what `git diff` then says. No line is ever wider than its window.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "keymap.h"
#include "surface.h"
#include "text.h"
#include "ui.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

#define WITH_LINE 2
#define WITH_SHORT_LINE 3

struct screen {
	const char *name;
	int rows, cols;
	const char *keys; /* \r Enter, \x1b Esc, \t Tab; D and U in <> are arrows: see feed() */
	struct made made;
	unsigned steps; /* how many snapshots come in before the keys */
	bool ascii; /* the terminal is not UTF-8 */
	int replay; /* the snapshots come out of a recording; WITH_LINE: of an hour, or of seconds
		     */
};

static const struct screen screens[] = {
	{"host-80x24", 24, 80, "", {.nvms = 4}, 3, false, false},
	{"host-100x30", 30, 100, "", {.nvms = 12}, 3, false, false},
	{"host-132x43", 43, 132, "", {.nvms = 30}, 3, false, false},
	{"host-40x10", 10, 40, "", {.nvms = 4}, 3, false, false},
	{"host-118x24", 24, 118, "", {.nvms = 4}, 3, false, false},
	{"vcpus-all-80x24", 24, 80, "v", {.nvms = 4}, 3, false, false},
	{"vm-80x24", 24, 80, "\r", {.nvms = 4}, 3, false, false},
	{"vm-100x30", 30, 100, "\r", {.nvms = 4}, 3, false, false},
	{"pane-vcpus-80x24", 24, 80, "j1", {.nvms = 4}, 3, false, false},
	{"vcpu-80x24", 24, 80, "\r\r", {.nvms = 4}, 3, false, false},
	{"not-root-80x24", 24, 80, "", {.nvms = 4, .no_root = true}, 3, false, false},
	{"no-entry-exit-80x24", 24, 80, "", {.nvms = 4, .no_exits = true}, 3, false, false},
	{"names-80x24", 24, 80, "", {.nvms = 6, .names = true}, 3, false, false},
	{"no-guests-80x24", 24, 80, "", {.nvms = 0}, 3, false, false},
	{"filter-80x24", 24, 80, "fweb", {.nvms = 12}, 3, false, false},
	{"paused-80x24", 24, 80, ",,", {.nvms = 4}, 5, false, false},
	{"help-80x24", 24, 80, "?", {.nvms = 4}, 1, false, false},
	{"help-columns-80x24", 24, 80, "?\t", {.nvms = 4}, 1, false, false},
	{"help-row-80x24", 24, 80, "?\t\t", {.nvms = 4}, 1, false, false},
	{"help-tools-80x24", 24, 80, "?\t\t\t", {.nvms = 4}, 1, false, false},
	{"info-80x24", 24, 80, "i", {.nvms = 4}, 1, false, false},
	{"info-no-exits-80x24", 24, 80, "i", {.nvms = 4, .no_exits = true}, 1, false, false},
	{"sort-80x24", 24, 80, "s", {.nvms = 4}, 1, false, false},
	{"columns-80x24", 24, 80, "C", {.nvms = 4}, 1, false, false},
	{"tasks-80x24", 24, 80, "G\r", {.nvms = 4}, 1, false, false},
	{"exits-80x24", 24, 80, "j2", {.nvms = 4}, 9, false, false},
	{"exits-132x43", 43, 132, "j2\t", {.nvms = 12}, 9, false, false},
	{"exits-all-80x24", 24, 80, "g2", {.nvms = 4}, 9, false, false},
	{"exits-all-132x43", 43, 132, "g2\t", {.nvms = 12}, 9, false, false},
	{"exits-fine-132x43", 43, 132, "\r\r2z", {.nvms = 4, .fine = true}, 9, false, false},
	{"exits-fine-80x24",
	 24,
	 80,
	 "\r\r2z",
	 {.nvms = 4, .fine = true, .no_exits = true},
	 9,
	 false,
	 false},
	{"exits-fine-waits-80x24", 24, 80, "\r\r2z", {.nvms = 4}, 9, false, false},
	{"access-80x24", 24, 80, "3eee", {.nvms = 4}, 9, false, false},
	{"exits-code-100x30", 30, 100, "j2\t\r", {.nvms = 4}, 9, false, false},
	{"exits-code-lost-100x30",
	 30,
	 100,
	 "j2\t\r",
	 {.nvms = 4, .code_lost = true},
	 9,
	 false,
	 false},
	{"exits-code-80x24", 24, 80, "j\r\t\r", {.nvms = 4}, 9, false, false},
	{"symbols-80x24", 24, 80, "j4", {.nvms = 4}, 9, false, false},
	{"symbols-132x43", 43, 132, "j4\t\r", {.nvms = 12}, 9, false, false},
	{"symbols-guest-80x24", 24, 80, "j4HU", {.nvms = 4}, 9, false, false},
	{"symbols-none-80x24", 24, 80, "j4", {.nvms = 4, .no_symbols = true}, 9, false, false},
	{"symbols-off-80x24", 24, 80, "4", {.nvms = 4, .no_samples = true}, 9, false, false},
	{"symbols-few-80x24", 24, 80, "j4", {.nvms = 4, .few_samples = true}, 9, false, false},
	{"symbols-vcpu-80x24", 24, 80, "\r\r4\r", {.nvms = 4}, 9, false, false},
	{"symbols-all-100x30", 30, 100, "g4\t\r", {.nvms = 4}, 9, false, false},
	{"symbols-all-page-100x30", 30, 100, "g4\tj\r", {.nvms = 4}, 9, false, false},
	{"symbols-callers-100x30",
	 30,
	 100,
	 "j4\t\r",
	 {.nvms = 4, .callers = true},
	 9,
	 false,
	 false},
	{"symbols-callers-vcpu-80x24",
	 24,
	 80,
	 "j\r\r4\r",
	 {.nvms = 4, .callers = true},
	 9,
	 false,
	 false},
	{"symbols-40x10", 10, 40, "4", {.nvms = 4}, 9, false, false},
	{"steal-100x30", 30, 100, "5", {.nvms = 4}, 9, false, false},
	{"steal-80x24", 24, 80, "5", {.nvms = 4}, 9, false, false},
	{"steal-100x36", 36, 100, "5", {.nvms = 4}, 9, false, false},
	{"steal-vcpu-80x24", 24, 80, "\r5", {.nvms = 4}, 9, false, false},
	{"steal-used-up-80x24", 24, 80, "5", {.nvms = 4, .used_up = true}, 9, false, false},
	{"steal-vm-other-80x24", 24, 80, "j5", {.nvms = 4}, 9, false, false},
	{"steal-off-80x24", 24, 80, "5", {.nvms = 4, .no_waits = true}, 9, false, false},
	{"steal-off-100x30", 30, 100, "5", {.nvms = 4, .no_waits = true}, 9, false, false},
	{"steal-names-80x24", 24, 80, "5", {.nvms = 4, .names = true}, 9, false, false},
	{"steal-40x10", 10, 40, "5", {.nvms = 4}, 9, false, false},
	{"cpus-132x43", 43, 132, "6\t", {.nvms = 4}, 9, false, false},
	{"tsc-80x24", 24, 80, "7", {.nvms = 4}, 9, false, false},
	{"tsc-40x10", 10, 40, "7", {.nvms = 4}, 9, false, false},
	{"pmu-80x24", 24, 80, "8", {.nvms = 4, .pmu = true}, 9, false, false},
	{"pmu-132x43", 43, 132, "8\t", {.nvms = 4, .pmu = true}, 9, false, false},
	{"pmu-40x10", 10, 40, "8", {.nvms = 4, .pmu = true}, 9, false, false},
	{"pmu-inferred-100x30", 30, 100, "8\t", {.nvms = 4, .pmu_inferred = true}, 9, false, false},
	{"pmu-ours-80x24",
	 24,
	 80,
	 "8",
	 {.nvms = 4, .pmu = true, .pmu_ours = true},
	 9,
	 false,
	 false},
	{"pmu-none-80x24", 24, 80, "8", {.nvms = 4}, 9, false, false},
	{"threads-80x24", 24, 80, "9", {.nvms = 4}, 9, false, false},
	{"slow-80x24", 24, 80, "0", {.nvms = 4, .slow = true}, 9, false, false},
	{"slow-100x30", 30, 100, "g0\t", {.nvms = 4, .slow = true}, 9, false, false},
	{"slow-132x43", 43, 132, "g0\t", {.nvms = 4, .slow = true}, 9, false, false},
	{"slow-40x10", 10, 40, "0", {.nvms = 4, .slow = true}, 9, false, false},
	{"slow-off-80x24", 24, 80, "0", {.nvms = 4}, 9, false, false},
	{"slow-none-80x24", 24, 80, "jj0", {.nvms = 4, .slow = true}, 9, false, false},
	{"slow-untimed-80x24",
	 24,
	 80,
	 "jj0",
	 {.nvms = 4, .slow = true, .no_exits = true},
	 9,
	 false,
	 false},
	{"slow-ask-80x24", 24, 80, "x", {.nvms = 4}, 9, false, false},
	{"exits-40x10", 10, 40, "2", {.nvms = 4}, 9, false, false},
	{"ascii-100x30", 30, 100, "5", {.nvms = 4}, 9, true, false},
	{"tiny-30x4", 4, 30, "", {.nvms = 4}, 1, false, false},
	{"replay-80x24", 24, 80, "", {.nvms = 4}, 3, false, true},
	{"replay-line-80x24", 24, 80, "", {.nvms = 4}, 3, false, WITH_LINE},
	{"replay-line-short-80x24", 24, 80, "", {.nvms = 4}, 3, false, WITH_SHORT_LINE},
	{"replay-line-132x43", 43, 132, "\r5", {.nvms = 4}, 9, false, WITH_LINE},
	{"replay-100x30", 30, 100, "\r2", {.nvms = 4}, 9, false, true},
};

/* An hour around the snapshots with a gap, trouble of 85% and of 35%, and little else. */
static void set_timeline(struct ui *ui, const struct snapshot *s)
{
	struct ui_moment m[300];
	int64_t first = timespec_ns(s->wall) - 1200 * NS_PER_S;

	for (int i = 0; i < 300; i++) {
		m[i] = (struct ui_moment){first + i * 12 * NS_PER_S, 12 * NS_PER_S, i % 5, 0};
		if (i >= 200 && i < 220)
			m[i].wall = 0;
		if (i >= 60 && i < 66)
			m[i].steal = 55 + 5 * (i - 60);
		if (i >= 250 && i < 254)
			m[i].steal = 35;
		m[i].worth = m[i].steal >= STEAL_NOTICE ? m[i].steal : 0;
	}
	ui_timeline(ui, m, 300, first, first + 3600 * NS_PER_S);
}

/* Six intervals of a second and two that are missing: a column is less than an interval. */
static void set_short_timeline(struct ui *ui, const struct snapshot *s)
{
	static const double steal[] = {2, 40, 60, -1, -1, 10, 90, 20};
	int64_t first = timespec_ns(s->wall) - 4 * NS_PER_S;
	struct ui_moment m[8];
	size_t n = 0;

	for (int i = 0; i < 8; i++)
		if (steal[i] >= 0)
			m[n++] = (struct ui_moment){first + i * NS_PER_S, NS_PER_S, steal[i],
						    steal[i] >= STEAL_NOTICE ? steal[i] : 0};
	ui_timeline(ui, m, n, first, first + 7 * NS_PER_S);
}

static struct surface *draw(const struct screen *c)
{
	const struct ui_config cfg = {
		.delay_s = 1, .utc = true, .can_demo = true, .replay = c->replay};
	struct ui *ui = ui_new(&cfg);
	struct surface *s = surface_new(c->rows, c->cols);

	assert_non_null(ui);
	assert_non_null(s);
	s->ascii = c->ascii;
	for (unsigned i = 0; i < c->steps; i++) {
		struct made m = c->made;
		struct snapshot *snap;

		m.step = i;
		snap = made_snapshot(&m);
		assert_non_null(snap);
		ui_snapshot(ui, snap);
		if (c->replay == WITH_LINE)
			set_timeline(ui, snap);
		if (c->replay == WITH_SHORT_LINE)
			set_short_timeline(ui, snap);
		snapshot_unref(snap);
		ui_draw(ui, s);
	}
	for (const char *k = c->keys; *k; k++) {
		ui_key(ui, (unsigned char)*k);
		ui_draw(ui, s);
	}
	ui_free(ui);
	return s;
}

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t n = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &n, '\0', f) < 0 && text)
		text[0] = '\0';
	fclose(f);
	return text;
}

static void check_widths(const char *text, const struct screen *c)
{
	int lines = 0;

	for (const char *line = text; *line; lines++) {
		size_t n = strcspn(line, "\n");
		char one[2048];

		assert_true(n < sizeof(one));
		memcpy(one, line, n);
		one[n] = '\0';
		if (utf8_width(one) > (size_t)c->cols)
			fail_msg("%s: line %d is wider than %d", c->name, lines, c->cols);
		line += n + (line[n] == '\n');
	}
	assert_int_equal(lines, c->rows);
}

static void compare(const char *name, const char *kind, const char *text)
{
	char path[256], got[256];
	char *want;
	FILE *f;

	snprintf(path, sizeof(path), "tests/golden/%s.%s", name, kind);
	if (getenv("GOLDEN_WRITE")) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		assert_int_equal(fclose(f), 0);
		return;
	}
	want = read_all(path);
	if (!want) {
		fail_msg("%s cannot be read: %s", path, strerror(errno));
		return;
	}
	if (strcmp(want, text) != 0) {
		snprintf(got, sizeof(got), "build/%s.%s", name, kind);
		f = fopen(got, "w");
		if (f) {
			fputs(text, f);
			fclose(f);
		}
		fail_msg("%s differs: diff %s %s", name, path, got);
	}
	free(want);
}

static void screen_is_golden(void **state)
{
	const struct screen *c = *state;
	struct surface *s = draw(c);
	char *text = NULL, *roles = NULL;
	size_t n;
	FILE *f;

	f = open_memstream(&text, &n);
	assert_non_null(f);
	surface_dump(s, f);
	fclose(f);
	f = open_memstream(&roles, &n);
	assert_non_null(f);
	surface_dump_roles(s, f);
	fclose(f);
	check_widths(text, c);
	for (const char *p = text; c->ascii && *p; p++)
		assert_true((unsigned char)*p < 0x80);
	compare(c->name, "txt", text);
	compare(c->name, "roles", roles);
	free(text);
	free(roles);
	surface_free(s);
}

/* How each role looks in each theme: fg bg attributes, also on the selection bar. */
static void put_style(FILE *f, const struct theme *t, enum role role, unsigned attr)
{
	struct style s = theme_style(t, role, attr);
	int digits = t->depth == DEPTH_TRUE ? 6 : 1;

	if (s.fg == COLOR_NONE)
		fprintf(f, " -");
	else
		fprintf(f, t->depth == DEPTH_TRUE ? " %0*x" : " %*d", digits, (unsigned)s.fg);
	if (s.bg == COLOR_NONE)
		fprintf(f, "/-");
	else
		fprintf(f, t->depth == DEPTH_TRUE ? "/%0*x" : "/%*d", digits, (unsigned)s.bg);
	fprintf(f, "%s%s%s%s", s.bold ? "b" : "", s.dim ? "d" : "", s.reverse ? "r" : "",
		s.underline ? "u" : "");
}

static void themes_are_golden(void **state)
{
	static const char *const names[] = {"mono", "8", "256", "true"};
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_non_null(f);
	for (int depth = DEPTH_MONO; depth <= DEPTH_TRUE; depth++) {
		for (int ground = GROUND_DARK; ground <= GROUND_LIGHT; ground++) {
			const struct theme t = {(enum theme_depth)depth, (enum theme_ground)ground};

			fprintf(f, "%s %s: role, plain, selected\n", names[depth],
				ground ? "light" : "dark");
			for (int role = 0; role < ROLE_NR; role++) {
				fprintf(f, "%s", theme_role_name((enum role)role));
				put_style(f, &t, (enum role)role, 0);
				put_style(f, &t, (enum role)role, CELL_SELECTED);
				fputc('\n', f);
			}
		}
	}
	fclose(f);
	compare("themes", "txt", text);
	free(text);
}

#define NSCREENS (sizeof(screens) / sizeof(screens[0]))

int main(void)
{
	struct CMUnitTest tests[NSCREENS + 1];

	for (size_t i = 0; i < NSCREENS; i++)
		tests[i] = (struct CMUnitTest){
			.name = screens[i].name,
			.test_func = screen_is_golden,
			.initial_state = (void *)(uintptr_t)&screens[i],
		};
	tests[NSCREENS] = (struct CMUnitTest)cmocka_unit_test(themes_are_golden);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
