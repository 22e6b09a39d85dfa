// SPDX-License-Identifier: GPL-2.0-only
/*
 * ELF files through libelf (elf_symbols.h). They may be broken on purpose: every number in them is
 * held against what it should be in before it is used.
 */
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_symbols.h"

#define MAX_SECTIONS 65536 /* vmlinux with a section a function has some 50,000 */
#define MAX_SEGMENTS 64
#define MAX_TABLE (256u << 20) /* bytes of one section, unpacked */
#define MAX_NOTES (1u << 20) /* of one section of notes */
#define MAX_SECTION_NAMES (16u << 20)
#define MAX_STRING 4096 /* of a symbol's name is looked at; C++ has long ones */
#define MAX_READ (1u << 30) /* of all of a file: its sections may lie over each other */

struct segment {
	uint64_t vaddr, offset, size;
	bool code, asked;
	const Elf_Data *data; /* libelf's */
};

struct section {
	uint64_t addr, end;
	bool code;
};

struct elf_file {
	Elf *elf;
	int type, machine;
	struct segment segment[MAX_SEGMENTS]; /* loaded ones */
	size_t nsegment;
	struct section *section; /* by number */
	size_t nsection;
	Elf_Scn *symtab, *dynsym, *shndx; /* NULL: none */
	const Elf_Data *section_names; /* libelf's; NULL: none */
	uint64_t read; /* bytes that libelf was asked for; it keeps them */
};

/* True: so much more may be read. */
static bool may_read(struct elf_file *e, uint64_t bytes, uint64_t limit)
{
	if (bytes > limit || e->read + bytes > MAX_READ)
		return false;
	e->read += bytes;
	return true;
}

/* --- sections --- */

/* The string at off, of which no more than MAX_STRING is looked at; NULL: it is not in the table.
 */
static const char *string_at(const Elf_Data *strings, uint64_t off, size_t *len)
{
	const char *p = strings ? strings->d_buf : NULL;
	size_t left;

	if (!p || off >= strings->d_size)
		return NULL;
	left = strings->d_size - off;
	*len = strnlen(p + off, left < MAX_STRING ? left : MAX_STRING);
	return *len < left ? p + off : NULL;
}

static bool is_named(const struct elf_file *e, const GElf_Shdr *h, const char *name)
{
	size_t len;
	const char *p = string_at(e->section_names, h->sh_name, &len);

	return p && len == strlen(name) && memcmp(p, name, len) == 0;
}

/* The section's content, unpacked; NULL: none, broken, or absurdly large. */
static Elf_Data *content(struct elf_file *e, Elf_Scn *scn, uint64_t limit)
{
	GElf_Shdr h;
	GElf_Chdr c;

	if (!scn || !gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS ||
	    !may_read(e, h.sh_size, limit))
		return NULL;
	if (h.sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(scn, &c) || !may_read(e, c.ch_size, limit) ||
		    elf_compress(scn, 0, 0) < 0)
			return NULL;
	}
	return elf_getdata(scn, NULL);
}

static void take_section(struct elf_file *e, Elf_Scn *scn, const GElf_Shdr *h)
{
	size_t i = elf_ndxscn(scn);

	if (i < e->nsection && h->sh_addr + h->sh_size >= h->sh_addr)
		e->section[i] = (struct section){
			.addr = h->sh_addr,
			.end = h->sh_addr + h->sh_size,
			.code = (h->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) ==
				(SHF_ALLOC | SHF_EXECINSTR),
		};
	if (h->sh_type == SHT_SYMTAB)
		e->symtab = scn;
	else if (h->sh_type == SHT_DYNSYM)
		e->dynsym = scn;
	else if (h->sh_type == SHT_SYMTAB_SHNDX)
		e->shndx = scn;
}

static void take_segments(struct elf_file *e)
{
	size_t n;

	if (elf_getphdrnum(e->elf, &n) < 0)
		return;
	for (size_t i = 0; i < n && e->nsegment < MAX_SEGMENTS; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(e->elf, (int)i, &p))
			break;
		if (p.p_type == PT_LOAD && p.p_vaddr + p.p_filesz >= p.p_vaddr)
			e->segment[e->nsegment++] = (struct segment){.vaddr = p.p_vaddr,
								     .offset = p.p_offset,
								     .size = p.p_filesz,
								     .code = p.p_flags & PF_X};
	}
}

