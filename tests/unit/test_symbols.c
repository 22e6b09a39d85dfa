// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbol tables, kallsyms and modules: real recordings, and what kernels and copies have been seen
 * to contain.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bytes.h"
#include "kallsyms.h"
#include "made_tree.h"
#include "modules.h"

#define DATA "tests/data/symbols/"

/* Text of kallsyms and modules into a map; NULL when it is refused, with *rc. */
static struct symmap *build(const char *kallsyms, const char *modules, struct symcache *c,
			    struct kallsyms_facts *facts, int *rc)
{
	struct symbuild *b = symbuild_new();
	struct modules_facts mods;
	struct symmap *m = NULL;

	assert_non_null(b);
	*rc = kallsyms_parse(kallsyms, strlen(kallsyms), b, facts);
	if (modules)
		assert_int_equal(modules_parse(modules, strlen(modules), b, &mods), 0);
	if (*rc)
		symbuild_free(b);
	else
		assert_int_equal(symbuild_finish(b, c, &m), 0);
	return m;
}

static struct symmap *map_in(struct symcache *c, const char *kallsyms, const char *modules)
{
	struct kallsyms_facts facts;
	struct symmap *m;
	int rc;

	m = build(kallsyms, modules, c, &facts, &rc);
	assert_int_equal(rc, 0);
	return m;
}

static struct symmap *map(const char *kallsyms)
{
	return map_in(NULL, kallsyms, NULL);
}

/* Why text is refused. */
static int refused(const char *kallsyms, struct kallsyms_facts *facts)
{
	int rc;

	symmap_unref(build(kallsyms, NULL, NULL, facts, &rc));
	return rc;
}

/* "module:name+offset", or "module:" where only that is known, or "". */
static const char *at(const struct symmap *m, uint64_t addr)
{
	static char buf[256];
	struct symbol s;

	if (symmap_lookup(m, addr, &s))
		snprintf(buf, sizeof(buf), "%s%s%s+%llu", s.module, s.module[0] ? ":" : "", s.name,
			 (unsigned long long)(addr - s.start));
	else
		snprintf(buf, sizeof(buf), "%s%s", s.module ? s.module : "",
			 s.module && s.module[0] ? ":" : "");
	return buf;
}

static void lines_of_every_kind(void **state)
{
	struct symmap *m = map("ffffffff81000000 T _text\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T startup_64\n"
			       "ffffffff81000100 t do_one_initcall\n"
			       "ffffffff81000200 W arch_idle\n"
			       "ffffffff81000300 T _etext\n"
			       "ffffffff81400000 D data\n"
			       "ffffffffc0a01000 t svm_run\t[kvm_amd]\n"
			       "ffffffffc0a01100 t svm_exit [kvm_amd]\n"
			       "ffffffffc0b01000 T vmx_run  \t [kvm_intel]\r\n");

	(void)state;
	assert_string_equal(at(m, 0xffffffff81000000), "startup_64+0");
	assert_string_equal(at(m, 0xffffffff810000ff), "startup_64+255");
	assert_string_equal(at(m, 0xffffffff81000100), "do_one_initcall+0");
	assert_string_equal(at(m, 0xffffffff810002ff), "arch_idle+255");
	assert_string_equal(at(m, 0xffffffff81000300), "");
	assert_string_equal(at(m, 0xffffffff80ffffff), "");
	assert_string_equal(at(m, 0xffffffffc0a01000), "kvm_amd:svm_run+0");
	assert_string_equal(at(m, 0xffffffffc0a01110), "kvm_amd:svm_exit+16");
	assert_string_equal(at(m, 0xffffffffc0b01001), "kvm_intel:vmx_run+1");
	symmap_unref(m);
}

