// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that spins in a function with known callers, or with frame pointers that lead astray:
 *
 *   chain-run MODE [RBP [ADDRESS=WORD…]]
 *
 * MODE: kernel, user (64-bit code), compat (32-bit code of a user in 64-bit mode), flat (32-bit
 * code without paging). Without RBP entry() calls outer(), which calls middle(), which calls
 * inner(), which spins. With it the guest starts in inner()'s loop with that frame pointer; words
 * are put into its memory first. Prints where the functions are, as JSON, and runs until stdin
 * ends.
 *
 * Physical memory of 2 MiB from 0. A virtual address is the physical one, in pages of 4 KiB, and 2
 * MiB more as one large page; both again KERNEL higher, for the kernel alone. HOLE is mapped
 * nowhere, OUTSIDE to where the VM has no memory, and the page tables of LOST are there.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <unistd.h>

#include "vmm.h"

enum { PML4 = 0x1000, PDPT = 0x2000, PD = 0x3000, PT = 0x4000, CODE = 0x8000, STACK = 0xf000 };
#define MEMORY 0x200000
#define KERNEL 0xffffff8000000000
#define HOLE 0x1ff000
#define OUTSIDE 0x1fe000
#define LOST 0x400000
#define NOWHERE 0x40000000 /* physical */

enum { PRESENT = 1, WRITE = 2, USER = 4, LARGE = 0x80 };

__asm__(".pushsection .rodata\n"
	".macro chain bits sp bp\n"
	".code\\bits\n"
	"entry\\bits:\n"
	"call outer\\bits\n"
	"hlt\n"
	"outer\\bits:\n"
	"push %\\bp\n"
	"mov %\\sp, %\\bp\n"
	"call middle\\bits\n"
	"pop %\\bp\n"
	"ret\n"
	"middle\\bits:\n"
	"push %\\bp\n"
	"mov %\\sp, %\\bp\n"
	"call inner\\bits\n"
	"pop %\\bp\n"
	"ret\n"
	"inner\\bits:\n"
	"push %\\bp\n"
	"mov %\\sp, %\\bp\n"
	"spin\\bits:\n"
	"mov $100000, %ecx\n"
	"1: dec %ecx\n"
	"jnz 1b\n"
	"jmp spin\\bits\n"
	"end\\bits:\n"
	".endm\n"
	"chain 64 rsp rbp\n"
	"chain 32 esp ebp\n"
	".code64\n"
	".popsection\n");

#define HIDDEN __attribute__((visibility("hidden")))
#define LABELS(bits)                                                                               \
	extern const unsigned char entry##bits[] HIDDEN, outer##bits[] HIDDEN,                     \
		middle##bits[] HIDDEN, inner##bits[] HIDDEN, spin##bits[] HIDDEN,                  \
		end##bits[] HIDDEN
LABELS(64);
LABELS(32);

struct functions {
	const unsigned char *entry, *outer, *middle, *inner, *spin, *end;
};

static const struct functions code64 = {entry64, outer64, middle64, inner64, spin64, end64};
static const struct functions code32 = {entry32, outer32, middle32, inner32, spin32, end32};

static const struct mode {
	const char *name;
	const struct functions *code;
	uint64_t base;
	bool user, paging;
} modes[] = {
	{"kernel", &code64, KERNEL, false, true},
	{"user", &code64, 0, true, true},
	{"compat", &code32, 0, true, true},
	{"flat", &code32, 0, false, false},
};

static void put(unsigned char *memory, uint64_t at, uint64_t word)
{
	if (at > MEMORY - sizeof(word)) {
		errno = ERANGE;
		die("the guest has no such address");
	}
	memcpy(memory + at, &word, sizeof(word));
}

static void map_pages(unsigned char *memory)
{
	const uint64_t all = PRESENT | WRITE | USER;

	put(memory, PML4, PDPT | all);
	put(memory, PML4 + 8 * 511, PDPT | PRESENT | WRITE);
	put(memory, PDPT, PD | all);
	put(memory, PD, PT | all);
	put(memory, PD + 8, 0 | all | LARGE);
	put(memory, PD + 16, NOWHERE | all); /* LOST */
	for (unsigned i = 0; i < 512; i++)
		put(memory, PT + 8 * i, (uint64_t)i << 12 | all);
	put(memory, PT + 8 * (HOLE >> 12), 0);
	put(memory, PT + 8 * (OUTSIDE >> 12), NOWHERE | all);
}

