// SPDX-License-Identifier: GPL-2.0-only
/* Fields of the host, its pCPUs, threads and tasks beside the vCPUs, and of findings. */
#include "field_tables.h"

#define H struct snap_host

/* clang-format off */
GET_TEXT(host_node, H, node)
GET_TEXT(host_kernel, H, kernel)
GET_SOME(host_ncpu, H, ncpu)
GET_VALUE(host_usr, H, usr)
GET_VALUE(host_sys, H, sys)
GET_VALUE(host_irq, H, irq)
GET_VALUE(host_wa, H, wa)
GET_VALUE(host_st, H, st)
GET_VALUE(host_guest, H, guest)
GET_VALUE(host_idle, H, idle)
GET_VALUE(host_steal, H, steal)
GET_VALUE(host_overcommit, H, overcommit)
GET_VALUE(host_exits, H, exits_rate)
GET_VALUE(host_exit, H, exit_pct)
GET_VALUE(host_exit_on, H, ex.on_pct)
GET_VALUE(host_exit_off, H, ex.off_pct)
GET_VALUE(host_other, H, other_cpu)
GET_VALUE(host_other_sys, H, other_sys)
GET_TEXT(host_other_why, H, other_why)
GET_VALUE(host_self, H, self_cpu)
GET_VALUE(host_self_guest, H, self_guest)
GET_VALUE(host_load, H, load1)
GET_SOME(host_mem, H, mem_total_kb)
GET_SOME(host_avail, H, mem_avail_kb)
GET_COUNT(host_lost, H, lost)
GET_COUNT(host_lost_total, H, lost_total)
GET_COUNT(host_late, H, late)
GET_COUNT(host_unmatched, H, unmatched)
GET_VALUE(host_samples, H, sym.n)
GET_VALUE(host_hk, H, sym.domain[DOMAIN_HOST_KERNEL])
GET_VALUE(host_hu, H, sym.domain[DOMAIN_HOST_USER])
GET_VALUE(host_gk, H, sym.domain[DOMAIN_GUEST_KERNEL])
GET_VALUE(host_gu, H, sym.domain[DOMAIN_GUEST_USER])
GET_VALUE(host_other_samples, H, other_sym.n)
GET_TEXT(host_hot, H, sym.hot)

static struct cell host_events_by(const struct snapshot *s, const void *row, bool total)
{
	static const char *const by[] = {
		[EVENTS_BY_NONE] = "none", [EVENTS_BY_PERF] = "perf", [EVENTS_BY_BPF] = "bpf"};
	uint8_t which = ((const struct snap_host *)row)->events_by;

	(void)s;
	(void)total;
	return (struct cell){.text = by[which <= EVENTS_BY_BPF ? which : EVENTS_BY_NONE]};
}
GET_VALUE(host_hot_pct, H, sym.hot_pct)
/* clang-format on */

static struct cell known_number(const struct snapshot *s, unsigned n)
{
	bool none = snapshot_vms_unknown(s);

	return (struct cell){.v = none ? value_na(WHY_NO_LOOK) : value_known(n)};
}

static struct cell host_nvm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return known_number(s, ((const H *)row)->nvm);
}

static struct cell host_nvcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return known_number(s, ((const H *)row)->nvcpu);
}

static struct cell host_sampling(const struct snapshot *s, const void *row, bool total)
{
	(void)row;
	(void)total;
	return (struct cell){.text = s->sampling.event};
}

GET_TEXT(host_pmu_why, struct snap_host, pmu_why)

static struct value sampling_value(const struct snapshot *s, double v)
{
	return s->sampling.open ? value_known(v) : value_na(WHY_NOT_OPEN);
}

static struct cell host_sampling_hz(const struct snapshot *s, const void *row, bool total)
{
	(void)row;
	(void)total;
	return (struct cell){.v = sampling_value(s, s->sampling.hz)};
}

static struct cell host_sampling_idle(const struct snapshot *s, const void *row, bool total)
{
	(void)row;
	(void)total;
	return (struct cell){.v = s->sampling.idle};
}

static struct cell host_code_lost(const struct snapshot *s, const void *row, bool total)
{
	const H *h = row;

	(void)s;
	return (struct cell){.v = value_known((double)(total ? h->code_lost_total : h->code_lost))};
}

static struct cell host_sampling_lost(const struct snapshot *s, const void *row, bool total)
{
	(void)row;
	(void)total;
	return (struct cell){.v = sampling_value(s, (double)s->sampling.lost)};
}

/* clang-format off */

