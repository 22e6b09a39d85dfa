// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads `__print_symbolic(arg, { 0x040 + 14, "PF excp" }, { 2, "KVM_EXIT_" "IO" }, …)`.
 *
 * Values are C constant expressions of numbers, + - | << and brackets: what the kernel's
 * macros leave behind. A value is what its unsigned 32-bit field can hold.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "symbolic.h"

#define MAX_ROWS 4096
#define MAX_DEPTH 16 /* of brackets in an expression */

struct cursor {
	const char *p, *end;
	int depth;
};

static void skip_blank(struct cursor *c)
{
	while (c->p < c->end && isspace((unsigned char)*c->p))
		c->p++;
}

static bool take(struct cursor *c, char ch)
{
	skip_blank(c);
	if (c->p >= c->end || *c->p != ch)
		return false;
	c->p++;
	return true;
}

/* ---- constant expressions ---- */

static bool expression(struct cursor *c, uint64_t *v);

static bool number(struct cursor *c, uint64_t *v)
{
	unsigned base = 10, digits = 0;

	if (c->end - c->p > 2 && c->p[0] == '0' && (c->p[1] | 0x20) == 'x') {
		base = 16;
		c->p += 2;
	} else if (c->p < c->end && *c->p == '0') {
		base = 8;
	}
	*v = 0;
	for (int d; c->p < c->end && (d = hex_digit(*c->p)) >= 0; c->p++, digits++) {
		if ((unsigned)d >= base)
			return false;
		*v = *v * base + (unsigned)d;
	}
	while (c->p < c->end && strchr("uUlL", *c->p) && *c->p)
		c->p++;
	return digits > 0;
}

static bool primary(struct cursor *c, uint64_t *v)
{
	bool ok;

	if (take(c, '-')) {
		if (++c->depth > MAX_DEPTH)
			return false;
		ok = primary(c, v);
		*v = -*v;
		c->depth--;
		return ok;
	}
	if (!take(c, '('))
		return number(c, v);
	if (++c->depth > MAX_DEPTH)
		return false;
	ok = expression(c, v) && take(c, ')');
	c->depth--;
	return ok;
}

static bool sum(struct cursor *c, uint64_t *v)
{
	uint64_t right;

	if (!primary(c, v))
		return false;
	for (;;) {
		if (take(c, '+')) {
			if (!primary(c, &right))
				return false;
			*v += right;
		} else if (take(c, '-')) {
			if (!primary(c, &right))
				return false;
			*v -= right;
		} else {
			return true;
		}
	}
}

static bool shift(struct cursor *c, uint64_t *v)
{
	uint64_t right;

	if (!sum(c, v))
		return false;
	while (take(c, '<')) {
		if (!take(c, '<') || !sum(c, &right) || right > 63)
			return false;
		*v <<= right;
	}
	return true;
}

static bool expression(struct cursor *c, uint64_t *v)
{
	uint64_t right;

	if (!shift(c, v))
		return false;
	while (take(c, '|')) {
		if (!shift(c, &right))
			return false;
		*v |= right;
	}
	return true;
}

/* ---- rows ---- */

/* One or more literals, concatenated as C does. */
static bool literals(struct cursor *c, char *name)
{
	size_t n = 0;
	bool any = false;

	while (take(c, '"')) {
		any = true;
		for (; c->p < c->end && *c->p != '"'; c->p++) {
			if (*c->p == '\\' && ++c->p >= c->end)
				return false;
			if (n + 1 >= SYMBOLIC_NAME_MAX || !*c->p)
				return false;
			name[n++] = *c->p;
		}
		if (!take(c, '"'))
			return false;
	}
	name[n] = '\0';
	return any;
}

static int add(struct symbolic *s, uint64_t value, const char *name)
{
	struct symbolic_row *row;
	char *copy;

	if (s->n >= MAX_ROWS)
		return -EINVAL;
	if (!(s->n & (s->n - 1))) { /* grows at each power of two */
		row = realloc(s->row, (s->n ? 2 * s->n : 1) * sizeof(*row));
		if (!row)
			return -ENOMEM;
		s->row = row;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	s->row[s->n++] = (struct symbolic_row){value, copy};
	return 0;
}

int symbolic_parse(const struct symbolic_call *call, uint64_t under, struct symbolic *out)
{
	struct cursor c = {call->rows, call->end, 0};
	char name[SYMBOLIC_NAME_MAX];
	uint64_t value;
	int rc;

	while (!take(&c, ')')) {
		if (!take(&c, ',') || !take(&c, '{') || !expression(&c, &value) || !take(&c, ','))
			return -EINVAL;
		if (!literals(&c, name) || !take(&c, '}'))
			return -EINVAL;
		rc = add(out, (value & UINT32_MAX) | under, name);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- finding the calls ---- */

static const char *argument_end(const char *p, const char *end)
{
	int depth = 0;

	for (; p < end; p++) {
		if (*p == '(')
			depth++;
		else if (*p == ')' && depth-- == 0)
			return NULL;
		else if (*p == ',' && depth == 0)
			return p;
	}
	return NULL;
}

int symbolic_next(struct symbolic_call *c, const char *text, size_t len)
{
	static const char word[] = "__print_symbolic(";
	const char *from = c->rows ? c->rows : text, *end = text + len;
	const char *call = memmem(from, (size_t)(end - from), word, strlen(word));

	if (!call)
		return 0;
	c->before = from;
	c->before_len = (size_t)(call - from);
	c->arg = call + strlen(word);
	c->rows = argument_end(c->arg, end);
	if (!c->rows)
		return -EINVAL;
	c->arg_len = (size_t)(c->rows - c->arg);
	c->end = end;
	return 1;
}

/* ---- looking up ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = ((const struct symbolic_row *)a)->value;
	uint64_t y = ((const struct symbolic_row *)b)->value;

	return x < y ? -1 : x > y;
}

void symbolic_sort(struct symbolic *s)
{
	if (s->n)
		qsort(s->row, s->n, sizeof(*s->row), by_value);
}

const char *symbolic_find(const struct symbolic *s, uint64_t value)
{
	const struct symbolic_row key = {value, NULL}, *row;

	if (!s->n)
		return NULL;
	row = bsearch(&key, s->row, s->n, sizeof(*s->row), by_value);
	return row ? row->name : NULL;
}

void symbolic_free(struct symbolic *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->row[i].name);
	free(s->row);
	*s = (struct symbolic){0};
}
