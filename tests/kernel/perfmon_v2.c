// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into a QEMU that does not know AMD's leaf 0x80000022 of CPUID (7.2, Debian 12's): its
 * guests get what KVM offers of it, as from a QEMU that passes it on.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAF 0x80000022
#define MOST 256

typedef int ioctl_fn(int fd, unsigned long request, ...);
static ioctl_fn *real;

static struct kvm_cpuid2 *new_cpuid(void)
{
	struct kvm_cpuid2 *c = calloc(1, sizeof(*c) + (MOST + 1) * sizeof(c->entries[0]));

	if (!c)
		abort();
	return c;
}

static struct kvm_cpuid_entry2 *find(struct kvm_cpuid2 *c)
{
	for (__u32 i = 0; i < c->nent; i++)
		if (c->entries[i].function == LEAF)
			return &c->entries[i];
	return NULL;
}

/* In KVM's words. */
static struct kvm_cpuid_entry2 offered(void)
{
	struct kvm_cpuid2 *c = new_cpuid();
	struct kvm_cpuid_entry2 *e, out = {.function = LEAF};
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	c->nent = MOST;
	if (kvm < 0 || real(kvm, KVM_GET_SUPPORTED_CPUID, c))
		abort();
	e = find(c);
	if (e)
		out = *e;
	close(kvm);
	free(c);
	return out;
}

static int set_cpuid(int vcpu, const struct kvm_cpuid2 *qemus)
{
	struct kvm_cpuid2 *c = new_cpuid();
	struct kvm_cpuid_entry2 *e;
	int r;

	if (qemus->nent > MOST)
		abort();
	memcpy(c, qemus, sizeof(*c) + qemus->nent * sizeof(c->entries[0]));
	e = find(c);
	if (!e)
		e = &c->entries[c->nent++];
	*e = offered();
	r = real(vcpu, KVM_SET_CPUID2, c);
	free(c);
	return r;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!real)
		real = (ioctl_fn *)dlsym(RTLD_NEXT, "ioctl");
	return request == KVM_SET_CPUID2 ? set_cpuid(fd, arg) : real(fd, request, arg);
}
