// SPDX-License-Identifier: GPL-2.0-only
/*
 * ftrace's text (tracetext.h). A line is, in all forms that kernels have printed,
 *   COMM-PID [(TGID)] [CPU] [FLAGS] STAMP: EVENT: text
 * with COMM right-aligned in 16 columns and free to hold blanks, dashes and brackets.
 */
#include "tracetext.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER ((size_t)256 << 10)
#define BUFFER_LEAST ((size_t)16 << 10)
#define BUFFER_MAX ((size_t)4 << 20) /* one event with its stack; more is cut */
#define LINE_MAX_LEN ((size_t)1 << 20)
#define COMM_COLUMNS 16
#define FLAGS_MAX 8
#define DIGITS_SURE 19 /* that have room in 64 bits, whatever they are */
#define CLOCK_EVENTS 512
#define CLOCK_LEAST 8 /* events to judge a clock by */
#define CYCLES_APART 64 /* no CPU records its events closer than this */

enum kind { LINE_END, LINE_EVENT, LINE_LOST, LINE_MARK, LINE_COMMENT, LINE_BLANK, LINE_OTHER };

/* A line in the buffer; offsets in e are from the line's beginning. */
struct line {
	enum kind kind;
	size_t at, len, size; /* size: with its end */
	struct tracetext_event e;
};

struct tracetext {
	int fd;
	bool seekable, eof, skipping;
	uint64_t at; /* in the file, where the buffer ends */
	char *buf;
	size_t cap, end, pos; /* pos: the first byte that no event has taken */
	bool ahead_set;
	struct line ahead; /* read already, belongs to what comes next */
	const struct tracetext_cpus *only; /* NULL: all */
	struct tracetext_facts facts;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t skip_blanks(const char *s, size_t p, size_t n)
{
	while (p < n && s[p] == ' ')
		p++;
	return p;
}

/* Digits at p; the end, or p where there are none or too many for 64 bits. */
static size_t number(const char *s, size_t p, size_t n, uint64_t *out)
{
	size_t q = p;
	uint64_t v = 0;

	for (; q < n && q - p < DIGITS_SURE && is_digit(s[q]); q++)
		v = v * 10 + (uint64_t)(s[q] - '0');
	for (; q < n && is_digit(s[q]); q++) {
		uint64_t d = (uint64_t)(s[q] - '0');

		if (v > (UINT64_MAX - d) / 10)
			return p;
		v = v * 10 + d;
	}
	*out = v;
	return q;
}

/* "(  563)", "(-------)"; p stays where there is none. */
static size_t tgid_at(const char *s, size_t p, size_t n, int *tgid)
{
	size_t q = p + 1;
	uint64_t v = 0;

	*tgid = 0;
	if (p >= n || s[p] != '(')
		return p;
	q = skip_blanks(s, q, n);
	if (q < n && s[q] == '-')
		while (q < n && s[q] == '-')
			q++;
	else
		q = number(s, q, n, &v);
	if (q >= n || s[q] != ')' || v > INT32_MAX)
		return p;
	*tgid = (int)v;
	return skip_blanks(s, q + 1, n);
}

/* "[003]", or as latency formats have it, "3" with the flags at once behind it. 0: none. */
static size_t cpu_at(const char *s, size_t p, size_t n, unsigned *cpu)
{
	bool bracket = p < n && s[p] == '[';
	uint64_t v;
	size_t from = p + bracket, q = number(s, from, n, &v);

	if (q == from || v >= TRACETEXT_CPUS || q >= n)
		return 0;
	*cpu = (unsigned)v;
	if (bracket)
		return s[q] == ']' ? q + 1 : 0;
	return s[q] == ' ' || s[q] == ':' ? 0 : q;
}

static bool is_flag(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
	       c == '#' || c == '?';
}

/* "12345:" or "12.345678:" at p. The end behind the colon, 0: none. */
static size_t stamp_at(const char *s, size_t p, size_t n, struct tracetext_event *e)
{
	size_t q = number(s, p, n, &e->ts);
	uint64_t fraction;

	if (q == p || q >= n)
		return 0;
	e->stamp = p;
	e->seconds = s[q] == '.';
	if (e->seconds) {
		size_t r = number(s, q + 1, n, &fraction);

		if (r == q + 1)
			return 0;
		q = r;
	}
	e->stamp_len = q - p;
	return q < n && s[q] == ':' ? q + 1 : 0;
}

/* Flags, if there are any, and the time stamp. Old texts have nothing between the two. */
static size_t flags_and_stamp(const char *s, size_t p, size_t n, unsigned columns,
			      struct tracetext_event *e)
{
	unsigned more = 4;
	size_t q, end;

