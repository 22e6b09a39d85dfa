// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pane 4: where the time goes, by samples: symbols of guest and host side by side, what has no
 * name by page with the reason, and the vCPUs or VMs that an opened symbol runs on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "pane.h"
#include "text.h"

#define BAR_FROM 96 /* columns that a window needs before bars are drawn */
#define BAR_W 20
#define DETAIL_H 6 /* lines of an opened symbol */
#define MAX_PLACES 512
#define PLACE_W 16 /* columns of a VM's or vCPU's name */

static const struct column cols[] = {
	{.field = "pct", .width = 6},
	{.field = "symbol", .width = 24, .gap = 1, .grow = true},
	{.field = "module", .width = 12, .wide_from = 100, .wide = 18, .gap = 1, .drop = 2},
	{.field = "domain", .width = 12, .gap = 1, .drop = 3},
	{.field = "samples", .width = 7, .gap = 1, .drop = 1},
};

static const struct table_def def = {
	.id = "symbols",
	.title = "Symbols",
	.table = TABLE_SYMBOL,
	.cols = cols,
	.ncols = sizeof(cols) / sizeof(cols[0]),
	.sort = {"samples", "symbol"},
};

/* NULL: nothing is selected that has samples; the host's are nobody's but (all)'s. */
static const struct snap_samples *selected(const struct pane_ctx *c)
{
	if (c->vcpu)
		return &c->vcpu->sym;
	if (c->vm)
		return &c->vm->sym;
	if (c->other)
		return &c->snap->host.other_sym;
	return c->host ? &c->snap->host.sym : NULL;
}

/* H and G are sides, K and U are levels: a domain is shown where both of its own are on. */
static bool domain_on(const struct view *v, uint8_t domain)
{
	unsigned side = DOMAIN_IS_GUEST(domain) ? VIEW_GUEST : VIEW_HOST;
	bool kernel = domain == DOMAIN_HOST_KERNEL || domain == DOMAIN_GUEST_KERNEL;

	return !(v->domains_off & (side | (kernel ? VIEW_KERNEL : VIEW_USER)));
}

static uint64_t key_id(const struct symbol_key *k, bool other)
{
	const uint64_t part[] = {k->value, k->table, k->domain, k->reason, other};

	return row_id_of(part, sizeof(part) / sizeof(part[0]));
}

static uint64_t row_id(const struct snap_symbol *x)
{
	return key_id(&x->key, x->other);
}

static void rows(const struct pane_ctx *c, struct row_list *out)
{
	const struct snap_samples *s = selected(c);

	for (uint32_t i = 0; s && i < s->rows; i++) {
		const struct snap_symbol *x = &c->snap->symbols[s->first + i];

		if (!(c->view->totals ? x->samples_total : x->samples))
			continue;
		if (!x->other && !domain_on(c->view, x->key.domain))
			continue;
		if (row_list_add(out, x, row_id(x)) < 0)
			return;
	}
}

/* ---- the line of the four domains ---- */

static void draw_domains(const struct pane_ctx *c, const struct area *a)
{
	static const char *const label[DOMAIN_NR] = {"host kernel", "user", "guest kernel", "user"};
	static const enum role role[DOMAIN_NR] = {ROLE_SYS, ROLE_USR, ROLE_GUEST, ROLE_USR};
	const struct snap_samples *s = selected(c);
	char buf[16];
	int x = 0;

	for (int d = 0; d < DOMAIN_NR; d++) {
		bool on = domain_on(c->view, (uint8_t)d);

		x = area_textf(a, 0, x + (d == DOMAIN_GUEST_KERNEL ? 3 : 1), ROLE_DIM, "%s",
			       label[d]);
		fmt_pct(buf, sizeof(buf), s->domain[d], 5);
		x = area_textf(a, 0, x + 1, on ? role[d] : ROLE_DIM, on ? "%s" : "(%s)", buf);
	}
	fmt_count(buf, sizeof(buf), s->n, 6);
	x = area_textf(a, 0, x + 3, ROLE_DIM, "samples %s", buf);
	if (c->snap->sampling.lost)
		area_textf(a, 0, x + 2, ROLE_WARN, "lost %llu",
			   (unsigned long long)c->snap->sampling.lost);
	else if (c->other && value_has(c->snap->sampling.idle)) {
		fmt_pct(buf, sizeof(buf), c->snap->sampling.idle, 5);
		area_textf(a, 0, x + 2, ROLE_DIM, "idle CPUs %s", buf);
	}
}

