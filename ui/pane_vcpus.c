// SPDX-License-Identifier: GPL-2.0-only
/* Pane 1: the vCPUs of the selected VM, with the columns of the list a level below. */
#include "columns.h"
#include "pane.h"

#include <stdio.h>

static bool open_vcpu(const struct pane_ctx *c, struct view *view)
{
	const struct snap_vcpu *v = pane_selected(c);

	if (!v)
		return false;
	view->vm = c->snap->vms[v->vm].id;
	view->vcpu = v->id;
	view_set_level(view, LEVEL_VCPU);
	view->pane_focus = true;
	return true;
}

static void subtitle(const struct pane_ctx *c, char *out, size_t size)
{
	snprintf(out, size, "%u", c->vm ? c->vm->nvcpu : 0);
}

static void demand(const struct view *v, struct demand *d)
{
	(void)v;
	d->pins = true;
}

static bool missing(const struct pane_ctx *c, char *out, size_t size)
{
	if (c->vm && c->vm->vcpu_n)
		return false;
	snprintf(out, size, "%s",
		 c->vm	   ? "no vCPU of this VM is known yet"
		 : c->host ? "v lists the vCPUs of all VMs"
			   : pane_no_vm(c));
	return true;
}

extern const struct pane pane_vcpus;
const struct pane pane_vcpus = {
	.key = '1',
	.id = "vcpus",
	.title = "vCPUs",
	.help = "the vCPUs of the VM: thread, CPU, pins, CPU time, steal, exits",
	.table = &list_defs[LIST_VM_VCPUS],
	.rows = pane_vcpu_rows,
	.open = open_vcpu,
	.draw = pane_draw_table,
	.subtitle = subtitle,
	.demand = demand,
	.missing = missing,
};
