// SPDX-License-Identifier: GPL-2.0-only
/* The parts that the screen is made of: layout, keys, surface, prompt, theme, settings. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "columns.h"
#include "keymap.h"
#include "layout.h"
#include "pane.h"
#include "prompt.h"
#include "settings.h"
#include "surface.h"
#include "theme.h"

/* --- layout --- */

static void check_inside(const struct rect *r, const struct layout_in *in)
{
	assert_true(r->y >= 0 && r->x >= 0 && r->h >= 0 && r->w >= 0);
	assert_true(r->y + r->h <= in->rows);
	assert_true(r->x + r->w <= in->cols);
}

/* Head, list, pane and key bar follow each other and leave no line out. */
static void check_layout(const struct layout_in *in)
{
	struct layout l;

	layout_compute(in, &l);
	if (l.tiny) {
		assert_true(in->rows < LAYOUT_MIN_ROWS || in->cols < LAYOUT_MIN_COLS);
		return;
	}
	check_inside(&l.head, in);
	check_inside(&l.list, in);
	check_inside(&l.pane, in);
	check_inside(&l.keys, in);
	assert_int_equal(l.head.y, 0);
	assert_int_equal(l.list.y, l.head.h);
	assert_int_equal(l.pane.y, l.list.y + l.list.h);
	if (l.pane.h)
		assert_int_equal(l.keys.y, l.pane.y + l.pane.h + l.timeline.h);
	else
		assert_int_equal(l.keys.y, l.list.y + l.list.h + l.timeline.h);
	assert_int_equal(l.timeline.h, in->timeline && in->rows >= 10);
	if (l.timeline.h)
		assert_int_equal(l.timeline.y, in->rows - 2);
	assert_int_equal(l.keys.y, in->rows - 1);
	assert_true(l.list.h + l.pane.h >= 4);
}

static void layout_fits_every_window(void **state)
{
	(void)state;
	for (int rows = 1; rows <= 100; rows++)
		for (int cols = 1; cols <= 300; cols += cols < 140 ? 1 : 13)
			for (int how = 0; how < 8; how++) {
				const struct layout_in in = {.rows = rows,
							     .cols = cols,
							     .pane_shown = how & 1,
							     .list_small = how & 2,
							     .timeline = how & 4};

				check_layout(&in);
			}
}

static void layout_is_as_documented(void **state)
{
	struct layout l;

	(void)state;
	layout_compute(&(struct layout_in){24, 80, false, false, false}, &l);
	assert_int_equal(l.head.h, 3); /* and the column heads are the fourth */
	assert_int_equal(l.list.h, 20); /* heads and 19 rows */
	assert_int_equal(l.pane.h, 0);
	layout_compute(&(struct layout_in){24, 80, true, false, false}, &l);
	assert_int_equal(l.list.h, 0);
	assert_int_equal(l.pane.h, 20);
	layout_compute(&(struct layout_in){29, 80, false, false, false}, &l);
	assert_int_equal(l.pane.h, 0);
	layout_compute(&(struct layout_in){30, 80, false, false, false}, &l);
	assert_int_equal(l.list.h + l.pane.h, 26);
	assert_int_equal(l.pane.h, 13);
	layout_compute(&(struct layout_in){10, 40, false, false, false}, &l);
	assert_false(l.tiny);
}

static size_t columns_of(const struct table_def *def, int width, int first, struct column *cols,
			 struct column_place *place)
{
	struct table_state st = {.hscroll = first};
	const struct table_ctx c = {.def = def, .state = &st};
	size_t n = table_columns(&c, cols);

	return layout_columns(cols, n, width, first, place);
}

static void no_columns_overlap(void **state)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	const struct pane *const *panes;
	size_t npanes;

	(void)state;
	panes = panes_all(&npanes);
	for (size_t d = 0; d < LIST_NR + npanes; d++) {
		const struct table_def *def =
			d < LIST_NR ? &list_defs[d] : panes[d - LIST_NR]->table;

		for (int width = 1; def && width <= 300; width++) {
			for (int first = 0; first < 12; first++) {
				size_t n = columns_of(def, width, first, cols, place);
				int end = 0;

				for (size_t i = 0; i < n; i++) {
					assert_true(place[i].x >= end);
					assert_true(place[i].w > 0);
					end = place[i].x + place[i].w;
				}
				assert_true(end <= width);
			}
		}
	}
}

