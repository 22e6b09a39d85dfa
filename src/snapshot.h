// SPDX-License-Identifier: GPL-2.0-only
/*
 * The frozen result of one interval: all that screens, batch, recordings and
 * tests ever see.
 *
 * A snapshot is immutable and reference-counted; every pointer in it points into
 * its own memory. Figures are defined in docs/metrics.md and by the field table
 * (field.c), which is the way to read them generically.
 */
#ifndef KVMTOP_SNAPSHOT_H
#define KVMTOP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "sample.h"
#include "value.h"

/* Percent of its time that a vCPU waited for a CPU: from here on guests notice (docs/metrics.md).
 */
#define STEAL_NOTICE 5.0

/* CPU and steal of a thread, a vCPU or a VM; percent of one CPU unless said. */
struct snap_use {
	struct value cpu, guest, usr, sys;
	struct value steal, throt, wait, demand; /* VM: mean over its vCPUs */
	struct value csw, mig; /* per second */
	struct value majflt, blk; /* per second; % of time */
	bool own_quota; /* %THROT is at least half of %STEAL, or the quota is used up: mark q */
};

/* Which of a tally's timed pairs its percentiles are over. */
enum tally_pctl {
	PCTL_ALL,
	PCTL_PART, /* those since somebody first looked: a vCPU's histograms are made then */
	PCTL_NONE, /* no histogram was kept: p50 to p99.9 are not known */
};

/* Where a tally's figures are of the interval or since start/reset. */
struct tally {
	uint64_t count; /* begin events */
	uint64_t timed; /* completed pairs */
	uint64_t time_ns, min_ns, max_ns; /* over timed */
	double avg_ns, stderr_pct; /* 0 for timed < 2 */
	uint64_t p50_ns, p99_ns, p999_ns;
	uint8_t pctl; /* enum tally_pctl */
	uint8_t low; /* enum value_why: why count is not right; WHY_NONE: it is */
	struct value rate; /* count per second */
	struct value count_pct, time_pct; /* of the same kind at the same level */
};

#define HEAT_BUCKETS 64 /* half octaves from 2^4 ns; see hist.h */

#define SNAP_NO_VM UINT32_MAX

struct snap_exit {
	uint32_t vm; /* index into vms; SNAP_NO_VM: all VMs of the host together */
	int32_t vcpu; /* index into vcpus, -1: the whole VM or host */
	uint8_t kind; /* enum kvm_kind */
	bool idle; /* waiting, not handling */
	bool other; /* the row that holds what did not fit; key is 0 then */
	bool has_time; /* false: nothing of this kind can be timed on this kernel */
	uint32_t isa;
	uint64_t key;
	uint8_t dir; /* enum ev_dir */
	const char *name; /* "MSR_WRITE", "0x3f8:POUT"; for `other` "other" */
	const char *note; /* what it is, where known ("APIC EOI"), else "" */
	struct tally now, total;
	/* Histogram of this interval, HEAT_BUCKETS counts; NULL where none is kept. */
	const uint32_t *heat;
};

enum { SNAP_QUALITY_GUESSED = 1, SNAP_QUALITY_GONE = 2, SNAP_QUALITY_PROVISIONAL = 4 };

/* Figures that VM and vCPU rows share, and the host has. */
struct snap_exits {
	struct value
		rate; /* vm exits a second; without kvm_exit the larger of accesses and userexits */
	struct value pct; /* %EXIT */
	struct value on_pct, off_pct; /* of it, with a CPU and without */
	struct value p50, p99, max; /* ns, non-idle vm exits of the interval */
	const char *top; /* TOP EXIT: name, "" none */
	struct value top_pct; /* its share of non-idle exit time (count where untimed) */
	uint64_t lost; /* its pairs of this interval that a loss left untimed */
	const char *open; /* "KVM_EXIT_IO" … of an exit open at the tick, "" none */
	struct value open_ns; /* how long, NA where none is open */
	uint32_t first, n; /* rows in snapshot.exits */
};

/*
 * A slice of the interval, of one key of the vCPU of snapshot.stream: what began in it, and the
 * histogram of what ended in it.
 */
struct snap_slice {
	int64_t at; /* ns CLOCK_MONOTONIC, a multiple of stream.slice_ns */
	uint64_t key, count, timed;
	const uint32_t *heat; /* HEAT_BUCKETS counts; NULL: nothing timed */
	uint32_t isa;
	uint8_t kind, dir; /* enum kvm_kind, enum ev_dir */
};

