// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prometheus, text 0.0.4: an exposition an interval, ended by "# EOF", which is a comment there. No
 * sample has a time of its own: the textfile collector of node_exporter takes none.
 *
 * A family is a field of rows of one level. Its samples stand together, so rows are collected once
 * and gone through once a field.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "format.h"
#include "format_prom_names.h"
#include "text.h"
#include "version.h"

/* What one walk over rows writes: all fields of the table, or those in "|a|b|". */
struct part {
	const char *table, *first, *second;
};

/*
 * Without --table: what alerts and overviews need. A host of 16,000 vCPUs still has less than
 * 200,000 series of it.
 */
static const struct part usual[] = {
	{"host", NULL, NULL},
	{"cpu", NULL,
	 "|cpu_pct|guest_pct|sys_pct|steal_pct|throt_pct|exits_per_s|exit_pct|p99_ns|"},
	{"exit", "|count|time_ns|", NULL},
	{"finding", NULL, NULL},
};

struct labels {
	char *text;
	size_t n, room;
};

/* A row with its labels; the next one with the same labels, of the same family. */
struct series {
	const struct batch_row *row;
	size_t labels; /* where they begin */
	struct series *next;
	bool first;
	enum { LEVEL_HOST, LEVEL_VM, LEVEL_VCPU, LEVEL_OTHER, LEVEL_NR } level;
};

static const char *const levels[LEVEL_NR] = {"host", "vm", "vcpu", "other"};

struct format_state {
	const struct format_job *job;
	struct batch_columns columns; /* of --fields; n 0: all */
	struct batch_rows rows;
	struct labels labels;
	struct series *series; /* a row each */
	bool *vm_seen, *vcpu_seen; /* rows are of them */
	bool *twin; /* a vCPU each: another one of its VM has its number */
	uint64_t partial[WHY_NR], unknown[WHY_NR]; /* figures of this exposition */
	int rc;
};

static void prom_close(struct format_state *f)
{
	if (!f)
		return;
	batch_columns_free(&f->columns);
	batch_rows_free(&f->rows);
	free(f->labels.text);
	free(f);
}

