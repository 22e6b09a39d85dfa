// SPDX-License-Identifier: GPL-2.0-only
/* Slices of the snapshots in memory as columns (exit_fine.h). */
#include "exit_fine.h"

#include <stdio.h>
#include <stdlib.h>

bool exit_fine_asked(const struct pane_ctx *c)
{
	return c->vcpu && c->view->fine == c->vcpu->id;
}

static bool is_row(const struct snap_slice *x, const struct snap_exit *e)
{
	return !e->other && x->kind == e->kind && x->key == e->key && x->isa == e->isa &&
	       x->dir == e->dir;
}

static void add_slice(struct fine *f, size_t at, const struct snap_slice *x)
{
	f->count[at] += x->count;
	if (!x->heat)
		return;
	for (unsigned b = 0; b < HEAT_BUCKETS; b++)
		f->heat[at][b] += x->heat[b];
	f->col[at] = f->heat[at];
}

/* A slice at the end of an interval goes on in the next one: known is what ended by then. */
static void add_snapshot(struct fine *f, const struct snapshot *s, const struct snap_exit *e,
			 int64_t first)
{
	int64_t from = (s->stream.from + f->ns - 1) / f->ns - first, to = s->time / f->ns - first;

	for (size_t i = 0; i < s->nslices; i++) {
		int64_t at = s->slices[i].at / f->ns - first;

		if (at >= 0 && at < (int64_t)f->n && is_row(&s->slices[i], e))
			add_slice(f, (size_t)at, &s->slices[i]);
	}
	/* The first is the end of one that began in the interval before, which was watched too. */
	if (from > 0 && from <= (int64_t)f->n && s->stream.from == s->time - s->dt)
		from--;
	for (int64_t i = from > 0 ? from : 0; i < to && i < (int64_t)f->n; i++)
		f->known[i] = true;
}

static bool of_vcpu(const struct snapshot *s, uint32_t vcpu, int64_t ns)
{
	return s && s->stream.vcpu == vcpu && s->stream.slice_ns == ns;
}

struct fine *exit_fine_new(const struct pane_ctx *c, const struct snap_exit *e, int cols)
{
	const struct snap_stream *now = &c->snap->stream;
	struct fine *f;
	int64_t first;

	if (!exit_fine_asked(c) || !of_vcpu(c->snap, c->vcpu->id, now->slice_ns) ||
	    now->slice_ns <= 0 || cols < 1)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->n = cols < EXIT_COLS ? (size_t)cols : EXIT_COLS;
	f->ns = now->slice_ns;
	f->events = now->events;
	f->lost = now->lost;
	f->heat = calloc(f->n, sizeof(*f->heat));
	if (!f->heat) {
		free(f);
		return NULL;
	}
	/* The last one is whole. */
	first = c->snap->time / f->ns - (int64_t)f->n;
	for (size_t i = c->at + 1; i-- > 0;) {
		const struct snapshot *s = history_at(c->history, i);

		if (!s || s->time <= first * f->ns)
			break;
		if (of_vcpu(s, c->vcpu->id, f->ns))
			add_snapshot(f, s, e, first);
	}
	return f;
}

void exit_fine_free(struct fine *f)
{
	if (!f)
		return;
	free(f->heat);
	free(f);
}

void exit_fine_missing(const struct pane_ctx *c, char *out, size_t size)
{
	if (pane_source_missing(c->snap, "vcpu_events", out, size) ||
	    pane_source_missing(c->snap, "overhead", out, size))
		return;
	snprintf(out, size, "each is taken from now on: figures come with the next interval");
}
