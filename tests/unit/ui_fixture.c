// SPDX-License-Identifier: GPL-2.0-only
/* The screen under test (ui_fixture.h). */
#include "ui_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "keymap.h"

void put_snapshot(struct fixture *f, struct snapshot *s)
{
	ui_snapshot(f->ui, s);
	snapshot_unref(s);
	ui_draw(f->ui, f->s);
}

void next_snapshot(struct fixture *f)
{
	struct snapshot *s;

	f->made.step = f->step++;
	s = made_snapshot(&f->made);
	assert_non_null(s);
	put_snapshot(f, s);
}

int setup(void **state)
{
	const struct ui_config cfg = {.delay_s = 1, .utc = true, .can_demo = true};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ui = ui_new(&cfg);
	f->s = surface_new(24, 80);
	f->made.nvms = 8;
	assert_non_null(f->ui);
	assert_non_null(f->s);
	next_snapshot(f);
	*state = f;
	return 0;
}

int setup_replay(void **state)
{
	const struct ui_config cfg = {.delay_s = 1, .utc = true, .can_demo = true, .replay = true};
	struct fixture *f;

	if (setup(state))
		return -1;
	f = *state;
	ui_free(f->ui);
	f->ui = ui_new(&cfg);
	assert_non_null(f->ui);
	next_snapshot(f);
	return 0;
}

int teardown(void **state)
{
	struct fixture *f = *state;

	ui_free(f->ui);
	surface_free(f->s);
	free(f);
	return 0;
}

struct ui_request press(struct fixture *f, uint32_t key)
{
	struct ui_request r = ui_key(f->ui, key);

	ui_draw(f->ui, f->s);
	return r;
}

void type(struct fixture *f, const char *keys)
{
	for (; *keys; keys++)
		press(f, (unsigned char)*keys);
}

const char *line(const struct fixture *f, int y)
{
	static char text[1024];
	char *all = NULL, *at, *end;
	size_t n;
	FILE *m = open_memstream(&all, &n);

	assert_non_null(m);
	surface_dump(f->s, m);
	fclose(m);
	at = all;
	while (y--)
		at = strchr(at, '\n') + 1;
	end = strchr(at, '\n');
	snprintf(text, sizeof(text), "%.*s", (int)(end - at), at);
	free(all);
	return text;
}

bool on_screen(const struct fixture *f, const char *text)
{
	for (int y = 0; y < f->s->rows; y++)
		if (strstr(line(f, y), text))
			return true;
	return false;
}

const char *selected(const struct fixture *f)
{
	for (int y = 0; y < f->s->rows; y++)
		if (f->s->cell[y * f->s->cols + 1].attr & CELL_SELECTED)
			return line(f, y);
	return "";
}

void resize(struct fixture *f, int rows, int cols)
{
	assert_int_equal(surface_resize(f->s, rows, cols), 0);
	ui_draw(f->ui, f->s);
}