static const struct field host_fields[] = {
	{"node", "NODE", "the host's name", UNIT_TEXT, 12, FIELD_SORT_UP, 0, 0, host_node},
	{"kernel", "KERNEL", "the kernel's release", UNIT_TEXT, 16, FIELD_SORT_UP, 0, 0, host_kernel},
	{"ncpu", "CPU", "CPUs that are online", UNIT_NUMBER, 4, 0, 0, 0, host_ncpu},
	{"nvm", "VM", "number of VMs", UNIT_NUMBER, 4, 0, 0, 0, host_nvm},
	{"nvcpu", "vCPU", "number of vCPUs", UNIT_NUMBER, 5, 0, 0, 0, host_nvcpu},
	{"overcommit", "vCPU:CPU", "vCPUs for each online CPU", UNIT_RATIO, 8, 0, 0, 0, host_overcommit},
	{"usr_pct", "%USR", "user time without guest time, of all CPUs", UNIT_PCT, 5, 0, 0, 0, host_usr},
	{"sys_pct", "%SYS", "kernel time, of all CPUs", UNIT_PCT, 5, 0, 0, 0, host_sys},
	{"irq_pct", "%IRQ", "hard and soft interrupts, of all CPUs", UNIT_PCT, 5, 0, 0, 0, host_irq},
	{"wa_pct", "%WA", "idle with block I/O outstanding, of all CPUs", UNIT_PCT, 5, 0, 0, 0, host_wa},
	{"st_pct", "%ST", "what the host's own hypervisor took from it, of all CPUs", UNIT_PCT, 5, 0, 5, 10, host_st},
	{"guest_pct", "%GUEST", "guest time, of all CPUs", UNIT_PCT, 6, 0, 0, 0, host_guest},
	{"idle_pct", "%IDLE", "idle, of all CPUs; the seven shares add up to 100", UNIT_PCT, 5, 0, 0, 0, host_idle},
	{"steal_pct", "%STEAL", "mean of all vCPUs' %STEAL", UNIT_PCT, 6, 0, 5, 10, host_steal},
	{"exits_per_s", "EXIT/s", "sum of all VMs' EXIT/s", UNIT_RATE, 6, 0, 0, 0, host_exits},
	{"exit_pct", "%EXIT", "mean of all vCPUs' %EXIT", UNIT_PCT, 5, 0, 20, 50, host_exit},
	{"exit_on_pct", "%EXON", "the part of %EXIT during which the vCPUs' threads had a CPU", UNIT_PCT, 5, 0, 20, 50, host_exit_on},
	{"exit_off_pct", "%EXOFF", "the part of %EXIT during which they had none", UNIT_PCT, 6, 0, 20, 50, host_exit_off},
	{"other_cpu_pct", "%OTHER", "CPU time of everything that is no VM, in percent of one CPU", UNIT_PCT, 6, 0, 0, 0,
	 host_other},
	{"other_sys_pct", "%OTHERSYS", "its part in the kernel", UNIT_PCT, 9, 0, 0, 0, host_other_sys},
	{"other_why", "OTHER", "the busiest task of it", UNIT_TEXT, 16, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0,
	 host_other_why},
	{"self_cpu_pct", "%SELF", "kvmtop's own CPU time, of all CPUs", UNIT_PCT, 5, 0, 0, 0, host_self},
	{"self_guest_pct", "%SELFGUEST", "what its open events are estimated to cost the guests, of all CPUs", UNIT_PCT,
	 10, 0, 0, 0, host_self_guest},
	{"load1", "LOAD1", "load average of a minute", UNIT_RATIO, 6, 0, 0, 0, host_load},
	{"mem_total_kb", "MEM", "memory", UNIT_KB, 8, 0, 0, 0, host_mem},
	{"mem_avail_kb", "AVAIL", "memory that can be had without swapping", UNIT_KB, 8, 0, 0, 0, host_avail},
	{"lost", "LOST", "events that were dropped in the interval, by the kernel or for lack of memory", UNIT_COUNT, 6, 0, 1, 1, host_lost},
	{"lost_total", "LOSTSUM", "events that were dropped since the start, by the kernel or for lack of memory", UNIT_COUNT, 7, 0, 0, 0,
	 host_lost_total},
	{"code_lost", "LOSTCODE", "single exits that were dropped, which the table by guest code (exit-code) then lacks; the exits' own counts have them",
	 UNIT_COUNT, 8, FIELD_TOTAL, 1, 1, host_code_lost},
	{"late", "LATE", "events that came after their interval was closed", UNIT_COUNT, 6, 0, 0, 0, host_late},
	{"unmatched", "UNMATCHED", "ends of which no begin was seen", UNIT_COUNT, 9, 0, 0, 0, host_unmatched},
	{"samples", "SAMPLES", "samples of where the threads of VMs were", UNIT_COUNT, 7, 0, 0, 0, host_samples},
	{"host_kernel_pct", "%HOSTK", "share of the samples in the host's kernel", UNIT_PCT, 6, 0, 0, 0, host_hk},
	{"host_user_pct", "%HOSTU", "share of the samples in the VMMs' user space", UNIT_PCT, 6, 0, 0, 0, host_hu},
	{"guest_kernel_pct", "%GUESTK", "share of the samples in guests' kernels", UNIT_PCT, 7, 0, 0, 0, host_gk},
	{"guest_user_pct", "%GUESTU", "share of the samples in guests' user space", UNIT_PCT, 7, 0, 0, 0, host_gu},
	{"hot_symbol", "HOT SYMBOL", "the symbol with most samples: k: guest kernel, h: host kernel, u: guest user, v: a VMM's user space",
	 UNIT_TEXT, 18, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, host_hot},
	{"hot_symbol_pct", "%HOT", "its share of all samples", UNIT_PCT, 5, 0, 0, 0, host_hot_pct},
	{"other_samples", "OTHERSMP", "samples of what is no VM, idle CPUs left out", UNIT_COUNT, 8, 0, 0, 0, host_other_samples},
	{"sampling", "SAMPLING", "the event that takes the samples: cpu-clock, cycles; empty: none", UNIT_TEXT, 9, FIELD_SORT_UP, 0,
	 0, host_sampling},
	{"sampling_hz", "HZ", "samples that are taken a second on each CPU", UNIT_COUNT, 5, 0, 0, 0, host_sampling_hz},
	{"sampling_idle_pct", "%IDLESMP", "share of samples that found the CPU idle", UNIT_PCT, 8, 0, 0, 0, host_sampling_idle},
	{"sampling_lost", "LOSTSMP", "samples that the kernel dropped in the interval", UNIT_COUNT, 7, 0, 1, 1, host_sampling_lost},
	{"pmu_why", "PMU", "why a guest's counters may lie on this host, while somebody asks for guests' PMUs", UNIT_TEXT, 24,
	 FIELD_SORT_UP | FIELD_PROSE, 0, 0, host_pmu_why},
	{"events_by", "EVENTSBY", "what counts the events: bpf: the kernel does; perf: each is taken through perf's rings; none: nothing",
	 UNIT_TEXT, 8, FIELD_SORT_UP, 0, 0, host_events_by},
};

