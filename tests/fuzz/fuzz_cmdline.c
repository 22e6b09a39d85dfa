// SPDX-License-Identifier: GPL-2.0-only
/*
 * A command line of any bytes with NULs in it; its first byte chooses the VMM that it is
 * said to be. A VM always gets a name, and none is cut without its end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vms_identify.h"

static const char *const exe[] = {"",
				  "/usr/bin/qemu-system-x86_64",
				  "/usr/bin/firecracker",
				  "/usr/bin/cloud-hypervisor",
				  "/usr/bin/crosvm",
				  "/usr/bin/lkvm"};

static void check_text(const char *s, size_t size)
{
	if (strnlen(s, size) == size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct vm_identity id;
	char *in;

	if (!len)
		return 0;
	in = malloc(len);
	if (!in)
		return 0;
	memcpy(in, data + 1, len - 1);
	vms_identify(in, len - 1, exe[data[0] % (sizeof(exe) / sizeof(exe[0]))], "comm", 1, "",
		     &id);
	check_text(id.vmm, sizeof(id.vmm));
	check_text(id.uuid, sizeof(id.uuid));
	check_text(id.name, sizeof(id.name));
	if (!id.name[strspn(id.name, " \t\r\n")])
		abort();
	free(in);
	return 0;
}
