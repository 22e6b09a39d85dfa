// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a host is, apart from its figures: kernel, boot, command line, mitigations, parameters of
 * KVM's modules, SMT, NUMA, versions of the VMMs. Recordings carry it, so that two of them can be
 * compared.
 */
#ifndef KVMTOP_HOST_FACTS_H
#define KVMTOP_HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct sysroot;

#define HOST_FACTS_MOST 4096
#define HOST_FACT_BYTES 8192 /* the longest name or value; longer ones are cut */

struct host_fact {
	char *name; /* "kernel", "mitigation.retbleed", "kvm_amd.nested" */
	char *value; /* one line, as the kernel says it: untrusted text */
};

/* In order of their names; what is not known is not there. Zeroed: none. */
struct host_facts {
	struct host_fact *fact;
	size_t n;
};

/* All but the VMMs' versions. 0 or -ENOMEM; *out is empty then. */
int host_facts_read(const struct sysroot *r, struct host_facts *out);
/* One more; the last of a name counts. Both are copied. 0 or -ENOMEM, -E2BIG. */
int host_facts_add(struct host_facts *f, const char *name, const char *value);
void host_facts_free(struct host_facts *f); /* what is in it, and zeroes it */
const char *host_facts_get(const struct host_facts *f, const char *name); /* NULL: not known */
bool host_facts_equal(const struct host_facts *a, const struct host_facts *b);

/* Versions of VMM programs, by the file that runs: each is looked through once. */
struct vmm_versions;

struct vmm_versions *vmm_versions_new(void); /* NULL: no memory */
void vmm_versions_free(struct vmm_versions *v); /* NULL is fine */
/*
 * Adds the version of the program that process runs to the fact "vmm.NAME" (several: by commas).
 * Known of QEMU. 0, also where it is not known, or -ENOMEM.
 */
int vmm_versions_add(struct vmm_versions *v, const struct sysroot *r, pid_t pid, const char *name,
		     struct host_facts *f);

#endif
