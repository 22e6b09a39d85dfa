// SPDX-License-Identifier: GPL-2.0-only
/*
 * The visible table of collectors, in the order in which they tick: the events up
 * to the watermark first, while those who made them are still known (vms takes out what has
 * ended); then who is there, what their threads did, and the host.
 */
#include <stdarg.h>
#include <stdio.h>

#include "collector.h"
#include "guest_sampling.h"
#include "kvm_events.h"
#include "vcpu_events.h"
#include "vms.h"
#include "sched.h"
#include "collector_tsc.h"
#include "waits.h"
#include "vpmu.h"
#include "host_cpu.h"

const struct collector *const collectors[] = {
	&collector_kvm_events, /* before vms takes out what has ended */
	&collector_vcpu_events, /* the same */
	&collector_guest_sampling, /* the same */
	&collector_vms, /* before those that read what it finds */
	&collector_sched,
	&collector_waits, /* after vms: it watches what that finds */
	&collector_host_cpu,
	&collector_tsc,
	&collector_vpmu,
	NULL,
};

void probe_add(struct probes *p, const char *source, int state, const char *mend, const char *why,
	       ...)
{
	struct probe *row;
	va_list ap;

	if (p->n >= sizeof(p->p) / sizeof(p->p[0]))
		return;
	row = &p->p[p->n++];
	snprintf(row->source, sizeof(row->source), "%s", source);
	row->state = state;
	va_start(ap, why);
	vsnprintf(row->why, sizeof(row->why), why, ap);
	va_end(ap);
	snprintf(row->mend, sizeof(row->mend), "%s", mend ? mend : "");
}
