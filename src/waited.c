// SPDX-License-Identifier: GPL-2.0-only
/* Sums of who had the CPU (waited.h). */
#include "waited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define MOST 256 /* different ones in an interval */

static struct waited_by *find(struct waited *w, enum waited_kind kind, uint32_t vm,
			      const char *name)
{
	for (size_t i = 0; i < w->n; i++) {
		struct waited_by *b = &w->by[i];

		if (b->kind == kind && b->vm == vm && (vm || !strncmp(b->name, name, WAITED_NAME)))
			return b;
	}
	return NULL;
}

/* There is always room for `other`: one more than is asked for. */
static struct waited_by *make(struct waited *w, enum waited_kind kind, uint32_t vm,
			      const char *name)
{
	struct waited_by *b;

	if (!grow(&w->by, w->n + 1, &w->room, sizeof(*w->by)))
		return NULL;
	b = &w->by[w->n++];
	*b = (struct waited_by){.kind = (uint8_t)kind, .vm = vm};
	snprintf(b->name, sizeof(b->name), "%s", name);
	return b;
}

void waited_add(struct waited *w, enum waited_kind kind, uint32_t vm, const char *name, uint64_t ns)
{
	struct waited_by *b;
	char cut[WAITED_NAME];

	snprintf(cut, sizeof(cut), "%s", name ? name : "");
	b = find(w, kind, vm, cut);
	if (!b && (w->n < MOST || kind >= WAITED_OTHER))
		b = make(w, kind, vm, cut);
	if (!b)
		b = find(w, WAITED_OTHER, 0, "");
	if (!b)
		b = make(w, WAITED_OTHER, 0, "");
	if (b)
		b->ns += ns;
}

static int by_time(const void *a, const void *b)
{
	const struct waited_by *x = a, *y = b;
	int xlast = x->kind >= WAITED_OTHER ? x->kind : 0;
	int ylast = y->kind >= WAITED_OTHER ? y->kind : 0;

	if (xlast != ylast)
		return xlast < ylast ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

void waited_sort(struct waited *w)
{
	if (w->n)
		qsort(w->by, w->n, sizeof(*w->by), by_time);
}

uint64_t waited_sum(const struct waited *w)
{
	uint64_t all = 0;

	for (size_t i = 0; i < w->n; i++)
		all += w->by[i].ns;
	return all;
}

void waited_clear(struct waited *w)
{
	w->seen = w->whole = false;
	w->dt = 0;
	w->n = 0;
	w->wakeups = 0;
	hist_clear(&w->wake);
}

void waited_free(struct waited *w)
{
	free(w->by);
	hist_free(&w->wake);
	*w = (struct waited){0};
}