static int prom_open(const struct format_job *j, struct format_state **out, char *err, size_t size)
{
	struct format_state *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->job = j;
	rc = format_prometheus_check(j->query.table, j->fields, err, size);
	if (!rc && j->fields)
		rc = batch_columns_make(j->query.table, j->fields, &f->columns, err, size);
	if (rc) {
		prom_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

/* --- what can be had --- */

/* Fields that stand in labels, or in an info metric. */
static bool is_label(const char *id)
{
	static const char ids[] = "|name|vm|vm_id|uuid|title|pid|vmm|cgroup|steal_source|quality|"
				  "vcpu|kvm_id|tid|kind|key|idle|domain|symbol|module|by|by_kind|"
				  "counter|event|mode|comm|role|rule|level|node|kernel|events_by|"
				  "sampling|";
	char name[40];

	snprintf(name, sizeof(name), "|%s|", id);
	return strstr(ids, name) != NULL;
}

static bool is_metric(const struct batch_table *t, const struct batch_column *c)
{
	struct prom_name name;

	for (size_t i = 0; i < TABLE_NR; i++)
		if (c->by[i] && prom_name((enum field_table)i, c->by[i], "", &name))
			return true;
	/* A pCPU's number is a label where rows are of pCPUs. */
	return is_label(c->f->id) || (t->first == TABLE_CPU && strcmp(c->f->id, "cpu") == 0);
}

int format_prometheus_check(const struct batch_table *t, const char *fields, char *err, size_t size)
{
	struct batch_columns columns;
	int rc;

	if (t->first == TABLE_SLOW) {
		snprintf(err, size,
			 "--table slow: single exits are no metrics: give another format, or the "
			 "field slow_exits of table vm");
		return -EINVAL;
	}
	if (!fields)
		return 0;
	rc = batch_columns_make(t, fields, &columns, err, size);
	for (size_t i = 0; !rc && i < columns.n; i++)
		if (!is_metric(t, &columns.col[i])) {
			snprintf(err, size,
				 "--fields: %s is no number that says something alone, so no "
				 "metric: leave it away, or give another format",
				 columns.col[i].f->id);
			rc = -EINVAL;
		}
	batch_columns_free(&columns);
	return rc;
}

/* --- labels --- */

static void put_label_bytes(struct format_state *f, const char *data, size_t n)
{
	struct labels *l = &f->labels;

	while (!f->rc && l->n + n > l->room) {
		size_t more = l->room ? l->room * 2 : 4096;
		char *grown = realloc(l->text, more);

		if (!grown) {
			f->rc = -ENOMEM;
			break;
		}
		l->text = grown;
		l->room = more;
	}
	if (f->rc)
		return;
	memcpy(l->text + l->n, data, n);
	l->n += n;
}

/* An absent label and an empty one are the same to Prometheus. */
static void put_label(struct format_state *f, const char *name, const char *text)
{
	char small[256], *large = small;
	size_t need;

	if (!text || !*text)
		return;
	need = text_escape_label(small, sizeof(small), text) + 1;
	if (need > sizeof(small)) {
		large = malloc(need);
		if (!large) {
			f->rc = -ENOMEM;
			return;
		}
		text_escape_label(large, need, text);
	}
	if (f->labels.n && f->labels.text[f->labels.n - 1])
		put_label_bytes(f, ",", 1);
	put_label_bytes(f, name, strlen(name));
	put_label_bytes(f, "=\"", 2);
	put_label_bytes(f, large, need - 1);
	put_label_bytes(f, "\"", 1);
	if (large != small)
		free(large);
}

static void put_number_label(struct format_state *f, const char *name, long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	put_label(f, name, text);
}

static void end_labels(struct format_state *f)
{
	put_label_bytes(f, "", 1);
}

/* Whatever a VMM calls its UUID, no two of the ids become the same: a backslash is doubled. */
static void put_vm_labels(struct format_state *f, const struct snap_vm *vm)
{
	size_t need = text_escape(NULL, 0, vm->vm_id) + 1;
	char *id = malloc(need);

	if (!id) {
		f->rc = -ENOMEM;
		return;
	}
	text_escape(id, need, vm->vm_id);
	put_label(f, "vm", vm->name);
	put_label(f, "vm_id", id);
	free(id);
}

/* Its number; where a VMM has given one twice KVM's own, written as --vcpu takes it. */
static void put_vcpu_label(struct format_state *f, const struct snapshot *s,
			   const struct snap_vcpu *v)
{
	char text[32];

	snprintf(text, sizeof(text), f->twin[v - s->vcpus] ? "id:%d" : "%d",
		 f->twin[v - s->vcpus] ? v->kvm_id : v->index);
	put_label(f, "vcpu", text);
}

static const char *text_of(const struct snapshot *s, const struct batch_row *r, const char *id)
{
	const struct field *field = field_find(r->table, id);

	return field && field->unit == UNIT_TEXT ? field->get(s, r->row, false).text : "";
}

static const char *host_text(const struct snapshot *s, const char *id)
{
	return text_of(s, &(const struct batch_row){.table = TABLE_HOST, .row = &s->host}, id);
}

/* What tells rows of one VM, vCPU or host apart: as CSV's key, a label each. */
static void put_row_labels(struct format_state *f, const struct snapshot *s,
			   const struct batch_row *r)
{
	static const struct {
		enum field_table table;
		const char *label, *id;
	} labels[] = {
		{TABLE_EXIT, "kind", "kind"},	    {TABLE_EXIT, "reason", "key"},
		{TABLE_EXIT, "idle", "idle"},	    {TABLE_SYMBOL, "domain", "domain"},
		{TABLE_SYMBOL, "symbol", "symbol"}, {TABLE_SYMBOL, "module", "module"},
		{TABLE_CODE, "reason", "key"},	    {TABLE_CODE, "domain", "domain"},
		{TABLE_CODE, "symbol", "symbol"},   {TABLE_CODE, "module", "module"},
		{TABLE_WAITED, "by", "by"},	    {TABLE_WAITED, "by_kind", "by_kind"},
		{TABLE_PMU, "counter", "counter"},  {TABLE_PMU, "event", "event"},
		{TABLE_PMU, "mode", "mode"},	    {TABLE_THREAD, "comm", "comm"},
		{TABLE_THREAD, "role", "role"},	    {TABLE_TASK, "comm", "comm"},
		{TABLE_FINDING, "rule", "rule"},    {TABLE_FINDING, "level", "level"},
	};

	if (r->vm)
		put_vm_labels(f, r->vm);
	if (r->vcpu)
		put_vcpu_label(f, s, r->vcpu);
	if (r->table == TABLE_CPU)
		put_number_label(f, "cpu", ((const struct snap_cpu *)r->row)->cpu);
	if (r->table == TABLE_THREAD)
		put_number_label(f, "tid", ((const struct snap_thread *)r->row)->tid);
	if (r->table == TABLE_TASK)
		put_number_label(f, "pid", ((const struct snap_task *)r->row)->pid);
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels[i].table == r->table)
			put_label(f, labels[i].label, text_of(s, r, labels[i].id));
}

/* --- samples --- */

static void put_head(struct out *o, const char *name, const char *type, const char *help)
{
	out_printf(o, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_sample(struct out *o, const char *name, const char *labels, double v)
{
	/* 15 digits are all that a double is sure of; whole numbers have theirs. */
	const char *as = v == floor(v) && fabs(v) < 1e15 ? "%s%s%s%s %.0f\n" : "%s%s%s%s %.15g\n";

	out_printf(o, as, name, *labels ? "{" : "", labels, *labels ? "}" : "", v + 0.0);
}

static void put_one(struct out *o, const char *name, const char *type, const char *help, double v)
{
	put_head(o, name, type, help);
	put_sample(o, name, "", v);
}

/* Figures have three decimals in their own unit: nothing that we measure is finer. */
static double in_base_unit(const struct field *field, const struct prom_name *name, double v)
{
	if (!format_is_whole(field->unit))
		v = round(v * 1000) / 1000;
	return v / name->divisor;
}

static struct value figure_of(struct format_state *f, const struct snapshot *s,
			      const struct series *x, const struct field *field, bool total)
{
	struct value v = field->get(s, x->row->row, total).v;

	if (value_has(v) && !isfinite(v.v))
		v = value_pending();
	if (v.state == VALUE_PARTIAL && v.why < WHY_NR)
		f->partial[v.why]++;
	if (v.state == VALUE_NA && v.why < WHY_NR)
		f->unknown[v.why]++;
	return v;
}

/* Of rows with the same labels: their sum, or what the first one says. */
static struct value value_of(struct format_state *f, const struct snapshot *s,
			     const struct series *x, const struct field *field,
			     const struct prom_name *name)
{
	struct value sum = figure_of(f, s, x, field, name->counter), v;

	while (name->adds && (x = x->next) != NULL) {
		v = figure_of(f, s, x, field, name->counter);
		if (!value_has(v))
			continue;
		sum = value_has(sum) ? value_known(sum.v + v.v) : v;
	}
	return sum;
}

static void put_family(struct format_state *f, struct out *o, const struct snapshot *s,
		       enum field_table t, const struct field *field, unsigned level)
{
	struct prom_name name;
	bool begun = false;

	if (!prom_name(t, field, levels[level], &name))
		return;
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct series *x = &f->series[i];
		struct value v;

		if (!x->first || x->row->table != t || x->level != level)
			continue;
		v = value_of(f, s, x, field, &name);
		if (!value_has(v))
			continue;
		if (!begun)
			out_printf(o, "# HELP %s %s%s%s: %s\n# TYPE %s %s\n", name.name, field->id,
				   name.unit_help,
				   field->flags & FIELD_TOTAL && name.counter ? ", since the start"
									      : "",
				   field->help, name.name, name.counter ? "counter" : "gauge");
		begun = true;
		put_sample(o, name.name, f->labels.text + x->labels,
			   in_base_unit(field, &name, v.v));
	}
}

static bool chosen(const struct format_state *f, enum field_table t, const struct field *field,
		   const char *only)
{
	char id[40];

	for (size_t i = 0; i < f->columns.n; i++)
		if (f->columns.col[i].by[t] == field)
			return true;
	if (f->columns.n)
		return false;
	snprintf(id, sizeof(id), "|%s|", field->id);
	return !only || strstr(only, id) != NULL;
}

/* Rows of a table that are of one level, which in most tables all of them are. */
static void put_families(struct format_state *f, struct out *o, const struct snapshot *s,
			 enum field_table t, const char *only)
{
	const struct field_list *l = field_list(t);
	bool any[LEVEL_NR] = {false};

	for (size_t i = 0; i < f->rows.n; i++)
		if (f->series[i].first && f->series[i].row->table == t)
			any[f->series[i].level] = true;
	for (unsigned level = 0; level < LEVEL_NR; level++)
		for (size_t i = 0; any[level] && i < l->n; i++)
			if (chosen(f, t, &l->field[i], only))
				put_family(f, o, s, t, &l->field[i], level);
}

/* --- rows --- */

static unsigned level_of(const struct batch_row *r)
{
	const char *level = batch_level(r);

	/* The families of findings are of all levels: what a finding is about is in its labels. */
	for (unsigned i = 0; r->table != TABLE_FINDING && i < LEVEL_NR; i++)
		if (strcmp(level, levels[i]) == 0)
			return i;
	return LEVEL_HOST;
}

static int compare_series(const void *a, const void *b, void *labels)
{
	const struct series *x = *(struct series *const *)a, *y = *(struct series *const *)b;
	const char *text = labels;
	int c;

	if (x->row->table != y->row->table)
		return x->row->table < y->row->table ? -1 : 1;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	c = strcmp(text + x->labels, text + y->labels);
	if (c)
		return c;
	return x < y ? -1 : x > y;
}

/*
 * A series may be there once: rows of the same labels (two static functions of one name, two VMs
 * of one name that had the CPU) hang on the first of them.
 */
static int join_same(struct format_state *f)
{
	struct series **order = calloc(f->rows.n ? f->rows.n : 1, sizeof(*order));
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < f->rows.n; i++)
		if (f->series[i].first)
			order[n++] = &f->series[i];
	if (n)
		qsort_r(order, n, sizeof(order[0]), compare_series, f->labels.text);
	for (size_t i = 1; i < n; i++) {
		const struct series *x = order[i - 1], *y = order[i];

		if (x->row->table != y->row->table || x->level != y->level ||
		    strcmp(f->labels.text + x->labels, f->labels.text + y->labels) != 0)
			continue;
		order[i - 1]->next = order[i];
		order[i]->first = false;
	}
	free(order);
	return 0;
}

static int make_series(struct format_state *f, const struct snapshot *s)
{
	f->labels.n = 0;
	f->series = calloc(f->rows.n ? f->rows.n : 1, sizeof(*f->series));
	if (!f->series)
		return -ENOMEM;
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct batch_row *r = &f->rows.row[i];
		struct series *x = &f->series[i];

		/* What is no VM has its figures among the host's. */
		if (r->other)
			continue;
		*x = (struct series){
			.row = r, .labels = f->labels.n, .first = true, .level = level_of(r)};
		put_row_labels(f, s, r);
		end_labels(f);
		if (r->vm)
			f->vm_seen[r->vm - s->vms] = true;
		if (r->vcpu)
			f->vcpu_seen[r->vcpu - s->vcpus] |= r->table == TABLE_VCPU;
	}
	return f->rc ? f->rc : join_same(f);
}