/* The one vCPU of which each event was taken. */
struct snap_stream {
	uint32_t vcpu; /* inv_vcpu.id; 0: of none */
	unsigned kinds; /* KIND_BIT */
	int64_t slice_ns;
	int64_t from; /* complete from here to the interval's end */
	uint64_t events, lost; /* taken in the interval; and not, or without a place */
};

/* snap_symbol.vm where it is no VM's. */
enum { SNAP_ALL_VMS = -1, SNAP_OTHER = -2 };

#define SNAP_CALLERS 4

/* What called a guest's symbol, in so many of its samples. */
struct snap_caller {
	const char *name; /* as name of snap_symbol, "" none */
	uint64_t samples, samples_total; /* of the interval; since start or reset */
};

/* A row of samples: of all VMs together, of what is no VM, of a VM (vcpu -1) or of a vCPU. */
struct snap_symbol {
	int32_t vm; /* index into vms, SNAP_ALL_VMS or SNAP_OTHER */
	int32_t vcpu; /* index into vcpus, -1: the whole VM */
	struct symbol_key key; /* the same in every snapshot for the same symbol */
	bool other; /* the row that holds what did not fit; key is 0 then */
	bool guessed; /* guest kernel or user by the kernel's word only */
	const char *name; /* "native_write_msr", "[guest 0xffffffff81000000]", "other" */
	const char *module; /* "kvm_amd", "" the kernel itself or not known */
	const char *reason; /* why it has no name, "" where it has one */
	uint64_t samples, samples_total; /* of the interval; since start or reset */
	struct value pct, pct_total; /* of all samples of these */
	/* Of a VM's rows, the most frequent ones first; where the kernel tells guests' call chains.
	 */
	struct snap_caller caller[SNAP_CALLERS];
};

/* What VM and vCPU rows and the host have of their samples. */
struct snap_samples {
	struct value n, n_total; /* of the interval, since start or reset; idle CPUs left out */
	struct value domain[DOMAIN_NR]; /* shares of n, % */
	const char *hot; /* HOT SYMBOL with its domain: "k:native_write_msr", "" none */
	struct value hot_pct; /* its share of n */
	bool hot_named; /* it is a symbol, not only an address */
	uint32_t first, rows; /* in snapshot.symbols */
};

/* Exits of one reason that one piece of guest code makes. */
struct snap_code {
	uint32_t vm; /* index into vms */
	uint32_t isa;
	uint64_t reason; /* as snap_exit.key of a vmexit */
	const char *exit; /* its name: "MSR_WRITE" */
	struct symbol_key key;
	const char *name, *module, *why; /* as name, module, reason of snap_symbol */
	uint64_t count, total; /* of the interval; since somebody asked */
	struct value pct, pct_total; /* of all exits of that reason of the VM */
	uint8_t low, low_total; /* enum value_why: why count and total are too low; WHY_NONE: they
				   are not */
};

/* One slow exit: it took longer than snapshot.slow_ns then. */
struct snap_slow {
	uint32_t vm; /* index into vms */
	int32_t vcpu; /* index into vcpus, -1 not known (any more) */
	bool fresh; /* it ended in this interval */
	int64_t end; /* ns CLOCK_MONOTONIC; with tid it tells one from all others */
	int32_t tid;
	const char *time; /* when it ended: ISO 8601 with microseconds, local time */
	const char *at; /* the same, the time of day only, with milliseconds */
	uint32_t isa;
	uint64_t reason; /* as snap_exit.key of a vmexit */
	const char *exit; /* its name: "MSR_WRITE" */
	uint64_t ns; /* how long it took */
	const char *rip; /* where the guest was: "0xffffffff81000000", "" not known */
	struct symbol_key key; /* of that address */
	const char *name, *module, *why; /* as name, module, reason of snap_symbol; "" no address */
	const char *user; /* "KVM_EXIT_IO": what the VMM did meanwhile; "" it was not asked */
	struct value user_ns; /* from there to the entry; pending where it was not asked */
};

/* What a VM has of them. */
struct snap_slows {
	uint64_t count, total; /* of the interval; since start or reset */
	uint32_t first, n; /* rows in snapshot.slow: the older ones first */
};

/* What takes the samples, in the last interval. */
struct snap_sampling {
	bool open;
	const char *event; /* "cpu-clock", "cycles"; "" none */
	unsigned hz, wanted_hz; /* a CPU and second */
	const char *why; /* why fewer than wanted, "" */
	uint64_t lost, throttled; /* of the interval: samples; times the kernel held it back */
	struct value idle; /* samples of idle CPUs, % of all */
	bool no_guest; /* guests run, and no sample was ever in guest mode */
};

