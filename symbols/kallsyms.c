// SPDX-License-Identifier: GPL-2.0-only
/*
 * "ffffffff81000000 T _stext", "ffffffffc0a01000 t svm_vcpu_run\t[kvm_amd]": the kernel's list of
 * its symbols, as it was in every version and as files that passed through other tools have it.
 */
#include <errno.h>
#include <string.h>

#include "hex.h"
#include "kallsyms.h"

struct line {
	uint64_t addr;
	char type;
	const char *name, *module;
	size_t name_len, module_len;
};

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static const char *skip_word(const char *p, const char *end)
{
	while (p < end && *p != ' ' && *p != '\t' && *p != '\r')
		p++;
	return p;
}

/* An address, or "(null)" as some kernels print a hidden one. NULL: neither. */
static const char *take_address(const char *p, const char *end, uint64_t *addr)
{
	const char *from = p;
	uint64_t v = 0;
	int d;

	if (end - p >= 6 && memcmp(p, "(null)", 6) == 0) {
		*addr = 0;
		return p + 6;
	}
	for (; p < end && (d = hex_digit(*p)) >= 0; p++)
		v = v << 4 | (unsigned)d;
	*addr = v;
	return p > from && p - from <= 16 ? p : NULL;
}

/* One line without its end. The parts point into it. */
static bool take_line(const char *p, const char *end, struct line *l)
{
	const char *word;

	p = take_address(skip_blanks(p, end), end, &l->addr);
	if (!p || p == end || (*p != ' ' && *p != '\t'))
		return false;
	p = skip_blanks(p, end);
	if (end - p < 3 || (p[1] != ' ' && p[1] != '\t'))
		return false;
	l->type = *p;
	word = skip_blanks(p + 1, end);
	p = skip_word(word, end);
	l->name = word;
	l->name_len = strnlen(word, (size_t)(p - word)); /* a NUL would end it for all others */
	l->module = "";
	l->module_len = 0;
	p = skip_blanks(p, end);
	if (p < end && *p == '[') {
		word = p + 1;
		p = memchr(word, ']', (size_t)(end - word));
		if (!p)
			return false;
		l->module = word;
		l->module_len = (size_t)(p - word);
	}
	return l->name_len > 0;
}

bool kallsyms_is_line(const char *p, const char *end)
{
	struct line l;

	return take_line(p, end, &l);
}

bool kallsyms_begins(const char *text, size_t len)
{
	const char *end = text + len, *to;
	size_t lines = 0, bad = 0;
	struct line l;

	for (const char *p = text; p < end; p = to + 1) {
		to = memchr(p, '\n', (size_t)(end - p));
		if (!to && lines + bad)
			break; /* cut */
		to = to ? to : end;
		if (take_line(p, to, &l))
			lines++;
		else
			bad += to > p;
	}
	return lines && bad <= lines;
}

static bool is(const struct line *l, const char *name)
{
	return strlen(name) == l->name_len && memcmp(l->name, name, l->name_len) == 0;
}

static bool starts(const struct line *l, const char *with)
{
	size_t n = strlen(with);

	return l->name_len >= n && memcmp(l->name, with, n) == 0;
}

static bool ends(const struct line *l, const char *with)
{
	size_t n = strlen(with);

	return l->name_len >= n && memcmp(l->name + l->name_len - n, with, n) == 0;
}

/*
 * What the linker script and the assembler put in between functions: where a section ends (true
 * for *end: nothing of that name runs), where one begins.
 */
static bool is_marker(const struct line *l, bool *end)
{
	*end = is(l, "_etext") || is(l, "_einittext") || is(l, "_end") ||
	       (starts(l, "__") && (ends(l, "_end") || ends(l, "_stop")));
	return *end || is(l, "_stext") || is(l, "_text") || is(l, "_sinittext") ||
	       (starts(l, "__") && (ends(l, "_start") || ends(l, "_begin")));
}

/* "$x", "$d.12", "$xrv64i2p1": where the assembler changes between code and data; ".L12". */
static bool is_mapping(const struct line *l)
{
	return l->name[0] == '$' || starts(l, ".L");
}

/* "f.llvm.1234": the number says nothing to anybody; the kernel itself drops it since 6.6. */
static size_t shown_length(const struct line *l)
{
	const char *p = memmem(l->name, l->name_len, ".llvm.", 6);

	return p && p > l->name ? (size_t)(p - l->name) : l->name_len;
}

static void note_text(const struct line *l, struct kallsyms_facts *facts)
{
	if (l->module_len || l->name[0] != '_')
		return;
	if (is(l, "_stext") || (is(l, "_text") && !facts->stext))
		facts->stext = l->addr;
}

static int add_code(const struct line *l, struct symbuild *b, struct kallsyms_facts *facts)
{
	enum symbol_rank rank = l->type == 'T' ? RANK_GLOBAL : RANK_LOCAL;
	bool end = false;
	int module;

	note_text(l, facts);
	if (l->type == 'w' || l->type == 'W')
		rank = RANK_WEAK;
	if (l->name[0] == '_' && is_marker(l, &end))
		rank = RANK_MARKER;
	if (end)
		return symbuild_bound(b, l->addr);
	module = symbuild_module(b, l->module, l->module_len);
	if (module < 0)
		return module;
	facts->code++;
	facts->modules += l->module_len > 0;
	return symbuild_add(b, l->addr, 0, rank, (unsigned)module, l->name, shown_length(l));
}

static int add_line(const struct line *l, struct symbuild *b, struct kallsyms_facts *facts)
{
	facts->lines++;
	if (is_mapping(l))
		return 0;
	switch (l->type) {
	case 't':
	case 'T':
	case 'w':
	case 'W':
	case 'i': /* chosen at run time among several */
		if (l->addr)
			return add_code(l, b, facts);
		facts->zeros++;
		return 0;
	case 'a': /* numbers, not addresses; per-CPU offsets in older kernels */
	case 'A':
	case 'U':
	case '?':
	case '-':
		return 0;
	default:
		return l->addr ? symbuild_bound(b, l->addr) : 0;
	}
}

/* What the whole says about itself. */
static int judge(const struct kallsyms_facts *facts)
{
	if (!facts->lines || facts->bad > facts->lines)
		return -EBADMSG;
	if (facts->zeros && facts->zeros >= facts->code)
		return -EACCES;
	return facts->code ? 0 : -EBADMSG;
}

int kallsyms_parse(const char *text, size_t len, struct symbuild *b, struct kallsyms_facts *facts)
{
	const char *p = text, *end = text + len;
	int rc = 0;

	*facts = (struct kallsyms_facts){0};
	while (!rc && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *to = nl ? nl : end;
		struct line l;

		if (take_line(p, to, &l))
			rc = add_line(&l, b, facts);
		else if (to > p)
			facts->bad++;
		p = nl ? nl + 1 : end;
	}
	return rc ? rc : judge(facts);
}
