// SPDX-License-Identifier: GPL-2.0-only
/* The VMM half of the tiny guests: memory, registers, KVM_RUN and the count of what came back. */
#include "tinyvm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#ifdef __x86_64__

#include <linux/kvm.h>

#include "tinyvm_code.h"

/*
 * Guest-physical memory: interrupt vectors, page tables, then a page a vCPU: code, and at DATA its
 * counts. Those that have no room below the MMIO address are above 1 MiB.
 */
#define NMI_VECTOR 0x8
#define NMI_CODE 0x500
#define PML4 0x1000
#define PDPT 0x2000
#define PD 0x3000
#define PAGES 0x10000
#define PAGE 0x1000
#define DATA 0xe00
#define STACK 0xff0 /* grows towards DATA; only the NMI uses it */
#define LOW_END (PAGES + TINYVM_REAL_VCPUS * PAGE)
#define HIGH 0x100000
#define MEMORY (HIGH + (TINYVM_MAX_VCPUS - TINYVM_REAL_VCPUS) * PAGE)
#define LARGE 0x200000 /* pages that map it: 2 MiB each */
_Static_assert(LOW_END <= TINYVM_MMIO, "the MMIO address must lie in a hole");
_Static_assert(MEMORY <= 512 * LARGE, "one page directory maps it all");

struct vcpu {
	int fd, kvm_id;
	struct kvm_run *run;
	struct tinyvm_program program;
	struct tinyvm_counts counts;
	int64_t next_ns; /* rate limit: not before */
	int64_t woke_ns; /* end of the last sleep */
};

struct tinyvm {
	int kvm, fd, wake;
	size_t run_size;
	bool irqchip;
	uint8_t *mem;
	struct vcpu vcpu[TINYVM_MAX_VCPUS];
	int nvcpu;
};

/* Where a vCPU's page is, in the guest and in vm->mem. */
static size_t page_of(int index)
{
	if (index < TINYVM_REAL_VCPUS)
		return PAGES + (size_t)index * PAGE;
	return HIGH + (size_t)(index - TINYVM_REAL_VCPUS) * PAGE;
}

static volatile struct tinyvm_data *data_of(const struct tinyvm *vm, int index)
{
	return (void *)(vm->mem + page_of(index) + DATA);
}

static void put64(struct tinyvm *vm, size_t at, uint64_t v)
{
	memcpy(vm->mem + at, &v, sizeof(v));
}

/* All memory maps to itself, for user code too. */
static void page_tables(struct tinyvm *vm)
{
	put64(vm, PML4, PDPT | 7);
	put64(vm, PDPT, PD | 7);
	for (size_t at = 0; at < MEMORY; at += LARGE)
		put64(vm, PD + at / LARGE * 8, at | 0x80 | 7);
}

/* The memory from one address to another, which lie on pages. 0 or -errno. */
static int add_memory(const struct tinyvm *vm, unsigned slot, size_t from, size_t to)
{
	struct kvm_userspace_memory_region r = {
		.slot = slot,
		.guest_phys_addr = from,
		.memory_size = to - from,
		.userspace_addr = (uintptr_t)(vm->mem + from),
	};

	return ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &r) ? -errno : 0;
}

static int make_vm(struct tinyvm *vm, const char **what)
{
	int size;

	*what = "cannot open /dev/kvm";
	vm->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vm->kvm < 0)
		return -errno;
	*what = "KVM refuses a new VM";
	size = ioctl(vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	vm->fd = ioctl(vm->kvm, KVM_CREATE_VM, 0);
	vm->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (size < 0 || vm->fd < 0 || vm->wake < 0)
		return -errno;
	vm->run_size = (size_t)size;
	vm->mem = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (vm->mem == MAP_FAILED) {
		vm->mem = NULL;
		return -ENOMEM;
	}
	page_tables(vm);
	/* Older Intel CPUs run real mode inside a TSS of KVM's; others refuse, which is fine. */
	ioctl(vm->fd, KVM_SET_TSS_ADDR, 0xfffbd000UL);
	return add_memory(vm, 0, 0, LOW_END);
}

