// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who had the CPU (steal_who.h): names with their shares, how long that was, and how long a woken
 * vCPU took to run. What did not fit on screen is not summed: the batch table has it.
 */
#include "steal_who.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

#define BAR_W 24 /* columns of a bar at most */
#define MIN_BAR_W 60 /* no bars in a window that is narrower */
#define ROWS 8

static const struct snap_waits *waits_of(const struct pane_ctx *c)
{
	return c->vcpu ? &c->vcpu->waits : c->vm ? &c->vm->waits : NULL;
}

/* Who had the CPU then did not keep it off: the cure is another one. */
static bool own_quota(const struct pane_ctx *c)
{
	return c->vcpu ? c->vcpu->use.own_quota : c->vm && c->vm->use.own_quota;
}

static const char *quota_words(const struct pane_ctx *c)
{
	const struct snap_use *u = c->vcpu ? &c->vcpu->use : &c->vm->use;

	return u->throt.v < u->steal.v / 2
		       ? "its own quota is used up: it gets no more, whoever ran"
		       : "its own quota held it back for at least half of that, whoever ran";
}

/* What is said of the programs that see it; NULL: nothing, as in a recording without. */
static const struct snap_source *source_of(const struct pane_ctx *c)
{
	return snapshot_source(c->snap, "waits");
}

int steal_who_lines(const struct pane_ctx *c)
{
	const struct snap_waits *w = waits_of(c);
	const struct snap_source *source = source_of(c);

	if (!w || (!source && !w->n))
		return 0;
	if (w->n)
		return (w->n < ROWS ? (int)w->n + 1 : ROWS + 1) + own_quota(c);
	if (source->state == SOURCE_OFF)
		return 6; /* the reason takes the lower half of them */
	return w->pct.state == VALUE_NA ? 0 : 2;
}

static enum role role_of(const struct snap_waited *x)
{
	if (x->kind == WAITED_VM)
		return ROLE_STEAL;
	if (x->kind == WAITED_IDLE)
		return ROLE_QUOTA;
	return x->kind == WAITED_TASK ? ROLE_SYS : ROLE_DIM;
}

/* What stands behind a name, so that a VM and a task of the same name are told apart. */
static const char *what_of(const struct pane_ctx *c, const struct snap_waited *x)
{
	switch (x->kind) {
	case WAITED_VM:
		return x->by_vm == c->vm->id ? " (itself)" : " (VM)";
	case WAITED_IDLE:
		return ": its own quota, or waking the CPU";
	case WAITED_UNKNOWN:
		return ": events that were missed";
	default:
		return "";
	}
}

static void draw_row(const struct pane_ctx *c, const struct area *a, int y,
		     const struct snap_waited *x)
{
	int bar = a->w < MIN_BAR_W ? 0 : a->w / 4 < BAR_W ? a->w / 4 : BAR_W, n;
	struct area text = area_sub(a, y, 16, 1, a->w - 17 - bar);
	char share[16], ns[16], name[256], line[320];

	fmt_pct(share, sizeof(share), x->share, 5);
	fmt_ns(ns, sizeof(ns), value_known((double)x->ns), 7);
	text_escape(name, sizeof(name), x->name);
	snprintf(line, sizeof(line), "%s%s", name, what_of(c, x));
	area_textf(a, y, 0, ROLE_TEXT, "%5s%% %7s", share, ns);
	area_text_cut(&text, 0, 0, x->kind >= WAITED_IDLE ? ROLE_DIM : ROLE_STRONG, line);
	if (!bar || !value_has(x->share))
		return;
	n = (int)(x->share.v * bar / 100 + 0.5);
	area_fill(a, y, a->w - bar, n < bar ? n : bar, role_of(x), area_glyph(a, 0x2588, '#'));
}

static void draw_head(const struct pane_ctx *c, const struct area *a, const struct snap_waits *w)
{
	char waited[16], p50[16], p99[16], text[320];
	int at;

	if (!value_has(w->pct)) {
		bool dropped = pane_source_missing(c->snap, "overhead", text, sizeof(text)) &&
			       strstr(text, "waits");

		area_text_cut(a, 0, 0, dropped ? ROLE_NOTICE : ROLE_HEAD,
			      dropped ? text : "had the CPU meanwhile: from the next interval on");
		return;
	}
	fmt_pct(waited, sizeof(waited), w->pct, 5);
	at = snprintf(text, sizeof(text), "had the CPU while it waited %s%%", waited);
	if (value_has(w->wake_p99)) {
		fmt_ns(p50, sizeof(p50), w->wake_p50, 7);
		fmt_ns(p99, sizeof(p99), w->wake_p99, 7);
		snprintf(text + at, sizeof(text) - (size_t)at, "; wake-up to running p50 %s p99 %s",
			 p50, p99);
	}
	area_text_cut(a, 0, 0, ROLE_HEAD, text);
}

void steal_who_draw(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_waits *w = waits_of(c);
	const struct snap_source *source = source_of(c);
	char text[512];
	int y = 1;

	if (!w || a->h < 1)
		return;
	if (source && source->state == SOURCE_OFF) {
		snprintf(text, sizeof(text), "who had the CPU is not known: %s", source->why);
		pane_draw_reason(a, text, source->mend);
		return;
	}
	draw_head(c, a, w);
	if (!w->n && value_has(w->pct))
		area_text(a, 1, 0, ROLE_DIM, "nobody: it did not wait");
	if (w->n && own_quota(c))
		area_text_cut(a, y++, 0, ROLE_QUOTA, quota_words(c));
	for (uint32_t i = 0; i < w->n && y < a->h; i++)
		draw_row(c, a, y++, &c->snap->waited[w->first + i]);
}