static int collect(struct format_state *f, const struct snapshot *s, const char *table)
{
	struct batch_query q = f->job->query;

	if (table)
		q.table = batch_table_find(table);
	return batch_rows_collect(&q, s, &f->rows);
}

/* Of rows that are collected. */
static void put_part(struct format_state *f, struct out *o, const struct snapshot *s,
		     const struct batch_table *t, const struct part *p)
{
	f->rc = make_series(f, s);
	if (!f->rc) {
		put_families(f, o, s, t->first, p->first);
		if (t->second != t->first)
			put_families(f, o, s, t->second, p->second);
	}
	free(f->series);
	f->series = NULL;
}

static void put_parts(struct format_state *f, struct out *o, const struct snapshot *s)
{
	static const struct part all = {NULL, NULL, NULL};

	if (!f->job->whole) {
		put_part(f, o, s, f->job->query.table, &all);
		return;
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && !f->rc; i++) {
		f->rc = collect(f, s, usual[i].table);
		if (!f->rc)
			put_part(f, o, s, batch_table_find(usual[i].table), &usual[i]);
	}
}

/* --- what is said of the exposition itself --- */

/* One sample with the value 1 and the labels that were put. */
static void put_info(struct format_state *f, struct out *o, const char *name)
{
	end_labels(f);
	if (!f->rc)
		put_sample(o, name, f->labels.text, 1);
	f->labels.n = 0;
}

