// SPDX-License-Identifier: GPL-2.0-only
/*
 * --when (when.h): a small recursive-descent parser into nodes of an array, and how long each
 * row has fulfilled the condition.
 */
#include "when.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "batch_table.h"
#include "text.h"

#define MAX_NODES 128
#define MAX_DEPTH 32
#define MAX_TEXT 80

enum op { OP_AND, OP_OR, OP_NOT, OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ, OP_NE };

struct node {
	enum op op;
	int left, right; /* of and, or; not has left */
	struct batch_column col;
	double number;
	char text[MAX_TEXT];
};

/* How many intervals on end a row has fulfilled the condition. */
struct run {
	uint64_t key;
	uint64_t n;
	uint64_t seen; /* the interval */
};

struct when {
	struct node node[MAX_NODES];
	int nnodes, root;
	uint64_t want; /* for N */
	const struct batch_table *table;
	struct run *run; /* open addressing, a power of two; n 0: free */
	size_t nruns, cap;
	uint64_t interval;
	bool matched;
};

/* --- parsing --- */

struct parser {
	const char *at;
	struct when *w;
	char *err;
	size_t size;
	int depth;
};

static int fail(struct parser *p, const char *what)
{
	char near[40];

	text_escape(near, sizeof(near), p->at);
	if (!p->err[0])
		snprintf(
			p->err, p->size,
			"--when: %s at %s%s%s: for example 'steal_max_pct>20 and exit_pct>5 for 3'",
			what, *p->at ? "'" : "", *p->at ? near : "the end", *p->at ? "'" : "");
	return -EINVAL;
}

static void skip_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_%@/.-+", c));
}

static size_t word_len(const char *s)
{
	size_t n = 0;

	while (word_char(s[n]))
		n++;
	return n;
}

/* Takes a keyword; a longer word that begins with it is another word. */
static bool take_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(p);
	if (word_len(p->at) != n || strncasecmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	return true;
}

static int new_node(struct parser *p, enum op op)
{
	if (p->w->nnodes == MAX_NODES)
		return fail(p, "too many comparisons");
	p->w->node[p->w->nnodes] = (struct node){.op = op};
	return p->w->nnodes++;
}

static int take_field(struct parser *p, struct node *n)
{
	const struct batch_table *t = p->w->table;
	const struct field *f;
	size_t len = word_len(p->at);
	char name[48], what[160];

	if (!len)
		return fail(p, "a field is wanted");
	snprintf(name, sizeof(name), "%.*s", (int)len, p->at);
	f = len < sizeof(name) ? batch_field_find(t, name) : NULL;
	if (!f) {
		snprintf(what, sizeof(what), "table %s has no such field (kvmtop --fields help)",
			 t->name);
		return fail(p, what);
	}
	n->col.f = f;
	n->col.by[t->first] = field_find(t->first, f->id);
	n->col.by[t->second] = field_find(t->second, f->id);
	for (int i = 0; i < TABLE_NR; i++)
		if (n->col.by[i] && strcmp(n->col.by[i]->id, f->id) != 0)
			n->col.by[i] = NULL;
	p->at += len;
	return 0;
}

static int take_op(struct parser *p, enum op *op)
{
	static const struct {
		const char *text;
		enum op op;
	} ops[] = {{"<=", OP_LE}, {">=", OP_GE}, {"!=", OP_NE}, {"==", OP_EQ},
		   {"<", OP_LT},  {">", OP_GT},	 {"=", OP_EQ}};

	skip_blanks(p);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strncmp(p->at, ops[i].text, strlen(ops[i].text)) == 0) {
			*op = ops[i].op;
			p->at += strlen(ops[i].text);
			return 0;
		}
	}
	return fail(p, "a comparison < <= > >= = != is wanted");
}

/* 20, 1.5k, 3ms, 20%: times in ns. */
static int take_number(struct parser *p, struct node *n)
{
	static const struct {
		const char *text;
		double factor;
	} units[] = {{"", 1},	  {"%", 1},   {"ns", 1},  {"us", 1e3},
		     {"ms", 1e6}, {"s", 1e9}, {"k", 1e3}, {"M", 1e6}};
	size_t len = strspn(p->at, "0123456789."), unit;
	char digits[40];
	char *end;

	if (!len || len >= sizeof(digits))
		return fail(p, "a number is wanted");
	snprintf(digits, sizeof(digits), "%.*s", (int)len, p->at);
	n->number = strtod(digits, &end);
	if (*end)
		return fail(p, "a number is wanted");
	unit = word_len(p->at + len);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].text) == unit &&
		    strncmp(p->at + len, units[i].text, unit) == 0) {
			n->number *= units[i].factor;
			p->at += len + unit;
			return 0;
		}
	}
	return fail(p, "a number is wanted");
}