const struct field_list field_list_host = FIELD_LIST("host", host_fields, struct snap_host);

/* --- pCPUs --- */
#define C struct snap_cpu

GET_ID(cpu_cpu, C, cpu)
GET_ID(cpu_node, C, node)
GET_ID(cpu_core, C, core)
GET_ID(cpu_package, C, package)
GET_ID(cpu_sibling, C, sibling)
GET_VALUE(cpu_usr, C, usr)
GET_VALUE(cpu_sys, C, sys)
GET_VALUE(cpu_irq, C, irq)
GET_VALUE(cpu_wa, C, wa)
GET_VALUE(cpu_st, C, st)
GET_VALUE(cpu_guest, C, guest)
GET_VALUE(cpu_idle, C, idle)
GET_VALUE(cpu_wait, C, wait)
GET_COUNT(cpu_nvcpu, C, nvcpu_seen)
GET_TEXT(cpu_vcpus, C, vcpus)

/* What nobody has asked yet is not 0. */
static struct cell cpu_npinned(const struct snapshot *s, const void *row, bool total)
{
	const C *c = row;

	(void)s;
	(void)total;
	if (c->pins == SNAP_PINS_NONE)
		return (struct cell){.v = value_pending()};
	return (struct cell){.v = c->pins == SNAP_PINS_ALL ? value_known(c->npinned)
							   : value_partial(c->npinned, WHY_NONE)};
}

static struct cell cpu_online(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = ((const C *)row)->online ? "online" : "offline"};
}

