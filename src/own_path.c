// SPDX-License-Identifier: GPL-2.0-only
/* The program's own file, and whether PATH finds it (own_path.h). */
#include "own_path.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "kvmtop"
#define SELF "/proc/self/exe"

/* The first of its name in PATH is what a shell would run. */
static bool path_finds_it(void)
{
	const char *dir = getenv("PATH");
	struct stat own, there;
	char file[PATH_MAX];

	if (!dir || stat(SELF, &own))
		return false;
	for (size_t n; *dir; dir += n + (dir[n] == ':')) {
		n = strcspn(dir, ":");
		snprintf(file, sizeof(file), "%.*s/" NAME, (int)n, dir);
		if (!access(file, X_OK) && !stat(file, &there) && S_ISREG(there.st_mode))
			return there.st_dev == own.st_dev && there.st_ino == own.st_ino;
	}
	return false;
}

const char *own_command(char *buf, size_t size)
{
	ssize_t n;

	if (path_finds_it())
		return NAME;
	n = readlink(SELF, buf, size);
	if (n <= 0 || (size_t)n >= size)
		return NAME;
	buf[n] = '\0';
	return buf;
}

static bool ends_word(char c)
{
	return !c || strchr(" ,;:)'\"", c);
}

void own_words(char *out, size_t size, const char *text, const char *command)
{
	const size_t len = sizeof(NAME) - 1;
	const char *from = text;
	size_t at = 0;

	out[0] = '\0';
	for (const char *p = text; *p && at < size; p++) {
		if (strncmp(p, NAME, len) != 0 || !ends_word(p[len]) ||
		    (p > text && !ends_word(p[-1])))
			continue;
		at += (size_t)snprintf(out + at, size - at, "%.*s%s", (int)(p - from), from,
				       command);
		from = p + len;
		p += len - 1;
	}
	if (at < size)
		snprintf(out + at, size - at, "%s", from);
}