int tinyvm_new(struct tinyvm **out, const char **what)
{
	const char *unused;
	struct tinyvm *vm = calloc(1, sizeof(*vm));
	int err;

	*out = NULL;
	if (!vm)
		return -ENOMEM;
	vm->kvm = vm->fd = vm->wake = -1;
	err = make_vm(vm, what ? what : &unused);
	if (err) {
		tinyvm_free(vm);
		return err;
	}
	*out = vm;
	return 0;
}

int tinyvm_irqchip(struct tinyvm *vm)
{
	vm->mem[NMI_VECTOR] = NMI_CODE & 0xff; /* 0000:0500 */
	vm->mem[NMI_VECTOR + 1] = NMI_CODE >> 8;
	vm->mem[NMI_CODE] = 0xcf; /* iret */
	if (ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0))
		return -errno;
	vm->irqchip = true;
	return 0;
}

void tinyvm_nmi(struct tinyvm *vm, int index)
{
	struct kvm_msi msi = {
		.address_lo = 0xfee00000u | (uint32_t)vm->vcpu[index].kvm_id << 12,
		.data = 4 << 8, /* delivery mode NMI */
	};

	/* Not KVM_NMI: that waits until the vCPU is out of KVM_RUN. */
	ioctl(vm->fd, KVM_SIGNAL_MSI, &msi);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void free_vcpu(struct tinyvm *vm, struct vcpu *v)
{
	if (v->run)
		munmap(v->run, vm->run_size);
	close_fd(v->fd);
}

void tinyvm_free(struct tinyvm *vm)
{
	if (!vm)
		return;
	for (int i = 0; i < vm->nvcpu; i++)
		free_vcpu(vm, &vm->vcpu[i]);
	close_fd(vm->fd);
	close_fd(vm->wake);
	close_fd(vm->kvm);
	if (vm->mem)
		munmap(vm->mem, MEMORY);
	free(vm);
}

static void real_segment(struct kvm_segment *s, uint64_t base)
{
	s->base = base;
	s->selector = (uint16_t)(base >> 4);
}

static void real_mode(struct kvm_sregs *s, uint64_t page)
{
	real_segment(&s->cs, page);
	real_segment(&s->ds, page);
	real_segment(&s->ss, page);
	real_segment(&s->es, TINYVM_MMIO);
}

static void user_mode(struct kvm_sregs *s)
{
	struct kvm_segment data = {.limit = 0xffffffff,
				   .selector = 0x2b,
				   .type = 3,
				   .present = 1,
				   .dpl = 3,
				   .db = 1,
				   .s = 1,
				   .g = 1};

	s->ds = s->es = s->ss = s->fs = s->gs = data;
	s->cs = data;
	s->cs.selector = 0x33;
	s->cs.type = 11;
	s->cs.db = 0;
	s->cs.l = 1;
	s->cr3 = PML4;
	s->cr4 = 0x20; /* PAE */
	s->cr0 = 0x80000011; /* PG, ET, PE */
	s->efer = 0x500; /* LME, LMA */
}

static int set_registers(struct vcpu *v, int index, bool real)
{
	uint64_t page = page_of(index);
	struct kvm_regs r = {.rflags = real ? 2 : 0x3002}; /* IOPL 3 */
	struct kvm_sregs s;

	if (ioctl(v->fd, KVM_GET_SREGS, &s))
		return -errno;
	if (real)
		real_mode(&s, page);
	else
		user_mode(&s);
	r.rsp = real ? STACK : page + STACK;
	r.rip = real ? 0 : page;
	r.rsi = real ? DATA : page + DATA;
	r.rdi = real ? 0 : TINYVM_MMIO;
	if (ioctl(v->fd, KVM_SET_SREGS, &s) || ioctl(v->fd, KVM_SET_REGS, &r))
		return -errno;
	return 0;
}

static int load(struct tinyvm *vm, int index)
{
	struct vcpu *v = &vm->vcpu[index];
	const struct tinyvm_program *p = &v->program;
	bool real = p->mode == TINYVM_REAL || (p->mode == TINYVM_AUTO && tinyvm_needs_real(p));
	uint8_t *page = vm->mem + page_of(index);
	int len = tinyvm_emit(p, real, page, DATA), err = 0;

	if (len < 0)
		return len;
	if (real && index >= TINYVM_REAL_VCPUS)
		return -ERANGE;
	if (index == TINYVM_REAL_VCPUS)
		err = add_memory(vm, 1, HIGH, MEMORY);
	if (err)
		return err;
	data_of(vm, index)->loops = p->loops;
	return set_registers(v, index, real);
}

/*
 * With KVM's interrupt controllers a vCPU other than 0 waits for a start-up interrupt, and no vCPU
 * can be reached by one until its APIC was set once.
 */
static int start_apic(struct vcpu *v)
{
	struct kvm_mp_state state = {.mp_state = KVM_MP_STATE_RUNNABLE};
	struct kvm_lapic_state apic;

	if (ioctl(v->fd, KVM_SET_MP_STATE, &state) || ioctl(v->fd, KVM_GET_LAPIC, &apic) ||
	    ioctl(v->fd, KVM_SET_LAPIC, &apic))
		return -errno;
	return 0;
}

int tinyvm_add_vcpu(struct tinyvm *vm, int kvm_id, const struct tinyvm_program *p)
{
	struct vcpu *v = &vm->vcpu[vm->nvcpu];
	int err;

	if (vm->nvcpu == TINYVM_MAX_VCPUS)
		return -ENOSPC;
	*v = (struct vcpu){.program = *p, .kvm_id = kvm_id};
	v->fd = ioctl(vm->fd, KVM_CREATE_VCPU, (long)kvm_id);
	if (v->fd < 0)
		return -errno;
	v->run = mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED) {
		v->run = NULL;
		err = -ENOMEM;
	} else {
		err = load(vm, vm->nvcpu);
		if (!err && vm->irqchip)
			err = start_apic(v);
	}
	if (err) {
		free_vcpu(vm, v);
		return err;
	}
	return vm->nvcpu++;
}