static void set_mode(struct kvm_sregs *s, const struct mode *m)
{
	struct kvm_segment data = {.limit = 0xffffffff,
				   .selector = m->user ? 0x2b : 0x10,
				   .type = 3,
				   .present = 1,
				   .dpl = m->user ? 3 : 0,
				   .db = 1,
				   .s = 1,
				   .g = 1};

	s->ds = s->es = s->ss = s->fs = s->gs = data;
	s->cs = data;
	s->cs.selector = m->user ? 0x33 : 0x18;
	s->cs.type = 11;
	s->cs.l = m->code == &code64;
	s->cs.db = !s->cs.l;
	s->cr0 = 0x11; /* ET, PE */
	if (!m->paging)
		return;
	s->cr3 = PML4;
	s->cr4 = 0x20; /* PAE */
	s->cr0 |= 0x80000000; /* PG */
	s->efer = 0x500; /* LME, LMA */
}

static uint64_t address(const struct mode *m, const unsigned char *label)
{
	return m->base + CODE + (uint64_t)(label - m->code->entry);
}

static void set_registers(int vcpu, const struct mode *m, const char *rbp)
{
	struct kvm_regs r = {
		.rflags = 2, .rsp = m->base + STACK, .rip = address(m, m->code->entry)};
	struct kvm_sregs s;

	if (rbp) {
		r.rbp = strtoull(rbp, NULL, 0);
		r.rip = address(m, m->code->spin);
	}
	must(vcpu, KVM_GET_SREGS, &s, "KVM_GET_SREGS");
	set_mode(&s, m);
	must(vcpu, KVM_SET_SREGS, &s, "KVM_SET_SREGS");
	must(vcpu, KVM_SET_REGS, &r, "KVM_SET_REGS");
}

static void print_functions(const struct mode *m)
{
	const struct functions *f = m->code;

	printf("{\"entry\": [%" PRIu64 ", %" PRIu64 "], \"outer\": [%" PRIu64 ", %" PRIu64
	       "], \"middle\": [%" PRIu64 ", %" PRIu64 "], \"inner\": [%" PRIu64 ", %" PRIu64
	       "]}\n",
	       address(m, f->entry), address(m, f->outer), address(m, f->outer),
	       address(m, f->middle), address(m, f->middle), address(m, f->inner),
	       address(m, f->inner), address(m, f->end));
	fflush(stdout);
}

static void *run(void *arg)
{
	int vcpu = *(int *)arg;

	while (ioctl(vcpu, KVM_RUN, 0) >= 0 || errno == EINTR)
		;
	die("KVM_RUN");
	return NULL;
}

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	errno = EINVAL;
	die(name);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct mode *m = find_mode(argc > 1 ? argv[1] : "");
	struct vmm vmm = vmm_new(MEMORY);
	struct kvm_run *shared;
	pthread_t thread;
	char *value, c;
	int vcpu;

	/*
	 * The host unmaps pages for a moment when it makes a large one of them, and a sample in
	 * that moment has no callers. An error: it has no large pages.
	 */
	madvise(vmm.memory, MEMORY, MADV_NOHUGEPAGE);
	map_pages(vmm.memory);
	memcpy(vmm.memory + CODE, m->code->entry, (size_t)(m->code->end - m->code->entry));
	for (int i = 3; i < argc; i++) {
		uint64_t at = strtoull(argv[i], &value, 0);

		put(vmm.memory, at, *value == '=' ? strtoull(value + 1, NULL, 0) : 0);
	}
	vcpu = vmm_add_vcpu(&vmm, 0, &shared);
	set_registers(vcpu, m, argc > 2 ? argv[2] : NULL);
	if (pthread_create(&thread, NULL, run, &vcpu))
		die("thread");
	print_functions(m);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
