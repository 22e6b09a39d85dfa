// SPDX-License-Identifier: GPL-2.0-only
/* "kvm_amd 208896 0 - Live 0xffffffffc0a00000 (OE)": /proc/modules (modules.h). */
#include <errno.h>
#include <string.h>

#include "hex.h"
#include "modules.h"

#define WORDS 6

struct word {
	const char *p;
	size_t len;
};

static size_t split(const char *p, const char *end, struct word *w)
{
	size_t n = 0;

	while (n < WORDS) {
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (p == end)
			break;
		w[n].p = p;
		while (p < end && *p != ' ' && *p != '\t' && *p != '\r')
			p++;
		w[n].len = (size_t)(p - w[n].p);
		if (!w[n].len)
			break;
		n++;
	}
	return n;
}

static bool decimal(const struct word *w, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < w->len; i++) {
		if (w->p[i] < '0' || w->p[i] > '9' || v > UINT32_MAX)
			return false;
		v = v * 10 + (uint64_t)(w->p[i] - '0');
	}
	*out = v;
	return w->len;
}

/* "0xffffffffc0a00000", "0x0000000000000000", "(null)". */
static bool hex(const struct word *w, uint64_t *out)
{
	*out = 0;
	if (w->len == 6 && memcmp(w->p, "(null)", 6) == 0)
		return true;
	if (w->len < 3 || w->len > 18 || memcmp(w->p, "0x", 2) != 0)
		return false;
	for (size_t i = 2; i < w->len; i++) {
		int d = hex_digit(w->p[i]);

		if (d < 0)
			return false;
		*out = *out << 4 | (unsigned)d;
	}
	return true;
}

static int take_line(const char *p, const char *end, struct symbuild *b,
		     struct modules_facts *facts)
{
	struct word w[WORDS];
	uint64_t size, addr;
	int module;

	if (split(p, end, w) < WORDS || !decimal(&w[1], &size) || !hex(&w[5], &addr)) {
		facts->bad++;
		return 0;
	}
	if (!addr || !size || addr + size < addr) {
		facts->zeros++;
		return 0;
	}
	module = symbuild_module(b, w[0].p, w[0].len);
	if (module < 0)
		return module;
	facts->modules++;
	return symbuild_range(b, (unsigned)module, addr, addr + size);
}

int modules_parse(const char *text, size_t len, struct symbuild *b, struct modules_facts *facts)
{
	const char *p = text, *end = text + len;
	int rc = 0;

	*facts = (struct modules_facts){0};
	while (!rc && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *to = nl ? nl : end;

		if (to > p)
			rc = take_line(p, to, b, facts);
		p = nl ? nl + 1 : end;
	}
	if (!rc && facts->zeros && !facts->modules)
		rc = -EACCES;
	return rc;
}
