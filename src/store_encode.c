// SPDX-License-Identifier: GPL-2.0-only
/* A snapshot as bytes (store_code.h). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "store_code.h"
#include "store_fields.h"
#include "store_number.h"

#define FORMAT 1
/* Longer texts are cut: command lines have no limit of their own. */
#define TEXT_MOST 65535

struct encoder {
	const struct store_texts *texts;
	struct store_put *out;
	struct store_put column; /* the one in work */
};

static uint64_t get_unsigned(const char *at, size_t size)
{
	uint64_t v64;
	uint32_t v32;

	switch (size) {
	case 1:
		return *(const uint8_t *)at;
	case 4:
		memcpy(&v32, at, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, at, sizeof(v64));
		return v64;
	}
}

static const char *get_text(const char *at)
{
	const char *text;

	memcpy(&text, at, sizeof(text));
	return text ? text : "";
}

/* The number as few bytes say it; its form goes into the head. */
static void put_number(struct store_put *p, double v, enum store_form form)
{
	if (form == FORM_WHOLE)
		store_put_i64(p, (int64_t)v);
	else if (form == FORM_MILLI)
		store_put_i64(p, llround(v * 1000));
	else if (form == FORM_RAW)
		store_put_bytes(p, &v, sizeof(v));
}

/* All heads first: they are mostly the same, and pack well together. */
static void put_values(struct encoder *e, const struct store_leaf *l, const char *rows, size_t n,
		       size_t row_size)
{
	struct value v;
	uint8_t head;

	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 0; k < l->f->n; k++) {
			memcpy(&v, rows + i * row_size + l->at + k * sizeof(v), sizeof(v));
			store_put_u8(&e->column, store_head(v.state, v.why, store_form_of(v.v)));
		}
	}
	for (size_t i = 0; i < n && !e->column.failed; i++) {
		for (unsigned k = 0; k < l->f->n; k++) {
			memcpy(&v, rows + i * row_size + l->at + k * sizeof(v), sizeof(v));
			head = e->column.data[i * l->f->n + k];
			put_number(&e->column, v.v, head >> 6);
		}
	}
}

static void put_numbers(struct encoder *e, const struct store_leaf *l, const char *rows, size_t n,
			size_t row_size)
{
	double v;

	for (size_t i = 0; i < n; i++) {
		memcpy(&v, rows + i * row_size + l->at, sizeof(v));
		store_put_u8(&e->column, (uint8_t)store_form_of(v));
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(&v, rows + i * row_size + l->at, sizeof(v));
		put_number(&e->column, v, store_form_of(v));
	}
}

static void put_heat(struct store_put *p, const char *at)
{
	const uint32_t *heat;
	unsigned used = 0, last = 0;

	memcpy(&heat, at, sizeof(heat));
	if (!heat) {
		store_put_u64(p, 0);
		return;
	}
	for (unsigned b = 0; b < HEAT_BUCKETS; b++)
		used += heat[b] != 0;
	store_put_u64(p, used + 1);
	for (unsigned b = 0; b < HEAT_BUCKETS; b++) {
		if (!heat[b])
			continue;
		store_put_u64(p, b - last);
		store_put_u64(p, heat[b]);
		last = b;
	}
}

static void put_line(struct store_put *p, const char *text)
{
	size_t len = strnlen(text, TEXT_MOST);

	store_put_u64(p, len);
	store_put_bytes(p, text, len);
}

/* 0 or -ENOMEM. */
static int put_text(struct encoder *e, const char *text)
{
	uint32_t id = *text ? e->texts->id(e->texts->ctx, text) : 0;

	if (*text && !id)
		return -ENOMEM;
	store_put_u64(&e->column, id);
	return 0;
}

static int put_column(struct encoder *e, const struct store_leaf *l, const char *rows, size_t n,
		      size_t row_size)
{
	uint32_t last = 0, now;
	int rc = 0;

	e->column.n = 0;
	if (l->f->type == STORE_VALUE) {
		put_values(e, l, rows, n, row_size);
		return 0;
	}
	if (l->f->type == STORE_NUMBER) {
		put_numbers(e, l, rows, n, row_size);
		return 0;
	}
	for (size_t i = 0; i < n && !rc; i++) {
		const char *at = rows + i * row_size + l->at;

		switch (l->f->type) {
		case STORE_I32:
		case STORE_U32:
			now = (uint32_t)get_unsigned(at, 4);
			store_put_i64(&e->column, (int32_t)(now - last));
			last = now;
			break;
		case STORE_U8:
		case STORE_U64:
			store_put_u64(&e->column, get_unsigned(at, l->f->size));
			break;
		case STORE_I64:
			store_put_i64(&e->column, (int64_t)get_unsigned(at, 8));
			break;
		case STORE_TEXT:
			rc = put_text(e, get_text(at));
			break;
		case STORE_LINE:
			put_line(&e->column, get_text(at));
			break;
		case STORE_HEAT:
			put_heat(&e->column, at);
			break;
		}
	}
	return rc;
}

/* A column of nothing but zeroes is what a reader finds where there is no column. */
static bool column_empty(const struct store_put *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->data[i])
			return false;
	return true;
}

static int put_table(struct encoder *e, const struct store_table *t, const struct snapshot *s)
{
	struct store_leaf leaf[STORE_LEAVES];
	size_t n, nleaf = store_leaves(t, leaf);
	const char *rows = store_rows(t, s, &n);
	int rc;

	if (!n)
		return 0;
	store_put_u64(e->out, t->id);
	store_put_u64(e->out, n);
	for (size_t i = 0; i < nleaf; i++) {
		rc = put_column(e, &leaf[i], rows, n, t->row_size);
		if (rc)
			return rc;
		if (column_empty(&e->column))
			continue;
		store_put_u64(e->out, leaf[i].id);
		store_put_u64(e->out, e->column.n);
		store_put_bytes(e->out, e->column.data, e->column.n);
	}
	store_put_u64(e->out, 0); /* no column has this number */
	return 0;
}

int store_encode(const struct snapshot *s, const struct store_texts *t, struct store_put *out)
{
	struct encoder e = {.texts = t, .out = out};
	int rc = 0;

	out->n = 0;
	store_put_u8(out, FORMAT);
	for (size_t i = 0; i < store_ntables && !rc; i++)
		rc = put_table(&e, &store_tables[i], s);
	store_put_u64(out, 0);
	if (out->failed || e.column.failed)
		rc = -ENOMEM;
	store_put_free(&e.column);
	return rc;
}