/* A symbol without a known end goes to the next one, but not over megabytes of nothing. */
static void ends_are_capped(void **state)
{
	struct symmap *m = map("ffffffff81000010 T first\n"
			       "ffffffff81020010 T far_but_possible\n"
			       "ffffffff81f00010 T far_away\n"
			       "ffffffffc0a01ff0 t last\t[one]\n"
			       "ffffffffc0a03000 t next\t[two]\n");

	(void)state;
	assert_string_equal(at(m, 0xffffffff8102000f), "first+131071");
	/* Up to the page after its own. */
	assert_string_equal(at(m, 0xffffffff81021fff), "far_but_possible+8175");
	assert_string_equal(at(m, 0xffffffff81022000), "");
	/* Another module's symbol is no end to rely on. */
	assert_string_equal(at(m, 0xffffffffc0a02fff), "one:last+4111");
	assert_string_equal(at(m, 0xffffffffc0a03000), "two:next+0");
	assert_string_equal(at(m, 0xffffffffc0a05000), "");
	symmap_unref(m);
}

/* The top of the address space: nothing wraps. */
static void at_the_top(void **state)
{
	struct symmap *m = map("ffffffffff600000 T vsyscall\nfffffffffffffff0 T top\n");

	(void)state;
	assert_string_equal(at(m, 0xfffffffffffffff0), "top+0");
	assert_string_equal(at(m, 0xfffffffffffffffe), "top+14");
	assert_string_equal(at(m, 0), "");
	symmap_unref(m);
}

/* Numbers, per-CPU offsets and data are no code, and none of them reaches over code. */
static void only_code_has_names(void **state)
{
	struct symmap *m = map("0000000000000000 A __per_cpu_start\n"
			       "0000000000004000 D cpu_tss\n"
			       "00000000deadbeef A some_constant\n"
			       "ffffffff80000000 A absolute_before\n"
			       "ffffffff81000000 d data_before\n"
			       "ffffffff81001000 T code\n"
			       "ffffffff81001080 A constant_inside\n"
			       "ffffffff81001100 r rodata\n"
			       "ffffffff81001200 B bss\n");

	(void)state;
	assert_int_equal(symmap_count(m), 1);
	assert_string_equal(at(m, 0x5000), "");
	assert_string_equal(at(m, 0xffffffff81000fff), "");
	assert_string_equal(at(m, 0xffffffff810010ff), "code+255");
	assert_string_equal(at(m, 0xffffffff81001100), "");
	symmap_unref(m);
}

/* kptr_restrict in its forms: named as such, and no symbol is taken from it. */
static void hidden_addresses(void **state)
{
	struct kallsyms_facts facts;

	(void)state;
	assert_int_equal(refused("0000000000000000 T _text\n0000000000000000 t a\n", &facts),
			 -EACCES);
	assert_int_equal(facts.zeros, 2);
	assert_int_equal(refused("          (null) T _text\n          (null) t a [m]\n", &facts),
			 -EACCES);
	assert_int_equal(refused("00000000 T _text\n", &facts), -EACCES); /* 32 bits */
}

static void no_kallsyms(void **state)
{
	struct kallsyms_facts facts;

	(void)state;
	assert_int_equal(refused("", &facts), -EBADMSG);
	assert_int_equal(refused("cat: /proc/kallsyms: Permission denied\n", &facts), -EBADMSG);
	assert_int_equal(refused("\n\n\n", &facts), -EBADMSG);
	assert_int_equal(refused("ffffffff81000000 D only_data\n", &facts), -EBADMSG);
	assert_int_equal(refused("ffffffff81000000 T a\nx\ny\nz\n", &facts), -EBADMSG);
	assert_int_equal(facts.bad, 3);
	assert_int_equal(refused("fffffffff81000000 T seventeen_digits\n", &facts), -EBADMSG);
	assert_int_equal(refused("ffffffff81000000 T\n", &facts), -EBADMSG);
	assert_int_equal(refused("ffffffff81000000 T a [unclosed\n", &facts), -EBADMSG);
}

