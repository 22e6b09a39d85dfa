// SPDX-License-Identifier: GPL-2.0-only
/*
 * Offsets of guests that run on this host (merge.h): where a -G has the name of a VM, debugfs knows
 * the offsets of its vCPUs, and which of them has which number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "inventory.h"
#include "merge.h"
#include "sysroot.h"
#include "tsc_debugfs.h"
#include "vms.h"

#define DISCOVERY_NS (3 * NS_PER_S) /* a thousand VMs take less */
#define PAUSE_NS (5 * NS_PER_MS)

static bool is_named(const struct inv_vm *vm, const char *name)
{
	return strcmp(vm->name, name) == 0 || (vm->uuid && strcmp(vm->uuid, name) == 0) ||
	       (vm->title && strcmp(vm->title, name) == 0);
}

/* NULL: none, or several. */
static const struct inv_vm *find_vm(struct inventory *inv, const char *name)
{
	const struct inv_vm *found = NULL;

	for (const struct inv_vm *vm = inventory_first(inv); vm; vm = vm->next) {
		if ((vm->flags & (INV_GONE | INV_PROVISIONAL)) || !is_named(vm, name))
			continue;
		if (found)
			return NULL;
		found = vm;
	}
	return found;
}

static int put_given(struct merge_input *g, const struct merge_given *one)
{
	struct merge_given *more = reallocarray(g->given, g->ngiven + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	g->given = more;
	more[g->ngiven++] = *one;
	return 0;
}

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
	rc = put_given(g, &offset);
	if (!rc && scale.scale.ratio)
		rc = put_given(g, &scale);
	return rc;
}

static void discover(void *vms)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int64_t end = clock_mono_ns() + DISCOVERY_NS, now;
	unsigned done, all;

	do {
		now = clock_mono_ns();
		collector_vms.tick(vms, now, now);
		vms_progress(vms, &done, &all);
		if (done < all)
			nanosleep(&pause, NULL);
	} while (done < all && now < end);
}

static int take_all(struct merge *m, const struct sysroot *root, struct inventory *inv)
{
	int rc = 0;

	for (size_t i = 0; i < m->nguests && !rc; i++) {
		const struct inv_vm *vm = m->guest[i].named ? find_vm(inv, m->guest[i].name) : NULL;

		for (size_t k = 0; vm && k < vm->nvcpu && !rc; k++)
			rc = take_vcpu(root, &m->guest[i], vm->vcpu[k]);
	}
	return rc;
}

int merge_live(struct merge *m, const char *dir)
{
	const struct collector_config config = {.delay_s = 1};
	struct collector_env env = {.config = &config};
	struct sysroot *root = NULL;
	void *vms = NULL;
	int rc = sysroot_open(dir, &root);

	if (rc < 0)
		return rc;
	env.root = root;
	env.inv = inventory_new();
	rc = env.inv ? collector_vms.open(&env, &vms) : -ENOMEM;
	if (!rc) {
		discover(vms);
		rc = take_all(m, root, env.inv);
	}
	collector_vms.close(vms);
	inventory_free(env.inv);
	sysroot_close(root);
	return rc;
}
