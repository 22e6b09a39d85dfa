// SPDX-License-Identifier: GPL-2.0-only
/*
 * The terminal: only cells that changed are given to ncurses, which then has the same picture as if
 * all of them had been.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

#include <curses.h>

#include "surface.h"
#include "term_ncurses.h"

enum { ROWS = 20, COLUMNS = 50, PICTURES = 400 };

/* ncurses' own number of the colours of a role with its attributes, as first seen; -1: not yet. */
static int pair_of[ROLE_NR][8];

static unsigned rnd(unsigned below)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(x >> 33) % below;
}

/* Wide characters, combining ones and narrow ones, over each other's halves too. */
static void scribble(struct surface *s)
{
	static const char *const words[] = {"plain", "ñandú", "名前", "e\xcc\x81",
					    "a名b",  " ",     "────"};
	const struct area a = area_all(s);

	if (rnd(20) == 0)
		surface_clear(s);
	for (unsigned n = rnd(12); n; n--) {
		int y = (int)rnd(ROWS), x = (int)rnd(COLUMNS);

		area_text(&a, y, x, (enum role)rnd(ROLE_NR),
			  words[rnd(sizeof(words) / sizeof(words[0]))]);
		if (rnd(3) == 0)
			area_attr(&a, y, x, 3, 1u << rnd(3));
	}
}

static bool shows(const struct surf_cell *c, int y, int x)
{
	wchar_t text[CCHARW_MAX + 1] = L"";
	attr_t attrs;
	cchar_t cc;
	short pair;

	if (mvin_wch(y, x, &cc) == ERR || getcchar(&cc, text, &attrs, &pair, NULL) == ERR)
		return false;
	if (pair_of[c->role][c->attr & 7] < 0)
		pair_of[c->role][c->attr & 7] = pair;
	return (uint32_t)text[0] == c->cp && (uint32_t)text[1] == c->mark &&
	       pair_of[c->role][c->attr & 7] == pair;
}

/* 0, or the number of the picture that differs. */
static int draw_many(struct terminal *t)
{
	struct surface *s = surface_new(ROWS, COLUMNS);

	for (int i = 1; i <= PICTURES; i++) {
		scribble(s);
		if (rnd(40) == 0)
			term_resized(t); /* to the size that it has */
		term_show(t, s, rnd(50) == 0);
		for (int y = 0; y < ROWS; y++)
			for (int x = 0; x < COLUMNS; x++) {
				const struct surf_cell *c = &s->cell[y * COLUMNS + x];

				if (c->width && !shows(c, y, x))
					return i;
			}
	}
	surface_free(s);
	return 0;
}

/* In a process of its own, whose terminal this is. Ends it: 0 well, 1 a picture differs, 2 it has
 * no terminal. */
static void child(const char *tty)
{
	const struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};
	struct terminal *t;
	char err[200];
	int fd, wrong;

	setsid();
	fd = open(tty, O_RDWR);
	if (fd < 0 || ioctl(fd, TIOCSWINSZ, &size))
		_exit(2);
	setenv("TERM", "xterm-256color", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
	    term_open("256", NULL, &t, err, sizeof(err)))
		_exit(2);
	if (!term_utf8(t))
		_exit(2);
	memset(pair_of, 0xff, sizeof(pair_of));
	wrong = draw_many(t);
	term_close(t);
	if (wrong)
		fprintf(stderr, "picture %d\n", wrong);
	_exit(wrong != 0);
}

static void changes_make_the_whole_picture(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), status;
	char buf[65536];
	pid_t pid;

	(void)state;
	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(ptsname(master));
	while (read(master, buf, sizeof(buf)) > 0) /* an error when the child has ended */
		;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(master);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_make_the_whole_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
