// SPDX-License-Identifier: GPL-2.0-only
/*
 * JSON Lines: an object an interval (docs/kvmtop.schema.json). A VM's object is made, written
 * and freed before the next, so that memory does not grow with the number of VMs.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "format.h"
#include "text.h"
#include "version.h"

#define MAX_FIELDS 96

/* Which parts there are (--table), and which rows of the asked-for table passed. */
struct format_state {
	const struct format_job *job;
	struct batch_columns columns; /* of --fields; n 0: all */
	struct batch_rows rows;
	bool vm_figures, vcpus, vm_exits, vcpu_exits, symbols, vcpu_symbols, code, slow, waited,
		vcpu_waited, pmu, threads, cpus, tasks;
	bool *mark[TABLE_NR]; /* a row each of the table asked for; NULL: no row is left out */
	bool *printed; /* a VM each */
	/* Reasons of figures that were absent or partial in this record: a bit a reason. */
	uint32_t why[TABLE_NR][MAX_FIELDS], partial[TABLE_NR][MAX_FIELDS];
	int rc;
};

static void json_close(struct format_state *f)
{
	if (!f)
		return;
	batch_columns_free(&f->columns);
	batch_rows_free(&f->rows);
	free(f);
}

static int json_open(const struct format_job *j, struct format_state **out, char *err, size_t size)
{
	const char *table = j->whole ? "" : j->query.table->name;
	struct format_state *f = calloc(1, sizeof(*f));
	int rc = 0;

	if (!f)
		return -ENOMEM;
	f->job = j;
	f->vm_figures = j->whole || strcmp(table, "cpu") == 0 || strcmp(table, "vm") == 0 ||
			strcmp(table, "waited") == 0 || strcmp(table, "pmu") == 0;
	f->vcpus = j->whole || strcmp(table, "cpu") == 0 || strncmp(table, "vcpu", 4) == 0 ||
		   strcmp(table, "pmu") == 0;
	f->code = strcmp(table, "exit-code") == 0;
	f->waited = strcmp(table, "waited") == 0;
	f->vcpu_waited = strcmp(table, "vcpu-waited") == 0;
	f->pmu = strcmp(table, "pmu") == 0;
	f->slow = j->whole || strcmp(table, "slow") == 0;
	f->symbols = j->whole || strcmp(table, "symbol") == 0;
	f->vcpu_symbols = j->whole || strcmp(table, "vcpu-symbol") == 0;
	f->vm_exits = j->whole || strcmp(table, "exit") == 0;
	f->vcpu_exits = j->whole || strcmp(table, "vcpu-exit") == 0;
	f->threads = strcmp(table, "thread") == 0;
	f->cpus = j->whole || strcmp(table, "pcpu") == 0;
	f->tasks = j->whole || strcmp(table, "task") == 0;
	if (j->fields)
		rc = batch_columns_make(j->whole ? batch_table_find("cpu") : j->query.table,
					j->fields, &f->columns, err, size);
	if (rc) {
		json_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

/* --- values --- */

static json_t *text_value(const char *text)
{
	char small[256], *large;
	json_t *v;
	size_t need;

	if (!text || !*text)
		return json_null();
	need = text_utf8_clean(small, sizeof(small), text);
	if (need < sizeof(small))
		return json_string(small);
	large = malloc(need + 1);
	if (!large)
		return NULL;
	text_utf8_clean(large, need + 1, text);
	v = json_string(large);
	free(large);
	return v;
}

/* Figures in JSON have at most three decimals: nothing that we measure is finer. */
static json_t *number_value(enum field_unit unit, struct value v)
{
	if (!value_has(v) || !isfinite(v.v))
		return json_null();
	if (format_is_whole(unit))
		return json_integer((json_int_t)llround(v.v));
	return json_real(round(v.v * 1000) / 1000);
}

/* Takes `value`. NULL for either is what is left of a lack of memory. */
static void set(struct format_state *f, json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) < 0)
		f->rc = -ENOMEM;
}

