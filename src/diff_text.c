// SPDX-License-Identifier: GPL-2.0-only
/* A comparison for people (diff.h): what the hosts differ in first, then a table a part. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "diff.h"
#include "field.h"
#include "format.h"
#include "out.h"
#include "store_time.h"
#include "text.h"

#define VM_WIDTH 16
#define WHAT_WIDTH 30
#define SYMBOL_WIDTH 40 /* that pages of guests' kernels differ at their ends is to be seen */

static const struct {
	const char *name, *unit, *title;
} parts[] = {
	[DIFF_HOSTS] = {"host", "%", "host, % of its CPU time"},
	[DIFF_USE] = {"use", "%", "CPU and steal, % of a vCPU's time"},
	[DIFF_WAKES] = {"wake-up", "us", "from wake-up to running, us"},
	[DIFF_WAITED] = {"waited", "%", "who had the CPU while vCPUs waited, % of a vCPU's time"},
	[DIFF_EXITS] = {"exit", "1/vCPU-s", "exits and accesses, per vCPU-second"},
	[DIFF_EXIT_TIME] = {"exit-time", "%", "time of exits, % of a vCPU's time (without idling)"},
	[DIFF_SYMBOLS] = {"symbol", "%", "symbols, % of a vCPU's time"},
};

const char *diff_what_name(enum diff_what what)
{
	return (unsigned)what < DIFF_SHOWN ? parts[what].name : "";
}

const char *diff_unit(enum diff_what what)
{
	return (unsigned)what < DIFF_SHOWN ? parts[what].unit : "";
}

const char *diff_by_name(enum diff_by by)
{
	static const char *const names[] = {[DIFF_BY_UUID] = "uuid",
					    [DIFF_BY_NAME] = "name",
					    [DIFF_BY_MAP] = "map",
					    [DIFF_BY_PROCESS] = "process",
					    [DIFF_BY_ONE] = "there being one"};

	return (unsigned)by < sizeof(names) / sizeof(names[0]) ? names[by] : "";
}

