// SPDX-License-Identifier: GPL-2.0-only
/*
 * Offsets of guests that run on this host (merge.h): where a -G has the name of a VM, debugfs knows
 * the offsets of its vCPUs, and which of them has which number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inventory.h"
#include "merge.h"
#include "tsc_debugfs.h"
#include "vm_find.h"

/* Before the user's, which count more. */
static int put_map(struct merge_input *g, unsigned cpu, unsigned vcpu)
{
	struct merge_map *more = reallocarray(g->map, g->nmaps + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	g->map = more;
	memmove(more + 1, more, g->nmaps++ * sizeof(*more));
	more[0] = (struct merge_map){cpu, vcpu};
	return 0;
}

static int take_vcpu(const struct sysroot *root, struct merge_input *g, const struct inv_vcpu *v)
{
	struct merge_given offset = {.vcpu = v->kvm_id, .live = true};
	struct merge_given scale = {.vcpu = v->kvm_id, .live = true, .is_scale = true};
	int rc;

	if (v->kvm_id < 0 || v->index < 0)
		return 0;
	rc = put_map(g, (unsigned)v->index, (unsigned)v->kvm_id);
	if (rc || tsc_debugfs_read(root, v->vm->key, v->kvm_id, &offset.offset, &scale.scale) < 0)
		return rc;
	rc = merge_add_given(g, &offset);
	if (!rc && scale.scale.ratio)
		rc = merge_add_given(g, &scale);
	return rc;
}

int merge_live(struct merge *m, const char *dir)
{
	struct vm_find *f;
	int rc = vm_find_open(dir, &f);
	unsigned several;

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < m->nguests && !rc; i++) {
		struct merge_input *g = &m->guest[i];
		const struct inv_vm *vm = g->named ? vm_find(f, g->name, &several) : NULL;

		for (size_t k = 0; vm && k < vm->nvcpu && !rc; k++)
			rc = take_vcpu(vm_find_root(f), g, vm->vcpu[k]);
	}
	vm_find_close(f);
	return rc;
}
