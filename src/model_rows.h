// SPDX-License-Identifier: GPL-2.0-only
/* The parts of model_commit(): each fills its rows of a snapshot. Private to model*.c. */
#ifndef KVMTOP_MODEL_ROWS_H
#define KVMTOP_MODEL_ROWS_H

#include "model_state.h"

#define NAMES_KEPT 128 /* a power of two */

/* A key's name in the snapshot that is made. */
struct key_name {
	struct symbol_key key;
	const char *name, *module; /* name NULL: none yet */
	bool named;
};

/* The interval that is being frozen. */
struct commit {
	struct model *m;
	struct snapshot *s;
	double dt_s; /* 0: no interval yet */
	double total_s; /* since start or reset */
	struct value exits; /* how exit figures are known: .state and .why serve as template */
	struct snap_vm *vms;
	struct snap_vcpu *vcpus;
	struct snap_thread *threads;
	struct snap_exit *exit_rows;
	uint32_t nexits, exit_room;
	struct snap_symbol *symbol_rows;
	uint32_t nsymbols, symbol_room;
	struct snap_code *code_rows;
	uint32_t ncode, code_room;
	struct snap_pmc *pmc_rows;
	uint32_t npmcs, pmc_room;
	struct snap_waited *waited_rows;
	uint32_t nwaited, waited_room;
	/* A symbol of a vCPU is one of its VM and of all VMs too, and most have the same reason. */
	struct key_name names[NAMES_KEPT]; /* by a hash of the key; the last one stays */
	const char *reason, *reason_copy; /* the last, as it was told and as the snapshot's own */
};

#define MEND_SIZE 640 /* of a command that mends something, paths in it */

/* v where exit figures are known, else why not. */
struct value commit_exit_value(const struct commit *c, double v);

/* model_exits.c */
/* The sums of a VM whose vCPUs have their rows, and its part of the host's. */
/* Before it is known which VMs have rows: where threads have events of another VM than the one they
 * are of. */
void model_fold_astray(struct model *m);
void model_fold_vm(struct model *m, const struct inv_vm *vm);
void model_next_early(struct model *m, const struct inv_vm *vm);
void model_exit_state(struct commit *c);
/* How many exit rows a table can give. */
uint32_t model_exit_rows(const struct ex_set *set);
/* Rows of a VM (vcpu -1), a vCPU, or all VMs (vm SNAP_NO_VM, vcpu -1); out->first, n. */
void model_put_rows(struct commit *c, const struct ex_set *set, uint32_t vm, int32_t vcpu,
		    struct snap_exits *out);
void model_vm_exits(struct commit *c, const struct inv_vm *vm, struct snap_vm *row);
void model_vcpu_exits(struct commit *c, const struct inv_vcpu *v, struct snap_vcpu *row);
void model_host_exits(struct commit *c); /* after the host's line, but for the rows */
void model_kinds(struct commit *c);
void model_guest_time(struct commit *c);
void model_next(struct model *m, int64_t watermark);

/* model_fetch.c */
void model_fetch_vm(const struct inv_vm *vm); /* before its rows are made: only faster */

/* model_commit.c */
/* The next VM that has a row, from vm on; `row` is the row that it would have. NULL: none. */
struct inv_vm *commit_next_vm(const struct commit *c, struct inv_vm *vm, uint32_t row);
bool commit_vcpu_shown(const struct inv_vm *vm, const struct inv_vcpu *v);

/* model_symbols.c */
void model_vm_symbols(struct commit *c, const struct inv_vm *vm, struct snap_vm *row);
void model_vcpu_symbols(struct commit *c, const struct inv_vcpu *v, struct snap_vcpu *row);
void model_symbol_rows(struct commit *c); /* when VMs and vCPUs have their rows */
void model_symbols_next(struct model *m);
void model_symbols_reset(struct model *m);
void model_symbols_free(struct model *m);
void model_sampling(struct model *m, const struct sampling_state *s);

/* Name and module of a key, as the snapshot's own strings. True: it is a symbol. */
bool model_name_key(struct commit *c, const struct symbol_key *k, const char **name,
		    const char **module);
/* Why a key of this VM (NULL: of none, or of all) has no name; the snapshot's own string. */
const char *model_why_no_name(struct commit *c, const struct inv_vm *vm,
			      const struct symbol_key *k);

/* model_tsc.c */
void model_on_tsc(void *ctx, const struct tsc_reading *r);
void model_on_tsc_write(void *ctx, const struct tsc_write *w);
void model_tsc_rows(struct commit *c); /* when VMs have their rows */
void model_tsc_free(struct model *m);
void model_vcpu_tsc(struct commit *c, const struct inv_vcpu *v, struct snap_vcpu *row);

/* model_waits.c */
void model_on_waits(void *ctx, const struct wait_reading *r);
void model_on_program_cost(void *ctx, const struct program_cost *c);
void model_waited_rows(struct commit *c); /* when VMs and vCPUs have their rows */
void model_waits_next(struct model *m);

/* model_slices.c */
void model_on_vcpu_events(void *ctx, const struct sample *s, size_t n);
void model_on_vcpu_stream(void *ctx, const struct vcpu_stream *s);
void model_slice_rows(struct commit *c);
void model_slices_next(struct model *m);
void model_slices_free(struct model *m);

/* model_pmu.c */
void model_on_pmu(void *ctx, const struct pmu_reading *r);
void model_on_pmu_host(void *ctx, const char *why);
void model_pmu_rows(struct commit *c); /* when VMs, vCPUs and exits have their rows */
void model_pmu_next(struct model *m);
void model_pmu_free(struct model_vcpu *v);

/* model_code.c */
/* What is at an address of the guest's code. */
struct symbol_key model_code_key(const struct commit *c, const struct inv_vm *vm, uint64_t rip);
void model_code_rows(struct commit *c); /* when exits have their sums */
void model_on_code_lost(void *ctx, uint64_t n);
void model_code_next(struct model *m);
void model_code_reset(struct model *m);

/* model_slow.c */
void model_slow_rows(struct commit *c); /* when VMs and vCPUs have their rows */
void model_slow_next(struct model *m); /* before model_next() */
void model_on_slow(void *ctx, const struct slow_exit *s, size_t n);

/* model_ids.c */
void model_vm_id(struct commit *c, const struct inv_vm *vm, struct snap_vm *row);
/* Where VMs claim one UUID, all but the first have an id made of process and start instead. */
void model_unique_ids(struct commit *c);

/* model_host.c */
int model_host_rows(struct commit *c);
void model_host_next(struct model *m);

#endif