static void put_front(struct format_state *f, struct out *o, const struct snapshot *s)
{
	f->labels.n = 0;
	put_head(o, "kvmtop_build_info", "gauge", "the version of kvmtop");
	put_label(f, "version", KVMTOP_VERSION);
	put_info(f, o, "kvmtop_build_info");
	put_head(o, "kvmtop_host_info", "gauge",
		 "the host's name, kernel and boot, and where figures come from");
	put_label(f, "node", s->host.node);
	put_label(f, "kernel", s->host.kernel);
	put_label(f, "boot_id", s->host.boot_id);
	put_label(f, "events_by", host_text(s, "events_by"));
	put_label(f, "sampling", host_text(s, "sampling"));
	put_info(f, o, "kvmtop_host_info");
	put_one(o, "kvmtop_time_seconds", "gauge",
		"when the interval ended that the figures are of, Unix time",
		round((double)timespec_ns(s->wall) / 1e6) / 1e3);
	put_one(o, "kvmtop_interval_seconds", "gauge", "how long it was",
		round((double)s->dt / 1e3) / 1e6);
	put_one(o, "kvmtop_totals_start_time_seconds", "gauge",
		"since when what is called _total was counted, Unix time",
		round((double)(timespec_ns(s->wall) - (s->time - s->since)) / 1e6) / 1e3);
}

