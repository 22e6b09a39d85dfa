// SPDX-License-Identifier: GPL-2.0-only
/*
 * A figure that knows whether it is known.
 *
 * Every derived figure of a snapshot is a struct value, so that "not known"
 * can never be drawn, sorted or exported as 0 (docs/metrics.md, "Known or not").
 */
#ifndef KVMTOP_VALUE_H
#define KVMTOP_VALUE_H

#include <stdbool.h>
#include <stdint.h>

enum value_state {
	VALUE_PENDING, /* no baseline yet, or the counter went backwards: "-" */
	VALUE_KNOWN,
	VALUE_PARTIAL, /* known, but a part is missing or guessed: "~" */
	VALUE_NA, /* cannot be had; .why says the reason: "n/a" */
};

enum value_why {
	WHY_NONE,
	WHY_NO_ENTRY_EXIT, /* this KVM fires no kvm_entry/kvm_exit */
	WHY_NO_EVENTS, /* tracepoints cannot be opened */
	WHY_NOT_OPEN, /* this kind of event is not collected now */
	WHY_NO_SCHEDSTAT,
	WHY_NO_CGROUP,
	WHY_NO_SOURCE, /* the kernel does not give it */
	WHY_NO_RIGHT, /* not root, or a capability is missing */
	WHY_NOT_ASKED, /* costly, only read for rows that are shown */
	WHY_SHARED, /* the thread runs several vCPUs */
	WHY_LOST, /* partial: events were lost */
	WHY_UNWATCHED, /* partial: a CPU was not watched for a while */
	WHY_NO_SLOW, /* nobody asked for single slow exits */
	WHY_NO_SWITCHES, /* nobody told when threads had no CPU */
	WHY_BLIND, /* partial: of some exits that was not seen */
	WHY_NOT_KEPT, /* longer intervals of a recording have it of VMs only */
	WHY_NO_LOOK, /* VMs could not be looked for */
	WHY_NR
};

struct value {
	double v;
	uint8_t state; /* enum value_state */
	uint8_t why; /* enum value_why */
};

/* The reason in words, for screens and for the JSON "sources". Never NULL. */
const char *value_why_text(enum value_why why);

static inline struct value value_known(double v)
{
	return (struct value){.v = v, .state = VALUE_KNOWN};
}

static inline struct value value_partial(double v, enum value_why why)
{
	return (struct value){.v = v, .state = VALUE_PARTIAL, .why = (uint8_t)why};
}

static inline struct value value_na(enum value_why why)
{
	return (struct value){.state = VALUE_NA, .why = (uint8_t)why};
}

static inline struct value value_pending(void)
{
	return (struct value){.state = VALUE_PENDING};
}

/* True where .v may be used. */
static inline bool value_has(struct value x)
{
	return x.state == VALUE_KNOWN || x.state == VALUE_PARTIAL;
}

#endif
