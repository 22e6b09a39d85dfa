// SPDX-License-Identifier: GPL-2.0-only
/* One guest's kallsyms, modules and notes, as one command printed them (guest_capture.h). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest_capture.h"

/* --- taking apart --- */

/* "kvm_amd 163840 0 …": a name and two numbers. */
static bool is_module_line(const char *p, const char *end)
{
	const char *from = p;

	while (p < end && isgraph((unsigned char)*p))
		p++;
	if (p == from)
		return false;
	for (int i = 0; i < 2; i++) {
		if (p == end || *p++ != ' ')
			return false;
		from = p;
		while (p < end && *p >= '0' && *p <= '9')
			p++;
		if (p == from)
			return false;
	}
	return p < end && *p == ' ';
}

/* How much of the text, from its beginning, are whole lines of one kind. */
static size_t span(const char *text, size_t len, bool (*is)(const char *, const char *),
		   size_t *lines)
{
	const char *p = text, *end = text + len;

	*lines = 0;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		if (!nl || !is(p, nl))
			break;
		p = nl + 1;
		++*lines;
	}
	return (size_t)(p - text);
}

/* "\r\n" as "\n"; a terminal on the way makes the former. */
static size_t drop_returns(char *data, size_t len)
{
	size_t n = 0;

	if (!memmem(data, len, "\r\n", 2))
		return len;
	for (size_t i = 0; i < len; i++)
		if (data[i] != '\r' || i + 1 == len || data[i + 1] != '\n')
			data[n++] = data[i];
	return n;
}

static bool is_boot_id(const char *p)
{
	for (int i = 0; i < GUEST_BOOT_ID; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? p[i] != '-' : !isxdigit((unsigned char)p[i]))
			return false;
	}
	return true;
}

/* The last line, behind the notes, whose bytes may be any. */
static void take_boot_id(struct guest_capture *c)
{
	const char *p = c->notes + c->notes_len - GUEST_BOOT_ID - 1;

	if (c->notes_len <= GUEST_BOOT_ID || p[GUEST_BOOT_ID] != '\n' || !is_boot_id(p))
		return;
	memcpy(c->boot_id, p, GUEST_BOOT_ID);
	c->notes_len -= GUEST_BOOT_ID + 1;
}

int guest_capture_split(char *data, size_t len, struct guest_capture *out)
{
	struct symbuild *b = symbuild_new();
	const char *p = data;
	size_t lines;
	int rc;

	*out = (struct guest_capture){0};
	if (!b)
		return -ENOMEM;
	len = drop_returns(data, len);
	out->kallsyms = p;
	out->kallsyms_len = span(p, len, kallsyms_is_line, &lines);
	p += out->kallsyms_len;
	len -= out->kallsyms_len;
	out->modules = p;
	out->modules_len = span(p, len, is_module_line, &out->nmodules);
	out->notes = p + out->modules_len;
	out->notes_len = len - out->modules_len;
	take_boot_id(out);
	if (notes_build_id(out->notes, out->notes_len, &out->id) < 0)
		out->notes_len = 0;
	rc = kallsyms_parse(out->kallsyms, out->kallsyms_len, b, &out->facts);
	symbuild_free(b);
	return rc;
}

/* --- keeping --- */

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* Under its name only when it is complete; never through a link that is there already. */
static int write_new(int dir, const char *name, const char *data, size_t len)
{
	char new[32];
	int fd, rc;

	snprintf(new, sizeof(new), ".%s.new", name);
	if (unlinkat(dir, new, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, data, len);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

static void drop_new(int dir, const char *name)
{
	char new[32];

	snprintf(new, sizeof(new), ".%s.new", name);
	unlinkat(dir, new, 0);
}

static int put(int dir, const char *name, size_t len)
{
	char new[32];

	if (!len)
		return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	snprintf(new, sizeof(new), ".%s.new", name);
	return renameat(dir, new, dir, name) < 0 ? -errno : 0;
}

int guest_capture_keep(const struct guest_capture *c, int dir)
{
	const struct {
		const char *name, *data;
		size_t len;
	} part[] = {
		{"notes", c->notes, c->notes_len},
		{"modules", c->modules, c->modules_len},
		{"kallsyms", c->kallsyms, c->kallsyms_len},
	};
	const size_t n = sizeof(part) / sizeof(part[0]);
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		if (part[i].len)
			rc = write_new(dir, part[i].name, part[i].data, part[i].len);
	for (size_t i = 0; !rc && i < n; i++)
		rc = put(dir, part[i].name, part[i].len);
	/* A full disk, perhaps: what was to be new takes no room of it. */
	for (size_t i = 0; rc && i < n; i++)
		drop_new(dir, part[i].name);
	return rc;
}