/* A vCPU's TSC (docs/metrics.md, "TSC"). */
/* A vCPU's TSC offset was written, or was read for the first time or as another than before. */
struct snap_tsc_event {
	uint32_t vm;
	int32_t kvm_id;
	uint64_t at; /* the host's TSC when it was written; 0: only seen in this interval */
	uint64_t prev, next; /* prev: of writes only */
	uint64_t ratio; /* of readings only; 0: not scaled */
	uint8_t frac_bits;
};

struct snap_tsc {
	const char *offset; /* signed cycles: more digits than a double has; "" not known */
	struct value offset_s; /* the same as time */
	struct value scale; /* guest cycles a host cycle; 1: not scaled */
	struct value apart_ns; /* between it and the VM's first vCPU */
	struct value changes; /* of the offset, since kvmtop reads it */
};

/* A counter of a guest's PMU (docs/metrics.md, "Guest PMU"). */
struct snap_pmc {
	uint32_t vm; /* index into vms */
	int32_t vcpu; /* index into vcpus */
	bool fixed; /* a fixed-function counter */
	bool enabled; /* by its own bits and the global ones, as far as they are known */
	bool inferred; /* from what the guest wrote; else debugfs */
	bool wrong; /* the guest believes that it counts, and it does not, or not all the time */
	uint8_t nr;
	const char *counter; /* "gp0", "fixed1" */
	const char *event; /* what it counts: "cycles", "r412e"; "" nothing is selected */
	const char *mode; /* "user+kernel", "kernel edge cmask=1" */
	const char *select; /* the event select register, "0x43003c"; "" not known */
	const char *host_event; /* state of the host's perf event behind it, "" not known */
	const char *note; /* why it does not count, or less than the guest believes; "" */
	struct value value; /* what RDPMC gives */
	struct value rate; /* events a second */
	struct value running; /* % of the time for which it was on a CPU's counter */
	struct value overflows; /* since the vCPU was made */
	struct value accesses; /* exits a second by its MSRs */
};

/* What VMs and vCPUs have of their PMUs; where nobody asked, not known. */
struct snap_pmu {
	struct value accesses; /* exits a second by MSRs of the PMU */
	struct value pct; /* time of these exits, % of the interval; of a VM the mean over vCPUs */
	/* Of vCPUs. */
	struct value total, refused; /* accesses since somebody looks; of them: #GP */
	const char *source; /* "debugfs", "inferred", "" not known */
	const char *what; /* "version 2, 6 counters of 48 bits"; "" not known */
	const char *global; /* "ctrl 0x3 status 0x0"; "" not known */
	uint32_t first, n; /* rows in snapshot.pmcs */
};

enum waited_kind {
	WAITED_VM, /* a thread of a VM: its own, or another's */
	WAITED_TASK,
	WAITED_IDLE, /* nobody: its own quota held it back, or the CPU was on its way out of idling
		      */
	WAITED_OTHER, /* what did not fit */
	WAITED_UNKNOWN, /* the kernel's run delay that no one explains */
};

/* Who had the CPU while a VM's vCPUs (vcpu -1), or one of them, could have run on it. */
struct snap_waited {
	uint32_t vm; /* index into vms */
	int32_t vcpu; /* index into vcpus, -1: the whole VM */
	uint8_t kind; /* enum waited_kind */
	uint32_t by_vm; /* snap_vm.id of a VM that had it, 0 none */
	const char *name; /* of that VM or task, unescaped; "(idle)", "other", "unexplained" */
	uint64_t ns; /* of the interval */
	struct value share; /* % of all that it waited: these add up to 100 */
	struct value pct; /* % of the interval; of a VM the mean over its vCPUs */
};

/* What VM and vCPU rows have of their waiting; where nobody asked, not known. */
struct snap_waits {
	struct value pct; /* all of it, % of the interval; of a VM the mean over its vCPUs */
	struct value wakeups; /* a second */
	struct value wake_p50, wake_p99; /* from wake-up to running, ns */
	uint32_t first, n; /* rows in snapshot.waited */
};

struct snap_vcpu {
	uint32_t id; /* inv_vcpu.id: what a selection follows */
	uint32_t vm; /* index into vms */
	int index; /* the VMM's number */
	int kvm_id;
	bool index_guessed;
	uint8_t quality;
	pid_t tid; /* 0 not known */
	const char *comm;
	char state;
	int cpu; /* last pCPU, -1 */
	const char *pin; /* "0-3", "" not asked or unknown */
	const char *node; /* "0", "1!0", "" not known */
	struct snap_use use;
	struct snap_exits ex;
	struct snap_samples sym;
	struct snap_tsc tsc;
	struct snap_waits waits;
	struct snap_pmu pmu;
};

