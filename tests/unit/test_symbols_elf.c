// SPDX-License-Identifier: GPL-2.0-only
/* Symbols of ELF files: of every class and byte order, real programs, and files that are broken. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "bytes.h"
#include "elf_symbols.h"
#include "load.h"
#include "made_elf.c" /* NOLINT(bugprone-suspicious-include) */
#include "maps.h"
#include "sysroot.h"
#include "temp_dir.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *at(const struct symmap *m, uint64_t addr)
{
	static char buf[256];
	struct symbol s;

	if (!symmap_lookup(m, addr, &s))
		return s.module && s.module[0] ? s.module : "";
	snprintf(buf, sizeof(buf), "%s+%llu", s.name, (unsigned long long)(addr - s.start));
	return buf;
}

static struct symmap *symbols_of(int fd, enum elf_space space, uint64_t bias,
				 struct elf_facts *facts, int *rc)
{
	struct symbuild *b = symbuild_new();
	struct symmap *m = NULL;
	struct elf_file *e;

	assert_int_equal(elf_open_fd(fd, &e), 0);
	elf_read_facts(e, facts);
	*rc = elf_add_symbols(e, NULL, space, bias, 0, b, facts);
	assert_int_equal(symbuild_finish(b, NULL, &m), 0);
	elf_close(e);
	return m;
}

static const struct made_symbol some[] = {
	{"first", 0x401000, 0x80, STT_FUNC, STB_GLOBAL, false},
	{"first_alias", 0x401000, 0x80, STT_FUNC, STB_WEAK, false},
	{"inner_label", 0x401040, 0, STT_NOTYPE, STB_LOCAL, false},
	{"without_size", 0x401100, 0, STT_FUNC, STB_LOCAL, false},
	{"assembler", 0x401180, 0, STT_NOTYPE, STB_GLOBAL, false},
	{"$x", 0x401190, 0, STT_NOTYPE, STB_LOCAL, false},
	{"too_long", 0x401200, 0x100000, STT_FUNC, STB_GLOBAL, false},
	{"outside", 0x500000, 0x10, STT_FUNC, STB_GLOBAL, false},
	{"absolute", 0x401300, 0x10, STT_FUNC, STB_GLOBAL, true},
	{"variable", 0x401380, 0x10, STT_OBJECT, STB_GLOBAL, false},
	{"", 0x401390, 0x10, STT_FUNC, STB_GLOBAL, false},
};

static struct made_elf a_file(int class, int data, int machine)
{
	return (struct made_elf){.class = class,
				 .data = data,
				 .machine = machine,
				 .text = 0x401000,
				 .text_size = 0x400,
				 .symbol = some,
				 .n = N(some)};
}

static void check_some(const struct symmap *m, uint64_t by)
{
	assert_string_equal(at(m, 0x401000 + by), "first+0");
	assert_string_equal(at(m, 0x40107f + by), "first+127");
	assert_string_equal(at(m, 0x401080 + by), "");
	/* Up to the next symbol, which has none either. */
	assert_string_equal(at(m, 0x40117f + by), "without_size+127");
	assert_string_equal(at(m, 0x4011ff + by), "assembler+127");
	/* Not beyond its section. */
	assert_string_equal(at(m, 0x4013ff + by), "too_long+511");
	assert_string_equal(at(m, 0x401400 + by), "");
	assert_string_equal(at(m, 0x500000 + by), "");
	assert_int_equal(symmap_count(m), 4);
}

static void every_class_and_byte_order(void **state)
{
	static const struct {
		int class, data, machine;
	} kinds[] = {
		{ELFCLASS64, ELFDATA2LSB, EM_X86_64},  {ELFCLASS64, ELFDATA2MSB, EM_S390},
		{ELFCLASS32, ELFDATA2LSB, EM_386},     {ELFCLASS32, ELFDATA2MSB, EM_PPC},
		{ELFCLASS64, ELFDATA2LSB, EM_AARCH64},
	};

	(void)state;
	for (size_t i = 0; i < N(kinds) * 4; i++) {
		struct made_elf f =
			a_file(kinds[i / 4].class, kinds[i / 4].data, kinds[i / 4].machine);
		struct elf_facts facts;
		struct symmap *m;
		int fd, rc;

		f.dynamic = i & 1;
		f.compressed = i & 2;
		fd = made_elf(&f, in_dir("made"));
		m = symbols_of(fd, ELF_ADDRESSES, 0x1000000, &facts, &rc);
		assert_int_equal(rc, 0);
		check_some(m, 0x1000000);
		assert_int_equal(facts.full, !f.dynamic);
		assert_int_equal(facts.machine, f.machine);
		symmap_unref(m);
		/* At offset 0x1000 in the file. */
		m = symbols_of(fd, ELF_OFFSETS, 0, &facts, &rc);
		check_some(m, (uint64_t)0x1000 - 0x401000);
		symmap_unref(m);
		close(fd);
	}
}

