// SPDX-License-Identifier: GPL-2.0-only
/* /proc/<pid>/cgroup of any bytes, and the machine's name in the path that comes out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "vms_identify.h"

static void check(const char *in, size_t len, const char *controller)
{
	char path[300], name[40];
	ssize_t n = procfs_parse_cgroup(in, len, controller, path, sizeof(path));

	if (n < 0)
		return;
	if (n >= (ssize_t)sizeof(path) || path[n] || path[0] != '/')
		abort();
	if (vms_machine_name(path, name, sizeof(name)) &&
	    (!name[0] || strnlen(name, sizeof(name)) == sizeof(name)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in = malloc(len ? len : 1);

	if (!in)
		return 0;
	memcpy(in, data, len);
	check(in, len, NULL);
	check(in, len, "cpu");
	check(in, len, "name=systemd");
	free(in);
	return 0;
}