/* Labels of assemblers, suffixes of compilers. */
static void odd_names(void **state)
{
	struct symmap *m = map("ffff800010000000 T _text\n"
			       "ffff800010000000 t $x\n"
			       "ffff800010000040 t $d.17\n"
			       "ffff800010000080 t $xrv64i2p1\n"
			       "ffff8000100000a0 t .L123\n"
			       "ffff800010000100 t free_one.isra.0\n"
			       "ffff800010000200 t free_one.cold\n"
			       "ffff800010000300 t vfs_read.llvm.8151512386174329875\n"
			       "ffff800010000400 t .llvm.1\n");

	(void)state;
	assert_string_equal(at(m, 0xffff8000100000ff), "_text+255");
	assert_string_equal(at(m, 0xffff800010000100), "free_one.isra.0+0");
	assert_string_equal(at(m, 0xffff800010000200), "free_one.cold+0");
	assert_string_equal(at(m, 0xffff800010000300), "vfs_read+0");
	assert_string_equal(at(m, 0xffff800010000400), ".llvm.1+0");
	symmap_unref(m);
}

/* A NUL ends a name for everybody: what begins with one has none. */
static void names_with_a_nul(void **state)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000100 t \0hidden\n"
				   "ffffffff81000200 t a\0b\n";
	struct symbuild *b = symbuild_new();
	struct kallsyms_facts facts;
	struct symmap *m;

	(void)state;
	assert_int_equal(kallsyms_parse(text, sizeof(text) - 1, b, &facts), 0);
	assert_int_equal(facts.bad, 1);
	assert_int_equal(symbuild_finish(b, NULL, &m), 0);
	assert_string_equal(at(m, 0xffffffff81000100), "_stext+256");
	assert_string_equal(at(m, 0xffffffff81000200), "a+0");
	symmap_unref(m);
}

/* One name an address, the same whatever the order of the lines. */
static void aliases_are_deterministic(void **state)
{
	static const char *const lines[] = {
		"ffffffff81000000 t __do_sys_getpid\n", "ffffffff81000000 T __x64_sys_getpid\n",
		"ffffffff81000000 W weak_getpid\n",	"ffffffff81000000 T __getpid_start\n",
		"ffffffff81000000 T sys_getpid\n",	"ffffffff81000000 t local_getpid\n",
		"ffffffff81000000 D getpid_data\n",
	};
	const size_t n = sizeof(lines) / sizeof(lines[0]);

	(void)state;
	for (size_t first = 0; first < n; first++) {
		char text[1024] = "";
		struct symmap *m;

		for (size_t i = 0; i < n; i++)
			strcat(text, lines[(first + i * 3) % n]);
		m = map(text);
		assert_string_equal(at(m, 0xffffffff81000000), "sys_getpid+0");
		symmap_unref(m);
	}
}

/* /proc/modules names code that has no symbol and ends a module's last symbol. */
static void ranges_of_modules(void **state)
{
	struct symmap *m = map_in(NULL,
				  "ffffffff81000000 T code\nffffffff81000100 T _etext\n"
				  "ffffffffc0a01000 t f\t[kvm_amd]\n"
				  "ffffffffc0a01800 t g\t[kvm_amd]\n",
				  "kvm_amd 8192 0 - Live 0xffffffffc0a00000\n"
				  "kvm 1146880 1 kvm_amd, Live 0xffffffffc0304000 (OE)\n"
				  "hidden 4096 0 - Live 0x0000000000000000\n"
				  "nonsense\n");

	(void)state;
	assert_string_equal(at(m, 0xffffffffc0a00800), "kvm_amd:");
	assert_string_equal(at(m, 0xffffffffc0a01fff), "kvm_amd:g+2047");
	assert_string_equal(at(m, 0xffffffffc0a02000), "");
	assert_string_equal(at(m, 0xffffffffc0304000), "kvm:");
	symmap_unref(m);
}

static void modules_without_addresses(void **state)
{
	static const char text[] = "kvm 1146880 1 kvm_amd, Live 0x0000000000000000\n";
	struct symbuild *b = symbuild_new();
	struct modules_facts facts;

	(void)state;
	assert_int_equal(modules_parse(text, strlen(text), b, &facts), -EACCES);
	assert_int_equal(modules_parse("", 0, b, &facts), 0); /* a kernel without modules */
	symbuild_free(b);
}

/* A real kernel: every line of code is found again, by its own name or a better one of its place.
 */
