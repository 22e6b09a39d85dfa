// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pairs KVM's events into exits and accesses with their times (metrics.md, "Exits and their
 * times") and adds them to the tables of exits_cells.h.
 *
 * What is open is kept with the vCPU, not with the thread: a thread may run two vCPUs and a vCPU
 * may change threads in the middle of an exit. A thread whose vCPU is not known has tables of its
 * own, which the vCPU gets once it is known.
 */
#ifndef KVMTOP_EXITS_H
#define KVMTOP_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exits_cells.h"
#include "sample.h"

struct ex_code;
struct ex_slow;
struct inventory;
struct inv_thread;
struct inv_vcpu;
struct inv_vm;

/* One pair that began and has not ended. */
struct ex_open {
	int64_t begin;
	struct ex_cell *cell, *vm_cell; /* vm_cell: where its histogram is */
	uint32_t evicted, vm_evicted; /* of the cells, when it began */
	struct ex_key key;
	bool untimed; /* late or torn: its time is not to be believed */
	bool idle; /* an exit that waits; known by its key, also where the cell is `other` */
	bool direct; /* the VM's cell is counted at once, for the vCPU's is `other` */
};

struct ex_vm {
	struct ex_set set;
	uint32_t gen; /* never two alike; changes when a cell was given to another key */
	bool provisional;
	struct ex_code *code; /* exits_code.h; NULL: nobody asks for it */
	struct ex_slow *slow; /* exits_slow.h; NULL: none so far */
	struct ex_vm *next_dead;
};

enum ex_detail { EX_SUMS, EX_INTERVAL, EX_TOTALS }; /* histograms a key of a vCPU */

struct ex_vcpu {
	int64_t last; /* time of its newest event */
	struct ex_vm *vm;
	struct inv_vcpu *inv; /* NULL: the tables of a thread */
	uint8_t open; /* KIND_BIT: which of pair[] are open */
	uint8_t detail; /* enum ex_detail */
	bool touched; /* had events in this interval */
	bool folded; /* into its VM's, before the VMs have their rows */
	bool torn; /* exit time of this interval is missing for a loss */
	bool in_vmm; /* a user exit came, and nothing since that says that it is over */
	bool read_timed; /* this exit's MMIO read has its time */
	uint64_t rip; /* where the guest was at its last exit, 0 not known */
	int32_t tid; /* whose exit that was */
	uint64_t exit_ns; /* exit → entry within the interval, idle ones left out */
	/*
	 * Of these without a CPU, as thread_open tells it: of exits that ended, and of the open one
	 * till it was told.
	 */
	uint64_t off_ns, open_off_ns;
	int64_t open_off_since; /* the open one has been without one since then; 0: it has one */
	bool off_blind, open_blind; /* of some exits, of the open one it is not known */
	uint64_t dropped; /* pairs of this interval that a loss left untimed */
	struct ex_set set;
	struct hist hist; /* of this interval's exits that are not idle */
	struct ex_open pair[KIND_HALT];
	struct ex_vcpu *next_dead;
};

struct ex_thread {
	int32_t tid;
	int32_t kvm_id; /* of .v; -1: .v is .own */
	struct inv_thread *inv;
	struct ex_vcpu *v; /* what it runs now, never NULL once it had an event */
	struct ex_vcpu *own; /* for events before its vCPU is known; NULL mostly */
	bool one_of_several; /* .own is what it runs now: vCPUs that no event tells apart */
};

#define EX_CPUS 512 /* thread last seen there; more CPUs share an entry */
#define EX_LOSSES 64

