// SPDX-License-Identifier: GPL-2.0-only
/* The table of panes, and what they share (pane.h). */
#include "pane.h"

#include <stdio.h>
#include <string.h>

#include "page.h"
#include "text.h"

extern const struct pane pane_vcpus, pane_exits, pane_access, pane_symbols, pane_steal, pane_cpus,
	pane_tsc, pane_pmu, pane_threads, pane_slow;

static const struct pane *const all[] = {
	&pane_vcpus, &pane_exits, &pane_access, &pane_symbols, &pane_steal,
	&pane_cpus,  &pane_tsc,	  &pane_pmu,	&pane_threads, &pane_slow,
};

const struct pane *const *panes_all(size_t *n)
{
	*n = sizeof(all) / sizeof(all[0]);
	return all;
}

const struct pane *pane_by_key(char key)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->key == key)
			return all[i];
	return NULL;
}

const char *panes_keys(char *buf, size_t size)
{
	size_t n = sizeof(all) / sizeof(all[0]), at = 0;

	for (size_t i = 0; i < n && at + 1 < size; i++)
		buf[at++] = all[i]->key;
	buf[at] = '\0';
	return buf;
}

void pane_draw_table(const struct pane_ctx *c, const struct area *a)
{
	table_draw(&c->table, a, c->rows);
}

const void *pane_selected(const struct pane_ctx *c)
{
	int line = c->table.def ? table_selected(&c->table, c->rows) : -1;

	return line < 0 ? NULL : c->rows->row[line].row;
}

void pane_vcpu_rows(const struct pane_ctx *c, struct row_list *out)
{
	for (uint32_t i = 0; c->vm && i < c->vm->vcpu_n; i++) {
		const struct snap_vcpu *v = &c->snap->vcpus[c->vm->vcpu_first + i];

		if (row_list_add(out, v, v->id) < 0)
			return;
	}
}

const char *pane_no_vm(const struct pane_ctx *c)
{
	if (c->view->level == LEVEL_HOST)
		return "no VM is selected";
	return snap_vm_by_id(c->snap, c->view->vm) ? "no figures: this vCPU has ended"
						   : "no figures: this VM has ended";
}

void pane_draw_note(const struct area *a, enum role role, const char *text)
{
	int w = (int)utf8_width(text), top = a->h / 3;
	struct page p = {.width = a->w};
	struct area below = area_sub(a, top, 0, a->h - top, a->w);
	int first = 0;

	if (w + 2 <= a->w) {
		area_text(a, top, (a->w - w) / 2, role, text);
		return;
	}
	page_add(&p, role, NULL, role, text);
	page_draw(&p, &below, &first);
	page_free(&p);
}

int pane_draw_reason(const struct area *a, const char *why, const char *mend)
{
	struct page p = {.width = a->w + 1}; /* to the right it may touch the edge */
	char text[1024], safe[1024];
	struct area part;
	int n, top;

	snprintf(text, sizeof(text), "%s%s%s", why, mend[0] ? ": " : "", mend);
	text_escape(safe, sizeof(safe), text);
	if (mend[0] && (int)utf8_width(safe) + 1 > a->w) {
		snprintf(text, sizeof(text), "%s:", why);
		text_escape(safe, sizeof(safe), text);
		page_add(&p, ROLE_NOTICE, NULL, ROLE_NOTICE, safe);
		text_escape(safe, sizeof(safe), mend);
	}
	page_add(&p, ROLE_NOTICE, NULL, ROLE_NOTICE, safe);
	n = (int)p.n < a->h / 2 ? (int)p.n : a->h / 2;
	/* What mends it stands last. */
	top = (int)p.n - n;
	part = area_sub(a, a->h - n, 0, n, a->w);
	area_clear(&part, ROLE_TEXT);
	page_draw(&p, &part, &top);
	page_free(&p);
	return n;
}

bool pane_source_missing(const struct snapshot *s, const char *name, char *out, size_t size)
{
	const struct snap_source *src = snapshot_source(s, name);

	if (!src || src->state == SOURCE_OK)
		return false;
	snprintf(out, size, "%s%s%s", src->why, src->mend && *src->mend ? ": " : "",
		 src->mend ? src->mend : "");
	return true;
}

bool pane_no_threads(const struct pane_ctx *c, const char *none, const char *host, char *out,
		     size_t size)
{
	if (c->rows->n)
		return false;
	if (!pane_source_missing(c->snap, "sched", out, size))
		snprintf(out, size, "%s", c->vm ? none : c->host ? host : pane_no_vm(c));
	return true;
}
