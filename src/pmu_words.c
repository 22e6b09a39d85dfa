// SPDX-License-Identifier: GPL-2.0-only
/* What a guest's counters count, and why one does not, in words (pmu.h). */
#include "pmu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An event select register. */
#define EVENT(sel) ((unsigned)((sel)&0xff))
#define UMASK(sel) ((unsigned)((sel) >> 8 & 0xff))
#define SEL_USR (1ull << 16)
#define SEL_OS (1ull << 17)
#define SEL_EDGE (1ull << 18)
#define SEL_INT (1ull << 20)
#define SEL_EN (1ull << 22)
#define SEL_INV (1ull << 23)
#define CMASK(sel) ((unsigned)((sel) >> 24 & 0xff))
#define AMD_EVENT(sel) (EVENT(sel) | (unsigned)((sel) >> 24 & 0xf00))
#define AMD_GUEST (1ull << 40)
#define AMD_HOST (1ull << 41)
/* Its bits in fixed_ctr_ctrl. */
#define FIXED_OS 1u
#define FIXED_USR 2u
#define FIXED_PMI 8u

/* Below so much of the time it shares a counter of the host; a reading falls a little short. */
#define WHOLE 0.98

struct name {
	unsigned event, umask;
	const char *name;
};

/* The architectural events (SDM, volume 3, "Performance Monitoring"). */
static const struct name intel[] = {
	{0x3c, 0x00, "cycles"},		  {0xc0, 0x00, "instructions"},
	{0x3c, 0x01, "ref-cycles"},	  {0x2e, 0x4f, "cache-references"},
	{0x2e, 0x41, "cache-misses"},	  {0xc4, 0x00, "branches"},
	{0xc5, 0x00, "branch-misses"},	  {0xa4, 0x01, "slots"},
	{0x00, 0x03, "ref-cycles"},	  {0xa4, 0x02, "topdown-be-bound"},
	{0x73, 0x00, "topdown-bad-spec"}, {0x9c, 0x01, "topdown-fe-bound"},
	{0xc2, 0x02, "topdown-retiring"},
};

/* The generic events of families 0x0f to 0x1a. */
static const struct name amd[] = {
	{0x76, 0x00, "cycles"},
	{0xc0, 0x00, "instructions"},
	{0xc2, 0x00, "branches"},
	{0xc3, 0x00, "branch-misses"},
	{0x60, 0xff, "cache-references"},
	{0x64, 0x09, "cache-misses"},
	{0x7d, 0x07, "cache-references"},
	{0x7e, 0x07, "cache-misses"},
	{0xd0, 0x00, "stalled-cycles-frontend"},
	{0xd1, 0x00, "stalled-cycles-backend"},
	{0x87, 0x02, "stalled-cycles-frontend"},
	{0x87, 0x01, "stalled-cycles-backend"},
	{0x120, 0x01, "ref-cycles"},
};

/* What a guest on a kernel with our patches can count of its host (event select 0xff). */
static const struct name host_events[] = {
	{0xff, 0x01, "host:exits"},
	{0xff, 0x02, "host:halts"},
	{0xff, 0x03, "host:preemptions"},
	{0xff, 0x04, "host:userspace"},
};

static const char *const fixed_names[] = {
	"instructions",	    "cycles",		"ref-cycles",	    "slots",
	"topdown-bad-spec", "topdown-fe-bound", "topdown-retiring",
};

static const char *const event_states[PMU_EVENT_NR] = {
	[PMU_EVENT_UNKNOWN] = "",	   [PMU_EVENT_NONE] = "none", [PMU_EVENT_ACTIVE] = "active",
	[PMU_EVENT_INACTIVE] = "inactive", [PMU_EVENT_OFF] = "off",   [PMU_EVENT_ERROR] = "error",
	[PMU_EVENT_GONE] = "gone",	   [PMU_EVENT_HOST] = "host", [PMU_EVENT_OTHER] = "other",
};

const char *pmu_event_state_name(enum pmu_event e)
{
	return (unsigned)e < PMU_EVENT_NR ? event_states[e] : "";
}

static const char *find(const struct name *t, size_t n, unsigned event, unsigned umask)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].event == event && t[i].umask == umask)
			return t[i].name;
	return NULL;
}

/* A register that says neither what nor when: the counter is not in use. */
static bool in_use(const struct pmu_counter *c)
{
	return c->has_select && (c->fixed ? c->select : c->select & ~SEL_INT) != 0;
}

/*
 * It counts what the host does, or would: stopped, or not allowed, it has no perf event. Where that
 * is another event of the CPU it has one.
 */
static bool may_be_host_event(const struct pmu_state *s, const struct pmu_counter *c)
{
	return c->event == PMU_EVENT_HOST || (!s->inferred && c->event == PMU_EVENT_NONE);
}

static bool is_host_event(const struct pmu_state *s, const struct pmu_counter *c)
{
	unsigned event = s->vendor == PMU_AMD ? AMD_EVENT(c->select) : EVENT(c->select);

	return !c->fixed && may_be_host_event(s, c) &&
	       find(host_events, sizeof(host_events) / sizeof(host_events[0]), event,
		    UMASK(c->select));
}

