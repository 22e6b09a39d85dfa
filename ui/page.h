// SPDX-License-Identifier: GPL-2.0-only
/* A page of text that scrolls: help, the row in full. Lines are wrapped when they are added. */
#ifndef KVMTOP_PAGE_H
#define KVMTOP_PAGE_H

#include <stddef.h>

#include "surface.h"

struct page_line {
	char *label; /* NULL: none */
	char *text;
	enum role label_role, role;
};

struct page {
	int width; /* of the window */
	int indent; /* where text begins when there is a label */
	struct page_line *line;
	size_t n, cap;
};

/* Lines that find no memory are left out. */
void page_add(struct page *p, enum role label_role, const char *label, enum role role,
	      const char *text);
void page_addf(struct page *p, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void page_heading(struct page *p, const char *text); /* with a blank line before */
void page_free(struct page *p); /* the lines, not p */
/* Draws from line *top on; *top is brought into range. */
void page_draw(const struct page *p, const struct area *a, int *top);

#endif