static void recorded(const char *kallsyms, const char *modules)
{
	char *text = file_text(kallsyms, NULL), *mods = modules ? file_text(modules, NULL) : NULL,
	     *save = NULL;
	struct kallsyms_facts facts;
	struct symmap *m;
	size_t code = 0, same = 0;
	int rc;

	m = build(text, mods, NULL, &facts, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(facts.bad, 0);
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		unsigned long long addr;
		char type, name[256], module[80] = "";
		struct symbol s;

		assert_in_range(sscanf(l, "%llx %c %255s [%79[^]]", &addr, &type, name, module), 3,
				4);
		if (!strchr("tTwW", type) || strcmp(name, "_etext") == 0 ||
		    strcmp(name, "_einittext") == 0 || strstr(name, "_end"))
			continue;
		code++;
		assert_true(symmap_lookup(m, addr, &s));
		assert_int_equal(s.start, addr);
		assert_string_equal(s.module, module);
		assert_true(s.size > 0);
		same += strcmp(s.name, name) == 0;
	}
	assert_true(code > 200);
	assert_true(same * 10 > code * 9);
	symmap_unref(m);
	free(text);
	free(mods);
}

static void recorded_kernels(void **state)
{
	(void)state;
	recorded(DATA "kallsyms-6.1.txt", DATA "modules-6.1.txt");
	recorded(DATA "kallsyms-6.18.txt", NULL);
}

static void recorded_facts(void **state)
{
	char *text = file_text(DATA "kallsyms-6.1.txt", NULL),
	     *mods = file_text(DATA "modules-6.1.txt", NULL);
	struct kallsyms_facts facts;
	struct symmap *m;
	int rc;

	(void)state;
	m = build(text, mods, NULL, &facts, &rc);
	assert_int_equal(facts.stext, 0xffffffff81000000);
	assert_int_equal(facts.zeros, 0);
	/* What lies behind the text is not its last function's. */
	assert_string_equal(at(m, 0xffffffff81e01d32), "");
	/* In a module that the trimmed list has no symbols of. */
	assert_string_equal(at(m, 0xffffffffc02d1010), "9p:");
	symmap_unref(m);
	free(text);
	free(mods);
}

/* The same kernel, moved: every address but no offset differs. */
static char *moved(const char *kallsyms, uint64_t by)
{
	char *out = calloc(1, strlen(kallsyms) + 1), *to = out;
	const char *p = kallsyms;

	while (*p) {
		const char *nl = strchr(p, '\n');
		unsigned long long addr = strtoull(p, NULL, 16);

		to += sprintf(to, "%016llx%.*s", addr >> 63 ? addr + by : addr, (int)(nl - p - 15),
			      p + 16);
		p = nl + 1;
	}
	return out;
}

static void kaslr_shares_tables(void **state)
{
	struct symcache *c = symcache_new();
	char *text = file_text(DATA "kallsyms-6.1.txt", NULL), *other = moved(text, 0x1c600000);
	struct symmap *a = map_in(c, text, NULL), *b;
	size_t tables = symcache_count(c);
	struct symbol s, t;

	(void)state;
	b = map_in(c, other, NULL);
	assert_int_equal(symcache_count(c), tables);
	assert_true(symmap_lookup(a, 0xffffffff81a59183, &s));
	assert_true(symmap_lookup(b, 0xffffffff81a59183 + 0x1c600000, &t));
	assert_int_equal(t.start - s.start, 0x1c600000);
	assert_int_equal(s.table, t.table);
	assert_int_equal(s.index, t.index);
	assert_true(s.table > 0);
	assert_ptr_equal(s.name, t.name);
	/* By number, as the model asks. */
	assert_true(symcache_symbol(c, s.table, s.index, &t));
	assert_string_equal(t.name, s.name);
	assert_false(symcache_symbol(c, s.table + 1000, 0, &t));
	assert_false(symcache_symbol(c, s.table, 1u << 30, &t));
	symmap_unref(a);
	symcache_trim(c);
	symcache_trim(c);
	assert_int_equal(symcache_count(c), tables); /* b still has them */
	symmap_unref(b);
	symcache_trim(c);
	assert_true(symcache_symbol(c, s.table, s.index, &t)); /* until the second call after */
	symcache_trim(c);
	assert_int_equal(symcache_count(c), 0);
	free(text);
	free(other);
	symcache_free(c);
}

