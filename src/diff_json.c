// SPDX-License-Identifier: GPL-2.0-only
/* A comparison for programs (diff.h): CSV, and one object of JSON. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "diff.h"
#include "format.h"
#include "out.h"
#include "text.h"

static void csv_text(struct out *out, const char *text)
{
	out_text(out, ",");
	format_escaped(out, text_escape_csv, text);
}

static void csv_number(struct out *out, bool known, double v)
{
	if (known)
		out_printf(out, ",%.9g", v);
	else
		out_text(out, ",");
}

static void csv_row(const struct diff *d, const struct diff_row *r, struct out *out)
{
	const struct diff_pair *p = r->pair == DIFF_HOST ? NULL : &d->pair[r->pair];

	out_text(out, diff_what_name((enum diff_what)r->what));
	csv_text(out, p ? d->side[0].vm[p->a].name : "");
	csv_text(out, p ? d->side[1].vm[p->b].name : "");
	csv_text(out, diff_kind_name(r));
	csv_text(out, r->name);
	csv_text(out, r->module);
	csv_text(out, diff_unit((enum diff_what)r->what));
	csv_number(out, r->a_known, r->a);
	csv_number(out, r->b_known, r->b);
	csv_number(out, r->a_known && r->b_known, r->b - r->a);
	csv_number(out, r->tested, r->low);
	csv_number(out, r->tested, r->high);
	csv_number(out, r->share_a >= 0, r->share_a);
	csv_number(out, r->share_b >= 0, r->share_b);
	out_text(out, !r->tested ? ",\n" : r->sure ? ",1\n" : ",0\n");
}

static void csv_fact(struct out *out, const char *name, const char *a, const char *b)
{
	out_text(out, "fact,,,");
	csv_text(out, name);
	out_text(out, ",,");
	csv_text(out, a);
	csv_text(out, b);
	out_text(out, ",,,,,,\n");
}

void diff_csv(const struct diff *d, struct out *out)
{
	const struct host_facts *a = &d->side[0].facts, *b = &d->side[1].facts;
	bool all = !d->side[0].by_perf && !d->side[1].by_perf; /* perf records few of them */

	out_text(out, "table,vm_a,vm_b,kind,what,module,unit,a,b,change,low,high,share_a_pct,"
		      "share_b_pct,larger_than_noise\n");
	for (size_t i = 0; i < a->n; i++) {
		const char *other = host_facts_get(b, a->fact[i].name);

		if (other ? strcmp(other, a->fact[i].value) != 0 : all)
			csv_fact(out, a->fact[i].name, a->fact[i].value, other ? other : "");
	}
	for (size_t i = 0; i < b->n && all; i++)
		if (!host_facts_get(a, b->fact[i].name))
			csv_fact(out, b->fact[i].name, "", b->fact[i].value);
	for (size_t i = 0; i < d->nrows; i++)
		csv_row(d, &d->row[i], out);
}

/* ---- JSON ---- */

/* NULL only where memory ran out. */
static json_t *text_of(const char *text)
{
	size_t need = text_utf8_clean(NULL, 0, text) + 1;
	char *clean = malloc(need);
	json_t *v;

	if (!clean)
		return NULL;
	text_utf8_clean(clean, need, text);
	v = json_string(clean);
	free(clean);
	return v;
}

static json_t *number_of(bool known, double v)
{
	return known ? json_real(v) : json_null();
}

static json_t *time_of(const struct diff_side *s, int64_t wall)
{
	char buf[64];

	if (s->by_perf)
		return json_null();
	format_time(buf, sizeof(buf), timespec_of(wall));
	return json_string(buf);
}

static json_t *side_of(const struct diff_side *s)
{
	return json_pack("{so so so sI sf sI sI so so}", "file", text_of(s->path), "from",
			 time_of(s, s->first), "to", time_of(s, s->last), "intervals",
			 (json_int_t)s->intervals, "seconds", (double)s->length / 1e9, "lost",
			 (json_int_t)s->lost, "damaged", (json_int_t)s->damaged, "node",
			 text_of(s->node), "boot_id", text_of(s->boot_id));
}

