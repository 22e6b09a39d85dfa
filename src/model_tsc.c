// SPDX-License-Identifier: GPL-2.0-only
/* The TSCs of vCPUs: as read last, how often an offset changed, and how far they are apart. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "grow.h"
#include "model_rows.h"

/* An interval; of guests that write faster the last one is kept. */
#define NOTES_MOST (1u << 16)

static void add_note(struct model_tsc_notes *all, uint32_t vm, const struct snap_tsc_event *e)
{
	if (all->n == NOTES_MOST)
		all->n--;
	if (!grow(&all->note, all->n, &all->cap, sizeof(*all->note)))
		return;
	all->note[all->n++] = (struct model_tsc_note){vm, *e};
}

void model_tsc_free(struct model *m)
{
	free(m->tsc.note);
}

void model_on_tsc_write(void *ctx, const struct tsc_write *w)
{
	const struct snap_tsc_event e = {
		.kvm_id = w->kvm_id, .at = w->at, .prev = w->prev, .next = w->next};

	add_note(&((struct model *)ctx)->tsc, w->vm->id, &e);
}

static void note_reading(struct model *m, const struct tsc_reading *r)
{
	const struct snap_tsc_event e = {.kvm_id = r->vcpu->kvm_id,
					 .next = r->offset,
					 .ratio = r->ratio,
					 .frac_bits = r->frac_bits};

	add_note(&m->tsc, r->vcpu->vm->id, &e);
}

static bool is_new(const struct model_tsc *t, const struct tsc_reading *r)
{
	return !t->known || t->last.offset != r->offset || t->last.ratio != r->ratio;
}

/* Those of VMs that have no row wait for no one: a VM that is gone needs no offset. */
void model_tsc_rows(struct commit *c)
{
	struct model_tsc_notes *all = &c->m->tsc;
	struct snap_tsc_event *rows = NULL;
	size_t n = 0;

	/* The first one has no interval, and nobody keeps it. */
	if (c->s->dt <= 0)
		return;
	if (all->n)
		rows = snapshot_alloc(c->s, all->n, sizeof(*rows));
	for (size_t i = 0; rows && i < all->n; i++) {
		for (uint32_t k = 0; k < c->s->nvms; k++) {
			if (c->s->vms[k].id != all->note[i].vm)
				continue;
			rows[n] = all->note[i].e;
			rows[n++].vm = k;
			break;
		}
	}
	all->n = 0;
	c->s->tsc_events = rows;
	c->s->ntsc_events = n;
}

void model_on_tsc(void *ctx, const struct tsc_reading *r)
{
	struct model_vcpu *v = model_vcpu_state(r->vcpu);

	if (!v)
		return;
	if (is_new(&v->tsc, r))
		note_reading(ctx, r);
	v->tsc.changes += v->tsc.known && v->tsc.last.offset != r->offset;
	v->tsc.last = *r;
	v->tsc.known = true;
}

static const struct model_tsc *tsc_of(const struct inv_vcpu *v)
{
	const struct model_vcpu *s = v ? v->cookie[INV_COOKIE_MODEL] : NULL;

	return s && s->tsc.known ? &s->tsc : NULL;
}

static double scale_of(const struct tsc_reading *r)
{
	return r->ratio ? ldexp((double)r->ratio, -(int)r->frac_bits) : 1;
}

/* Cycles of the guest's TSC, which differ from the host's where it is scaled. */
static struct value seconds(const struct tsc_reading *r, int64_t cycles)
{
	double hz = r->hz * scale_of(r);

	return hz > 0 ? value_known((double)cycles / hz) : value_pending();
}

void model_vcpu_tsc(struct commit *c, const struct inv_vcpu *v, struct snap_vcpu *row)
{
	const struct model_tsc *t = tsc_of(v),
			       *first = tsc_of(v->vm->nvcpu ? v->vm->vcpu[0] : NULL);
	struct snap_tsc *out = &row->tsc;
	struct value none = value_na(WHY_NO_SOURCE);
	char text[24];

	*out = (struct snap_tsc){"", none, none, none, none};
	if (!t)
		return;
	snprintf(text, sizeof(text), "%" PRId64, (int64_t)t->last.offset);
	out->offset = snapshot_str(c->s, text);
	out->offset_s = seconds(&t->last, (int64_t)t->last.offset);
	out->scale = value_known(scale_of(&t->last));
	out->changes = value_known((double)t->changes);
	if (!first)
		return;
	out->apart_ns = seconds(&t->last, (int64_t)(t->last.offset - first->last.offset));
	out->apart_ns.v = fabs(out->apart_ns.v) * NS_PER_S;
}