static int take_file(struct elf_file *e)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr h;
	size_t n;

	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &h))
		return -EBADMSG;
	e->type = h.e_type;
	e->machine = h.e_machine;
	take_segments(e);
	if (elf_getshdrnum(e->elf, &n) < 0)
		return 0; /* the section table is broken: no symbols, but a build-id perhaps */
	e->nsection = n < MAX_SECTIONS ? n : MAX_SECTIONS;
	e->section = calloc(e->nsection + 1, sizeof(*e->section));
	if (!e->section)
		return -ENOMEM;
	while ((scn = elf_nextscn(e->elf, scn)) != NULL) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh))
			take_section(e, scn, &sh);
	}
	if (elf_getshdrstrndx(e->elf, &n) == 0)
		e->section_names = content(e, elf_getscn(e->elf, n), MAX_SECTION_NAMES);
	return 0;
}

/*
 * More sections or segments than their 16 bits can say: what the file gives instead is taken by
 * libelf for its word, and memory for as many. No linked file has them.
 */
static bool has_absurd_numbers(const void *data, size_t len)
{
	const char *p = data;
	bool wide = len > EI_CLASS && p[EI_CLASS] == ELFCLASS64;
	Elf64_Ehdr w;
	Elf32_Ehdr n;

	if (len < (wide ? sizeof(w) : sizeof(n)))
		return true;
	memcpy(&n, p, sizeof(n));
	if (!wide)
		return (!n.e_shnum && n.e_shoff) || n.e_phnum == PN_XNUM;
	memcpy(&w, p, sizeof(w));
	return (!w.e_shnum && w.e_shoff) || w.e_phnum == PN_XNUM;
}

static int open_elf(struct elf_file *e, struct elf_file **out)
{
	int rc = take_file(e);

	*out = rc ? NULL : e;
	if (rc)
		elf_close(e);
	return rc;
}

int elf_open_fd(int fd, struct elf_file **out)
{
	struct elf_file *e = calloc(1, sizeof(*e));
	char head[sizeof(Elf64_Ehdr)];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	*out = NULL;
	if (!e)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	if (n > 0 && !has_absurd_numbers(head, (size_t)n))
		e->elf = elf_begin(fd, ELF_C_READ, NULL);
	return open_elf(e, out);
}

int elf_open_memory(const void *data, size_t len, struct elf_file **out)
{
	struct elf_file *e = calloc(1, sizeof(*e));

	*out = NULL;
	if (!e)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	/* libelf reads a header from what is shorter than one. */
	if (!has_absurd_numbers(data, len))
		e->elf = elf_memory((char *)(uintptr_t)data, len);
	return open_elf(e, out);
}

void elf_close(struct elf_file *e)
{
	if (!e)
		return;
	elf_end(e->elf);
	free(e->section);
	free(e);
}

/* --- what kind of file --- */

static void take_id(Elf_Data *notes, struct elf_facts *facts)
{
	if (notes && notes->d_buf && !facts->id.len)
		notes_build_id(notes->d_buf, notes->d_size, &facts->id);
}

/* "name\0", padded to 4, then the CRC of the file of that name in this file's byte order. */
static void take_debug_link(struct elf_file *e, Elf_Scn *scn, struct elf_facts *facts)
{
	const Elf_Data *d = content(e, scn, MAX_NOTES);
	const char *p = d ? d->d_buf : NULL;
	const char *ident = elf_getident(e->elf, NULL);
	size_t n = p ? strnlen(p, d->d_size) : 0, at = (n + 4) & ~(size_t)3;

	if (!n || n >= sizeof(facts->debug_name) || at + 4 > d->d_size || memchr(p, '/', n))
		return;
	memcpy(facts->debug_name, p, n + 1);
	memcpy(&facts->debug_crc, p + at, 4);
	if (ident &&
	    ident[EI_DATA] == (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB))
		facts->debug_crc = __builtin_bswap32(facts->debug_crc);
}