const char *diff_kind_name(const struct diff_row *r)
{
	if (r->what == DIFF_EXITS || r->what == DIFF_EXIT_TIME)
		return field_kind_name((enum kvm_kind)r->kind);
	if (r->what == DIFF_SYMBOLS && r->kind < DOMAIN_NR)
		return field_domain_name((enum ip_domain)r->kind);
	if (r->what == DIFF_SYMBOLS && r->kind > DOMAIN_NR)
		return r->kind == DIFF_KERNEL ? "kernel" : "user";
	if (r->what == DIFF_WAITED)
		return field_waited_kind((enum waited_kind)r->kind);
	return "";
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Cut in its middle and filled up to `width` columns. */
static void put_word(struct out *out, const char *text, size_t width)
{
	char safe[1024], cut[1024];
	size_t n;

	text_escape(safe, sizeof(safe), text);
	text_cut_middle(cut, sizeof(cut), safe, width);
	n = utf8_width(cut);
	out_text(out, cut);
	out_printf(out, "%*s", n < width ? (int)(width - n) : 0, "");
}

/* At most nine columns, four digits that count. */
static const char *number(char *buf, size_t size, double v, bool sign)
{
	double m = fabs(v);
	int places = m >= 1000 ? 0 : m >= 100 ? 1 : m >= 10 ? 2 : m >= 0.01 || m == 0 ? 3 : 4;

	if (m >= 1e7)
		snprintf(buf, size, sign ? "%+.3e" : "%.3e", v);
	else
		snprintf(buf, size, sign ? "%+.*f" : "%.*f", places, v);
	return buf;
}

static void put_number(struct out *out, bool known, double v, bool sign)
{
	char buf[40];

	out_printf(out, " %9s", known ? number(buf, sizeof(buf), v, sign) : "-");
}

/* Two sides of one time: nothing came or went between them. */
static bool is_of_sides(const struct diff *d)
{
	return d->side[0].part != DIFF_WHOLE;
}

static void put_percent(struct out *out, const struct diff *d, const struct diff_row *r)
{
	char buf[40];

	if (!r->a_known || !r->b_known)
		snprintf(buf, sizeof(buf), "-");
	else if (r->a == 0)
		snprintf(buf, sizeof(buf), "%s",
			 r->b == 0	  ? "0%"
			 : is_of_sides(d) ? "only B"
					  : "new");
	else if (r->b == 0)
		snprintf(buf, sizeof(buf), "%s", is_of_sides(d) ? "only A" : "gone");
	else if (r->b / r->a >= 100)
		snprintf(buf, sizeof(buf), "x%.0f", fmin(r->b / r->a, 999999));
	else
		snprintf(buf, sizeof(buf), "%+.0f%%", 100 * (r->b - r->a) / r->a);
	out_printf(out, " %7s", buf);
}

static void put_share(struct out *out, double share)
{
	if (share < 0)
		out_text(out, "      -");
	else
		out_printf(out, " %6.1f", share);
}

/* Means over vCPUs stand among shares of the host's CPUs, which they are no part of. */
static const char *host_name(const char *name)
{
	if (strcmp(name, "steal") == 0)
		return "mean steal of vCPUs (of their time)";
	return strcmp(name, "exit") == 0 ? "mean exit time of vCPUs (of theirs)" : name;
}

static size_t what_width(enum diff_what what)
{
	return what == DIFF_HOSTS     ? VM_WIDTH + 1 + WHAT_WIDTH
	       : what == DIFF_SYMBOLS ? SYMBOL_WIDTH
				      : WHAT_WIDTH;
}

static void put_row(const struct diff *d, const struct diff_row *r, struct out *out)
{
	bool shares = r->what >= DIFF_WAITED;
	char what[600];

	if (r->pair != DIFF_HOST) {
		put_word(out, d->side[1].vm[d->pair[r->pair].b].name, VM_WIDTH);
		out_text(out, " ");
	}
	if (r->what == DIFF_EXITS || r->what == DIFF_EXIT_TIME)
		snprintf(what, sizeof(what), "%s%s%s",
			 r->kind == KIND_VMEXIT ? "" : diff_kind_name(r),
			 r->kind == KIND_VMEXIT ? "" : " ", r->name);
	else if (r->what == DIFF_SYMBOLS && *diff_kind_name(r))
		snprintf(what, sizeof(what), "%s %s", diff_kind_name(r), r->name);
	else
		snprintf(what, sizeof(what), "%s",
			 r->what == DIFF_HOSTS ? host_name(r->name) : r->name);
	put_word(out, what, what_width((enum diff_what)r->what));
	put_number(out, r->a_known, r->a, false);
	put_number(out, r->b_known, r->b, false);
	put_number(out, r->a_known && r->b_known, r->b - r->a, true);
	put_percent(out, d, r);
	if (shares) {
		put_share(out, r->share_a);
		put_share(out, r->share_b);
	}
	out_text(out, !r->tested ? " ?\n" : r->sure ? " *\n" : "\n");
}

static void put_part(const struct diff *d, size_t first, size_t n, size_t most, struct out *out)
{
	enum diff_what what = (enum diff_what)d->row[first].what;
	size_t shown = most && n > most ? most : n;

	out_printf(out, "\n%s\n", parts[what].title);
	if (what != DIFF_HOSTS) {
		put_word(out, "VM", VM_WIDTH);
		out_text(out, " ");
	}
	put_word(out, "WHAT", what_width(what));
	out_printf(out, " %9s %9s %9s %7s", "A", "B", is_of_sides(d) ? "B - A" : "CHANGE", "BY");
	if (what >= DIFF_WAITED)
		out_printf(out, " %6s %6s", "%OF A", "%OF B");
	out_text(out, "\n");
	for (size_t i = 0; i < shown; i++)
		put_row(d, &d->row[first + i], out);
	if (shown < n)
		out_printf(out, "and %zu more: --rows 0 shows all\n", n - shown);
}

static void put_side(const struct diff_side *s, struct out *out)
{
	char safe[400], from[40], to[40];
	unsigned nvcpu = 0;

	for (size_t i = 0; i < s->nvm; i++)
		nvcpu += s->vm[i].nvcpu;
	text_escape(safe, sizeof(safe), s->path);
	store_time_text(from, sizeof(from), s->first);
	store_time_text(to, sizeof(to), s->last);
	out_printf(out, "%s  %s%s: ", s->label, safe,
		   s->part == DIFF_HOST_PART	? ", the host's side"
		   : s->part == DIFF_GUEST_PART ? ", the guests' side"
						: "");
	if (s->by_perf)
		out_printf(out, "%.4g s that perf recorded: ", (double)s->length / 1e9);
	else
		out_printf(out, "%s to %s: ", from, to);
	out_printf(out, "%llu interval%s of %.3g", (unsigned long long)s->intervals,
		   plural(s->intervals), (double)s->shortest / 1e9);
	if (s->longest > s->shortest * 1.05)
		out_printf(out, " to %.3g", (double)s->longest / 1e9);
	out_printf(out, " s, %zu VM%s, %u vCPU%s\n", s->nvm, plural(s->nvm), nvcpu, plural(nvcpu));
	if (s->lost)
		out_printf(out, "   %llu events were lost: counts of exits are too low by them\n",
			   (unsigned long long)s->lost);
	if (s->damaged)
		out_printf(out, "   %llu interval%s could not be read\n",
			   (unsigned long long)s->damaged, plural(s->damaged));
	for (size_t i = 0; i < s->nvm; i++) {
		if (!s->vm[i].twice)
			continue;
		text_escape(safe, sizeof(safe), s->vm[i].name);
		out_printf(out, "   several VMs are called %s: they are taken together\n", safe);
	}
}

static void put_fact(struct out *out, const char *name, const char *a, const char *b)
{
	put_word(out, name, 32);
	out_text(out, " ");
	format_escaped(out, text_escape, a ? a : "-");
	out_text(out, " -> ");
	format_escaped(out, text_escape, b ? b : "-");
	out_text(out, "\n");
}

/* What differs between the two; both are in the order of names. */
static size_t put_facts(const struct host_facts *a, const struct host_facts *b, bool all,
			const char *title, struct out *out)
{
	size_t i = 0, k = 0, n = 0;

	while (i < a->n || k < b->n) {
		int c = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->fact[i].name, b->fact[k].name);
		const struct host_fact *x = c <= 0 ? &a->fact[i++] : NULL;
		const struct host_fact *y = c >= 0 ? &b->fact[k++] : NULL;

		if (x && y ? strcmp(x->value, y->value) == 0 : !all)
			continue;
		if (!n++)
			out_printf(out, "\n%s\n", title);
		put_fact(out, x ? x->name : y->name, x ? x->value : NULL, y ? y->value : NULL);
	}
	return n;
}

