// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests that read their TSC: tsc-run VCPUS READS FIRST1 STEP. Each vCPU reads it READS times, with
 * a port write after each; vCPU 1's begins at FIRST1 (0: as KVM gives it); half-way each guest adds
 * STEP (modulo 2^64) to its own, by WRMSR (0: none). What the guests read is printed as the text of
 * an ftrace, each CPU's lines in their order and the CPUs' merged by their stamps, as a guest's
 * kernel does.
 *
 * Real-mode code, which every KVM runs or emulates.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE 0x1000
#define DATA 0x2000 /* and a page more a vCPU */
#define MEMORY 0x20000
#define MSR_TSC 0x10
#define PORT_READ 0x10
#define PORT_WROTE 0x11
#define MAX_VCPUS 8
#define NAME_LEN 15

/*
 * DS is the vCPU's data page; ecx is the MSR. bp: 0 to read, else to write first. By RDMSR and not
 * RDTSC: a KVM without hardware support may let the latter read the host's.
 */
static const unsigned char code[] = {
	0x0f, 0x32, /* again: rdmsr */
	0x85, 0xed, /* test bp,bp */
	0x75, 0x0d, /* jnz write */
	0x66, 0xa3,	  0x00, 0x00, /* mov [0],eax */
	0x66, 0x89,	  0x16, 0x04, 0x00, /* mov [4],edx */
	0xe6, PORT_READ, /* out */
	0xeb, 0xed, /* jmp again */
	0x66, 0x03,	  0x06, 0x08, 0x00, /* write: add eax,[8] */
	0x66, 0x13,	  0x16, 0x0c, 0x00, /* adc edx,[12] */
	0x0f, 0x30, /* wrmsr */
	0x31, 0xed, /* xor bp,bp */
	0xe6, PORT_WROTE, /* out */
	0xeb, 0xdb, /* jmp again */
};

struct vcpu {
	int fd, index;
	struct kvm_run *run;
	uint64_t *data; /* what it read, what it shall add */
	uint64_t *stamp;
	long reads, n;
	uint64_t step;
	pthread_t thread;
};

static void die(const char *what)
{
	fprintf(stderr, "tsc-run: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set_state(struct vcpu *v, uint64_t first)
{
	_Alignas(struct kvm_msrs) char room[sizeof(struct kvm_msrs) + sizeof(struct kvm_msr_entry)];
	struct kvm_msr_entry entry = {.index = MSR_TSC, .data = first};
	struct kvm_msrs *msr = (void *)room;
	struct kvm_regs regs = {.rip = CODE, .rcx = MSR_TSC, .rflags = 2};
	struct kvm_sregs s;

	memset(room, 0, sizeof(room));
	msr->nmsrs = 1;
	memcpy(msr->entries, &entry, sizeof(entry));
	if (ioctl(v->fd, KVM_GET_SREGS, &s) < 0)
		die("KVM_GET_SREGS");
	s.cs.base = s.cs.selector = 0;
	s.ds.base = DATA + 0x1000u * (unsigned)v->index;
	s.ds.selector = (uint16_t)(s.ds.base >> 4);
	if (ioctl(v->fd, KVM_SET_SREGS, &s) < 0 || ioctl(v->fd, KVM_SET_REGS, &regs) < 0)
		die("KVM_SET_REGS");
	if (first && ioctl(v->fd, KVM_SET_MSRS, msr) != 1)
		die("KVM_SET_MSRS");
}

static void add_vcpu(int vm, int size, void *memory, struct vcpu *v, uint64_t first)
{
	v->fd = ioctl(vm, KVM_CREATE_VCPU, v->index);
	if (v->fd < 0)
		die("KVM_CREATE_VCPU");
	v->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	v->stamp = calloc((size_t)v->reads, sizeof(*v->stamp));
	if (v->run == MAP_FAILED || !v->stamp)
		die("memory");
	v->data = (void *)((char *)memory + DATA + 0x1000 * v->index);
	v->data[1] = v->step;
	set_state(v, first);
}

static void ask_to_write(struct vcpu *v)
{
	struct kvm_regs regs;

	if (ioctl(v->fd, KVM_GET_REGS, &regs) < 0)
		die("KVM_GET_REGS");
	regs.rbp = 1;
	if (ioctl(v->fd, KVM_SET_REGS, &regs) < 0)
		die("KVM_SET_REGS");
}

static void *run_vcpu(void *arg)
{
	struct vcpu *v = arg;
	char name[NAME_LEN + 1];

	snprintf(name, sizeof(name), "CPU %d/KVM", v->index);
	pthread_setname_np(pthread_self(), name);
	while (v->n < v->reads) {
		if (ioctl(v->fd, KVM_RUN, 0) < 0 && errno != EINTR)
			die("KVM_RUN");
		if (v->run->exit_reason != KVM_EXIT_IO)
			die("the guest did something else");
		if (v->run->io.port != PORT_READ)
			continue;
		v->stamp[v->n++] = v->data[0];
		if (v->step && v->n == v->reads / 2)
			ask_to_write(v);
	}
	return NULL;
}

static void print_merged(struct vcpu *v, int vcpus)
{
	long at[MAX_VCPUS] = {0};

	printf("# tracer: nop\n#\n");
	for (;;) {
		int best = -1;

		for (int i = 0; i < vcpus; i++)
			if (at[i] < v[i].n &&
			    (best < 0 || v[i].stamp[at[i]] < v[best].stamp[at[best]]))
				best = i;
		if (best < 0)
			return;
		printf("%16s-%-7d [%03d] d..1. %" PRIu64 ": rdtsc: n=%ld\n", "guest", 100 + best,
		       best, v[best].stamp[at[best]], at[best]);
		at[best]++;
	}
}

int main(int argc, char **argv)
{
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY};
	struct vcpu v[MAX_VCPUS] = {0};
	int vcpus, kvm, vm, size;
	void *memory;

	if (argc != 5 || (vcpus = atoi(argv[1])) < 1 || vcpus > MAX_VCPUS || atol(argv[2]) < 1) {
		fprintf(stderr, "usage: tsc-run VCPUS READS FIRST1 STEP\n");
		return 2;
	}
	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	size = kvm < 0 ? -1 : ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (vm < 0 || size < 0 || memory == MAP_FAILED)
		die("/dev/kvm");
	region.userspace_addr = (uintptr_t)memory;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		die("KVM_SET_USER_MEMORY_REGION");
	memcpy((char *)memory + CODE, code, sizeof(code));
	for (int i = 0; i < vcpus; i++) {
		v[i].index = i;
		v[i].reads = atol(argv[2]);
		v[i].step = strtoull(argv[4], NULL, 0);
		add_vcpu(vm, size, memory, &v[i], i == 1 ? strtoull(argv[3], NULL, 0) : 0);
	}
	for (int i = 0; i < vcpus; i++)
		if (pthread_create(&v[i].thread, NULL, run_vcpu, &v[i]))
			die("pthread_create");
	for (int i = 0; i < vcpus; i++)
		pthread_join(v[i].thread, NULL);
	print_merged(v, vcpus);
	for (int i = 0; i < vcpus; i++)
		free(v[i].stamp);
	return 0;
}
