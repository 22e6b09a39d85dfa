// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of a VM's vCPUs, asked for before its rows are made.
 *
 * Of 16,000 vCPUs they lie all over some fifty megabytes, each behind some pointers. Followed one
 * vCPU after the other, a commit waits for memory half of its time; here each step is made for all
 * vCPUs of a VM before the next one needs what it brings.
 */
#include "fetch.h"
#include "model_rows.h"

static const struct ex_vcpu *tables(const struct inv_vcpu *iv)
{
	const struct model_vcpu *v = iv->cookie[INV_COOKIE_MODEL];

	return v ? &v->ex : NULL;
}

void model_fetch_vm(const struct inv_vm *vm)
{
	const struct ex_vcpu *v;

	for (size_t i = 0; i < vm->nvcpu; i++)
		fetch(vm->vcpu[i], sizeof(*vm->vcpu[i]));
	for (size_t i = 0; i < vm->nvcpu; i++) {
		v = tables(vm->vcpu[i]);
		if (v)
			fetch(v, sizeof(struct model_vcpu));
		if (vm->vcpu[i]->thread)
			fetch(vm->vcpu[i]->thread, sizeof(*vm->vcpu[i]->thread));
	}
	for (size_t i = 0; i < vm->nvcpu; i++) {
		const struct inv_thread *t = vm->vcpu[i]->thread;

		v = tables(vm->vcpu[i]);
		if (t && t->cookie[INV_COOKIE_MODEL])
			fetch(t->cookie[INV_COOKIE_MODEL], sizeof(struct model_thread));
		if (v && v->touched)
			exits_fetch_tables(v);
	}
	for (size_t i = 0; i < vm->nvcpu; i++) {
		v = tables(vm->vcpu[i]);
		if (v && v->touched)
			exits_fetch_cells(v, sizeof(struct ex_cell));
	}
}