static void put_hosts(const struct diff *d, struct out *out)
{
	const struct diff_side *a = &d->side[0], *b = &d->side[1];
	bool all = !a->by_perf && !b->by_perf; /* perf records few of them */

	if (a->part != DIFF_WHOLE)
		return; /* one and the same */
	for (int i = 0; i < 2; i++)
		if (!d->side[i].facts.n)
			out_printf(out, "\nfacts of the host are not in %s: %s\n", d->side[i].label,
				   d->side[i].by_perf ? "perf recorded none"
						      : "an older kvmtop recorded it");
	if (a->before.n && a->facts.n)
		put_facts(&a->before, &a->facts, true, "the host changed within A", out);
	if (b->before.n && b->facts.n)
		put_facts(&b->before, &b->facts, true, "the host changed within B", out);
	if (!a->facts.n || !b->facts.n)
		return;
	if (!put_facts(&a->facts, &b->facts, all, "what differs of the host", out))
		out_text(out, "\nthe host is the same in both, as far as it was recorded\n");
}

static void put_vms(const struct diff *d, struct out *out)
{
	size_t said = 0;

	for (size_t i = 0; i < d->npairs; i++) {
		const struct diff_vm *a = &d->side[0].vm[d->pair[i].a];
		const struct diff_vm *b = &d->side[1].vm[d->pair[i].b];

		if (strcmp(a->name, b->name) == 0 && a->nvcpu == b->nvcpu)
			continue;
		out_text(out, said++ ? "" : "\n");
		put_word(out, a->name, VM_WIDTH);
		out_printf(out, " (%u vCPU%s) is ", a->nvcpu, plural(a->nvcpu));
		put_word(out, b->name, VM_WIDTH);
		out_printf(out, " (%u vCPU%s), by %s\n", b->nvcpu, plural(b->nvcpu),
			   diff_by_name(d->pair[i].by));
	}
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < d->side[side].nvm; i++) {
			if (diff_pair_of(d, side, i) >= 0)
				continue;
			out_text(out, said++ ? "" : "\n");
			out_printf(out, "only in %s: ", d->side[side].label);
			put_word(out, d->side[side].vm[i].name, VM_WIDTH);
			out_printf(out, " (%u vCPU%s)\n", d->side[side].vm[i].nvcpu,
				   plural(d->side[side].vm[i].nvcpu));
		}
	}
}

void diff_text(const struct diff *d, size_t most, struct out *out)
{
	put_side(&d->side[0], out);
	put_side(&d->side[1], out);
	put_hosts(d, out);
	put_vms(d, out);
	for (size_t i = 0, n; i < d->nrows; i += n) {
		for (n = 1; i + n < d->nrows && d->row[i + n].what == d->row[i].what;)
			n++;
		put_part(d, i, n, most, out);
	}
	out_text(out, "\n* larger than the noise (99 %)");
	if (d->side[0].nblocks < DIFF_BLOCKS_LEAST || d->side[1].nblocks < DIFF_BLOCKS_LEAST)
		out_printf(out, "; ? not known: each side needs %d intervals or more",
			   DIFF_BLOCKS_LEAST);
	out_text(out, "\n");
}
