// SPDX-License-Identifier: GPL-2.0-only
/* A snapshot as bytes (store_code.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store_code.h"
#include "store_fields.h"
#include "store_number.h"

#define FORMAT 1
/* Longer texts are cut: command lines have no limit of their own. */
#define TEXT_MOST 65535

/*
 * Rows are gone through in blocks, all columns of a block before the next one: a row is larger than
 * what of it a column takes, and a table larger than the processor's cache.
 */
#define BLOCK_BYTES (16 << 10)

struct column {
	struct store_put
		head; /* of values and numbers: their forms, which stand before all of them */
	struct store_put body;
	uint32_t last; /* of numbers that are kept as differences */
};

struct encoder {
	const struct store_texts *texts;
	struct store_put *out;
	struct column column[STORE_LEAVES];
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

/* All heads stand first: they are mostly the same, and pack well together. */
static void put_values(struct column *c, const struct store_leaf *l, const char *rows, size_t n,
		       size_t row_size)
{
	struct value v;

	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 0; k < l->f->n; k++) {
			enum store_form form;

			memcpy(&v, rows + i * row_size + l->at + k * sizeof(v), sizeof(v));
			form = store_form_of(v.v);
			store_put_u8(&c->head, store_head(v.state, v.why, form));
			put_number(&c->body, v.v, form);
		}
	}
}

static void put_numbers(struct column *c, const struct store_leaf *l, const char *rows, size_t n,
			size_t row_size)
{
	double v;

	for (size_t i = 0; i < n; i++) {
		enum store_form form;

		memcpy(&v, rows + i * row_size + l->at, sizeof(v));
		form = store_form_of(v);
		store_put_u8(&c->head, (uint8_t)form);
		put_number(&c->body, v, form);
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
static int put_text(struct encoder *e, struct column *c, const char *text)
{
	uint32_t id = *text ? e->texts->id(e->texts->ctx, text) : 0;

	if (*text && !id)
		return -ENOMEM;
	store_put_u64(&c->body, id);
	return 0;
}

/* A block of rows of one column. */
static int put_column(struct encoder *e, struct column *c, const struct store_leaf *l,
		      const char *rows, size_t n, size_t row_size)
{
	uint32_t now;
	int rc = 0;

	if (l->f->type == STORE_VALUE) {
		put_values(c, l, rows, n, row_size);
		return 0;
	}
	if (l->f->type == STORE_NUMBER) {
		put_numbers(c, l, rows, n, row_size);
		return 0;
	}
	for (size_t i = 0; i < n && !rc; i++) {
		const char *at = rows + i * row_size + l->at;

		switch (l->f->type) {
		case STORE_I32:
		case STORE_U32:
			now = (uint32_t)get_unsigned(at, 4);
			store_put_i64(&c->body, (int32_t)(now - c->last));
			c->last = now;
			break;
		case STORE_U8:
		case STORE_U64:
			store_put_u64(&c->body, get_unsigned(at, l->f->size));
			break;
		case STORE_I64:
			store_put_i64(&c->body, (int64_t)get_unsigned(at, 8));
			break;
		case STORE_TEXT:
			rc = put_text(e, c, get_text(at));
			break;
		case STORE_LINE:
			put_line(&c->body, get_text(at));
			break;
		case STORE_HEAT:
			put_heat(&c->body, at);
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

static int put_rows(struct encoder *e, const struct store_leaf *leaf, size_t nleaf,
		    const char *rows, size_t n, size_t row_size)
{
	size_t block = row_size < BLOCK_BYTES ? BLOCK_BYTES / row_size : 1;
	int rc = 0;

	for (size_t i = 0; i < nleaf; i++) {
		e->column[i].head.n = e->column[i].body.n = 0;
		e->column[i].last = 0;
	}
	for (size_t at = 0; at < n && !rc; at += block)
		for (size_t i = 0; i < nleaf && !rc; i++)
			rc = put_column(e, &e->column[i], &leaf[i], rows + at * row_size,
					n - at < block ? n - at : block, row_size);
	return rc;
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
	rc = put_rows(e, leaf, nleaf, rows, n, t->row_size);
	for (size_t i = 0; i < nleaf && !rc; i++) {
		const struct column *c = &e->column[i];

		if (c->head.failed || c->body.failed)
			return -ENOMEM;
		if (column_empty(&c->head) && column_empty(&c->body))
			continue;
		store_put_u64(e->out, leaf[i].id);
		store_put_u64(e->out, c->head.n + c->body.n);
		store_put_bytes(e->out, c->head.data, c->head.n);
		store_put_bytes(e->out, c->body.data, c->body.n);
	}
	store_put_u64(e->out, 0); /* no column has this number */
	return rc;
}

int store_encode(const struct snapshot *s, const struct store_texts *t, struct store_put *out)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int rc = 0;

	if (!e)
		return -ENOMEM;
	e->texts = t;
	e->out = out;
	out->n = 0;
	store_put_u8(out, FORMAT);
	for (size_t i = 0; i < store_ntables && !rc; i++)
		rc = put_table(e, &store_tables[i], s);
	store_put_u64(out, 0);
	if (out->failed)
		rc = -ENOMEM;
	for (size_t i = 0; i < STORE_LEAVES; i++) {
		store_put_free(&e->column[i].head);
		store_put_free(&e->column[i].body);
	}
	free(e);
	return rc;
}