/* Sleeps, but not longer than until tinyvm_stop(). */
static void nap(struct tinyvm *vm, int64_t ns)
{
	struct pollfd p = {.fd = vm->wake, .events = POLLIN};
	struct timespec t = timespec_of(ns);

	if (ns > 0)
		ppoll(&p, 1, &t, NULL);
}

static void keep_rate(struct tinyvm *vm, struct vcpu *v)
{
	int64_t now;

	if (!v->program.rate)
		return;
	now = clock_mono_ns();
	/* A burst of at most 10 ms is made good, so that naps need not be exact. */
	if (v->next_ns < now - 10 * NS_PER_MS)
		v->next_ns = now - 10 * NS_PER_MS;
	v->next_ns += NS_PER_S / v->program.rate;
	if (v->next_ns > now + NS_PER_MS)
		nap(vm, v->next_ns - now);
}

/*
 * The guest is idle. With a duty it sleeps in proportion to how long it was awake: how fast
 * a CPU spins cannot be known beforehand.
 */
static void guest_sleep(struct tinyvm *vm, struct vcpu *v, uint32_t ms)
{
	uint32_t duty = v->program.duty;
	int64_t now = clock_mono_ns(), ns = ms * NS_PER_MS;

	if (duty && duty < 100 && v->woke_ns)
		ns = (now - v->woke_ns) * (100 - duty) / duty;
	nap(vm, ns);
	v->woke_ns = clock_mono_ns();
}

/* Returns 1 when the guest is at its end. */
static int handle_port(struct tinyvm *vm, struct vcpu *v)
{
	uint8_t *value = (uint8_t *)v->run + v->run->io.data_offset;
	uint32_t ms;

	v->counts.exit_io++;
	if (v->run->io.direction == KVM_EXIT_IO_IN) {
		v->counts.port_in++;
		*value = 0x5a;
		return 0;
	}
	v->counts.port_out++;
	if (v->run->io.port == TINYVM_PORT_DONE)
		return 1;
	memcpy(&ms, value, sizeof(ms));
	if (v->run->io.port == TINYVM_PORT_HOLD)
		nap(vm, ms * NS_PER_MS);
	if (v->run->io.port == TINYVM_PORT_SLEEP)
		guest_sleep(vm, v, ms);
	return 0;
}

