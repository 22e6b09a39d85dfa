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

static void fetch_cells(const struct ex_vcpu *v)
{
	const struct ex_cell *c;

	for (int k = 0; k < KIND_NR; k++)
		EX_EACH(&v->set.kind[k], c)
	fetch(c, sizeof(*c));
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
		if (!v || !v->touched)
			continue;
		for (int k = 0; k < KIND_NR; k++)
			fetch(v->set.kind[k].slot, v->set.kind[k].n * sizeof(struct ex_slot));
		if (v->hist.used)
			fetch(v->hist.octave,
			      sizeof(*v->hist.octave) * (size_t)__builtin_popcountll(v->hist.used));
	}
	for (size_t i = 0; i < vm->nvcpu; i++) {
		v = tables(vm->vcpu[i]);
		if (v && v->touched)
			fetch_cells(v);
	}
}