enum why_kind { WHY_ROW_NONE, WHY_ROW_STEAL, WHY_ROW_QUOTA, WHY_ROW_EXITS, WHY_ROW_SYMBOL };

struct snap_vm {
	uint32_t id; /* inv_vm.id */
	const char *vm_id; /* uuid, else (or if another VM has that) pid-starttime; no two alike */
	const char *name; /* unescaped; escape it before it goes anywhere */
	const char *uuid, *title, *vmm, *cmdline, *cgroup; /* "" none */
	uint8_t quality;
	pid_t pid;
	unsigned nvcpu, nthread;
	struct snap_use use; /* sums over threads; steal the mean over vCPUs */
	struct value vcpu_pct, io_pct; /* %vCPU, %IO: parts of use.cpu */
	struct value steal_max; /* MAX@v */
	int steal_max_vcpu; /* its index, -1 */
	const char *steal_source; /* "rundelay", "gstime", "" */
	struct snap_exits ex;
	struct snap_samples sym;
	uint32_t code_first, code_n; /* in snapshot.code */
	bool code_known; /* they are of all of the interval */
	struct snap_waits waits;
	struct snap_pmu pmu;
	struct snap_slows slow;
	const char *sym_why; /* why its guest's samples have no names, "" */
	const char *sym_mend; /* the command that brings them, "" */
	enum why_kind why;
	const char *why_text; /* "quota", "steal 31%", "MSR_WRITE 41%", "" */
	uint64_t quota_us, period_us; /* tightest; 0 none */
	/* The quota that held it back most, else the tightest: NULL or "": none. */
	const char *quota_file;
	double quota_held_pct; /* of one CPU; 0 not known */
	bool quota_shared; /* with other VMs */
	uint32_t vcpu_first, vcpu_n; /* rows in snapshot.vcpus */
	uint32_t thread_first, thread_n; /* rows in snapshot.threads */
};

struct snap_thread { /* a VMM's other threads and its kernel helpers */
	uint32_t vm;
	pid_t tid;
	const char *comm;
	uint8_t role; /* enum inv_role */
	char state;
	int cpu;
	struct snap_use use;
};

struct snap_task { /* belongs to no VM */
	pid_t pid;
	const char *comm;
	char state;
	struct value cpu;
};

enum snap_pins { SNAP_PINS_ALL, SNAP_PINS_SOME, SNAP_PINS_NONE };

struct snap_cpu { /* a pCPU */
	int cpu;
	bool online;
	int node, core, package, sibling; /* -1 unknown */
	struct value usr, sys, irq, wa, st, guest, idle; /* % of this CPU */
	struct value wait; /* time tasks waited in its run queue, % of the interval */
	unsigned nvcpu_seen; /* vCPUs whose last pCPU it was */
	unsigned npinned; /* vCPUs that may run here only, of those whose pins are known */
	uint8_t pins; /* enum snap_pins: of how many that is */
	const char *vcpus; /* "web01/0 web02/1", cut at 200 bytes */
};

struct snap_host {
	const char *node, *kernel, *boot_id;
	unsigned ncpu, nvm, nvcpu;
	struct value usr, sys, irq, wa, st, guest, idle; /* sum to 100 */
	struct value steal; /* mean over all vCPUs */
	struct value overcommit; /* vCPUs per online CPU */
	struct value exits_rate, exit_pct;
	struct snap_exits ex; /* all VMs together, its rows also with VMs that are gone */
	struct value other_cpu, other_sys; /* row (other) */
	const char *other_why; /* "ceph-osd 22%" or "" */
	struct snap_samples sym; /* of all VMs together */
	struct snap_samples other_sym; /* of what is no VM; idle CPUs apart */
	struct value self_cpu, self_guest; /* self A+B%, of the host */
	struct value load1;
	uint64_t mem_total_kb, mem_avail_kb;
	uint64_t lost, late, unmatched; /* events of this interval */
	uint64_t lost_total;
	uint64_t code_lost, code_lost_total; /* exits that .code has no count of */
	/* CPUs that were not watched for a while: how many, one of them, and how long at most (ns).
	 */
	unsigned unwatched;
	int unwatched_cpu;
	int64_t unwatched_ns;
	bool entry_exit; /* kvm_entry/kvm_exit were seen on this kernel */
	uint8_t events_by; /* enum events_by: the source of exits and accesses */
	uint64_t switches; /* of tasks, that passed through a program; 0: nobody watches waits */
	const char *pmu_why; /* why a guest's counters may lie here, "" nobody asked */
	/* What these programs took, and those that count events; of that for exits' time without a
	 * CPU.
	 */
	uint64_t waits_ns, counting_ns, exit_off_ns;
	uint64_t singles; /* exits that were taken one by one beside their counts */
	bool root;
	unsigned discovering, discovered; /* "discovering 214/1000"; equal: done */
};