static void expect_columns(int width, const char *want)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	size_t n = columns_of(&list_defs[LIST_VMS], width, 0, cols, place);
	char got[256] = "";

	for (size_t i = 0; i < n; i++) {
		strcat(got, i ? " " : "");
		strcat(got, cols[place[i].col].field);
	}
	assert_string_equal(got, want);
}

/* They go in this order: vCPU, %SYS, %GUEST, WHY, EXIT/s, %EXIT, %CPU. */
static void columns_go_in_their_order(void **state)
{
	(void)state;
	expect_columns(80, "VM vCPU %CPU %GUEST %SYS %STEAL MAX@v EXIT/s %EXIT WHY");
	expect_columns(79, "VM %CPU %GUEST %SYS %STEAL MAX@v EXIT/s %EXIT WHY");
	expect_columns(75, "VM %CPU %GUEST %STEAL MAX@v EXIT/s %EXIT WHY");
	expect_columns(69, "VM %CPU %STEAL MAX@v EXIT/s %EXIT WHY");
	expect_columns(62, "VM %CPU %STEAL MAX@v EXIT/s %EXIT");
	expect_columns(47, "VM %CPU %STEAL MAX@v %EXIT");
	expect_columns(40, "VM %CPU %STEAL MAX@v");
	expect_columns(34, "VM %STEAL MAX@v");
	expect_columns(
		110, "VM vCPU PID %CPU %GUEST %SYS %STEAL MAX@v EXIT/s %EXIT TOP EXIT HOT SYMBOL");
	expect_columns(118,
		       "VM vCPU PID %CPU %GUEST %SYS %STEAL MAX@v EXIT/s %EXIT p99 TOP EXIT HOT "
		       "SYMBOL");
}

/* "57%" cut after its first digit would be 5%; and a table does not scroll on when its end is
 * there. */
static void columns_are_whole(void **state)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];
	const struct table_ctx c = {.def = &list_defs[LIST_VMS]};
	size_t n = table_columns(&c, cols);

	(void)state;
	for (int width = 60; width <= 300; width++) {
		int last = layout_last_scroll(cols, n, width);

		for (int first = 0; first <= last; first++) {
			size_t shown = layout_columns(cols, n, width, first, place);

			for (size_t i = 0; i < shown; i++)
				assert_true(place[i].w >= cols[place[i].col].width);
			if (first == last)
				assert_int_equal(place[shown - 1].col, n - 1);
		}
	}
	assert_true(layout_last_scroll(cols, n, 80) > 0);
	assert_int_equal(layout_last_scroll(cols, n, 1000), 0);
}

static void no_column_is_there_twice(void **state)
{
	struct column cols[VIEW_COLUMNS];
	struct column_place place[VIEW_COLUMNS];

	(void)state;
	for (int list = 0; list < LIST_NR; list++)
		for (int width = 40; width <= 300; width++)
			for (int first = 0; first < 12; first++) {
				size_t n = columns_of(&list_defs[list], width, first, cols, place);

				for (size_t i = 0; i < n; i++)
					for (size_t k = 0; k < i; k++)
						assert_string_not_equal(cols[place[i].col].field,
									cols[place[k].col].field);
			}
}

/* --- keys --- */

static void no_key_is_bound_twice(void **state)
{
	const struct key_row *rows;
	size_t n;

	(void)state;
	rows = keymap_rows(&n);
	for (size_t i = 0; i < n; i++)
		for (const uint32_t *k = rows[i].keys; *k; k++)
			for (unsigned ctx = CTX_MAIN; ctx < CTX_ALL; ctx <<= 1)
				if (rows[i].contexts & ctx) {
					enum action a = keymap_find(*k, (enum key_context)ctx);

					if (a != rows[i].action)
						fail_msg("%s: taken by action %d", rows[i].id,
							 (int)a);
				}
}

static void every_function_key_has_a_letter(void **state)
{
	const struct key_row *rows;
	size_t n;

	(void)state;
	rows = keymap_rows(&n);
	for (size_t i = 0; i < n; i++) {
		bool f = false, letter = false;

		for (const uint32_t *k = rows[i].keys; *k; k++) {
			f |= *k > UK_F0 && *k <= UK_F12;
			letter |= *k > ' ' && *k < 0x7f;
		}
		assert_true(!f || letter);
		assert_non_null(rows[i].help);
		assert_true(rows[i].help[0]);
	}
}

static const char *keys_of(enum action a, char *buf, size_t size)
{
	size_t n;
	const struct key_row *rows = keymap_rows(&n);

	for (size_t i = 0; i < n; i++)
		if (rows[i].action == a)
			return keymap_keys(&rows[i], buf, size);
	fail_msg("no row of action %d", a);
	return NULL;
}

