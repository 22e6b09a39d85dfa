// SPDX-License-Identifier: GPL-2.0-only
/*
 * One chronological text of many (merge.h): a stream an input, or a stream a CPU of a guest whose
 * CPUs have different offsets, each in its own order; the stream with the earliest line is next.
 */
#include "merge_place.h"
#include "merge_sync.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "text.h"

#define ESCAPED_MAX 10 /* bytes that one byte becomes at most */
#define STREAMS_BYTES ((size_t)64 << 20) /* of all buffers of a guest that has a stream a CPU */

struct run {
	struct merge *m;
	struct out *out;
	struct merge_stream *stream, **heap;
	struct merge_place *place; /* the host's, then one a CPU of each guest */
	size_t nstreams, nheap;
	char *plain, *shown; /* a line before and after it is escaped */
	size_t plain_size, shown_size;
};

/* Reads the stream's next event and places it. 1, 0 at its end, -errno. */
static int load(struct run *r, struct merge_stream *s)
{
	int rc = tracetext_next(s->t, &s->e);

	if (rc <= 0)
		return rc;
	s->note[0] = '\0';
	if (s->host) {
		merge_place_host(s);
	} else {
		/* The file grew since it was first read. */
		if (s->e.cpu >= s->in->ncpus || !s->in->cpu[s->e.cpu].nspans)
			return 0;
		merge_place_guest(s);
		s->outside += s->tsc < r->m->host.first || s->tsc > r->m->host.last;
	}
	if (s->tsc > s->key)
		s->key = s->tsc;
	return 1;
}

/* --- output --- */

static int grow(char **buf, size_t *size, size_t need)
{
	char *more;

	if (*size >= need)
		return 0;
	more = realloc(*buf, 2 * need);
	if (!more)
		return -ENOMEM;
	*buf = more;
	*size = 2 * need;
	return 0;
}

/* A line in pieces: what stands before the digits (if there are any), they, and the rest. */
struct pieces {
	const char *before, *digits, *behind;
	size_t nbefore, ndigits, nbehind;
};

static int put_escaped(struct run *r, const struct pieces *p)
{
	size_t n = p->nbefore + p->ndigits + p->nbehind;
	char *end;

	if (grow(&r->plain, &r->plain_size, n + 1) < 0 ||
	    grow(&r->shown, &r->shown_size, ESCAPED_MAX * n + 1) < 0)
		return -ENOMEM;
	end = mempcpy(r->plain, p->before, p->nbefore);
	end = mempcpy(end, p->digits, p->ndigits);
	end = mempcpy(end, p->behind, p->nbehind);
	*end = '\0';
	for (char *z = r->plain; (z = memchr(z, '\0', (size_t)(end - z)));)
		*z = '?';
	text_escape(r->shown, r->shown_size, r->plain);
	out_text(r->out, r->shown);
	return 0;
}

static int put_pieces(struct run *r, const struct merge_stream *s, const struct pieces *p)
{
	int rc = 0;

	out_bytes(r->out, s->prefix, s->prefix_len);
	if (r->m->escape) {
		rc = put_escaped(r, p);
	} else {
		out_bytes(r->out, p->before, p->nbefore);
		out_bytes(r->out, p->digits, p->ndigits);
		out_bytes(r->out, p->behind, p->nbehind);
	}
	out_bytes(r->out, "\n", 1);
	return rc;
}

/* The event's line, with the host's TSC in place of its stamp and no narrower than that. */
static int put_event(struct run *r, const struct merge_stream *s)
{
	const struct tracetext_event *e = &s->e;
	size_t behind = e->stamp + e->stamp_len;
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%*" PRIu64, (int)e->stamp_len, s->tsc);

	return put_pieces(r, s,
			  &(struct pieces){e->text + e->line, digits, e->text + behind,
					   e->stamp - e->line, (size_t)n,
					   e->line + e->line_len - behind});
}

/* Lines that stand before or behind the event's, as they are. */
static int put_lines(struct run *r, const struct merge_stream *s, const char *text, size_t len)
{
	int rc = 0;

	while (len && !rc) {
		const char *nl = memchr(text, '\n', len);
		size_t n = nl ? (size_t)(nl - text) : len, step = n + (nl ? 1 : 0);

		if (n && text[n - 1] == '\r')
			n--;
		if (n)
			rc = put_pieces(r, s, &(struct pieces){text, "", "", n, 0, 0});
		text += step;
		len -= step;
	}
	return rc;
}

static int emit(struct run *r, const struct merge_stream *s)
{
	const struct tracetext_event *e = &s->e;
	size_t end = e->line + e->line_len;
	int rc;

	out_text(r->out, s->note);
	rc = put_lines(r, s, e->text, e->line);
	if (!rc)
		rc = put_event(r, s);
	if (!rc)
		rc = put_lines(r, s, e->text + end, e->len - end);
	return rc;
}

/* --- streams --- */

static bool before(const struct merge_stream *a, const struct merge_stream *b)
{
	return a->key != b->key ? a->key < b->key : a < b;
}

static void sift(struct run *r)
{
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;
		struct merge_stream *s = r->heap[i];

		if (child >= r->nheap)
			return;
		if (child + 1 < r->nheap && before(r->heap[child + 1], r->heap[child]))
			child++;
		if (!before(r->heap[child], s))
			return;
		r->heap[i] = r->heap[child];
		r->heap[child] = s;
		i = child;
	}
}

static void rise(struct run *r)
{
	for (size_t i = r->nheap - 1; i && before(r->heap[i], r->heap[(i - 1) / 2]);) {
		struct merge_stream *s = r->heap[i];

		r->heap[i] = r->heap[(i - 1) / 2];
		i = (i - 1) / 2;
		r->heap[i] = s;
	}
}

