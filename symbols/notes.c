// SPDX-License-Identifier: GPL-2.0-only
/* ELF notes and VMCOREINFO (notes.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hex.h"
#include "notes.h"

#define NT_BUILD_ID 3

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->len && a->len == b->len && memcmp(a->byte, b->byte, a->len) == 0;
}

void build_id_text(const struct build_id *id, char *out, size_t size)
{
	size_t n = id->len < 8 ? id->len : 8;

	out[0] = '\0';
	for (size_t i = 0; i < n && 2 * i + 2 < size; i++)
		snprintf(out + 2 * i, size - 2 * i, "%02x", id->byte[i]);
}

static size_t padded(uint32_t n)
{
	return ((size_t)n + 3) & ~(size_t)3;
}

int notes_build_id(const void *data, size_t len, struct build_id *out)
{
	const char *p = data;

	out->len = 0;
	while (len >= 12) {
		uint32_t head[3]; /* name's length, content's length, type */
		size_t name, desc;

		memcpy(head, p, sizeof(head));
		name = padded(head[0]);
		desc = padded(head[1]);
		p += 12;
		len -= 12;
		if (name > len || head[1] > len - name)
			return -EBADMSG;
		if (head[2] == NT_BUILD_ID && head[0] == 4 && memcmp(p, "GNU", 4) == 0 && head[1] &&
		    head[1] <= BUILD_ID_MAX) {
			memcpy(out->byte, p + name, head[1]);
			out->len = head[1];
			return 0;
		}
		/* The last note's padding may be cut off. */
		if (desc > len - name)
			break;
		p += name + desc;
		len -= name + desc;
	}
	return -ENOENT;
}

/* Up to 16 hex digits, then the end of the line. */
static bool take_hex(const char *p, const char *end, uint64_t *out)
{
	const char *from = p;

	*out = 0;
	for (; p < end && *p != '\n'; p++) {
		int d = hex_digit(*p);

		if (d < 0)
			return false;
		*out = *out << 4 | (unsigned)d;
	}
	return p > from && p - from <= 16;
}

static bool take_id(const char *p, const char *end, struct build_id *id)
{
	uint64_t v;

	id->len = 0;
	for (; end - p >= 2 && *p != '\n'; p += 2) {
		const char pair[3] = {p[0], p[1], '\n'};

		if (id->len == BUILD_ID_MAX || !take_hex(pair, pair + 3, &v) || pair[1] == '\n') {
			id->len = 0;
			return false;
		}
		id->byte[id->len++] = (uint8_t)v;
	}
	return id->len;
}

/* What follows `key` at the beginning of a line; NULL: no such line. */
static const char *after(const char *text, const char *end, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p && (size_t)(end - p) > n;) {
		if (memcmp(p, key, n) == 0)
			return p + n;
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	return NULL;
}

int vmcoreinfo_parse(const char *text, size_t len, struct vmcoreinfo *out)
{
	const char *end = text + len, *p;
	bool found = false;

	*out = (struct vmcoreinfo){0};
	p = after(text, end, "KERNELOFFSET=");
	if (p)
		out->has_offset = found = take_hex(p, end, &out->offset);
	p = after(text, end, "SYMBOL(_stext)=");
	if (p && take_hex(p, end, &out->stext))
		found = true;
	p = after(text, end, "BUILD-ID=");
	if (p && take_id(p, end, &out->id))
		found = true;
	return found ? 0 : -ENOENT;
}