/* "in quotes", 'in quotes' or one word. */
static int take_text(struct parser *p, struct node *n)
{
	bool quoted = *p->at == '"' || *p->at == '\'';
	const char quote[] = {*p->at, '\0'};
	size_t len = quoted ? strcspn(p->at + 1, quote) : word_len(p->at);

	if (quoted && !p->at[len + 1])
		return fail(p, "a closing quote is wanted");
	if ((!quoted && !len) || len >= sizeof(n->text))
		return fail(p, "a word or \"text\" of less than 80 bytes is wanted");
	memcpy(n->text, p->at + quoted, len);
	p->at += len + (quoted ? 2 : 0);
	return 0;
}

static int parse_comparison(struct parser *p)
{
	struct node *n;
	int i = new_node(p, OP_EQ), rc;

	if (i < 0)
		return i;
	n = &p->w->node[i];
	rc = take_field(p, n);
	if (!rc)
		rc = take_op(p, &n->op);
	if (rc)
		return rc;
	skip_blanks(p);
	if (n->col.f->unit != UNIT_TEXT)
		rc = take_number(p, n);
	else if (n->op == OP_EQ || n->op == OP_NE)
		rc = take_text(p, n);
	else
		rc = fail(p, "text can be compared with = and != only");
	return rc ? rc : i;
}

static int parse_or(struct parser *p);

static int parse_factor(struct parser *p)
{
	int i, left;

	if (++p->depth > MAX_DEPTH)
		return fail(p, "too deeply nested");
	if (take_word(p, "not")) {
		left = parse_factor(p);
		i = left < 0 ? left : new_node(p, OP_NOT);
		if (i >= 0)
			p->w->node[i].left = left;
	} else if (*p->at == '(') {
		p->at++;
		i = parse_or(p);
		skip_blanks(p);
		if (i >= 0 && *p->at++ != ')') {
			p->at--;
			i = fail(p, "a closing bracket is wanted");
		}
	} else {
		i = parse_comparison(p);
	}
	p->depth--;
	return i;
}

static int parse_chain(struct parser *p, const char *word, enum op op,
		       int (*operand)(struct parser *))
{
	int left = operand(p), right, i;

	while (left >= 0 && take_word(p, word)) {
		right = operand(p);
		i = right < 0 ? right : new_node(p, op);
		if (i >= 0) {
			p->w->node[i].left = left;
			p->w->node[i].right = right;
		}
		left = i;
	}
	return left;
}

static int parse_and(struct parser *p)
{
	return parse_chain(p, "and", OP_AND, parse_factor);
}

static int parse_or(struct parser *p)
{
	return parse_chain(p, "or", OP_OR, parse_and);
}

static int parse_for(struct parser *p)
{
	size_t len;

	p->w->want = 1;
	if (!take_word(p, "for"))
		return 0;
	skip_blanks(p);
	len = strspn(p->at, "0123456789");
	if (!len || len > 9 || strtoull(p->at, NULL, 10) == 0)
		return fail(p, "a number of intervals is wanted");
	p->w->want = strtoull(p->at, NULL, 10);
	p->at += len;
	return 0;
}

