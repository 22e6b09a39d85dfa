// SPDX-License-Identifier: GPL-2.0-only
/* Tables, columns and rows of the batch formats (batch_table.h). */
#include "batch_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grow.h"
#include "text.h"
#include "when.h"

#define VM_TEXT                                                                                    \
	"name,nvcpu,pid,cpu_pct,guest_pct,sys_pct,steal_pct,steal_max_pct,steal_max_vcpu,"         \
	"exits_per_s,exit_pct,p99_ns,why"
#define VCPU_TEXT                                                                                  \
	"vm,vcpu,tid,cpu,cpu_pct,guest_pct,sys_pct,steal_pct,mig_per_s,exits_per_s,exit_pct,"      \
	"p99_ns,top_exit"
#define EXIT_TEXT                                                                                  \
	"count,count_pct,time_pct,min_ns,avg_ns,stderr_pct,p50_ns,p99_ns,p999_ns,max_ns,note"

/* clang-format off */
const struct batch_table batch_tables[] = {
	{"cpu", "VMs, each with its vCPUs, and what is no VM", TABLE_VM, TABLE_VCPU, true, false,
	 "name,vcpu,tid,cpu,cpu_pct,guest_pct,sys_pct,steal_pct,steal_max_pct,exits_per_s,exit_pct,p99_ns,top_exit"},
	{"host", "the host", TABLE_HOST, TABLE_HOST, false, false,
	 "ncpu,nvm,nvcpu,usr_pct,sys_pct,irq_pct,wa_pct,st_pct,guest_pct,idle_pct,steal_pct,exits_per_s,lost"},
	{"vm", "VMs, and what is no VM", TABLE_VM, TABLE_VM, true, false, VM_TEXT},
	{"vcpu", "vCPUs", TABLE_VCPU, TABLE_VCPU, false, false, VCPU_TEXT},
	{"tsc", "the vCPUs' TSCs", TABLE_VCPU, TABLE_VCPU, false, false,
	 "vm,vcpu,kvm_id,tsc_offset,tsc_offset_s,tsc_scale,tsc_apart_ns,tsc_changes"},
	{"exit", "exits of each VM, and of all VMs together (level host): a row a kind and reason", TABLE_EXIT, TABLE_EXIT, false, false,
	 "vm,kind,key," EXIT_TEXT},
	{"vcpu-exit", "exits of vCPUs", TABLE_EXIT, TABLE_EXIT, false, true, "vm,vcpu,kind,key," EXIT_TEXT},
	{"exit-code", "which guest code makes the exits of VMs", TABLE_CODE, TABLE_CODE, false, false,
	 "vm,key,symbol,module,count,pct"},
	{"slow", "single exits that took longer than --slow says: a row each", TABLE_SLOW, TABLE_SLOW, false, false,
	 "ended,vm,vcpu,key,took_ns,user_exit,user_ns,symbol,module"},
	{"symbol", "hot symbols of VMs, of all VMs together, and of what is no VM", TABLE_SYMBOL, TABLE_SYMBOL, false, false,
	 "vm,domain,symbol,module,samples,pct"},
	{"vcpu-symbol", "hot symbols of vCPUs", TABLE_SYMBOL, TABLE_SYMBOL, false, true,
	 "vm,vcpu,domain,symbol,module,samples,pct"},
	{"waited", "who had the CPU while vCPUs of VMs waited for it", TABLE_WAITED, TABLE_WAITED, false, false,
	 "vm,by,by_kind,time_ns,share_pct,waited_pct"},
	{"vcpu-waited", "the same of each vCPU", TABLE_WAITED, TABLE_WAITED, false, true,
	 "vm,vcpu,by,by_kind,time_ns,share_pct,waited_pct"},
	{"pmu", "the counters of guests' PMUs, and why one does not count", TABLE_PMU, TABLE_PMU, false, false,
	 "vm,vcpu,counter,event,mode,enabled,value,host_event,running_pct,msr_per_s,source,note"},
	{"pcpu", "the host's CPUs", TABLE_CPU, TABLE_CPU, false, false,
	 "cpu,online,numa_node,core,package,sibling,guest_pct,usr_pct,sys_pct,irq_pct,st_pct,idle_pct,wait_pct,nvcpu,npinned,vcpus"},
	{"thread", "the other threads of VMMs and their kernel helpers", TABLE_THREAD, TABLE_THREAD, false, false,
	 "vm,tid,comm,role,state,cpu,cpu_pct,usr_pct,sys_pct,wait_pct,csw_per_s"},
	{"task", "the busiest tasks that belong to no VM", TABLE_TASK, TABLE_TASK, false, false,
	 "pid,comm,state,cpu_pct"},
	{"finding", "what kvmtop finds remarkable", TABLE_FINDING, TABLE_FINDING, false, false,
	 "rule,level,vm,vcpu,value,threshold,for_ns,text,next"},
};
/* clang-format on */
const size_t batch_ntables = sizeof(batch_tables) / sizeof(batch_tables[0]);