void elf_read_facts(struct elf_file *e, struct elf_facts *facts)
{
	Elf_Scn *scn = NULL;
	size_t n;

	*facts = (struct elf_facts){0};
	facts->machine = e->machine;
	if (elf_getphdrnum(e->elf, &n) < 0)
		n = 0;
	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++) {
		GElf_Phdr p;

		if (gelf_getphdr(e->elf, (int)i, &p) && p.p_type == PT_NOTE &&
		    may_read(e, p.p_filesz, MAX_NOTES))
			take_id(elf_getdata_rawchunk(e->elf, (int64_t)p.p_offset, p.p_filesz,
						     ELF_T_NHDR),
				facts);
	}
	while (e->nsection && (scn = elf_nextscn(e->elf, scn)) != NULL) {
		GElf_Shdr h;

		if (!gelf_getshdr(scn, &h))
			continue;
		if (h.sh_type == SHT_NOTE)
			take_id(content(e, scn, MAX_NOTES), facts);
		else if (is_named(e, &h, ".gnu_debuglink"))
			take_debug_link(e, scn, facts);
	}
}

/* --- symbols --- */

struct adding {
	struct elf_file *e;
	const struct elf_file *layout;
	enum elf_space space;
	uint64_t bias;
	unsigned module;
	struct symbuild *b;
	struct elf_facts *facts;
};

/* From a linked address to one of the space asked for; false: not in the file. */
static bool placed(const struct adding *a, uint64_t vaddr, uint64_t *out)
{
	*out = vaddr + a->bias;
	if (a->space == ELF_ADDRESSES)
		return true;
	for (size_t i = 0; i < a->layout->nsegment; i++) {
		const struct segment *s = &a->layout->segment[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr > s->size)
			continue;
		*out = vaddr - s->vaddr + s->offset + a->bias;
		return true;
	}
	return false;
}

/* Code ends with its section: what follows is another's, stubs without names for instance. */
static int add_bounds(const struct adding *a)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < a->e->nsection; i++) {
		const struct section *s = &a->e->section[i];
		uint64_t at;

		if (!s->code || s->addr == s->end)
			continue;
		if (placed(a, s->addr, &at))
			rc = symbuild_bound(a->b, at);
		if (!rc && placed(a, s->end, &at))
			rc = symbuild_bound(a->b, at);
	}
	return rc;
}

/* Names of the assembler and linker, not of code: "$x", ".L12", and where a section ends. */
static bool is_internal(const char *name, size_t len)
{
	return name[0] == '$' || (name[0] == '.' && name[1] == 'L') ||
	       (len == 6 && memcmp(name, "_etext", 6) == 0) ||
	       (len == 10 && memcmp(name, "_einittext", 10) == 0);
}

static enum symbol_rank rank_of(const GElf_Sym *s)
{
	if (GELF_ST_TYPE(s->st_info) == STT_NOTYPE)
		return RANK_MARKER;
	switch (GELF_ST_BIND(s->st_info)) {
	case STB_LOCAL:
		return RANK_LOCAL;
	case STB_WEAK:
		return RANK_WEAK;
	default:
		return RANK_GLOBAL;
	}
}

/* Is it code, in a section that has some, where it says it is? */
static bool is_code(const struct elf_file *e, const GElf_Sym *s, uint32_t section)
{
	int type = GELF_ST_TYPE(s->st_info);

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	return section && section < e->nsection && e->section[section].code &&
	       s->st_value >= e->section[section].addr && s->st_value < e->section[section].end;
}

static int add_symbol(const struct adding *a, const GElf_Sym *s, uint32_t section, const char *name,
		      size_t len)
{
	const char *llvm = memmem(name, len, ".llvm.", 6);
	uint64_t addr = s->st_value, at, size = s->st_size;
	int rc;

	if (strcmp(name, "_stext") == 0)
		a->facts->stext = addr;
	if (!a->b)
		return 0;
	if (a->e->machine == EM_ARM && GELF_ST_TYPE(s->st_info) == STT_FUNC)
		addr &= ~(uint64_t)1; /* Thumb */
	if (!len || is_internal(name, len) || !is_code(a->e, s, section) || !placed(a, addr, &at))
		return 0;
	if (llvm && llvm > name)
		len = (size_t)(llvm - name);
	if (size > a->e->section[section].end - addr)
		size = a->e->section[section].end - addr;
	rc = symbuild_add(a->b, at, size, rank_of(s), a->module, name, len);
	a->facts->symbols += !rc;
	return rc;
}

