// SPDX-License-Identifier: GPL-2.0-only
/* Bytes of a recording as a snapshot (store_code.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_code.h"
#include "store_fields.h"
#include "store_number.h"
#include "store_ruled.h"

#define FORMAT 2
#define FORMAT_WHOLE 1 /* figures that follow from others are in it too */
/* All rows of an interval together; the largest host that is promised needs a tenth of it. */
#define ROWS_MOST ((size_t)512 << 20)
/* Texts are copied once an interval: those of small numbers, and all have small ones. */
#define MEMO (1u << 16)

/* A column that waits until all that its figures follow from is there. */
struct ruled_column {
	struct store_leaf leaf;
	char *rows;
	size_t n, row_size;
	uint8_t table; /* enum store_table_id */
	struct store_get c; /* none: the column was left out */
	const uint8_t *forms;
};

struct decoder {
	const struct store_texts *texts;
	struct snapshot *s;
	struct store_get in;
	const char **memo; /* by number, NULL: not asked for yet */
	size_t nmemo;
	size_t bytes; /* of rows, so far */
	struct ruled_column *ruled; /* of STORE_RULED; NULL: they are like all others */
	size_t nruled;
	bool part; /* see store_decode_part() */
	int rc;
};

static void damaged(struct decoder *d)
{
	if (!d->rc)
		d->rc = -EBADMSG;
}

/* The largest value of an integer's column. */
static uint64_t most_of(const struct store_field *f)
{
	if (f->most)
		return f->most;
	return f->size < 8 ? (UINT64_C(1) << f->size * 8) - 1 : UINT64_MAX;
}

static uint64_t get_integer(struct store_get *c, unsigned type, uint32_t *last)
{
	switch (type) {
	case STORE_I32:
	case STORE_U32:
		*last += (uint32_t)store_get_i64(c);
		return *last;
	case STORE_I64:
		return (uint64_t)store_get_i64(c);
	default:
		return store_get_u64(c);
	}
}

static void take_integers(struct decoder *d, struct store_get *from, const struct store_leaf *l,
			  char *rows, size_t n, size_t row_size)
{
	const unsigned type = l->f->type, size = l->f->size;
	const uint64_t most = most_of(l->f);
	struct store_get c = *from; /* of which the compiler knows that rows are no part */
	uint32_t last = 0;
	bool fits = true;

	rows += l->at;
	for (size_t i = 0; i < n && !c.failed; i++, rows += row_size) {
		uint64_t v = get_integer(&c, type, &last);
		uint32_t v32 = (uint32_t)v;

		fits = fits && v <= most;
		if (size == 1)
			*(uint8_t *)rows = (uint8_t)v;
		else if (size == 4)
			memcpy(rows, &v32, sizeof(v32));
		else
			memcpy(rows, &v, sizeof(v));
	}
	if (!fits)
		damaged(d);
	*from = c;
}

static double get_number(struct decoder *d, struct store_get *c, uint8_t form)
{
	const uint8_t *raw;
	double v = 0;

	switch (form) {
	case FORM_WHOLE:
		return (double)store_get_i64(c);
	case FORM_MILLI:
		if (d->ruled)
			return store_decode_milli(store_get_i64(c));
		return (double)store_get_i64(c) / 1000;
	case FORM_RAW:
		raw = store_get_bytes(c, sizeof(v));
		if (raw)
			memcpy(&v, raw, sizeof(v));
		if (isfinite(v) && fabs(v) > 9e18) /* must fit into an int64_t */
			damaged(d);
		return v;
	default:
		return 0;
	}
}

static void take_values(struct decoder *d, struct store_get *c, const struct store_leaf *l,
			char *rows, size_t n, size_t row_size)
{
	const unsigned each = l->f->n;
	const uint8_t *head = store_get_bytes(c, n * each);

	rows += l->at;
	for (size_t i = 0; head && i < n && !d->rc; i++, rows += row_size) {
		for (unsigned k = 0; k < each; k++, head++) {
			struct value v = {.state = *head & 3, .why = *head >> 2 & 15};

			if (v.why >= WHY_NR)
				damaged(d);
			v.v = get_number(d, c, *head >> 6);
			memcpy(rows + k * sizeof(v), &v, sizeof(v));
		}
	}
}

