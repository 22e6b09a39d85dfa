// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which offset a guest's CPU had when (merge.h): what the user gave, the writes that the host's
 * trace has, and where several VMs wrote, the one that puts the guest's lines into the host's
 * trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "text.h"

unsigned merge_vcpu_of(const struct merge_input *guest, unsigned cpu)
{
	/* The last word counts. */
	for (size_t i = guest->nmaps; i-- > 0;)
		if (guest->map[i].cpu == cpu)
			return guest->map[i].vcpu;
	return cpu;
}

/* NULL: nothing. The last word counts, and one vCPU's before all's. */
static const struct merge_given *given_by(const struct merge_input *g, unsigned vcpu, bool scale,
					  bool live)
{
	const struct merge_given *all = NULL;

	for (size_t i = g->ngiven; i-- > 0;) {
		const struct merge_given *one = &g->given[i];

		if (one->is_scale != scale || one->live != live)
			continue;
		if (one->vcpu == (int)vcpu)
			return one;
		if (one->vcpu == MERGE_ALL_VCPUS && !all)
			all = one;
	}
	return all;
}

/* What is given for this vCPU; what the user says counts more than the running VM. */
static const struct merge_given *given_for(const struct merge_input *g, unsigned vcpu, bool scale)
{
	const struct merge_given *user = given_by(g, vcpu, scale, false);

	return user ? user : given_by(g, vcpu, scale, true);
}

static bool has_value(const struct tsc_chain *c, uint64_t offset)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->epoch[i].next == offset || (c->epoch[i].prev == offset && offset))
			return true;
	return false;
}

/* --- spans --- */

static void span_add(struct merge_cpu *c, uint64_t from, uint64_t to, uint64_t offset, bool back,
		     bool uncertain)
{
	c->span[c->nspans++] = (struct merge_span){
		.from = from, .to = to, .offset = offset, .back = back, .uncertain = uncertain};
}

/* The first epoch from i on that changed the offset: KVM also writes one that is there already. */
static size_t change(const struct tsc_chain *chain, size_t i)
{
	while (i < chain->n && chain->epoch[i].next == chain->epoch[i].prev && !chain->epoch[i].gap)
		i++;
	return i;
}

/* What begins with epoch i, until the change `end`. */
static void spans_of(struct merge_cpu *c, const struct tsc_chain *chain, size_t i, size_t end)
{
	const struct tsc_epoch *e = &chain->epoch[i], *next = &chain->epoch[end];
	uint64_t to = end < chain->n ? next->at : UINT64_MAX;
	bool unknown = end < chain->n && next->gap;

	span_add(c, e->at, to, e->next, (int64_t)(e->next - e->prev) < 0, unknown);
	if (unknown)
		span_add(c, e->at, to, next->prev, (int64_t)(next->prev - e->next) < 0, true);
}

/* chain NULL: one offset for all time. */
static int make_spans(struct merge *m, struct merge_cpu *c, const struct tsc_chain *chain,
		      uint64_t offset)
{
	size_t i = chain ? change(chain, 0) : 0, next;

	c->span = calloc(2 * (chain ? chain->n : 0) + 1, sizeof(*c->span));
	if (!c->span)
		return -ENOMEM;
	if (chain)
		offset = chain->epoch[0].prev;
	if (!chain || i == chain->n) {
		span_add(c, 0, UINT64_MAX, offset, false, false);
		return 0;
	}
	/* A new vCPU's is 0: what the guest shows before is nothing, or within this trace. */
	span_add(c, offset ? 0 : m->host.first, chain->epoch[i].at, offset, false, false);
	for (; i < chain->n; i = next) {
		next = change(chain, i + 1);
		spans_of(c, chain, i, next);
	}
	return 0;
}

static bool fits(const struct merge_cpu *c, const struct merge_span *s, uint64_t stamp)
{
	uint64_t host = tsc_to_host(stamp, &c->scale, s->offset);

	return host >= s->from && host < s->to;
}

bool merge_fits(const struct merge_cpu *c, uint64_t stamp, size_t from, size_t *first)
{
	for (size_t i = from; i < c->nspans; i++) {
		if (fits(c, &c->span[i], stamp)) {
			*first = i;
			return true;
		}
	}
	return false;
}

bool merge_fits_later(const struct merge_cpu *c, uint64_t stamp, size_t now, size_t *first)
{
	uint64_t tsc = tsc_to_host(stamp, &c->scale, c->span[now].offset), most;

	if (now + 1 >= c->nspans)
		return false;
	most = tsc_to_host(c->span[now + 1].down, &c->scale, 0);
	for (size_t i = now + 1; i < c->nspans; i++) {
		if (c->span[i].from > tsc && c->span[i].from - tsc > most)
			return false;
		if (fits(c, &c->span[i], stamp)) {
			*first = i;
			return true;
		}
	}
	return false;
}

