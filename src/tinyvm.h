// SPDX-License-Identifier: GPL-2.0-only
/*
 * A very small virtual machine on /dev/kvm, whose guest code makes known numbers of
 * exits: for `kvmtop demo` and for the tests.
 *
 * A guest runs a list of steps ("1,000 port writes, then 500 MMIO reads") and counts
 * what it did in its own memory. Real-mode code can do every step; 64-bit user-mode
 * code (CPL 3, IOPL 3) cannot touch MSRs and cannot halt, but it is the one that every
 * KVM runs natively, so it is what a spinning guest should use.
 *
 * A VM may be used from several threads, one at a time for each vCPU; tinyvm_stop() from any.
 */
#ifndef KVMTOP_TINYVM_H
#define KVMTOP_TINYVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TINYVM_MAX_VCPUS 1024
#define TINYVM_REAL_VCPUS 64 /* so many of them can be in real mode, which has 1 MiB */
#define TINYVM_MAX_STEPS 24
#define TINYVM_FOREVER 0 /* as a step's or a program's count: until tinyvm_stop() */

/* Where the guest's accesses go; nothing is emulated behind them. */
#define TINYVM_PORT_OUT 0x3f8
#define TINYVM_PORT_IN 0x60
#define TINYVM_PORT_HOLD 0xf1
#define TINYVM_PORT_SLEEP 0xf2
#define TINYVM_PORT_DONE 0xf4
#define TINYVM_MMIO 0xd0000
#define TINYVM_MSR 0x8b /* microcode revision: writes are ignored by every KVM */

enum tinyvm_op {
	TINYVM_OUT,
	TINYVM_IN,
	TINYVM_MMIO_READ,
	TINYVM_MMIO_WRITE,
	TINYVM_RDMSR, /* real mode only, as the next two */
	TINYVM_WRMSR,
	TINYVM_HLT, /* the VMM answers at once; with tinyvm_irqchip() it waits in the kernel */
	TINYVM_CPUID,
	TINYVM_SPIN, /* n blocks of TINYVM_SPIN_BLOCK turns in guest mode */
	TINYVM_HOLD, /* one port write inside whose handling the VMM sleeps n ms */
	TINYVM_SLEEP, /* the guest is idle for n ms: HLT, or a port write in user mode */
	TINYVM_OPS
};

#define TINYVM_SPIN_BLOCK 100000

enum tinyvm_mode {
	TINYVM_AUTO, /* user mode unless a step needs real mode */
	TINYVM_REAL,
	TINYVM_USER,
};

struct tinyvm_step {
	enum tinyvm_op op;
	uint32_t n; /* times, or ms; TINYVM_FOREVER */
};

struct tinyvm_program {
	struct tinyvm_step step[TINYVM_MAX_STEPS];
	size_t nsteps;
	uint32_t loops; /* how often the whole list runs; TINYVM_FOREVER */
	uint32_t rate; /* at most so many user exits a second (the VMM waits); 0: no limit */
	uint32_t duty; /* per cent of a CPU at most: SLEEP lasts as long as that takes; 0: no limit
			*/
	enum tinyvm_mode mode;
};

struct tinyvm_counts {
	uint64_t done[TINYVM_OPS]; /* by the guest itself; SPIN in blocks */
	uint64_t runs; /* KVM_RUN returned: one kvm_userspace_exit each */
	uint64_t exit_io, exit_mmio, exit_hlt, exit_intr, exit_other; /* they add up to runs */
	uint64_t port_out, port_in; /* as the VMM saw them, all ports */
	uint64_t mmio_read, mmio_write;
	bool finished; /* the guest reached its end */
};

struct tinyvm;

/* The name of an op in a program ("out", "mmior", …). */
const char *tinyvm_op_name(enum tinyvm_op op);

/*
 * "out:1000 in:inf spin:10": blanks or commas between steps. Sets step, nsteps and loops = 1;
 * what else is in it (rate, mode) is the caller's to set.
 * 0, -EINVAL, or -E2BIG for more than TINYVM_MAX_STEPS.
 */
int tinyvm_parse(const char *text, struct tinyvm_program *p);

/*
 * Makes a VM without vCPUs. 0 or -errno; *what (may be NULL) is then what failed, in words.
 * -ENOTSUP where there is no guest code for this architecture.
 */
int tinyvm_new(struct tinyvm **out, const char **what);
void tinyvm_free(struct tinyvm *vm); /* no vCPU may run; NULL is fine */

/*
 * Before the first vCPU: gives the VM KVM's own interrupt controllers, so that HLT waits in the
 * kernel, as a real guest's does, until tinyvm_nmi(). 0 or -errno.
 */
int tinyvm_irqchip(struct tinyvm *vm);
/* Wakes a vCPU out of HLT. One that is not in HLT takes it as well, and nothing happens. */
void tinyvm_nmi(struct tinyvm *vm, int index);

/* Adds a vCPU with KVM's id `kvm_id`. Its index (0…) or -errno. */
int tinyvm_add_vcpu(struct tinyvm *vm, int kvm_id, const struct tinyvm_program *p);

/*
 * Runs vCPU `index` on the calling thread until its program ends (returns 1), it was
 * stopped (1 as well: the guest ends itself) or `max_exits` user exits were handled
 * (returns 0; 0: no limit). -errno when KVM fails.
 */
int tinyvm_run(struct tinyvm *vm, int index, uint64_t max_exits);

/* All guests of the VM end after their current access; a sleeping VMM thread wakes up. */
void tinyvm_stop(struct tinyvm *vm);

/* Right when the vCPU does not run; a lower bound while it does. */
void tinyvm_counts(const struct tinyvm *vm, int index, struct tinyvm_counts *c);

#endif