void pmu_event_name(const struct pmu_state *s, const struct pmu_counter *c, char *out, size_t size)
{
	unsigned event = s->vendor == PMU_AMD ? AMD_EVENT(c->select) : EVENT(c->select);
	const char *name = NULL;

	out[0] = '\0';
	if (!in_use(c))
		return;
	if (c->fixed) {
		if (c->nr < sizeof(fixed_names) / sizeof(fixed_names[0]))
			snprintf(out, size, "%s", fixed_names[c->nr]);
		return;
	}
	if (may_be_host_event(s, c))
		name = find(host_events, sizeof(host_events) / sizeof(host_events[0]), event,
			    UMASK(c->select));
	if (!name && s->vendor != PMU_AMD)
		name = find(intel, sizeof(intel) / sizeof(intel[0]), event, UMASK(c->select));
	if (!name && s->vendor != PMU_INTEL)
		name = find(amd, sizeof(amd) / sizeof(amd[0]), event, UMASK(c->select));
	if (name)
		snprintf(out, size, "%s", name);
	else if (event > 0xff)
		snprintf(out, size, "r%x%02x%02x", event >> 8, UMASK(c->select), event & 0xff);
	else
		snprintf(out, size, "r%02x%02x", UMASK(c->select), event);
}

static const char *who(bool user, bool kernel)
{
	return user && kernel ? "user+kernel" : user ? "user" : kernel ? "kernel" : "neither";
}

void pmu_event_mode(const struct pmu_state *s, const struct pmu_counter *c, char *out, size_t size)
{
	uint64_t sel = c->select;
	char cmask[16] = "";

	out[0] = '\0';
	if (!in_use(c))
		return;
	if (c->fixed) {
		snprintf(out, size, "%s%s", who(sel & FIXED_USR, sel & FIXED_OS),
			 sel & FIXED_PMI ? " int" : "");
		return;
	}
	if (CMASK(sel))
		snprintf(cmask, sizeof(cmask), " cmask=%u", CMASK(sel));
	snprintf(out, size, "%s%s%s%s%s%s%s", who(sel & SEL_USR, sel & SEL_OS),
		 sel & SEL_INT ? " int" : "", sel & SEL_EDGE ? " edge" : "", cmask,
		 sel & SEL_INV ? " inv" : "",
		 s->vendor == PMU_AMD && sel & AMD_GUEST ? " guest-only" : "",
		 s->vendor == PMU_AMD && sel & AMD_HOST ? " host-only" : "");
}

/* What the guest set stands against it. */
static const char *own_doing(const struct pmu_state *s, const struct pmu_counter *c)
{
	bool on = c->fixed ? (c->select & (FIXED_OS | FIXED_USR)) != 0 : (c->select & SEL_EN) != 0;

	if (!in_use(c) || c->enabled)
		return NULL;
	if (!on)
		return "the guest switched it off";
	return s->has_global_ctrl ? "off by the guest's global control" : NULL;
}

static const char *no_event(const struct pmu_state *s, const struct pmu_counter *c)
{
	if (is_host_event(s, c))
		return "does not count: the host does not allow it (kvm.soft_pmu_events, or the "
		       "VM's event filter)";
	if (s->soft)
		return "does not count: clocks stand for cycles of user+kernel alone; or it is "
		       "filtered";
	return "does not count: no perf event is behind it (filtered, or this CPU lacks it)";
}

static const char *hosts_doing(const struct pmu_state *s, const struct pmu_counter *c)
{
	switch ((enum pmu_event)c->event) {
	case PMU_EVENT_NONE:
		return no_event(s, c);
	case PMU_EVENT_ERROR:
		return "does not count: the host uses the PMU";
	case PMU_EVENT_OFF:
	case PMU_EVENT_GONE:
		return "does not count: its perf event is off";
	default:
		return NULL;
	}
}

void pmu_note(const struct pmu_state *s, const struct pmu_counter *c, double running, char *out,
	      size_t size)
{
	const char *why = NULL;

	out[0] = '\0';
	if (c->refused)
		why = "does not count: the guest got #GP, this VM has no such counter";
	else if (!s->enabled)
		why = in_use(c) ? "does not count: KVM gives this guest no PMU" : NULL;
	else if (!c->enabled)
		why = own_doing(s, c);
	else
		why = hosts_doing(s, c);
	if (why)
		snprintf(out, size, "%s", why);
	else if (c->enabled && running >= 0 && running < WHOLE)
		snprintf(out, size,
			 "counts for %.0f%% of the time: it shares a counter of the host",
			 100 * running);
	else if (c->enabled && s->inferred)
		snprintf(out, size, "inferred: whether it counts only the kernel knows");
}

bool pmu_wrong(const struct pmu_state *s, const struct pmu_counter *c, double running)
{
	return c->refused || (c->enabled && (!s->enabled || hosts_doing(s, c) ||
					     (running >= 0 && running < WHOLE)));
}

static void count_words(char *out, size_t size, unsigned n, unsigned width, const char *what)
{
	if (width)
		snprintf(out, size, "%u %s of %u bits", n, what, width);
	else
		snprintf(out, size, "%u %s", n, what);
}

void pmu_summary(const struct pmu_state *s, char *out, size_t size)
{
	char gp[48], fixed[48] = "";

	if (s->inferred && s->accesses && s->refused == s->accesses) {
		snprintf(out, size, "the guest tries to use a PMU, and gets #GP each time");
		return;
	}
	if (s->inferred && s->enabled) {
		snprintf(out, size, "inferred from %" PRIu64 " accesses", s->accesses);
		return;
	}
	if (!s->enabled || (!s->inferred && !s->version && !s->gp)) {
		snprintf(out, size, "off: KVM gives this guest no PMU");
		return;
	}
	count_words(gp, sizeof(gp), s->gp, s->gp_width, s->gp == 1 ? "counter" : "counters");
	if (s->fixed)
		count_words(fixed, sizeof(fixed), s->fixed, s->fixed_width, "fixed");
	snprintf(out, size, "%sversion %u, %s%s%s", s->soft ? "soft, " : "", s->version, gp,
		 fixed[0] ? ", " : "", fixed);
}