static int add_table(const struct adding *a, Elf_Scn *scn)
{
	Elf_Data *symbols = content(a->e, scn, MAX_TABLE), *strings, *extended;
	GElf_Shdr h;
	size_t n;
	int rc = 0;

	if (!symbols || !gelf_getshdr(scn, &h))
		return 0;
	strings = content(a->e, elf_getscn(a->e->elf, h.sh_link), MAX_TABLE);
	extended = scn == a->e->symtab ? content(a->e, a->e->shndx, MAX_TABLE) : NULL;
	n = symbols->d_size / gelf_fsize(a->e->elf, ELF_T_SYM, 1, EV_CURRENT);
	for (size_t i = 1; !rc && strings && i < n; i++) {
		Elf32_Word far = 0;
		const char *name;
		size_t len;
		GElf_Sym s;

		if (!gelf_getsymshndx(symbols, extended, (int)i, &s, &far))
			break;
		name = string_at(strings, s.st_name, &len);
		if (name)
			rc = add_symbol(a, &s, s.st_shndx == SHN_XINDEX ? far : s.st_shndx, name,
					len);
	}
	return rc;
}

int elf_add_symbols(struct elf_file *e, const struct elf_file *layout, enum elf_space space,
		    uint64_t bias, unsigned module, struct symbuild *b, struct elf_facts *facts)
{
	struct adding a = {.e = e,
			   .layout = layout ? layout : e,
			   .space = space,
			   .bias = bias,
			   .module = module,
			   .b = b,
			   .facts = facts};
	int rc;

	facts->symbols = 0;
	if (e->type == ET_REL)
		return -ENODATA;
	rc = add_bounds(&a);
	if (!rc && e->symtab)
		rc = add_table(&a, e->symtab);
	facts->full = facts->symbols;
	if (!rc && !facts->full)
		rc = add_table(&a, e->dynsym);
	if (rc)
		return rc;
	return facts->symbols ? 0 : -ENODATA;
}

int elf_find_kernel(struct elf_file *e, struct elf_facts *facts)
{
	struct adding a = {.e = e, .layout = e, .facts = facts};

	if (!e->symtab)
		return -ENODATA;
	return add_table(&a, e->symtab);
}

int elf_embedded(struct elf_file *e, const void **data, size_t *len)
{
	Elf_Scn *scn = NULL;

	while (e->nsection && (scn = elf_nextscn(e->elf, scn)) != NULL) {
		const Elf_Data *d;
		GElf_Shdr h;

		if (!gelf_getshdr(scn, &h) || !is_named(e, &h, ".gnu_debugdata"))
			continue;
		d = content(e, scn, MAX_TABLE);
		if (!d || !d->d_buf)
			return -EBADMSG;
		*data = d->d_buf;
		*len = d->d_size;
		return 0;
	}
	return -ENOENT;
}

/* All code of a segment is read at the first question for it. */
static const Elf_Data *segment_data(struct elf_file *e, struct segment *s)
{
	if (!s->data && !s->asked && may_read(e, s->size, MAX_TABLE))
		s->data = elf_getdata_rawchunk(e->elf, (int64_t)s->offset, s->size, ELF_T_BYTE);
	s->asked = true;
	return s->data;
}

int elf_code_at(struct elf_file *e, uint64_t addr, const uint8_t **out)
{
	for (size_t i = 0; i < e->nsegment; i++) {
		struct segment *s = &e->segment[i];
		uint64_t at = addr - s->vaddr;
		const Elf_Data *d;

		if (addr < s->vaddr || at >= s->size || !s->code)
			continue;
		d = segment_data(e, s);
		if (!d || !d->d_buf || d->d_size <= at)
			return -EBADMSG;
		*out = (const uint8_t *)d->d_buf + at;
		return d->d_size - at < INT_MAX ? (int)(d->d_size - at) : INT_MAX;
	}
	return -ENOENT;
}
