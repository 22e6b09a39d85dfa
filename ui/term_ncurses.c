// SPDX-License-Identifier: GPL-2.0-only
/* ncurses, and nothing else does it (term_ncurses.h). */
#include "term_ncurses.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "keymap.h"

/* How long an Esc waits for the rest of a key's sequence. */
#define ESC_DELAY_MS 50
#define MAX_PAIRS 256

struct terminal {
	SCREEN *screen;
	FILE *out, *in;
	struct theme theme;
	bool utf8, gone;
	struct termios tty; /* as it was found */
	struct {
		int32_t fg, bg;
	} pair[MAX_PAIRS];
	int npairs, pair_limit;
	struct surface *shown; /* what ncurses has of the last picture; NULL: nothing for sure */
};

/*
 * What a signal handler needs to give the terminal back: it may call write() and tcsetattr()
 * and nothing of ncurses. Written once, before the handlers are installed.
 */
static struct {
	volatile sig_atomic_t armed;
	struct termios tty;
	char text[256];
	size_t len;
} rescue;

/* Crashes, and what else ends a process that does not ask for it (RLIMIT_CPU's SIGXCPU). */
static const int crash_signals[] = {SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,	SIGABRT, SIGSYS,
				    SIGTRAP, SIGXCPU, SIGUSR1, SIGUSR2, SIGALRM, SIGIO};
#define NCRASH (sizeof(crash_signals) / sizeof(crash_signals[0]))

static void give_back(int sig)
{
	if (rescue.armed) {
		rescue.armed = 0;
		if (write(STDOUT_FILENO, rescue.text, rescue.len) < 0) {
			/* Nothing is left to be done about it. */
		}
		tcsetattr(STDIN_FILENO, TCSANOW, &rescue.tty);
	}
	/* SA_RESETHAND: the second time it kills as it would have, with the core it would make. */
	raise(sig);
}

static void add_rescue(const char *cap)
{
	size_t n = cap && cap != (char *)-1 ? strlen(cap) : 0;

	if (rescue.len + n > sizeof(rescue.text))
		return;
	if (n)
		memcpy(rescue.text + rescue.len, cap, n);
	rescue.len += n;
}

/* The capabilities are strings of this terminal; delays ($<5>) are cut off where they begin. */
static void add_cap(const char *name)
{
	char cap[64];
	const char *s = tigetstr((char *)(uintptr_t)name);
	char *pad;

	if (!s || s == (char *)-1 || snprintf(cap, sizeof(cap), "%s", s) >= (int)sizeof(cap))
		return;
	pad = strstr(cap, "$<");
	if (pad)
		*pad = '\0';
	add_rescue(cap);
}

static void arm_rescue(const struct terminal *t)
{
	struct sigaction sa = {.sa_handler = give_back, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

	rescue.armed = 0;
	rescue.tty = t->tty;
	rescue.len = 0;
	add_cap("sgr0");
	add_cap("op");
	add_cap("rmkx");
	add_cap("cnorm");
	add_cap("rmcup");
	add_rescue("\r\n");
	rescue.armed = 1;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < NCRASH; i++)
		sigaction(crash_signals[i], &sa, NULL);
}

static void disarm_rescue(void)
{
	rescue.armed = 0;
	for (size_t i = 0; i < NCRASH; i++)
		signal(crash_signals[i], SIG_DFL);
}

/*
 * True colours need a description with direct colours: beside "xterm-256color" there is
 * "xterm-direct" where ncurses-term is installed. Without it 256 colours have to do.
 */
static SCREEN *open_direct(const struct terminal *t, const char *name)
{
	char direct[64];
	int err;

	if (snprintf(direct, sizeof(direct), "%.*s-direct", (int)strcspn(name, "-"), name) >=
	    (int)sizeof(direct))
		return NULL;
	if (setupterm(direct, fileno(t->out), &err) != OK)
		return NULL;
	del_curterm(cur_term);
	return newterm(direct, t->out, t->in);
}

static SCREEN *open_screen(struct terminal *t, const char *color)
{
	static const char *const fallback[] = {"xterm-256color", "vt100", "ansi"};
	const char *name = getenv("TERM"), *ct = getenv("COLORTERM"), *no = getenv("NO_COLOR");
	bool want = color && !strcasecmp(color, "truecolor");
	SCREEN *s = NULL;

	if (!color || !strcasecmp(color, "auto") || !strcasecmp(color, "always"))
		want = ct && (!strcasecmp(ct, "truecolor") || !strcasecmp(ct, "24bit"));
	if ((!color || !strcasecmp(color, "auto")) && no && *no)
		want = false;
	if (name && *name && want)
		s = open_direct(t, name);
	if (!s && name && *name)
		s = newterm(name, t->out, t->in);
	for (size_t i = 0; !s && i < sizeof(fallback) / sizeof(fallback[0]); i++)
		s = newterm(fallback[i], t->out, t->in);
	return s;
}

