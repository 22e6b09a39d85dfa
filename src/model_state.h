// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the model keeps between two snapshots. Private to model*.c.
 */
#ifndef KVMTOP_MODEL_STATE_H
#define KVMTOP_MODEL_STATE_H

#include "exits.h"
#include "exits_missing.h"
#include "findings.h"
#include "inventory.h"
#include "model.h"
#include "pmu.h"
#include "symset.h"
#include "use.h"
#include "waited.h"

/* Cookies of the inventory's objects; the exits' part comes first, for exits frees it. */
struct model_vm {
	struct ex_vm ex;
	struct use_quota quota;
	struct sym_set sym;
	struct waited waited;
};

struct model_tsc {
	bool known;
	struct tsc_reading last;
	uint64_t changes; /* of the offset, since the first reading */
};

/* What happened to TSC offsets since the last commit. */
struct model_tsc_note {
	uint32_t vm; /* inv_vm.id */
	struct snap_tsc_event e; /* without its vm */
};

struct model_tsc_notes {
	struct model_tsc_note *note;
	size_t n, cap;
};

/* A vCPU's PMU as read last and, where it was read before, then. */
struct model_pmu {
	struct pmu_state now, before;
	int64_t time, time_before; /* 0: not read */
};

struct model_vcpu {
	struct ex_vcpu ex;
	struct model_pmu *pmu; /* NULL: nobody asked */
	struct sym_set sym;
	struct model_tsc tsc;
	struct waited waited;
};

struct model_thread {
	struct ex_thread ex;
	struct use_state use;
	bool read; /* in this interval */
	struct use_quota quota; /* of a group of its own */
	char *limit; /* the file with that quota, NULL: none or not known */
	char *pin, *node; /* NULL: not asked or not known */
};

struct model_source {
	char *name, *why, *mend;
	uint8_t state;
};

struct model_task {
	pid_t pid;
	char comm[32];
	double cpu_pct;
	char state;
};

/* The host's counters as read last, and as they were at the commit before. */
struct model_host {
	bool have, have_prev;
	struct host_reading now, prev; /* .cpu points to .cpus, .prev_cpus */
	struct cpu_reading *cpus, *prev_cpus;
	unsigned room, prev_room;
};

/* The host's sums a kind. */
struct model_kind {
	struct ex_acc now, total;
	struct hist now_hist, total_hist;
};

/* Samples of the whole host, and who takes them. */
struct model_sampling {
	struct sampling_state state; /* .event and .why point to texts that live as long */
	char event[24], why[80];
	struct sym_set all, rest; /* of all VMs together; of what is no VM */
	uint64_t idle; /* samples of idle CPUs in the interval */
	uint64_t lost, throttled;
	bool guest_seen; /* a sample was in guest mode, ever */
	double guest_unseen_ns; /* guest time of which no sample was in guest mode */
	const struct symbol_namer *namer;
};

struct slices;

/* NULL: no memory. */
struct model_vm *model_vm_state(struct inv_vm *vm);
struct model_vcpu *model_vcpu_state(struct inv_vcpu *v);
struct model_thread *model_thread_state(struct inv_thread *t);

struct model {
	struct model_config config;
	char *node, *kernel, *boot_id;
	char *self; /* how this program is called */
	struct inventory *inv;
	const struct kvm_names *names;
	struct exits ex;
	enum events_by events_by;
	struct sink sink;
	struct demand demand;
	struct model_host host;
	struct model_task *tasks;
	size_t ntasks, task_room;
	struct model_source *sources;
	size_t nsources;
	struct model_kind kinds[KIND_NR];
	struct ex_vm all; /* the exits of all VMs, also of those that are gone */
	struct model_sampling sampling;
	/* Of this interval: by the programs that count, and by those that watch waits. */
	struct program_cost counting, waiting;
	struct slices *slices; /* NULL: no vCPU's events come one by one */
	struct vcpu_stream stream;
	uint64_t stream_lost; /* of this interval */
	struct model_tsc_notes tsc;
	char pmu_why[200]; /* why a guest's counters may lie */
	struct findings *findings;
	struct value self_cpu, self_guest;
	unsigned discovered, discovering;
	struct missing missing;
	size_t snapshot_used; /* bytes of the last one */
	uint64_t seq, lost, lost_total; /* lost: of this interval, by loss_count */
	uint64_t code_lost, code_lost_total; /* of exits that only tell which code makes them */
	int64_t last; /* W of the last commit */
	int64_t since; /* where the totals begin */
	bool have_last;
	double guest_unseen_ns; /* guest time that passed without any kvm_entry or kvm_exit */
	bool no_entry_exit; /* this KVM fires neither, as far as can be seen */
};

#endif
