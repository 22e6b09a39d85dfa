// SPDX-License-Identifier: GPL-2.0-only
/* Files of guests that are named on the command line: a wrong path is said at once. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options_priv.h"

static const char *const names[] = {
	[GUEST_KALLSYMS] = "guestkallsyms",
	[GUEST_MODULES] = "guestmodules",
	[GUEST_VMLINUX] = "guestvmlinux",
	[GUEST_MOUNT] = "guestmount",
};

static int check(const struct guest_file_option *g, char *err, size_t size)
{
	const char *option = names[g->what], *wrong = NULL;
	struct stat st;
	char buf[80];

	if (stat(g->file, &st) < 0 || access(g->file, R_OK) < 0)
		wrong = strerror(errno);
	else if (g->what == GUEST_MOUNT && !S_ISDIR(st.st_mode))
		wrong = "not a folder";
	else if (g->what != GUEST_MOUNT && !S_ISREG(st.st_mode))
		wrong = "not a regular file";
	if (!wrong)
		return 0;
	return options_bad(err, size, "--%s '%s': %s: give the path of %s that can be read", option,
			   options_shown(g->file, buf, sizeof(buf)), wrong,
			   g->what == GUEST_MOUNT ? "a folder of mounted guests" : "a copy");
}

int options_check_files(const struct options *o, char *err, size_t size)
{
	int rc = 0;

	for (size_t i = 0; i < o->guest_files.n && !rc; i++)
		rc = check(&o->guest_files.option[i], err, size);
	return rc;
}