/* ---- bars beside the table ---- */

static enum role bar_role(uint8_t domain)
{
	if (domain == DOMAIN_HOST_KERNEL)
		return ROLE_SYS;
	return domain == DOMAIN_GUEST_KERNEL ? ROLE_GUEST : ROLE_USR;
}

static void draw_bar(const struct area *a, int y, int w, enum role role, double share)
{
	int n = (int)(share * w + 0.5);

	area_fill(a, y, 0, n < w ? n : w, role, area_glyph(a, 0x2588, '#'));
}

static double share_of(const struct pane_ctx *c, const struct snap_symbol *x)
{
	struct value v = c->view->totals ? x->pct_total : x->pct;

	return value_has(v) ? v.v / 100 : 0;
}

static void draw_bars(const struct pane_ctx *c, const struct area *a)
{
	double most = 0;

	for (size_t i = 0; i < c->rows->n; i++) {
		double s = share_of(c, c->rows->row[i].row);

		most = s > most ? s : most;
	}
	for (int y = 1; y < a->h && most > 0; y++) {
		size_t at = (size_t)(c->table.state->top + y - 1);
		const struct snap_symbol *x;

		if (at >= c->rows->n)
			return;
		x = c->rows->row[at].row;
		draw_bar(a, y, a->w, x->other ? ROLE_DIM : bar_role(x->key.domain),
			 share_of(c, x) / most);
	}
}

/* ---- the opened symbol: which vCPUs it runs on ---- */

struct place {
	const struct snap_vm *vm; /* of all VMs together: one of them */
	const struct snap_vcpu *vcpu; /* of a VM: one of its vCPUs */
	uint64_t samples;
};

static int by_samples(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->vcpu < y->vcpu || x->vm < y->vm ? -1 : 1;
}

/*
 * How often the symbol was seen among these samples; 0: not, or too seldom to have a row. Several
 * pages of a VM are one row of all VMs.
 */
static uint64_t samples_in(const struct pane_ctx *c, const struct snap_samples *s, uint64_t id)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < s->rows; k++) {
		const struct snap_symbol *x = &c->snap->symbols[s->first + k];
		struct symbol_key key = c->host ? symbol_key_of_all(&x->key) : x->key;

		if (key_id(&key, x->other) == id)
			n += c->view->totals ? x->samples_total : x->samples;
	}
	return n;
}

static size_t collect_places(const struct pane_ctx *c, uint64_t id, struct place *out)
{
	size_t n = 0;

	for (uint32_t i = 0; c->vm && i < c->vm->vcpu_n && n < MAX_PLACES; i++) {
		const struct snap_vcpu *v = &c->snap->vcpus[c->vm->vcpu_first + i];

		out[n] = (struct place){.vcpu = v, .samples = samples_in(c, &v->sym, id)};
		n += out[n].samples > 0;
	}
	for (size_t i = 0; c->host && i < c->snap->nvms && n < MAX_PLACES; i++) {
		const struct snap_vm *vm = &c->snap->vms[i];

		out[n] = (struct place){.vm = vm, .samples = samples_in(c, &vm->sym, id)};
		n += out[n].samples > 0;
	}
	qsort(out, n, sizeof(*out), by_samples);
	return n;
}

static const struct snap_symbol *row_of(const struct pane_ctx *c, uint64_t id)
{
	for (size_t i = 0; i < c->rows->n; i++)
		if (c->rows->row[i].id == id)
			return c->rows->row[i].row;
	return NULL;
}

static void place_name(const struct place *p, char *out, size_t size)
{
	char name[256];

	if (p->vcpu) {
		snprintf(out, size, "vCPU %d", p->vcpu->index);
		return;
	}
	text_escape(name, sizeof(name), p->vm->name);
	text_cut_middle(out, size, name, PLACE_W);
}

