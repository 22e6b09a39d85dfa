// SPDX-License-Identifier: GPL-2.0-only
/* Columns of figures that follow from others (store_ruled.h). */
#include "store_ruled.h"

#include <errno.h>
#include <string.h>

#include "hist.h"
#include "store_number.h"

#define FIGURE_MOST 9e18

/* ---- values and numbers ---- */

static bool near_half(double v, double within)
{
	double whole = floor(fabs(v));

	return fabs(fabs(v) - whole - 0.5) <= within;
}

static bool near_whole(double v, double within)
{
	return fabs(v - nearbyint(v)) <= within;
}

/*
 * Sums and means may differ in their last bits by how they were made: nothing that shows a figure,
 * with three decimals or fewer, tells such two apart; but at a whole number, where thresholds are.
 */
static bool almost_same_shown(double a, double b, double apart)
{
	if (!(fabs(b) <= FIGURE_MOST) || !isfinite(apart))
		return false;
	if (a == b)
		return !signbit(a) == !signbit(b);
	if (near_whole(a, 2 * apart + 1e-9))
		return false;
	for (int scale = 1; scale <= 1000; scale *= 10)
		if (near_half(a * scale, 2 * apart * scale + 1e-9))
			return false;
	return true;
}

static inline bool same_shown(double a, double b)
{
	double apart = fabs(a - b);

	/* Mostly so or so; also for what is no number. */
	if (a != b && !(apart <= 1e-12 * fabs(a)))
		return false;
	return almost_same_shown(a, b, apart);
}

/* Of something that thousandths of are exact: what differences are taken to. */
static double tame(double v)
{
	return fabs(v) < STORE_NUMBER_MOST ? v : 0;
}

static bool is_step(double v)
{
	uint64_t ns = (uint64_t)v;

	return v >= 0 && v < 1e15 && (double)ns == v && hist_step_middle(hist_step(ns)) == ns;
}

/* What follows by the rule, of so many rows at once. */
#define CHUNK 64

struct ruled {
	enum store_follows use;
	double follows; /* the figure, what it is a share of, or the step */
};

/* Its form and where its bytes end. */
static uint8_t *put_figure(uint8_t *at, const struct ruled *r, double v, enum store_form *form)
{
	double near = r->use == FOLLOWS_FIGURE ? tame(r->follows) : 0;
	int64_t parts, code = 0;

	/* Mostly it is. */
	*form = FORM_ZERO;
	if (r->use == FOLLOWS_FIGURE && same_shown(v, r->follows))
		return at;
	*form = store_form_of(v, &code);
	if (*form == FORM_RAW) {
		memcpy(at, &v, sizeof(v));
		return at + sizeof(v);
	}
	if (*form == FORM_ZERO && r->use != FOLLOWS_FIGURE)
		return at;
	if (r->use == FOLLOWS_STEP && is_step(v)) {
		*form = FORM_WHOLE;
		return store_varint(at, hist_step((uint64_t)v));
	}
	parts = r->use == FOLLOWS_SHARE && r->follows >= 1 && r->follows < 1e9 && fabs(v) <= 100
			? (int64_t)(v * r->follows / 100 + (v < 0 ? -0.5 : 0.5))
			: 0;
	if (parts && same_shown(v, 100.0 * (double)parts / r->follows)) {
		*form = FORM_WHOLE;
		return store_varint(at, store_zigzag(parts));
	}
	if (*form == FORM_WHOLE)
		code = store_code(code * 1000, STORE_EXACT);
	*form = FORM_MILLI;
	return store_varint(at, store_zigzag(code - store_milli_code(near)));
}