/* From its first line on it has one offset. */
static bool is_settled(const struct merge_cpu *c)
{
	return c->start + 1 == c->nspans;
}

/* CPUs of one offset: the order of their lines in the guest's text is that of the host's time. */
static bool is_alike(const struct merge_cpu *a, const struct merge_cpu *b)
{
	return is_settled(a) && is_settled(b) &&
	       a->span[a->start].offset == b->span[b->start].offset &&
	       a->scale.ratio == b->scale.ratio && a->scale.frac_bits == b->scale.frac_bits;
}

/* `place` is of all CPUs of the input; cpus NULL: all of them. */
static int stream_open(struct run *r, const struct merge_input *in, struct merge_place *place,
		       const struct tracetext_cpus *cpus, int width)
{
	struct merge_stream *s = &r->stream[r->nstreams];
	char name[MERGE_NAME_SHOWN];
	int rc = tracetext_open(in->fd, 0, &s->t);

	if (rc < 0)
		return rc;
	r->nstreams++;
	s->in = in;
	s->host = in == &r->m->host;
	s->place = place;
	if (cpus) {
		s->cpus = *cpus;
		rc = tracetext_only(s->t, &s->cpus, STREAMS_BYTES / in->ncpus);
	}
	s->sync = s->host ? merge_sync_new() : NULL;
	if (rc < 0 || (s->host && !s->sync))
		return -ENOMEM;
	text_escape(name, sizeof(name), in->name);
	s->prefix_len = (size_t)snprintf(s->prefix, sizeof(s->prefix), "%-*s ", width, name);
	rc = load(r, s);
	if (rc > 0) {
		r->heap[r->nheap++] = s;
		rise(r);
	}
	return rc < 0 ? rc : 0;
}

/* The CPU and those behind it that are in one stream with it. True: there are others with lines. */
static bool take_alike(const struct merge_input *g, size_t first, struct tracetext_cpus *taken,
		       struct tracetext_cpus *out)
{
	bool others = false;

	*out = (struct tracetext_cpus){0};
	for (size_t cpu = 0; cpu < g->ncpus; cpu++) {
		const struct merge_cpu *c = &g->cpu[cpu];

		if (!c->nspans)
			continue;
		if (cpu == first || (cpu > first && is_alike(c, &g->cpu[first]))) {
			tracetext_add_cpu(out, (unsigned)cpu);
			tracetext_add_cpu(taken, (unsigned)cpu);
		} else {
			others = true;
		}
	}
	return others;
}

static int guest_open(struct run *r, const struct merge_input *g, struct merge_place *place,
		      int width)
{
	struct tracetext_cpus taken = {0}, cpus;
	int rc = 0;

	for (size_t cpu = 0; cpu < g->ncpus && !rc; cpu++) {
		bool others;

		if (!g->cpu[cpu].nspans || tracetext_has_cpu(&taken, (unsigned)cpu))
			continue;
		others = take_alike(g, cpu, &taken, &cpus);
		rc = stream_open(r, g, place, others ? &cpus : NULL, width);
	}
	return rc;
}

static int prefix_width(const struct merge *m)
{
	char name[MERGE_NAME_SHOWN];
	size_t width = utf8_width(m->host.name);

	for (size_t i = 0; i < m->nguests; i++) {
		text_escape(name, sizeof(name), m->guest[i].name);
		if (utf8_width(name) > width)
			width = utf8_width(name);
	}
	return width < MERGE_NAME_SHOWN ? (int)width : MERGE_NAME_SHOWN;
}

static int open_all(struct run *r)
{
	const struct merge *m = r->m;
	int width = prefix_width(m), rc;
	size_t n = 1;

	for (size_t i = 0; i < m->nguests; i++)
		n += m->guest[i].ncpus;
	r->stream = calloc(n, sizeof(*r->stream));
	r->heap = calloc(n, sizeof(*r->heap));
	r->place = calloc(n, sizeof(*r->place));
	if (!r->stream || !r->heap || !r->place)
		return -ENOMEM;
	rc = stream_open(r, &m->host, r->place, NULL, width);
	n = 1;
	for (size_t i = 0; i < m->nguests && !rc; i++) {
		rc = guest_open(r, &m->guest[i], r->place + n, width);
		n += m->guest[i].ncpus;
	}
	return rc;
}

static int merge_streams(struct run *r)
{
	int rc;

	while (r->nheap) {
		struct merge_stream *s = r->heap[0];

		rc = emit(r, s);
		if (!rc)
			rc = load(r, s);
		if (rc < 0)
			return rc;
		if (!rc)
			r->heap[0] = r->heap[--r->nheap];
		sift(r);
	}
	return out_flush(r->out);
}

/* What the streams of one input counted. */
static void sum_up(struct run *r)
{
	for (size_t i = 0; i < r->nstreams; i++) {
		struct merge_stream *s = &r->stream[i];
		struct merge_input *in = s->host ? &r->m->host : &r->m->guest[s->in - r->m->guest];

		in->outside += s->outside;
		for (int k = 0; k < MERGE_NOTES; k++)
			if (s->said[k] > MERGE_NOTES_MAX)
				in->unsaid += s->said[k] - MERGE_NOTES_MAX;
		tracetext_close(s->t);
		merge_sync_free(s->sync);
	}
}

int merge_run(struct merge *m, struct out *out)
{
	struct run r = {.m = m, .out = out};
	int rc = open_all(&r);

	if (!rc)
		rc = merge_streams(&r);
	sum_up(&r);
	free(r.stream);
	free(r.place);
	free(r.heap);
	free(r.plain);
	free(r.shown);
	return rc;
}
