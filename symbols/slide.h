// SPDX-License-Identifier: GPL-2.0-only
/*
 * How far KASLR moved a kernel from where its vmlinux is linked. Said for sure or not at all: with
 * a wrong slide every name is wrong.
 */
#ifndef KVMTOP_SLIDE_H
#define KVMTOP_SLIDE_H

#include "elf_symbols.h"

/* What is known of the running kernel. */
struct slide_facts {
	uint64_t stext; /* where its _stext is, 0: not known */
	const struct vmcoreinfo *vmcoreinfo; /* NULL: none */
	bool fixed; /* it does not move: told not to, or booted without what would move it */
	const struct symbols_evidence *evidence; /* exits of the guest */
	size_t nevidence;
};

/*
 * 0 and the slide; -ENOENT where nothing says it; -EXDEV where what is known contradicts this
 * vmlinux: another kernel.
 */
int slide_find(struct elf_file *vmlinux, const struct elf_facts *elf,
	       const struct slide_facts *known, uint64_t *slide);

#endif
