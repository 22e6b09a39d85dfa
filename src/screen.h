// SPDX-License-Identifier: GPL-2.0-only
/*
 * The full screen on a terminal, whatever it shows: the frame that the live screen and the replay
 * share. It opens and closes terminal and signals, draws, and turns keys into requests.
 */
#ifndef KVMTOP_SCREEN_H
#define KVMTOP_SCREEN_H

#include <signal.h>
#include <stdbool.h>

#include "options.h"
#include "term_ncurses.h"
#include "ui.h"

struct screen {
	const struct options *o;
	struct terminal *term;
	struct ui *ui;
	struct surface *surface;
	int sigfd;
	sigset_t before; /* the signal mask that was found */
	bool quit, all; /* all: draw every cell anew */
	/* What a key asks of the caller; the screen has done its part. */
	void (*act)(void *ctx, const struct ui_request *r);
	void *ctx;
};

/* False, with a line on standard error, where there is no terminal. */
bool screen_possible(void);
/*
 * Zeroed but for o, act and ctx. Signals become readable: before any thread is made, so that all
 * inherit it. 0 or -errno with one line in err; screen_close() in any case.
 */
int screen_open_signals(struct screen *s, char *err, size_t size);
/* cfg: what is not of the options. */
int screen_open(struct screen *s, struct ui_config *cfg, char *err, size_t size);
void screen_draw(struct screen *s);
void screen_keys(struct screen *s); /* takes those that wait */
void screen_signals(struct screen *s);
/* The terminal first: whatever hangs after it, the user has the shell's screen. */
void screen_close_terminal(struct screen *s);
void screen_close(struct screen *s);

#endif
