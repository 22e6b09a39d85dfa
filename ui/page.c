// SPDX-License-Identifier: GPL-2.0-only
/* Pages of wrapped text (page.h). */
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "text.h"

static void add_line(struct page *p, enum role label_role, const char *label, enum role role,
		     const char *text, size_t len)
{
	struct page_line *l;

	if (!grow(&p->line, p->n, &p->cap, sizeof(*p->line)))
		return;
	l = &p->line[p->n];
	*l = (struct page_line){.label_role = label_role, .role = role};
	l->text = strndup(text, len);
	l->label = label ? strdup(label) : NULL;
	if (l->text)
		p->n++;
	else
		free(l->label);
}

/* Bytes of text that fit `width` columns, ending at a blank where there is one. */
static size_t wrap_at(const char *text, int width)
{
	size_t at = 0, blank = 0;
	int used = 0;
	uint32_t cp;

	while (text[at]) {
		size_t n = utf8_next(text + at, &cp);

		used += utf8_width_cp(cp);
		if (used > width)
			return blank ? blank : at ? at : n;
		at += n;
		if (cp == ' ')
			blank = at;
	}
	return at;
}

void page_add(struct page *p, enum role label_role, const char *label, enum role role,
	      const char *text)
{
	int room = p->width - 2 - (label ? p->indent : 0);

	if (room < 8)
		room = 8;
	do {
		size_t n = wrap_at(text, room);

		add_line(p, label_role, label, role, text, n);
		text += n;
		/* The empty label keeps the indent of the lines that go on. */
		label = label ? "" : NULL;
	} while (*text);
}

void page_addf(struct page *p, const char *label, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	page_add(p, ROLE_DIM, label, ROLE_TEXT, text);
}

void page_heading(struct page *p, const char *text)
{
	if (p->n)
		page_add(p, ROLE_TEXT, NULL, ROLE_TEXT, "");
	page_add(p, ROLE_TEXT, NULL, ROLE_BRAND, text);
}

void page_free(struct page *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->line[i].label);
		free(p->line[i].text);
	}
	free(p->line);
	p->line = NULL;
	p->n = p->cap = 0;
}

void page_draw(const struct page *p, const struct area *a, int *top)
{
	if (*top > (int)p->n - a->h)
		*top = (int)p->n - a->h;
	if (*top < 0)
		*top = 0;
	for (int y = 0; y < a->h && *top + y < (int)p->n; y++) {
		const struct page_line *l = &p->line[*top + y];

		if (l->label)
			area_text(a, y, 1, l->label_role, l->label);
		area_text(a, y, 1 + (l->label ? p->indent : 0), l->role, l->text);
	}
	if (*top + a->h < (int)p->n)
		area_right(a, a->h - 1, a->w, ROLE_FRAME, " more ");
}
