// SPDX-License-Identifier: GPL-2.0-only
/* The lines of a report in their order, of whatever it is made. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_names.h"
#include "report_out.h"
#include "report_recording.h"

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

static double rank_of(const struct report_line *l, enum report_sort sort)
{
	switch (sort) {
	case SORT_TIME:
		return (double)l->time_ns;
	case SORT_MAX:
		return (double)l->max_ns;
	case SORT_MIN:
		return (double)l->min_ns;
	case SORT_MEAN:
		return l->avg_ns;
	case SORT_STDERR:
		return l->stderr_pct;
	case SORT_P50:
		return (double)l->p50;
	case SORT_P99:
		return (double)l->p99;
	case SORT_P999:
		return (double)l->p999;
	default:
		return (double)l->timed;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct report_line *x = a, *y = b;

	if (x->by != y->by)
		return x->by > y->by ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct report_line *)a)->name, ((const struct report_line *)b)->name);
}

/* A histogram's step may reach beyond what was there. */
static uint64_t between(const struct report_row *r, uint64_t ns)
{
	return ns < r->min_ns ? r->min_ns : ns > r->max_ns ? r->max_ns : ns;
}

static void from_events(const struct report *r, const struct report_row *row, struct report_line *l)
{
	static const double share[] = {0.5, 0.99, 0.999};
	uint64_t q[3] = {0};

	(void)report_name(r, &row->k, l->name, sizeof(l->name));
	(void)hist_quantiles(&row->hist, share, q, 3);
	l->count = row->count;
	l->timed = row->timed;
	l->time_ns = row->time_ns;
	l->min_ns = row->min_ns;
	l->max_ns = row->max_ns;
	l->avg_ns = row->timed ? (double)row->time_ns / (double)row->timed : 0;
	l->stderr_pct = report_stderr_pct(row);
	l->p50 = between(row, q[0]);
	l->p99 = between(row, q[1]);
	l->p999 = between(row, q[2]);
}

static void from_recording(const struct recorded_row *row, struct report_line *l)
{
	const struct tally *t = &row->sum;

	strncat(l->name, row->name, sizeof(l->name) - 1);
	l->count = t->count;
	l->timed = t->timed;
	l->time_ns = t->time_ns;
	l->min_ns = t->min_ns;
	l->max_ns = t->max_ns;
	l->avg_ns = t->timed ? (double)t->time_ns / (double)t->timed : 0;
	l->stderr_pct = t->stderr_pct;
	l->no_pctl = t->pctl == PCTL_NONE;
	l->p50 = t->p50_ns;
	l->p99 = t->p99_ns;
	l->p999 = t->p999_ns;
}

static void take_line(struct report_lines *out, enum report_sort sort)
{
	struct report_line *l = &out->line[out->n];

	if (!l->count && !l->timed)
		return; /* of another vCPU */
	l->by = rank_of(l, sort);
	out->n++;
	out->count += l->count;
	out->timed += l->timed;
	out->time_ns += l->time_ns;
}

static void take_lines(const struct report_view *v, enum kvm_kind kind, struct report_lines *out)
{
	const struct report_table *t = v->rec ? NULL : &v->r->figures[kind];

	for (size_t i = 0; t && i < t->n; i++) {
		out->line[out->n] = (struct report_line){0};
		from_events(v->r, t->row[i], &out->line[out->n]);
		take_line(out, v->sort);
	}
	for (size_t i = 0; v->rec && i < v->rec->n; i++) {
		if (v->rec->row[i].kind != kind)
			continue;
		out->line[out->n] = (struct report_line){0};
		from_recording(&v->rec->row[i], &out->line[out->n]);
		take_line(out, v->sort);
	}
}

static int make_lines(const struct report_view *v, enum kvm_kind kind, struct report_lines *out)
{
	size_t most = v->rec ? v->rec->n : v->r->figures[kind].n;

	*out = (struct report_lines){.line = calloc(most + 1, sizeof(*out->line))};
	if (!out->line)
		return -ENOMEM;
	take_lines(v, kind, out);
	if (out->n)
		qsort(out->line, out->n, sizeof(*out->line),
		      v->sort == SORT_KEY ? by_name : by_rank);
	for (size_t i = 0; v->reverse && i < out->n / 2; i++) {
		struct report_line swap = out->line[i];

		out->line[i] = out->line[out->n - 1 - i];
		out->line[out->n - 1 - i] = swap;
	}
	return 0;
}

int report_each_kind(const struct report_view *v, report_put_kind_fn put, struct out *o)
{
	unsigned kinds = v->rec ? v->rec->kinds : v->r->q->kinds;
	size_t before = 0;
	int rc = 0;

	for (unsigned k = 0; k < KIND_NR && !rc; k++) {
		struct report_lines l;

		if (!(kinds >> k & 1))
			continue;
		rc = make_lines(v, (enum kvm_kind)k, &l);
		l.before = before;
		if (!rc)
			rc = put(v, (enum kvm_kind)k, &l, o);
		before += l.n;
		free(l.line);
	}
	return rc;
}
