// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one key table: dispatch, the help screen, the bottom bar and the man page's section are
 * all made from it.
 */
#ifndef KVMTOP_KEYMAP_H
#define KVMTOP_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A key: a code point (control keys are 1–31), or one of these. Numbers above Unicode, so that
 * the two never meet.
 */
enum {
	UK_BASE = 0x200000,
	UK_UP,
	UK_DOWN,
	UK_LEFT,
	UK_RIGHT,
	UK_PGUP,
	UK_PGDN,
	UK_HOME,
	UK_END,
	UK_INSERT,
	UK_DELETE,
	UK_BACKSPACE,
	UK_BACKTAB,
	UK_RESIZE,
	UK_F0, /* UK_F0 + n is Fn */
	UK_F12 = UK_F0 + 12,
};
#define UK_ENTER 13
#define UK_TAB 9
#define UK_ESC 27
#define UK_CTRL(c) ((uint32_t)(c)&0x1f)

enum action {
	ACT_NONE,
	ACT_QUIT,
	ACT_HELP,
	ACT_UP,
	ACT_DOWN,
	ACT_PGUP,
	ACT_PGDN,
	ACT_FIRST,
	ACT_LAST,
	ACT_LEFT,
	ACT_RIGHT,
	ACT_OPEN,
	ACT_BACK,
	ACT_PANE, /* the digit is the key itself */
	ACT_FOCUS,
	ACT_FOCUS_BACK,
	ACT_VCPUS,
	ACT_KIND,
	ACT_KIND_BACK,
	ACT_DOMAIN, /* which one is the key itself */
	ACT_SORT,
	ACT_SORT_PREV,
	ACT_SORT_NEXT,
	ACT_REVERSE,
	ACT_FILTER,
	ACT_SEARCH,
	ACT_SEARCH_NEXT,
	ACT_SEARCH_PREV,
	ACT_COLUMNS,
	ACT_DELAY,
	ACT_FASTER,
	ACT_SLOWER,
	ACT_PAUSE,
	ACT_STEP_BACK,
	ACT_STEP_ON,
	ACT_MINUTE_BACK,
	ACT_MINUTE_ON,
	ACT_GO_TO,
	ACT_WORST,
	ACT_RESET,
	ACT_TOTALS,
	ACT_IDLE,
	ACT_SLOW,
	ACT_FINE,
	ACT_INFO,
	ACT_DEMO,
	ACT_SAVE,
	ACT_SETTINGS,
	ACT_REDRAW,
	ACT_SUSPEND,
	ACT_TOGGLE, /* menus: on/off, move */
	ACT_MOVE_UP,
	ACT_MOVE_DOWN,
	ACT_DEFAULTS,
	ACT_NR
};

/* Where a key is meant for; a row of the table can be for several. */
enum key_context {
	CTX_MAIN = 1, /* list or pane has the focus */
	CTX_HELP = 2,
	CTX_MENU = 4,
	CTX_ALL = 7,
	CTX_SYMBOLS = 8, /* the pane Symbols has the focus: before CTX_MAIN */
};

struct key_row {
	enum action action;
	unsigned contexts; /* enum key_context */
	uint32_t keys[6]; /* ends with 0 */
	const char *id; /* what tests call it */
	const char *bar; /* in the bottom bar; NULL: not there */
	const char *help; /* one line */
};

const struct key_row *keymap_rows(size_t *n);
/* What a key does in one context; ACT_NONE: nothing. */
enum action keymap_find(uint32_t key, enum key_context ctx);
/* "q", "F10", "^C", "Enter", "space", "left". Returns buf. */
const char *keymap_name(uint32_t key, char *buf, size_t size);
/* All keys of a row: "q F10 ^C"; of ACT_PANE the digits of the panes there are, "12356". Returns
 * buf. */
const char *keymap_keys(const struct key_row *row, char *buf, size_t size);

#endif