static void put_vm_infos(struct format_state *f, struct out *o, const struct snapshot *s)
{
	static const char *const ids[] = {"uuid",   "title",	    "vmm",
					  "cgroup", "steal_source", "quality"};
	bool begun = false;

	f->labels.n = 0;
	for (size_t i = 0; i < s->nvms; i++) {
		const struct snap_vm *vm = &s->vms[i];
		const struct batch_row r = {.table = TABLE_VM, .row = vm};

		if (!f->vm_seen[i])
			continue;
		if (!begun)
			put_head(o, "kvmtop_vm_info", "gauge",
				 "a VM: vm_id is what tells VMs of the same name apart");
		begun = true;
		put_vm_labels(f, vm);
		put_number_label(f, "pid", vm->pid);
		for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++)
			put_label(f, ids[k], text_of(s, &r, ids[k]));
		put_info(f, o, "kvmtop_vm_info");
	}
}

static void put_vcpu_infos(struct format_state *f, struct out *o, const struct snapshot *s)
{
	bool begun = false;

	f->labels.n = 0;
	for (size_t i = 0; i < s->nvcpus; i++) {
		const struct snap_vcpu *v = &s->vcpus[i];

		if (!f->vcpu_seen[i] || v->vm >= s->nvms)
			continue;
		if (!begun)
			put_head(o, "kvmtop_vcpu_info", "gauge",
				 "a vCPU: its number is the VMM's, kvm_id KVM's, tid its thread");
		begun = true;
		put_vm_labels(f, &s->vms[v->vm]);
		put_vcpu_label(f, s, v);
		put_number_label(f, "kvm_id", v->kvm_id);
		if (v->tid > 0)
			put_number_label(f, "tid", v->tid);
		put_label(f, "comm", v->comm);
		put_label(f, "guessed", v->index_guessed ? "guessed" : "");
		put_info(f, o, "kvmtop_vcpu_info");
	}
}