static void key_names(void **state)
{
	char buf[64];

	(void)state;
	assert_string_equal(keys_of(ACT_QUIT, buf, sizeof(buf)), "q F10 ^C");
	assert_string_equal(keys_of(ACT_BACK, buf, sizeof(buf)), "Esc Bksp");
	keys_of(ACT_PANE, buf, sizeof(buf));
	for (int key = '0'; key <= '9'; key++) /* the panes that are there, and no others */
		assert_int_equal(strchr(buf, key) != NULL, pane_by_key((char)key) != NULL);
	assert_string_equal(keymap_name(' ', buf, sizeof(buf)), "space");
	assert_int_equal(keymap_find('0', CTX_MAIN), ACT_PANE);
	assert_int_equal(keymap_find('0', CTX_MENU), ACT_NONE);
	assert_int_equal(keymap_find('\n', CTX_MAIN), ACT_OPEN);
}

static void panes_have_keys_of_their_own(void **state)
{
	const struct pane *const *p;
	size_t n;

	(void)state;
	p = panes_all(&n);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(pane_by_key(p[i]->key), p[i]);
		assert_int_equal(keymap_find((unsigned char)p[i]->key, CTX_MAIN), ACT_PANE);
		for (const struct column *c = p[i]->table ? p[i]->table->cols : NULL;
		     c && c < p[i]->table->cols + p[i]->table->ncols; c++)
			if (!field_find(p[i]->table->table, c->field))
				fail_msg("pane %s: no field %s", p[i]->id, c->field);
	}
}

/* --- surface --- */

static char *text_of(const struct surface *s)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	surface_dump(s, f);
	fclose(f);
	return text;
}

static void expect_text(const struct surface *s, const char *want)
{
	char *got = text_of(s);

	assert_string_equal(got, want);
	free(got);
}

static void text_is_cut_at_the_area(void **state)
{
	struct surface *s = surface_new(2, 8);
	struct area all = area_all(s), mid = area_sub(&all, 0, 2, 1, 4);

	(void)state;
	assert_int_equal(area_text(&mid, 0, -1, ROLE_TEXT, "abcdefgh"), 7);
	expect_text(s, "  bcde\n\n");
	area_text(&mid, 1, 0, ROLE_TEXT, "outside");
	area_text(&mid, -1, 0, ROLE_TEXT, "outside");
	expect_text(s, "  bcde\n\n");
	area_fill(&all, 1, -5, 100, ROLE_TEXT, '-');
	expect_text(s, "  bcde\n--------\n");
	surface_free(s);
}

