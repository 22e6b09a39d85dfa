// SPDX-License-Identifier: GPL-2.0-only
/* The tables of a report as text, CSV and JSON, and how they differ from perf's. */
#include "report_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_names.h"
#include "out.h"
#include "perfdata.h"
#include "text.h"
#include "version.h"

/* A row as it is shown. */
struct line {
	const struct report_row *r;
	char name[REPORT_NAME];
	uint64_t p50, p99, p999;
	double by;
};

struct lines {
	struct line *line;
	size_t n;
	uint64_t count, timed, time_ns;
};

static const struct {
	const char *word, *id;
	enum report_sort sort;
} sorts[] = {
	{"sample", "timed", SORT_SAMPLE}, {"time", "time_ns", SORT_TIME},
	{"max_t", "max_ns", SORT_MAX},	  {"min_t", "min_ns", SORT_MIN},
	{"mean_t", "avg_ns", SORT_MEAN},  {"stderr", "stderr_pct", SORT_STDERR},
	{"p50", "p50_ns", SORT_P50},	  {"p99", "p99_ns", SORT_P99},
	{"p999", "p999_ns", SORT_P999},	  {"key", "key", SORT_KEY},
};

bool report_sort_find(const char *word, enum report_sort *out)
{
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
		if (strcmp(word, sorts[i].word) == 0 || strcmp(word, sorts[i].id) == 0) {
			*out = sorts[i].sort;
			return true;
		}
	}
	return false;
}

const char *report_kind_title(enum kvm_kind kind)
{
	static const char *const titles[KIND_NR] = {
		[KIND_VMEXIT] = "vmexit",	[KIND_MMIO] = "mmio",
		[KIND_IOPORT] = "ioport",	[KIND_MSR] = "msr",
		[KIND_HYPERCALL] = "hypercall", [KIND_USEREXIT] = "userexit"};

	return titles[kind] ? titles[kind] : "";
}

const char *report_name(const struct report *r, const struct report_key *k, char *buf, size_t size)
{
	return kvm_names_key(r->names, k->kind, k->isa, k->key, k->dir, buf, size);
}

/* ---- lines in order ---- */

static double rank_of(const struct line *l, enum report_sort sort)
{
	switch (sort) {
	case SORT_TIME:
		return (double)l->r->time_ns;
	case SORT_MAX:
		return (double)l->r->max_ns;
	case SORT_MIN:
		return (double)l->r->min_ns;
	case SORT_MEAN:
		return l->r->timed ? (double)l->r->time_ns / (double)l->r->timed : 0;
	case SORT_STDERR:
		return report_stderr_pct(l->r);
	case SORT_P50:
		return (double)l->p50;
	case SORT_P99:
		return (double)l->p99;
	case SORT_P999:
		return (double)l->p999;
	default:
		return (double)l->r->timed;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->by != y->by)
		return x->by > y->by ? -1 : 1;
	if (x->r->count != y->r->count)
		return x->r->count > y->r->count ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

/* A histogram's step may reach beyond what was there. */
static uint64_t between(const struct report_row *r, uint64_t ns)
{
	return ns < r->min_ns ? r->min_ns : ns > r->max_ns ? r->max_ns : ns;
}

static void make_line(const struct report_view *v, const struct report_row *r, struct line *l)
{
	static const double share[] = {0.5, 0.99, 0.999};
	uint64_t q[3] = {0};

	l->r = r;
	(void)report_name(v->r, &r->k, l->name, sizeof(l->name));
	(void)hist_quantiles(&r->hist, share, q, 3);
	l->p50 = between(r, q[0]);
	l->p99 = between(r, q[1]);
	l->p999 = between(r, q[2]);
	l->by = rank_of(l, v->sort);
}

static int make_lines(const struct report_view *v, enum kvm_kind kind, struct lines *out)
{
	const struct report_table *t = &v->r->figures[kind];

	*out = (struct lines){.line = calloc(t->n + 1, sizeof(*out->line))};
	if (!out->line)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		const struct report_row *r = t->row[i];

		if (!r->count && !r->timed)
			continue; /* of another vCPU */
		make_line(v, r, &out->line[out->n++]);
		out->count += r->count;
		out->timed += r->timed;
		out->time_ns += r->time_ns;
	}
	if (out->n)
		qsort(out->line, out->n, sizeof(*out->line),
		      v->sort == SORT_KEY ? by_name : by_rank);
	for (size_t i = 0; v->reverse && i < out->n / 2; i++) {
		struct line swap = out->line[i];

		out->line[i] = out->line[out->n - 1 - i];
		out->line[out->n - 1 - i] = swap;
	}
	return 0;
}

static double share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

typedef int (*put_kind_fn)(const struct report_view *v, enum kvm_kind kind, const struct lines *l,
			   struct out *o);

static int each_kind(const struct report_view *v, put_kind_fn put, struct out *o)
{
	int rc = 0;

	for (unsigned k = 0; k < KIND_NR && !rc; k++) {
		struct lines l;

		if (!(v->r->q->kinds >> k & 1))
			continue;
		rc = make_lines(v, (enum kvm_kind)k, &l);
		if (!rc)
			rc = put(v, (enum kvm_kind)k, &l, o);
		free(l.line);
	}
	return rc;
}

