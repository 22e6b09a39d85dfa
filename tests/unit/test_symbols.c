// SPDX-License-Identifier: GPL-2.0-only
/* Symbol tables and kallsyms: real recordings, and what kernels and copies have been seen to
 * contain. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kallsyms.h"
#include "modules.h"

/* Text of kallsyms and modules into a map; NULL when it is refused, with *rc. */
static struct symmap *map_of(const char *kallsyms, const char *modules, struct symcache *c,
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

static struct symmap *map(const char *kallsyms, const char *modules)
{
	struct kallsyms_facts facts;
	struct symmap *m;
	int rc;

	m = map_of(kallsyms, modules, NULL, &facts, &rc);
	assert_int_equal(rc, 0);
	return m;
}

/* name+offset, or "module:" where only that is known, or "". */
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
			       "ffffffffc0b01000 T vmx_run  \t [kvm_intel]\r\n",
			       NULL);

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
	/* The last symbol of a module ends with the page after its own. */
	assert_string_equal(at(m, 0xffffffffc0a02fff), "kvm_amd:svm_exit+7935");
	assert_string_equal(at(m, 0xffffffffc0a03000), "");
	symmap_unref(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_every_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
