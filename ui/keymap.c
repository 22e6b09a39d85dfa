// SPDX-License-Identifier: GPL-2.0-only
/* The key table (keymap.h). A new key is a row here and a case in ui_act.c. */
#include "keymap.h"

#include <stdio.h>
#include <string.h>

#include "pane.h"
#include "text.h"

#define F(n) (UK_F0 + (n))

/* clang-format off */
static const struct key_row rows[] = {
	{ACT_OPEN, CTX_ALL, {UK_ENTER}, "open", "open",
	 "open what is selected: VM, then vCPU, then the row of a pane; in a menu: choose"},
	{ACT_BACK, CTX_ALL, {UK_ESC, UK_BACKSPACE, UK_CTRL('H')}, "back", "back",
	 "close prompt, menu or help; else clear the filter; else go up a level; never quits"},
	{ACT_UP, CTX_ALL, {UK_UP, 'k'}, "up", NULL, "one row up"},
	{ACT_DOWN, CTX_ALL, {UK_DOWN, 'j'}, "down", NULL, "one row down"},
	{ACT_PGUP, CTX_ALL, {UK_PGUP, UK_CTRL('B')}, "page-up", NULL, "a page up"},
	{ACT_PGDN, CTX_ALL, {UK_PGDN, UK_CTRL('F')}, "page-down", NULL, "a page down"},
	{ACT_FIRST, CTX_ALL, {UK_HOME, 'g'}, "first", NULL,
	 "first row; of VMs it is (all): all of them together"},
	{ACT_LAST, CTX_ALL, {UK_END, 'G'}, "last", NULL, "last row"},
	{ACT_LEFT, CTX_ALL, {UK_LEFT}, "left", NULL, "scroll columns left; in help: the tab before"},
	{ACT_RIGHT, CTX_ALL, {UK_RIGHT}, "right", NULL, "scroll columns right; in help: the next tab"},
	{ACT_PANE, CTX_MAIN, {'1'}, "pane", "panes",
	 "the pane of that number, for what is selected"},
	{ACT_VCPUS, CTX_MAIN, {'v'}, "vcpus", "vCPUs", "a row a VM, or a row a vCPU of the whole host"},
	{ACT_FOCUS, CTX_MAIN | CTX_HELP, {UK_TAB}, "focus", "focus",
	 "from the list to the pane and back; in help: the next tab"},
	{ACT_FOCUS_BACK, CTX_MAIN | CTX_HELP, {UK_BACKTAB}, "focus-back", NULL,
	 "the same, the other way round"},
	{ACT_KIND, CTX_MAIN, {'e'}, "kind", "kind",
	 "next kind in the panes Exits (vmexit, userexit, halt) and Access (mmio, ioport, msr, hypercall)"},
	{ACT_KIND_BACK, CTX_MAIN, {'E'}, "kind-back", NULL, "the kind before"},
	{ACT_DOMAIN, CTX_SYMBOLS, {'H', 'G', 'K', 'U'}, "domain", "domains",
	 "in the pane Symbols: host, guest, kernel, user on or off (End goes to the last row there)"},
	{ACT_SORT, CTX_MAIN, {'s', F(6)}, "sort", "sort", "choose the column to sort by"},
	{ACT_SORT_PREV, CTX_MAIN, {'<'}, "sort-left", NULL, "sort by the column to the left"},
	{ACT_SORT_NEXT, CTX_MAIN, {'>'}, "sort-right", NULL, "sort by the column to the right"},
	{ACT_REVERSE, CTX_MAIN, {'I'}, "reverse", NULL, "turn the order round"},
	{ACT_FILTER, CTX_MAIN, {'f', F(4)}, "filter", "filter",
	 "show only rows in which this text occurs"},
	{ACT_SEARCH, CTX_MAIN, {'/', F(3)}, "search", NULL, "go to a row in which this text occurs"},
	{ACT_SEARCH_NEXT, CTX_MAIN, {'n'}, "search-next", NULL, "the next such row"},
	{ACT_SEARCH_PREV, CTX_MAIN, {'N'}, "search-back", NULL, "the one before"},
	{ACT_COLUMNS, CTX_MAIN, {'C', F(2)}, "columns", NULL, "choose the columns"},
	{ACT_DELAY, CTX_MAIN, {'d'}, "delay", NULL, "type the interval in seconds"},
	{ACT_SLOWER, CTX_MAIN, {'+'}, "longer", NULL, "a longer interval; in replay: twice as fast"},
	{ACT_FASTER, CTX_MAIN, {'-'}, "shorter", NULL, "a shorter interval; in replay: half as fast"},
	{ACT_PAUSE, CTX_MAIN, {' '}, "pause", "pause",
	 "hold the picture (collecting goes on) and let it go; in replay: play and stop"},
	{ACT_STEP_BACK, CTX_MAIN, {','}, "step-back", "back",
	 "one interval back in the last minutes, which are kept in memory"},
	{ACT_STEP_ON, CTX_MAIN, {'.'}, "step-on", "on", "one interval on"},
	{ACT_MINUTE_BACK, CTX_MAIN, {'['}, "minute-back", NULL, "in replay: one minute back"},
	{ACT_MINUTE_ON, CTX_MAIN, {']'}, "minute-on", NULL, "in replay: one minute on"},
	{ACT_GO_TO, CTX_MAIN, {'b'}, "go-to", "go to",
	 "in replay: go to a time: 03:12, yesterday 03:12, 2026-11-29T03:12, or -2h from the end"},
	{ACT_WORST, CTX_MAIN, {'w'}, "worst", "worst",
	 "in replay: go to the moment in which a vCPU waited most; again: to the next worst"},
	{ACT_RESET, CTX_MAIN, {'r'}, "reset", NULL, "set the totals to zero"},
	{ACT_TOTALS, CTX_MAIN, {'t'}, "totals", NULL,
	 "exits: of the interval, or since start or reset"},
	{ACT_IDLE, CTX_MAIN, {'a'}, "idle", NULL, "idle exits (HLT and the like) in the table or not"},
	{ACT_SLOW, CTX_MAIN, {'x'}, "slow", NULL,
	 "look for single slow exits: type how long is slow (500us); again: no more"},
	{ACT_FINE, CTX_MAIN, {'z'}, "fine", NULL,
	 "in the pane Exits of a vCPU: the histogram over time in tenths of the interval, of each of its events; again, or another selection: no more"},
	{ACT_INFO, CTX_MAIN, {'i'}, "info", NULL,
	 "the row in full: name, UUID, PID, command line, cgroup, quota, pins"},
	{ACT_DEMO, CTX_MAIN, {'D'}, "demo", NULL, "start the demo's guests when there are none"},
	{ACT_SAVE, CTX_MAIN | CTX_HELP, {'P'}, "save", NULL, "save this screen as text"},
	{ACT_SETTINGS, CTX_MAIN, {'W'}, "write", NULL, "write columns, sorting and theme as settings"},
	{ACT_REDRAW, CTX_ALL, {UK_CTRL('L')}, "redraw", NULL, "draw the screen anew"},
	{ACT_SUSPEND, CTX_ALL, {UK_CTRL('Z')}, "suspend", NULL, "suspend; fg comes back"},
	{ACT_TOGGLE, CTX_MENU, {' '}, "toggle", NULL, "in a menu: on or off"},
	{ACT_MOVE_DOWN, CTX_MENU, {'+'}, "move-down", NULL, "column menu: one place to the right"},
	{ACT_MOVE_UP, CTX_MENU, {'-'}, "move-up", NULL, "column menu: one place to the left"},
	{ACT_DEFAULTS, CTX_MENU, {'R'}, "defaults", NULL, "column menu: the columns as at first"},
	{ACT_HELP, CTX_ALL, {'?', 'h', F(1)}, "help", "help",
	 "this help: keys, columns, the selected row, and names known from other tools"},
	{ACT_QUIT, CTX_ALL, {'q', F(10), UK_CTRL('C')}, "quit", "quit",
	 "quit; in help or a menu: close it"},
};
/* clang-format on */

