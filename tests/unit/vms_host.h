// SPDX-License-Identifier: GPL-2.0-only
/* The collector `vms` over a made tree, tick by tick. For the tests of discovery. */
#ifndef KVMTOP_TESTS_VMS_HOST_H
#define KVMTOP_TESTS_VMS_HOST_H

#include "vms_tree.h"

static inline int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));

	snprintf(h->dir, sizeof(h->dir), "/tmp/kvmtop-vms-XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	assert_int_equal(chmod(h->dir, 0755), 0);
	put(h, "", 0, "proc/keep");
	process(h, 123, "sshd", 100, 0, "sshd -D", "/system.slice/ssh.service");
	h->now = clock_mono_ns();
	*state = h;
	return 0;
}

static inline int teardown(void **state)
{
	struct host *h = *state;

	collector_vms.close(h->vms);
	inventory_free(h->inv);
	sysroot_close(h->root);
	tree_remove(h->dir);
	free(h);
	return 0;
}

static inline void start(struct host *h, const char *dir)
{
	const struct collector_env env = {0};
	struct collector_env e = env;

	assert_int_equal(sysroot_open(dir ? dir : h->dir, &h->root), 0);
	h->inv = inventory_new();
	e.root = h->root;
	e.inv = h->inv;
	assert_int_equal(collector_vms.open(&e, &h->vms), 0);
}

/* One interval later. */
static inline void tick(struct host *h)
{
	inventory_sweep(h->inv);
	h->now += NS_PER_S;
	assert_int_equal(collector_vms.tick(h->vms, h->now, h->now - 5 * NS_PER_MS), 0);
}

static inline struct inv_vm *only_vm(struct host *h)
{
	assert_int_equal(inventory_nvm(h->inv), 1);
	return inventory_first(h->inv);
}

#endif