const struct batch_table *batch_table_find(const char *name)
{
	for (size_t i = 0; i < batch_ntables; i++)
		if (strcmp(batch_tables[i].name, name) == 0)
			return &batch_tables[i];
	return NULL;
}

const struct field *batch_field_find(const struct batch_table *t, const char *name)
{
	const struct field *f = field_find(t->first, name), *g;

	if (t->second == t->first)
		return f;
	/* In a table of both, "vcpu" is the vCPU's number and not the VM's count of them. */
	g = field_find(t->second, name);
	if (g && strcasecmp(g->id, name) == 0 && (!f || strcasecmp(f->id, name) != 0))
		return g;
	return f ? f : g;
}

/* --- columns --- */

static const struct field *by_id(enum field_table t, const char *id)
{
	const struct field *f = field_find(t, id);

	return f && strcmp(f->id, id) == 0 ? f : NULL;
}

static int add_column(const struct batch_table *t, const struct field *f, struct batch_columns *out)
{
	struct batch_column *grown = reallocarray(out->col, out->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	out->col = grown;
	out->col[out->n] = (struct batch_column){.f = f};
	out->col[out->n].by[t->first] = by_id(t->first, f->id);
	out->col[out->n].by[t->second] = by_id(t->second, f->id);
	out->n++;
	return 0;
}

static int add_all(const struct batch_table *t, struct batch_columns *out)
{
	const struct field_list *l = field_list(t->first);
	int rc = 0;

	for (size_t i = 0; i < l->n && !rc; i++)
		rc = add_column(t, &l->field[i], out);
	if (t->second == t->first)
		return rc;
	l = field_list(t->second);
	for (size_t i = 0; i < l->n && !rc; i++)
		if (!by_id(t->first, l->field[i].id))
			rc = add_column(t, &l->field[i], out);
	return rc;
}

static bool has_column(const struct batch_columns *c, const struct field *f)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->col[i].f->id, f->id) == 0)
			return true;
	return false;
}

static int no_field(const struct batch_table *t, const char *name, char *err, size_t size)
{
	const char *hint = "";
	char safe[60];

	text_escape(safe, sizeof(safe), name);
	/* A VM's name has another id where the rows are not VMs. */
	if (strcasecmp(name, "name") == 0 && batch_field_find(t, "vm"))
		hint = " (the VM's name is vm there)";
	snprintf(err, size, "--fields: table %s has no field '%s'%s: see kvmtop --fields help",
		 t->name, safe, hint);
	return -EINVAL;
}

static int add_list(const struct batch_table *t, const char *fields, struct batch_columns *out,
		    char *err, size_t size)
{
	char name[64];

	for (const char *p = fields;;) {
		size_t len = strcspn(p, ",");
		const struct field *f;
		int rc;

		snprintf(name, sizeof(name), "%.*s", (int)len, p);
		f = len < sizeof(name) ? batch_field_find(t, name) : NULL;
		if (!f)
			return no_field(t, name, err, size);
		rc = has_column(out, f) ? 0 : add_column(t, f, out);
		if (rc || !p[len])
			return rc;
		p += len + 1;
	}
}

int batch_columns_make(const struct batch_table *t, const char *fields, struct batch_columns *out,
		       char *err, size_t size)
{
	*out = (struct batch_columns){0};
	return fields ? add_list(t, fields, out, err, size) : add_all(t, out);
}

void batch_columns_free(struct batch_columns *c)
{
	free(c->col);
	*c = (struct batch_columns){0};
}

/* --- rows --- */

static int push(struct batch_rows *rows, const struct batch_row *row)
{
	if (!grow(&rows->row, rows->n, &rows->cap, sizeof(*rows->row)))
		return -ENOMEM;
	rows->row[rows->n++] = *row;
	return 0;
}

