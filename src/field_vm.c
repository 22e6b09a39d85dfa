// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fields of VMs and vCPUs. Most are the same figure at both levels and are defined once; where
 * the VM's is a sum or a mean over its vCPUs, its own sentence says so.
 */
#include "field_tables.h"

/* --- getters that both levels have --- */

static struct cell steal_cell(const struct snap_use *u)
{
	return (struct cell){.v = u->steal, .mark = u->own_quota ? 'q' : 0};
}

static struct cell quality_cell(uint8_t quality)
{
	if (quality & SNAP_QUALITY_GONE)
		return (struct cell){.text = "gone"};
	if (quality & SNAP_QUALITY_PROVISIONAL)
		return (struct cell){.text = "provisional"};
	return (struct cell){.text = quality & SNAP_QUALITY_GUESSED ? "guessed" : ""};
}

/* clang-format off */
#define GETTERS(p, type)						\
	GET_VALUE(p##_cpu, type, use.cpu)				\
	GET_VALUE(p##_guest, type, use.guest)				\
	GET_VALUE(p##_usr, type, use.usr)				\
	GET_VALUE(p##_sys, type, use.sys)				\
	GET_VALUE(p##_throt, type, use.throt)				\
	GET_VALUE(p##_wait, type, use.wait)				\
	GET_VALUE(p##_demand, type, use.demand)				\
	GET_VALUE(p##_csw, type, use.csw)				\
	GET_VALUE(p##_mig, type, use.mig)				\
	GET_VALUE(p##_majflt, type, use.majflt)				\
	GET_VALUE(p##_blk, type, use.blk)				\
	GET_VALUE(p##_exits, type, ex.rate)				\
	GET_VALUE(p##_exit, type, ex.pct)				\
	GET_VALUE(p##_exit_on, type, ex.on_pct)				\
	GET_VALUE(p##_exit_off, type, ex.off_pct)			\
	GET_VALUE(p##_p50, type, ex.p50)				\
	GET_VALUE(p##_p99, type, ex.p99)				\
	GET_VALUE(p##_max, type, ex.max)				\
	GET_TEXT(p##_top, type, ex.top)					\
	GET_VALUE(p##_top_pct, type, ex.top_pct)			\
	GET_TEXT(p##_open, type, ex.open)				\
	GET_VALUE(p##_open_ns, type, ex.open_ns)			\
	GET_COUNT(p##_lost, type, ex.lost)				\
	static struct cell p##_steal(const struct snapshot *s, const void *row, bool total) \
	{								\
		(void)s;						\
		(void)total;						\
		return steal_cell(&((const type *)row)->use);		\
	}								\
	static struct cell p##_quality(const struct snapshot *s, const void *row, bool total) \
	{								\
		(void)s;						\
		(void)total;						\
		return quality_cell(((const type *)row)->quality);	\
	}

GETTERS(vm, struct snap_vm)
GETTERS(vcpu, struct snap_vcpu)

#define H_GUEST "CPU time in guest mode: %CPU x guest ticks / (user + system ticks)"
#define H_SYS "CPU time in the host's kernel on its behalf: %CPU x system ticks / (user + system ticks)"
#define H_USR "CPU time in the VMM's user space: %CPU - %GUEST - %SYS"
#define H_THROT "time its own CPU quota held it back: 100 x throttled time of the cgroup that did so most / CPUs on which that had something to run / interval, not above 100 - %CPU; 0 for a vCPU that wanted no CPU"
#define H_WAIT "competition for the CPU: %STEAL - %THROT, not below 0"
#define H_DEMAND "what it would use on a free CPU: %CPU + %STEAL"
#define H_CSW "times scheduled in, a second; above 5 million it is not believed"
#define H_MIG "moves to another pCPU between two readings, a second"
#define H_MAJFLT "page faults that waited for a disk, a second"
#define H_BLK "time that waited for block I/O, of the interval"
#define H_EXITS "exits from guest mode a second; where the kernel fires no kvm_exit, the larger of accesses and returns to the VMM"
#define H_EXIT_ON "the part of %EXIT during which the vCPU's thread had a CPU: handling; only counting in the kernel (--events-by bpf) tells"
#define H_EXIT_OFF "the part of %EXIT during which the vCPU's thread had no CPU: it waited for one (steal), or slept in the kernel or the VMM"
#define H_P50 "median time from exit to entry, idle exits left out"
#define H_P99 "99% of the exits took no longer, idle exits left out"
#define H_MAX "the longest exit that ended in the interval, idle exits left out"
#define H_TOP "the reason that took most exit time, idle exits left out (where nothing is timed: most returns to the VMM)"
#define H_TOP_PCT "its share of the exit time that is not idle"
#define H_OPEN "the exit that is still open at the end of the interval"
#define H_OPEN_NS "how long the open exit has lasted"
#define H_LOST "events that the kernel dropped and that may have been of this row"
#define H_QUALITY "how sure it is: guessed (found without the rights to be sure), provisional (seen by events only), gone (ended in the interval), else empty"

/* CPU and exit columns, the same ids, titles and thresholds at both levels. */
#define USE_FIELDS(p, cpu_help, steal_help)				\
	{"cpu_pct", "%CPU", cpu_help, UNIT_PCT, 6, 0, 0, 0, p##_cpu},	\
	{"guest_pct", "%GUEST", H_GUEST, UNIT_PCT, 6, 0, 0, 0, p##_guest}, \
	{"usr_pct", "%USR", H_USR, UNIT_PCT, 5, 0, 0, 0, p##_usr},	\
	{"sys_pct", "%SYS", H_SYS, UNIT_PCT, 5, 0, 0, 0, p##_sys},	\
	{"steal_pct", "%STEAL", steal_help, UNIT_PCT, 6, 0, 5, 10, p##_steal}, \
	{"throt_pct", "%THROT", H_THROT, UNIT_PCT, 6, 0, 5, 10, p##_throt}, \
	{"wait_pct", "%WAIT", H_WAIT, UNIT_PCT, 6, 0, 5, 10, p##_wait},	\
	{"demand_pct", "%DEMAND", H_DEMAND, UNIT_PCT, 7, 0, 0, 0, p##_demand}, \
	{"csw_per_s", "CSW/s", H_CSW, UNIT_RATE, 6, 0, 0, 0, p##_csw},	\
	{"mig_per_s", "MIG/s", H_MIG, UNIT_RATE, 5, 0, 0, 0, p##_mig},	\
	{"majflt_per_s", "MAJFLT/s", H_MAJFLT, UNIT_RATE, 8, 0, 0, 0, p##_majflt}, \
	{"blk_pct", "%BLK", H_BLK, UNIT_PCT, 5, 0, 0, 0, p##_blk}
#define EXIT_FIELDS(p, pct_help)					\
	{"exits_per_s", "EXIT/s", H_EXITS, UNIT_RATE, 6, 0, 0, 0, p##_exits}, \
	{"exit_pct", "%EXIT", pct_help, UNIT_PCT, 5, 0, 20, 50, p##_exit}, \
	{"exit_on_pct", "%EXON", H_EXIT_ON, UNIT_PCT, 5, 0, 20, 50, p##_exit_on}, \
	{"exit_off_pct", "%EXOFF", H_EXIT_OFF, UNIT_PCT, 6, 0, 20, 50, p##_exit_off}, \
	{"p50_ns", "p50", H_P50, UNIT_NS, 6, 0, 0, 0, p##_p50},		\
	{"p99_ns", "p99", H_P99, UNIT_NS, 6, 0, 0, 0, p##_p99},		\
	{"max_ns", "MAX", H_MAX, UNIT_NS, 6, 0, 0, 0, p##_max},		\
	{"top_exit", "TOP EXIT", H_TOP, UNIT_TEXT, 18, FIELD_SORT_UP | FIELD_PROSE, 0, 0, p##_top}, \
	{"top_exit_pct", "%TOP", H_TOP_PCT, UNIT_PCT, 5, 0, 0, 0, p##_top_pct}, \
	{"open_exit", "IN EXIT", H_OPEN, UNIT_TEXT, 16, FIELD_SORT_UP | FIELD_PROSE, 0, 0, p##_open}, \
	{"open_ns", "OPEN", H_OPEN_NS, UNIT_NS, 6, 0, 1e9, 5e9, p##_open_ns}, \
	{"lost", "LOST", H_LOST, UNIT_COUNT, 6, 0, 1, 1, p##_lost},	\
	{"quality", "QUALITY", H_QUALITY, UNIT_TEXT, 11, FIELD_SORT_UP, 0, 0, p##_quality}

/* --- VM --- */

GET_TEXT(vm_name, struct snap_vm, name)
GET_TEXT(vm_id, struct snap_vm, vm_id)
GET_TEXT(vm_uuid, struct snap_vm, uuid)
GET_TEXT(vm_title, struct snap_vm, title)
GET_TEXT(vm_vmm, struct snap_vm, vmm)
GET_TEXT(vm_cgroup, struct snap_vm, cgroup)
GET_COUNT(vm_pid, struct snap_vm, pid)
GET_COUNT(vm_nvcpu, struct snap_vm, nvcpu)
GET_COUNT(vm_nthread, struct snap_vm, nthread)
GET_VALUE(vm_vcpu_pct, struct snap_vm, vcpu_pct)
GET_VALUE(vm_io_pct, struct snap_vm, io_pct)
GET_ID(vm_steal_vcpu, struct snap_vm, steal_max_vcpu)
GET_TEXT(vm_steal_source, struct snap_vm, steal_source)
GET_TEXT(vm_why, struct snap_vm, why_text)

static struct cell vm_slow(const struct snapshot *s, const void *row, bool total)
{
	const struct snap_slows *x = &((const struct snap_vm *)row)->slow;

	if (!s->slow_ns)
		return (struct cell){.v = value_na(WHY_NO_SLOW)};
	return (struct cell){.v = value_known((double)(total ? x->total : x->count))};
}

static struct cell vm_steal_max(const struct snapshot *s, const void *row, bool total)
{
	const struct snap_vm *vm = row;

	(void)s;
	(void)total;
	return (struct cell){.v = vm->steal_max, .mark = vm->use.own_quota ? 'q' : 0};
}

static struct cell vm_quota(const struct snapshot *s, const void *row, bool total)
{
	const struct snap_vm *vm = row;

	(void)s;
	(void)total;
	if (!vm->quota_us || !vm->period_us)
		return (struct cell){.v = value_pending()};
	return (struct cell){.v = value_known(100.0 * (double)vm->quota_us / (double)vm->period_us)};
}

/* --- samples, the same at both levels --- */
#define H_SAMPLES "samples of where its threads were; idle CPUs are none"
#define H_HK "share of the samples in the host's kernel"
#define H_HU "share of the samples in the VMM's user space"
#define H_GK "share of the samples in the guest's kernel"
#define H_GU "share of the samples in the guest's user space"
#define H_HOT "the symbol with most samples: k: guest kernel, h: host kernel, u: guest user, v: the VMM's user space"
#define H_HOT_PCT "its share of all samples"

#define SYMBOL_GETTERS(p, type)						\
	GET_VALUE(p##_samples, type, sym.n)				\
	GET_VALUE(p##_hk, type, sym.domain[DOMAIN_HOST_KERNEL])		\
	GET_VALUE(p##_hu, type, sym.domain[DOMAIN_HOST_USER])		\
	GET_VALUE(p##_gk, type, sym.domain[DOMAIN_GUEST_KERNEL])	\
	GET_VALUE(p##_gu, type, sym.domain[DOMAIN_GUEST_USER])		\
	GET_TEXT(p##_hot, type, sym.hot)				\
	GET_VALUE(p##_hot_pct, type, sym.hot_pct)

SYMBOL_GETTERS(vm, struct snap_vm)
SYMBOL_GETTERS(vcpu, struct snap_vcpu)

#define SYMBOL_FIELDS(p)						\
	{"samples", "SAMPLES", H_SAMPLES, UNIT_COUNT, 7, 0, 0, 0, p##_samples}, \
	{"host_kernel_pct", "%HOSTK", H_HK, UNIT_PCT, 6, 0, 0, 0, p##_hk}, \
	{"host_user_pct", "%HOSTU", H_HU, UNIT_PCT, 6, 0, 0, 0, p##_hu}, \
	{"guest_kernel_pct", "%GUESTK", H_GK, UNIT_PCT, 7, 0, 0, 0, p##_gk}, \
	{"guest_user_pct", "%GUESTU", H_GU, UNIT_PCT, 7, 0, 0, 0, p##_gu}, \
	{"hot_symbol", "HOT SYMBOL", H_HOT, UNIT_TEXT, 18,		\
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, p##_hot}, \
	{"hot_symbol_pct", "%HOT", H_HOT_PCT, UNIT_PCT, 5, 0, 0, 0, p##_hot_pct}

/* --- waiting, the same at both levels --- */
#define H_WAITED_VM "time that its vCPUs waited, by events of the scheduler while somebody asks: 100 x time / interval, mean over the vCPUs; close to %STEAL"
#define H_WAITED_VCPU "time that it waited, by events of the scheduler while somebody asks: 100 x time / interval; close to %STEAL"
#define H_WAKEUPS "wake-ups after which it ran, a second"
#define H_WAKE_P50 "median time from wake-up to running"
#define H_WAKE_P99 "99% of the wake-ups were running after no longer"

#define WAIT_GETTERS(p, type)						\
	GET_VALUE(p##_waited, type, waits.pct)				\
	GET_VALUE(p##_wakeups, type, waits.wakeups)			\
	GET_VALUE(p##_wake_p50, type, waits.wake_p50)			\
	GET_VALUE(p##_wake_p99, type, waits.wake_p99)

WAIT_GETTERS(vm, struct snap_vm)
WAIT_GETTERS(vcpu, struct snap_vcpu)

#define WAIT_FIELDS(p, waited_help)					\
	{"waited_pct", "%WAITED", waited_help, UNIT_PCT, 7, 0, 0, 0, p##_waited}, \
	{"wakeups_per_s", "WAKE/s", H_WAKEUPS, UNIT_RATE, 6, 0, 0, 0, p##_wakeups}, \
	{"wake_p50_ns", "WAKEp50", H_WAKE_P50, UNIT_NS, 7, 0, 0, 0, p##_wake_p50}, \
	{"wake_p99_ns", "WAKEp99", H_WAKE_P99, UNIT_NS, 7, 0, 0, 0, p##_wake_p99}

/* --- the guest's PMU --- */
#define H_PMU_MSR "exits by reads and writes of the guest's PMU registers, a second, while somebody asks"
#define H_PMU_PCT "time of these exits: 100 x time / interval; of a VM the mean over its vCPUs"

#define PMU_GETTERS(p, type)						\
	GET_VALUE(p##_pmu_accesses, type, pmu.accesses)			\
	GET_VALUE(p##_pmu_pct, type, pmu.pct)

PMU_GETTERS(vm, struct snap_vm)
PMU_GETTERS(vcpu, struct snap_vcpu)

#define PMU_FIELDS(p)							\
	{"pmu_msr_per_s", "PMU/s", H_PMU_MSR, UNIT_RATE, 6, 0, 0, 0, p##_pmu_accesses}, \
	{"pmu_msr_pct", "%PMU", H_PMU_PCT, UNIT_PCT, 5, 0, 5, 10, p##_pmu_pct}

static const struct field vm_fields[] = {
	{"name", "VM", "name of the VM; where none is found comm:pid", UNIT_TEXT, 12,
	 FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vm_name},
	{"vm_id", "VM ID", "its UUID, else process id and start time: the same after a restart of kvmtop",
	 UNIT_TEXT, 20, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vm_id},
	{"uuid", "UUID", "the UUID on the VMM's command line or in libvirt's XML", UNIT_TEXT, 36,
	 FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vm_uuid},
	{"title", "TITLE", "libvirt's title or nova's name", UNIT_TEXT, 20,
	 FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vm_title},
	{"pid", "PID", "process id of the VMM", UNIT_NUMBER, 7, FIELD_SORT_UP, 0, 0, vm_pid},
	{"vmm", "VMM", "the VMM that runs it: qemu, firecracker, cloud-hypervisor, crosvm, kvmtool, else the process's name",
	 UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vm_vmm},
	{"nvcpu", "vCPU", "number of vCPUs", UNIT_NUMBER, 4, 0, 0, 0, vm_nvcpu},
	{"nthread", "THREADS", "number of threads that work for the VM, kernel helpers too", UNIT_NUMBER, 7, 0,
	 0, 0, vm_nthread},
	USE_FIELDS(vm,
		   "CPU time of all its threads and kernel helpers, in percent of one CPU: 100 x run time / interval",
		   "time its vCPUs were ready to run and did not: 100 x run delay (with the wait in progress) / interval, mean over the vCPUs; q: at least half of it is its own CPU quota, or that was used up in half of its periods or more, all on one CPU"),
	{"vcpu_pct", "%vCPU", "the vCPU threads' part of %CPU", UNIT_PCT, 6, 0, 0, 0, vm_vcpu_pct},
	{"io_pct", "%IO", "the other threads' and kernel helpers' part of %CPU", UNIT_PCT, 6, 0, 0, 0, vm_io_pct},
	{"steal_max_pct", "MAX@v", "%STEAL of its worst vCPU", UNIT_PCT, 7, 0, 5, 10, vm_steal_max},
	{"steal_max_vcpu", "@v", "the number of that vCPU", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, vm_steal_vcpu},
	{"steal_source", "STEAL SRC",
	 "where %STEAL comes from: gstime (what the guest itself is told) or rundelay (the host's scheduler)",
	 UNIT_TEXT, 9, FIELD_SORT_UP, 0, 0, vm_steal_source},
	{"quota_pct", "QUOTA", "its tightest CPU quota in percent of one CPU: 100 x quota / period", UNIT_PCT, 6, 0,
	 0, 0, vm_quota},
	{"slow_exits", "SLOW", "single exits that took longer than --slow says, idle ones left out; a line each in table slow", UNIT_COUNT, 5,
	 FIELD_TOTAL, 0, 0, vm_slow},
	{"why", "WHY", "the largest of steal, quota, exits and symbol against its threshold; empty: none is over it",
	 UNIT_TEXT, 14, FIELD_SORT_UP | FIELD_PROSE, 0, 0, vm_why},
	EXIT_FIELDS(vm,
		    "100 x time from exit to entry, idle exits left out / (interval x vCPUs); it contains time off the CPU and may overlap %STEAL"),
	SYMBOL_FIELDS(vm),
	WAIT_FIELDS(vm, H_WAITED_VM),
	PMU_FIELDS(vm),
	{"cgroup", "CGROUP", "its control group", UNIT_TEXT, 24, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vm_cgroup},
};

const struct field_list field_list_vm = FIELD_LIST("vm", vm_fields, struct snap_vm);

/* --- vCPU --- */

GET_ID(vcpu_kvm_id, struct snap_vcpu, kvm_id)
GET_ID(vcpu_cpu_now, struct snap_vcpu, cpu)
GET_TEXT(vcpu_comm, struct snap_vcpu, comm)
GET_TEXT(vcpu_pin, struct snap_vcpu, pin)
GET_TEXT(vcpu_node, struct snap_vcpu, node)
GET_TEXT(vcpu_tsc_offset, struct snap_vcpu, tsc.offset)
GET_VALUE(vcpu_tsc_offset_s, struct snap_vcpu, tsc.offset_s)
GET_VALUE(vcpu_tsc_scale, struct snap_vcpu, tsc.scale)
GET_VALUE(vcpu_tsc_apart, struct snap_vcpu, tsc.apart_ns)
GET_VALUE(vcpu_tsc_changes, struct snap_vcpu, tsc.changes)
GET_VALUE(vcpu_pmu_total, struct snap_vcpu, pmu.total)
GET_VALUE(vcpu_pmu_refused, struct snap_vcpu, pmu.refused)
GET_TEXT(vcpu_pmu, struct snap_vcpu, pmu.what)
GET_TEXT(vcpu_pmu_source, struct snap_vcpu, pmu.source)
GET_TEXT(vcpu_pmu_global, struct snap_vcpu, pmu.global)
/* clang-format on */

static struct cell vcpu_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const struct snap_vcpu *)row)->vm)};
}

static struct cell vcpu_index(const struct snapshot *s, const void *row, bool total)
{
	const struct snap_vcpu *v = row;

	(void)s;
	(void)total;
	return (struct cell){.v = value_known(v->index), .mark = v->index_guessed ? '~' : 0};
}

static struct cell vcpu_tid(const struct snapshot *s, const void *row, bool total)
{
	pid_t tid = ((const struct snap_vcpu *)row)->tid;

	(void)s;
	(void)total;
	return (struct cell){.v = tid > 0 ? value_known(tid) : value_pending()};
}

static struct cell vcpu_state(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = field_state_text(((const struct snap_vcpu *)row)->state)};
}

/* clang-format off */
static const struct field vcpu_fields[] = {
	{"vm", "VM", "name of its VM", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vcpu_vm},
	{"vcpu", "vCPU", "the VMM's number of the vCPU; ~: guessed from the order of KVM's ids", UNIT_NUMBER, 4,
	 FIELD_SORT_UP, 0, 0, vcpu_index},
	{"kvm_id", "KVM ID", "KVM's own id of the vCPU; on x86 the APIC id, with gaps", UNIT_NUMBER, 6,
	 FIELD_SORT_UP, 0, 0, vcpu_kvm_id},
	{"tid", "TID", "the thread that runs it now", UNIT_NUMBER, 7, FIELD_SORT_UP, 0, 0, vcpu_tid},
	{"comm", "THREAD", "that thread's name", UNIT_TEXT, 15, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, vcpu_comm},
	{"state", "S", "that thread's state: R runs or wants to, S sleeps, D waits for a disk, T stopped", UNIT_TEXT,
	 1, FIELD_SORT_UP, 0, 0, vcpu_state},
	{"cpu", "CPU", "the pCPU that it ran on last", UNIT_NUMBER, 3, FIELD_SORT_UP, 0, 0, vcpu_cpu_now},
	{"pin", "PIN", "the pCPUs that it may run on", UNIT_TEXT, 6, FIELD_SORT_UP, 0, 0, vcpu_pin},
	{"numa_node", "NODE", "its NUMA node; 1!0: it runs on node 1, most of its memory is on node 0", UNIT_TEXT, 4,
	 FIELD_SORT_UP, 0, 0, vcpu_node},
	USE_FIELDS(vcpu, "CPU time of its thread, in percent of one CPU: 100 x run time / interval",
		   "time it was ready to run and did not: 100 x run delay (with the wait in progress) / interval; q: at least half of it is its own CPU quota, or that was used up in half of its periods or more, all on one CPU"),
	EXIT_FIELDS(vcpu,
		    "100 x time from exit to entry, idle exits left out / interval; it contains time off the CPU and may overlap %STEAL"),
	SYMBOL_FIELDS(vcpu),
	{"tsc_offset", "TSC OFFSET", "its TSC offset in cycles, signed; as text, for it has more digits than a number of JSON is sure of",
	 UNIT_TEXT, 20, FIELD_SORT_UP, 0, 0, vcpu_tsc_offset},
	{"tsc_offset_s", "OFFSET s", "the same as time, in seconds of its own TSC", UNIT_RATIO, 12, 0, 0, 0, vcpu_tsc_offset_s},
	{"tsc_scale", "SCALE", "cycles of its TSC for one of the host's; 1: not scaled", UNIT_RATIO, 8, 0, 0, 0, vcpu_tsc_scale},
	{"tsc_apart_ns", "APART", "how far its TSC is from that of the VM's first vCPU; above 1 us a guest may take its TSC for unstable",
	 UNIT_NS, 8, 0, 1000, 1e6, vcpu_tsc_apart},
	{"tsc_changes", "CHANGES", "changes of the offset since kvmtop started; read in turn, some vCPUs an interval", UNIT_COUNT, 7, 0, 0, 0,
	 vcpu_tsc_changes},
	WAIT_FIELDS(vcpu, H_WAITED_VCPU),
	{"pmu", "PMU", "the PMU that its guest has, while somebody asks: version, number and width of the counters; off; inferred: from what it wrote",
	 UNIT_TEXT, 24, FIELD_SORT_UP | FIELD_PROSE, 0, 0, vcpu_pmu},
	{"pmu_global", "PMU GLOBAL", "its PMU's global registers as the guest has them: ctrl, one bit a counter; status, one bit an overflow", UNIT_TEXT, 22,
	 FIELD_SORT_UP | FIELD_PROSE, 0, 0, vcpu_pmu_global},
	{"pmu_source", "PMU SRC", "where that comes from: debugfs (a kernel with our patches) or inferred (the guest's writes since kvmtop looks)", UNIT_TEXT, 8,
	 FIELD_SORT_UP, 0, 0, vcpu_pmu_source},
	PMU_FIELDS(vcpu),
	{"pmu_msrs", "PMU MSRS", "exits by its PMU's registers since kvmtop looks", UNIT_COUNT, 8, 0, 0, 0, vcpu_pmu_total},
	{"pmu_refused", "REFUSED", "of them: refused (#GP), for the VM has no such register", UNIT_COUNT, 7, 0, 0, 0, vcpu_pmu_refused},
};
/* clang-format on */

const struct field_list field_list_vcpu = FIELD_LIST("vcpu", vcpu_fields, struct snap_vcpu);