static int handle_mmio(struct vcpu *v)
{
	v->counts.exit_mmio++;
	if (v->run->mmio.is_write) {
		v->counts.mmio_write++;
	} else {
		v->counts.mmio_read++;
		memset(v->run->mmio.data, 0x5a, sizeof(v->run->mmio.data));
	}
	return 0;
}

static int handle_hlt(struct tinyvm *vm, struct vcpu *v)
{
	struct kvm_regs r;

	v->counts.exit_hlt++;
	if (ioctl(v->fd, KVM_GET_REGS, &r))
		return -errno;
	if ((uint32_t)r.rax) /* HLT without sleep has 0 there */
		guest_sleep(vm, v, (uint32_t)r.rax);
	return 0;
}

static int run_once(struct tinyvm *vm, struct vcpu *v)
{
	int err = ioctl(v->fd, KVM_RUN, 0) ? -errno : 0;

	v->counts.runs++;
	if (err == -EINTR || err == -EAGAIN) {
		v->counts.exit_intr++;
		return 0;
	}
	if (err)
		return err;
	switch (v->run->exit_reason) {
	case KVM_EXIT_IO:
		return handle_port(vm, v);
	case KVM_EXIT_MMIO:
		return handle_mmio(v);
	case KVM_EXIT_HLT:
		return handle_hlt(vm, v);
	case KVM_EXIT_INTR:
		v->counts.exit_intr++;
		return 0;
	default:
		v->counts.exit_other++;
		return -EIO;
	}
}

int tinyvm_run(struct tinyvm *vm, int index, uint64_t max_exits)
{
	struct vcpu *v = &vm->vcpu[index];
	int r = 0;

	if (v->counts.finished)
		return 1;
	for (uint64_t n = 0; !r && (!max_exits || n < max_exits); n++) {
		r = run_once(vm, v);
		if (!r)
			keep_rate(vm, v);
	}
	v->counts.finished = r == 1;
	return r;
}

void tinyvm_stop(struct tinyvm *vm)
{
	uint64_t one = 1;

	for (int i = 0; i < vm->nvcpu; i++)
		data_of(vm, i)->stop = 1;
	/* Never read: from now on every nap ends at once. Cannot fail on a fresh eventfd. */
	if (write(vm->wake, &one, sizeof(one)) < 0)
		return;
}

void tinyvm_counts(const struct tinyvm *vm, int index, struct tinyvm_counts *c)
{
	*c = vm->vcpu[index].counts;
	for (int op = 0; op < TINYVM_OPS; op++)
		c->done[op] = data_of(vm, index)->done[op];
}

#else

int tinyvm_new(struct tinyvm **out, const char **what)
{
	*out = NULL;
	if (what)
		*what = "no guest code for this architecture";
	return -ENOTSUP;
}

void tinyvm_free(struct tinyvm *vm)
{
	(void)vm;
}

int tinyvm_irqchip(struct tinyvm *vm)
{
	(void)vm;
	return -ENOTSUP;
}

void tinyvm_nmi(struct tinyvm *vm, int index)
{
	(void)vm, (void)index;
}

int tinyvm_add_vcpu(struct tinyvm *vm, int kvm_id, const struct tinyvm_program *p)
{
	(void)vm, (void)kvm_id, (void)p;
	return -ENOTSUP;
}

int tinyvm_run(struct tinyvm *vm, int index, uint64_t max_exits)
{
	(void)vm, (void)index, (void)max_exits;
	return -ENOTSUP;
}

void tinyvm_stop(struct tinyvm *vm)
{
	(void)vm;
}

void tinyvm_counts(const struct tinyvm *vm, int index, struct tinyvm_counts *c)
{
	(void)vm, (void)index;
	*c = (struct tinyvm_counts){0};
}

#endif
