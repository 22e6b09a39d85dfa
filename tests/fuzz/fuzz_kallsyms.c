// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/kallsyms, a NUL, /proc/modules, of any bytes: parts are in order, and every symbol is found
 * at its first and last address.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kallsyms.h"
#include "modules.h"

static void check_symbols(const struct symmap *m, const struct symmap_part *p)
{
	struct symbol s, found;

	for (uint32_t i = 0; i < symtab_count(p->tab); i++) {
		if (!symtab_symbol(p->tab, i, &s) || !s.name || !s.module || !s.size)
			abort();
		for (int last = 0; last < 2; last++) {
			uint64_t addr = p->bias + s.start + (last ? s.size - 1 : 0);

			if (addr < p->lo || addr >= p->hi)
				continue;
			if (!symmap_lookup(m, addr, &found) || found.index != i ||
			    found.name != s.name)
				abort();
		}
	}
}

static void check(const struct symmap *m)
{
	const struct symmap_part *p;
	size_t n = symmap_parts(m, &p);
	struct symbol s;

	for (size_t i = 0; i < n; i++) {
		if (p[i].lo >= p[i].hi || (i && p[i].lo < p[i - 1].hi))
			abort();
		check_symbols(m, &p[i]);
	}
	symmap_lookup(m, 0, &s);
	symmap_lookup(m, UINT64_MAX, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *nul = len ? memchr(data, '\0', len) : NULL;
	size_t first = nul ? (size_t)(nul - data) : len, rest = nul ? len - first - 1 : 0;
	char *text = malloc(first + 1), *mods = malloc(rest + 1);
	struct symbuild *b = symbuild_new();
	struct kallsyms_facts facts;
	struct modules_facts modules;
	struct symmap *m = NULL;

	if (!text || !mods || !b)
		abort();
	/* Exactly as large each: a read beyond is seen. */
	text = realloc(text, first ? first : 1);
	mods = realloc(mods, rest ? rest : 1);
	memcpy(text, data, first);
	memcpy(mods, nul ? nul + 1 : data, rest);
	modules_parse(mods, rest, b, &modules);
	kallsyms_parse(text, first, b, &facts);
	if (symbuild_finish(b, NULL, &m) == 0)
		check(m);
	symmap_unref(m);
	free(text);
	free(mods);
	return 0;
}