static json_t *facts_of(const struct diff *d)
{
	const struct host_facts *a = &d->side[0].facts, *b = &d->side[1].facts;
	bool full = !d->side[0].by_perf && !d->side[1].by_perf;
	json_t *all = json_object();

	for (int other = 0; other < 2; other++) {
		const struct host_facts *f = other ? b : a;

		for (size_t i = 0; i < f->n && all; i++) {
			const char *x = host_facts_get(a, f->fact[i].name);
			const char *y = host_facts_get(b, f->fact[i].name);
			json_t *name = text_of(f->fact[i].name);

			if (x && y ? strcmp(x, y) != 0 : full)
				json_object_set_new(all, name ? json_string_value(name) : "",
						    json_pack("{so so}", "a",
							      x ? text_of(x) : json_null(), "b",
							      y ? text_of(y) : json_null()));
			json_decref(name);
		}
	}
	return all;
}

static json_t *vm_of(const struct diff_vm *v)
{
	return json_pack("{so so sI}", "name", text_of(v->name), "uuid",
			 *v->uuid ? text_of(v->uuid) : json_null(), "vcpus", (json_int_t)v->nvcpu);
}

static json_t *vms_of(const struct diff *d)
{
	json_t *all = json_array();

	for (size_t i = 0; i < d->npairs; i++)
		json_array_append_new(all, json_pack("{so so ss}", "a",
						     vm_of(&d->side[0].vm[d->pair[i].a]), "b",
						     vm_of(&d->side[1].vm[d->pair[i].b]), "by",
						     diff_by_name(d->pair[i].by)));
	return all;
}

static json_t *only_of(const struct diff *d, int side)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < d->side[side].nvm; i++)
		if (diff_pair_of(d, side, i) < 0)
			json_array_append_new(all, vm_of(&d->side[side].vm[i]));
	return all;
}

static json_t *row_of(const struct diff *d, const struct diff_row *r)
{
	const struct diff_pair *p = r->pair == DIFF_HOST ? NULL : &d->pair[r->pair];
	bool both = r->a_known && r->b_known;

	return json_pack("{ss so so so so so ss so so so so so so so so}", "table",
			 diff_what_name((enum diff_what)r->what), "vm_a",
			 p ? text_of(d->side[0].vm[p->a].name) : json_null(), "vm_b",
			 p ? text_of(d->side[1].vm[p->b].name) : json_null(), "kind",
			 *diff_kind_name(r) ? json_string(diff_kind_name(r)) : json_null(), "what",
			 text_of(r->name), "module", *r->module ? text_of(r->module) : json_null(),
			 "unit", diff_unit((enum diff_what)r->what), "a",
			 number_of(r->a_known, r->a), "b", number_of(r->b_known, r->b), "change",
			 number_of(both, r->b - r->a), "low", number_of(r->tested, r->low), "high",
			 number_of(r->tested, r->high), "share_a_pct",
			 number_of(r->share_a >= 0, r->share_a), "share_b_pct",
			 number_of(r->share_b >= 0, r->share_b), "larger_than_noise",
			 r->tested ? json_boolean(r->sure) : json_null());
}

int diff_json(const struct diff *d, struct out *out)
{
	json_t *rows = json_array(), *all;
	char *text = NULL;

	for (size_t i = 0; i < d->nrows; i++)
		json_array_append_new(rows, row_of(d, &d->row[i]));
	all = json_pack("{so so so so so so so}", "a", side_of(&d->side[0]), "b",
			side_of(&d->side[1]), "host_differs", facts_of(d), "vms", vms_of(d),
			"only_a", only_of(d, 0), "only_b", only_of(d, 1), "rows", rows);
	if (all && json_array_size(json_object_get(all, "rows")) == d->nrows)
		text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(all);
	if (!text)
		return -ENOMEM;
	out_text(out, text);
	out_text(out, "\n");
	free(text);
	return 0;
}
