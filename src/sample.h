// SPDX-License-Identifier: GPL-2.0-only
/*
 * What collectors hand to the model: plain structs and the sink that takes them.
 *
 * Times are CLOCK_MONOTONIC in nanoseconds everywhere. Nothing here owns memory:
 * what a pointer of these structs points to is valid during the call only.
 */
#ifndef KVMTOP_SAMPLE_H
#define KVMTOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct inv_thread;
struct pmu_state;
struct inv_vcpu;
struct inv_vm;

/* The kinds of docs/metrics.md, "Exits and their times": one table of rows each. */
enum kvm_kind {
	KIND_VMEXIT,
	KIND_MMIO,
	KIND_IOPORT,
	KIND_MSR,
	KIND_HYPERCALL,
	KIND_USEREXIT,
	KIND_HALT,
	KIND_NR
};
#define KIND_BIT(k) (1u << (k))
#define KIND_ALL ((1u << KIND_NR) - 1)

/* One decoded kernel event. */
enum ev_type {
	EV_ENTRY,
	EV_EXIT,
	EV_MMIO,
	EV_PIO,
	EV_MSR,
	EV_HYPERCALL,
	EV_USEREXIT,
	EV_VCPU_WAKEUP,
	EV_HALT_POLL,
	EV_FPU, /* key 1: KVM_RUN was called, what the VMM did is done; 0: it ends */
	EV_NR
};

/* sample.dir */
enum ev_dir {
	DIR_NONE,
	DIR_READ, /* mmio, msr read; port in */
	DIR_WRITE, /* mmio, msr write; port out */
	DIR_UNSATISFIED, /* kvm_mmio type 0: the read that goes to user space */
};

/*
 * sample.isa: 1 and 2 as x86's kvm_exit reports it; other architectures have no such field,
 * theirs follow from the shape of the event (kvm_format.c).
 */
enum {
	ISA_NONE = 0,
	ISA_VMX = 1,
	ISA_SVM = 2,
	ISA_ARM64 = 16,
	ISA_S390,
	ISA_PPC,
	ISA_RISCV,
	ISA_LOONGARCH,
};

/* arm64's key: the exception code, and where that is TRAP the class (esr_ec) under this bit. */
#define KVM_ARM_TRAP 0x10000u
/* userexit's key where KVM_RUN failed: the positive errno under this bit (EINTR keeps its reason).
 */
#define KVM_USEREXIT_ERROR 0x100000000ull

struct sample {
	int64_t time; /* ns, CLOCK_MONOTONIC */
	uint64_t key; /* exit reason, gpa, port, MSR, hypercall nr, KVM_EXIT_* */
	uint64_t aux; /* exit: guest rip; wakeup: ns; halt poll: new ns; userexit: errno */
	int32_t tid; /* the record's common_pid: the thread in the root pid namespace */
	int32_t vcpu_id; /* KVM's id, -1 where the event has none */
	uint16_t cpu; /* host CPU */
	uint8_t type; /* enum ev_type */
	uint8_t dir; /* enum ev_dir; wakeup: DIR_READ polled, DIR_WRITE waited */
	uint32_t isa;
};

/* The four domains of a sample (docs/metrics.md, "Samples"). */
enum ip_domain {
	DOMAIN_HOST_KERNEL,
	DOMAIN_HOST_USER,
	DOMAIN_GUEST_KERNEL,
	DOMAIN_GUEST_USER,
	DOMAIN_NR
};
#define DOMAIN_IS_GUEST(d) ((d) >= DOMAIN_GUEST_KERNEL)

/* Where a CPU was, as the record says it; the engine finds out what is there. */
struct ip_sample {
	uint64_t ip; /* 0 of the idle task, where samples are counted together */
	uint64_t caller; /* in guest mode: where its function returns to; 0 not known */
	int32_t pid, tid; /* in the root pid namespace; tid 0: the idle task */
	uint32_t n; /* so many samples are alike */
	uint8_t domain; /* enum ip_domain: the kernel's word, not always right about guests */
};

/* What a collector of samples does just now. */
struct sampling_state {
	bool open;
	bool guest; /* the guests' side is asked for */
	const char *event; /* what really runs: "cpu-clock", "cycles", "cycles:G"; "" none */
	unsigned hz, wanted_hz; /* a CPU and second; hz < wanted_hz: lowered */
	const char *why; /* why lowered or another event than asked for, "" */
	uint64_t throttled; /* times that the kernel held it back, since the last call */
	uint64_t lost; /* samples that were lost since the last call */
};

