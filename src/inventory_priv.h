// SPDX-License-Identifier: GPL-2.0-only
/* The inventory's insides, between inventory.c and inventory_gone.c (what ends). */
#ifndef KVMTOP_INVENTORY_PRIV_H
#define KVMTOP_INVENTORY_PRIV_H

#include "inventory.h"
#include "inventory_hash.h"

#define MAX_OBSERVERS 8
#define container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct vm_node {
	struct inv_vm vm;
	struct inv_link by_id, by_pid;
	size_t vcpu_room;
};

struct thread_node {
	struct inv_thread t;
	struct inv_link by_tid;
};

struct inventory {
	struct inv_hash tids, ended, ids, pids;
	struct inv_vm *first, **tail;
	uint32_t last_vm, last_vcpu;
	size_t nvm, nvcpu; /* living */
	size_t ngone; /* marked and not swept yet */
	uint64_t generation;
	pid_t *unknown; /* a ring: [head, head + n) modulo room */
	size_t unknown_head, unknown_n, unknown_room;
	void (*ask)(void *ctx, struct inv_thread *t);
	void *ask_ctx;
	struct inv_observer observer[MAX_OBSERVERS];
	size_t nobserver;
};

static inline struct vm_node *node_of_vm(struct inv_vm *vm)
{
	return container(vm, struct vm_node, vm);
}

/* The living VMs of one process, one after the other; NULL starts. */
struct inv_vm *inventory_next_of_pid(const struct inventory *inv, pid_t pid, struct inv_vm *vm);
/* Another vCPU of the thread's process that runs on it, NULL none. */
struct inv_vcpu *inventory_other_vcpu(const struct inventory *inv, const struct inv_thread *t);
/* A process's VM is found: what its threads did that ended before is its. */
void inventory_adopt(struct inventory *inv, struct inv_vm *vm);
/* Frees it and all that hangs on it; it must be out of the list. */
void inventory_free_vm(struct inventory *inv, struct inv_vm *vm);

#endif