static void take_numbers(struct decoder *d, struct store_get *c, const struct store_leaf *l,
			 char *rows, size_t n, size_t row_size)
{
	const uint8_t *form = store_get_bytes(c, n);

	for (size_t i = 0; form && i < n && !d->rc; i++) {
		double v = get_number(d, c, form[i]);

		if (form[i] > FORM_RAW)
			damaged(d);
		memcpy(rows + i * row_size + l->at, &v, sizeof(v));
	}
}

static const uint32_t *take_heat(struct decoder *d, struct store_get *c)
{
	uint64_t used = store_get_u64(c), at = 0;
	uint32_t *heat;

	if (!used || c->failed)
		return NULL;
	if (used > HEAT_BUCKETS + 1) {
		damaged(d);
		return NULL;
	}
	heat = snapshot_alloc(d->s, HEAT_BUCKETS, sizeof(*heat));
	if (!heat) {
		d->rc = -ENOMEM;
		return NULL;
	}
	while (--used && !c->failed) {
		uint64_t step = store_get_u64(c), count = store_get_u64(c);

		if (step >= HEAT_BUCKETS || (at += step) >= HEAT_BUCKETS || count > UINT32_MAX) {
			damaged(d);
			return heat;
		}
		heat[at] = (uint32_t)count;
	}
	return heat;
}

/* A copy of n bytes as text; a zero byte among them would hide the rest. */
static const char *take_line(struct decoder *d, struct store_get *c)
{
	uint64_t n = store_get_u64(c);
	const uint8_t *from = NULL;
	char *text;

	if (!n)
		return "";
	if (n <= store_get_left(c))
		from = store_get_bytes(c, n);
	if (!from || memchr(from, 0, n)) {
		damaged(d);
		return "";
	}
	text = snapshot_alloc(d->s, n + 1, 1);
	if (!text) {
		d->rc = -ENOMEM;
		return "";
	}
	memcpy(text, from, n);
	return text;
}

/* Room for the number among the texts that were copied: as much as numbers ask for. */
static bool memo_room(struct decoder *d, uint64_t id)
{
	size_t n = d->nmemo ? d->nmemo : 1024;
	const char **memo;

	if (id >= MEMO || id < d->nmemo)
		return id < MEMO;
	while (n <= id)
		n *= 2;
	memo = realloc(d->memo, n * sizeof(*memo));
	if (!memo)
		return false;
	memset(memo + d->nmemo, 0, (n - d->nmemo) * sizeof(*memo));
	d->memo = memo;
	d->nmemo = n;
	return true;
}

static const char *take_text(struct decoder *d, struct store_get *c)
{
	uint64_t id = store_get_u64(c);
	const char *text;
	bool kept;

	if (!id)
		return "";
	kept = memo_room(d, id);
	if (kept && d->memo[id])
		return d->memo[id];
	text = id <= UINT32_MAX ? d->texts->text(d->texts->ctx, (uint32_t)id) : NULL;
	if (!text) {
		damaged(d);
		return "";
	}
	text = snapshot_str(d->s, text);
	if (kept)
		d->memo[id] = text;
	return text;
}

static void take_pointer(struct decoder *d, struct store_get *c, const struct store_field *f,
			 char *at)
{
	const void *p;

	if (f->type == STORE_TEXT)
		p = take_text(d, c);
	else if (f->type == STORE_LINE)
		p = take_line(d, c);
	else
		p = take_heat(d, c);
	memcpy(at, &p, sizeof(p));
}

static void take_column(struct decoder *d, struct store_get *c, const struct store_leaf *l,
			char *rows, size_t n, size_t row_size)
{
	switch (l->f->type) {
	case STORE_VALUE:
		take_values(d, c, l, rows, n, row_size);
		break;
	case STORE_NUMBER:
		take_numbers(d, c, l, rows, n, row_size);
		break;
	case STORE_TEXT:
	case STORE_LINE:
	case STORE_HEAT:
		for (size_t i = 0; i < n && !d->rc && !c->failed; i++)
			take_pointer(d, c, l->f, rows + i * row_size + l->at);
		break;
	default:
		take_integers(d, c, l, rows, n, row_size);
		break;
	}
}

