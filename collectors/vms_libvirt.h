// SPDX-License-Identifier: GPL-2.0-only
/* libvirt's live XML of a domain (/run/libvirt/qemu/<name>.xml), read as a file. */
#ifndef KVMTOP_COLLECTORS_VMS_LIBVIRT_H
#define KVMTOP_COLLECTORS_VMS_LIBVIRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sysroot;

struct libvirt_vcpu {
	int index;
	pid_t tid; /* 0 not said */
	char pin[128]; /* cpuset, "" none */
};

struct libvirt_domain {
	pid_t pid; /* of the VMM, 0 not said */
	char name[256], uuid[64], title[256], nova[256]; /* "" none */
	struct libvirt_vcpu *vcpu;
	size_t nvcpu;
};

/*
 * Bytes of one file. -EBADMSG: no such XML, or with a DTD, which libvirt never writes and
 * entity bombs need. What was found is freed with libvirt_free().
 */
int libvirt_parse(const char *xml, size_t len, struct libvirt_domain *out);
void libvirt_free(struct libvirt_domain *d);

/*
 * Reads the file of domain `name` when it is another one than *seen says (then updated).
 * 0: read; -EALREADY: as before; else no such file, or one that root did not write.
 */
int libvirt_read(const struct sysroot *root, const char *name, struct stat *seen,
		 struct libvirt_domain *out);

#endif
