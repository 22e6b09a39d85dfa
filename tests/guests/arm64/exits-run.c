// SPDX-License-Identifier: GPL-2.0-only
/*
 * An arm64 VM of two vCPUs, on a thread each, whose exits are known: what tests/data/perf's arm64
 * recording was made of. Built by hand with an arm64 compiler; see the README there. Every kind of
 * exit comes as often as the table says, that of the second vCPU's counts; beside them are
 * interrupts, and a fault for each page of memory that a vCPU is the first to touch.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum {
	VCPUS = 2,
	MEMORY = 1 << 20,
	MMIO = 0x10000000,
	END = 0x100, /* a write there ends the vCPU */
	PAGES_FROM = 0x10000, /* each vCPU has that much to touch */
};

struct counts {
	uint64_t reads, writes, hvc, smc, sysreg, wfi, pages;
};

static const struct counts counts[VCPUS] = {
	{120, 60, 200, 20, 90, 15, 8},
	{30, 40, 50, 10, 25, 5, 4},
};

/* x0: the first page to touch, x21 to x27: counts, x8: MMIO. */
extern const char guest_code[], guest_code_end[];
__asm__(".global guest_code, guest_code_end\n"
	"guest_code:\n"
	"1:	ldr w9, [x8]\n"
	"	subs x21, x21, #1\n"
	"	b.ne 1b\n"
	"1:	str w9, [x8, #4]\n"
	"	subs x22, x22, #1\n"
	"	b.ne 1b\n"
	"	mov x19, x0\n" /* calls return something in x0 to x3 */
	"1:	movz x0, #0x8400, lsl #16\n" /* PSCI_VERSION */
	"	hvc #0\n"
	"	subs x23, x23, #1\n"
	"	b.ne 1b\n"
	"1:	smc #0\n"
	"	subs x24, x24, #1\n"
	"	b.ne 1b\n"
	"1:	mrs x9, id_aa64pfr0_el1\n"
	"	subs x25, x25, #1\n"
	"	b.ne 1b\n"
	"	mrs x10, cntfrq_el0\n"
	"	lsr x10, x10, #9\n" /* 2 ms */
	"1:	mrs x9, cntvct_el0\n"
	"	add x9, x9, x10\n"
	"	msr cntv_cval_el0, x9\n"
	"	mov x9, #1\n"
	"	msr cntv_ctl_el0, x9\n"
	"	isb\n"
	"	wfi\n"
	"	msr cntv_ctl_el0, xzr\n"
	"	isb\n"
	"	subs x26, x26, #1\n"
	"	b.ne 1b\n"
	"1:	str x9, [x19]\n"
	"	add x19, x19, #4096\n"
	"	subs x27, x27, #1\n"
	"	b.ne 1b\n"
	"	str w9, [x8, #0x100]\n"
	"	b .\n"
	"guest_code_end:\n");

/* Ends the program: errno says why. */
static void die(const char *what)
{
	fprintf(stderr, "exits-run: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* An ioctl that has to work; what it returned. */
static int must(int fd, unsigned long what, void *arg, const char *name)
{
	int r = ioctl(fd, what, arg);

	if (r < 0)
		die(name);
	return r;
}

static void *map(int fd, size_t size, int flags)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

struct vcpu {
	int fd;
	struct kvm_run *run;
	unsigned long reads, writes, interrupted;
	pthread_t thread;
};

static void set_reg(int vcpu, uint64_t index, uint64_t value)
{
	struct kvm_one_reg reg = {.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | index,
				  .addr = (uintptr_t)&value};

	must(vcpu, KVM_SET_ONE_REG, &reg, "KVM_SET_ONE_REG");
}

static void make(struct vcpu *c, int vm, size_t run_size, unsigned id)
{
	const uint64_t *n = (const uint64_t *)&counts[id];
	struct kvm_vcpu_init init;

	c->fd = must(vm, KVM_CREATE_VCPU, (void *)(uintptr_t)id, "KVM_CREATE_VCPU");
	must(vm, KVM_ARM_PREFERRED_TARGET, &init, "KVM_ARM_PREFERRED_TARGET");
	must(c->fd, KVM_ARM_VCPU_INIT, &init, "KVM_ARM_VCPU_INIT");
	c->run = map(c->fd, run_size, MAP_SHARED);
	set_reg(c->fd, KVM_REG_ARM_CORE_REG(regs.pc), 0);
	set_reg(c->fd, KVM_REG_ARM_CORE_REG(regs.regs[0]), PAGES_FROM * (id + 1));
	for (unsigned i = 0; i < 7; i++)
		set_reg(c->fd, KVM_REG_ARM_CORE_REG(regs.regs[0]) + 2 * (i + 21), n[i]);
	set_reg(c->fd, KVM_REG_ARM_CORE_REG(regs.regs[8]), MMIO);
}

static void *run(void *arg)
{
	struct vcpu *c = arg;

	for (;;) {
		/* A timer of a VM without an interrupt controller is told to the VMM. */
		if (ioctl(c->fd, KVM_RUN, 0) < 0 || c->run->exit_reason == KVM_EXIT_INTR) {
			if (errno != EINTR)
				die("KVM_RUN");
			c->interrupted++;
			continue;
		}
		if (c->run->exit_reason != KVM_EXIT_MMIO) {
			errno = EPROTO;
			die("exit");
		}
		if (!c->run->mmio.is_write) {
			c->reads++;
			continue;
		}
		c->writes++;
		if (c->run->mmio.phys_addr == MMIO + END)
			return NULL;
	}
}

int main(void)
{
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY};
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm;
	char *memory = map(-1, MEMORY, MAP_PRIVATE | MAP_ANONYMOUS);
	struct vcpu vcpus[VCPUS] = {0};
	size_t run_size;

	if (kvm < 0)
		die("/dev/kvm");
	vm = must(kvm, KVM_CREATE_VM, NULL, "KVM_CREATE_VM");
	run_size = (size_t)must(kvm, KVM_GET_VCPU_MMAP_SIZE, NULL, "KVM_GET_VCPU_MMAP_SIZE");
	memcpy(memory, guest_code, (size_t)(guest_code_end - guest_code));
	__builtin___clear_cache(memory, memory + (guest_code_end - guest_code));
	region.userspace_addr = (uintptr_t)memory;
	must(vm, KVM_SET_USER_MEMORY_REGION, &region, "KVM_SET_USER_MEMORY_REGION");
	for (unsigned i = 0; i < VCPUS; i++)
		make(&vcpus[i], vm, run_size, i);
	for (unsigned i = 0; i < VCPUS; i++) {
		if ((errno = pthread_create(&vcpus[i].thread, NULL, run, &vcpus[i])))
			die("thread");
	}
	for (unsigned i = 0; i < VCPUS; i++) {
		pthread_join(vcpus[i].thread, NULL);
		printf("vCPU %u: reads %lu writes %lu returns for the timer %lu\n", i,
		       vcpus[i].reads, vcpus[i].writes, vcpus[i].interrupted);
	}
	return 0;
}