int when_parse(const char *text, const struct batch_table *table, struct when **out, char *err,
	       size_t size)
{
	struct when *w = calloc(1, sizeof(*w));
	struct parser p = {.at = text, .w = w, .err = err, .size = size};
	int rc = 0;

	if (!w)
		return -ENOMEM;
	err[0] = '\0';
	w->table = table;
	w->root = parse_or(&p);
	if (w->root < 0)
		rc = w->root;
	if (!rc)
		rc = parse_for(&p);
	skip_blanks(&p);
	if (!rc && *p.at)
		rc = fail(&p, "and, or, for or the end is wanted");
	if (rc) {
		when_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void when_free(struct when *w)
{
	if (!w)
		return;
	free(w->run);
	free(w);
}

/* --- judging --- */

static bool compare_number(enum op op, double a, double b)
{
	switch (op) {
	case OP_LT:
		return a < b;
	case OP_LE:
		return a <= b;
	case OP_GT:
		return a > b;
	case OP_GE:
		return a >= b;
	case OP_EQ:
		return !(a < b) && !(a > b);
	case OP_NE:
		return a < b || a > b;
	default:
		return false;
	}
}

/* Three values: what is not known fulfils neither a comparison nor its `not`. */
static int judge(const struct when *w, int i, const struct snapshot *s, const struct batch_row *r,
		 bool total)
{
	const struct node *n = &w->node[i];
	struct cell c;
	int a, b;

	if (n->op == OP_NOT) {
		a = judge(w, n->left, s, r, total);
		return a < 0 ? a : !a;
	}
	if (n->op == OP_AND || n->op == OP_OR) {
		a = judge(w, n->left, s, r, total);
		b = judge(w, n->right, s, r, total);
		if (n->op == OP_AND)
			return a == 0 || b == 0 ? 0 : (a < 0 || b < 0 ? -1 : 1);
		return a == 1 || b == 1 ? 1 : (a < 0 || b < 0 ? -1 : 0);
	}
	c = batch_cell(s, r, &n->col, total);
	if (n->col.f->unit == UNIT_TEXT)
		return (strcmp(c.text ? c.text : "", n->text) == 0) == (n->op == OP_EQ);
	if (!value_has(c.v) || isnan(c.v.v))
		return -1;
	return compare_number(n->op, c.v.v, n->number);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = mix(h, (unsigned char)*text);
	return h;
}

/* What a row is the same by from interval to interval; never 0. */
static uint64_t row_key(const struct batch_row *r)
{
	uint64_t h = mix(1, r->table);

	h = mix(h, r->vm ? r->vm->id + 1ull : 0);
	h = mix(h, r->vcpu ? r->vcpu->id + 1ull : 0);
	if (r->table == TABLE_EXIT) {
		const struct snap_exit *x = r->row;

		h = mix(mix(mix(mix(h, x->kind), x->key), x->dir),
			x->isa + (x->other ? 1ull << 40 : 0));
	} else if (r->table == TABLE_CPU) {
		h = mix(h, (uint64_t)((const struct snap_cpu *)r->row)->cpu);
	} else if (r->table == TABLE_THREAD) {
		h = mix(h, (uint64_t)((const struct snap_thread *)r->row)->tid);
	} else if (r->table == TABLE_TASK) {
		h = mix(h, (uint64_t)((const struct snap_task *)r->row)->pid);
	} else if (r->table == TABLE_FINDING) {
		h = mix_text(h, ((const struct snap_finding *)r->row)->rule);
	}
	return h ? h : 1;
}

static struct run *find_run(struct when *w, uint64_t key)
{
	size_t i = key & (w->cap - 1);

	while (w->run[i].key && w->run[i].key != key)
		i = (i + 1) & (w->cap - 1);
	return &w->run[i];
}

/* Puts those of the last two intervals into a table of another size. */
static bool rehash(struct when *w, size_t cap)
{
	struct run *old = w->run;
	size_t n = w->cap;

	w->run = calloc(cap, sizeof(*w->run));
	if (!w->run) {
		w->run = old;
		return false;
	}
	w->cap = cap;
	w->nruns = 0;
	for (size_t i = 0; i < n; i++) {
		if (!old[i].key || old[i].seen + 1 < w->interval)
			continue;
		*find_run(w, old[i].key) = old[i];
		w->nruns++;
	}
	free(old);
	return true;
}

void when_begin(struct when *w)
{
	w->interval++;
}

/* The number of intervals on end, this one included; without memory the shortest. */
static uint64_t lengthen(struct when *w, uint64_t key)
{
	struct run *run;

	if (w->nruns * 2 >= w->cap && !rehash(w, w->cap ? w->cap * 2 : 256))
		return 1;
	run = find_run(w, key);
	if (!run->key) {
		run->key = key;
		w->nruns++;
	}
	run->n = run->seen + 1 == w->interval ? run->n + 1 : 1;
	run->seen = w->interval;
	return run->n;
}

bool when_row(struct when *w, const struct snapshot *s, const struct batch_row *r, bool total)
{
	bool now = judge(w, w->root, s, r, total) == 1;

	if (now && w->want > 1)
		now = lengthen(w, row_key(r)) >= w->want;
	w->matched |= now;
	return now;
}

void when_end(struct when *w)
{
	size_t cap = w->cap;

	/* Rows that came and went must not fill the table for ever. */
	if (cap > 256 && w->interval % 64 == 0)
		rehash(w, cap);
}

bool when_matched(const struct when *w)
{
	return w->matched;
}
