// SPDX-License-Identifier: GPL-2.0-only
/* View state: what needs no drawing (view.h). */
#include "view.h"

#include <string.h>

void view_init(struct view *v)
{
	memset(v, 0, sizeof(*v));
	v->pane = v->pane_of[LEVEL_HOST] = '1';
	/* Below the host the list shows the vCPUs already. */
	v->pane_of[LEVEL_VM] = v->pane_of[LEVEL_VCPU] = '2';
	v->exit_kind = KIND_VMEXIT;
	v->access_kind = KIND_MMIO;
}

enum list_id view_list(const struct view *v)
{
	if (v->level != LEVEL_HOST)
		return LIST_VM_VCPUS;
	return v->all_vcpus ? LIST_ALL_VCPUS : LIST_VMS;
}

void view_set_level(struct view *v, enum level level)
{
	v->pane_of[v->level] = v->pane;
	memcpy(v->filter_of[v->level], v->filter, sizeof(v->filter));
	if (level > v->level)
		v->filter[0] = '\0';
	else
		memcpy(v->filter, v->filter_of[level], sizeof(v->filter));
	v->level = level;
	v->pane = v->pane_of[level];
	v->pane_filter[0] = '\0';
	v->detail = 0;
}

void view_set_pane(struct view *v, char key)
{
	/* What was chosen stays, whatever is opened; but the list below a VM is pane 1 itself. */
	v->pane = v->pane_of[LEVEL_HOST] = key;
	if (key != '1' || v->level != LEVEL_HOST)
		v->pane_of[LEVEL_VM] = v->pane_of[LEVEL_VCPU] = key;
	v->pane_filter[0] = '\0';
	v->detail = 0;
}

int pane_index(char key)
{
	return key == '0' ? 9 : key - '1';
}

static uint8_t next_of(const uint8_t *kinds, size_t n, uint8_t now, bool back)
{
	for (size_t i = 0; i < n; i++)
		if (kinds[i] == now)
			return kinds[(i + (back ? n - 1 : 1)) % n];
	return kinds[0];
}

bool view_next_kind(struct view *v, bool back)
{
	static const uint8_t exits[] = {KIND_VMEXIT, KIND_USEREXIT, KIND_HALT};
	static const uint8_t access[] = {KIND_MMIO, KIND_IOPORT, KIND_MSR, KIND_HYPERCALL};

	if (v->pane == '2')
		v->exit_kind = next_of(exits, sizeof(exits), v->exit_kind, back);
	else if (v->pane == '3')
		v->access_kind = next_of(access, sizeof(access), v->access_kind, back);
	else
		return false;
	return true;
}

bool view_switch_domain(struct view *v, char key)
{
	unsigned bit = key == 'H'   ? VIEW_HOST
		       : key == 'G' ? VIEW_GUEST
		       : key == 'K' ? VIEW_KERNEL
				    : VIEW_USER;

	v->domains_off ^= (uint8_t)bit;
	return !(v->domains_off & bit);
}

const struct snap_vm *snap_vm_by_id(const struct snapshot *s, uint32_t id)
{
	for (size_t i = 0; id && i < s->nvms; i++)
		if (s->vms[i].id == id)
			return &s->vms[i];
	return NULL;
}

const struct snap_vcpu *snap_vcpu_by_id(const struct snapshot *s, uint32_t id)
{
	for (size_t i = 0; id && i < s->nvcpus; i++)
		if (s->vcpus[i].id == id)
			return &s->vcpus[i];
	return NULL;
}