/* The VM and vCPU that a row of a table is of, by its indices. */
static void set_owner(const struct snapshot *s, struct batch_row *r)
{
	int64_t vm = -1, vcpu = -1;

	if (r->table == TABLE_VM) {
		r->vm = r->row;
	} else if (r->table == TABLE_VCPU) {
		r->vcpu = r->row;
		vm = r->vcpu->vm;
	} else if (r->table == TABLE_EXIT) {
		vm = ((const struct snap_exit *)r->row)->vm;
		vcpu = ((const struct snap_exit *)r->row)->vcpu;
	} else if (r->table == TABLE_SYMBOL) {
		vm = ((const struct snap_symbol *)r->row)->vm;
		vcpu = ((const struct snap_symbol *)r->row)->vcpu;
	} else if (r->table == TABLE_CODE) {
		vm = ((const struct snap_code *)r->row)->vm;
	} else if (r->table == TABLE_WAITED) {
		vm = ((const struct snap_waited *)r->row)->vm;
		vcpu = ((const struct snap_waited *)r->row)->vcpu;
	} else if (r->table == TABLE_SLOW) {
		vm = ((const struct snap_slow *)r->row)->vm;
		vcpu = ((const struct snap_slow *)r->row)->vcpu;
	} else if (r->table == TABLE_PMU) {
		vm = ((const struct snap_pmc *)r->row)->vm;
		vcpu = ((const struct snap_pmc *)r->row)->vcpu;
	} else if (r->table == TABLE_THREAD) {
		vm = ((const struct snap_thread *)r->row)->vm;
	} else if (r->table == TABLE_FINDING) {
		vm = ((const struct snap_finding *)r->row)->vm;
		vcpu = ((const struct snap_finding *)r->row)->vcpu;
	}
	if (vm >= 0 && (size_t)vm < s->nvms)
		r->vm = &s->vms[vm];
	if (vcpu >= 0 && (size_t)vcpu < s->nvcpus)
		r->vcpu = &s->vcpus[vcpu];
}

/* A symbol keeps its place for a while after it was sampled last: that is no row of the interval.
 */
static bool wanted_code(const struct batch_query *q, const struct snap_code *x)
{
	return (q->total ? x->total : x->count) > 0;
}

static bool wanted_symbol(const struct batch_query *q, const struct snap_symbol *x)
{
	return (x->vcpu >= 0) == q->table->vcpu_rows && (q->total ? x->samples_total : x->samples);
}

static bool wanted(const struct batch_query *q, const struct batch_row *r)
{
	bool vms = filter_has_vms(q->filter), vcpus = filter_has_vcpus(q->filter);

	if (r->table == TABLE_EXIT &&
	    (((const struct snap_exit *)r->row)->vcpu >= 0) != q->table->vcpu_rows)
		return false;
	if (r->table == TABLE_WAITED &&
	    (((const struct snap_waited *)r->row)->vcpu >= 0) != q->table->vcpu_rows)
		return false;
	if (r->table == TABLE_CODE && !wanted_code(q, r->row))
		return false;
	if (r->table == TABLE_SLOW && !q->total && !((const struct snap_slow *)r->row)->fresh)
		return false;
	if (r->table == TABLE_SYMBOL && !wanted_symbol(q, r->row))
		return false;
	/* What is of no VM is left out when VMs are asked for, but the host's own tables are not.
	 */
	if ((r->other || r->table == TABLE_FINDING || r->table == TABLE_SYMBOL) && !r->vm &&
	    (vms || vcpus))
		return false;
	if (r->table == TABLE_EXIT && !r->vm && vms)
		return false; /* the sum over all would not be that of those asked for */
	if (vms && r->vm && !filter_vm(q->filter, r->vm))
		return false;
	return !r->vcpu || filter_vcpu(q->filter, r->vcpu);
}

static int add_table(const struct batch_query *q, const struct snapshot *s, struct batch_rows *rows)
{
	const struct field_list *l = field_list(q->table->first);
	const char *p;
	size_t n;
	int rc = 0;

	p = field_rows(s, q->table->first, &n);
	for (size_t i = 0; i < n && !rc; i++) {
		struct batch_row r = {.table = q->table->first, .row = p + i * l->row_size};

		set_owner(s, &r);
		if (wanted(q, &r))
			rc = push(rows, &r);
	}
	return rc;
}

struct order {
	const struct batch_query *q;
	const struct snapshot *s;
	const struct field *key[4];
	size_t n;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct batch_row *x = a, *y = b;
	const struct order *o = arg;

	for (size_t i = 0; i < o->n; i++) {
		bool down = !(o->key[i]->flags & FIELD_SORT_UP) != o->q->reverse;
		int c = field_compare(o->key[i], o->s, x->row, y->row, o->q->total, down);

		if (c)
			return down ? -c : c;
	}
	/* As found: rows lie in the snapshot in that order. */
	return x->row < y->row ? -1 : x->row > y->row;
}

static void sort_rows(const struct batch_query *q, const struct snapshot *s,
		      struct batch_rows *rows)
{
	static const char *const worst[] = {"steal_max_pct", "steal_pct", "count", "cpu_pct"};
	struct order o = {.q = q, .s = s};
	enum field_table t = q->table->first;