/* What the description can really do bounds what was asked for. */
static void settle_depth(struct terminal *t)
{
	if (!has_colors() || start_color() == ERR || COLORS < 8) {
		t->theme.depth = DEPTH_MONO;
		return;
	}
	use_default_colors();
	if (t->theme.depth == DEPTH_TRUE && COLORS <= 256)
		t->theme.depth = DEPTH_256;
	if (t->theme.depth == DEPTH_256 && COLORS < 256)
		t->theme.depth = DEPTH_8;
	t->pair_limit = COLOR_PAIRS < MAX_PAIRS ? COLOR_PAIRS : MAX_PAIRS;
	t->npairs = 1;
}

static void set_modes(struct terminal *t)
{
	raw();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	typeahead(-1); /* a picture is some hundred bytes: no key need be looked for within it */
	set_escdelay(ESC_DELAY_MS);
	curs_set(0);
	(void)t;
}

/* Where the terminal can be read and written; 0 or -errno. */
static int take_tty(struct terminal *t, char *err, size_t errsize)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &t->tty) < 0) {
		snprintf(err, errsize, "no terminal: use kvmtop --batch");
		return -ENOTTY;
	}
	t->in = stdin;
	t->out = stdout;
	return 0;
}

static bool has_cap(const char *name)
{
	const char *s = tigetstr((char *)(uintptr_t)name);

	return s && s != (char *)-1;
}

int term_open(const char *color, const char *ground, struct terminal **out, char *err,
	      size_t errsize)
{
	struct terminal *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = take_tty(t, err, errsize);
	if (r < 0)
		goto fail;
	/* The terminal knows its size; LINES and COLUMNS may be somebody else's, or nonsense. */
	use_tioctl(TRUE);
	r = -EINVAL;
	if (!theme_choose(color, 256, &t->theme)) {
		snprintf(err, errsize, "--color is auto, never, always, 8, 256 or truecolor");
		goto fail;
	}
	if (!theme_ground(ground, &t->theme))
		theme_ground(NULL, &t->theme);
	setlocale(LC_CTYPE, "");
	t->utf8 = strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0;
	t->screen = open_screen(t, color);
	r = -ENODEV;
	if (!t->screen) {
		snprintf(err, errsize,
			 "no description of any terminal: install ncurses-base, or use --batch");
		goto fail;
	}
	set_term(t->screen);
	if (!has_cap("cup")) {
		snprintf(err, errsize,
			 "this TERM cannot place its cursor: set the terminal's own, or use "
			 "kvmtop --batch");
		endwin();
		delscreen(t->screen);
		goto fail;
	}
	theme_choose(color, tigetnum((char *)(uintptr_t) "colors"), &t->theme);
	/*
	 * Until it was left once, ncurses flushes at each move of the cursor: some thirty writes
	 * for a screen, each of which wakes whoever shows it.
	 */
	endwin();
	settle_depth(t);
	set_modes(t);
	arm_rescue(t);
	*out = t;
	return 0;
fail:
	free(t);
	return r;
}

void term_close(struct terminal *t)
{
	if (!t)
		return;
	endwin();
	disarm_rescue();
	tcsetattr(STDIN_FILENO, TCSADRAIN, &t->tty);
	delscreen(t->screen);
	surface_free(t->shown);
	free(t);
}

void term_size(const struct terminal *t, int *rows, int *cols)
{
	(void)t;
	*rows = LINES;
	*cols = COLS;
}

bool term_utf8(const struct terminal *t)
{
	return t->utf8;
}

int term_fd(const struct terminal *t)
{
	return fileno(t->in);
}

bool term_gone(const struct terminal *t)
{
	return t->gone;
}

void term_resized(struct terminal *t)
{
	struct winsize w;

	surface_free(t->shown); /* what is cut off does not come back by itself */
	t->shown = NULL;
	if (ioctl(fileno(t->out), TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0)
		resizeterm(w.ws_row, w.ws_col);
}

static uint32_t map_key(wint_t c)
{
	static const struct {
		int curses;
		uint32_t key;
	} map[] = {
		{KEY_UP, UK_UP},
		{KEY_DOWN, UK_DOWN},
		{KEY_LEFT, UK_LEFT},
		{KEY_RIGHT, UK_RIGHT},
		{KEY_PPAGE, UK_PGUP},
		{KEY_NPAGE, UK_PGDN},
		{KEY_HOME, UK_HOME},
		{KEY_END, UK_END},
		{KEY_FIND, UK_HOME},
		{KEY_SELECT, UK_END},
		{KEY_IC, UK_INSERT},
		{KEY_DC, UK_DELETE},
		{KEY_BACKSPACE, UK_BACKSPACE},
		{KEY_BTAB, UK_BACKTAB},
		{KEY_ENTER, UK_ENTER},
		{KEY_RESIZE, UK_RESIZE},
	};

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if ((wint_t)map[i].curses == c)
			return map[i].key;
	if (c > KEY_F0 && c <= KEY_F0 + 12)
		return UK_F0 + (uint32_t)(c - KEY_F0);
	return 0;
}

/* A terminal that is gone is always readable and never has a key. */
static void check_gone(struct terminal *t)
{
	struct pollfd p = {.fd = fileno(t->in), .events = POLLIN};

	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)))
		t->gone = true;
}