	p = skip_blanks(s, p, n);
	end = stamp_at(s, p, n, e);
	if (end)
		return end;
	for (q = p; q < n && q - p < FLAGS_MAX && is_flag(s[q]);)
		q++;
	if (q > p && q < n && s[q] == ' ')
		return stamp_at(s, skip_blanks(s, q, n), n, e);
	/* There are four, or as many as are surely no digits of the stamp. */
	for (size_t k = 4; !columns && k < q - p; k++)
		more = is_digit(s[p + k]) ? more : (unsigned)k + 1;
	columns = columns ? columns : more;
	return p + columns < n ? stamp_at(s, p + columns, n, e) : 0;
}

/* All behind COMM, with the dash at `dash`. */
static bool behind_comm(const char *s, size_t dash, size_t n, unsigned columns,
			struct tracetext_event *e)
{
	uint64_t pid;
	size_t p = number(s, dash + 1, n, &pid), q;

	if (p == dash + 1 || pid > INT32_MAX)
		return false;
	e->pid = (int)pid;
	p = tgid_at(s, skip_blanks(s, p, n), n, &e->tgid);
	p = cpu_at(s, p, n, &e->cpu);
	if (!p)
		return false;
	p = flags_and_stamp(s, p, n, columns, e);
	if (!p)
		return false;
	p = skip_blanks(s, p, n);
	for (q = p; q < n && s[q] != ':' && s[q] != ' ';)
		q++;
	e->name = p;
	e->name_len = q < n && s[q] == ':' ? q - p : 0;
	return true;
}

bool tracetext_line(const char *line, size_t len, unsigned columns, struct tracetext_event *e)
{
	/* Where the kernel puts it: a thread's name cannot pose as the rest of the line then. */
	if (len > COMM_COLUMNS && line[COMM_COLUMNS] == '-' &&
	    behind_comm(line, COMM_COLUMNS, len, columns, e))
		return true;
	for (size_t p = 0; p + 1 < len; p++) {
		const char *dash = memchr(line + p, '-', len - p);

		if (!dash)
			return false;
		p = (size_t)(dash - line);
		if (behind_comm(line, p, len, columns, e))
			return true;
	}
	return false;
}

/* "CPU:1 [LOST 1234 EVENTS]", trace-cmd's "CPU:1 [1234 EVENTS DROPPED]". */
static bool is_lost(const char *s, size_t n, unsigned *cpu)
{
	uint64_t v;
	size_t q;

	if (n < 5 || memcmp(s, "CPU:", 4) != 0)
		return false;
	q = number(s, 4, n, &v);
	if (q == 4 || v >= TRACETEXT_CPUS)
		return false;
	*cpu = (unsigned)v;
	return memmem(s + q, n - q, "EVENTS", 6) != NULL;
}

static bool has(const char *s, size_t n, const char *word)
{
	return memmem(s, n, word, strlen(word)) != NULL;
}

static void learn(struct tracetext_facts *f, const char *s, size_t n)
{
	static const char tracer[] = "# tracer: ";
	size_t bars = 0;

	if (n >= sizeof(tracer) && memcmp(s, tracer, sizeof(tracer) - 1) == 0)
		snprintf(f->tracer, sizeof(f->tracer), "%.*s", (int)(n - sizeof(tracer) + 1),
			 s + sizeof(tracer) - 1);
	if (has(s, n, "latency trace v"))
		f->latency = true;
	if (has(s, n, "TASK-PID"))
		for (const char *p = memchr(s, '|', n); p && p < s + n && *p == '|'; p++)
			bars++;
	if (bars && bars <= FLAGS_MAX)
		f->columns = (unsigned)bars;
}

static enum kind kind_of(struct tracetext *t, struct line *l)
{
	const char *s = t->buf + l->at;