/* Why an address has no name. */
enum no_symbol {
	SYM_NAMED,
	SYM_USER, /* guest user space: nobody knows its programs */
	SYM_NO_SOURCE, /* there are no symbols of this guest */
	SYM_NO_TABLE, /* its symbols cannot be used; the table's reason says why */
	SYM_LOADING,
	SYM_OUTSIDE, /* no symbol is there */
	SYM_NO_FILE, /* the program's file has no symbols */
};

/* What an address was found to be. Equal keys are one row. */
struct symbol_key {
	uint64_t value; /* a symbol of the table, or the page of an address without a name */
	uint32_t
		table; /* the engine's number of the symbol table or of the page's module, 0 none */
	uint8_t domain; /* enum ip_domain */
	uint8_t reason; /* enum no_symbol */
};

/*
 * The key of its row of all VMs together: pages of many programs have nothing in common but that
 * they have no name.
 */
static inline struct symbol_key symbol_key_of_all(const struct symbol_key *k)
{
	if (k->reason == SYM_NAMED ||
	    (!DOMAIN_IS_GUEST(k->domain) && k->domain != DOMAIN_HOST_USER))
		return *k;
	return (struct symbol_key){.domain = k->domain,
				   .reason = k->reason == SYM_USER ? SYM_USER : SYM_NO_SOURCE};
}

/* Samples alike with their answer. */
struct symbol_hit {
	struct inv_thread *thread; /* NULL: of no VM */
	struct symbol_key key;
	struct symbol_key caller; /* what called it, where `called` says so */
	uint32_t n; /* how many */
	bool called;
	bool idle; /* the idle task: an idle host CPU */
	bool guessed; /* guest kernel or user by the kernel's word only */
};

/* One interval of one (thread, kind, key), from a source that counts in the kernel. */
struct aggregate {
	int32_t tid, pid; /* pid: its process, 0 not known */
	int32_t vcpu_id; /* -1: by thread */
	uint8_t kind; /* enum kvm_kind */
	uint8_t dir;
	uint32_t isa;
	uint64_t key;
	uint64_t count, timed;
	uint64_t sum_ns, min_ns, max_ns;
	uint64_t within_ns; /* of sum_ns: what is not before the interval */
	unsigned __int128 sumsq; /* of ns */
	const struct hist *hist; /* NULL: none */
	const uint32_t *few; /* times that are not in hist: nfew of hist_add_few() */
	unsigned nfew;
	bool other; /* of keys that found no place: key, isa and dir say nothing */
};

struct open_pair {
	int64_t begin; /* ns, CLOCK_MONOTONIC */
	uint64_t key;
	uint32_t isa;
	uint8_t dir;
};

/* What such a source found at the interval's end in a thread that had events in it. */
struct thread_open {
	int32_t tid;
	int32_t vcpu_id; /* -1: by thread */
	uint32_t open; /* KIND_BIT of KIND_VMEXIT, KIND_USEREXIT: which of the two is open */
	bool elsewhere; /* another thread runs the vCPU now, and says what is open */
	uint32_t unmatched; /* pairs of this interval whose end never came */
	uint32_t slow; /* exits of this interval that were slow, with a struct slow_exit or without
			*/
	struct open_pair exit, user;
	/*
	 * Time without a CPU in exits, ns of this interval; 0 where sink.off_told said that it is
	 * not told. Of those that ended in it, idle ones left out; and of the open one.
	 */
	uint64_t off_ns, exit_off_ns;
	int64_t exit_off_since; /* without one since then, which is in none of the two; 0: it has
				 * one
				 */
	bool off_blind, exit_blind; /* a switch was not seen: of some nothing is known */
};

/* One exit, not an idle one, that took longer than demand.slow_ns. */
struct slow_exit {
	int64_t begin, end; /* ns, CLOCK_MONOTONIC */
	uint64_t key; /* exit reason */
	uint64_t rip; /* of the guest, 0 not known */
	uint64_t user_key; /* KVM_EXIT_*: what the VMM was asked for last meanwhile */
	int64_t user_begin; /* when that was; 0: the VMM was not asked */
	uint32_t isa;
	int32_t tid;
	int32_t vcpu_id; /* -1: by thread */
	/*
	 * KIND_VMEXIT; or KIND_USEREXIT where no kvm_exit fires: the VMM's part of an exit alone,
	 * key and begin are those of user_.
	 */
	uint8_t kind;
};

/* Where the events of exits come from: for the screen, and for what they cost. */
enum events_by { EVENTS_BY_NONE, EVENTS_BY_PERF, EVENTS_BY_BPF };

/* A window in which events of a CPU are missing: no pair that overlaps it is timed. */
struct loss {
	uint16_t cpu;
	int64_t from, to; /* (from, to] */
	uint64_t n; /* events; 0 where only the counters of loss_count are to be believed */
	bool uncounted; /* no counter tells what was lost in it */
	bool unwatched; /* nobody watched the CPU: its ring was opened at `to` only */
};