	if (q->sort) {
		o.key[0] = field_find(t, q->sort);
		o.n = o.key[0] != NULL;
	} else if (q->as_screen && (t == TABLE_VM || t == TABLE_VCPU || t == TABLE_EXIT ||
				    t == TABLE_THREAD || t == TABLE_TASK)) {
		for (size_t i = 0; i < sizeof(worst) / sizeof(worst[0]); i++)
			if (by_id(t, worst[i]))
				o.key[o.n++] = by_id(t, worst[i]);
	}
	if (o.n && rows->n)
		qsort_r(rows->row, rows->n, sizeof(rows->row[0]), compare_rows, &o);
	else if (q->reverse)
		for (size_t i = 0; i < rows->n / 2; i++) {
			struct batch_row swap = rows->row[i];

			rows->row[i] = rows->row[rows->n - 1 - i];
			rows->row[rows->n - 1 - i] = swap;
		}
}

/* Behind each VM its vCPUs: the VMs that are there move apart, the last one first. */
static int add_vcpus(const struct batch_query *q, const struct snapshot *s, struct batch_rows *rows)
{
	size_t nvm = rows->n;
	int rc = 0;

	for (size_t i = 0; i < nvm && !rc; i++) {
		struct batch_row r = rows->row[i];

		rc = push(rows, &r);
		for (size_t k = 0; r.vm && k < r.vm->vcpu_n && !rc; k++) {
			struct batch_row v = {.table = TABLE_VCPU,
					      .row = &s->vcpus[r.vm->vcpu_first + k],
					      .vm = r.vm};

			v.vcpu = v.row;
			if (wanted(q, &v))
				rc = push(rows, &v);
		}
	}
	memmove(rows->row, rows->row + nvm, (rows->n - nvm) * sizeof(rows->row[0]));
	rows->n -= nvm;
	return rc;
}

static void keep_matching(const struct batch_query *q, const struct snapshot *s,
			  struct batch_rows *rows)
{
	size_t kept = 0;

	when_begin(q->when);
	for (size_t i = 0; i < rows->n; i++)
		if (when_row(q->when, s, &rows->row[i], q->total))
			rows->row[kept++] = rows->row[i];
	when_end(q->when);
	rows->n = kept;
}

int batch_rows_collect(const struct batch_query *q, const struct snapshot *s,
		       struct batch_rows *rows)
{
	const struct batch_row other = {.table = TABLE_HOST, .row = &s->host, .other = true};
	int rc;

	rows->n = 0;
	rc = add_table(q, s, rows);
	if (rc)
		return rc;
	sort_rows(q, s, rows);
	if (q->table->second != q->table->first && rows->n)
		rc = add_vcpus(q, s, rows);
	if (!rc && q->table->other && wanted(q, &other))
		rc = push(rows, &other);
	if (!rc && q->when)
		keep_matching(q, s, rows);
	return rc;
}

void batch_rows_free(struct batch_rows *r)
{
	free(r->row);
	*r = (struct batch_rows){0};
}

/* What is no VM has a name, its CPU time and the busiest task of it. */
static struct cell other_cell(const struct snapshot *s, const struct field *f)
{
	if (strcmp(f->id, "name") == 0 || strcmp(f->id, "vm") == 0)
		return (struct cell){.text = "(other)"};
	if (strcmp(f->id, "cpu_pct") == 0)
		return (struct cell){.v = s->host.other_cpu};
	if (strcmp(f->id, "sys_pct") == 0)
		return (struct cell){.v = s->host.other_sys};
	if (strcmp(f->id, "why") == 0)
		return (struct cell){.text = s->host.other_why};
	return (struct cell){.text = ""};
}

struct cell batch_cell(const struct snapshot *s, const struct batch_row *r,
		       const struct batch_column *c, bool total)
{
	const struct field *f = c->by[r->table];

	if (r->other)
		return other_cell(s, c->f);
	if (f)
		return f->get(s, r->row, total);
	/* In a table of VMs and vCPUs a vCPU has its VM's name in the VM's column. */
	if (r->vm && (strcmp(c->f->id, "name") == 0 || strcmp(c->f->id, "vm") == 0))
		return (struct cell){.text = r->vm->name};
	return (struct cell){.text = ""};
}

const char *batch_level(const struct batch_row *r)
{
	if (r->other ||
	    (r->table == TABLE_SYMBOL && ((const struct snap_symbol *)r->row)->vm == SNAP_OTHER))
		return "other";
	if (r->vcpu)
		return "vcpu";
	return r->vm ? "vm" : "host";
}