static void thumb_bit(void **state)
{
	static const struct made_symbol one = {"thumb",	 0x401021,   0x20,
					       STT_FUNC, STB_GLOBAL, false};
	struct made_elf f = a_file(ELFCLASS32, ELFDATA2LSB, EM_ARM);
	struct elf_facts facts;
	struct symmap *m;
	int fd, rc;

	(void)state;
	f.symbol = &one;
	f.n = 1;
	fd = made_elf(&f, in_dir("arm"));
	m = symbols_of(fd, ELF_ADDRESSES, 0, &facts, &rc);
	assert_string_equal(at(m, 0x401020), "thumb+0");
	symmap_unref(m);
	close(fd);
}

static void facts_of_files(void **state)
{
	static const uint8_t id[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	for (int big = 0; big < 2; big++) {
		struct made_elf f = a_file(ELFCLASS64, big ? ELFDATA2MSB : ELFDATA2LSB,
					   big ? EM_S390 : EM_X86_64);
		struct elf_facts facts;
		struct elf_file *e;
		int fd;

		f.build_id = id;
		f.debug_link = "made.debug";
		f.debug_crc = big ? 0x78563412 : 0x12345678;
		fd = made_elf(&f, in_dir("facts"));
		assert_int_equal(elf_open_fd(fd, &e), 0);
		elf_read_facts(e, &facts);
		assert_int_equal(facts.id.len, 8);
		assert_memory_equal(facts.id.byte, id, 8);
		assert_string_equal(facts.debug_name, "made.debug");
		assert_int_equal(facts.debug_crc, 0x12345678);
		elf_close(e);
		close(fd);
	}
}

static void no_elf(void **state)
{
	struct elf_file *e = (struct elf_file *)(uintptr_t)1;
	int fd = memfd_create("empty", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(elf_open_fd(fd, &e), -EBADMSG);
	assert_null(e);
	assert_int_equal(write(fd, "\177ELF and then text", 18), 18);
	assert_int_equal(elf_open_fd(fd, &e), -EBADMSG);
	assert_int_equal(elf_open_memory("!<arch>\n", 8, &e), -EBADMSG);
	close(fd);
}

/* Cut at every length, and with every byte turned: an answer or an error, never more. */
static void broken_files(void **state)
{
	struct made_elf f = a_file(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
	int fd = made_elf(&f, in_dir("broken"));
	struct bytes whole;
	uint32_t seed = 1;

	(void)state;
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(bytes_read(fd, 1 << 20, &whole), 0);
	for (size_t i = 0; i < 3000; i++) {
		size_t len = i < 1000 ? whole.len * i / 1000 : whole.len;
		char *copy = malloc(len + 1);
		struct elf_facts facts;
		struct elf_file *e;

		memcpy(copy, whole.data, len);
		/* Heads and tables, where it hurts; the text is zeros. */
		for (int k = 0; k < 4 && i >= 1000; k++) {
			seed = seed * 1664525u + 1013904223u;
			copy[k & 1 ? (seed >> 8) % 0x78 : len - 1 - (seed >> 8) % 0x180] ^=
				(char)(1u << (seed >> 28 & 7));
		}
		if (elf_open_memory(copy, len, &e) == 0) {
			struct symbuild *b = symbuild_new();
			struct symmap *m;

			elf_read_facts(e, &facts);
			elf_add_symbols(e, NULL, ELF_OFFSETS, 0, 0, b, &facts);
			assert_int_equal(symbuild_finish(b, NULL, &m), 0);
			symmap_unref(m);
			elf_close(e);
		}
		free(copy);
	}
	bytes_free(&whole);
	close(fd);
}

/* --- this very process --- */

static struct loaded load_self(struct sysroot **root, struct load_context *c)
{
	struct loaded l;

	assert_int_equal(sysroot_open(NULL, root), 0);
	*c = (struct load_context){
		.root = *root, .tables = symcache_new(), .maps = map_cache_new()};
	load_process(c, getpid(), &l);
	return l;
}

static void drop(struct loaded *l, struct sysroot *root, struct load_context *c)
{
	symmap_unref(l->map);
	map_cache_free(c->maps);
	symcache_free(c->tables);
	sysroot_close(root);
}

static void code_of_this_process(void **state)
{
	struct load_context c;
	struct sysroot *root;
	struct loaded l = load_self(&root, &c), again;
	struct symbol s;
	size_t tables = symcache_count(c.tables);

	(void)state;
	assert_true(l.status.state == SYMBOLS_OK || l.status.state == SYMBOLS_PARTIAL);
	assert_true(symmap_lookup(l.map, (uintptr_t)code_of_this_process + 4, &s));
	assert_string_equal(s.name, "code_of_this_process");
	assert_string_equal(s.module, "test_symbols_elf");
	assert_int_equal(s.start, (uintptr_t)code_of_this_process);
	assert_true(symmap_lookup(l.map, (uintptr_t)strtoull, &s));
	assert_int_equal(strncmp(s.module, "libc", 4), 0);
#ifdef __x86_64__
	/* The kernel's own code in each process. */
	assert_true(symmap_find(l.map, "__vdso_clock_gettime", &s));
	assert_string_equal(s.module, "[vdso]");
	assert_true(s.start > getauxval(AT_SYSINFO_EHDR));
#endif
	/* The files are not read again, and no table is made twice. */
	load_process(&c, getpid(), &again);
	assert_int_equal(symcache_count(c.tables), tables);
	symmap_unref(again.map);
	drop(&l, root, &c);
}

static void no_such_process(void **state)
{
	struct load_context c;
	struct sysroot *root;
	struct loaded l = load_self(&root, &c), gone;

	(void)state;
	load_process(&c, 0x3fffffff, &gone);
	assert_null(gone.map);
	assert_int_equal(gone.status.state, SYMBOLS_NONE);
	assert_true(gone.status.why[0]);
	drop(&l, root, &c);
}

/* A library without symbols, and the file beside it that has them: only the right one is taken. */
static void debug_link(void **state)
{
	static const struct made_symbol debug[] = {
		{"hidden", 0x401000, 0x400, STT_FUNC, STB_LOCAL, false}};
	struct made_elf f = a_file(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
	struct bytes content;
	int fd;

	(void)state;
	f.symbol = debug;
	f.n = 1;
	fd = made_elf(&f, in_dir("lib.so.debug"));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(bytes_read(fd, 1 << 20, &content), 0);
	close(fd);
	f.n = 0;
	f.debug_link = "lib.so.debug";
	for (int right = 0; right < 2; right++) {
		struct load_context c;
		struct sysroot *root;
		struct loaded l;
		struct symbol s;
		char name[32];
		void *p;

		snprintf(name, sizeof(name), "lib%d.so", right);
		f.debug_crc =
			(uint32_t)crc32(0, (const Bytef *)content.data, (uInt)content.len) + !right;
		fd = made_elf(&f, in_dir(name));
		p = mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x1000);
		assert_true(p != MAP_FAILED);
		l = load_self(&root, &c);
		assert_string_equal(at(l.map, (uintptr_t)p + 0x10), right ? "hidden+16" : name);
		/* With a number in any case: by that the file is named later on. */
		assert_int_equal(symmap_lookup(l.map, (uintptr_t)p + 0x10, &s), right);
		assert_true(s.table > 0);
		assert_false(symcache_symbol(c.tables, s.table, UINT32_MAX, &s));
		assert_string_equal(s.module, name);
		munmap(p, 0x1000);
		close(fd);
		drop(&l, root, &c);
	}
	bytes_free(&content);
}

/* The names of a process are as many as there is room for; its other files are named as such. */
static void limits_of_a_process(void **state)
{
	const struct process_limits none = {0}, few_files = {.files = 100, .symbols = SIZE_MAX},
				    few_symbols = {.files = UINT64_MAX, .symbols = 100};
	const struct process_limits *each[] = {&none, &few_files, &few_symbols};
	struct load_context c;
	struct sysroot *root;
	struct loaded l = load_self(&root, &c);

	(void)state;
	drop(&l, root, &c);
	for (size_t i = 0; i < N(each); i++) {
		assert_int_equal(sysroot_open(NULL, &root), 0);
		c = (struct load_context){
			.root = root, .tables = symcache_new(), .maps = map_cache_new()};
		load_process_within(&c, getpid(), each[i], &l);
		assert_int_equal(l.status.state, SYMBOLS_PARTIAL);
		assert_string_equal(at(l.map, (uintptr_t)limits_of_a_process), "test_symbols_elf");
		drop(&l, root, &c);
	}
}

/* A debug file of 9 GiB, nearly all of it a hole, with the right sum: nobody waits for that. */
static void debug_link_to_a_hole(void **state)
{
	static const struct made_symbol debug[] = {
		{"hidden", 0x401000, 0x400, STT_FUNC, STB_LOCAL, false}};
	struct made_elf f = a_file(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
	const z_off64_t hole = (z_off64_t)9 << 30;
	struct load_context c;
	struct sysroot *root;
	struct bytes content;
	struct loaded l;
	uLong sum, zeros;
	void *p;
	int fd;

	(void)state;
	f.symbol = debug;
	f.n = 1;
	fd = made_elf(&f, in_dir("hole.debug"));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(bytes_read(fd, 1 << 20, &content), 0);
	assert_int_equal(ftruncate(fd, (off_t)content.len + hole), 0);
	close(fd);
	sum = crc32(0, (const Bytef *)content.data, (uInt)content.len);
	zeros = crc32(0, (const Bytef *)"", 1);
	for (z_off64_t n = 1; n < 1 << 30; n *= 2)
		zeros = crc32_combine(zeros, zeros, n);
	for (int i = 0; i < 9; i++)
		sum = crc32_combine(sum, zeros, 1 << 30);
	f.n = 0;
	f.debug_link = "hole.debug";
	f.debug_crc = (uint32_t)sum;
	fd = made_elf(&f, in_dir("libhole.so"));
	p = mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x1000);
	assert_true(p != MAP_FAILED);
	l = load_self(&root, &c);
	assert_string_equal(at(l.map, (uintptr_t)p + 0x10), "libhole.so");
	munmap(p, 0x1000);
	close(fd);
	drop(&l, root, &c);
	bytes_free(&content);
}

/* --- files that are made to cost much --- */

/* A file of a header, these sections (behind the empty one) and a hole of `size` at 0x1000. */
static int raw_file(const Elf64_Shdr *section, size_t n, size_t size, const char *name)
{
	const size_t at_sections = 0x1000 + size;
	Elf64_Ehdr h = {.e_ident = "\177ELF\2\1\1",
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_shoff = at_sections,
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = (Elf64_Half)(n + 1)};
	int fd = open(in_dir(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(ftruncate(fd, (off_t)(at_sections + sizeof(*section))), 0);
	assert_int_equal(
		pwrite(fd, section, n * sizeof(*section), (off_t)(at_sections + sizeof(*section))),
		n * sizeof(*section));
	return fd;
}

/* 50,000 functions whose names begin in one string of 32 MiB: each is looked at no farther than it
 * is kept. */
static void names_without_an_end(void **state)
{
	enum { SYMBOLS = 50000, STRINGS = 32 << 20, TABLE = SYMBOLS * sizeof(Elf64_Sym) };
	const Elf64_Shdr section[] = {
		{.sh_type = SHT_SYMTAB,
		 .sh_offset = 0x1000,
		 .sh_size = TABLE,
		 .sh_link = 2,
		 .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_type = SHT_STRTAB, .sh_offset = 0x1000 + TABLE, .sh_size = STRINGS},
		{.sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = 0x1000,
		 .sh_size = 0x100000},
	};
	Elf64_Sym *symbol = calloc(SYMBOLS, sizeof(*symbol));
	char *strings = malloc(STRINGS);
	struct elf_facts facts;
	struct symmap *m;
	int fd, rc;

	(void)state;
	memset(strings, 'a', STRINGS);
	strings[STRINGS - 1] = '\0';
	for (size_t i = 1; i < SYMBOLS; i++)
		symbol[i] = (Elf64_Sym){.st_name = (Elf64_Word)i,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = 3,
					.st_value = 0x1000 + i * 16,
					.st_size = 16};
	fd = raw_file(section, N(section), TABLE + STRINGS, "names");
	assert_int_equal(pwrite(fd, symbol, TABLE, 0x1000), TABLE);
	assert_int_equal(pwrite(fd, strings, STRINGS, 0x1000 + TABLE), STRINGS);
	m = symbols_of(fd, ELF_ADDRESSES, 0, &facts, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(symmap_count(m), SYMBOLS - 1);
	assert_string_equal(at(m, 0x1010), strncat((char[256]){""}, strings, 255));
	symmap_unref(m);
	close(fd);
	free(symbol);
	free(strings);
}

/* More sections or segments than 16 bits say, and notes of megabytes: no linked file has them. */
static void absurd_numbers(void **state)
{
	const uint32_t note[] = {4, 8, 3, 0x554e47, 1, 2};
	Elf64_Shdr notes = {.sh_type = SHT_NOTE,
			    .sh_offset = 0x1000,
			    .sh_size = 1 << 20,
			    .sh_addralign = 4},
		   many = {.sh_size = 1u << 20};
	const Elf64_Half segments = PN_XNUM, none = 0;
	struct elf_facts facts;
	struct elf_file *e;
	int fd = raw_file(&notes, 1, 2 << 20, "notes");

	(void)state;
	assert_int_equal(pwrite(fd, note, sizeof(note), 0x1000), sizeof(note));
	assert_int_equal(elf_open_fd(fd, &e), 0);
	elf_read_facts(e, &facts);
	assert_int_equal(facts.id.len, 8);
	elf_close(e);
	close(fd);
	notes.sh_size++;
	fd = raw_file(&notes, 1, 2 << 20, "notes");
	assert_int_equal(pwrite(fd, note, sizeof(note), 0x1000), sizeof(note));
	assert_int_equal(elf_open_fd(fd, &e), 0);
	elf_read_facts(e, &facts);
	assert_int_equal(facts.id.len, 0);
	elf_close(e);

	assert_int_equal(pwrite(fd, &segments, sizeof(segments), offsetof(Elf64_Ehdr, e_phnum)),
			 sizeof(segments));
	assert_int_equal(elf_open_fd(fd, &e), -EBADMSG);
	close(fd);
	/* The first section says how many there are; the file is long enough for them. */
	fd = raw_file(&notes, 1, 2 << 20, "sections");
	assert_int_equal(pwrite(fd, &none, sizeof(none), offsetof(Elf64_Ehdr, e_shnum)),
			 sizeof(none));
	assert_int_equal(pwrite(fd, &many, sizeof(many), (2 << 20) + 0x1000), sizeof(many));
	assert_int_equal(ftruncate(fd, 128 << 20), 0);
	assert_int_equal(elf_open_fd(fd, &e), -EBADMSG);
	close(fd);
}

static void lines_of_maps(void **state)
{
	static const char text[] =
		"55d0e7a00000-55d0e7a02000 r--p 00000000 fe:01 131 /usr/bin/cat\n"
		"55d0e7a02000-55d0e7a07000 r-xp 00002000 fe:01 131       /usr/bin/a cat (deleted)\n"
		"7f1200000000-7f1200021000 rwxp 00000000 00:00 0 \n"
		"nonsense\n"
		"7ffc1e9f8000-7ffc1e9fa000 r-xp 00000000 00:00 0  [vdso]";
	struct mapping m;
	size_t pos = 0;

	(void)state;
	assert_true(maps_next(text, strlen(text), &pos, &m));
	assert_int_equal(m.start, 0x55d0e7a02000);
	assert_int_equal(m.offset, 0x2000);
	assert_int_equal(m.inode, 131);
	assert_string_equal(m.path, "/usr/bin/a cat");
	assert_string_equal(m.name, "a cat");
	assert_true(maps_next(text, strlen(text), &pos, &m));
	assert_string_equal(m.name, "[anon]");
	assert_int_equal(m.inode, 0);
	assert_true(maps_next(text, strlen(text), &pos, &m));
	assert_string_equal(m.name, "[vdso]");
	assert_false(maps_next(text, strlen(text), &pos, &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_class_and_byte_order),
		cmocka_unit_test(thumb_bit),
		cmocka_unit_test(facts_of_files),
		cmocka_unit_test(no_elf),
		cmocka_unit_test(broken_files),
		cmocka_unit_test(code_of_this_process),
		cmocka_unit_test(no_such_process),
		cmocka_unit_test(debug_link),
		cmocka_unit_test(limits_of_a_process),
		cmocka_unit_test(debug_link_to_a_hole),
		cmocka_unit_test(names_without_an_end),
		cmocka_unit_test(absurd_numbers),
		cmocka_unit_test(lines_of_maps),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