/* ---- text ---- */

static void put_us(struct out *o, uint64_t ns)
{
	out_printf(o, " %11.2f", (double)ns / 1e3);
}

static void put_line(const struct lines *all, const struct line *l, struct out *o)
{
	const struct report_row *r = l->r;
	char name[4 * REPORT_NAME];

	text_escape(name, sizeof(name), l->name);
	out_printf(o, "%-20s %10" PRIu64, name, r->timed);
	if (!r->timed) {
		out_printf(o, " %7s %7s %11s %11s %11s %7s %11s %11s %11s %10" PRIu64 "\n", "n/a",
			   "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", r->count);
		return;
	}
	out_printf(o, " %7.2f %7.2f", share(r->timed, all->timed), share(r->time_ns, all->time_ns));
	put_us(o, r->min_ns);
	put_us(o, r->max_ns);
	out_printf(o, " %11.2f %7.2f", (double)r->time_ns / (double)r->timed / 1e3,
		   report_stderr_pct(r));
	put_us(o, l->p50);
	put_us(o, l->p99);
	put_us(o, l->p999);
	out_printf(o, " %10" PRIu64 "\n", r->count);
}

static int text_kind(const struct report_view *v, enum kvm_kind kind, const struct lines *l,
		     struct out *o)
{
	out_printf(o, "# %s: %" PRIu64 " events", report_kind_title(kind), l->count);
	if (v->r->entries || l->timed)
		out_printf(o, ", %" PRIu64 " timed, %.2f us altogether\n", l->timed,
			   (double)l->time_ns / 1e3);
	else
		out_text(o, "; without kvm_entry and kvm_exit nothing is timed\n");
	out_printf(o, "%-20s %10s %7s %7s %11s %11s %11s %7s %11s %11s %11s %10s\n", "REASON",
		   "TIMED", "%TIMED", "%TIME", "MIN/us", "MAX/us", "AVG/us", "+-%", "p50/us",
		   "p99/us", "p99.9/us", "COUNT");
	for (size_t i = 0; i < l->n; i++)
		put_line(l, &l->line[i], o);
	out_text(o, "\n");
	return 0;
}

int report_put_text(const struct report_view *v, struct out *o)
{
	return each_kind(v, text_kind, o);
}

/* ---- CSV ---- */

static void csv_times(const struct lines *all, const struct line *l, struct out *o)
{
	const struct report_row *r = l->r;

	if (!r->timed) {
		out_text(o, ",,,,,,,,,\n");
		return;
	}
	out_printf(o, ",%.4f,%" PRIu64 ",%.4f,%" PRIu64 ",%.3f,%.4f", share(r->timed, all->timed),
		   r->time_ns, share(r->time_ns, all->time_ns), r->min_ns,
		   (double)r->time_ns / (double)r->timed, report_stderr_pct(r));
	out_printf(o, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", l->p50, l->p99, l->p999,
		   r->max_ns);
}

static int csv_kind(const struct report_view *v, enum kvm_kind kind, const struct lines *l,
		    struct out *o)
{
	char name[4 * REPORT_NAME];

	(void)v;
	for (size_t i = 0; i < l->n; i++) {
		text_escape_csv(name, sizeof(name), l->line[i].name);
		out_printf(o, "%s,%s,%" PRIu64 ",%.4f,%" PRIu64, report_kind_title(kind), name,
			   l->line[i].r->count, share(l->line[i].r->count, l->count),
			   l->line[i].r->timed);
		csv_times(l, &l->line[i], o);
	}
	return 0;
}

int report_put_csv(const struct report_view *v, struct out *o)
{
	out_text(o, "kind,key,count,count_pct,timed,timed_pct,time_ns,time_pct,min_ns,avg_ns,"
		    "stderr_pct,p50_ns,p99_ns,p999_ns,max_ns\n");
	return each_kind(v, csv_kind, o);
}

/* ---- JSON ---- */

void report_json_text(struct out *o, const char *text)
{
	char clean[4096];

	text_utf8_clean(clean, sizeof(clean), text);
	out_text(o, "\"");
	for (const char *c = clean; *c; c++) {
		if (*c == '"' || *c == '\\')
			out_printf(o, "\\%c", *c);
		else if ((unsigned char)*c < 0x20)
			out_printf(o, "\\u%04x", (unsigned char)*c);
		else
			out_bytes(o, c, 1);
	}
	out_text(o, "\"");
}

static void json_times(const struct lines *all, const struct line *l, struct out *o)
{
	const struct report_row *r = l->r;

	if (!r->timed) {
		out_text(o,
			 ",\"timed_pct\":null,\"time_ns\":null,\"time_pct\":null,\"min_ns\":null,"
			 "\"max_ns\":null,\"avg_ns\":null,\"stderr_pct\":null,\"p50_ns\":null,"
			 "\"p99_ns\":null,\"p999_ns\":null}");
		return;
	}
	out_printf(
		o,
		",\"timed_pct\":%.4f,\"time_ns\":%" PRIu64 ",\"time_pct\":%.4f,\"min_ns\":%" PRIu64
		",\"max_ns\":%" PRIu64 ",\"avg_ns\":%.3f,\"stderr_pct\":%.4f",
		share(r->timed, all->timed), r->time_ns, share(r->time_ns, all->time_ns), r->min_ns,
		r->max_ns, (double)r->time_ns / (double)r->timed, report_stderr_pct(r));
	out_printf(o, ",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 ",\"p999_ns\":%" PRIu64 "}",
		   l->p50, l->p99, l->p999);
}

