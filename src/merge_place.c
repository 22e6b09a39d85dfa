// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where an event belongs (merge_place.h): of the offsets that its vCPU had, the one by which its
 * stamp was read, and what is not certain about that.
 */
#include "merge_place.h"
#include "merge_sync.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NEAR 33554432u /* cycles: some ms, in which a CPU that is traced has a next line */

__attribute__((format(printf, 3, 4))) static void say(struct merge_stream *s, enum merge_note kind,
						      const char *fmt, ...)
{
	size_t n = strlen(s->note);
	va_list ap;

	if (++s->said[kind] > MERGE_NOTES_MAX)
		return;
	n += (size_t)snprintf(s->note + n, sizeof(s->note) - n,
			      "# %.*s[%03u]: ", (int)s->prefix_len, s->prefix, s->e.cpu);
	va_start(ap, fmt);
	n += (size_t)vsnprintf(s->note + n, sizeof(s->note) - n, fmt, ap);
	va_end(ap);
	if (n + 1 < sizeof(s->note))
		memcpy(s->note + n, "\n", 2);
	else
		memcpy(s->note + sizeof(s->note) - 2, "\n", 2);
}

void merge_place_host(struct merge_stream *s)
{
	struct merge_apart apart;

	s->tsc = s->e.ts;
	if (s->place->seen && s->tsc < s->place->stamp)
		say(s, NOTE_BACK, "the host's TSC steps back by %" PRIu64 " cycles here",
		    s->place->stamp - s->tsc);
	s->place->seen = true;
	s->place->stamp = s->tsc;
	if (merge_sync_apart(s->sync, &s->e, &apart))
		say(s, NOTE_APART,
		    "the TSCs of the host's CPUs %u and %u are not synchronised: thread %d is on "
		    "the second %" PRIu64 " cycles before it leaves guest mode on the first; by "
		    "that much or more the order of their lines is not certain",
		    s->e.cpu, apart.cpu, s->e.pid, apart.by);
}

/* The guest's stamps step back although the next span does not begin with a step. */
static void unexplained(struct merge_stream *s, uint64_t by)
{
	say(s, NOTE_BACK,
	    "time stamps step back by %" PRIu64 " cycles and no change of the offset is known: "
	    "the guest wrote its TSC; the order is not certain from here on",
	    by);
}

/* by_step: the stamps have stepped back, so the span is in force from this very line on. */
static void entered(struct merge_stream *s, const struct merge_span *span, bool by_step)
{
	if (!span->back)
		return;
	say(s, NOTE_WROTE, "the guest's TSC was set back at %" PRIu64 "%s", span->from,
	    by_step ? ""
		    : ": a kernel's ring buffer can give the lines after that stamps that are too "
		      "late; their order is not certain");
}

/* The next span begins with a step back, and the stamps still have one for it. */
static bool step_comes(const struct merge_place *p, const struct merge_cpu *c)
{
	if (p->span + 1 >= c->nspans || !c->span[p->span + 1].back)
		return false;
	return c->backs >= p->steps + c->span[p->span + 1].backs;
}

/*
 * A kernel's ring buffer has differences of time, and none below 0: after a step back the first is
 * 0, which two readings of a TSC never are (but those of an interrupt that is traced while an event
 * is, in kernels before 5.10), and only the buffer's next page begins with the time itself, which
 * is a step back of the stamps.
 */
static bool begins_late(const struct merge_place *p, const struct merge_cpu *c)
{
	return p->steps < c->nlate && p->events == c->late[p->steps];
}

static bool is_late(const struct merge_place *p, const struct merge_cpu *c, uint64_t stamp)
{
	const struct merge_span *now = &c->span[p->span];
	uint64_t tsc = tsc_to_host(stamp, &c->scale, now->offset);

	if (p->span + 1 >= c->nspans || !now[1].back || now[1].from != now->to)
		return false;
	if (tsc >= now->to)
		return p->late || step_comes(p, c);
	return p->late || begins_late(p, c) || (stamp == p->stamp && now->to - tsc < NEAR);
}

