// SPDX-License-Identifier: GPL-2.0-only
/* TSC offsets of intervals that nobody could take (tsc_late.h). */
#include "tsc_late.h"

#include <errno.h>

struct late {
	struct snapshot *s;
	struct snap_vm *vms;
	struct snap_tsc_event *events;
};

/* From the event `first` on; a VM's events mostly stand together. */
static void take(struct late *l, const struct snapshot *from, size_t first)
{
	for (size_t i = first; i < from->ntsc_events; i++) {
		const struct snap_tsc_event *e = &from->tsc_events[i];
		const struct snap_vm *vm = &from->vms[e->vm];

		if (i == first || e->vm != e[-1].vm)
			l->vms[l->s->nvms++] =
				(struct snap_vm){.name = snapshot_str(l->s, vm->name),
						 .vm_id = snapshot_str(l->s, vm->vm_id)};
		l->events[l->s->ntsc_events] = *e;
		l->events[l->s->ntsc_events++].vm = (uint32_t)l->s->nvms - 1;
	}
}

int tsc_late_add(struct snapshot **late, const struct snapshot *s)
{
	size_t before = *late ? (*late)->ntsc_events : 0, n = before + s->ntsc_events;
	size_t first = n > TSC_LATE_MOST ? n - TSC_LATE_MOST : 0;
	struct late l = {0};

	if (!s->ntsc_events)
		return 0;
	n -= first;
	l.s = snapshot_new();
	if (!l.s)
		return -ENOMEM;
	l.vms = snapshot_alloc(l.s, n, sizeof(*l.vms));
	l.events = snapshot_alloc(l.s, n, sizeof(*l.events));
	if (!l.vms || !l.events) {
		snapshot_unref(l.s);
		return -ENOMEM;
	}
	if (first < before)
		take(&l, *late, first);
	take(&l, s, first > before ? first - before : 0);
	l.s->vms = l.vms;
	l.s->tsc_events = l.events;
	snapshot_unref(*late);
	*late = l.s;
	return 0;
}