static bool chosen(const struct format_state *f, enum field_table t, const char *id)
{
	if (!f->job->fields)
		return true;
	for (size_t i = 0; i < f->columns.n; i++)
		if (f->columns.col[i].by[t] && strcmp(f->columns.col[i].f->id, id) == 0)
			return true;
	/* --fields is about the rows of the table asked for; others keep all of theirs. */
	return t != f->job->query.table->first &&
	       !(f->job->whole && (t == TABLE_VM || t == TABLE_VCPU)) &&
	       t != f->job->query.table->second;
}

/* All fields of a row but those named in `but` ("|a|b|"). */
static void set_fields(struct format_state *f, json_t *object, enum field_table t,
		       const struct snapshot *s, const void *row, const char *but)
{
	const struct field_list *l = field_list(t);

	for (size_t i = 0; i < l->n; i++) {
		const struct field *field = &l->field[i];
		char name[40];
		struct cell c;

		snprintf(name, sizeof(name), "|%s|", field->id);
		if (strstr(but, name) || !chosen(f, t, field->id))
			continue;
		c = field->get(s, row, f->job->query.total);
		if (field->unit == UNIT_TEXT) {
			set(f, object, field->id, text_value(c.text));
			continue;
		}
		set(f, object, field->id, number_value(field->unit, c.v));
		if (i >= MAX_FIELDS)
			continue;
		if (c.v.state == VALUE_NA)
			f->why[t][i] |= 1u << c.v.why;
		if (c.v.state == VALUE_PARTIAL)
			f->partial[t][i] |= 1u << c.v.why;
	}
}

static int to_out(const char *data, size_t n, void *out)
{
	out_bytes(out, data, n);
	return 0;
}

/* Writes and frees. Only ASCII: C1 controls and marks of direction must not reach a terminal. */
static void write_json(struct format_state *f, struct out *o, json_t *v)
{
	if (!v || json_dump_callback(v, to_out, o,
				     JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
					     JSON_REAL_PRECISION(15)) < 0)
		f->rc = -ENOMEM;
	json_decref(v);
}

static void member(struct format_state *f, struct out *o, const char *name, json_t *v)
{
	out_printf(o, ",\"%s\":", name);
	write_json(f, o, v);
}

/* --- rows --- */

static bool passed(const struct format_state *f, enum field_table t, size_t i)
{
	return !f->mark[t] || f->mark[t][i];
}

static json_t *exit_object(struct format_state *f, const struct snapshot *s,
			   const struct snap_exit *x)
{
	json_t *o = json_object();

	set_fields(f, o, TABLE_EXIT, s, x, "|vm|vcpu|idle|");
	set(f, o, "idle", json_boolean(x->idle));
	set(f, o, "other", json_boolean(x->other));
	set(f, o, "partial", json_boolean(f->job->query.total ? x->total.low : x->now.low));
	return o;
}

static json_t *exit_array(struct format_state *f, const struct snapshot *s,
			  const struct snap_exits *ex)
{
	json_t *a = json_array();

	for (size_t i = ex->first; i < ex->first + ex->n && i < s->nexits; i++)
		if (passed(f, TABLE_EXIT, i) &&
		    json_array_append_new(a, exit_object(f, s, &s->exits[i])))
			f->rc = -ENOMEM;
	return a;
}

/* What called it, the most frequent first; no array where that is not known. */
static void set_callers(struct format_state *f, json_t *o, const struct snap_symbol *x)
{
	bool total = f->job->query.total;
	uint64_t all = total ? x->samples_total : x->samples;
	struct snap_caller caller[SNAP_CALLERS];
	unsigned callers = snap_callers(x, total, caller);
	json_t *a;

	if (!x->caller[0].name || !*x->caller[0].name)
		return;
	a = json_array();
	for (unsigned i = 0; i < callers; i++) {
		uint64_t n = total ? caller[i].samples_total : caller[i].samples;
		json_t *c = json_object();

		set(f, c, "symbol", text_value(caller[i].name));
		set(f, c, "samples", json_integer((json_int_t)n));
		set(f, c, "pct", json_real(100.0 * (double)n / (double)(all ? all : n)));
		if (json_array_append_new(a, c))
			f->rc = -ENOMEM;
	}
	set(f, o, "callers", a);
}