/* Texts are never NULL, also where the recording has no column of them. */
static void clear_texts(const struct store_leaf *leaf, size_t nleaf, char *rows, size_t n,
			size_t row_size)
{
	const char *none = "";

	for (size_t l = 0; l < nleaf; l++) {
		if (leaf[l].f->type != STORE_TEXT && leaf[l].f->type != STORE_LINE)
			continue;
		for (size_t i = 0; i < n; i++)
			memcpy(rows + i * row_size + leaf[l].at, &none, sizeof(none));
	}
}

/* Those of a table that wait: also what was left out follows from others. */
static void add_ruled(struct decoder *d, uint8_t table, const struct store_leaf *leaf, size_t nleaf,
		      char *rows, size_t n, size_t row_size)
{
	for (size_t l = 0; l < nleaf; l++) {
		if (!leaf[l].f->rule)
			continue;
		if (d->nruled == STORE_RULED) { /* the same table again and again */
			damaged(d);
			return;
		}
		d->ruled[d->nruled++] = (struct ruled_column){.leaf = leaf[l],
							      .rows = rows,
							      .n = n,
							      .row_size = row_size,
							      .table = table};
	}
}

static void keep_column(struct decoder *d, const char *rows, const struct store_leaf *l,
			const struct store_get *c)
{
	for (size_t i = d->nruled; i-- > 0;) {
		if (d->ruled[i].rows != rows || d->ruled[i].leaf.id != l->id)
			continue;
		d->ruled[i].c = *c;
		return;
	}
}

static int by_rule(const void *a, const void *b)
{
	const struct ruled_column *x = a, *y = b;

	return (int)x->leaf.f->rule - (int)y->leaf.f->rule;
}

/* A longer interval has no totals of vCPUs (store_reduce_longer()). */
static bool is_total(const struct ruled_column *r)
{
	return r->table == STORE_EXITS && r->leaf.at >= offsetof(struct snap_exit, total);
}

static bool is_of_vcpu(const char *row)
{
	return ((const struct snap_exit *)(const void *)row)->vcpu >= 0;
}

/* All the rest is there, and every index leads somewhere. */
static int take_ruled(struct decoder *d)
{
	struct store_known known;
	int rc = 0;

	for (size_t i = 0; i < d->nruled && !rc; i++) {
		struct ruled_column *r = &d->ruled[i];

		rc = store_take_ruled_states(&r->c, &r->leaf, r->rows, r->n, r->row_size,
					     &r->forms);
	}
	if (!rc)
		rc = store_known_init(&known, d->s);
	if (rc)
		return rc;
	qsort(d->ruled, d->nruled, sizeof(*d->ruled), by_rule);
	for (size_t i = 0; i < d->nruled && !rc; i++) {
		struct ruled_column *r = &d->ruled[i];

		if (d->part && store_rule_anew((enum store_rule)r->leaf.f->rule))
			continue;
		rc = store_take_ruled(&known, &r->c, r->forms, &r->leaf, r->rows, r->n, r->row_size,
				      d->part && is_total(r) ? is_of_vcpu : NULL);
	}
	store_known_free(&known);
	return rc;
}

static void take_columns(struct decoder *d, const struct store_leaf *leaf, size_t nleaf, char *rows,
			 size_t n, size_t row_size)
{
	uint64_t id, len;

	while (!d->rc && (id = store_get_u64(&d->in)) != 0) {
		struct store_get column;
		size_t l = 0;

		len = store_get_u64(&d->in);
		if (len > store_get_left(&d->in)) {
			damaged(d);
			return;
		}
		column.at = store_get_bytes(&d->in, len);
		column.end = column.at + len;
		column.failed = false;
		while (l < nleaf && leaf[l].id != id)
			l++;
		if (l == nleaf) /* a newer kvmtop's */
			continue;
		if (d->ruled && leaf[l].f->rule) {
			keep_column(d, rows, &leaf[l], &column);
			continue;
		}
		take_column(d, &column, &leaf[l], rows, n, row_size);
		if (column.failed || column.at != column.end)
			damaged(d);
	}
	if (d->in.failed)
		damaged(d);
}