static int take_figure(struct store_get *c, const struct ruled *r, uint8_t form, double *v)
{
	double near = r->use == FOLLOWS_FIGURE ? tame(r->follows) : 0;
	const uint8_t *raw;
	int64_t n;

	switch (form) {
	case FORM_ZERO:
		/* Below 0 where a figure that it follows from is damaged: none of them can be. */
		*v = r->use == FOLLOWS_FIGURE && !(r->follows < 0) ? r->follows : 0;
		break;
	case FORM_RAW:
		raw = store_get_bytes(c, sizeof(*v));
		if (raw)
			memcpy(v, raw, sizeof(*v));
		return isfinite(*v) && fabs(*v) > FIGURE_MOST ? -EBADMSG : 0;
	case FORM_WHOLE:
		if (r->use == FOLLOWS_STEP)
			*v = (double)hist_step_middle((unsigned)store_get_u64(c));
		else if (r->use == FOLLOWS_SHARE && r->follows > 0)
			*v = 100.0 * (double)store_get_i64(c) / r->follows;
		else
			return -EBADMSG;
		break;
	default:
		n = store_get_i64(c);
		if (n > (int64_t)1 << 53 || n < -((int64_t)1 << 53))
			return -EBADMSG;
		*v = store_decode_milli(store_milli_code(near) + n);
		break;
	}
	return fabs(*v) <= FIGURE_MOST ? 0 : -EBADMSG; /* it must fit into an int64_t */
}

/* Up to CHUNK rows: states and forms into h, figures into b. Returns where h ends. */
static uint8_t *put_value_rows(const struct store_known *k, const struct store_leaf *l,
			       const char *rows, size_t n, size_t row_size, uint8_t *h, uint8_t **b)
{
	struct ruled r = {.use = store_rule_use((enum store_rule)l->f->rule)};
	double follows[CHUNK];

	store_rule_doubles(k, l, rows, n, row_size, follows);
	for (size_t i = 0; i < n; i++, rows += row_size) {
		r.follows = follows[i];
		for (unsigned p = 0; p < l->f->n; p++) {
			enum store_form form = FORM_ZERO;
			struct value v;

			memcpy(&v, rows + l->at + p * sizeof(v), sizeof(v));
			if (value_has(v))
				*b = put_figure(*b, &r, v.v, &form);
			*h++ = store_head(v.state, v.why, form);
		}
	}
	return h;
}

static uint8_t *put_double_rows(const struct store_known *k, const struct store_leaf *l,
				const char *rows, size_t n, size_t row_size, uint8_t *h,
				uint8_t **b)
{
	struct ruled r = {.use = store_rule_use((enum store_rule)l->f->rule)};
	double follows[CHUNK], v;

	store_rule_doubles(k, l, rows, n, row_size, follows);
	for (size_t i = 0; i < n; i++, rows += row_size) {
		enum store_form form;

		r.follows = follows[i];
		memcpy(&v, rows + l->at, sizeof(v));
		*b = put_figure(*b, &r, v, &form);
		*h++ = (uint8_t)form;
	}
	return h;
}

static void put_figures(const struct store_known *k, const struct store_leaf *l, const char *rows,
			size_t n, size_t row_size, struct store_put *head, struct store_put *body)
{
	size_t many = n * l->f->n;
	uint8_t *h = store_put_room(head, many),
		*b = store_put_room(body, many * STORE_VARINT_MOST);

	if (!h || !b)
		return;
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t some = n - at < CHUNK ? n - at : CHUNK;

		if (l->f->type == STORE_VALUE)
			h = put_value_rows(k, l, rows + at * row_size, some, row_size, h, &b);
		else
			h = put_double_rows(k, l, rows + at * row_size, some, row_size, h, &b);
	}
	store_put_end(head, h);
	store_put_end(body, b);
}

static int take_value_rows(const struct store_known *k, struct store_get *c, const uint8_t *forms,
			   const struct store_leaf *l, char *rows, size_t n, size_t row_size)
{
	struct ruled r = {.use = store_rule_use((enum store_rule)l->f->rule)};
	double follows[CHUNK];
	int rc = 0;

	store_rule_doubles(k, l, rows, n, row_size, follows);
	for (size_t i = 0; i < n && !rc; i++, rows += row_size) {
		r.follows = follows[i];
		for (unsigned p = 0; p < l->f->n && !rc; p++) {
			char *at = rows + l->at + p * sizeof(struct value);
			struct value v;

			memcpy(&v, at, sizeof(v));
			if (!value_has(v))
				continue;
			rc = take_figure(c, &r, forms ? forms[i * l->f->n + p] >> 6 : FORM_ZERO,
					 &v.v);
			memcpy(at, &v, sizeof(v));
		}
	}
	return rc;
}