static uint64_t step_down(const struct merge_cpu *c, size_t i)
{
	int64_t by = i ? (int64_t)(c->span[i - 1].offset - c->span[i].offset) : 0;

	return by > 0 ? (uint64_t)by : 0;
}

/*
 * A trace is read at its end: of several spans that the first stamp fits it is the last, but each
 * step back in the trace is one that is still to come.
 */
static void find_start(const struct merge *m, struct merge_cpu *c)
{
	uint64_t backs = 0, down = 0;
	size_t found = 0;

	for (size_t i = c->nspans; i-- > 0;) {
		const struct merge_span *s = &c->span[i];
		bool within = tsc_to_host(c->first, &c->scale, s->offset) <= m->host.last;

		if (fits(c, s, c->first) && within && backs >= c->backs && !found++)
			c->start = i;
		backs += s->back;
		if (__builtin_add_overflow(down, step_down(c, i), &down))
			down = UINT64_MAX;
		c->span[i].backs = backs;
		c->span[i].down = down;
	}
	c->doubtful = found > 1;
}

/* --- whose chain --- */

/* Do the CPU's lines come to lie in the host's trace with this chain? */
static bool overlaps(struct merge *m, const struct merge_cpu *c, const struct tsc_chain *chain)
{
	for (size_t i = 0; i <= chain->n; i++) {
		const struct tsc_epoch *e = &chain->epoch[i ? i - 1 : 0];
		uint64_t offset = i ? e->next : e->prev;
		uint64_t from = i ? e->at : m->host.first;
		uint64_t to = i == 0 ? e->at : i < chain->n ? e[1].at : m->host.last;
		uint64_t a = tsc_to_host(c->first, &c->scale, offset);
		uint64_t b = tsc_to_host(c->last, &c->scale, offset);

		if (a <= b && a <= to && b >= from && b >= m->host.first)
			return true;
	}
	return false;
}

static int too_many(struct merge *m, const struct merge_input *g, unsigned vcpu)
{
	char name[100];
	size_t n;

	text_escape(name, sizeof(name), g->name);
	snprintf(m->why, sizeof(m->why),
		 "%s: several VMs wrote the TSC offset of a vCPU %u: say which with --offset "
		 "vcpu%u:VALUE behind its -G:",
		 name, vcpu, vcpu);
	for (size_t i = 0; i < m->epochs.n; i++) {
		const struct tsc_chain *c = &m->epochs.chain[i];
		const struct tsc_epoch *last = &c->epoch[c->n - 1];

		n = strlen(m->why);
		if (c->vcpu == vcpu)
			snprintf(m->why + n, sizeof(m->why) - n, " %" PRIu64 " (thread %d)",
				 last->next, last->tid);
	}
	return -EINVAL;
}

/* The chain of this guest CPU: *out is NULL where there is none. */
static int choose(struct merge *m, const struct merge_input *g, const struct merge_cpu *c,
		  unsigned vcpu, const struct merge_given *given, const struct tsc_chain **out)
{
	const struct tsc_chain *only = NULL, *fitting = NULL;
	size_t n = 0, nfit = 0;

	*out = NULL;
	for (size_t i = 0; i < m->epochs.n; i++) {
		const struct tsc_chain *chain = &m->epochs.chain[i];

		if (chain->vcpu != vcpu || (given && !has_value(chain, given->offset)))
			continue;
		n++;
		only = chain;
		if (overlaps(m, c, chain)) {
			nfit++;
			fitting = chain;
		}
	}
	if (nfit == 1)
		*out = fitting;
	else if (n == 1 && m->nguests == 1)
		*out = only;
	else if (n && !given)
		return too_many(m, g, vcpu);
	return 0;
}

/*
 * Of the running VM: not to be believed where the trace has other offsets and this one does not put
 * the CPU's lines into it. (A KVM that cannot give its guests an offset traces some and has 0 at
 * last.)
 */
static bool is_stale(struct merge *m, const struct merge_cpu *c, unsigned vcpu,
		     const struct merge_given *given)
{
	uint64_t a = tsc_to_host(c->first, &c->scale, given->offset);
	uint64_t b = tsc_to_host(c->last, &c->scale, given->offset);
	bool others = false;

	for (size_t i = 0; i < m->epochs.n; i++) {
		if (m->epochs.chain[i].vcpu != vcpu)
			continue;
		if (has_value(&m->epochs.chain[i], given->offset))
			return false;
		others = true;
	}
	return others && (a > b || a > m->host.last || b < m->host.first);
}

static int resolve_cpu(struct merge *m, struct merge_input *g, unsigned cpu, unsigned vcpu,
		       bool *known)
{
	struct merge_cpu *c = &g->cpu[cpu];
	const struct merge_given *given = given_for(g, vcpu, false);
	const struct merge_given *scale = given_for(g, vcpu, true);
	const struct tsc_chain *chain;
	int rc;

	if (scale)
		c->scale = scale->scale;
	if (given && given->live && is_stale(m, c, vcpu, given))
		given = NULL;
	rc = choose(m, g, c, vcpu, given, &chain);
	c->chain = chain;
	*known = chain || given;
	if (!rc && *known)
		rc = make_spans(m, c, chain, given ? given->offset : 0);
	if (!rc && *known)
		find_start(m, c);
	return rc;
}