static json_t *symbol_array(struct format_state *f, const struct snapshot *s,
			    const struct snap_samples *sym)
{
	json_t *a = json_array(), *o;

	for (size_t i = sym->first; i < sym->first + sym->rows && i < s->nsymbols; i++) {
		if (!passed(f, TABLE_SYMBOL, i) ||
		    !(f->job->query.total ? s->symbols[i].samples_total : s->symbols[i].samples))
			continue;
		o = json_object();
		set_fields(f, o, TABLE_SYMBOL, s, &s->symbols[i], "|vm|vcpu|domain_guessed|");
		set(f, o, "domain_guessed", json_boolean(s->symbols[i].guessed));
		set(f, o, "other", json_boolean(s->symbols[i].other));
		set_callers(f, o, &s->symbols[i]);
		if (json_array_append_new(a, o))
			f->rc = -ENOMEM;
	}
	return a;
}

static json_t *code_array(struct format_state *f, const struct snapshot *s,
			  const struct snap_vm *vm)
{
	json_t *a = json_array(), *o;

	for (size_t i = vm->code_first; i < vm->code_first + vm->code_n && i < s->ncode; i++) {
		if (!passed(f, TABLE_CODE, i) ||
		    !(f->job->query.total ? s->code[i].total : s->code[i].count))
			continue;
		o = json_object();
		set_fields(f, o, TABLE_CODE, s, &s->code[i], "|vm|");
		set(f, o, "partial",
		    json_boolean(f->job->query.total ? s->code[i].low_total : s->code[i].low));
		if (json_array_append_new(a, o))
			f->rc = -ENOMEM;
	}
	return a;
}

static json_t *slow_array(struct format_state *f, const struct snapshot *s,
			  const struct snap_vm *vm)
{
	json_t *a = json_array(), *o;

	for (size_t i = vm->slow.first; i < vm->slow.first + vm->slow.n && i < s->nslow; i++) {
		const struct snap_slow *x = &s->slow[i];

		if (!passed(f, TABLE_SLOW, i) || (!f->job->query.total && !x->fresh) ||
		    (x->vcpu >= 0 && !filter_vcpu(f->job->query.filter, &s->vcpus[x->vcpu])))
			continue;
		o = json_object();
		set_fields(f, o, TABLE_SLOW, s, x, "|vm|at|");
		if (json_array_append_new(a, o))
			f->rc = -ENOMEM;
	}
	return a;
}

/* Rows of a table from `first` on, n of them, of which nothing but fields is told. */
static json_t *row_array(struct format_state *f, const struct snapshot *s, enum field_table t,
			 size_t first, size_t n, const char *but)
{
	size_t all, size = field_list(t)->row_size;
	const char *rows = field_rows(s, t, &all);
	json_t *a = json_array(), *o;

	for (size_t i = first; i < first + n && i < all; i++) {
		if (!passed(f, t, i))
			continue;
		o = json_object();
		set_fields(f, o, t, s, rows + i * size, but);
		if (json_array_append_new(a, o))
			f->rc = -ENOMEM;
	}
	return a;
}

