// SPDX-License-Identifier: GPL-2.0-only
/* Which VMs and vCPUs are wanted: -p, -M, --vcpu. */
#ifndef KVMTOP_FILTER_H
#define KVMTOP_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "snapshot.h"

struct filter;

struct filter *filter_new(void); /* lets everything through; NULL: no memory */
void filter_free(struct filter *f);

/*
 * Add what is wanted: a list of process ids "23,42"; a VM's name, title, UUID or vm_id, or a
 * /regular expression/ over its name; a list of vCPU numbers "0,3", KVM's own ids as "id:5".
 * 0, -ENOMEM, or -EINVAL with one line in err: what, why, how to mend it.
 */
int filter_add_pids(struct filter *f, const char *list, char *err, size_t size);
int filter_add_vm(struct filter *f, const char *spec, char *err, size_t size);
int filter_add_vcpus(struct filter *f, const char *list, char *err, size_t size);

bool filter_has_vms(const struct filter *f); /* -p or -M was given */
bool filter_has_vcpus(const struct filter *f);
/* A VM must be of a wanted process and of a wanted name, where both were given. */
bool filter_vm(const struct filter *f, const struct snap_vm *vm);
bool filter_vcpu(const struct filter *f, const struct snap_vcpu *v); /* looks at the vCPU only */

#endif
