// SPDX-License-Identifier: GPL-2.0-only
/* ELF files of any class and byte order, written by libelf, for tests. */
#ifndef KVMTOP_MADE_ELF_H
#define KVMTOP_MADE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct made_symbol {
	const char *name;
	uint64_t value, size;
	int type, bind; /* STT_…, STB_… */
	bool absolute; /* not in .text */
};

struct made_elf {
	int class, data, machine; /* ELFCLASS…, ELFDATA…, EM_… */
	uint64_t text, text_size; /* .text: where it is linked, at offset 0x1000 of the file */
	const uint8_t *code; /* its beginning; NULL: zeros */
	size_t code_len;
	const struct made_symbol *symbol;
	size_t n;
	bool dynamic; /* in .dynsym, not .symtab */
	bool compressed; /* the symbols' strings */
	const uint8_t *build_id; /* 8 bytes; NULL: none */
	const char *debug_link; /* NULL: none */
	uint32_t debug_crc;
};

/* Writes it into a new file; the descriptor. */
int made_elf(const struct made_elf *m, const char *path);

#endif
