// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that spends known shares of its time in known functions: 64-bit kernel code in the upper
 * half, a "module", and user code in the lower half. For tests of samples and symbols.
 *
 *   hotcode KALLSYMS MODULES
 *
 * Writes the two files as a guest's /proc would have them, prints "ready pid=P tid=T" and a line
 * "share NAME PERCENT" for each function, then "go", and runs until the end of its standard input.
 * It needs a KVM that runs supervisor code by hardware (or by an emulation of it).
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "vmm.h"

#define MEMORY (8u << 20)
#define KERNEL_PA 0x200000u /* where the three pieces lie in the guest's memory */
#define MODULE_PA 0x400000u
#define USER_PA 0x600000u
#define KERNEL_VA 0xffffffff81000000ull /* … and where its page tables put them */
#define MODULE_VA 0xffffffffa0000000ull
#define USER_VA 0x400000ull

#define ROUND 1000000u /* turns of a loop in one round of all functions */

struct function {
	const char *name;
	uint64_t va;
	unsigned percent;
};

static const struct function functions[] = {
	{"hot_queue_lock", KERNEL_VA + 0x1000, 40},
	{"hot_copy_page", KERNEL_VA + 0x2000, 20},
	{"hot_write_msr", KERNEL_VA + 0x2800, 10},
	{"hot_virtio_poll", MODULE_VA, 15},
	{"hot_user", USER_VA, 15},
};
#define NFUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define NCALLED (NFUNCTIONS - 1) /* all but the user code */

/* ---- the guest's code ---- */

static uint8_t *at(uint8_t *mem, uint64_t va)
{
	if (va >= MODULE_VA)
		return mem + MODULE_PA + (va - MODULE_VA);
	return va >= KERNEL_VA ? mem + KERNEL_PA + (va - KERNEL_VA)
			       : mem + USER_PA + (va - USER_VA);
}

static uint8_t *put(uint8_t *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put(p, &v, sizeof(v));
}

/* mov ecx, n; 1: dec ecx; jnz 1b */
static uint8_t *put_loop(uint8_t *p, unsigned percent)
{
	p = put(p, "\xb9", 1);
	p = put32(p, ROUND / 100 * percent);
	return put(p, "\xff\xc9\x75\xfc", 4);
}

/* Calls all kernel functions, then goes to user code, which comes back by syscall. */
static uint64_t put_main(uint8_t *mem)
{
	uint64_t user = USER_VA;
	uint8_t *begin = at(mem, KERNEL_VA), *p = begin;

	for (size_t i = 0; i < NCALLED; i++) {
		p = put(p, "\xe8", 1);
		p = put32(p, (uint32_t)(functions[i].va - (KERNEL_VA + (size_t)(p - begin) + 4)));
	}
	p = put(p, "\x48\xb9", 2); /* mov rcx, user */
	p = put(p, &user, sizeof(user));
	p = put(p, "\x41\xbb\x02\0\0\0", 6); /* mov r11d, 2: rflags */
	p = put(p, "\x48\x0f\x07", 3); /* sysretq */
	user = KERNEL_VA + (size_t)(p - begin); /* where syscall comes back */
	p = put(p, "\xe9", 1);
	put32(p, (uint32_t)(-(int32_t)(p - begin + 4)));
	return user;
}

static uint64_t put_code(uint8_t *mem)
{
	for (size_t i = 0; i < NCALLED; i++)
		put(put_loop(at(mem, functions[i].va), functions[i].percent), "\xc3", 1); /* ret */
	put(put_loop(at(mem, USER_VA), functions[NCALLED].percent), "\x0f\x05", 2); /* syscall */
	return put_main(mem);
}

/* Large pages; only the user's is the user's. */
static void put_page_tables(uint8_t *mem)
{
	uint64_t *pml4 = (void *)(mem + 0x1000), *low = (void *)(mem + 0x2000);
	uint64_t *lowdir = (void *)(mem + 0x3000), *high = (void *)(mem + 0x4000);
	uint64_t *highdir = (void *)(mem + 0x5000);

	pml4[0] = 0x2000 | 7;
	pml4[511] = 0x4000 | 3;
	low[0] = 0x3000 | 7;
	high[510] = 0x5000 | 3;
	lowdir[USER_VA >> 21] = USER_PA | 0x87;
	highdir[KERNEL_VA >> 21 & 511] = KERNEL_PA | 0x83;
	highdir[MODULE_VA >> 21 & 511] = MODULE_PA | 0x83;
}

/* ---- the VM ---- */

