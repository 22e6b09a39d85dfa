// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text: the host screen's rows without escape codes. A cell has no blanks, so that awk and cut
 * can read it; lines with # are for people.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "filter.h"
#include "format.h"
#include "text.h"

struct format_state {
	const struct format_job *job;
	struct batch_columns columns;
	struct batch_rows rows;
	size_t told; /* sources that were off in the last record */
};

static void text_close(struct format_state *f)
{
	if (!f)
		return;
	batch_columns_free(&f->columns);
	batch_rows_free(&f->rows);
	free(f);
}

static int text_open(const struct format_job *j, struct format_state **out, char *err, size_t size)
{
	struct format_state *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->job = j;
	rc = batch_columns_make(j->query.table, j->fields ? j->fields : j->query.table->text_fields,
				&f->columns, err, size);
	if (rc) {
		text_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

static void put_share(struct out *o, const char *name, struct value v)
{
	char buf[24];

	fmt_pct(buf, sizeof(buf), v, 6);
	out_printf(o, " %s %s", name, buf);
}

/* How many CPUs is not known without the collector of them. */
static void put_counts(struct out *o, const struct snapshot *s)
{
	const struct snap_host *h = &s->host;

	if (h->ncpu)
		out_printf(o, " %u CPU", h->ncpu);
	else
		out_text(o, " - CPU");
	if (snapshot_vms_unknown(s))
		out_text(o, " - VM - vCPU");
	else
		out_printf(o, " %s%u VM %u vCPU", snapshot_any_guessed(s) ? "~" : "", h->nvm,
			   h->nvcpu);
}

/* The screen's first lines: the host, and what is remarkable. */
static void put_host(struct out *o, const struct snapshot *s, const struct filter *only)
{
	const struct snap_host *h = &s->host;
	char time[40];

	format_time(time, sizeof(time), s->wall);
	out_printf(o, "# %s ", time);
	format_escaped(o, text_escape_word, h->node ? h->node : "");
	out_printf(o, " %.3fs", (double)s->dt / 1e9);
	put_counts(o, s);
	put_share(o, "usr", h->usr);
	put_share(o, "sys", h->sys);
	put_share(o, "irq", h->irq);
	put_share(o, "wa", h->wa);
	put_share(o, "st", h->st);
	put_share(o, "guest", h->guest);
	put_share(o, "idle", h->idle);
	put_share(o, "steal", h->steal);
	out_printf(o, " lost %llu\n", (unsigned long long)h->lost);
	for (size_t i = 0; i < s->nfindings; i++) {
		const struct snap_finding *f = &s->findings[i];

		if (filter_has_vms(only) && f->vm >= 0 && (size_t)f->vm < s->nvms &&
		    !filter_vm(only, &s->vms[f->vm]))
			continue;
		out_text(o, "# ! ");
		format_escaped(o, text_escape, f->text);
		out_text(o, "\n");
	}
}

/* What is missing and what mends it; again only when something more is. */
static void put_missing(struct format_state *f, struct out *o, const struct snapshot *s)
{
	size_t off = 0;

	for (size_t i = 0; i < s->nsources; i++)
		off += s->sources[i].state == SOURCE_OFF;
	for (size_t i = 0; off > f->told && i < s->nsources; i++) {
		const struct snap_source *src = &s->sources[i];

		if (src->state != SOURCE_OFF)
			continue;
		out_text(o, "# ? ");
		format_escaped(o, text_escape, src->name);
		out_text(o, ": ");
		format_escaped(o, text_escape, src->why);
		if (src->mend && *src->mend) {
			out_text(o, ": ");
			format_escaped(o, text_escape, src->mend);
		}
		out_text(o, "\n");
	}
	f->told = off;
}

/* Of guests' PMUs first why a counter may lie; and no rows are no mystery. */
static void put_pmu(struct out *o, const struct batch_query *q, const struct snapshot *s,
		    size_t nrows)
{
	const struct snap_source *from = snapshot_source(s, "vpmu");

	if (q->table->first != TABLE_PMU)
		return;
	if (s->host.pmu_why && *s->host.pmu_why) {
		out_text(o, "# pmu: ");
		format_escaped(o, text_escape, s->host.pmu_why);
		out_text(o, "\n");
	}
	if (nrows || q->when || !s->dt)
		return;
	out_text(o, "# pmu: no counters: ");
	if (from && from->state == SOURCE_OFF)
		format_escaped(o, text_escape, from->why);
	else
		out_text(o, "no guest that is asked for has touched its PMU since kvmtop looks");
	out_text(o, "\n");
}

/* Names are not cut as on a screen: with more room most of them leave the columns in line. */
#define NAME_WIDTH 20

/* A column is as wide as its field, and at least as its title. */
static int width_of(const struct batch_column *c)
{
	int title = (int)strlen(c->f->title), width = c->f->width;

	if (strcmp(c->f->id, "name") == 0 || strcmp(c->f->id, "vm") == 0)
		width = NAME_WIDTH;
	return width > title ? width : title;
}

static void pad(struct out *o, const struct batch_column *c, const char *text, bool last)
{
	int room = width_of(c) - (int)utf8_width(text);

	if (room < 0)
		room = 0;
	if (c->f->unit == UNIT_TEXT) {
		out_text(o, text);
		if (!last)
			out_printf(o, "%*s", room, "");
	} else {
		out_printf(o, "%*s", room, "");
		out_text(o, text);
	}
}

static void blanks_to(char *text, char c)
{
	for (; *text; text++)
		if (*text == ' ')
			*text = c;
}

static void put_head(const struct format_state *f, struct out *o)
{
	char title[32];

	out_text(o, "TIME    ");
	for (size_t i = 0; i < f->columns.n; i++) {
		snprintf(title, sizeof(title), "%s", f->columns.col[i].f->title);
		blanks_to(title, '_');
		out_text(o, " ");
		pad(o, &f->columns.col[i], title, i + 1 == f->columns.n);
	}
	out_text(o, "\n");
}

/* "qemu-system-x86 44%": a _ would make the share a part of the name. */
static void mark_share(char *text)
{
	char *blank = strrchr(text, ' ');
	size_t digits = blank ? strspn(blank + 1, "0123456789") : 0;

	if (digits && strcmp(blank + 1 + digits, "%") == 0)
		*blank = ':';
}

/* Prose reads better with _ than with \x20; in a name each byte counts. */
static void put_word(const struct format_state *f, struct out *o, size_t i, const char *text)
{
	const struct batch_column *c = &f->columns.col[i];
	size_t (*escape)(char *, size_t, const char *) =
		c->f->flags & FIELD_PROSE ? text_escape : text_escape_word;
	size_t need;
	char *buf;

	if (!text || !*text)
		text = "-";
	need = escape(NULL, 0, text) + 1;
	buf = malloc(need);
	if (!buf) {
		out_text(o, "-");
		return;
	}
	escape(buf, need, text);
	if (c->f->flags & FIELD_PROSE)
		mark_share(buf);
	blanks_to(buf, '_');
	pad(o, c, buf, i + 1 == f->columns.n);
	free(buf);
}

/* Digits after the point; of a large rate none: they say nothing and burst the column. */
static int digits(enum field_unit unit, double v)
{
	if (unit == UNIT_RATIO)
		return 2;
	return unit == UNIT_RATE && v >= 1000 ? 0 : 1;
}

static void put_figure(const struct format_state *f, struct out *o, size_t i,
		       const struct cell *cell)
{
	const struct batch_column *c = &f->columns.col[i];
	enum field_unit unit = c->f->unit;
	char figure[48], all[64];
	char mark = cell->mark;

	if (!value_has(cell->v))
		snprintf(figure, sizeof(figure), "%s", cell->v.state == VALUE_NA ? "n/a" : "-");
	else if (unit == UNIT_NS)
		fmt_ns(figure, sizeof(figure), cell->v, width_of(c));
	else if (format_is_whole(unit))
		snprintf(figure, sizeof(figure), "%.0f", cell->v.v);
	else
		snprintf(figure, sizeof(figure), "%.*f", digits(unit, cell->v.v), cell->v.v);
	if (!mark && c->f->warn > 0 && value_has(cell->v) && cell->v.v >= c->f->warn)
		mark = '!';
	snprintf(all, sizeof(all), "%s%s%.1s",
		 cell->v.state == VALUE_PARTIAL && unit != UNIT_NS ? "~" : "", figure,
		 mark && value_has(cell->v) ? (const char[]){mark, '\0'} : "");
	pad(o, c, all, i + 1 == f->columns.n);
}

static int text_record(struct format_state *f, struct out *o, const struct snapshot *s)
{
	const struct batch_query *q = &f->job->query;
	int rc = batch_rows_collect(q, s, &f->rows);
	char time[16] = "";
	struct tm tm;

	if (rc || (q->when && !f->rows.n))
		return rc;
	put_host(o, s, q->filter);
	put_missing(f, o, s);
	put_pmu(o, q, s, f->rows.n);
	put_head(f, o);
	if (localtime_r(&s->wall.tv_sec, &tm))
		strftime(time, sizeof(time), "%H:%M:%S", &tm);
	for (size_t i = 0; i < f->rows.n; i++) {
		out_text(o, time);
		for (size_t k = 0; k < f->columns.n; k++) {
			const struct batch_column *c = &f->columns.col[k];
			struct cell cell = batch_cell(s, &f->rows.row[i], c, q->total);

			out_text(o, " ");
			if (c->f->unit == UNIT_TEXT)
				put_word(f, o, k, cell.text);
			else
				put_figure(f, o, k, &cell);
		}
		out_text(o, "\n");
	}
	return 0;
}

const struct format format_text = {
	.name = "text",
	.default_table = "vm",
	.open = text_open,
	.record = text_record,
	.close = text_close,
};
