// SPDX-License-Identifier: GPL-2.0-only
/*
 * The terminal: surfaces go out, keys come in. term_ncurses.c is the only file that knows
 * ncurses.
 *
 * One at a time in a process: ncurses itself is global, and so are signal handlers.
 */
#ifndef KVMTOP_TERM_NCURSES_H
#define KVMTOP_TERM_NCURSES_H

#include <stdbool.h>
#include <stdint.h>

#include "surface.h"
#include "theme.h"

struct terminal;

/*
 * Takes the terminal over. color: --color's word, NULL auto; ground: "dark", "light" or NULL.
 * An unknown TERM falls back to xterm-256color, vt100, ansi. -ENOTTY without a terminal,
 * -EINVAL for a word that is none, -ENODEV where no terminal description is to be had; err
 * gets one line.
 */
int term_open(const char *color, const char *ground, struct terminal **out, char *err,
	      size_t errsize);
/* Gives the terminal back as it was. NULL is fine. */
void term_close(struct terminal *t);
void term_size(const struct terminal *t, int *rows, int *cols);
bool term_utf8(const struct terminal *t);
/* A descriptor that is readable when a key waits. */
int term_fd(const struct terminal *t);
/* The next key without waiting; 0: none. UK_RESIZE: the size has changed. */
uint32_t term_key(struct terminal *t);
/* The terminal was hung up or closed: nothing more will come. */
bool term_gone(const struct terminal *t);
/* Puts the changed cells out. all: draws everything anew (^L, after a stop). */
void term_show(struct terminal *t, const struct surface *s, bool all);
/* The size is read again: after SIGWINCH. */
void term_resized(struct terminal *t);
/* Gives the terminal back, stops the process, takes the terminal again when it goes on. */
void term_suspend(struct terminal *t);

#endif