static const struct field cpu_fields[] = {
	{"cpu", "CPU", "number of the pCPU", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, cpu_cpu},
	{"online", "STATE", "online or offline", UNIT_TEXT, 7, FIELD_SORT_UP, 0, 0, cpu_online},
	{"numa_node", "NODE", "its NUMA node", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, cpu_node},
	{"core", "CORE", "its core", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, cpu_core},
	{"package", "PKG", "its socket", UNIT_NUMBER, 3, FIELD_SORT_UP, 0, 0, cpu_package},
	{"sibling", "SMT", "the other thread of its core", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, cpu_sibling},
	{"guest_pct", "%GUEST", "time in guest mode, of this CPU", UNIT_PCT, 6, 0, 0, 0, cpu_guest},
	{"usr_pct", "%USR", "user time without guest time, of this CPU", UNIT_PCT, 5, 0, 0, 0, cpu_usr},
	{"sys_pct", "%SYS", "kernel time, of this CPU", UNIT_PCT, 5, 0, 0, 0, cpu_sys},
	{"irq_pct", "%IRQ", "hard and soft interrupts, of this CPU", UNIT_PCT, 5, 0, 10, 25, cpu_irq},
	{"wa_pct", "%WA", "idle with block I/O outstanding, of this CPU", UNIT_PCT, 5, 0, 0, 0, cpu_wa},
	{"st_pct", "%ST", "what the host's own hypervisor took from it, of this CPU", UNIT_PCT, 5, 0, 5, 10, cpu_st},
	{"idle_pct", "%IDLE", "idle, of this CPU", UNIT_PCT, 5, 0, 0, 0, cpu_idle},
	{"wait_pct", "%WAIT", "time that tasks waited in its run queue: 100 x their sum / interval, so it may pass 100",
	 UNIT_PCT, 6, 0, 50, 100, cpu_wait},
	{"nvcpu", "vCPU", "vCPUs that ran here last", UNIT_NUMBER, 4, 0, 0, 0, cpu_nvcpu},
	{"npinned", "PINNED", "vCPUs that may run here only", UNIT_NUMBER, 6, 0, 2, 0, cpu_npinned},
	{"vcpus", "vCPUS", "which vCPUs ran here last: VM/vCPU", UNIT_TEXT, 24,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED | FIELD_WORDS, 0, 0, cpu_vcpus},
};

const struct field_list field_list_cpu = FIELD_LIST("cpu", cpu_fields, struct snap_cpu);

/* --- the other threads of a VMM, and its kernel helpers --- */
#define T struct snap_thread

GET_COUNT(thread_tid, T, tid)
GET_TEXT(thread_comm, T, comm)
GET_ID(thread_cpu_now, T, cpu)
GET_VALUE(thread_cpu, T, use.cpu)
GET_VALUE(thread_usr, T, use.usr)
GET_VALUE(thread_sys, T, use.sys)
GET_VALUE(thread_wait, T, use.wait)
GET_VALUE(thread_csw, T, use.csw)
GET_VALUE(thread_mig, T, use.mig)
GET_VALUE(thread_majflt, T, use.majflt)
GET_VALUE(thread_blk, T, use.blk)

static struct cell thread_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const T *)row)->vm)};
}

static struct cell thread_role(const struct snapshot *s, const void *row, bool total)
{
	static const char *const names[] = {"vcpu", "vmm", "helper"}; /* enum inv_role */
	uint8_t role = ((const T *)row)->role;

	(void)s;
	(void)total;
	return (struct cell){.text = role < 3 ? names[role] : ""};
}

static struct cell thread_state(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = field_state_text(((const T *)row)->state)};
}

static const struct field thread_fields[] = {
	{"vm", "VM", "name of the VM", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, thread_vm},
	{"tid", "TID", "the thread", UNIT_NUMBER, 7, FIELD_SORT_UP, 0, 0, thread_tid},
	{"comm", "THREAD", "its name", UNIT_TEXT, 15, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, thread_comm},
	{"role", "ROLE", "vmm: a thread of the VMM's process; helper: a kernel thread that works for the VM", UNIT_TEXT,
	 6, FIELD_SORT_UP, 0, 0, thread_role},
	{"state", "S", "its state: R runs or wants to, S sleeps, D waits for a disk, T stopped", UNIT_TEXT, 1,
	 FIELD_SORT_UP, 0, 0, thread_state},
	{"cpu", "CPU", "the pCPU that it ran on last", UNIT_NUMBER, 3, FIELD_SORT_UP, 0, 0, thread_cpu_now},
	{"cpu_pct", "%CPU", "its CPU time, in percent of one CPU: 100 x run time / interval", UNIT_PCT, 5, 0, 0, 0,
	 thread_cpu},
	{"usr_pct", "%USR", "its part in user space", UNIT_PCT, 5, 0, 0, 0, thread_usr},
	{"sys_pct", "%SYS", "its part in the kernel", UNIT_PCT, 5, 0, 0, 0, thread_sys},
	{"wait_pct", "%WAIT", "time it was ready to run and did not, of the interval", UNIT_PCT, 5, 0, 5, 10,
	 thread_wait},
	{"csw_per_s", "CSW/s", "times scheduled in, a second; above 5 million it is not believed", UNIT_RATE, 6, 0, 0,
	 0, thread_csw},
	{"mig_per_s", "MIG/s", "moves to another pCPU between two readings, a second", UNIT_RATE, 5, 0, 0, 0,
	 thread_mig},
	{"majflt_per_s", "MAJFLT/s", "page faults that waited for a disk, a second", UNIT_RATE, 8, 0, 0, 0,
	 thread_majflt},
	{"blk_pct", "%BLK", "time that waited for block I/O, of the interval", UNIT_PCT, 5, 0, 0, 0, thread_blk},
};