static int take_double_rows(const struct store_known *k, struct store_get *c, const uint8_t *forms,
			    const struct store_leaf *l, char *rows, size_t n, size_t row_size)
{
	struct ruled r = {.use = store_rule_use((enum store_rule)l->f->rule)};
	double follows[CHUNK];
	int rc = 0;

	store_rule_doubles(k, l, rows, n, row_size, follows);
	for (size_t i = 0; i < n && !rc; i++, rows += row_size) {
		double v = 0;

		r.follows = follows[i];
		rc = take_figure(c, &r, forms ? forms[i] & 3 : FORM_ZERO, &v);
		memcpy(rows + l->at, &v, sizeof(v));
	}
	return rc;
}

/* ---- integers ---- */

/* A step as the difference of its number to that of the time that it is near; else odd: itself. */
static uint8_t *put_step(uint8_t *at, uint64_t v, uint64_t near)
{
	int64_t apart;

	if (!v && !near) /* most have no percentiles */
		return store_varint(at, 0);
	apart = (int64_t)hist_step(v) - (int64_t)hist_step(near);
	if (hist_step_middle(hist_step(v)) == v)
		return store_varint(at, store_zigzag(apart) << 1);
	return store_varint(store_varint(at, 1), v);
}

static uint64_t take_step(struct store_get *c, uint64_t near)
{
	uint64_t code = store_get_u64(c);
	int64_t apart = (int64_t)(code >> 2) ^ -(int64_t)(code >> 1 & 1);

	if (code & 1)
		return store_get_u64(c);
	return hist_step_middle((unsigned)((int64_t)hist_step(near) + apart));
}

static uint8_t *put_integer_rows(uint8_t *b, const struct store_leaf *l, const char *rows, size_t n,
				 size_t row_size)
{
	const enum store_rule rule = (enum store_rule)l->f->rule;
	uint64_t near[CHUNK], v;

	store_rule_integers(l, rows, n, row_size, near);
	rows += l->at;
	for (size_t i = 0; i < n; i++, rows += row_size) {
		memcpy(&v, rows, sizeof(v));
		if (rule == RULE_TIMED)
			b = store_varint(b, store_zigzag((int64_t)(v - near[i])));
		else if (rule == RULE_ONE)
			b = store_varint(b, v - near[i]);
		else
			b = put_step(b, v, near[i]);
	}
	return b;
}

static void put_integers(const struct store_leaf *l, const char *rows, size_t n, size_t row_size,
			 struct store_put *body)
{
	uint8_t *b = store_put_room(body, n * (STORE_VARINT_MOST + 1));

	if (!b)
		return;
	for (size_t at = 0; at < n; at += CHUNK)
		b = put_integer_rows(b, l, rows + at * row_size, n - at < CHUNK ? n - at : CHUNK,
				     row_size);
	store_put_end(body, b);
}

static void take_integer_rows(struct store_get *c, const struct store_leaf *l, char *rows, size_t n,
			      size_t row_size, bool empty)
{
	const enum store_rule rule = (enum store_rule)l->f->rule;
	uint64_t follows[CHUNK];

	store_rule_integers(l, rows, n, row_size, follows);
	for (size_t i = 0; i < n; i++, rows += row_size) {
		uint64_t near = follows[i], v;

		if (rule == RULE_TIMED)
			v = near + (empty ? 0 : (uint64_t)store_get_i64(c));
		else if (rule == RULE_ONE)
			v = near + (empty ? 0 : store_get_u64(c));
		else
			v = empty ? hist_step_middle(hist_step(near)) : take_step(c, near);
		memcpy(rows + l->at, &v, sizeof(v));
	}
}

