// SPDX-License-Identifier: GPL-2.0-only
/*
 * The histogram over time of the selected vCPU, finer than the interval (slices.h), as rows of a
 * snapshot. Only while somebody asks and its events come one by one.
 */
#include "slices.h"

#include <string.h>

#include "model_rows.h"

void model_on_vcpu_events(void *ctx, const struct sample *s, size_t n)
{
	struct model *m = ctx;

	if (m->slices)
		slices_add(m->slices, s, n);
}

/* Another vCPU or other kinds: what was before says nothing of it. */
void model_on_vcpu_stream(void *ctx, const struct vcpu_stream *s)
{
	struct model *m = ctx;
	bool anew = s->vcpu != m->stream.vcpu || s->since != m->stream.since ||
		    (m->slices && m->slices->ns != m->demand.slice_ns);

	m->stream = *s;
	m->stream_lost += s->lost;
	if (anew || !s->vcpu) {
		slices_free(m->slices);
		m->slices = s->vcpu ? slices_new(m->demand.slice_ns) : NULL;
		m->stream_lost = 0;
	} else if (s->lost && m->slices) {
		slices_torn(m->slices);
	}
}

static void put_row(struct commit *c, struct snap_slice *row, const struct slice_cell *x)
{
	uint32_t *heat = x->timed ? snapshot_alloc(c->s, HEAT_BUCKETS, sizeof(*heat)) : NULL;

	*row = (struct snap_slice){.at = x->at,
				   .key = x->key.key,
				   .isa = x->key.isa,
				   .kind = x->key.kind,
				   .dir = x->key.dir,
				   .count = x->count,
				   .timed = x->timed,
				   .heat = heat};
	if (heat)
		memcpy(heat, x->heat, HEAT_BUCKETS * sizeof(*heat));
}

void model_slice_rows(struct commit *c)
{
	const struct slices *x = c->m->slices;
	struct snap_stream *to = &c->s->stream;
	struct snap_slice *rows;
	size_t n = 0;

	if (!x || c->s->dt <= 0)
		return;
	*to = (struct snap_stream){.vcpu = c->m->stream.vcpu,
				   .kinds = c->m->stream.kinds,
				   .slice_ns = x->ns,
				   .from = c->s->time - c->s->dt,
				   .events = x->events,
				   .lost = c->m->stream_lost + x->missed};
	if (c->m->stream.since > to->from)
		to->from = c->m->stream.since;
	rows = snapshot_alloc(c->s, x->n, sizeof(*rows));
	for (size_t i = 0; rows && i < SLICES_CELLS; i++)
		if (x->cell[i].count || x->cell[i].timed)
			put_row(c, &rows[n++], &x->cell[i]);
	c->s->slices = rows;
	c->s->nslices = n;
}

void model_slices_next(struct model *m)
{
	m->stream_lost = 0;
	if (m->slices)
		slices_next(m->slices);
}

void model_slices_free(struct model *m)
{
	slices_free(m->slices);
	m->slices = NULL;
}
