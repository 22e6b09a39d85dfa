// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests that use the counters of their PMU: pmu-run [-n MS] [-f EVENT] [-w LEAF] PROGRAM… Each
 * PROGRAM is a VM with one vCPU, its words the guest's instructions (see assemble()); the VMs run
 * at once, each on a thread.
 *
 * What a guest reads it keeps, and at a `mark` the VMM notes what the host knows: how many exits
 * the VM had (KVM's statistics in debugfs), the thread's CPU time, and how many NMIs the guest
 * took, and #GPs of MSRs and counters that are not there. At a `wait` it says so on stdout and goes
 * on with a line of stdin. At a `move` the guest goes on in another VM, as after a migration: what
 * it has of registers is what KVM's list of MSRs to save brought over. At the end a line of JSON
 * a VM.
 *
 * KVM's own interrupt controllers are there: HLT waits in the kernel, for the NMI that comes every
 * MS ms (-n) or for that of a counter that overflows. No VM may count EVENT (-f), by KVM's filter;
 * none has the LEAF of CPUID (-w), though KVM offers it. Real-mode code, assembled here.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "vmm.h"

#define NMI_HANDLER 0x500
#define GP_HANDLER 0x540
#define NMIS 0x600 /* how many it took, 16 bits */
#define FAULTS 0x602 /* the same of #GP */
#define NMI_VECTOR 2
#define GP_VECTOR 13
#define CODE 0x1000
#define STACK 0x7ff0
#define DATA 0x8000 /* what the guest read, 8 bytes each */
#define MEMORY 0x10000
#define PORT 0x10
#define PORT_MARK 0x11
#define PORT_WAIT 0x12
#define PORT_END 0x13
#define PORT_MOVE 0x14
#define APIC_SVR 0xf0
#define APIC_LVTPC 0x340
#define APIC_NMI 0x400
#define MAX_VMS 4
#define MAX_MARKS 64
#define MAX_READS 256

struct mark {
	uint64_t exits, cpu_ns, mono_ns;
	long preempted; /* times that the thread did not leave the CPU by itself */
	unsigned nmis, faults;
};

struct vm {
	int index, fd, vcpu;
	pid_t maker; /* the thread that made the VM: debugfs has it by that and fd */
	struct vmm vmm;
	struct kvm_run *run;
	unsigned char *memory, *end; /* the code's */
	int reads, marks, khz;
	int moved, refused; /* MSRs that the VM to which it moved took, and did not take */
	struct mark mark[MAX_MARKS];
	pthread_t thread;
};

static atomic_int running;
static uint32_t withheld = VMM_ALL_LEAVES; /* of CPUID's leaves */

static void emit(struct vm *vm, const void *bytes, size_t n)
{
	if (vm->end + n > vm->memory + STACK - 64)
		die("the program is too long");
	memcpy(vm->end, bytes, n);
	vm->end += n;
}

/* mov r32,imm32: 0x66, the opcode, the number */
static void emit_mov(struct vm *vm, unsigned char opcode, uint32_t value)
{
	unsigned char b[6] = {0x66, opcode};

	memcpy(b + 2, &value, 4);
	emit(vm, b, sizeof(b));
}

/* `what` n times; esi counts, which nothing here changes */
static void emit_times(struct vm *vm, const char *what, size_t size, uint32_t n)
{
	unsigned char loop[] = {0x66, 0x4e, /* dec esi */ 0x75, (unsigned char)(0 - size - 4)};

	emit_mov(vm, 0xbe, n);
	emit(vm, what, size);
	emit(vm, loop, sizeof(loop));
}

/* What is in edx:eax is kept. */
static void emit_keep(struct vm *vm)
{
	static const unsigned char keep[] = {
		0x66, 0x89, 0x07, /* mov [bx],eax */
		0x66, 0x89, 0x57, 0x04, /* mov [bx+4],edx */
		0x83, 0xc3, 0x08, /* add bx,8 */
	};

	if (++vm->reads > MAX_READS)
		die("too many reads");
	emit(vm, keep, sizeof(keep));
}

/* An instruction whose result is in edx:eax; ecx says which. */
static void emit_read(struct vm *vm, const char *what, uint32_t which)
{
	emit_mov(vm, 0xb9, which);
	emit(vm, what, 2);
	emit_keep(vm);
}

/* CPUID's ebx:eax, or its edx:ecx. */
static void emit_leaf(struct vm *vm, uint32_t leaf, bool upper)
{
	emit_mov(vm, 0xb8, leaf);
	emit_mov(vm, 0xb9, 0);
	emit(vm, "\x53\x0f\xa2", 3); /* push bx: where reads go; cpuid */
	emit(vm, upper ? "\x66\x89\xc8" : "\x66\x89\xda", 3); /* mov eax,ecx; mov edx,ebx */
	emit(vm, "\x5b", 1); /* pop bx */
	emit_keep(vm);
}

static void emit_wrmsr(struct vm *vm, uint64_t which, uint64_t value)
{
	emit_mov(vm, 0xb9, (uint32_t)which);
	emit_mov(vm, 0xb8, (uint32_t)value);
	emit_mov(vm, 0xba, (uint32_t)(value >> 32));
	emit(vm, "\x0f\x30", 2);
}

static void emit_port(struct vm *vm, unsigned char port)
{
	emit(vm, (unsigned char[]){0xe6, port}, 2);
}

/* A word of a program: name, name:A or name:A:B. False: there is no such. */
static bool assemble(struct vm *vm, const char *name, uint64_t a, uint64_t b)
{
	uint32_t n = (uint32_t)a;

	if (!strcmp(name, "out"))
		emit_times(vm, (char[]){(char)0xe6, PORT}, 2, n);
	else if (!strcmp(name, "cpuid"))
		/* ebx holds where reads go: push, cpuid, pop */
		emit_times(vm, "\x66\x53\x0f\xa2\x66\x5b", 6, n);
	else if (!strcmp(name, "hlt"))
		emit_times(vm, "\xf4", 1, n);
	else if (!strcmp(name, "spin"))
		emit_times(vm, "", 0, n);
	else if (!strcmp(name, "wrmsr"))
		emit_wrmsr(vm, a, b);
	else if (!strcmp(name, "rdmsr"))
		emit_read(vm, "\x0f\x32", n);
	else if (!strcmp(name, "rdpmc"))
		emit_read(vm, "\x0f\x33", n);
	else if (!strcmp(name, "leaf"))
		emit_leaf(vm, n, b);
	else if (!strcmp(name, "move"))
		emit_port(vm, PORT_MOVE);
	else if (!strcmp(name, "mark"))
		emit_port(vm, PORT_MARK);
	else if (!strcmp(name, "wait"))
		emit_port(vm, PORT_WAIT);
	else
		return false;
	return true;
}

static void put_handler(struct vm *vm, unsigned vector, uint16_t at, const void *code, size_t n)
{
	memcpy(vm->memory + at, code, n);
	memcpy(vm->memory + 4 * vector, (uint16_t[]){at, 0}, 4);
}

static void put_handlers(struct vm *vm)
{
	/* inc word [NMIS]; iret */
	static const unsigned char nmi[] = {0xff, 0x06, NMIS & 0xff, NMIS >> 8, 0xcf};
	static const unsigned char gp[] = {0xff, 0x06, FAULTS & 0xff, FAULTS >> 8};
	/* push bp; mov bp,sp; add word [bp+2],2; pop bp; iret: on behind what has two bytes */
	static const char skip[] = "\x55\x89\xe5\x83\x46\x02\x02\x5d\xcf";

	put_handler(vm, NMI_VECTOR, NMI_HANDLER, nmi, sizeof(nmi));
	put_handler(vm, GP_VECTOR, GP_HANDLER, gp, sizeof(gp));
	memcpy(vm->memory + GP_HANDLER + sizeof(gp), skip, sizeof(skip) - 1);
}

static void put_program(struct vm *vm, const char *text)
{
	char copy[4096], *word, *rest = copy;

	put_handlers(vm);
	vm->end = vm->memory + CODE;
	snprintf(copy, sizeof(copy), "%s", text);
	while ((word = strsep(&rest, " "))) {
		char *a = strchr(word, ':'), *b = a ? strchr(a + 1, ':') : NULL;

		if (a)
			*a++ = '\0';
		if (b)
			*b++ = '\0';
		if (*word && !assemble(vm, word, a ? strtoull(a, NULL, 0) : 1,
				       b ? strtoull(b, NULL, 0) : 0)) {
			fprintf(stderr, "pmu-run: %s?\n", word);
			exit(2);
		}
	}
	emit_port(vm, PORT_END);
}

static void set_lapic(struct vm *vm)
{
	static const uint32_t svr = 0x1ff, lvtpc = APIC_NMI;
	struct kvm_lapic_state s;

	must(vm->vcpu, KVM_GET_LAPIC, &s, "KVM_GET_LAPIC");
	memcpy(s.regs + APIC_SVR, &svr, sizeof(svr));
	memcpy(s.regs + APIC_LVTPC, &lvtpc, sizeof(lvtpc));
	must(vm->vcpu, KVM_SET_LAPIC, &s, "KVM_SET_LAPIC");
}

/* `event` is event select and unit mask as in the register. */
static void deny(const struct vm *vm, uint64_t event)
{
	struct kvm_pmu_event_filter *f = calloc(1, sizeof(*f) + sizeof(event));

	if (!f)
		die("memory");
	f->action = KVM_PMU_EVENT_DENY;
	f->nevents = 1;
	f->events[0] = event;
	must(vm->fd, KVM_SET_PMU_EVENT_FILTER, f, "KVM_SET_PMU_EVENT_FILTER");
	free(f);
}

/* The vCPU of vm->vmm; its counters come with its CPUID. */
static void add_vcpu(struct vm *vm)
{
	vm->fd = vm->vmm.vm;
	vm->maker = gettid();
	must(vm->fd, KVM_CREATE_IRQCHIP, NULL, "KVM_CREATE_IRQCHIP");
	vm->vcpu = vmm_add_vcpu(&vm->vmm, 0, &vm->run);
	vmm_set_cpuid_without(&vm->vmm, vm->vcpu, withheld);
}

static void make_vm(struct vm *vm, const char *program)
{
	struct kvm_regs regs = {.rip = CODE, .rbx = DATA, .rsp = STACK, .rflags = 2};

	vm->vmm = vmm_new(MEMORY);
	vm->memory = vm->vmm.memory;
	add_vcpu(vm);
	vm->khz = ioctl(vm->vcpu, KVM_GET_TSC_KHZ, 0);
	put_program(vm, program);
	set_lapic(vm);
	vmm_set_real_mode(vm->vcpu, 0);
	must(vm->vcpu, KVM_SET_REGS, &regs, "KVM_SET_REGS");
}

/* All that KVM says are to be saved, in its order. */
static void move_msrs(struct vm *vm, int from)
{
	enum { MOST = 1024 };
	struct kvm_msr_list *list = calloc(1, sizeof(*list) + MOST * sizeof(list->indices[0]));
	struct kvm_msrs *one = calloc(1, sizeof(*one) + sizeof(one->entries[0]));

	if (!list || !one)
		die("memory");
	list->nmsrs = MOST;
	one->nmsrs = 1;
	must(vm->vmm.kvm, KVM_GET_MSR_INDEX_LIST, list, "KVM_GET_MSR_INDEX_LIST");
	for (uint32_t i = 0; i < list->nmsrs; i++) {
		one->entries[0].index = list->indices[i];
		if (ioctl(from, KVM_GET_MSRS, one) != 1)
			continue;
		if (ioctl(vm->vcpu, KVM_SET_MSRS, one) == 1)
			vm->moved++;
		else
			vm->refused++;
	}
	free(list);
	free(one);
}

/* The memory is there already; what is left of the port's exit is done in the old VM. */
static void move(struct vm *vm)
{
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY,
						     .userspace_addr = (uintptr_t)vm->memory};
	struct kvm_run *run = vm->run;
	int vcpu = vm->vcpu, fd = vm->fd;
	struct kvm_lapic_state lapic;
	struct kvm_sregs sregs;
	struct kvm_regs regs;

	run->immediate_exit = 1;
	if (ioctl(vcpu, KVM_RUN, 0) == 0 || errno != EINTR)
		die("KVM_RUN to leave at once");
	must(vcpu, KVM_GET_LAPIC, &lapic, "KVM_GET_LAPIC");
	must(vcpu, KVM_GET_SREGS, &sregs, "KVM_GET_SREGS");
	must(vcpu, KVM_GET_REGS, &regs, "KVM_GET_REGS");
	vm->vmm.vm = must(vm->vmm.kvm, KVM_CREATE_VM, NULL, "KVM_CREATE_VM");
	must(vm->vmm.vm, KVM_SET_USER_MEMORY_REGION, &region, "KVM_SET_USER_MEMORY_REGION");
	add_vcpu(vm);
	must(vm->vcpu, KVM_SET_SREGS, &sregs, "KVM_SET_SREGS");
	must(vm->vcpu, KVM_SET_REGS, &regs, "KVM_SET_REGS");
	move_msrs(vm, vcpu);
	must(vm->vcpu, KVM_SET_LAPIC, &lapic, "KVM_SET_LAPIC");
	munmap(run, vm->vmm.run_size);
	close(vcpu);
	close(fd);
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Opened anew each time: it cannot be read at an offset. 0 where it may not be read. */
static uint64_t read_exits(const struct vm *vm)
{
	char path[96], text[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/kvm/%d-%d/exits", vm->maker, vm->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

static void note(struct vm *vm)
{
	struct mark *m = &vm->mark[vm->marks++];
	struct rusage r;

	if (vm->marks > MAX_MARKS)
		die("too many marks");
	m->cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
	m->mono_ns = now(CLOCK_MONOTONIC);
	m->exits = read_exits(vm);
	getrusage(RUSAGE_THREAD, &r);
	m->preempted = r.ru_nivcsw;
	m->nmis = vm->memory[NMIS] + 256u * vm->memory[NMIS + 1];
	m->faults = vm->memory[FAULTS] + 256u * vm->memory[FAULTS + 1];
}

static void wait_for_line(const struct vm *vm)
{
	char c;

	printf("wait %d\n", vm->index);
	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void *run_vm(void *arg)
{
	struct vm *vm = arg;

	vmm_name_thread(vm->index);
	for (;;) {
		if (ioctl(vm->vcpu, KVM_RUN, 0) < 0) {
			if (errno != EINTR)
				die("KVM_RUN");
			continue;
		}
		if (vm->run->exit_reason != KVM_EXIT_IO)
			die("the guest did something else");
		if (vm->run->io.port == PORT_MARK)
			note(vm);
		else if (vm->run->io.port == PORT_WAIT)
			wait_for_line(vm);
		else if (vm->run->io.port == PORT_MOVE)
			move(vm);
		else if (vm->run->io.port == PORT_END)
			break;
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static void print_vm(const struct vm *vm)
{
	uint64_t value;

	printf("{\"vm\":%d,\"id\":\"%d-%d\",\"khz\":%d,\"read\":[", vm->index, vm->maker, vm->fd,
	       vm->khz);
	for (int i = 0; i < vm->reads; i++) {
		memcpy(&value, vm->memory + DATA + 8 * i, sizeof(value));
		printf("%s%" PRIu64, i ? "," : "", value);
	}
	printf("],\"mark\":[");
	for (int i = 0; i < vm->marks; i++) {
		const struct mark *m = &vm->mark[i];

		printf("%s{\"exits\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"mono_ns\":%" PRIu64,
		       i ? "," : "", m->exits, m->cpu_ns, m->mono_ns);
		printf(",\"preempted\":%ld,\"nmis\":%u,\"faults\":%u}", m->preempted, m->nmis,
		       m->faults);
	}
	printf("],\"moved\":%d,\"refused\":%d}\n", vm->moved, vm->refused);
}

/* An NMI for every VM now and then, until all have ended. */
static void send_nmis(struct vm *vms, int n, int ms)
{
	struct kvm_msi msi = {.address_lo = 0xfee00000, .data = APIC_NMI};

	while (atomic_load(&running)) {
		usleep((useconds_t)ms * 1000);
		for (int i = 0; i < n; i++)
			ioctl(vms[i].fd, KVM_SIGNAL_MSI, &msi);
	}
}

int main(int argc, char **argv)
{
	static struct vm vms[MAX_VMS];
	uint64_t denied = 0;
	int n, ms = 0, option;

	while ((option = getopt(argc, argv, "+f:n:w:")) != -1)
		if (option == 'f')
			denied = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			ms = atoi(optarg);
		else if (option == 'w')
			withheld = (uint32_t)strtoul(optarg, NULL, 0);
		else
			optind = argc; /* and the usage */
	n = argc - optind;
	if (n < 1 || n > MAX_VMS) {
		fputs("usage: pmu-run [-n MS] [-f EVENT] [-w LEAF] PROGRAM… (out cpuid hlt spin:N, "
		      "wrmsr:MSR:VALUE, rdmsr:MSR, rdpmc:N, leaf:N[:1], mark, wait, move)\n",
		      stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < n; i++) {
		vms[i].index = i;
		make_vm(&vms[i], argv[optind + i]);
		if (denied)
			deny(&vms[i], denied);
	}
	running = n;
	for (int i = 0; i < n; i++)
		if (pthread_create(&vms[i].thread, NULL, run_vm, &vms[i]))
			die("pthread_create");
	if (ms > 0)
		send_nmis(vms, n, ms);
	for (int i = 0; i < n; i++) {
		pthread_join(vms[i].thread, NULL);
		print_vm(&vms[i]);
	}
	return 0;
}
