// SPDX-License-Identifier: GPL-2.0-only
/* A folder of its own for each group of tests: make_dir and remove_dir are its set-up and its end.
 */
#ifndef KVMTOP_TESTS_TEMP_DIR_H
#define KVMTOP_TESTS_TEMP_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/kvmtop-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char cmd[96];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

/* Valid until the next call. */
static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

#endif