const struct key_row *keymap_rows(size_t *n)
{
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

enum action keymap_find(uint32_t key, enum key_context ctx)
{
	/* A terminal may send either for the Enter key. */
	if (key == '\n')
		key = UK_ENTER;
	if (key >= '0' && key <= '9' && ctx == CTX_MAIN)
		return ACT_PANE;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!(rows[i].contexts & ctx))
			continue;
		for (const uint32_t *k = rows[i].keys; *k; k++)
			if (*k == key)
				return rows[i].action;
	}
	return ACT_NONE;
}

const char *keymap_name(uint32_t key, char *buf, size_t size)
{
	static const struct {
		uint32_t key;
		const char *name;
	} names[] = {
		{UK_UP, "up"},	     {UK_DOWN, "down"},	     {UK_LEFT, "left"},
		{UK_RIGHT, "right"}, {UK_PGUP, "PgUp"},	     {UK_PGDN, "PgDn"},
		{UK_HOME, "Home"},   {UK_END, "End"},	     {UK_INSERT, "Insert"},
		{UK_DELETE, "Del"},  {UK_BACKSPACE, "Bksp"}, {UK_BACKTAB, "S-Tab"},
		{UK_ENTER, "Enter"}, {UK_TAB, "Tab"},	     {UK_ESC, "Esc"},
		{' ', "space"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].key == key) {
			snprintf(buf, size, "%s", names[i].name);
			return buf;
		}
	}
	if (key > UK_F0 && key <= UK_F12)
		snprintf(buf, size, "F%u", key - UK_F0);
	else if (key < 0x20)
		snprintf(buf, size, "^%c", (char)(key + '@'));
	else
		snprintf(buf, size, "%c", key < 0x7f ? (char)key : '?');
	return buf;
}

const char *keymap_keys(const struct key_row *row, char *buf, size_t size)
{
	size_t at = 0;
	char one[16];

	if (row->action == ACT_PANE)
		return panes_keys(buf, size);
	buf[0] = '\0';
	for (const uint32_t *k = row->keys; *k; k++) {
		/* ^H is how some terminals send Backspace; one name is enough. */
		if (*k == UK_CTRL('H'))
			continue;
		keymap_name(*k, one, sizeof(one));
		at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? " " : "", one);
		if (at >= size)
			break;
	}
	return buf;
}