static int json_kind(const struct report_view *v, enum kvm_kind kind, const struct lines *l,
		     struct out *o)
{
	bool first = !(v->r->q->kinds & (KIND_BIT((unsigned)kind) - 1));

	for (size_t i = 0; i < l->n; i++) {
		const struct report_row *r = l->line[i].r;

		out_printf(o, "%s{\"kind\":\"%s\",\"key\":", first && !i ? "" : ",",
			   report_kind_title(kind));
		report_json_text(o, l->line[i].name);
		out_printf(o, ",\"count\":%" PRIu64 ",\"count_pct\":%.4f,\"timed\":%" PRIu64,
			   r->count, share(r->count, l->count), r->timed);
		json_times(l, &l->line[i], o);
	}
	return 0;
}

int report_put_json(const struct report_view *v, struct out *o)
{
	int rc;

	out_printf(o, "{\"schema\":1,\"version\":\"%s\",\"file\":", KVMTOP_VERSION);
	report_json_text(o, v->file);
	out_printf(o,
		   ",\"span_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"lost\":%" PRIu64
		   ",\"cut\":%s,\"unmatched\":%" PRIu64 ",\"torn\":%" PRIu64 ",\"open\":%" PRIu64
		   ",\"exits\":[",
		   (uint64_t)(v->r->last - v->r->first), v->r->events, v->sum->lost,
		   v->sum->cut ? "true" : "false", v->r->unmatched, v->r->torn, v->r->open);
	rc = each_kind(v, json_kind, o);
	out_text(o, "]}\n");
	return rc;
}

/* ---- differences ---- */

static const char *const causes[CAUSE_NR] = {
	[CAUSE_FIRST] = "before the thread's first kvm_entry, which perf leaves out",
	[CAUSE_FLAGS] = "flags of the reason, which make another reason of it in perf",
	[CAUSE_VCPU] = "another vCPU in the same thread, which perf takes for the first",
	[CAUSE_LOST] = "events were lost in it, and perf times it all the same",
	[CAUSE_MIXED] = "a write and a read in one exit, which perf takes for one",
	[CAUSE_PAIRED] = "a begin and an end that do not belong together",
};

static void put_difference(const struct report_view *v, const struct report_row *r, struct out *o)
{
	char name[REPORT_NAME], shown[4 * REPORT_NAME];

	if (r->k.cause == CAUSE_FLAGS && r->more < 0) { /* perf's row, which has no name there */
		report_perf_name(v->r, &r->k, name, sizeof(name));
		snprintf(shown, sizeof(shown), "%s(%#" PRIx64 ")", name, r->k.key);
	} else {
		report_name(v->r, &r->k, name, sizeof(name));
		text_escape(shown, sizeof(shown), name);
	}
	out_printf(o, "%s %s %+" PRId64 " %+" PRId64 " ns: %s\n", report_kind_title(r->k.kind),
		   shown, r->more, r->more_ns, causes[r->k.cause]);
}

/* Rows of ours that have another name there. */
static void put_names(const struct report_view *v, struct out *o)
{
	const struct report_table *t = &v->r->figures[KIND_VMEXIT];
	char name[REPORT_NAME], there[REPORT_NAME], shown[4 * REPORT_NAME];

	for (size_t i = 0; i < t->n; i++) {
		if (!t->row[i]->timed)
			continue;
		report_name(v->r, &t->row[i]->k, name, sizeof(name));
		report_perf_name(v->r, &t->row[i]->k, there, sizeof(there));
		if (strcmp(name, there) == 0)
			continue;
		text_escape(shown, sizeof(shown), name);
		out_printf(o, "vmexit %s +0 +0 ns: perf calls it %s\n", shown, there);
	}
}

int report_put_differences(const struct report_view *v, struct out *o)
{
	const struct report_table *t = &v->r->diff;
	size_t n = 0;

	out_text(o, "# differences to perf 6.1: pairs and their time that perf has not (+) or has "
		    "too much (-)\n");
	for (size_t i = 0; i < t->n; i++) {
		if (!t->row[i]->more && !t->row[i]->more_ns)
			continue;
		put_difference(v, t->row[i], o);
		n++;
	}
	put_names(v, o);
	if (v->r->q->nvcpus)
		out_text(o, "# perf shows 0.00us as the minimum of every row of one vCPU\n");
	if (v->sum->lost_records)
		out_printf(o,
			   "# perf counts %" PRIu64 " records of losses, not the %" PRIu64
			   " events that they tell of\n",
			   v->sum->lost_records, v->sum->lost);
	if (!n)
		out_text(o, "# no pair is counted or timed in another way\n");
	return 0;
}