static void draw_places(const struct pane_ctx *c, const struct area *a, const struct snap_symbol *x)
{
	struct place place[MAX_PLACES];
	size_t n = collect_places(c, c->view->detail, place);
	uint64_t all = c->view->totals ? x->samples_total : x->samples;
	char name[64];

	if (!n)
		area_text(a, 0, 1, ROLE_DIM,
			  c->host ? "the VMs that it runs in come with the next interval"
				  : "no vCPU has it among its own most frequent");
	for (size_t i = 0; i < n && (int)i < a->h; i++) {
		struct area bar = area_sub(a, (int)i, PLACE_W + 9, 1, a->w - PLACE_W - 10);
		double share = all ? (double)place[i].samples / (double)all : 0;

		place_name(&place[i], name, sizeof(name));
		area_text(a, (int)i, 1, ROLE_TEXT, name);
		area_textf(a, (int)i, PLACE_W + 2, ROLE_TEXT, "%5.1f%%", 100 * share);
		draw_bar(&bar, 0, bar.w, bar_role(x->key.domain), share);
	}
}

/* ---- and what calls it ---- */

static void draw_caller(const struct area *a, int y, const char *name, double share)
{
	char text[256];

	text_escape(text, sizeof(text), name);
	area_textf(a, y, 0, ROLE_TEXT, "%5.1f%%", 100 * share);
	area_text(a, y, 8, ROLE_TEXT, text);
}

/* What has no frame, and who called too seldom to be told apart, is the rest. */
static void draw_callers(const struct pane_ctx *c, const struct area *a,
			 const struct snap_symbol *x)
{
	bool total = c->view->totals;
	uint64_t all = total ? x->samples_total : x->samples, rest = all;
	struct snap_caller caller[SNAP_CALLERS];
	unsigned n = snap_callers(x, total, caller);
	int y = 0;

	for (unsigned i = 0; i < n && all && y < a->h; i++) {
		uint64_t calls = total ? caller[i].samples_total : caller[i].samples;

		draw_caller(a, y++, caller[i].name, (double)calls / (double)all);
		rest -= calls < rest ? calls : rest;
	}
	if (rest && y < a->h)
		draw_caller(a, y, "others, or not known", (double)rest / (double)all);
}

static bool has_callers(const struct pane_ctx *c, const struct snap_symbol *x)
{
	struct snap_caller caller[SNAP_CALLERS];

	return c->vm && snap_callers(x, c->view->totals, caller);
}

/* Callers are known of a VM as a whole; for a vCPU's symbol that is shown, where it has it. */
static const struct snap_symbol *opened(const struct pane_ctx *c)
{
	const struct snap_samples *s = c->vm ? &c->vm->sym : NULL;

	if (!c->vcpu)
		return row_of(c, c->view->detail);
	for (uint32_t i = 0; s && i < s->rows; i++)
		if (row_id(&c->snap->symbols[s->first + i]) == c->view->detail)
			return &c->snap->symbols[s->first + i];
	return NULL;
}

static void draw_detail(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_symbol *x = opened(c);
	struct area below = area_sub(a, 1, 0, a->h - 1, a->w), right;
	int half = a->w / 2;
	char name[256];

	area_fill(a, 0, 0, a->w, ROLE_FRAME, area_glyph(a, 0x2500, '-'));
	if (!x) {
		area_text(a, 0, 1, ROLE_STRONG,
			  c->vcpu ? " not among its VM's most frequent ones "
				  : " not in this interval ");
		return;
	}
	text_escape(name, sizeof(name), x->name);
	area_textf(a, 0, 1, ROLE_STRONG, c->host ? " %s in " : " %s on ", name);
	if (has_callers(c, x)) {
		area_text(a, 0, half, ROLE_STRONG,
			  c->vcpu ? " called by, on all vCPUs " : " called by ");
		below = area_sub(a, 1, 0, a->h - 1, half - 1);
		right = area_sub(a, 1, half, a->h - 1, a->w - half);
		draw_callers(c, &right, x);
	}
	draw_places(c, &below, x);
}

static bool open_row(const struct pane_ctx *c, struct view *view)
{
	const struct snap_symbol *x = pane_selected(c);

	if (!x || x->other || c->other)
		return false;
	view->detail = view->detail == row_id(x) ? 0 : row_id(x);
	return true;
}

/* ---- the whole ---- */

/*
 * Why the selected row, or the guest as a whole, has no names; each reason stands here once.
 * Returns the lines at the end of the area that it took.
 */