uint32_t term_key(struct terminal *t)
{
	wint_t c;

	for (;;) {
		int r = get_wch(&c);
		uint32_t key;

		if (r == ERR) {
			check_gone(t);
			return 0;
		}
		if (r == OK)
			return c == 0x7f ? UK_BACKSPACE : (uint32_t)c;
		key = map_key(c);
		/* A key that has no name here is no key. */
		if (key)
			return key;
	}
}

/* The pair of these colours; 0 (the terminal's own) when there is no room for another. */
static short pair_of(struct terminal *t, int32_t fg, int32_t bg)
{
	if (fg == COLOR_NONE && bg == COLOR_NONE)
		return 0;
	for (int i = 1; i < t->npairs; i++)
		if (t->pair[i].fg == fg && t->pair[i].bg == bg)
			return (short)i;
	if (t->npairs >= t->pair_limit || init_extended_pair(t->npairs, (int)fg, (int)bg) == ERR)
		return 0;
	t->pair[t->npairs].fg = fg;
	t->pair[t->npairs].bg = bg;
	return (short)t->npairs++;
}

static void put_cell(struct terminal *t, int y, int x, const struct surf_cell *c)
{
	struct style st = theme_style(&t->theme, c->role, c->attr);
	wchar_t text[3] = {(wchar_t)c->cp, (wchar_t)c->mark, 0};
	attr_t attrs = 0;
	cchar_t cc;

	if (!t->utf8 && c->cp > 0x7e) {
		text[0] = '?';
		text[1] = 0;
	}
	attrs |= st.bold ? A_BOLD : 0;
	attrs |= st.dim ? A_DIM : 0;
	attrs |= st.reverse ? A_REVERSE : 0;
	attrs |= st.underline ? A_UNDERLINE : 0;
	setcchar(&cc, text, attrs, pair_of(t, st.fg, st.bg), NULL);
	mvadd_wch(y, x, &cc);
	if (!t->utf8 && c->width == 2)
		mvadd_wch(y, x + 1, &cc);
}

_Static_assert(sizeof(struct surf_cell) == 12, "no bytes that nobody sets");

static bool same_cell(const struct surf_cell *a, const struct surf_cell *b)
{
	return a->cp == b->cp && a->mark == b->mark && a->width == b->width && a->role == b->role &&
	       a->attr == b->attr;
}

/* Most lines have not changed in any byte, which is the fastest to see. */
static void put_line(struct terminal *t, int y, const struct surf_cell *cell, int cols, bool anew)
{
	struct surf_cell *shown = t->shown ? &t->shown->cell[(ptrdiff_t)y * cols] : NULL;

	if (shown && !anew && !memcmp(shown, cell, (size_t)cols * sizeof(*cell)))
		return;
	for (int x = 0; x < cols; x++) {
		const struct surf_cell *c = &cell[x];

		if (shown && !anew && same_cell(&shown[x], c))
			continue;
		if (c->width)
			put_cell(t, y, x, c);
		if (shown)
			shown[x] = *c;
	}
}

/*
 * Most of a picture is that of the interval before. ncurses finds out for itself, but a cell costs
 * more on its way there than all that was done to draw it.
 */
static void put_cells(struct terminal *t, const struct surface *s, int rows, int cols, bool all)
{
	bool anew = all || !t->shown || t->shown->rows != rows || t->shown->cols != cols;

	if (anew) {
		surface_free(t->shown);
		t->shown = surface_new(rows, cols); /* without memory each time all of it */
		erase();
	}
	for (int y = 0; y < rows; y++)
		put_line(t, y, &s->cell[(ptrdiff_t)y * s->cols], cols, anew);
}

void term_show(struct terminal *t, const struct surface *s, bool all)
{
	int rows = s->rows < LINES ? s->rows : LINES, cols = s->cols < COLS ? s->cols : COLS;

	if (all)
		clearok(stdscr, TRUE);
	put_cells(t, s, rows, cols, all);
	if (s->cur_y >= 0 && s->cur_y < rows && s->cur_x >= 0 && s->cur_x < cols) {
		move(s->cur_y, s->cur_x);
		curs_set(1);
	} else {
		curs_set(0);
	}
	wnoutrefresh(stdscr);
	doupdate();
}

void term_suspend(struct terminal *t)
{
	sigset_t stop, before;

	endwin();
	tcsetattr(fileno(t->in), TCSADRAIN, &t->tty);
	/* SIGTSTP is read through a descriptor elsewhere: here it must act. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, &before);
	signal(SIGTSTP, SIG_DFL);
	kill(0, SIGTSTP);
	sigprocmask(SIG_SETMASK, &before, NULL);
	set_modes(t);
	term_resized(t);
	refresh();
}