	if (!l->len)
		return LINE_BLANK;
	if (*s == '#')
		return l->len > 5 && memcmp(s, "#####", 5) == 0 ? LINE_MARK : LINE_COMMENT;
	if (*s == 'C' && is_lost(s, l->len, &l->e.cpu))
		return LINE_LOST;
	return tracetext_line(s, l->len, t->facts.columns, &l->e) ? LINE_EVENT : LINE_OTHER;
}

/* --- the buffer --- */

static ssize_t read_some(struct tracetext *t)
{
	ssize_t n;

	do {
		n = t->seekable ? pread(t->fd, t->buf + t->end, t->cap - t->end, (off_t)t->at)
				: read(t->fd, t->buf + t->end, t->cap - t->end);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	t->eof = n == 0;
	t->end += (size_t)n;
	t->at += (uint64_t)n;
	return n;
}

/* More bytes behind those there are; what lies before t->pos goes. *at moves with them. */
static int fill(struct tracetext *t, size_t *at)
{
	ssize_t n;

	if (t->pos) {
		memmove(t->buf, t->buf + t->pos, t->end - t->pos);
		t->end -= t->pos;
		*at -= t->pos;
		t->pos = 0;
	}
	if (t->end == t->cap) {
		size_t cap = 2 * t->cap;
		char *more = realloc(t->buf, cap);

		if (!more)
			return -ENOMEM;
		t->buf = more;
		t->cap = cap;
	}
	n = read_some(t);
	return n < 0 ? (int)n : 0;
}

/* The end of the line at `at`, from `from` on looked for; the length, -errno. */
static int64_t line_length(struct tracetext *t, size_t *at)
{
	size_t seen = 0;

	for (;;) {
		const char *nl = memchr(t->buf + *at + seen, '\n', t->end - *at - seen);
		int rc;

		if (nl)
			return nl - (t->buf + *at) + 1;
		seen = t->end - *at;
		if (t->eof || seen >= LINE_MAX_LEN)
			return (int64_t)seen;
		rc = fill(t, at);
		if (rc < 0)
			return rc;
	}
}

/* The line at `at`; LINE_END where there is none. 0 or -errno. */
static int read_line(struct tracetext *t, size_t at, struct line *l)
{
	for (;;) {
		int64_t n = line_length(t, &at);
		bool whole, rest = t->skipping;

		if (n < 0)
			return (int)n;
		*l = (struct line){.kind = LINE_END, .at = at, .size = (size_t)n};
		if (!n)
			return 0;
		whole = t->buf[at + (size_t)n - 1] == '\n';
		t->skipping = !whole && !t->eof;
		l->len = (size_t)n - whole;
		if (l->len && t->buf[at + l->len - 1] == '\r')
			l->len--;
		if (!rest)
			break;
		/* What follows of a line that was too long. */
		memmove(t->buf + at, t->buf + at + n, t->end - at - (size_t)n);
		t->end -= (size_t)n;
	}
	t->facts.cut += t->skipping;
	l->kind = kind_of(t, l);
	return 0;
}

int tracetext_open(int fd, uint64_t from, struct tracetext **out)
{
	struct tracetext *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->seekable = lseek(fd, 0, SEEK_CUR) >= 0;
	t->at = from;
	t->cap = BUFFER;
	t->buf = malloc(t->cap);
	if (!t->buf) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void tracetext_close(struct tracetext *t)
{
	if (!t)
		return;
	free(t->buf);
	free(t);
}

int tracetext_only(struct tracetext *t, const struct tracetext_cpus *cpus, size_t bytes)
{
	size_t cap = bytes < BUFFER_LEAST ? BUFFER_LEAST : bytes;
	char *buf = cap < t->cap ? realloc(t->buf, cap) : t->buf;

	t->only = cpus;
	if (!buf)
		return -ENOMEM;
	t->buf = buf;
	t->cap = cap < t->cap ? cap : t->cap;
	return 0;
}

const struct tracetext_facts *tracetext_facts(const struct tracetext *t)
{
	return &t->facts;
}

static bool is_wanted(const struct tracetext *t, unsigned cpu)
{
	return !t->only || tracetext_has_cpu(t->only, cpu);
}

/* A line that is no event and stands before one: is it kept with it? */
static bool kept_before(struct tracetext *t, const struct line *l)
{
	const char *s = t->buf + l->at;

	if (l->kind == LINE_LOST)
		return is_wanted(t, l->e.cpu);
	if (l->kind == LINE_MARK)
		return !t->only;
	if (l->kind == LINE_COMMENT)
		learn(&t->facts, s, l->len);
	if (l->kind == LINE_OTHER && !t->facts.events && !t->facts.orphans++)
		snprintf(t->facts.first, sizeof(t->facts.first), "%.*s",
			 l->len < sizeof(t->facts.first) ? (int)l->len : 79, s);
	return false;
}

/* Up to the next event that is wanted; the block begins at t->pos. 1, 0 at the end, -errno. */
static int find_event(struct tracetext *t, struct line *l, bool *lost)
{
	size_t next = t->pos;
	bool kept = false;

	*lost = false;
	for (;;) {
		int rc = 0;

		if (t->ahead_set)
			*l = t->ahead;
		else
			rc = read_line(t, next, l);
		t->ahead_set = false;
		if (rc < 0 || l->kind == LINE_END)
			return rc;
		if (l->kind == LINE_EVENT && is_wanted(t, l->e.cpu))
			return 1;
		t->facts.events += l->kind == LINE_EVENT;
		next = l->at + l->size;
		if (kept_before(t, l)) {
			kept = true;
			*lost |= l->kind == LINE_LOST;
		} else if (!kept || l->kind == LINE_EVENT) {
			t->pos = next;
			kept = *lost = false;
		}
	}
}

int tracetext_next(struct tracetext *t, struct tracetext_event *e)
{
	struct line l, more;
	size_t len, start;
	bool lost;
	int rc = find_event(t, &l, &lost);

	if (rc <= 0)
		return rc;
	t->facts.events++;
	/* Offsets from the block's beginning, which moves in the buffer as more is read. */
	start = l.at - t->pos;
	len = start + l.len;
	for (size_t size = start + l.size;;) {
		rc = read_line(t, t->pos + size, &more);
		if (rc < 0)
			return rc;
		if (more.kind != LINE_OTHER)
			break;
		if (size + more.size > BUFFER_MAX) {
			t->facts.cut++;
			break;
		}
		size += more.size;
		len = size - more.size + more.len;
	}
	*e = l.e;
	e->text = t->buf + t->pos;
	e->len = len;
	e->line = start;
	e->line_len = l.len;
	e->stamp += start;
	e->name += start;
	e->lost = lost;
	t->ahead = more;
	t->ahead_set = true;
	t->pos = more.at;
	return 1;
}

int tracetext_peek(struct tracetext *t, size_t max,
		   void (*fn)(const struct tracetext_event *e, void *ctx), void *ctx)
{
	size_t at = 0;
	struct line l;

	while (t->end < t->cap && !t->eof) {
		ssize_t n = read_some(t);

		if (n < 0)
			return (int)n;
	}
	for (size_t events = 0; events < max && at < t->end; at += l.size) {
		const char *nl = memchr(t->buf + at, '\n', t->end - at);

		/* A line that goes on behind the buffer is not looked at. */
		l.size = nl ? (size_t)(nl - t->buf) - at + 1 : t->end - at;
		if (!nl && !t->eof)
			break;
		l = (struct line){.at = at, .len = l.size - (nl ? 1 : 0), .size = l.size};
		l.kind = kind_of(t, &l);
		kept_before(t, &l);
		if (l.kind != LINE_EVENT)
			continue;
		l.e.text = t->buf + at;
		l.e.len = l.e.line_len = l.len;
		fn(&l.e, ctx);
		events++;
	}
	t->facts.orphans = 0;
	return 0;
}

struct clock_look {
	size_t n, seconds, cpus;
	uint64_t first, last;
	struct tracetext_cpus seen;
};

static void look(const struct tracetext_event *e, void *ctx)
{
	struct clock_look *c = ctx;

	if (!c->n++)
		c->first = e->ts;
	c->last = e->ts;
	c->seconds += e->seconds;
	c->cpus += !tracetext_has_cpu(&c->seen, e->cpu);
	tracetext_add_cpu(&c->seen, e->cpu);
}

int tracetext_clock(struct tracetext *t, enum tracetext_clock *out)
{
	struct clock_look c = {0};
	int rc = tracetext_peek(t, CLOCK_EVENTS, look, &c);

	*out = TRACETEXT_CYCLES;
	if (c.seconds)
		*out = TRACETEXT_SECONDS;
	else if (c.n >= CLOCK_LEAST && (c.last - c.first) / CYCLES_APART * c.cpus < c.n - 1)
		*out = TRACETEXT_COUNTER;
	return rc;
}