/* Every address of a region, against a search without any tree. */
static void lookup_is_exact(void **state)
{
	enum { N = 5000 };
	uint64_t start[N], at_addr = 0xffffffff81000000;
	char *text = calloc(N, 48), *p = text;
	uint32_t seed = 7, i = 0;
	struct symmap *m;

	(void)state;
	for (uint32_t k = 0; k < N; k++) {
		seed = seed * 1664525u + 1013904223u;
		start[k] = at_addr;
		p += sprintf(p, "%016llx t f%u\n", (unsigned long long)at_addr, k);
		at_addr += 1 + (seed >> 8) % 37;
	}
	m = map(text);
	for (uint64_t a = start[0]; a < start[N - 1]; a++) {
		struct symbol s;

		if (i + 1 < N && start[i + 1] <= a)
			i++;
		assert_true(symmap_lookup(m, a, &s));
		assert_int_equal(s.index, i);
		assert_int_equal(s.start, start[i]);
	}
	/* 24 bytes a symbol, and its name: a kernel has 120,000 of them. */
	assert_true(symmap_bytes(m) < N * 24 + (size_t)(p - text) - N * 18);
	symmap_unref(m);
	free(text);
}

static void found_by_name(void **state)
{
	char *text = file_text(DATA "kallsyms-6.1.txt", NULL);
	struct symmap *m = map(text);
	struct symbol s;

	(void)state;
	assert_true(symmap_find(m, "native_safe_halt", &s) || symmap_find(m, "default_idle", &s));
	assert_true(s.start >> 63);
	assert_false(symmap_find(m, "no_such_function", &s));
	symmap_unref(m);
	free(text);
}

/* Parts that lie over each other: symbols go before names of modules, the lower before the higher.
 */
static void parts_that_overlap(void **state)
{
	struct symmap *code = map("1000 T f\n1100 T g\n1200 D end\n"), *m;
	const struct symmap_part *p;
	struct symmap_part part[4] = {{0}};

	(void)state;
	assert_int_equal(symmap_parts(code, &p), 1);
	part[0] = (struct symmap_part){0x0800, 0x1800, 0, symtab_nameless(NULL, "around")};
	part[1] = p[0];
	part[2] = (struct symmap_part){0x1700, 0x2000, 0, symtab_nameless(NULL, "after")};
	part[3] = p[0];
	part[3].lo = 0x1180;
	part[3].hi = 0x1280;
	m = symmap_new(part, 4);
	assert_string_equal(at(m, 0x0fff), "around:");
	assert_string_equal(at(m, 0x1000), "f+0");
	assert_string_equal(at(m, 0x11ff), "g+255");
	assert_string_equal(at(m, 0x17ff), "around:");
	assert_string_equal(at(m, 0x1800), "after:");
	assert_string_equal(at(m, 0x2000), "");
	symmap_unref(m);
	symmap_unref(code);
	symtab_unref(part[0].tab);
	symtab_unref(part[2].tab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_every_kind),
		cmocka_unit_test(ends_are_capped),
		cmocka_unit_test(at_the_top),
		cmocka_unit_test(only_code_has_names),
		cmocka_unit_test(hidden_addresses),
		cmocka_unit_test(no_kallsyms),
		cmocka_unit_test(odd_names),
		cmocka_unit_test(names_with_a_nul),
		cmocka_unit_test(aliases_are_deterministic),
		cmocka_unit_test(ranges_of_modules),
		cmocka_unit_test(modules_without_addresses),
		cmocka_unit_test(recorded_kernels),
		cmocka_unit_test(recorded_facts),
		cmocka_unit_test(kaslr_shares_tables),
		cmocka_unit_test(lookup_is_exact),
		cmocka_unit_test(found_by_name),
		cmocka_unit_test(parts_that_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