static json_t *vcpu_object(struct format_state *f, const struct snapshot *s,
			   const struct snap_vcpu *v)
{
	json_t *o = json_object();

	set(f, o, "vcpu", json_integer(v->index));
	set(f, o, "vcpu_guessed", json_boolean(v->index_guessed));
	set(f, o, "kvm_id", json_integer(v->kvm_id));
	set(f, o, "tid", v->tid > 0 ? json_integer(v->tid) : json_null());
	set_fields(f, o, TABLE_VCPU, s, v, "|vm|vcpu|kvm_id|tid|");
	set(f, o, "own_quota", json_boolean(v->use.own_quota));
	if (f->vcpu_exits)
		set(f, o, "exits", exit_array(f, s, &v->ex));
	if (f->vcpu_symbols)
		set(f, o, "symbols", symbol_array(f, s, &v->sym));
	if (f->vcpu_waited)
		set(f, o, "waited",
		    row_array(f, s, TABLE_WAITED, v->waits.first, v->waits.n, "|vm|vcpu|"));
	if (f->pmu)
		set(f, o, "pmu_counters",
		    row_array(f, s, TABLE_PMU, v->pmu.first, v->pmu.n, "|vm|vcpu|"));
	return o;
}

static json_t *vcpu_array(struct format_state *f, const struct snapshot *s,
			  const struct snap_vm *vm)
{
	json_t *a = json_array();

	for (size_t i = vm->vcpu_first; i < vm->vcpu_first + vm->vcpu_n && i < s->nvcpus; i++)
		if (passed(f, TABLE_VCPU, i) && filter_vcpu(f->job->query.filter, &s->vcpus[i]) &&
		    json_array_append_new(a, vcpu_object(f, s, &s->vcpus[i])))
			f->rc = -ENOMEM;
	return a;
}

static json_t *vm_object(struct format_state *f, const struct snapshot *s, const struct snap_vm *vm)
{
	json_t *o = json_object();

	set(f, o, "name", text_value(vm->name));
	set(f, o, "vm_id", text_value(vm->vm_id));
	set(f, o, "uuid", text_value(vm->uuid));
	set(f, o, "pid", json_integer(vm->pid));
	set(f, o, "vmm", text_value(vm->vmm));
	if (f->vm_figures) {
		set_fields(f, o, TABLE_VM, s, vm, "|name|vm_id|uuid|pid|vmm|");
		set(f, o, "own_quota", json_boolean(vm->use.own_quota));
	}
	if (f->vm_exits)
		set(f, o, "exits", exit_array(f, s, &vm->ex));
	if (f->symbols)
		set(f, o, "symbols", symbol_array(f, s, &vm->sym));
	if (f->code)
		set(f, o, "exit_code", code_array(f, s, vm));
	if (f->waited)
		set(f, o, "waited",
		    row_array(f, s, TABLE_WAITED, vm->waits.first, vm->waits.n, "|vm|vcpu|"));
	if (f->slow && s->slow_ns)
		set(f, o, "slow", slow_array(f, s, vm));
	if (f->threads)
		set(f, o, "threads",
		    row_array(f, s, TABLE_THREAD, vm->thread_first, vm->thread_n, "|vm|"));
	if (f->vcpus)
		set(f, o, "vcpus", vcpu_array(f, s, vm));
	return o;
}

/* Each VM that a row is of, once, in the order of the rows. */
static void write_vms(struct format_state *f, struct out *o, const struct snapshot *s)
{
	enum field_table t = f->job->query.table->first;
	bool comma = false;

	out_text(o, ",\"vms\":[");
	for (size_t i = 0; i < f->rows.n && t != TABLE_FINDING; i++) {
		const struct snap_vm *vm = f->rows.row[i].vm;

		if (!vm || f->printed[vm - s->vms])
			continue;
		f->printed[vm - s->vms] = true;
		if (comma)
			out_text(o, ",");
		comma = true;
		write_json(f, o, vm_object(f, s, vm));
	}
	out_text(o, "]");
}

static void write_rows(struct format_state *f, struct out *o, const struct snapshot *s,
		       enum field_table t, const char *name)
{
	const struct field_list *l = field_list(t);
	json_t *a = json_array();
	const char *p;
	size_t n;

	p = field_rows(s, t, &n);
	for (size_t i = 0; i < n; i++) {
		json_t *row;

		if (!passed(f, t, i))
			continue;
		row = json_object();
		set_fields(f, row, t, s, p + i * l->row_size, "||");
		if (json_array_append_new(a, row))
			f->rc = -ENOMEM;
	}
	member(f, o, name, a);
}

