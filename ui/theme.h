// SPDX-License-Identifier: GPL-2.0-only
/*
 * Colour by role: what a cell means is said by whoever draws it, how that looks is said here,
 * for true colours (where terminfo has them), 256 and 8 colours and none, on dark and on light
 * backgrounds.
 */
#ifndef KVMTOP_THEME_H
#define KVMTOP_THEME_H

#include <stdbool.h>
#include <stdint.h>

enum role {
	ROLE_TEXT,
	ROLE_DIM, /* what is of less interest: labels, zeroes, idle */
	ROLE_STRONG, /* names, what is looked for */
	ROLE_BRAND, /* "kvmtop" in the head */
	ROLE_HEAD, /* column heads, a bar */
	ROLE_HEAD_SORT, /* the head that is sorted by */
	ROLE_FRAME, /* lines, titles of panes */
	ROLE_TAB, /* a pane that is not shown */
	ROLE_TAB_ON, /* the one that is */
	ROLE_KEY, /* a key in the bottom bar and in help */
	ROLE_BAR, /* its text */
	ROLE_GOOD,
	ROLE_NOTICE,
	ROLE_WARN, /* over the first threshold */
	ROLE_ALARM, /* over the second */
	ROLE_MISSING, /* a source that is not there */
	ROLE_PAUSED,
	ROLE_INPUT, /* what is typed */
	ROLE_GUEST, /* graphs: time in the guest */
	ROLE_SYS, /* … in the kernel */
	ROLE_USR, /* … in user space */
	ROLE_IRQ,
	ROLE_STEAL, /* waiting for a CPU */
	ROLE_QUOTA, /* held back by its own quota */
	ROLE_HEAT0, /* heat maps: eight shades, few to many */
	ROLE_HEAT1,
	ROLE_HEAT2,
	ROLE_HEAT3,
	ROLE_HEAT4,
	ROLE_HEAT5,
	ROLE_HEAT6,
	ROLE_HEAT7,
	ROLE_NR
};

enum cell_attr {
	CELL_SELECTED = 1, /* the selection bar */
	CELL_BLURRED = 2, /* … in a list that has not the focus */
	CELL_MATCH = 4, /* what a search found */
};

enum theme_depth { DEPTH_MONO, DEPTH_8, DEPTH_256, DEPTH_TRUE };
enum theme_ground { GROUND_DARK, GROUND_LIGHT };

#define COLOR_NONE (-1) /* the terminal's own */

struct style {
	int32_t fg, bg; /* COLOR_NONE, 0–7, 0–255 or 0xrrggbb, by depth */
	bool bold, dim, reverse, underline;
};

struct theme {
	enum theme_depth depth;
	enum theme_ground ground;
};

struct style theme_style(const struct theme *t, enum role role, unsigned attr);
/* The role of a figure against its thresholds (0: none). */
enum role theme_level(double v, double warn, double alarm);
/*
 * What the user wants (--color: auto, never, always, 8, 256, truecolor; NULL: auto) against
 * what there is: NO_COLOR, COLORTERM, COLORFGBG from the environment, the terminal's number
 * of colours. False for a word that is none of these.
 */
bool theme_choose(const char *want, int term_colors, struct theme *out);
/* "dark", "light" or "auto" (COLORFGBG, else dark). False for another word. */
bool theme_ground(const char *word, struct theme *out);
/* For golden tests: a letter a role, upper case on the selection bar, '.' for plain text. */
char theme_role_letter(enum role role, unsigned attr);
const char *theme_role_name(enum role role);

#endif
