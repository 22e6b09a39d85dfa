// SPDX-License-Identifier: GPL-2.0-only
/* Any settings file: what is taken of it is within its bounds and a screen can be drawn. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pane.h"
#include "settings.h"

static void check(const struct column_choice *c)
{
	if (c->n > VIEW_COLUMNS)
		abort();
	for (size_t i = 0; i < c->n; i++)
		if (strnlen(c->title[i], VIEW_TITLE) >= VIEW_TITLE)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct view *v = malloc(sizeof(*v));
	char theme[16];

	if (!v)
		return 0;
	view_init(v);
	settings_parse((const char *)data, len, v, theme, sizeof(theme), NULL);
	for (int i = 0; i < LIST_NR; i++)
		check(&v->list_columns[i]);
	for (int i = 0; i < PANE_MAX; i++)
		check(&v->pane_columns[i]);
	if (!pane_by_key(v->pane) || strnlen(theme, sizeof(theme)) == sizeof(theme))
		abort();
	free(v);
	return 0;
}
