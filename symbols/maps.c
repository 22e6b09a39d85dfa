// SPDX-License-Identifier: GPL-2.0-only
/* "7f…000-7f…000 r-xp 00028000 fe:01 1234   /usr/lib/…/libc.so.6" (maps.h). */
#include <stdio.h>
#include <string.h>

#include "hex.h"
#include "maps.h"

/* A number in hex or decimal, then `end`; NULL: none. */
static const char *number(const char *p, const char *stop, unsigned base, char end, uint64_t *out)
{
	const char *from = p;
	uint64_t v = 0;

	for (; p < stop && *p != end; p++) {
		int d = hex_digit(*p);

		if (d < 0 || (unsigned)d >= base || p - from >= 20)
			return NULL;
		v = v * base + (unsigned)d;
	}
	*out = v;
	return p > from && p < stop ? p + 1 : NULL;
}

static void take_path(const char *p, size_t n, struct mapping *m)
{
	static const char deleted[] = " (deleted)";
	const size_t d = sizeof(deleted) - 1;
	const char *base;

	if (n > d && memcmp(p + n - d, deleted, d) == 0)
		n -= d;
	if (n >= sizeof(m->path))
		n = 0;
	memcpy(m->path, p, n);
	m->path[n] = '\0';
	base = m->inode ? strrchr(m->path, '/') : NULL;
	base = base ? base + 1 : m->path;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)sizeof(m->name) - 1,
		 *base ? base : "[anon]");
}

static bool take_line(const char *p, const char *end, struct mapping *m)
{
	uint64_t dev;
	const char *perms;

	p = number(p, end, 16, '-', &m->start);
	p = p ? number(p, end, 16, ' ', &m->end) : NULL;
	if (!p || end - p < 5 || m->end <= m->start)
		return false;
	perms = p;
	p = number(p + 5, end, 16, ' ', &m->offset);
	p = p ? number(p, end, 16, ':', &dev) : NULL;
	p = p ? number(p, end, 16, ' ', &dev) : NULL;
	if (!p || perms[2] != 'x')
		return false;
	/* The inode may be the last on its line. */
	m->inode = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		m->inode = m->inode * 10 + (uint64_t)(*p - '0');
	while (p < end && *p == ' ')
		p++;
	take_path(p, (size_t)(end - p), m);
	return m->offset + (m->end - m->start) >= m->offset;
}

bool maps_next(const char *text, size_t len, size_t *at, struct mapping *out)
{
	while (*at < len) {
		const char *p = text + *at, *nl = memchr(p, '\n', len - *at);
		const char *end = nl ? nl : text + len;

		*at = (size_t)(end - text) + (nl != NULL);
		if (take_line(p, end, out))
			return true;
	}
	return false;
}