struct exits {
	struct inventory *inv;
	unsigned vcpu_keys, vm_keys; /* how many keys a kind */
	struct ex_thread **hash; /* open addressing by tid */
	size_t nhash, nthread; /* nhash: a power of two */
	struct ex_thread *last[EX_CPUS];
	uint32_t gens; /* the last ex_vm.gen given out */
	uint64_t generation; /* of the inventory, when threads were related to vCPUs */
	int64_t start; /* W of the last commit: where this interval begins */
	uint64_t slow_ns; /* exits that take longer are kept one by one; 0: none */
	bool seen; /* kvm_entry or kvm_exit fired, ever */
	bool entry_exit; /* they are open now */
	bool entry_exit_all; /* … over the whole interval */
	bool off_told, off_told_all; /* time without a CPU is: now, over the whole interval */
	unsigned kinds, kinds_all; /* KIND_BIT */
	struct loss losses[EX_LOSSES];
	unsigned nlosses;
	int64_t loss_to; /* the latest .to: pairs that began later are whole */
	uint64_t lost, late, unmatched; /* of this interval */
	uint64_t accesses; /* events of this interval that prove a guest's exit: not vmexit, halt */
	/*
	 * A thread of one VM has events of another of its process in its own tables: all VMs must
	 * be complete before any is added to the host's.
	 */
	bool astray;
	struct ex_vcpu *dead_vcpus; /* freed when no thread points to them any more */
	struct ex_vm *dead_vms;
};

int exits_init(struct exits *x, struct inventory *inv, unsigned vcpu_keys, unsigned vm_keys);
void exits_free(struct exits *x); /* after the inventory's objects let go of their cookies */

void exits_samples(struct exits *x, const struct sample *s, size_t n);
/* Exits whose counts come as aggregates: only for which guest code makes them. */
void exits_code(struct exits *x, const struct sample *s, size_t n);
void exits_aggregates(struct exits *x, const struct aggregate *a, size_t n);
void exits_open(struct exits *x, const struct thread_open *o);
void exits_slow(struct exits *x, const struct slow_exit *s, size_t n);
void exits_loss(struct exits *x, const struct loss *l);
void exits_kinds(struct exits *x, unsigned kinds, bool entry_exit);

/*
 * Brings the threads' vCPUs up to date with the inventory; what a provisional VM collected goes
 * to the VM that its thread turned out to be of. Cheap when nothing changed.
 */
void exits_relate(struct exits *x);
/* Adds a vCPU's interval to its VM's; once an interval. */
void exits_fold(struct exits *x, struct ex_vcpu *v);
/*
 * Memory that is asked for beforehand (fetch.h): all of threads whose aggregates come soon,
 * EX_FETCH at most; what a vCPU's tables point to; its cells, `bytes` of each.
 */
#define EX_FETCH 8
void exits_fetch_threads(const struct exits *x, const int32_t *tid, size_t n);
void exits_fetch_tables(const struct ex_vcpu *v);
void exits_fetch_cells(const struct ex_vcpu *v, size_t bytes);
/* ns of the exit that is open at `now` which belong to this interval and are not idle. */
uint64_t exits_open_ns(const struct exits *x, const struct ex_vcpu *v, int64_t now);
/* How much of it was without a CPU, ns. */
uint64_t exits_open_off_ns(const struct exits *x, const struct ex_vcpu *v, int64_t now);
/* From now on time without a CPU is told, or no more. */
void exits_off_told(struct exits *x, bool told);
/* True when a pair over [begin, end] may have lost an event. */
bool exits_torn(const struct exits *x, int64_t begin, int64_t end);
/* The next interval of a vCPU, a VM, of all that is counted for the host. */
void exits_next_vcpu(struct ex_vcpu *v);
void exits_next_vm(struct exits *x, struct ex_vm *vm);
void exits_next(struct exits *x, int64_t watermark);

/* The inventory lets go of one; the model frees the memory of ex_thread itself. */
void exits_thread_gone(struct exits *x, struct ex_thread *t);
void exits_vcpu_gone(struct exits *x, struct ex_vcpu *v); /* takes it over */
void exits_vm_gone(struct exits *x, struct ex_vm *vm); /* takes it over */

/*
 * The model's state of an object of the inventory, made at first use; NULL: no memory.
 * Implemented by model.c.
 */
struct ex_thread *state_ex_thread(struct inv_thread *t);
struct ex_vcpu *state_ex_vcpu(struct inv_vcpu *v);
struct ex_vm *state_ex_vm(struct inv_vm *vm);

#endif
