// SPDX-License-Identifier: GPL-2.0-only
/* Which events of an interval are missing (exits_missing.h). */
#include "exits_missing.h"

#define TYPE_BIT(t) (1u << (t))
#define TYPES_ALL (TYPE_BIT(EV_NR) - 1)
#define TYPES_EXIT (TYPE_BIT(EV_ENTRY) | TYPE_BIT(EV_EXIT))

/* The events that are counted as each kind; a kvm_entry only ends what others began. */
static const uint32_t counted_as[KIND_NR] = {
	[KIND_VMEXIT] = TYPE_BIT(EV_EXIT),
	[KIND_MMIO] = TYPE_BIT(EV_MMIO),
	[KIND_IOPORT] = TYPE_BIT(EV_PIO),
	[KIND_MSR] = TYPE_BIT(EV_MSR),
	[KIND_HYPERCALL] = TYPE_BIT(EV_HYPERCALL),
	[KIND_USEREXIT] = TYPE_BIT(EV_USEREXIT),
	[KIND_HALT] = TYPE_BIT(EV_VCPU_WAKEUP) | TYPE_BIT(EV_HALT_POLL),
};

static void add_gap(struct missing_gap *g, const struct loss *l)
{
	/* What an interval has shown already is not the news of the next one. */
	if (g->told || !g->n)
		*g = (struct missing_gap){.cpu = l->cpu, .to = l->to};
	g->n++;
	if (l->to > g->to)
		g->to = l->to;
	if (l->to - l->from > g->longest) {
		g->longest = l->to - l->from;
		g->cpu = l->cpu;
	}
}

void missing_loss(struct missing *m, const struct loss *l)
{
	if (l->unwatched)
		add_gap(&m->gap, l);
	else if (l->to > m->loss_to)
		m->loss_to = l->to;
	m->uncounted |= l->uncounted;
}

void missing_count(struct missing *m, const struct loss_count *c)
{
	if (c->n)
		m->lost |= c->type >= 0 && c->type < EV_NR ? TYPE_BIT(c->type) : TYPES_ALL;
}

void missing_commit(struct missing *m, int64_t start)
{
	if (m->gap.n && m->gap.to <= start)
		m->gap = (struct missing_gap){0};
	m->now = m->lost;
	/*
	 * The counters are read a few ms after the end of the interval; where a window reaches into
	 * the next one, what was lost in these few ms belongs to that.
	 */
	if (m->loss_to > start)
		m->now |= m->lost_before;
	if (m->gap.n || m->uncounted)
		m->now = TYPES_ALL;
	m->ever |= m->now;
}

void missing_next(struct missing *m, int64_t watermark)
{
	m->lost_before = m->lost;
	m->lost = 0;
	m->now = 0;
	m->uncounted = false;
	m->loss_to = 0;
	if (m->gap.to <= watermark)
		m->gap = (struct missing_gap){0};
	m->gap.told = true;
}

void missing_reset(struct missing *m)
{
	m->ever = 0;
}

static struct value mark(const struct missing *m, uint32_t missing, bool total, struct value v)
{
	if (!missing || !value_has(v))
		return v;
	return value_partial(v.v, m->gap.n && !total ? WHY_UNWATCHED : WHY_LOST);
}

struct value missing_mark(const struct missing *m, unsigned kinds, bool total, struct value v)
{
	uint32_t types = 0;

	for (unsigned k = 0; k < KIND_NR; k++)
		types |= kinds & KIND_BIT(k) ? counted_as[k] : 0;
	return mark(m, types & (total ? m->ever : m->now), total, v);
}

struct value missing_mark_time(const struct missing *m, struct value v)
{
	return mark(m, TYPES_EXIT & m->now, false, v);
}