static int draw_reason(const struct pane_ctx *c, const struct area *a)
{
	const struct snap_sampling *s = &c->snap->sampling;
	const struct snap_symbol *x = pane_selected(c);
	bool guest = c->vm && c->vm->sym_why && c->vm->sym_why[0];
	bool has = x && x->reason && x->reason[0];
	char why[480];

	/* For a guest's kernel that is the same as its own; it goes on with what mends it. */
	if (guest && (!has || x->key.domain == DOMAIN_GUEST_KERNEL)) {
		snprintf(why, sizeof(why), "guest symbols: %s", c->vm->sym_why);
		return pane_draw_reason(a, why, c->vm->sym_mend);
	}
	if (has)
		return pane_draw_reason(a, x->name, x->reason);
	if (s->open && s->hz < s->wanted_hz && *s->why) {
		snprintf(why, sizeof(why), "fewer samples than asked for: %s", s->why);
		return pane_draw_reason(a, why, "");
	}
	if (!s->no_guest)
		return 0;
	return pane_draw_reason(a,
				"no sample is ever in guest mode here: guests' time is in the "
				"host's samples",
				"");
}

static void draw(const struct pane_ctx *c, const struct area *a)
{
	int detail = c->view->detail && a->h > DETAIL_H + 4 ? DETAIL_H : 0;
	int w = a->w >= BAR_FROM ? a->w - BAR_W - 2 : a->w, h = a->h - 1 - detail;
	struct area part;

	draw_domains(c, a);
	part = area_sub(a, 1, 0, h, a->w);
	if (h > 3)
		h -= draw_reason(c, &part);
	part = area_sub(a, 1, 0, h, w);
	pane_draw_table(c, &part);
	if (w < a->w) {
		part = area_sub(a, 1, w + 1, h, BAR_W);
		draw_bars(c, &part);
	}
	if (detail) {
		part = area_sub(a, a->h - detail, 0, detail, a->w);
		draw_detail(c, &part);
	}
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	const struct snap_sampling *s = &c->snap->sampling;
	char off[16] = "", wanted[24] = "";

	if (c->view->domains_off)
		snprintf(off, sizeof(off), ", not %s%s%s%s",
			 c->view->domains_off & VIEW_HOST ? "H" : "",
			 c->view->domains_off & VIEW_GUEST ? "G" : "",
			 c->view->domains_off & VIEW_KERNEL ? "K" : "",
			 c->view->domains_off & VIEW_USER ? "U" : "");
	if (s->hz < s->wanted_hz)
		snprintf(wanted, sizeof(wanted), " of %u", s->wanted_hz);
	if (s->open)
		snprintf(out, size, "%s %u%s Hz%s", s->event, s->hz, wanted, off);
}

static bool all_off(const struct view *v)
{
	const unsigned off = v->domains_off;

	return ((off & VIEW_HOST) && (off & VIEW_GUEST)) ||
	       ((off & VIEW_KERNEL) && (off & VIEW_USER));
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	const struct snap_samples *s = selected(c);

	if (s && (c->snap->sampling.open || value_has(s->n_total))) {
		if (c->rows->n || !all_off(c->view))
			return false;
		snprintf(out, size, "all four domains are switched off: H, G, K or U shows them");
		return true;
	}
	if (!s)
		snprintf(out, size, "%s", pane_no_vm(c));
	else if (!pane_source_missing(c->snap, "guest_sampling", out, size))
		snprintf(out, size,
			 "sampling begins: the first figures come with the next interval");
	return true;
}

static void demand(const struct view *v, struct demand *d)
{
	d->samples = true;
	/* In which VMs an opened symbol of all of them runs; the selected one has its rows anyhow.
	 */
	d->samples_all |= v->level == LEVEL_HOST && v->detail;
}

const struct pane pane_symbols = {
	.key = '4',
	.id = "symbols",
	.title = "Symbols",
	.help = "hot symbols of guest and host by samples (H G K U: domains); Enter: on which "
		"vCPUs, in which VMs, and who calls it where the kernel tells",
	.table = &def,
	.rows = rows,
	.open = open_row,
	.draw = draw,
	.subtitle = subtitle,
	.demand = demand,
	.missing = missing,
};