static json_t *finding_object(struct format_state *f, const struct snapshot *s,
			      const struct snap_finding *x)
{
	int64_t ago = s->time - x->since;
	json_t *o = json_object();
	char since[40];

	format_time(since, sizeof(since), timespec_of(timespec_ns(s->wall) - (ago > 0 ? ago : 0)));
	set_fields(f, o, TABLE_FINDING, s, x, "|for_ns|");
	if (x->vm >= 0 && (size_t)x->vm < s->nvms)
		set(f, o, "vm_id", text_value(s->vms[x->vm].vm_id));
	else
		set(f, o, "vm_id", json_null());
	set(f, o, "since", json_string(since));
	return o;
}

static void write_findings(struct format_state *f, struct out *o, const struct snapshot *s)
{
	json_t *a = json_array();

	for (size_t i = 0; i < s->nfindings; i++) {
		const struct snap_finding *x = &s->findings[i];

		if (!passed(f, TABLE_FINDING, i))
			continue;
		if (filter_has_vms(f->job->query.filter) &&
		    (x->vm < 0 || (size_t)x->vm >= s->nvms ||
		     !filter_vm(f->job->query.filter, &s->vms[x->vm])))
			continue;
		if (json_array_append_new(a, finding_object(f, s, x)))
			f->rc = -ENOMEM;
	}
	member(f, o, "findings", a);
}

/* --- sources --- */

static json_t *source_object(struct format_state *f, const char *name, int state, const char *why,
			     const char *mend)
{
	static const char *const states[] = {"ok", "partial", "off"};
	json_t *o = json_object();

	set(f, o, "name", text_value(name));
	set(f, o, "state", json_string(states[state >= 0 && state <= SOURCE_OFF ? state : 2]));
	set(f, o, "why", text_value(why));
	set(f, o, "mend", text_value(mend));
	return o;
}

/* The figures that are of a reason; NULL where there are none. */
static json_t *fields_of(struct format_state *f, uint32_t (*bits)[MAX_FIELDS], unsigned why)
{
	json_t *a = NULL;

	for (int t = 0; t < TABLE_NR; t++) {
		const struct field_list *l = field_list((enum field_table)t);

		for (size_t i = 0; i < l->n && i < MAX_FIELDS; i++) {
			if (!(bits[t][i] & (1u << why)))
				continue;
			if (!a)
				a = json_array();
			if (json_array_append_new(a,
						  json_sprintf("%s.%s", l->name, l->field[i].id)))
				f->rc = -ENOMEM;
		}
	}
	return a;
}

/* Each reason once. WHY_NONE: nothing is to be had, as the time of an exit that is not open. */
static void add_reasons(struct format_state *f, json_t *a, uint32_t (*bits)[MAX_FIELDS], int state)
{
	for (unsigned why = WHY_NONE + 1; why < WHY_NR; why++) {
		json_t *fields = fields_of(f, bits, why), *row;

		if (!fields)
			continue;
		row = source_object(f, "figures", state, value_why_text((enum value_why)why), NULL);
		set(f, row, "fields", fields);
		if (json_array_append_new(a, row))
			f->rc = -ENOMEM;
	}
}

/* The state of each source, and why figures of this record are null or partial. */
static void write_sources(struct format_state *f, struct out *o, const struct snapshot *s)
{
	json_t *a = json_array();

	for (size_t i = 0; i < s->nsources; i++)
		if (json_array_append_new(a,
					  source_object(f, s->sources[i].name, s->sources[i].state,
							s->sources[i].why, s->sources[i].mend)))
			f->rc = -ENOMEM;
	add_reasons(f, a, f->why, SOURCE_OFF);
	add_reasons(f, a, f->partial, SOURCE_PARTIAL);
	member(f, o, "sources", a);
}

/* --- the record --- */

static size_t row_index(const struct batch_row *r, enum field_table t, const void *base)
{
	const void *row = t == TABLE_VCPU ? r->vcpu : r->row;

	return (size_t)((const char *)row - (const char *)base) / field_list(t)->row_size;
}

