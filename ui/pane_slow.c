// SPDX-License-Identifier: GPL-2.0-only
/* Pane 0: single exits that took longer than was asked for, the last ones first. */
#include <stdio.h>

#include "pane.h"
#include "text.h"

static const struct column cols[] = {
	{.field = "at", .width = 12},
	{.field = "vm", .width = 12, .gap = 1, .from = 100, .drop = 1},
	{.field = "vcpu", .width = 4, .gap = 1, .drop = 4},
	{.field = "key", .width = 14, .gap = 1},
	{.field = "took_ns", .width = 6, .gap = 1},
	{.field = "user_exit", .width = 13, .gap = 1, .drop = 5},
	{.field = "user_ns", .width = 6, .gap = 1, .drop = 3},
	{.field = "symbol", .width = 18, .gap = 1, .grow = true, .drop = 6},
	{.field = "module", .width = 10, .gap = 1, .from = 132, .drop = 2},
};

static const struct table_def def = {
	.id = "slow",
	.title = "Slow",
	.table = TABLE_SLOW,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"ended", "took_ns", "tid"},
};

/* Two exits of one thread do not end at the same moment. */
static uint64_t row_id(const struct snap_slow *x)
{
	uint64_t h = (uint64_t)x->end * 0x9e3779b97f4a7c15u ^ (uint32_t)x->tid;

	return h ? h : 1;
}

static bool is_of(const struct pane_ctx *c, const struct snap_slow *x)
{
	if (c->vcpu && (x->vcpu < 0 || &c->snap->vcpus[x->vcpu] != c->vcpu))
		return false;
	return c->host || (c->vm && &c->snap->vms[x->vm] == c->vm);
}

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	for (size_t i = 0; i < c->snap->nslow; i++) {
		const struct snap_slow *x = &c->snap->slow[i];

		if (is_of(c, x) && row_list_add(out, x, row_id(x)) < 0)
			return;
	}
}

/* How many there were, and for how many of the interval there was no room. */
static void counts(const struct pane_ctx *c, uint64_t *now, uint64_t *total, uint64_t *more)
{
	uint64_t lines = 0;

	*now = *total = 0;
	for (size_t i = 0; i < c->snap->nvms; i++) {
		const struct snap_vm *vm = &c->snap->vms[i];

		if (!c->host && vm != c->vm)
			continue;
		*now += vm->slow.count;
		*total += vm->slow.total;
		for (uint32_t k = 0; k < vm->slow.n; k++)
			lines += c->snap->slow[vm->slow.first + k].fresh;
	}
	*more = *now > lines ? *now - lines : 0;
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	uint64_t now, total, more;
	char than[16], rest[40] = "";

	if (!c->snap->slow_ns)
		return;
	fmt_ns(than, sizeof(than), value_known((double)c->snap->slow_ns), 6);
	counts(c, &now, &total, &more);
	if (more)
		snprintf(rest, sizeof(rest), ", %llu more", (unsigned long long)more);
	snprintf(out, size, "> %s: %llu%s%s; %llu in all", than, (unsigned long long)now,
		 c->vcpu ? " of the VM" : "", rest, (unsigned long long)total);
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	char than[16];

	if (c->rows->n)
		return false;
	if (!c->host && !c->vm) {
		snprintf(out, size, "%s", c->other ? "no VM: no exits" : pane_no_vm(c));
		return true;
	}
	if (!c->snap->slow_ns) {
		snprintf(out, size, "%s", value_why_text(WHY_NO_SLOW));
		return true;
	}
	if (!(c->snap->open_kinds & KIND_BIT(KIND_VMEXIT))) {
		if (!pane_source_missing(c->snap, "kvm_events", out, size) &&
		    !pane_source_missing(c->snap, "overhead", out, size))
			snprintf(out, size, "%s", value_why_text(WHY_NOT_OPEN));
		return true;
	}
	fmt_ns(than, sizeof(than), value_known((double)c->snap->slow_ns), 6);
	if (c->snap->host.entry_exit)
		snprintf(out, size, "no exit took longer than %s", than);
	else
		snprintf(out, size,
			 "%s: of an exit only the VMM's part is seen, and none took longer than %s",
			 value_why_text(WHY_NO_ENTRY_EXIT), than);
	return true;
}

const struct pane pane_slow = {
	.key = '0',
	.id = "slow",
	.title = "Slow",
	.help = "single exits that took longer than a limit (x, --slow): when, where the guest "
		"was, "
		"what the VMM did meanwhile",
	.table = &def,
	.rows = rows,
	.draw = pane_draw_table,
	.subtitle = subtitle,
	.missing = missing,
};
