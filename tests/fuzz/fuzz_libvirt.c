// SPDX-License-Identifier: GPL-2.0-only
/* A live XML of any bytes: texts are terminated, vCPUs are few and have numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vms_libvirt.h"

static void check_text(const char *s, size_t size)
{
	if (strnlen(s, size) == size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct libvirt_domain d;

	if (libvirt_parse((const char *)data, len, &d))
		return 0;
	check_text(d.name, sizeof(d.name));
	check_text(d.uuid, sizeof(d.uuid));
	check_text(d.title, sizeof(d.title));
	check_text(d.nova, sizeof(d.nova));
	for (size_t i = 0; i < d.nvcpu; i++) {
		check_text(d.vcpu[i].pin, sizeof(d.vcpu[i].pin));
		if (d.vcpu[i].index < 0 || d.vcpu[i].tid < 0)
			abort();
	}
	libvirt_free(&d);
	return 0;
}