static int mark_table(struct format_state *f, const struct snapshot *s, enum field_table t)
{
	const void *base;
	size_t n;

	/* VMs are those that rows are of. */
	if (t == TABLE_VM || t == TABLE_HOST || f->mark[t])
		return 0;
	base = field_rows(s, t, &n);
	f->mark[t] = calloc(n ? n : 1, sizeof(bool));
	if (!f->mark[t])
		return -ENOMEM;
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct batch_row *r = &f->rows.row[i];

		if (t == TABLE_VCPU ? r->vcpu != NULL : r->table == t)
			f->mark[t][row_index(r, t, base)] = true;
	}
	return 0;
}

/* Marks the rows that --when let through, so that their VM's object has only them. */
static int mark_rows(struct format_state *f, const struct snapshot *s)
{
	const struct batch_table *t = f->job->query.table;
	int rc;

	f->printed = calloc(s->nvms ? s->nvms : 1, sizeof(bool));
	if (!f->printed)
		return -ENOMEM;
	if (f->job->whole || !f->job->query.when)
		return 0;
	rc = mark_table(f, s, t->first);
	if (!rc)
		rc = mark_table(f, s, t->second);
	/* Of exits, also the vCPUs that they are of. */
	if (!rc && t->vcpu_rows)
		rc = mark_table(f, s, TABLE_VCPU);
	return rc;
}

static void forget_marks(struct format_state *f)
{
	for (int t = 0; t < TABLE_NR; t++) {
		free(f->mark[t]);
		f->mark[t] = NULL;
	}
	free(f->printed);
	f->printed = NULL;
	memset(f->why, 0, sizeof(f->why));
	memset(f->partial, 0, sizeof(f->partial));
}

static void write_record(struct format_state *f, struct out *o, const struct snapshot *s)
{
	json_t *host = json_object();
	char time[40];

	format_time(time, sizeof(time), s->wall);
	out_text(o, "{\"schema\":1");
	member(f, o, "version", json_string(KVMTOP_VERSION));
	member(f, o, "node", text_value(s->host.node));
	member(f, o, "boot_id", text_value(s->host.boot_id));
	member(f, o, "kernel", text_value(s->host.kernel));
	member(f, o, "time", json_string(time));
	member(f, o, "interval_s", json_real(round((double)s->dt / 1e3) / 1e6));
	member(f, o, "lost", json_integer((json_int_t)s->host.lost));
	member(f, o, "totals", json_boolean(f->job->query.total));
	set_fields(f, host, TABLE_HOST, s, &s->host, "|node|kernel|");
	if (f->vm_exits && !filter_has_vms(f->job->query.filter))
		set(f, host, "exits", exit_array(f, s, &s->host.ex));
	if (f->symbols && !filter_has_vms(f->job->query.filter)) {
		set(f, host, "symbols", symbol_array(f, s, &s->host.sym));
		set(f, host, "other_symbols", symbol_array(f, s, &s->host.other_sym));
	}
	member(f, o, "host", host);
	write_vms(f, o, s);
	if (f->cpus)
		write_rows(f, o, s, TABLE_CPU, "cpus");
	if (f->tasks)
		write_rows(f, o, s, TABLE_TASK, "tasks");
	write_findings(f, o, s);
	write_sources(f, o, s);
	out_text(o, "}\n");
}

static int json_record(struct format_state *f, struct out *o, const struct snapshot *s)
{
	f->rc = batch_rows_collect(&f->job->query, s, &f->rows);
	if (!f->rc && f->job->query.when && !f->rows.n)
		return 0;
	if (!f->rc)
		f->rc = mark_rows(f, s);
	if (!f->rc)
		write_record(f, o, s);
	forget_marks(f);
	return f->rc;
}

const struct format format_json = {
	.name = "json",
	.default_table = "vm",
	.open = json_open,
	.record = json_record,
	.close = json_close,
};
