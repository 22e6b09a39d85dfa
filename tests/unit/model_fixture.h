// SPDX-License-Identifier: GPL-2.0-only
/* A model over an inventory of made VMs, and short ways to feed it. For the model's tests. */
#ifndef KVMTOP_TESTS_MODEL_FIXTURE_H
#define KVMTOP_TESTS_MODEL_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "inventory.h"
#include "kvm_names.h"
#include "model.h"

#define US 1000LL
#define MS (1000 * US)
#define SEC (1000 * MS)

struct fixture {
	struct inventory *inv;
	struct kvm_names *names;
	struct model *m;
	const struct sink *sink;
};

static inline struct fixture fixture_new(unsigned vcpu_keys, unsigned vm_keys)
{
	struct model_config c = {
		.node = "node17",
		.kernel = "6.1",
		.boot_id = "b",
		.root = true,
		.clk_tck = 100,
		.vcpu_keys = vcpu_keys,
		.vm_keys = vm_keys,
	};
	struct fixture f = {.inv = inventory_new(), .names = kvm_names_new()};

	f.m = model_new(&c, f.inv, f.names);
	f.sink = model_sink(f.m);
	f.sink->kinds(f.sink->ctx, KIND_ALL, true, 0);
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	model_free(f->m);
	inventory_free(f->inv);
	kvm_names_free(f->names);
}

/* A VM of n vCPUs with the threads pid+1 … pid+n. */
static inline struct inv_vm *fixture_vm(struct fixture *f, const char *name, pid_t pid, int n)
{
	struct inv_vm *vm = inventory_add_vm(f->inv, pid, 1, "k");

	inventory_set(&vm->name, name);
	inventory_add_thread(f->inv, vm, pid, pid, 1, ROLE_VMM);
	for (int i = 0; i < n; i++) {
		struct inv_vcpu *v = inventory_add_vcpu(f->inv, vm, i);

		inventory_set_thread(
			f->inv, v,
			inventory_add_thread(f->inv, vm, pid, pid + 1 + i, 1, ROLE_VCPU));
	}
	return vm;
}

static inline void feed(struct fixture *f, struct sample s)
{
	f->sink->samples(f->sink->ctx, &s, 1);
}

static inline void ev_exit(struct fixture *f, int64_t t, int tid, int vcpu, uint64_t reason)
{
	feed(f, (struct sample){.time = t,
				.tid = tid,
				.vcpu_id = vcpu,
				.type = EV_EXIT,
				.key = reason,
				.isa = ISA_SVM});
}

static inline void ev_entry(struct fixture *f, int64_t t, int tid, int vcpu)
{
	feed(f, (struct sample){.time = t, .tid = tid, .vcpu_id = vcpu, .type = EV_ENTRY});
}

/* An event without a vCPU's number. */
static inline void ev(struct fixture *f, int64_t t, int tid, enum ev_type type, uint64_t key,
		      enum ev_dir dir)
{
	feed(f, (struct sample){.time = t,
				.tid = tid,
				.vcpu_id = -1,
				.type = (uint8_t)type,
				.key = key,
				.dir = (uint8_t)dir});
}

static inline struct snapshot *commit(struct fixture *f, int64_t t)
{
	return model_commit(f->m, t, (struct timespec){0}, false, 1);
}

static inline void commit_drop(struct fixture *f, int64_t t)
{
	snapshot_unref(commit(f, t));
}

static inline const struct snap_vm *find_vm(const struct snapshot *s, const char *name)
{
	for (size_t i = 0; i < s->nvms; i++)
		if (!strcmp(s->vms[i].name, name))
			return &s->vms[i];
	return NULL;
}

/* The row of a kind and name; vcpu: its kvm_id, -1 the VM's; vm NULL: of all VMs together. */
static inline const struct snap_exit *find_row(const struct snapshot *s, const char *vm, int vcpu,
					       enum kvm_kind kind, const char *name)
{
	for (size_t i = 0; i < s->nexits; i++) {
		const struct snap_exit *e = &s->exits[i];

		if (e->kind != kind || strcmp(e->name, name) || (e->vm == SNAP_NO_VM) != !vm ||
		    (vm && strcmp(s->vms[e->vm].name, vm)))
			continue;
		if (vcpu < 0 ? e->vcpu < 0 : e->vcpu >= 0 && s->vcpus[e->vcpu].kvm_id == vcpu)
			return e;
	}
	return NULL;
}

#endif
