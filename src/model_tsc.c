// SPDX-License-Identifier: GPL-2.0-only
/* The TSCs of vCPUs: as read last, how often an offset changed, and how far they are apart. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "clock.h"
#include "model_rows.h"

void model_on_tsc(void *ctx, const struct tsc_reading *r)
{
	struct model_vcpu *v = model_vcpu_state(r->vcpu);

	(void)ctx;
	if (!v)
		return;
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