/* Memory for the rows, within the snapshot or in its arena. NULL: no memory or too many. */
static char *make_rows(struct decoder *d, const struct store_table *t, uint64_t n)
{
	char *base = (char *)d->s;
	void *rows;
	size_t bytes;

	if (t->fixed) {
		if (n != t->fixed)
			damaged(d);
		return d->rc ? NULL : base + t->rows_at;
	}
	memcpy(&rows, base + t->rows_at, sizeof(rows));
	if (rows || __builtin_mul_overflow(n, t->row_size, &bytes) ||
	    bytes > ROWS_MOST - d->bytes) {
		damaged(d);
		return NULL;
	}
	d->bytes += bytes;
	rows = snapshot_alloc(d->s, n, t->row_size);
	if (!rows) {
		d->rc = -ENOMEM;
		return NULL;
	}
	memcpy(base + t->rows_at, &rows, sizeof(rows));
	memcpy(base + t->n_at, &n, sizeof(size_t));
	return rows;
}

static void skip_columns(struct decoder *d)
{
	uint64_t len;

	while (store_get_u64(&d->in)) {
		len = store_get_u64(&d->in);
		if (len > store_get_left(&d->in))
			d->in.failed = true;
		else
			store_get_bytes(&d->in, len);
	}
	if (d->in.failed)
		damaged(d);
}

static void take_table(struct decoder *d, uint64_t id)
{
	struct store_leaf leaf[STORE_LEAVES];
	const struct store_table *t = NULL;
	uint64_t n = store_get_u64(&d->in);
	size_t nleaf;
	char *rows;

	for (size_t i = 0; i < store_ntables; i++)
		if (store_tables[i].id == id)
			t = &store_tables[i];
	if (!t) {
		skip_columns(d);
		return;
	}
	rows = make_rows(d, t, n);
	if (!rows)
		return;
	nleaf = store_leaves(t, leaf);
	clear_texts(leaf, nleaf, rows, n, t->row_size);
	if (d->ruled)
		add_ruled(d, t->id, leaf, nleaf, rows, n, t->row_size);
	take_columns(d, leaf, nleaf, rows, n, t->row_size);
}

/* What is in the snapshot itself has texts too, whether the bytes know of them or not. */
static void clear_fixed(struct snapshot *s)
{
	struct store_leaf leaf[STORE_LEAVES];

	for (size_t i = 0; i < store_ntables; i++) {
		const struct store_table *t = &store_tables[i];

		if (t->fixed)
			clear_texts(leaf, store_leaves(t, leaf), (char *)s + t->rows_at, t->fixed,
				    t->row_size);
	}
}

static void take_format(struct decoder *d)
{
	uint8_t format = store_get_u8(&d->in);

	if (format != FORMAT && format != FORMAT_WHOLE) {
		damaged(d);
		return;
	}
	if (format == FORMAT_WHOLE)
		return;
	d->ruled = calloc(STORE_RULED, sizeof(*d->ruled));
	if (!d->ruled)
		d->rc = -ENOMEM;
}

static int decode(const void *data, size_t n, const struct store_texts *t, bool part,
		  struct snapshot **out)
{
	struct decoder d = {
		.texts = t, .in = {.at = data, .end = (const uint8_t *)data + n}, .part = part};
	uint64_t id;

	d.s = snapshot_new();
	if (!d.s)
		d.rc = -ENOMEM;
	if (!d.rc)
		take_format(&d);
	if (!d.rc)
		clear_fixed(d.s);
	while (!d.rc && (id = store_get_u64(&d.in)) != 0)
		take_table(&d, id);
	if (d.in.failed)
		damaged(&d);
	if (!d.rc)
		d.rc = store_check(d.s);
	if (!d.rc && d.ruled)
		d.rc = take_ruled(&d);
	free(d.ruled);
	free(d.memo);
	if (d.rc)
		snapshot_unref(d.s);
	else
		*out = d.s;
	return d.rc;
}

int store_decode(const void *data, size_t n, const struct store_texts *t, struct snapshot **out)
{
	return decode(data, n, t, false, out);
}

int store_decode_part(const void *data, size_t n, const struct store_texts *t,
		      struct snapshot **out)
{
	return decode(data, n, t, true, out);
}
