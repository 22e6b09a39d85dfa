// SPDX-License-Identifier: GPL-2.0-only
/* Names of debugfs folders, descriptor links and threads: numbers in them are never negative. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "vms_identify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in = malloc(len + 1);
	int fd, n;
	pid_t id;
	bool inner;

	if (!in)
		return 0;
	memcpy(in, data, len);
	in[len] = '\0';
	if (!procfs_parse_kvm_dir(in, &id, &fd) && (id <= 0 || fd < 0))
		abort();
	if (!procfs_parse_vcpu_dir(in, &n) && n < 0)
		abort();
	if (procfs_parse_kvm_link(in, &n) != KVM_LINK_VCPU && n != -1)
		abort();
	if (vms_vcpu_index(in) < -1 || vms_helper_of(in, &inner) < 0)
		abort();
	free(in);
	return 0;
}