/* KVM gives all vCPUs of a VM one offset unless their guest or VMM writes others. */
static int borrow(struct merge *m, struct merge_cpu *c, const struct merge_cpu *from)
{
	c->span = calloc(from->nspans + 1, sizeof(*c->span));
	if (!c->span)
		return -ENOMEM;
	memcpy(c->span, from->span, from->nspans * sizeof(*c->span));
	c->nspans = from->nspans;
	c->scale = from->scale;
	c->borrowed = true;
	find_start(m, c);
	return 0;
}

/* The first vCPU that something is known of: given, or else by the trace. False: there is none. */
static bool first_known(const struct merge *m, const struct merge_input *g, unsigned *vcpu)
{
	bool found = false;

	for (size_t i = 0; i < g->ngiven; i++) {
		const struct merge_given *one = &g->given[i];

		if (one->is_scale || one->vcpu < 0 || (found && (unsigned)one->vcpu >= *vcpu))
			continue;
		*vcpu = (unsigned)one->vcpu;
		found = true;
	}
	if (found)
		return true;
	for (size_t i = 0; i < m->epochs.n; i++) {
		if (found && m->epochs.chain[i].vcpu >= *vcpu)
			continue;
		*vcpu = m->epochs.chain[i].vcpu;
		found = true;
	}
	return found;
}

/* None of the vCPUs that have lines is known: one without a line may be. */
static int borrow_from_silent(struct merge *m, struct merge_input *g,
			      const struct merge_cpu **first)
{
	unsigned vcpu = 0;
	bool known = false;
	int rc;

	if (!g->cpu || !first_known(m, g, &vcpu))
		return 0;
	for (unsigned i = 0; i < g->ncpus; i++) {
		if (!g->cpu[i].seen)
			continue;
		rc = resolve_cpu(m, g, i, vcpu, &known);
		if (known) {
			g->cpu[i].borrowed = true;
			*first = &g->cpu[i];
		}
		return rc;
	}
	return 0;
}

static int resolve_guest(struct merge *m, struct merge_input *g)
{
	const struct merge_cpu *first = NULL;
	char name[100];
	int rc = 0;

	for (unsigned i = 0; i < g->ncpus && !rc; i++) {
		bool known = false;

		if (g->cpu[i].seen)
			rc = resolve_cpu(m, g, i, merge_vcpu_of(g, i), &known);
		if (known && !first)
			first = &g->cpu[i];
	}
	if (!rc && !first)
		rc = borrow_from_silent(m, g, &first);
	for (unsigned i = 0; i < g->ncpus && !rc && first; i++)
		if (g->cpu[i].seen && !g->cpu[i].nspans)
			rc = borrow(m, &g->cpu[i], first);
	if (rc || first || !g->events)
		return rc;
	text_escape(name, sizeof(name), g->name);
	snprintf(m->why, sizeof(m->why),
		 "%s: its TSC offset is not known: give --offset VALUE (the host's "
		 "/sys/kernel/debug/kvm/*/vcpu0/tsc-offset), --recording FILE of kvmtop record, or "
		 "--tsc with a trace of kvm_write_tsc_offset since the VM's start",
		 name);
	return -EINVAL;
}

static bool share_chain(const struct merge_input *a, const struct merge_input *b)
{
	for (size_t i = 0; i < a->ncpus; i++)
		for (size_t k = 0; k < b->ncpus; k++)
			if (a->cpu[i].chain && a->cpu[i].chain == b->cpu[k].chain)
				return true;
	return false;
}

/* Two guests cannot be one vCPU. */
static int check_shares(struct merge *m)
{
	char one[100], other[100];

	for (size_t i = 0; i < m->nguests; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!share_chain(&m->guest[i], &m->guest[k]))
				continue;
			text_escape(one, sizeof(one), m->guest[k].name);
			text_escape(other, sizeof(other), m->guest[i].name);
			snprintf(m->why, sizeof(m->why),
				 "%s and %s: the host's trace has the offsets of one of them only, "
				 "and not whose they are: give --offset behind each -G",
				 one, other);
			return -EINVAL;
		}
	}
	return 0;
}

int merge_resolve(struct merge *m)
{
	int rc = 0;

	for (size_t i = 0; i < m->nguests && !rc; i++)
		rc = resolve_guest(m, &m->guest[i]);
	if (!rc)
		rc = check_shares(m);
	if (rc == -ENOMEM)
		snprintf(m->why, sizeof(m->why), "%s", strerror(ENOMEM));
	return rc;
}