static void wide_characters_are_never_halved(void **state)
{
	struct surface *s = surface_new(1, 5);
	struct area all = area_all(s);

	(void)state;
	area_text(&all, 0, 0, ROLE_TEXT, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97");
	expect_text(s, "\xe4\xb8\xad\xe6\x96\x87\n");
	area_put(&all, 0, 1, ROLE_TEXT, 'x'); /* onto a right half: the left one goes */
	expect_text(s, " x\xe6\x96\x87\n");
	area_put(&all, 0, 2, ROLE_TEXT, 'y');
	expect_text(s, " xy\n");
	area_put(&all, 0, 1, ROLE_TEXT, 0x4e2d); /* over x and y */
	expect_text(s, " \xe4\xb8\xad\n");
	area_text(&all, 0, 0, ROLE_TEXT, "e\xcc\x81z");
	expect_text(s, "e\xcc\x81z\n");
	surface_free(s);
}

static void no_control_character_gets_in(void **state)
{
	struct surface *s = surface_new(1, 6);
	struct area all = area_all(s);

	(void)state;
	area_text(&all, 0, 0, ROLE_TEXT, "a\x1b\n\x7f\xc2\x9b");
	expect_text(s, "a????\n");
	surface_free(s);
}

/* --- prompt --- */

static void type(struct prompt *p, const char *keys)
{
	for (; *keys; keys++)
		prompt_key(p, (unsigned char)*keys);
}

static void prompt_edits(void **state)
{
	struct prompt p;

	(void)state;
	prompt_start(&p, "filter", "");
	type(&p, "web 02");
	assert_string_equal(p.text, "web 02");
	prompt_key(&p, UK_BACKSPACE);
	type(&p, "1");
	prompt_key(&p, UK_HOME);
	type(&p, "x");
	prompt_key(&p, UK_DELETE);
	assert_string_equal(p.text, "xeb 01");
	prompt_key(&p, UK_END);
	prompt_key(&p, UK_CTRL('W'));
	assert_string_equal(p.text, "xeb ");
	assert_int_equal(prompt_key(&p, UK_CTRL('U')), PROMPT_CHANGED);
	assert_string_equal(p.text, "");
	assert_int_equal(prompt_key(&p, UK_BACKSPACE), PROMPT_GOES_ON);
	assert_int_equal(prompt_key(&p, UK_ENTER), PROMPT_DONE);
	assert_int_equal(prompt_key(&p, UK_ESC), PROMPT_CANCELLED);
}

static void prompt_proposes(void **state)
{
	struct prompt p;

	(void)state;
	prompt_propose(&p, "seconds", "1");
	assert_string_equal(p.text, "1");
	type(&p, "0.5");
	assert_string_equal(p.text, "0.5");
	prompt_propose(&p, "seconds", "1");
	assert_int_equal(prompt_key(&p, UK_END), PROMPT_GOES_ON);
	type(&p, "0");
	assert_string_equal(p.text, "10");
	prompt_propose(&p, "seconds", "1");
	assert_int_equal(prompt_key(&p, UK_ENTER), PROMPT_DONE);
	assert_string_equal(p.text, "1");
}

static void prompt_holds_utf8(void **state)
{
	struct prompt p;

	(void)state;
	prompt_start(&p, "filter", "");
	prompt_key(&p, 0xfc);
	prompt_key(&p, 0x4e2d);
	prompt_key(&p, 0x1f600);
	prompt_key(&p, 0xd800); /* no character */
	prompt_key(&p, UK_LEFT);
	prompt_key(&p, UK_BACKSPACE);
	assert_string_equal(p.text, "\xc3\xbc\xf0\x9f\x98\x80");
	for (int i = 0; i < 1000; i++)
		prompt_key(&p, 0x1f600);
	assert_true(p.len < sizeof(p.text));
	assert_int_equal(strlen(p.text), p.len);
}

/* --- theme --- */

static void thresholds(void **state)
{
	(void)state;
	assert_int_equal(theme_level(4.9, 5, 10), ROLE_TEXT);
	assert_int_equal(theme_level(5, 5, 10), ROLE_WARN);
	assert_int_equal(theme_level(10, 5, 10), ROLE_ALARM);
	assert_int_equal(theme_level(10, 0, 0), ROLE_TEXT);
}

static void colours_are_of_their_depth(void **state)
{
	(void)state;
	for (int depth = DEPTH_MONO; depth <= DEPTH_TRUE; depth++)
		for (int ground = 0; ground < 2; ground++)
			for (int role = 0; role < ROLE_NR; role++)
				for (unsigned attr = 0; attr < 8; attr++) {
					const struct theme t = {(enum theme_depth)depth,
								(enum theme_ground)ground};
					struct style s = theme_style(&t, (enum role)role, attr);
					int32_t top[] = {-1, 7, 255, 0xffffff};

					assert_in_range(s.fg + 1, 0, top[depth] + 1);
					assert_in_range(s.bg + 1, 0, top[depth] + 1);
				}
}

static long luminance(int32_t c)
{
	return 299 * (c >> 16 & 255) + 587 * (c >> 8 & 255) + 114 * (c & 255);
}

/* A background that is ours always has a foreground that stands out from it. */
static void bars_are_legible(void **state)
{
	(void)state;
	for (int ground = 0; ground < 2; ground++)
		for (int role = 0; role < ROLE_HEAT0; role++)
			for (unsigned attr = 0; attr < 4; attr++) {
				const struct theme t = {DEPTH_TRUE, (enum theme_ground)ground};
				struct style s = theme_style(&t, (enum role)role, attr);
				long d;

				if (s.bg == COLOR_NONE)
					continue;
				assert_int_not_equal(s.fg, COLOR_NONE);
				d = luminance(s.fg) - luminance(s.bg);
				if (labs(d) < 35000)
					fail_msg("%s on its bar (ground %d, attr %u): %ld",
						 theme_role_name((enum role)role), ground, attr, d);
			}
}

static double linear(int32_t rgb, int shift)
{
	double c = (rgb >> shift & 255) / 255.0;

	return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/* Contrast as WCAG 2 has it: 1 to 21, from 4.5 on it is legible text. */
static double contrast(int32_t a, int32_t b)
{
	double la = 0.2126 * linear(a, 16) + 0.7152 * linear(a, 8) + 0.0722 * linear(a, 0);
	double lb = 0.2126 * linear(b, 16) + 0.7152 * linear(b, 8) + 0.0722 * linear(b, 0);

	return (fmax(la, lb) + 0.05) / (fmin(la, lb) + 0.05);
}

/* The worst row is the first one, so its red figures are what is seen on the selection bar. */
static void figures_on_the_selection_are_legible(void **state)
{
	static const enum role role[] = {ROLE_TEXT,    ROLE_DIM,   ROLE_STRONG,
					 ROLE_NOTICE,  ROLE_WARN,  ROLE_ALARM,
					 ROLE_MISSING, ROLE_QUOTA, ROLE_STEAL};

	(void)state;
	for (int ground = 0; ground < 2; ground++)
		for (size_t i = 0; i < sizeof(role) / sizeof(role[0]); i++) {
			const struct theme t = {DEPTH_TRUE, (enum theme_ground)ground};
			struct style s = theme_style(&t, role[i], CELL_SELECTED);

			if (contrast(s.fg, s.bg) < 4.5)
				fail_msg("%s on the selection (ground %d): %.1f",
					 theme_role_name(role[i]), ground, contrast(s.fg, s.bg));
		}
}

static void environment_decides(void **state)
{
	struct theme t;

	(void)state;
	setenv("NO_COLOR", "1", 1);
	unsetenv("COLORTERM");
	assert_true(theme_choose("auto", 256, &t));
	assert_int_equal(t.depth, DEPTH_MONO);
	assert_true(theme_choose("always", 256, &t));
	assert_int_equal(t.depth, DEPTH_256);
	setenv("NO_COLOR", "", 1);
	assert_true(theme_choose(NULL, 8, &t));
	assert_int_equal(t.depth, DEPTH_8);
	setenv("COLORTERM", "truecolor", 1);
	assert_true(theme_choose(NULL, 8, &t));
	assert_int_equal(t.depth, DEPTH_TRUE);
	assert_true(theme_choose("never", 256, &t));
	assert_int_equal(t.depth, DEPTH_MONO);
	assert_false(theme_choose("pink", 256, &t));
	setenv("COLORFGBG", "0;15", 1);
	assert_true(theme_ground("auto", &t));
	assert_int_equal(t.ground, GROUND_LIGHT);
	setenv("COLORFGBG", "15;default;0", 1);
	assert_true(theme_ground(NULL, &t));
	assert_int_equal(t.ground, GROUND_DARK);
	assert_false(theme_ground("pink", &t));
}

/* --- settings --- */

static int parse(const char *text, struct view *v, char *theme)
{
	view_init(v);
	return settings_parse(text, strlen(text), v, theme, 16, NULL);
}

static void settings_are_read(void **state)
{
	static struct view v;
	char theme[16];

	(void)state;
	assert_int_equal(parse("# mine\n\n sort.vms = %CPU reverse\ncolumns.vms = VM, %STEAL,NOPE\n"
			       "pane = 2\nvcpus = yes\nidle = no\ntotals = yes\ntheme = light",
			       &v, theme),
			 1);
	assert_string_equal(v.list[LIST_VMS].sort, "%CPU");
	assert_true(v.list[LIST_VMS].reverse);
	assert_int_equal(v.list_columns[LIST_VMS].n, 2);
	assert_string_equal(v.list_columns[LIST_VMS].title[1], "%STEAL");
	assert_int_equal(v.pane, '2');
	assert_true(v.all_vcpus && v.no_idle && v.totals);
	assert_string_equal(theme, "light");
	assert_int_equal(
		parse("nonsense\nsort.vms = NOPE\npane = x\ncolumns.no = VM\nidle = maybe\n", &v,
		      theme),
		5);
	assert_int_equal(v.pane, '1');
	/* The first of them is told. */
	static const char slips[] = "# mine\ntheme = bogus\nsort = foo\n";
	struct settings_wrong wrong;

	assert_int_equal(settings_parse(slips, strlen(slips), &v, theme, sizeof(theme), &wrong), 2);
	assert_int_equal(wrong.line, 2);
	assert_string_equal(wrong.text, "theme = bogus");
	assert_string_equal(theme, "");
	static const char column[] = "\ncolumns.vms = VM, %NOPE ,%CPU,NO\n";

	assert_int_equal(settings_parse(column, strlen(column), &v, theme, sizeof(theme), &wrong),
			 1);
	assert_int_equal(wrong.line, 2);
	assert_string_equal(wrong.text, "%NOPE");
	assert_int_equal(v.list_columns[LIST_VMS].n, 2);
	assert_int_equal(settings_parse("pane = 2\n", 9, &v, theme, sizeof(theme), &wrong), 0);
	assert_int_equal(wrong.line, 0);
}

static void settings_come_back(void **state)
{
	static struct view v, back;
	char dir[] = "/tmp/kvmtop-settings-XXXXXX", path[128];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a/b/kvmtoprc", dir);
	view_init(&v);
	view_init(&back);
	snprintf(v.list[LIST_VMS].sort, VIEW_TITLE, "EXIT/s");
	snprintf(v.list_columns[LIST_VM_VCPUS].title[0], VIEW_TITLE, "vCPU");
	snprintf(v.list_columns[LIST_VM_VCPUS].title[1], VIEW_TITLE, "MIG/s");
	v.list_columns[LIST_VM_VCPUS].n = 2;
	v.no_idle = true;
	assert_int_equal(settings_write(path, &v, "dark"), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(settings_read(path, &back, NULL), 0);
	assert_string_equal(back.list[LIST_VMS].sort, "EXIT/s");
	assert_string_equal(back.list_columns[LIST_VM_VCPUS].title[1], "MIG/s");
	assert_true(back.no_idle);
	/* Written again over itself: the file is ours. */
	assert_int_equal(settings_write(path, &v, NULL), 0);
	/* The folder is another user's: refused, and nothing is left in it. */
	if (geteuid() == 0) {
		snprintf(path, sizeof(path), "%s/a", dir);
		assert_int_equal(chown(path, 65534, 65534), 0);
		snprintf(path, sizeof(path), "%s/a/new/kvmtoprc", dir);
		assert_int_equal(settings_write(path, &v, NULL), -EPERM);
		snprintf(path, sizeof(path), "%s/a/new", dir);
		assert_int_equal(access(path, F_OK), -1);
	}
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	assert_int_equal(system(path), 0);
}

/* A disk without room (here: a limit of the process): why is said, the old file stays as it was. */
static void settings_without_room(void **state)
{
	static struct view v, back;
	struct rlimit before, none;
	char dir[] = "/tmp/kvmtop-settings-XXXXXX", path[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/kvmtoprc", dir);
	view_init(&v);
	view_init(&back);
	v.no_idle = true;
	assert_int_equal(settings_write(path, &v, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	v.no_idle = false;
	int r = settings_write(path, &v, NULL);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(settings_read(path, &back, NULL), 0);
	assert_true(back.no_idle);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing half written is left in it */
}

static void settings_path_follows_xdg(void **state)
{
	char path[128];

	(void)state;
	setenv("HOME", "/home/u", 1);
	setenv("XDG_CONFIG_HOME", "/x", 1);
	assert_true(settings_path(path, sizeof(path)));
	assert_string_equal(path, "/x/kvmtop/kvmtoprc");
	setenv("XDG_CONFIG_HOME", "relative", 1);
	assert_true(settings_path(path, sizeof(path)));
	assert_string_equal(path, "/home/u/.config/kvmtop/kvmtoprc");
	unsetenv("HOME");
	unsetenv("XDG_CONFIG_HOME");
	assert_false(settings_path(path, sizeof(path)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_fits_every_window),
		cmocka_unit_test(layout_is_as_documented),
		cmocka_unit_test(no_columns_overlap),
		cmocka_unit_test(columns_go_in_their_order),
		cmocka_unit_test(columns_are_whole),
		cmocka_unit_test(no_column_is_there_twice),
		cmocka_unit_test(no_key_is_bound_twice),
		cmocka_unit_test(every_function_key_has_a_letter),
		cmocka_unit_test(key_names),
		cmocka_unit_test(panes_have_keys_of_their_own),
		cmocka_unit_test(text_is_cut_at_the_area),
		cmocka_unit_test(wide_characters_are_never_halved),
		cmocka_unit_test(no_control_character_gets_in),
		cmocka_unit_test(prompt_edits),
		cmocka_unit_test(prompt_proposes),
		cmocka_unit_test(prompt_holds_utf8),
		cmocka_unit_test(thresholds),
		cmocka_unit_test(colours_are_of_their_depth),
		cmocka_unit_test(bars_are_legible),
		cmocka_unit_test(figures_on_the_selection_are_legible),
		cmocka_unit_test(environment_decides),
		cmocka_unit_test(settings_are_read),
		cmocka_unit_test(settings_come_back),
		cmocka_unit_test(settings_without_room),
		cmocka_unit_test(settings_path_follows_xdg),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
