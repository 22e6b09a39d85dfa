// SPDX-License-Identifier: GPL-2.0-only
/* Included by the tests that make ELF files (made_elf.h). */
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "made_elf.h"

#define TEXT_OFFSET 0x1000

enum { TEXT = 1, SYMTAB, STRTAB, SHSTRTAB, NOTE, LINK };

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab\0.note.gnu.build-id\0"
				    ".gnu_debuglink";

static uint32_t name_of(const char *name)
{
	for (size_t i = 1; i < sizeof(section_names); i += strlen(section_names + i) + 1)
		if (strcmp(section_names + i, name) == 0)
			return (uint32_t)i;
	fail();
	return 0;
}

static Elf_Scn *add_section(Elf *elf, const char *name, uint32_t type, void *data, size_t len,
			    Elf_Type kind, GElf_Shdr *h)
{
	Elf_Scn *scn = elf_newscn(elf);
	Elf_Data *d = elf_newdata(scn);

	assert_non_null(d);
	d->d_buf = data;
	d->d_size = len;
	d->d_type = kind;
	d->d_align = strcmp(name, ".text") == 0 ? TEXT_OFFSET : 8;
	d->d_version = EV_CURRENT;
	assert_non_null(gelf_getshdr(scn, h));
	h->sh_name = name_of(name);
	h->sh_type = type;
	return scn;
}

static void add_text(Elf *elf, const struct made_elf *m, void *code)
{
	GElf_Shdr h;
	Elf_Scn *scn = add_section(elf, ".text", SHT_PROGBITS, code, m->text_size, ELF_T_BYTE, &h);

	h.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	h.sh_addr = m->text;
	h.sh_addralign = TEXT_OFFSET;
	assert_true(gelf_update_shdr(scn, &h));
}

/* Symbols and their strings; the strings are returned for freeing, as all data of the sections. */
static void add_symbols(Elf *elf, const struct made_elf *m, void **symbols, char **strings)
{
	size_t size = gelf_fsize(elf, ELF_T_SYM, m->n + 1, EV_CURRENT), at = 1;
	GElf_Shdr h;
	Elf_Scn *scn;
	Elf_Data *d;

	*symbols = calloc(1, size);
	*strings = calloc(1, 1 << 16);
	scn = add_section(elf, ".symtab", m->dynamic ? SHT_DYNSYM : SHT_SYMTAB, *symbols, size,
			  ELF_T_SYM, &h);
	h.sh_link = STRTAB;
	h.sh_entsize = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	assert_true(gelf_update_shdr(scn, &h));
	d = elf_getdata(scn, NULL);
	for (size_t i = 0; i < m->n; i++) {
		const struct made_symbol *s = &m->symbol[i];
		GElf_Sym sym = {.st_name = (uint32_t)at,
				.st_value = s->value,
				.st_size = s->size,
				.st_info = GELF_ST_INFO(s->bind, s->type),
				.st_shndx = s->absolute ? SHN_ABS : TEXT};

		at += (size_t)sprintf(*strings + at, "%s", s->name) + 1;
		assert_true(gelf_update_sym(d, (int)i + 1, &sym));
	}
	scn = add_section(elf, ".strtab", SHT_STRTAB, *strings, at, ELF_T_BYTE, &h);
	assert_true(gelf_update_shdr(scn, &h));
	if (m->compressed)
		assert_true(elf_compress(scn, ELFCOMPRESS_ZLIB, ELF_CHF_FORCE) > 0);
}

static void add_names(Elf *elf)
{
	GElf_Shdr h;
	Elf_Scn *scn = add_section(elf, ".shstrtab", SHT_STRTAB, (void *)(uintptr_t)section_names,
				   sizeof(section_names), ELF_T_BYTE, &h);

	assert_true(gelf_update_shdr(scn, &h));
}

static void add_note(Elf *elf, const struct made_elf *m, uint32_t *note)
{
	const uint32_t head[] = {4, 8, 3};
	GElf_Shdr h;
	Elf_Scn *scn;

	memcpy(note, head, sizeof(head));
	memcpy(note + 3, "GNU", 4);
	memcpy(note + 4, m->build_id, 8);
	scn = add_section(elf, ".note.gnu.build-id", SHT_NOTE, note, 24, ELF_T_NHDR, &h);
	h.sh_flags = SHF_ALLOC;
	assert_true(gelf_update_shdr(scn, &h));
}

static void add_link(Elf *elf, const struct made_elf *m, char *link)
{
	size_t len = (strlen(m->debug_link) + 4) & ~(size_t)3;
	GElf_Shdr h;
	Elf_Scn *scn;

	strcpy(link, m->debug_link);
	memcpy(link + len, &m->debug_crc, 4);
	scn = add_section(elf, ".gnu_debuglink", SHT_PROGBITS, link, len + 4, ELF_T_BYTE, &h);
	assert_true(gelf_update_shdr(scn, &h));
}

static void add_heads(Elf *elf, const struct made_elf *m)
{
	GElf_Ehdr h;
	GElf_Phdr p = {.p_type = PT_LOAD,
		       .p_flags = PF_R | PF_X,
		       .p_offset = TEXT_OFFSET,
		       .p_vaddr = m->text,
		       .p_filesz = m->text_size,
		       .p_memsz = m->text_size,
		       .p_align = 0x1000};

	assert_true(gelf_newehdr(elf, m->class) != NULL);
	assert_non_null(gelf_getehdr(elf, &h));
	h.e_ident[EI_DATA] = (unsigned char)m->data;
	h.e_type = ET_EXEC;
	h.e_machine = (GElf_Half)m->machine;
	h.e_version = EV_CURRENT;
	h.e_shstrndx = SHSTRTAB;
	assert_true(gelf_update_ehdr(elf, &h));
	assert_true(gelf_newphdr(elf, 1) != NULL);
	assert_true(gelf_update_phdr(elf, 0, &p));
}

int made_elf(const struct made_elf *m, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint8_t *code = calloc(1, m->text_size);
	char *strings, link[128] = "";
	void *symbols;
	uint32_t note[6];
	Elf *elf;

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_WRITE, NULL);
	assert_non_null(elf);
	add_heads(elf, m);
	if (m->code)
		memcpy(code, m->code, m->code_len);
	add_text(elf, m, code);
	add_symbols(elf, m, &symbols, &strings);
	add_names(elf);
	if (m->build_id)
		add_note(elf, m, note);
	if (m->debug_link)
		add_link(elf, m, link);
	assert_true(elf_update(elf, ELF_C_WRITE) > 0);
	elf_end(elf);
	free(code);
	free(symbols);
	free(strings);
	return fd;
}