static void put_sources(struct format_state *f, struct out *o, const struct snapshot *s)
{
	f->labels.n = 0;
	if (s->nsources)
		put_head(o, "kvmtop_source_ok", "gauge",
			 "1: a source of figures gives all that it has; 0: kvmtop doctor says why "
			 "not, and what mends it");
	for (size_t i = 0; i < s->nsources; i++) {
		put_label(f, "source", s->sources[i].name);
		end_labels(f);
		if (!f->rc)
			put_sample(o, "kvmtop_source_ok", f->labels.text,
				   s->sources[i].state == SOURCE_OK);
		f->labels.n = 0;
	}
}

static void put_reasons(struct format_state *f, struct out *o, const char *name, const char *help,
			const uint64_t *counts)
{
	bool begun = false;

	f->labels.n = 0;
	for (unsigned why = WHY_NONE + 1; why < WHY_NR; why++) {
		if (!counts[why])
			continue;
		if (!begun)
			put_head(o, name, "gauge", help);
		begun = true;
		put_label(f, "reason", value_why_text((enum value_why)why));
		end_labels(f);
		if (!f->rc)
			put_sample(o, name, f->labels.text, (double)counts[why]);
		f->labels.n = 0;
	}
}

static void write_record(struct format_state *f, struct out *o, const struct snapshot *s)
{
	put_front(f, o, s);
	put_parts(f, o, s);
	put_vm_infos(f, o, s);
	put_vcpu_infos(f, o, s);
	put_sources(f, o, s);
	put_reasons(f, o, "kvmtop_partial_samples",
		    "samples of this exposition of which a part is missing or guessed", f->partial);
	put_reasons(f, o, "kvmtop_unknown_figures",
		    "figures that are not known, so that there is no sample of them", f->unknown);
	out_text(o, "# EOF\n");
}

/* Numbers that two vCPUs of a VM have: a VMM names its threads as it likes. */
static void find_twins(struct format_state *f, const struct snapshot *s)
{
	for (size_t i = 0; i < s->nvms; i++) {
		size_t first = s->vms[i].vcpu_first, end = first + s->vms[i].vcpu_n;

		for (size_t a = first; a < end && a < s->nvcpus; a++)
			for (size_t b = a + 1; b < end && b < s->nvcpus; b++)
				if (s->vcpus[a].index == s->vcpus[b].index)
					f->twin[a] = f->twin[b] = true;
	}
}

static int remember(struct format_state *f, const struct snapshot *s)
{
	memset(f->partial, 0, sizeof(f->partial));
	memset(f->unknown, 0, sizeof(f->unknown));
	f->vm_seen = calloc(s->nvms + 1, sizeof(bool));
	f->vcpu_seen = calloc(s->nvcpus + 1, sizeof(bool));
	f->twin = calloc(s->nvcpus + 1, sizeof(bool));
	if (!f->vm_seen || !f->vcpu_seen || !f->twin)
		return -ENOMEM;
	find_twins(f, s);
	return 0;
}

static void forget(struct format_state *f)
{
	free(f->vm_seen);
	free(f->vcpu_seen);
	free(f->twin);
	f->vm_seen = f->vcpu_seen = f->twin = NULL;
}

static int prom_record(struct format_state *f, struct out *o, const struct snapshot *s)
{
	f->rc = f->job->whole ? 0 : collect(f, s, NULL);
	if (f->rc || (f->job->query.when && !f->rows.n))
		return f->rc;
	f->rc = remember(f, s);
	if (!f->rc)
		write_record(f, o, s);
	forget(f);
	return f->rc;
}

const struct format format_prometheus = {
	.name = "prometheus",
	.default_table = "cpu",
	.open = prom_open,
	.record = prom_record,
	.close = prom_close,
};
