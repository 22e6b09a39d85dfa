// SPDX-License-Identifier: GPL-2.0-only
/* Menus (menu.h). */
#include "menu.h"

#include <string.h>

void menu_start(struct menu *m, const char *title, bool boxes)
{
	memset(m, 0, sizeof(*m));
	m->title = title;
	m->boxes = boxes;
}

void menu_add(struct menu *m, const char *title, const char *help, bool on)
{
	if (m->n < MENU_MAX)
		m->item[m->n++] = (struct menu_item){.title = title, .help = help, .on = on};
}

void menu_move(struct menu *m, int by)
{
	int last = (int)m->n - 1;

	m->cur += by;
	if (m->cur > last)
		m->cur = last;
	if (m->cur < 0)
		m->cur = 0;
}

void menu_shift(struct menu *m, int by)
{
	int to = m->cur + by;
	struct menu_item tmp;

	if (to < 0 || to >= (int)m->n)
		return;
	tmp = m->item[m->cur];
	m->item[m->cur] = m->item[to];
	m->item[to] = tmp;
	m->cur = to;
}

static void draw_item(const struct menu *m, const struct area *a, int y, int i)
{
	const struct menu_item *it = &m->item[i];
	int x = 1;

	if (m->boxes)
		x = area_text(a, y, x, ROLE_DIM, it->on ? "[x] " : "[ ] ");
	area_textf(a, y, x, it->on || !m->boxes ? ROLE_STRONG : ROLE_TEXT, "%-12s", it->title);
	area_text_cut(a, y, x + 13, ROLE_DIM, it->help);
	if (i == m->cur)
		area_attr(a, y, 0, a->w, CELL_SELECTED);
}

void menu_draw(struct menu *m, const struct area *a)
{
	int height = a->h - 1;

	area_clear(a, ROLE_TEXT);
	area_fill(a, 0, 0, a->w, ROLE_HEAD, ' ');
	area_text_cut(a, 0, 1, ROLE_HEAD, m->title);
	if (height < 1)
		return;
	if (m->cur < m->top)
		m->top = m->cur;
	if (m->cur >= m->top + height)
		m->top = m->cur - height + 1;
	for (int y = 0; y < height && m->top + y < (int)m->n; y++)
		draw_item(m, a, y + 1, m->top + y);
}