static void skip_integer(struct store_get *c, const struct store_leaf *l)
{
	if (store_get_u64(c) & 1 && l->f->rule != RULE_TIMED && l->f->rule != RULE_ONE)
		store_get_u64(c); /* no step of the histogram */
}

/* ---- columns ---- */

/* Up to CHUNK rows. empty: the column has no bytes. */
static int take_rows(const struct store_known *k, struct store_get *c, const uint8_t *forms,
		     const struct store_leaf *l, char *rows, size_t n, size_t row_size, bool empty)
{
	if (l->f->type == STORE_VALUE)
		return take_value_rows(k, c, forms, l, rows, n, row_size);
	if (l->f->type == STORE_NUMBER)
		return take_double_rows(k, c, forms, l, rows, n, row_size);
	take_integer_rows(c, l, rows, n, row_size, empty);
	return 0;
}

/* Past the figures of one row, of a column that has any. */
static void skip_row(struct store_get *c, const uint8_t *forms, const struct store_leaf *l,
		     const char *row)
{
	const bool values = l->f->type == STORE_VALUE;

	if (!values && l->f->type != STORE_NUMBER) {
		skip_integer(c, l);
		return;
	}
	for (unsigned p = 0; forms && p < l->f->n; p++) {
		enum store_form form = values ? forms[p] >> 6 : forms[p] & 3;
		struct value v = value_known(0);

		if (values)
			memcpy(&v, row + l->at + p * sizeof(v), sizeof(v));
		if (!value_has(v) || form == FORM_ZERO)
			continue;
		if (form == FORM_RAW)
			store_get_bytes(c, sizeof(double));
		else
			store_get_u64(c);
	}
}

void store_put_ruled(const struct store_known *k, const struct store_leaf *l, const char *rows,
		     size_t n, size_t row_size, struct store_put *head, struct store_put *body)
{
	if (l->f->type == STORE_VALUE || l->f->type == STORE_NUMBER)
		put_figures(k, l, rows, n, row_size, head, body);
	else
		put_integers(l, rows, n, row_size, body);
}

int store_take_ruled_states(struct store_get *c, const struct store_leaf *l, char *rows, size_t n,
			    size_t row_size, const uint8_t **forms)
{
	const uint8_t *head;

	*forms = NULL;
	if (c->at == c->end || (l->f->type != STORE_VALUE && l->f->type != STORE_NUMBER))
		return 0;
	head = *forms = store_get_bytes(c, n * l->f->n);
	if (!head)
		return -EBADMSG;
	if (l->f->type != STORE_VALUE)
		return 0;
	for (size_t i = 0; i < n; i++, rows += row_size) {
		for (unsigned p = 0; p < l->f->n; p++, head++) {
			struct value v = {.state = *head & 3, .why = *head >> 2 & 15};

			if (v.why >= WHY_NR)
				return -EBADMSG;
			memcpy(rows + l->at + p * sizeof(v), &v, sizeof(v));
		}
	}
	return 0;
}

int store_take_ruled(const struct store_known *k, struct store_get *c, const uint8_t *forms,
		     const struct store_leaf *l, char *rows, size_t n, size_t row_size,
		     bool (*unwanted)(const char *row))
{
	const bool empty = c->at == c->end;
	int rc = 0;

	for (size_t at = 0, some; at < n && !rc; at += some) {
		const uint8_t *f = forms ? forms + at * l->f->n : NULL;
		char *row = rows + at * row_size;

		some = unwanted ? 1 : n - at < CHUNK ? n - at : CHUNK;
		if (!unwanted || !unwanted(row))
			rc = take_rows(k, c, f, l, row, some, row_size, empty);
		else if (!empty)
			skip_row(c, f, l, row);
	}
	if (!rc && (c->failed || c->at != c->end))
		rc = -EBADMSG;
	return rc;
}
