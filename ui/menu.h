// SPDX-License-Identifier: GPL-2.0-only
/* A list to choose from: the column to sort by, the columns to show. */
#ifndef KVMTOP_MENU_H
#define KVMTOP_MENU_H

#include <stdbool.h>
#include <stddef.h>

#include "surface.h"

#define MENU_MAX 64

struct menu_item {
	const char *title, *help; /* borrowed from constant tables */
	bool on;
};

struct menu {
	const char *title;
	bool boxes; /* items can be on or off */
	struct menu_item item[MENU_MAX];
	size_t n;
	int cur, top;
};

void menu_start(struct menu *m, const char *title, bool boxes);
void menu_add(struct menu *m, const char *title, const char *help, bool on);
void menu_move(struct menu *m, int by);
/* Moves the current item up or down among the others. */
void menu_shift(struct menu *m, int by);
void menu_draw(struct menu *m, const struct area *a);

#endif
