// SPDX-License-Identifier: GPL-2.0-only
/* Whether programs in the kernel can be had; see bpf_access.h. */
#include "bpf_access.h"

#include <errno.h>

#include "kvm_bpf.h"
#include "sysroot.h"

const char *bpf_tracefs(const struct sysroot *root, int *err)
{
	if (sysroot_has_events(root))
		return kvm_tracefs(root, err);
	*err = -EXDEV;
	return NULL;
}

void bpf_why_not(const struct sysroot *root, int err, struct kvm_reason *out)
{
	struct kvm_rights rights;

	kvm_rights_read(&rights);
	if (kvm_no_events(root, out))
		return;
	if (err != -ENOTSUP && kvm_why_not(root, &rights, 0, out))
		return;
	kvm_bpf_why(err, out);
}
