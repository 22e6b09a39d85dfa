// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the tests' small VMMs have in common: a VM with one piece of memory from 0 on, its vCPUs,
 * and the end of the program with a reason where KVM refuses something.
 */
#ifndef GUESTS_VMM_H
#define GUESTS_VMM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

struct vmm {
	int kvm, vm;
	size_t run_size; /* of what a vCPU shares with KVM */
	unsigned char *memory; /* the guest's */
};

/* Ends the program: errno says why. */
static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

/* An ioctl that has to work; what it returned. */
static inline int must(int fd, unsigned long what, void *arg, const char *name)
{
	int r = ioctl(fd, what, arg);

	if (r < 0)
		die(name);
	return r;
}

/* A VM with that many bytes of memory. */
static inline struct vmm vmm_new(size_t size)
{
	struct kvm_userspace_memory_region region = {.memory_size = size};
	struct vmm v = {.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC)};

	if (v.kvm < 0)
		die("/dev/kvm");
	v.vm = must(v.kvm, KVM_CREATE_VM, NULL, "KVM_CREATE_VM");
	v.run_size = (size_t)must(v.kvm, KVM_GET_VCPU_MMAP_SIZE, NULL, "KVM_GET_VCPU_MMAP_SIZE");
	v.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v.memory == MAP_FAILED)
		die("memory");
	region.userspace_addr = (uintptr_t)v.memory;
	must(v.vm, KVM_SET_USER_MEMORY_REGION, &region, "KVM_SET_USER_MEMORY_REGION");
	return v;
}

/* The descriptor of a new vCPU; *run is what it shares with KVM. */
static inline int vmm_add_vcpu(const struct vmm *v, int id, struct kvm_run **run)
{
	int vcpu = ioctl(v->vm, KVM_CREATE_VCPU, id);

	if (vcpu < 0)
		die("KVM_CREATE_VCPU");
	*run = mmap(NULL, v->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	if (*run == MAP_FAILED)
		die("mmap of the vCPU");
	return vcpu;
}

#define VMM_ALL_LEAVES UINT32_MAX

/* The CPU as KVM can give it, but for one leaf of CPUID. */
static inline void vmm_set_cpuid_without(const struct vmm *v, int vcpu, uint32_t leaf)
{
	enum { MOST = 256 };
	struct kvm_cpuid2 *c = calloc(1, sizeof(*c) + MOST * sizeof(c->entries[0]));
	uint32_t n = 0;

	if (!c)
		die("memory");
	c->nent = MOST;
	must(v->kvm, KVM_GET_SUPPORTED_CPUID, c, "KVM_GET_SUPPORTED_CPUID");
	for (uint32_t i = 0; i < c->nent; i++)
		if (c->entries[i].function != leaf)
			c->entries[n++] = c->entries[i];
	c->nent = n;
	must(vcpu, KVM_SET_CPUID2, c, "KVM_SET_CPUID2");
	free(c);
}

/* The CPU as KVM can give it. */
static inline void vmm_set_cpuid(const struct vmm *v, int vcpu)
{
	vmm_set_cpuid_without(v, vcpu, VMM_ALL_LEAVES);
}

/* Real mode, in which a vCPU begins, with code from address 0 on instead of below the reset vector;
 * `data` is where its data segment is. */
static inline void vmm_set_real_mode(int vcpu, uint32_t data)
{
	struct kvm_sregs s;

	must(vcpu, KVM_GET_SREGS, &s, "KVM_GET_SREGS");
	s.cs.base = s.cs.selector = 0;
	s.ds.base = data;
	s.ds.selector = (uint16_t)(data >> 4);
	must(vcpu, KVM_SET_SREGS, &s, "KVM_SET_SREGS");
}

/* The calling thread as QEMU would call it. */
static inline void vmm_name_thread(int index)
{
	char name[16];

	snprintf(name, sizeof(name), "CPU %d/KVM", index);
	pthread_setname_np(pthread_self(), name);
}

#endif
