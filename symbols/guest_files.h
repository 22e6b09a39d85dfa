// SPDX-License-Identifier: GPL-2.0-only
/* Which files speak of one guest's kernel: options, its folder, its mounted root, its VMM. */
#ifndef KVMTOP_GUEST_FILES_H
#define KVMTOP_GUEST_FILES_H

#include "symbols.h"

enum found_file {
	FOUND_KALLSYMS,
	FOUND_MODULES,
	FOUND_VMLINUX,
	FOUND_NOTES, /* /sys/kernel/notes */
	FOUND_VMCOREINFO,
	FOUND_NR,
};

enum found_where {
	WHERE_VM, /* options for this VM, and its folder */
	WHERE_MOUNT, /* its root, mounted here */
	WHERE_ALL, /* options for all guests */
	WHERE_KERNEL, /* what the VMM was told to boot */
	WHERE_NR,
};

struct guest_found {
	int fd[FOUND_NR]; /* -1: none */
	char name[FOUND_NR][SYMBOLS_TEXT]; /* for messages */
	bool booted; /* vmlinux is the file that the VMM boots */
	bool own[FOUND_NR]; /* it is of the VM's folder, as guest-symbols makes it */
	char why[SYMBOLS_TEXT]; /* something that was asked for and cannot be had; "" */
};

/* Looks in one place. True when there is kallsyms or vmlinux; close it in any case. */
bool guest_files_find(const struct sysroot *root, const struct guest_files *files,
		      const struct guest_vm *vm, enum found_where where, struct guest_found *out);
void guest_found_close(struct guest_found *f);

/* The first bytes, 1 KiB are enough, are those of a bzImage: what is booted, without symbols. */
bool guest_is_boot_image(const char *data, size_t len);
/* The VMM was told to boot the kernel with "nokaslr". */
bool guest_has_nokaslr(const struct sysroot *root, pid_t pid);

#endif
