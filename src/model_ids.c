// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vm_id of each VM: what tells it from all others in figures that outlive this process.
 *
 * A UUID is what the VMM's command line says. Two VMs can claim one: source and target of a
 * migration within the host, a clone, or one that wants to pass for another.
 */
#include <stdlib.h>
#include <string.h>

#include "model_rows.h"

/* pid-starttime, and where a process holds several VMs which of them it is. */
static const char *made_id(struct snapshot *s, const struct inv_vm *vm)
{
	unsigned long long start = vm->start;

	return vm->nth ? snapshot_printf(s, "%d-%llu-%u", (int)vm->pid, start, vm->nth)
		       : snapshot_printf(s, "%d-%llu", (int)vm->pid, start);
}

void model_vm_id(struct commit *c, const struct inv_vm *vm, struct snap_vm *row)
{
	row->vm_id = vm->uuid && vm->uuid[0] ? row->uuid : made_id(c->s, vm);
}

static int by_uuid(const void *a, const void *b)
{
	const struct snap_vm *x = *(struct snap_vm *const *)a, *y = *(struct snap_vm *const *)b;
	int r = strcmp(x->uuid, y->uuid);

	return r ? r : (x->id > y->id) - (x->id < y->id);
}

void model_unique_ids(struct commit *c)
{
	struct snap_vm **with = calloc(c->s->nvms + 1, sizeof(struct snap_vm *));
	size_t n = 0;

	if (!with)
		return;
	for (size_t i = 0; i < c->s->nvms; i++)
		if (c->vms[i].uuid[0])
			with[n++] = &c->vms[i];
	qsort(with, n, sizeof(*with), by_uuid);
	for (size_t i = 1; i < n; i++) {
		const struct inv_vm *vm;

		/* Who was seen first keeps it: no figures of its move to a newcomer. */
		if (strcmp(with[i]->uuid, with[i - 1]->uuid) != 0)
			continue;
		vm = inventory_vm(c->m->inv, with[i]->id);
		if (vm)
			with[i]->vm_id = made_id(c->s, vm);
	}
	free(with);
}
