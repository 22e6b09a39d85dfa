// SPDX-License-Identifier: GPL-2.0-only
/* One VM of this host by what its user calls it, for commands that need nothing else of a host. */
#ifndef KVMTOP_VM_FIND_H
#define KVMTOP_VM_FIND_H

struct inv_vm;
struct sysroot;
struct vm_find;

/* Looks for all VMs below dir (NULL: this host) once, for three seconds at most. 0 or -errno. */
int vm_find_open(const char *dir, struct vm_find **out);
void vm_find_close(struct vm_find *f); /* NULL is fine */
const struct sysroot *vm_find_root(const struct vm_find *f);
/*
 * The one of this name, UUID, title or process number; it belongs to f. NULL: *n is 0, or how many
 * there are.
 */
const struct inv_vm *vm_find(const struct vm_find *f, const char *name, unsigned *n);

#endif
