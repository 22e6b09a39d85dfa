// SPDX-License-Identifier: GPL-2.0-only
/* What kvmtop costs, and what it gives up to stay cheap; see governor.h. */
#include "governor.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"

/*
 * What one streamed event adds to the vCPU that fires it: 300,000 port exits of two events
 * each took 3.41 s of CPU instead of 2.64 s unwatched, on the machine of the first
 * measurements (6.18, no hardware virtualisation): 1.28 us an event.
 */
#define EVENT_COST_NS 1280.0
/*
 * What one sample adds to the vCPU that it interrupts: 12,000 blocks of a guest's loop took 0.481 s
 * of CPU at 20,000 samples a second and 0.342 s without, on the same machine: 14 us. That is a
 * guest of another host, whose timer interrupts are dear; hardware does with less.
 */
#define SAMPLE_COST_NS 14000.0
#define SAMPLE_SHIFT_MAX 3 /* an eighth of the rate still tells what is hot */

/* The order in which kinds are given up: dearest in worth for their number first. */
static const enum kvm_kind drop_order[] = {
	KIND_MSR, KIND_MMIO, KIND_IOPORT, KIND_USEREXIT, KIND_VMEXIT,
};
static const char *const drop_name[] = {"msr", "mmio", "ioport", "userexit", "entry/exit"};
#define NDROP (sizeof(drop_order) / sizeof(drop_order[0]))

#define PATIENCE (2 * NS_PER_S) /* over the limit for that long before a kind goes */
#define RETRY (30 * NS_PER_S) /* first try to have it back; doubles */
#define RETRY_MAX (600 * NS_PER_S)

void governor_init(struct governor *g, double max_pct)
{
	memset(g, 0, sizeof(*g));
	g->max_pct = max_pct;
	g->backoff = RETRY;
	g->self_pct = -1;
}

static int64_t own_cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return -1;
	return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (int64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

double governor_self(struct governor *g, int64_t now, unsigned ncpu)
{
	int64_t cpu = own_cpu_ns(), dt = now - g->time;
	bool first = g->time == 0;
	double pct = -1;

	if (!first && dt > 0 && ncpu)
		pct = 100.0 * (double)(cpu - g->cpu_ns) / ((double)dt * ncpu);
	g->cpu_ns = cpu;
	g->time = now;
	g->self_pct = pct;
	return pct;
}

static double estimate_guest(const struct snapshot *s)
{
	double events = (double)s->stream.events + (double)s->host.singles, samples;

	if (s->dt <= 0 || !s->host.ncpu)
		return 0;
	/* An exit is two events: kvm_exit and kvm_entry. What is counted in the kernel is measured.
	 */
	for (int k = 0; k < KIND_NR && s->host.events_by != EVENTS_BY_BPF; k++)
		events += (double)s->kinds[k].count * (k == KIND_VMEXIT ? 2 : 1);
	samples = value_has(s->host.sym.n) ? s->host.sym.n.v : 0;
	return 100.0 *
	       (events * EVENT_COST_NS + samples * SAMPLE_COST_NS +
		(double)(s->host.counting_ns + s->host.waits_ns)) /
	       ((double)s->dt * s->host.ncpu);
}

/* Fewer samples first: what they tell becomes coarser, but all of it stays. */
static bool sample_less(struct governor *g, const struct snapshot *s)
{
	if (!s->sampling.open || g->sample_shift >= SAMPLE_SHIFT_MAX)
		return false;
	g->sample_shift++;
	return true;
}

/* What costs next to nothing is kept: without it nothing would be won. */
static bool matters(const struct governor *g, const struct snapshot *s, double ns)
{
	return 100.0 * ns / ((double)s->dt * (s->host.ncpu ? s->host.ncpu : 1)) > g->max_pct / 10;
}

/* Then what is finer than all others need. */
static bool slices_off(struct governor *g, const struct snapshot *s)
{
	if (g->no_slices || !matters(g, s, (double)s->stream.events * EVENT_COST_NS))
		return false;
	g->no_slices = true;
	return true;
}

static bool code_off(struct governor *g, const struct snapshot *s)
{
	if (g->no_code || !matters(g, s, (double)s->host.singles * EVENT_COST_NS))
		return false;
	g->no_code = true;
	return true;
}

static bool exit_off_off(struct governor *g, const struct snapshot *s)
{
	if (g->no_exit_off || !matters(g, s, (double)s->host.exit_off_ns))
		return false;
	g->no_exit_off = true;
	return true;
}

static bool waits_off(struct governor *g, const struct snapshot *s)
{
	if (g->no_waits || !matters(g, s, (double)s->host.waits_ns))
		return false;
	g->no_waits = true;
	return true;
}

static bool drop_one(struct governor *g, const struct snapshot *s)
{
	for (size_t i = 0; i < NDROP; i++) {
		unsigned bit = KIND_BIT(drop_order[i]);

		if (g->dropped & bit || !(s->open_kinds & bit) || !s->kinds[drop_order[i]].count)
			continue;
		g->dropped |= bit;
		return true;
	}
	return false;
}

bool governor_gave_up(const struct governor *g)
{
	return g->dropped || g->no_slices || g->no_code || g->no_exit_off || g->no_waits;
}

bool governor_look(struct governor *g, const struct snapshot *s)
{
	double cost;

	g->guest_pct = estimate_guest(s);
	if (g->max_pct <= 0 || s->dt <= 0)
		return false;
	cost = g->guest_pct + (g->self_pct > 0 ? g->self_pct : 0);
	if (cost <= g->max_pct) {
		g->over_since = 0;
		if ((!governor_gave_up(g) && !g->sample_shift) || s->time < g->retry_at ||
		    cost > g->max_pct / 2)
			return false;
		g->dropped = 0;
		g->no_slices = g->no_code = g->no_waits = g->no_exit_off = false;
		g->sample_shift = 0;
		return true;
	}
	if (!g->over_since)
		g->over_since = s->time;
	if (s->time - g->over_since < PATIENCE ||
	    !(sample_less(g, s) || slices_off(g, s) || code_off(g, s) || exit_off_off(g, s) ||
	      waits_off(g, s) || drop_one(g, s)))
		return false;
	g->over_since = s->time;
	g->retry_at = s->time + g->backoff;
	g->backoff = g->backoff * 2 < RETRY_MAX ? g->backoff * 2 : RETRY_MAX;
	return true;
}

static size_t add_text(char *buf, size_t size, size_t at, const char *what)
{
	int n = at < size ? snprintf(buf + at, size - at, "%s%s", at ? ", " : "", what) : 0;

	return at + (size_t)n;
}

const char *governor_text(const struct governor *g, char *buf, unsigned long size)
{
	size_t at = 0;

	buf[0] = 0;
	for (size_t i = 0; i < NDROP; i++)
		if (g->dropped & KIND_BIT(drop_order[i]))
			at = add_text(buf, size, at, drop_name[i]);
	if (g->no_waits)
		at = add_text(buf, size, at, "waits");
	if (g->no_exit_off)
		at = add_text(buf, size, at, "exits' time without a CPU");
	if (g->no_code)
		at = add_text(buf, size, at, "the code that makes exits");
	if (g->no_slices)
		at = add_text(buf, size, at, "single events");
	if (g->sample_shift)
		add_text(buf, size, at,
			 g->sample_shift == 1 ? "half of the samples" : "most samples");
	return buf;
}

bool governor_names(const char *text, enum kvm_kind kind)
{
	for (size_t i = 0; i < NDROP; i++)
		if (drop_order[i] == kind)
			return strstr(text, drop_name[i]) != NULL;
	return false;
}
