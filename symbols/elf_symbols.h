// SPDX-License-Identifier: GPL-2.0-only
/* Symbols of ELF files: programs, libraries, vmlinux; of any class, byte order and condition. */
#ifndef KVMTOP_ELF_SYMBOLS_H
#define KVMTOP_ELF_SYMBOLS_H

#include "notes.h"
#include "symtab.h"

enum elf_space {
	ELF_ADDRESSES, /* as linked: vmlinux */
	ELF_OFFSETS, /* in the file: what a process has mapped of it */
};

struct elf_facts {
	struct build_id id;
	int machine; /* EM_… */
	char debug_name[256]; /* .gnu_debuglink; "" none */
	uint32_t debug_crc;
	/* about symbols */
	size_t symbols; /* of code, added */
	bool full; /* from a full table, not only what is exported */
	uint64_t stext; /* the kernel's, as linked; 0: none */
};

struct elf_file;

/*
 * From a descriptor (not closed; read as needed, never mapped: the file may shrink) or from
 * memory, which must stay. 0, -ENOMEM, -EBADMSG: no ELF file, or a broken one.
 */
int elf_open_fd(int fd, struct elf_file **out);
int elf_open_memory(const void *data, size_t len, struct elf_file **out);
void elf_close(struct elf_file *e);

/* All of the facts but those about symbols, which are 0. */
void elf_read_facts(struct elf_file *e, struct elf_facts *facts);
/*
 * Adds the code's symbols under a module, moved by bias. `layout`: the file whose segments count
 * for ELF_OFFSETS (a debug file has none of its own), NULL: e itself. 0, -ENOMEM, -E2BIG;
 * -ENODATA: no symbols. Sets the facts about symbols.
 */
int elf_add_symbols(struct elf_file *e, const struct elf_file *layout, enum elf_space space,
		    uint64_t bias, unsigned module, struct symbuild *b, struct elf_facts *facts);
/*
 * The packed file of symbols inside of a stripped one (.gnu_debugdata: what Fedora and its kin
 * ship). The data belong to e; 0, -ENOENT or -EBADMSG.
 */
int elf_embedded(struct elf_file *e, const void **data, size_t *len);
/* Only the fact stext; 0, or -ENODATA when it has no symbols. */
int elf_find_kernel(struct elf_file *e, struct elf_facts *facts);
/* What stands at an address of code as linked: bytes that follow (> 0), -ENOENT or -EBADMSG. */
int elf_code_at(struct elf_file *e, uint64_t addr, const uint8_t **out);

#endif