/* Lost events since the last call; type -1: of all kinds, the kernel does not say which. */
struct loss_count {
	int type; /* enum ev_type or -1 */
	uint64_t n;
};

/* What programs in the kernel took of the time of those in whose way they run. */
struct program_cost {
	bool waits; /* those behind sink.waits; else those that count events */
	uint64_t ns; /* of this interval, measured now and then */
	uint64_t switches; /* changes of tasks among what they were called for */
	uint64_t switches_ns; /* of ns: for these */
	uint64_t singles; /* exits that were taken one by one beside these programs' counts */
};

/* One reading of a thread's /proc counters; what is absent has its has_ flag clear. */
struct thread_reading {
	struct inv_thread *thread;
	int64_t time; /* ns, when it was read */
	bool has_sched, has_gtime, has_gstime;
	char state; /* R, S, D, T, … as in stat */
	int cpu; /* last pCPU, -1 unknown */
	uint64_t run_ns, delay_ns, nr_sched; /* schedstat */
	uint64_t utime, stime, gtime, gstime; /* clock ticks; utime contains gtime */
	uint64_t minflt, majflt, blkio_ticks;
	/* Switches: from files only where state R and a gap in run_ns leave it open what it did. */
	bool has_vol, has_nonvol;
	uint64_t vol, nonvol;
	bool has_on_cpu, on_cpu; /* it has a CPU at this moment */
};

/* Where a thread may run and has its memory; costly, so only on demand.pins. */
struct place_reading {
	struct inv_thread *thread;
	const char *pin; /* Cpus_allowed_list: "0-3"; NULL not known */
	const char *node; /* "0", "1!0" when most memory is on node 0; NULL not known */
};

/* The quota in force on a VM's (or vCPU's) cgroups, and the time it held them back. */
struct quota_reading {
	struct inv_vm *vm;
	struct inv_thread *thread; /* NULL: the group is shared by the VM's threads */
	int64_t time;
	bool has; /* a cgroup with cpu.stat was found */
	uint64_t throttled_ns; /* of the ancestor that was throttled most in this interval */
	uint64_t quota_us, period_us; /* tightest; quota 0: none */
	/* In half of its last periods or more the group had its whole quota, all on one CPU. */
	bool used_up;
	bool begun; /* a limit that is new: what it held back so far is not known */
	/* The quota that held it back most in this interval, else the tightest. */
	const char *limit; /* the file it stands in, with its path; NULL: none */
	double limit_pct; /* of one CPU */
	bool shared; /* other VMs are in that group */
};

/* Ticks of one CPU (or the sum) as /proc/stat has them; user contains guest. */
struct cpu_ticks {
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice;
};

struct cpu_reading {
	int cpu;
	bool online;
	int node, core, package; /* -1 unknown */
	int sibling; /* an SMT sibling, -1 none */
	struct cpu_ticks t;
	bool has_wait;
	uint64_t wait_ns; /* /proc/schedstat: time tasks waited to run here */
};

struct host_reading {
	int64_t time;
	struct cpu_ticks all;
	unsigned ncpu;
	const struct cpu_reading *cpu;
	uint64_t mem_total_kb, mem_avail_kb;
	double load1;
};

/* The TSC of a vCPU: guest = ((host * ratio) >> frac_bits) + offset. */
struct tsc_reading {
	struct inv_vcpu *vcpu;
	uint64_t offset;
	uint64_t ratio; /* 0: not scaled */
	uint8_t frac_bits;
	double hz; /* of the host's TSC, as measured; 0: not yet */
};

/* kvm_write_tsc_offset. */
struct tsc_write {
	struct inv_vm *vm;
	int kvm_id;
	uint64_t at; /* the host's TSC */
	uint64_t prev, next;
};

/* Who had the CPU while a thread could have run on it. */
struct wait_part {
	uint32_t vm; /* inv_vm.id of the VM whose thread it was; 0: of none, told by its name */
	bool idle; /* nobody had it: its own quota, or the CPU's way out of idling */
	bool other; /* of many, who found no place of their own */
	const char *comm;
	uint64_t ns;
};

/* What a vCPU's thread waited for in the time since its reading before, and no more than that. */
struct wait_reading {
	struct inv_thread *thread;
	int64_t time, dt; /* ns; dt 0: the first one, without figures */
	const struct wait_part *part;
	size_t n;
	bool has_missed;
	uint64_t missed_ns; /* the kernel's run delay that is in no part */
	bool cut; /* it was more than there was time for */
	uint64_t wakeups; /* after which it ran */
	const struct hist *wake; /* from wake-up to running; NULL: none */
};

