// SPDX-License-Identifier: GPL-2.0-only
/*
 * CSV (RFC 4180, with LF): the same columns whatever is on the host, so that a file of a month
 * can be read as one table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "text.h"

struct format_state {
	const struct format_job *job;
	struct batch_columns columns;
	struct batch_rows rows;
	bool began;
};

static void csv_close(struct format_state *f)
{
	if (!f)
		return;
	batch_columns_free(&f->columns);
	batch_rows_free(&f->rows);
	free(f);
}

/* The columns in front have these already; two of one name would be one too many. */
static bool repeats_front(const char *id)
{
	static const char *const ids[] = {"name", "vm",	 "vm_id", "vcpu",
					  "key",  "pid", "node",  "rule"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (strcmp(ids[i], id) == 0)
			return true;
	return false;
}

static void drop_repeated(struct batch_columns *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++)
		if (!repeats_front(c->col[i].f->id))
			c->col[kept++] = c->col[i];
	c->n = kept;
}

static int csv_open(const struct format_job *j, struct format_state **out, char *err, size_t size)
{
	struct format_state *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->job = j;
	rc = batch_columns_make(j->query.table, j->fields, &f->columns, err, size);
	if (rc) {
		csv_close(f);
		return rc;
	}
	drop_repeated(&f->columns);
	*out = f;
	return 0;
}

static void put_head(struct format_state *f, struct out *o)
{
	out_text(o, "time,interval_s,node,level,vm,vm_id,pid,vcpu,table,key");
	for (size_t i = 0; i < f->columns.n; i++) {
		const char *id = f->columns.col[i].f->id;

		/* How bad a finding is; `level` in front is what the row is of. */
		out_printf(o, ",%s%s", strcmp(id, "level") == 0 ? "finding_" : "", id);
	}
	out_text(o, "\n");
}

/* The quotes of RFC 4180 must be around both parts. */
static void put_joined(struct out *o, const char *first, const char *rest)
{
	size_t need = text_escape_csv(NULL, 0, rest) + 1;
	char *buf = malloc(need);

	if (!buf)
		return;
	text_escape_csv(buf, need, rest);
	out_printf(o, "%s%s", *buf == '"' ? "\"" : "", first);
	out_text(o, *buf == '"' ? buf + 1 : buf);
	free(buf);
}

/*
 * A name that begins like a formula would be one in a spreadsheet: its first character is
 * escaped as control characters are.
 */
static void put_text(struct out *o, const char *text)
{
	char first[8];

	if (!text || !*text)
		return;
	if (!strchr("=+-@", *text)) {
		format_escaped(o, text_escape_csv, text);
		return;
	}
	snprintf(first, sizeof(first), "\\x%02x", (unsigned char)*text);
	put_joined(o, first, text + 1);
}

static void put_value(struct out *o, enum field_unit unit, struct value v)
{
	if (!value_has(v))
		return;
	if (format_is_whole(unit))
		out_printf(o, "%.0f", v.v);
	else
		out_printf(o, "%.3f", v.v);
}

/* What tells rows of one VM or vCPU apart. */
static void put_key(struct out *o, const struct batch_row *r)
{
	switch (r->table) {
	case TABLE_EXIT:
		put_text(o, ((const struct snap_exit *)r->row)->name);
		break;
	case TABLE_SLOW:
		put_text(o, ((const struct snap_slow *)r->row)->exit);
		break;
	case TABLE_CPU:
		out_printf(o, "%d", ((const struct snap_cpu *)r->row)->cpu);
		break;
	case TABLE_THREAD:
		out_printf(o, "%d", ((const struct snap_thread *)r->row)->tid);
		break;
	case TABLE_TASK:
		out_printf(o, "%d", ((const struct snap_task *)r->row)->pid);
		break;
	case TABLE_FINDING:
		put_text(o, ((const struct snap_finding *)r->row)->rule);
		break;
	default:
		break;
	}
}

static void put_front(const struct format_state *f, struct out *o, const struct snapshot *s,
		      const struct batch_row *r, const char *time)
{
	out_printf(o, "%s,%.3f,", time, (double)s->dt / 1e9);
	put_text(o, s->host.node);
	out_printf(o, ",%s,", batch_level(r));
	put_text(o, r->other ? "(other)" : r->vm ? r->vm->name : "");
	out_text(o, ",");
	put_text(o, r->vm ? r->vm->vm_id : "");
	out_text(o, ",");
	if (r->vm)
		out_printf(o, "%d", r->vm->pid);
	else if (r->table == TABLE_TASK)
		out_printf(o, "%d", ((const struct snap_task *)r->row)->pid);
	out_text(o, ",");
	if (r->vcpu)
		out_printf(o, "%d", r->vcpu->index);
	out_printf(o, ",%s,", f->job->query.table->name);
	put_key(o, r);
}

static int csv_record(struct format_state *f, struct out *o, const struct snapshot *s)
{
	char time[40];
	int rc = batch_rows_collect(&f->job->query, s, &f->rows);

	if (rc)
		return rc;
	if (!f->began)
		put_head(f, o);
	f->began = true;
	format_time(time, sizeof(time), s->wall);
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct batch_row *r = &f->rows.row[i];

		put_front(f, o, s, r, time);
		for (size_t k = 0; k < f->columns.n; k++) {
			const struct batch_column *c = &f->columns.col[k];
			struct cell cell = batch_cell(s, r, c, f->job->query.total);

			out_text(o, ",");
			if (c->f->unit == UNIT_TEXT)
				put_text(o, cell.text);
			else
				put_value(o, c->f->unit, cell.v);
		}
		out_text(o, "\n");
	}
	return 0;
}

const struct format format_csv = {
	.name = "csv",
	.default_table = "cpu",
	.open = csv_open,
	.record = csv_record,
	.close = csv_close,
};
