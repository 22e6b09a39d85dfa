// SPDX-License-Identifier: GPL-2.0-only
/* A snapshot as bytes (store_code.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store_code.h"
#include "store_fields.h"
#include "store_number.h"
#include "store_ruled.h"

_Static_assert(WHY_NO_LOOK == 16 && WHY_NR == 17,
	       "store_head() has 4 bits for the reasons that members of a snapshot have");
#define FORMAT 2 /* 1 had all figures as they are, those too that follow from others */
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

struct seen {
	const char *text;
	uint32_t id;
};

#define SEEN 256 /* texts */
#define SEEN_SHIFT 56 /* of a 64-bit hash */

struct encoder {
	const struct store_texts *texts;
	struct store_put *out;
	struct store_known known;
	struct seen seen[SEEN]; /* by the address of the text */
	struct column column[STORE_LEAVES];
};

static const char *get_text(const char *at)
{
	const char *text;

	memcpy(&text, at, sizeof(text));
	return text ? text : "";
}

/* The number as few bytes say it; its form goes into the head. */
static inline uint8_t *put_number(uint8_t *at, double v, enum store_form *form)
{
	int64_t code = 0;

	*form = store_form_of(v, &code);
	if (*form == FORM_WHOLE || *form == FORM_MILLI)
		return store_varint(at, store_zigzag(code));
	if (*form == FORM_RAW) {
		memcpy(at, &v, sizeof(v));
		return at + sizeof(v);
	}
	return at;
}

/* All heads stand first: they are mostly the same, and pack well together. */
static void put_values(struct column *c, const struct store_leaf *l, const char *rows, size_t n,
		       size_t row_size)
{
	size_t many = n * l->f->n;
	uint8_t *head = store_put_room(&c->head, many);
	uint8_t *body = store_put_room(&c->body, many * STORE_VARINT_MOST);
	const unsigned each = l->f->n;
	struct value v;

	if (!head || !body)
		return;
	rows += l->at;
	for (size_t i = 0; i < n; i++, rows += row_size) {
		for (unsigned k = 0; k < each; k++) {
			enum store_form form;

			memcpy(&v, rows + k * sizeof(v), sizeof(v));
			body = put_number(body, v.v, &form);
			*head++ = store_head(v.state, v.why, form);
		}
	}
	store_put_end(&c->head, head);
	store_put_end(&c->body, body);
}

static void put_doubles(struct column *c, const struct store_leaf *l, const char *rows, size_t n,
			size_t row_size)
{
	uint8_t *head = store_put_room(&c->head, n);
	uint8_t *body = store_put_room(&c->body, n * STORE_VARINT_MOST);
	double v;

	if (!head || !body)
		return;
	rows += l->at;
	for (size_t i = 0; i < n; i++, rows += row_size) {
		enum store_form form;

		memcpy(&v, rows, sizeof(v));
		body = put_number(body, v, &form);
		*head++ = (uint8_t)form;
	}
	store_put_end(&c->head, head);
	store_put_end(&c->body, body);
}

/*
 * One loop a type, with nothing in it that has to be loaded again after each byte that is stored:
 * as far as the compiler knows a byte may be anything's.
 */
#define EACH_INTEGER(type, expression)                                                             \
	do {                                                                                       \
		for (size_t i = 0; i < n; i++, rows += row_size) {                                 \
			type v;                                                                    \
                                                                                                   \
			memcpy(&v, rows, sizeof(v));                                               \
			body = store_varint(body, (expression));                                   \
		}                                                                                  \
	} while (0)

static void put_integers(struct column *c, const struct store_leaf *l, const char *rows, size_t n,
			 size_t row_size)
{
	uint8_t *body = store_put_room(&c->body, n * STORE_VARINT_MOST);
	uint32_t last = c->last, before;

	if (!body)
		return;
	rows += l->at;
	switch (l->f->type) {
	case STORE_U8:
		EACH_INTEGER(uint8_t, v);
		break;
	case STORE_U64:
		EACH_INTEGER(uint64_t, v);
		break;
	case STORE_I64:
		EACH_INTEGER(int64_t, store_zigzag(v));
		break;
	default: /* of 32 bits */
		EACH_INTEGER(uint32_t,
			     (before = last, last = v, store_zigzag((int32_t)(v - before))));
		break;
	}
	c->last = last;
	store_put_end(&c->body, body);
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

/* The number of a text: rows mostly point to the same few. 0: no memory. */
static uint32_t text_id(struct encoder *e, const char *text)
{
	struct seen *seen = &e->seen[((uintptr_t)text * 0x9e3779b97f4a7c15ull) >> SEEN_SHIFT];

	if (seen->text != text)
		*seen = (struct seen){text, e->texts->id(e->texts->ctx, text)};
	return seen->id;
}

/* 0 or -ENOMEM. */
static int put_texts(struct encoder *e, struct column *c, const struct store_leaf *l,
		     const char *rows, size_t n, size_t row_size)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = get_text(rows + i * row_size + l->at);
		uint32_t id = *text ? text_id(e, text) : 0;

		if (*text && !id)
			return -ENOMEM;
		store_put_u64(&c->body, id);
	}
	return 0;
}

/* A block of rows of one column. */
static int put_column(struct encoder *e, struct column *c, const struct store_leaf *l,
		      const char *rows, size_t n, size_t row_size)
{
	if (l->f->rule) {
		store_put_ruled(&e->known, l, rows, n, row_size, &c->head, &c->body);
		return 0;
	}
	switch (l->f->type) {
	case STORE_VALUE:
		put_values(c, l, rows, n, row_size);
		break;
	case STORE_NUMBER:
		put_doubles(c, l, rows, n, row_size);
		break;
	case STORE_TEXT:
		return put_texts(e, c, l, rows, n, row_size);
	case STORE_LINE:
		for (size_t i = 0; i < n; i++)
			put_line(&c->body, get_text(rows + i * row_size + l->at));
		break;
	case STORE_HEAT:
		for (size_t i = 0; i < n; i++)
			put_heat(&c->body, rows + i * row_size + l->at);
		break;
	default:
		put_integers(c, l, rows, n, row_size);
		break;
	}
	return 0;
}

/* A column of nothing but zeroes is what a reader finds where there is no column. */
static bool column_empty(const struct store_put *p)
{
	return !p->n || (!p->data[0] && !memcmp(p->data, p->data + 1, p->n - 1));
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
	int rc = e ? store_known_init(&e->known, s) : -ENOMEM;

	if (rc) {
		free(e);
		return rc;
	}
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
	store_known_free(&e->known);
	free(e);
	return rc;
}
