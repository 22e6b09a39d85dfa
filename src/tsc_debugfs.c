// SPDX-License-Identifier: GPL-2.0-only
/* A vCPU's TSC in debugfs (tsc_debugfs.h). */
#include "tsc_debugfs.h"

#include <errno.h>
#include <string.h>

#include "sysroot.h"

static int read_number(const struct sysroot *root, const char *key, int kvm_id, const char *file,
		       uint64_t *out)
{
	char buf[40];
	ssize_t n = sysroot_readf(root, buf, sizeof(buf), "sys/kernel/debug/kvm/%s/vcpu%d/%s", key,
				  kvm_id, file);

	if (n < 0)
		return (int)n;
	return tsc_parse_offset(buf, strcspn(buf, "\n"), out) < 0 ? -EINVAL : 0;
}

int tsc_debugfs_offset(const struct sysroot *root, const char *key, int kvm_id, uint64_t *offset)
{
	return read_number(root, key, kvm_id, "tsc-offset", offset);
}

int tsc_debugfs_scale(const struct sysroot *root, const char *key, int kvm_id,
		      struct tsc_scale *scale)
{
	uint64_t ratio = 0, bits = 0;
	int rc = read_number(root, key, kvm_id, "tsc-scaling-ratio", &ratio);

	*scale = (struct tsc_scale){0};
	if (!rc)
		rc = read_number(root, key, kvm_id, "tsc-scaling-ratio-frac-bits", &bits);
	if (rc < 0)
		return rc;
	if (ratio && bits <= TSC_FRAC_MAX && ratio != (uint64_t)1 << bits)
		*scale = (struct tsc_scale){ratio, (unsigned)bits};
	return 0;
}

int tsc_debugfs_read(const struct sysroot *root, const char *key, int kvm_id, uint64_t *offset,
		     struct tsc_scale *scale)
{
	int rc = tsc_debugfs_offset(root, key, kvm_id, offset);

	*scale = (struct tsc_scale){0};
	if (rc < 0)
		return rc;
	(void)tsc_debugfs_scale(root, key, kvm_id,
				scale); /* without it the guest's is not scaled */
	return 0;
}