static void set_registers(int vcpu)
{
	struct kvm_segment code = {.selector = 0x10,
				   .limit = 0xffffffff,
				   .type = 11,
				   .present = 1,
				   .s = 1,
				   .l = 1,
				   .g = 1};
	struct kvm_segment data = code;
	struct kvm_regs r = {.rip = KERNEL_VA, .rsp = KERNEL_VA + 0x1ffff0, .rflags = 2};
	struct kvm_sregs s;

	data.selector = 0x18;
	data.type = 3;
	data.l = 0;
	data.db = 1;
	must(vcpu, KVM_GET_SREGS, &s, "KVM_GET_SREGS");
	s.cs = code;
	s.ss = s.ds = s.es = s.fs = s.gs = data;
	s.cr0 = 0x80050033;
	s.cr3 = 0x1000;
	s.cr4 = 0x20;
	s.efer = 0x501; /* SCE, LME, LMA */
	must(vcpu, KVM_SET_SREGS, &s, "KVM_SET_SREGS");
	must(vcpu, KVM_SET_REGS, &r, "KVM_SET_REGS");
}

/* STAR: kernel code at 0x10, user code at 0x30 (0x23 + 16 would be 32-bit's); LSTAR; SFMASK. */
static void set_msrs(int vcpu, uint64_t back)
{
	const struct kvm_msr_entry e[] = {{.index = 0xc0000081, .data = 0x0023001000000000ull},
					  {.index = 0xc0000082, .data = back},
					  {.index = 0xc0000084, .data = 0}};
	struct kvm_msrs *m = calloc(1, sizeof(*m) + sizeof(e));

	if (!m)
		die("calloc");
	m->nmsrs = 3;
	memcpy(m->entries, e, sizeof(e));
	if (must(vcpu, KVM_SET_MSRS, m, "KVM_SET_MSRS") != 3)
		die("KVM_SET_MSRS");
	free(m);
}

struct vm {
	int vcpu;
	struct kvm_run *run;
	pid_t tid;
	pthread_barrier_t ready, go;
};

static void vm_new(struct vm *v)
{
	struct vmm vmm = vmm_new(MEMORY);

	v->vcpu = vmm_add_vcpu(&vmm, 0, &v->run);
	put_page_tables(vmm.memory);
	vmm_set_cpuid(&vmm, v->vcpu);
	set_msrs(v->vcpu, put_code(vmm.memory));
	set_registers(v->vcpu);
}

static void *run_vcpu(void *arg)
{
	struct vm *v = arg;

	vmm_name_thread(0);
	v->tid = gettid();
	pthread_barrier_wait(&v->ready);
	pthread_barrier_wait(&v->go);
	for (;;) {
		if (ioctl(v->vcpu, KVM_RUN, 0) < 0 && errno != EINTR && errno != EAGAIN)
			die("KVM_RUN");
		if (v->run->exit_reason != KVM_EXIT_INTR) {
			fprintf(stderr, "hotcode: exit %u\n", v->run->exit_reason);
			exit(1);
		}
	}
	return NULL;
}

/* ---- what a guest's /proc has ---- */

static FILE *create(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		die(path);
	return f;
}

static void write_symbols(const char *kallsyms, const char *modules)
{
	FILE *f = create(kallsyms);

	fprintf(f, "%016llx T _stext\n%016llx T _text\n%016llx T hot_main\n", KERNEL_VA, KERNEL_VA,
		KERNEL_VA);
	for (size_t i = 0; i < NCALLED; i++)
		if (functions[i].va < MODULE_VA)
			fprintf(f, "%016llx %c %s\n", (unsigned long long)functions[i].va,
				i ? 't' : 'T', functions[i].name);
	fprintf(f, "%016llx T _etext\n%016llx D hot_data\n", KERNEL_VA + 0x3000,
		KERNEL_VA + 0x3000);
	for (size_t i = 0; i < NCALLED; i++)
		if (functions[i].va >= MODULE_VA)
			fprintf(f, "%016llx t %s\t[hotmod]\n", (unsigned long long)functions[i].va,
				functions[i].name);
	if (fclose(f))
		die(kallsyms);
	f = create(modules);
	fprintf(f, "hotmod 16384 0 - Live 0x%016llx\n", MODULE_VA);
	if (fclose(f))
		die(modules);
}

int main(int argc, char **argv)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	struct vm v = {0};
	pthread_t thread;
	char c;

	if (argc != 3) {
		fprintf(stderr, "usage: hotcode KALLSYMS MODULES\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vm_new(&v);
	write_symbols(argv[1], argv[2]);
	pthread_barrier_init(&v.ready, NULL, 2);
	pthread_barrier_init(&v.go, NULL, 2);
	if (pthread_create(&thread, NULL, run_vcpu, &v))
		die("pthread_create");
	pthread_barrier_wait(&v.ready);
	printf("ready pid=%d tid=%d\n", (int)getpid(), (int)v.tid);
	for (size_t i = 0; i < NFUNCTIONS; i++)
		printf("share %s %u\n", functions[i].name, functions[i].percent);
	printf("go\n");
	fflush(stdout);
	pthread_barrier_wait(&v.go);
	while (poll(&p, 1, -1) >= 0 || errno == EINTR)
		if (p.revents && read(STDIN_FILENO, &c, 1) <= 0)
			break;
	_exit(0); /* with the vCPU in the middle of it */
}
