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
#include <inttypes.h>

#include "vmm.h"

#define CODE 0x1000
#define DATA 0x2000 /* and a page more a vCPU */
#define MEMORY 0x20000
#define MSR_TSC 0x10
#define PORT_READ 0x10
#define PORT_WROTE 0x11
#define MAX_VCPUS 8

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

static void set_state(struct vcpu *v, uint64_t first)
{
	_Alignas(struct kvm_msrs) char room[sizeof(struct kvm_msrs) + sizeof(struct kvm_msr_entry)];
	struct kvm_msr_entry entry = {.index = MSR_TSC, .data = first};
	struct kvm_msrs *msr = (void *)room;
	struct kvm_regs regs = {.rip = CODE, .rcx = MSR_TSC, .rflags = 2};

	memset(room, 0, sizeof(room));
	msr->nmsrs = 1;
	memcpy(msr->entries, &entry, sizeof(entry));
	vmm_set_real_mode(v->fd, DATA + 0x1000u * (unsigned)v->index);
	must(v->fd, KVM_SET_REGS, &regs, "KVM_SET_REGS");
	if (first && ioctl(v->fd, KVM_SET_MSRS, msr) != 1)
		die("KVM_SET_MSRS");
}

static void add_vcpu(const struct vmm *vmm, struct vcpu *v, uint64_t first)
{
	v->fd = vmm_add_vcpu(vmm, v->index, &v->run);
	v->stamp = calloc((size_t)v->reads, sizeof(*v->stamp));
	if (!v->stamp)
		die("memory");
	v->data = (void *)(vmm->memory + DATA + 0x1000 * v->index);
	v->data[1] = v->step;
	set_state(v, first);
}

static void ask_to_write(struct vcpu *v)
{
	struct kvm_regs regs;

	must(v->fd, KVM_GET_REGS, &regs, "KVM_GET_REGS");
	regs.rbp = 1;
	must(v->fd, KVM_SET_REGS, &regs, "KVM_SET_REGS");
}

static void *run_vcpu(void *arg)
{
	struct vcpu *v = arg;

	vmm_name_thread(v->index);
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
	struct vcpu v[MAX_VCPUS] = {0};
	struct vmm vmm;
	int vcpus;

	if (argc != 5 || (vcpus = atoi(argv[1])) < 1 || vcpus > MAX_VCPUS || atol(argv[2]) < 1) {
		fprintf(stderr, "usage: tsc-run VCPUS READS FIRST1 STEP\n");
		return 2;
	}
	vmm = vmm_new(MEMORY);
	memcpy(vmm.memory + CODE, code, sizeof(code));
	for (int i = 0; i < vcpus; i++) {
		v[i].index = i;
		v[i].reads = atol(argv[2]);
		v[i].step = strtoull(argv[4], NULL, 0);
		add_vcpu(&vmm, &v[i], i == 1 ? strtoull(argv[3], NULL, 0) : 0);
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
