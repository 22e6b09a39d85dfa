// SPDX-License-Identifier: GPL-2.0-only
/* Finding one VM (vm_find.h): the collector `vms` alone, without an engine. */
#include "vm_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "inventory.h"
#include "sysroot.h"
#include "vms.h"

#define DISCOVERY_NS (3 * NS_PER_S) /* a thousand VMs take less */
#define PAUSE_NS (5 * NS_PER_MS)

struct vm_find {
	struct collector_config config;
	struct collector_env env;
	struct sysroot *root;
	void *vms;
};

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

int vm_find_open(const char *dir, struct vm_find **out)
{
	struct vm_find *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->config.delay_s = 1;
	f->env.config = &f->config;
	rc = sysroot_open(dir, &f->root);
	f->env.root = f->root;
	if (!rc) {
		f->env.inv = inventory_new();
		rc = f->env.inv ? collector_vms.open(&f->env, &f->vms) : -ENOMEM;
	}
	if (rc) {
		vm_find_close(f);
		return rc;
	}
	discover(f->vms);
	*out = f;
	return 0;
}

void vm_find_close(struct vm_find *f)
{
	if (!f)
		return;
	if (f->vms)
		collector_vms.close(f->vms);
	inventory_free(f->env.inv);
	sysroot_close(f->root);
	free(f);
}

const struct sysroot *vm_find_root(const struct vm_find *f)
{
	return f->root;
}

static bool is_called(const struct inv_vm *vm, const char *name)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", vm->pid);
	return strcmp(vm->name, name) == 0 || (vm->uuid && strcmp(vm->uuid, name) == 0) ||
	       (vm->title && strcmp(vm->title, name) == 0) || strcmp(pid, name) == 0;
}

const struct inv_vm *vm_find(const struct vm_find *f, const char *name, unsigned *n)
{
	const struct inv_vm *found = NULL;

	*n = 0;
	for (const struct inv_vm *vm = inventory_first(f->env.inv); vm; vm = vm->next) {
		if ((vm->flags & (INV_GONE | INV_PROVISIONAL)) || !is_called(vm, name))
			continue;
		++*n;
		found = vm;
	}
	return *n == 1 ? found : NULL;
}
