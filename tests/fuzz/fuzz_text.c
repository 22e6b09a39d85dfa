// SPDX-License-Identifier: GPL-2.0-only
/*
 * Escaping and cutting of any bytes: what comes out is terminated, fits, is UTF-8 and has
 * no control character in it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static void check_safe(const char *s, size_t size)
{
	uint32_t cp;

	if (strnlen(s, size) == size)
		abort();
	while (*s) {
		size_t n = utf8_next(s, &cp);

		if ((cp == 0xfffd && n == 1) || cp < 0x20 || (cp >= 0x7f && cp <= 0x9f))
			abort();
		s += n;
	}
}

/* No quote ends it, and no backslash is without what it escapes. */
static void check_label(const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || (*s == '\\' && !strchr("\\\"n", *++s)) || !*s)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in, out[64], cut[64];
	size_t size, width;

	if (len < 2)
		return 0;
	size = 1 + data[0] % sizeof(out);
	width = data[1] % 40;
	in = malloc(len - 1);
	if (!in)
		return 0;
	memcpy(in, data + 2, len - 2);
	in[len - 2] = '\0';
	text_escape_csv(out, size, in);
	check_safe(out, size);
	text_escape_label(out, size, in);
	check_safe(out, size);
	check_label(out);
	text_escape_word(out, size, in);
	check_safe(out, size);
	if (strchr(out, ' '))
		abort();
	text_escape(out, size, in);
	check_safe(out, size);
	text_cut_middle(cut, sizeof(cut), out, width);
	check_safe(cut, sizeof(cut));
	if (utf8_width(cut) > width)
		abort();
	text_utf8_clean(out, size, in);
	if (strnlen(out, size) == size)
		abort();
	free(in);
	return 0;
}