/* Each event of one vCPU alone, whatever counts those of all. */
struct vcpu_stream {
	uint32_t vcpu; /* inv_vcpu.id; 0: of none, from now on */
	unsigned kinds; /* KIND_BIT: those that come */
	int64_t since; /* ns: complete from here on */
	uint64_t lost; /* events since the last call */
};

/* A vCPU's PMU; it is read while somebody asks. */
struct pmu_reading {
	struct inv_vcpu *vcpu;
	int64_t time; /* ns, when it was read */
	const struct pmu_state *state; /* NULL: it cannot be read any more */
};

/* Tasks that belong to no VM: the row "(other)". */
struct task_reading {
	pid_t pid;
	const char *comm;
	double cpu_pct; /* < 0: not known yet */
	char state;
};

struct sink {
	void *ctx;
	void (*samples)(void *ctx, const struct sample *s, size_t n); /* in time order */
	/* One without a count only makes its thread known: it may be gone before its figures come.
	 */
	void (*aggregates)(void *ctx, const struct aggregate *a, size_t n);
	void (*open)(void *ctx, const struct thread_open *o); /* after the thread's aggregates */
	/* Threads whose aggregates come soon, some at a time: their memory may be fetched. NULL:
	 * not taken. */
	void (*coming)(void *ctx, const int32_t *tid, size_t n);
	/*
	 * Of a source that counts in the kernel: those for which it had room. How many there were
	 * is in thread_open. NULL: not taken.
	 */
	void (*slow)(void *ctx, const struct slow_exit *s, size_t n);
	void (*events_by)(void *ctx, enum events_by by); /* from now on; NULL: not taken */
	/* From now on it tells when threads in exits have no CPU, or no more; NULL: not taken. */
	void (*off_told)(void *ctx, bool told);
	void (*loss)(void *ctx, const struct loss *l);
	void (*loss_count)(void *ctx, const struct loss_count *c);
	/*
	 * Which kinds are being collected from now on (KIND_BIT); opened or closed. entry_exit:
	 * kvm_entry and kvm_exit are open (whether this KVM fires any shows in the samples).
	 * Samples of a kind that are older than its opening are not handed over.
	 */
	void (*kinds)(void *ctx, unsigned open_kinds, bool entry_exit, int64_t time);
	/* Samples in time order; to the engine, which has ips_ctx of its own. NULL: not taken. */
	void (*ips)(void *ips_ctx, const struct ip_sample *s, size_t n);
	void *ips_ctx;
	/* Samples that samples() got, to ips_ctx too: where guests leave guest mode. NULL: not
	 * taken. */
	void (*exits)(void *ips_ctx, const struct sample *s, size_t n);
	/* Exits that are counted elsewhere: only for which guest code makes them. NULL: not taken.
	 */
	void (*code)(void *ctx, const struct sample *s, size_t n);
	/* n of those that code() would have got are lost; 0: how many is not known. NULL: not
	 * taken. */
	void (*code_lost)(void *ctx, uint64_t n);
	void (*sampling)(void *ctx, const struct sampling_state *s);
	void (*thread)(void *ctx, const struct thread_reading *r);
	void (*place)(void *ctx, const struct place_reading *r);
	void (*quota)(void *ctx, const struct quota_reading *r);
	void (*host)(void *ctx, const struct host_reading *r);
	void (*tasks)(void *ctx, const struct task_reading *t, size_t n); /* busiest first */
	void (*tsc)(void *ctx, const struct tsc_reading *r); /* NULL: not taken */
	void (*tsc_write)(void *ctx, const struct tsc_write *w); /* NULL: not taken */
	void (*waits)(void *ctx, const struct wait_reading *r); /* NULL: not taken */
	/* At each tick, of sources that have programs in the kernel. NULL: not taken. */
	void (*program_cost)(void *ctx, const struct program_cost *c);
	/* Events of .vcpu of the last vcpu_stream(): they are counted elsewhere. NULL: not taken.
	 */
	void (*vcpu_events)(void *ctx, const struct sample *s, size_t n);
	/* Before the first of them, and at each tick. NULL: not taken. */
	void (*vcpu_stream)(void *ctx, const struct vcpu_stream *s);
	void (*pmu)(void *ctx, const struct pmu_reading *r); /* NULL: not taken */
	/* Why a guest's counters may lie on this host, in one line. NULL: not taken */
	void (*pmu_host)(void *ctx, const char *why);
	/* A source's state changed; mend may be NULL. Replaces what was said of it before. */
	void (*source)(void *ctx, const char *name, int state /* enum source_state */,
		       const char *why, const char *mend);
};

enum source_state { SOURCE_OK, SOURCE_PARTIAL, SOURCE_OFF };

#endif