struct snap_finding {
	const char *rule; /* id of the rule: "steal", "quota", "pin-overlap" … */
	uint8_t level; /* 1 notice, 2 warning, 3 alarm */
	int32_t vm, vcpu; /* indices, -1 none */
	struct value value;
	double threshold;
	int64_t since; /* ns CLOCK_MONOTONIC: first interval in which it held */
	const char *text, *next; /* the sentence; what to look at next */
};

struct snap_source {
	const char *name;
	uint8_t state; /* enum source_state */
	const char *why, *mend;
};

struct snapshot {
	uint64_t seq;
	int64_t time, dt; /* W and W − W_prev, ns; dt 0: no interval yet */
	int64_t since; /* where totals begin, as time */
	struct timespec wall;
	bool first_rates; /* one of the short first intervals */
	double delay_s; /* as configured; label only */
	struct snap_host host;
	const struct snap_vm *vms;
	const struct snap_vcpu *vcpus;
	const struct snap_exit *exits;
	const struct snap_symbol *symbols;
	const struct snap_code *code;
	const struct snap_waited *waited;
	const struct snap_slow *slow;
	const struct snap_slice *slices;
	const struct snap_pmc *pmcs;
	const struct snap_tsc_event *tsc_events;
	const struct snap_thread *threads;
	const struct snap_task *tasks;
	const struct snap_cpu *cpus;
	const struct snap_finding *findings; /* most pressing first */
	const struct snap_source *sources;
	size_t nvms, nvcpus, nexits, nsymbols, ncode, nwaited, nslow, nslices, npmcs, ntsc_events,
		nthreads, ntasks, ncpus, nfindings, nsources;
	unsigned open_kinds; /* KIND_BIT: what was collected over the whole interval */
	uint64_t slow_ns; /* exits that take longer are in .slow; 0: nobody looks for them */
	struct snap_sampling sampling;
	struct snap_stream stream;
	struct tally kinds[KIND_NR], kinds_total[KIND_NR]; /* the host's sums a kind */
	size_t bytes; /* memory that it holds */
};

struct snapshot *snapshot_ref(struct snapshot *s); /* any thread */
void snapshot_unref(struct snapshot *s); /* any thread; NULL is fine */

/*
 * What called the symbol, the most frequent one first: of the interval or, `total`, since start.
 * Those that did not call then are left out. Returns how many.
 */
unsigned snap_callers(const struct snap_symbol *x, bool total,
		      struct snap_caller out[SNAP_CALLERS]);

/*
 * Adds what called it in an earlier interval, by name; `into` has the totals of the later one. A
 * caller that finds no place is left out.
 */
void snap_callers_add(struct snap_symbol *into, const struct snap_symbol *from);

/* Is one of its VMs a guess of what /proc shows without root? Then their number is one. */
bool snapshot_any_guessed(const struct snapshot *s);
/* What is said of a source; NULL: nothing. */
const struct snap_source *snapshot_source(const struct snapshot *s, const char *name);
/*
 * Percent of its vCPUs' time, a part of %EXIT, in which a VM that has one waited for a CPU, which
 * steal says. At most: where nobody tells what of the exits was spent without a CPU it may be all
 * of the steal, for a host takes a CPU away behind an exit (docs/metrics.md).
 */
double snapshot_waited_in_exits(const struct snap_vm *vm);
/* Could nothing be looked for, as without a descriptor? Then that there are none says nothing. */
bool snapshot_vms_unknown(const struct snapshot *s);

/*
 * For those who make one (model, recordings, tests): all memory that a snapshot
 * points to comes from its arena and is freed with it.
 */
struct snapshot *snapshot_new(void); /* refcount 1; NULL: no memory */
/*
 * The same, for about so many bytes of rows and strings (snapshot_used() of one like it): one
 * piece of memory is had for less than several.
 */
struct snapshot *snapshot_new_for(size_t bytes);
size_t snapshot_used(const struct snapshot *s); /* bytes of rows and strings */
void *snapshot_alloc(struct snapshot *s, size_t n, size_t size); /* zeroed; NULL: no memory */
/* The same not zeroed, for tables of which the caller writes each row that it leaves in. */
void *snapshot_alloc_unset(struct snapshot *s, size_t n, size_t size);
const char *snapshot_str(struct snapshot *s,
			 const char *text); /* never NULL: "" when out of memory */
const char *snapshot_printf(struct snapshot *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