/* Not before the step, and as far from each other as they are. */
static void place_late(struct merge_stream *s, struct merge_place *p, const struct merge_cpu *c)
{
	const struct merge_span *next = &c->span[p->span + 1];

	if (!p->late) {
		p->late_from = s->e.ts;
		say(s, NOTE_LATE,
		    "the guest's TSC was set back at %" PRIu64 ", and its ring buffer has not "
		    "followed yet: until it does lines are somewhat later than is shown",
		    next->from);
	}
	p->late = true;
	s->tsc = next->from + tsc_to_host(s->e.ts - p->late_from, &c->scale, 0);
}

static void doubts(struct merge_stream *s, struct merge_place *p, const struct merge_cpu *c,
		   uint64_t stamp)
{
	const struct merge_span *span = &c->span[p->span];
	size_t now, later;

	if (span->uncertain && !p->gap_said) {
		p->gap_said = true;
		say(s, NOTE_GAP,
		    "a change of the offset between %" PRIu64 " and %" PRIu64 " is missing from "
		    "the host's trace: the order of these lines is not certain",
		    span->from, span->to);
	}
	if (p->two_said || p->span + 1 >= c->nspans || !c->span[p->span + 1].back ||
	    step_comes(p, c))
		return;
	if (merge_fits(c, stamp, p->span, &now) && merge_fits_later(c, stamp, now, &later)) {
		p->two_said = true;
		say(s, NOTE_TWO,
		    "the guest reads these stamps twice, before and after its TSC is set back at "
		    "%" PRIu64 ": shown as before",
		    c->span[p->span + 1].from);
	}
}

static void first_of_cpu(struct merge_stream *s, struct merge_place *p, const struct merge_cpu *c)
{
	p->span = c->start;
	p->seen = true;
	if (c->borrowed)
		say(s, NOTE_DOUBT, "the offset of vCPU %u is not known: another vCPU's is taken",
		    merge_vcpu_of(s->in, s->e.cpu));
	if (c->doubtful)
		say(s, NOTE_DOUBT,
		    "its first stamp fits several offsets that the vCPU had: the latest is taken");
}

static void move(struct merge_stream *s, struct merge_place *p, const struct merge_cpu *c,
		 size_t to, bool by_step)
{
	if (to == p->span)
		return;
	p->gap_said = p->two_said = false;
	while (p->span < to)
		entered(s, &c->span[++p->span], by_step);
}

/* By the first offset from the present one on that the stamp fits. */
static void place_by_span(struct merge_stream *s, struct merge_place *p, const struct merge_cpu *c,
			  bool back)
{
	uint64_t stamp = s->e.ts;
	size_t to;
	bool any = merge_fits(c, stamp, p->span, &to);

	/* Within one offset time does not go back: it is a later one, if there is any. */
	if (any && back && to == p->span && !merge_fits_later(c, stamp, p->span, &to))
		unexplained(s, p->stamp - stamp);
	if (any)
		move(s, p, c, to, back);
	else if (back)
		unexplained(s, p->stamp - stamp);
	else
		say(s, NOTE_NO_SPAN,
		    "no offset that the vCPU had gives this line's time: its place is not certain");
	doubts(s, p, c, stamp);
	s->tsc = tsc_to_host(stamp, &c->scale, c->span[p->span].offset);
}

void merge_place_guest(struct merge_stream *s)
{
	const struct merge_cpu *c = &s->in->cpu[s->e.cpu];
	struct merge_place *p = &s->place[s->e.cpu];
	bool first = !p->seen, back = !first && s->e.ts < p->stamp;

	p->events++;
	p->steps += back;
	if (first)
		first_of_cpu(s, p, c);
	if (!first && !back && is_late(p, c, s->e.ts)) {
		place_late(s, p, c);
	} else {
		p->late = false;
		place_by_span(s, p, c, back);
	}
	p->stamp = s->e.ts;
}
