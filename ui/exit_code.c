// SPDX-License-Identifier: GPL-2.0-only
/* Which guest code makes an exit: below the table of exits, where a row was opened. */
#include <stdio.h>

#include "exit_rows.h"
#include "text.h"

#define BAR_W 24 /* columns of a bar at most */

static bool is_of(const struct snap_code *x, const struct snap_exit *e)
{
	return e->kind == KIND_VMEXIT && x->reason == e->key && x->isa == e->isa;
}

static void draw_row(const struct area *a, int y, const struct snap_code *x, struct value pct)
{
	int w = a->w / 3 < BAR_W ? a->w / 3 : BAR_W, n;
	char name[256], module[128], cut[400], figure[16];
	struct area text = area_sub(a, y, 8, 1, a->w - 8 - w - 1);

	text_escape(name, sizeof(name), x->name);
	text_escape(module, sizeof(module), x->module);
	fmt_pct(figure, sizeof(figure), pct, 6);
	area_textf(a, y, 0, ROLE_TEXT, "%6s%%", figure);
	snprintf(cut, sizeof(cut), "%s%s%s%s", name, module[0] ? " [" : "", module,
		 module[0] ? "]" : "");
	area_text(&text, 0, 1, ROLE_STRONG, cut);
	n = (int)(pct.v * w / 100 + 0.5);
	area_fill(a, y, a->w - w, n < w ? n : w, ROLE_GUEST, area_glyph(a, 0x2588, '#'));
}

/* Rows lie by their count in the interval; the reason for no name stands once, at the end. */
static int draw_rows(const struct pane_ctx *c, const struct area *a, const struct snap_exit *e)
{
	const char *why = "";
	int y = 0;

	for (uint32_t i = 0; i < c->vm->code_n && y < a->h; i++) {
		const struct snap_code *x = &c->snap->code[c->vm->code_first + i];
		struct value pct = c->view->totals ? x->pct_total : x->pct;

		if (!is_of(x, e) || !value_has(pct) || !(c->view->totals ? x->total : x->count))
			continue;
		draw_row(a, y++, x, pct);
		if (x->why[0])
			why = x->why;
	}
	if (y && y < a->h && why[0]) {
		struct area rest = area_sub(a, y, 0, a->h - y, a->w);
		char text[300];

		snprintf(text, sizeof(text), "no names: %s", why);
		pane_draw_reason(rest.h > 1 ? &rest : a, text, c->vm->sym_mend);
	}
	return y;
}

/* Why this row has no guest code: the address comes with kvm_exit alone. */
static const char *no_code(const struct pane_ctx *c, const struct snap_exit *e)
{
	if (e->kind == KIND_VMEXIT)
		return e->other ? "which guest code: only for one reason, not for the rest together"
				: NULL;
	if (!c->snap->host.entry_exit)
		return "which guest code: only for vmexit rows, and this KVM fires no kvm_exit";
	return c->view->pane == '2' ? "which guest code: only for vmexit rows (e)"
				    : "which guest code: only for vmexit rows, in pane 2";
}

void exit_code_draw(const struct pane_ctx *c, const struct area *a, const struct snap_exit *e)
{
	struct area below = area_sub(a, 1, 0, a->h - 1, a->w);
	const char *why = no_code(c, e);
	uint64_t lost = c->view->totals ? c->snap->host.code_lost_total : c->snap->host.code_lost;
	char name[128];
	int x;

	text_escape(name, sizeof(name), e->name);
	area_fill(a, 0, 0, a->w, ROLE_FRAME, area_glyph(a, 0x2500, '-'));
	x = area_textf(a, 0, 1, ROLE_STRONG, " %s: the guest code that makes it%s ", name,
		       c->vcpu ? " (on all vCPUs)" : "");
	if (lost)
		area_textf(a, 0, x, ROLE_WARN, "(%llu exits lost) ", (unsigned long long)lost);
	if (why)
		area_text(&below, 0, 1, ROLE_DIM, why);
	else if (!c->vm)
		area_text(&below, 0, 1, ROLE_DIM, "select a VM: code is counted for one at a time");
	else if (!draw_rows(c, &below, e))
		area_text(&below, 0, 1, ROLE_DIM,
			  c->vm->code_known ? "no exit of it said where the guest was"
					    : "it is counted from now on, within --max-overhead");
}