const struct field_list field_list_thread = FIELD_LIST("thread", thread_fields, struct snap_thread);

/* --- tasks that belong to no VM --- */
#define K struct snap_task

GET_COUNT(task_pid, K, pid)
GET_TEXT(task_comm, K, comm)
GET_VALUE(task_cpu, K, cpu)

static struct cell task_state(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = field_state_text(((const K *)row)->state)};
}

static const struct field task_fields[] = {
	{"pid", "PID", "its process id", UNIT_NUMBER, 7, FIELD_SORT_UP, 0, 0, task_pid},
	{"comm", "COMMAND", "its name", UNIT_TEXT, 16, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, task_comm},
	{"state", "S", "its state: R runs or wants to, S sleeps, D waits for a disk, T stopped", UNIT_TEXT, 1,
	 FIELD_SORT_UP, 0, 0, task_state},
	{"cpu_pct", "%CPU", "its CPU time, in percent of one CPU", UNIT_PCT, 6, 0, 0, 0, task_cpu},
};

const struct field_list field_list_task = FIELD_LIST("task", task_fields, struct snap_task);

/* --- findings --- */
#define F struct snap_finding

GET_TEXT(finding_rule, F, rule)
GET_TEXT(finding_text, F, text)
GET_TEXT(finding_next, F, next)
GET_VALUE(finding_value, F, value)
GET_COUNT(finding_threshold, F, threshold)

static struct cell finding_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const F *)row)->vm)};
}

static struct cell finding_vcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.v = field_vcpu_number(s, ((const F *)row)->vcpu)};
}

static struct cell finding_level(const struct snapshot *s, const void *row, bool total)
{
	static const char *const names[] = {"", "notice", "warning", "alarm"};
	uint8_t level = ((const F *)row)->level;

	(void)s;
	(void)total;
	return (struct cell){.text = level < 4 ? names[level] : ""};
}

static struct cell finding_for(const struct snapshot *s, const void *row, bool total)
{
	int64_t ns = s->time - ((const F *)row)->since;

	(void)total;
	return (struct cell){.v = value_known(ns > 0 ? (double)ns : 0)};
}

static const struct field finding_fields[] = {
	{"rule", "RULE", "the rule that holds: quota, steal, open-exit, exits, lost, code-lost, unwatched, pin-overlap or smt-siblings", UNIT_TEXT, 14, FIELD_SORT_UP, 0, 0, finding_rule},
	{"level", "LEVEL", "notice, warning or alarm", UNIT_TEXT, 7, FIELD_SORT_UP, 0, 0, finding_level},
	{"vm", "VM", "the VM that it is about, empty for the host", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0,
	 finding_vm},
	{"vcpu", "vCPU", "the vCPU that it is about", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0, finding_vcpu},
	{"value", "VALUE", "the figure: % of steal, quota, exits and smt-siblings; ns of open-exit, events of lost and code-lost, seconds of unwatched, vCPUs of pin-overlap", UNIT_RATIO, 8, 0, 0, 0, finding_value},
	{"threshold", "THRESHOLD", "what it is held against, in the same unit", UNIT_RATIO, 9, 0, 0, 0, finding_threshold},
	{"for_ns", "FOR", "how long the rule has held", UNIT_NS, 6, 0, 0, 0, finding_for},
	{"text", "FINDING", "the finding in words", UNIT_TEXT, 60, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, finding_text},
	{"next", "NEXT", "what to look at next", UNIT_TEXT, 40, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, finding_next},
};
/* clang-format on */

const struct field_list field_list_finding =
	FIELD_LIST("finding", finding_fields, struct snap_finding);
