// SPDX-License-Identifier: GPL-2.0-only
/* Made snapshots (made_snapshot.h). */
#include "made_snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "made_pmu.h"
#include "made_symbols.h"

#define NCPUS 8

struct maker {
	const struct made *m;
	struct snapshot *s;
	uint64_t rng;
};

static uint64_t next(struct maker *k)
{
	k->rng = k->rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return k->rng >> 33;
}

/* A figure: the given one, moved a little by the step; with a seed anything. */
static struct value figure(struct maker *k, double v)
{
	static const double odd[] = {0, -1, 1e18, 4.99, 5, 99.95, 100, 6400, NAN, INFINITY};

	if (!k->m->seed)
		return value_known(v * (1 + 0.02 * (k->m->step % 5)));
	switch (next(k) % 8) {
	case 0:
		return value_pending();
	case 1:
		return value_na(
			(enum value_why)(next(k) % WHY_NO_LOOK)); /* that one is no member's */
	case 2:
		return value_partial((double)(next(k) % 1000) / 10, WHY_SHARED);
	case 3:
		return value_known(odd[next(k) % (sizeof(odd) / sizeof(odd[0]))]);
	default:
		return value_known((double)(next(k) % 100000) / 100);
	}
}

static struct value exits(struct maker *k, double v)
{
	return k->m->no_exits ? value_na(WHY_NO_ENTRY_EXIT) : figure(k, v);
}

struct shape {
	const char *name, *vmm;
	unsigned nvcpu;
	double cpu, guest, sys, steal, worst;
	bool quota;
	double rate, exit_pct;
	const char *top, *why;
	double top_pct;
};

static const struct shape shapes[] = {
	{"instance-0000a1", "qemu", 4, 401.0, 380.1, 9.0, 31.0, 60.2, true, 212000, 12.4,
	 "EXTERNAL_INTERRUPT", "quota", 38},
	{"web01", "qemu", 4, 371.2, 340.1, 29.1, 4.1, 11.9, false, 48200, 6.1, "MSR_WRITE",
	 "MSR_WRITE 41%", 41},
	{"db-primary", "cloud-hypervisor", 8, 122.4, 118.0, 3.2, 0.4, 1.1, false, 9120, 1.9,
	 "EPT_MISCONFIG", "", 22},
	{"build-agent", "firecracker", 2, 12.1, 11.0, 0.8, 0.0, 0.0, false, 310, 0.1,
	 "IO_INSTRUCTION", "", 61},
};

static const char *const odd_names[] = {
	"\xe4\xb8\xad\xe6\x96\x87\xe8\x99\x9a\xe6\x8b\x9f\xe6\x9c\xba-01",
	"evil\x1b[31m\nname",
	"caf\xc3\xa9",
	"bad\xff\xfe",
	"x\xe2\x80\xaey",
	"a very long name with blanks in it, and more",
};

static struct shape shape_of(struct maker *k, unsigned i)
{
	struct shape s = shapes[i % 4];

	if (i >= 4) {
		double f = 1.0 / (1 + i % 7);

		s.name = snapshot_printf(k->s, "vm-%03u", i);
		s.cpu *= f;
		s.guest *= f;
		s.sys *= f;
		s.steal *= f / 8;
		s.worst *= f / 8;
		s.rate *= f;
		s.exit_pct *= f;
		s.quota = false;
		s.why = "";
	}
	if (k->m->names)
		s.name = odd_names[i % (sizeof(odd_names) / sizeof(odd_names[0]))];
	return s;
}

static void add_exits(struct maker *k, struct snap_exit *x, uint32_t vm, int32_t vcpu,
		      const struct shape *s)
{
	static const struct {
		uint8_t kind, dir;
		uint64_t key;
		const char *name, *note;
		double share, avg;
		bool idle;
	} rows[] = {
		{KIND_VMEXIT, 0, 32, "MSR_WRITE", "", 0.52, 2100, false},
		{KIND_VMEXIT, 0, 12, "HLT", "", 0.2, 812000, true},
		{KIND_VMEXIT, 0, 1, "EXTERNAL_INTERRUPT", "", 0.18, 3400, false},
		{KIND_VMEXIT, 0, 48, "EPT_VIOLATION", "", 0.1, 9800, false},
		{KIND_MMIO, DIR_WRITE, 0xfee000b0, "0xfee000b0:W", "APIC EOI", 0.6, 1900, false},
		{KIND_IOPORT, DIR_WRITE, 0x3f8, "0x3f8:POUT", "COM1", 0.4, 22000, false},
		{KIND_MSR, DIR_WRITE, 0x6e0, "0x6e0:W", "TSC_DEADLINE", 0.5, 1500, false},
		{KIND_USEREXIT, 0, 2, "KVM_EXIT_IO", "", 0.3, 31000, false},
	};
	unsigned n = 8;

	for (unsigned i = 0; i < n; i++) {
		struct tally t = {
			.count = (uint64_t)(s->rate * rows[i].share),
			.avg_ns = rows[i].avg,
			.min_ns = (uint64_t)(rows[i].avg / 3),
			.max_ns = (uint64_t)(rows[i].avg * 40),
			.stderr_pct = 0.4,
			.p50_ns = (uint64_t)(rows[i].avg * 0.9),
			.p99_ns = (uint64_t)(rows[i].avg * 6),
			.p999_ns = (uint64_t)(rows[i].avg * 20),
			.rate = figure(k, s->rate * rows[i].share),
			.count_pct = figure(k, rows[i].share * 100),
			.time_pct = figure(k, rows[i].share * 80),
		};
		uint32_t *heat = snapshot_alloc(k->s, HEAT_BUCKETS, sizeof(*heat));

		t.timed = t.count;
		t.time_ns = (uint64_t)((double)t.timed * t.avg_ns);
		if (heat)
			for (unsigned b = 12; b < 34; b++)
				heat[b] =
					(uint32_t)(t.count / (1 + (b > 18 ? b - 18 : 18 - b) * 7));
		x[i] = (struct snap_exit){
			.vm = vm,
			.vcpu = vcpu,
			.kind = rows[i].kind,
			.idle = rows[i].idle,
			.has_time = !k->m->no_exits,
			.isa = ISA_VMX,
			.key = rows[i].key,
			.dir = rows[i].dir,
			.name = rows[i].name,
			.note = rows[i].note,
			.now = t,
			.total = t,
			.heat = heat,
		};
		x[i].total.count *= 1 + k->m->step;
	}
}

/* The same shares everywhere; a vCPU has fewer samples. */
static void add_symbols(struct maker *k, struct snap_symbol *x, int32_t vm, int32_t vcpu, double n)
{
	for (size_t i = 0; i < SYMBOLS_EACH; i++) {
		bool other = i == SYMBOLS_EACH - 1;
		double share = other ? 3.6 : symbol_rows[i].share;
		struct symbol_key key = {0};

		if (!other)
			key = made_symbol_key(i, k->m->no_symbols, vm == SNAP_ALL_VMS);
		x[i] = (struct snap_symbol){
			.vm = vm,
			.vcpu = vcpu,
			.key = key,
			.other = other,
			.name = other ? "other" : made_symbol_name(k->s, i, &key),
			.module = key.table ? symbol_rows[i].module : "",
			.reason = "",
			.samples = (uint64_t)(n * share / 100),
			.pct = figure(k, share),
			.pct_total = figure(k, share),
		};
		x[i].samples_total = x[i].samples * (1 + k->m->step);
		add_callers(&x[i], k->m->callers && vm >= 0 && vcpu < 0 && !i);
		if (other)
			continue;
		x[i].guessed = k->m->no_symbols && symbol_rows[i].domain == DOMAIN_GUEST_USER;
		if (key.reason)
			x[i].reason = key.reason == SYM_USER
					      ? "guest user space: its programs are not known"
					      : "no symbols of this guest";
	}
}

static struct snap_samples make_samples(struct maker *k, double n, uint32_t first)
{
	struct value none = value_na(WHY_NOT_OPEN);

	if (k->m->no_samples)
		return (struct snap_samples){.n = none,
					     .n_total = none,
					     .domain = {none, none, none, none},
					     .hot = "",
					     .hot_pct = none};
	return (struct snap_samples){
		.n = value_known(n),
		.n_total = value_known(n * (1 + k->m->step)),
		.domain = {figure(k, 13.4), figure(k, 3.4), figure(k, 61.7), figure(k, 21.5)},
		.hot = k->m->no_symbols ? "k:[guest 0xffffffff81000000]"
					: "k:native_queued_spin_lock_slowpath",
		.hot_pct = figure(k, 38),
		.hot_named = !k->m->no_symbols,
		.first = first,
		.rows = SYMBOLS_EACH,
	};
}

/* What the first VM's MSR writes come from. */
static void make_code(struct maker *k, struct snap_vm *vm, uint32_t at)
{
	static const struct {
		const char *name, *module;
		double pct;
	} rows[] = {{"native_write_msr", "", 93},
		    {"x2apic_send_IPI", "", 5.2},
		    {"vhost_poll", "vhost", 1.8}};
	struct snap_code *x = snapshot_alloc(k->s, 3, sizeof(*x));

	if (!x)
		return;
	for (unsigned i = 0; i < 3; i++)
		x[i] = (struct snap_code){
			.vm = at,
			.isa = ISA_VMX,
			.reason = 32,
			.exit = "MSR_WRITE",
			.key = {.value = i, .table = 1, .domain = DOMAIN_GUEST_KERNEL},
			.name = rows[i].name,
			.module = rows[i].module,
			.why = "",
			.count = (uint64_t)(rows[i].pct * 100),
			.total = (uint64_t)(rows[i].pct * 100) * (1 + k->m->step),
			.pct = k->m->code_lost ? value_partial(rows[i].pct, WHY_LOST)
					       : figure(k, rows[i].pct),
			.low = k->m->code_lost ? WHY_LOST : WHY_NONE,
			.pct_total = figure(k, rows[i].pct),
		};
	k->s->code = x;
	k->s->ncode = 3;
	vm->code_n = 3;
}

/* Who had the CPU while the first VM and its vCPU 3 waited; of others nobody asked. */
static void make_waited(struct maker *k, struct snap_vm *vm, struct snap_vcpu *vcpus)
{
	static const struct {
		uint8_t kind;
		uint32_t vm;
		const char *name;
		double share;
	} rows[] = {
		{WAITED_VM, 2, "web01", 58.2},	  {WAITED_IDLE, 0, "(idle)", 21.4},
		{WAITED_TASK, 0, "ceph-osd", 12}, {WAITED_VM, 1, "instance-0000a1", 5.1},
		{WAITED_OTHER, 0, "other", 2.8},  {WAITED_UNKNOWN, 0, "unexplained", 0.5},
	};
	const unsigned n = sizeof(rows) / sizeof(rows[0]);
	struct snap_waited *x = snapshot_alloc(k->s, (size_t)2 * n, sizeof(*x));

	for (unsigned i = 0; x && i < 2 * n; i++)
		x[i] = (struct snap_waited){
			.vm = 0,
			.vcpu = i < n ? -1 : (int32_t)vm->vcpu_n - 1,
			.kind = rows[i % n].kind,
			.by_vm = rows[i % n].vm,
			.name = k->m->names && rows[i % n].kind == WAITED_TASK
					? "a\033[31mb\n\u202egnp"
					: rows[i % n].name,
			.ns = (uint64_t)(rows[i % n].share * (i < n ? 12.4e6 : 6.02e6)),
			.share = figure(k, rows[i % n].share),
			.pct = figure(k, rows[i % n].share * 0.3),
		};
	if (!x)
		return;
	vm->waits = (struct snap_waits){
		figure(k, 31), figure(k, 420), figure(k, 11200), figure(k, 2.3e6), 0, n};
	vcpus[vm->vcpu_n - 1].waits = vm->waits;
	vcpus[vm->vcpu_n - 1].waits.first = n;
	k->s->waited = x;
	k->s->nwaited = (size_t)2 * n;
}

/* Three of the first two VMs, one of them from before; and one for which there was no room. */
static void make_slow(struct maker *k)
{
	static const struct {
		uint32_t vm;
		const char *time, *at, *exit, *user, *rip, *name, *module;
		uint64_t ns;
	} rows[] = {
		{0, "2026-03-06T14:21:58.100200+00:00", "14:21:58.100", "MSR_WRITE", "",
		 "0xffffffff81067c14", "native_write_msr", "", 734123},
		{0, "2026-03-06T14:22:02.517004+00:00", "14:22:02.517", "IO_INSTRUCTION",
		 "KVM_EXIT_IO", "0xffffffff816ce8ee", "vp_notify", "virtio_pci", 2004512},
		{1, "2026-03-06T14:22:02.998120+00:00", "14:22:02.998", "EPT_VIOLATION", "",
		 "0x7f12aa001c20", "[guest 0x7f12aa001000]", "", 1481230123},
	};
	struct snap_slow *x = snapshot_alloc(k->s, 3, sizeof(*x));
	struct snap_vm *vms = (struct snap_vm *)k->s->vms;

	k->s->slow_ns = 500000;
	if (!x || k->s->nvms < 2)
		return;
	for (unsigned i = 0; i < 3; i++)
		x[i] = (struct snap_slow){
			.vm = rows[i].vm,
			.vcpu = (int32_t)(vms[rows[i].vm].vcpu_first + i % 2),
			.fresh = i > 0,
			.end = (int64_t)i * 1000,
			.tid = 1000 + (int32_t)i,
			.time = rows[i].time,
			.at = rows[i].at,
			.exit = rows[i].exit,
			.ns = rows[i].ns,
			.rip = rows[i].rip,
			.name = rows[i].name,
			.module = rows[i].module,
			.why = "",
			.key.domain = i < 2 ? DOMAIN_GUEST_KERNEL : DOMAIN_GUEST_USER,
			.user = rows[i].user,
			.user_ns = *rows[i].user ? value_known(1995004) : value_pending(),
		};
	k->s->slow = x;
	k->s->nslow = 3;
	vms[0].slow = (struct snap_slows){.count = 2, .total = 9, .n = 2};
	vms[1].slow = (struct snap_slows){.count = 1, .total = 1, .first = 2, .n = 1};
}

static void make_sampling(struct maker *k)
{
	if (k->m->no_samples) {
		k->s->sampling = (struct snap_sampling){
			.event = "", .why = "", .wanted_hz = 997, .idle = value_na(WHY_NOT_OPEN)};
		return;
	}
	k->s->sampling = (struct snap_sampling){
		.open = true,
		.event = "cpu-clock",
		.why = k->m->few_samples ? "to stay within --max-overhead" : "",
		.hz = k->m->few_samples ? 2500 : 997,
		.wanted_hz = k->m->few_samples ? 20000 : 997,
		.idle = figure(k, 30)};
}

#define EXITS_EACH 8

static struct snap_use make_use(struct maker *k, const struct shape *s, double share, double steal)
{
	double held = !s->quota ? 0 : k->m->used_up ? 0.25 : 0.8;

	return (struct snap_use){
		.cpu = figure(k, s->cpu * share),
		.guest = figure(k, s->guest * share),
		.usr = figure(k, (s->cpu - s->guest - s->sys) * share),
		.sys = figure(k, s->sys * share),
		.steal = figure(k, steal),
		.throt = figure(k, steal * held),
		.wait = figure(k, steal * (1 - held)),
		.demand = figure(k, s->cpu * share + steal),
		.csw = figure(k, 120),
		.mig = figure(k, 2),
		.own_quota = s->quota,
	};
}

static struct snap_exits make_sum(struct maker *k, const struct shape *s, double share,
				  uint32_t first)
{
	return (struct snap_exits){
		.rate = exits(k, s->rate * share),
		.pct = exits(k, s->exit_pct),
		.on_pct = exits(k, s->exit_pct * 0.75),
		.off_pct = exits(k, s->exit_pct * 0.25),
		.p50 = exits(k, 1900),
		.p99 = exits(k, 48200),
		.max = exits(k, 812000),
		.top = k->m->no_exits ? "" : s->top,
		.top_pct = exits(k, s->top_pct),
		.open = "",
		.open_ns = value_na(WHY_NONE),
		.first = first,
		.n = EXITS_EACH,
	};
}

/* vCPU 2 is 3.2 us behind the others and was written twice. */
static struct snap_tsc make_tsc(unsigned i)
{
	return (struct snap_tsc){
		.offset = i == 2 ? "-38626992862617" : "-38626992856217",
		.offset_s = value_known(-19313.4964),
		.scale = value_known(1),
		.apart_ns = value_known(i == 2 ? 3200 : 0),
		.changes = value_known(i == 2 ? 2 : 0),
	};
}

static void make_vcpu(struct maker *k, struct snap_vcpu *c, const struct shape *s, uint32_t vm,
		      unsigned i, uint32_t id)
{
	double share = 1.0 / s->nvcpu;

	*c = (struct snap_vcpu){
		.id = id,
		.vm = vm,
		.index = (int)i,
		.kvm_id = (int)i,
		.tid = (pid_t)(4711 + vm * 100 + i),
		.comm = snapshot_printf(k->s, "CPU %u/KVM", i),
		.state = 'R',
		.cpu = (int)((vm * 3 + i) % NCPUS),
		.pin = i == 3 ? "3" : "0-7",
		.node = "0",
		.use = make_use(k, s, share, i == 3 ? s->worst : s->steal),
		.ex = make_sum(k, s, share, 0),
		.tsc = make_tsc(i),
	};
}

static void make_host(struct maker *k)
{
	static const struct shape all = {
		.rate = 270000, .exit_pct = 7, .top = "MSR_WRITE", .top_pct = 44};
	struct snap_host *h = &k->s->host;

	*h = (struct snap_host){
		.node = "node17",
		.kernel = "6.1.0",
		.boot_id = "b",
		.ncpu = 64,
		.nvm = (unsigned)k->s->nvms,
		.nvcpu = (unsigned)k->s->nvcpus,
		.usr = figure(k, 3.1),
		.sys = figure(k, 4.0),
		.irq = figure(k, 0.2),
		.wa = figure(k, 0),
		.st = figure(k, 0),
		.guest = figure(k, 61.9),
		.idle = figure(k, 30.8),
		.steal = figure(k, 4.2),
		.overcommit = figure(k, 4.8),
		.exits_rate = exits(k, 270000),
		.exit_pct = exits(k, 7),
		.other_cpu = figure(k, 98),
		.other_sys = figure(k, 61.2),
		.other_why = "ceph-osd 22%",
		.self_cpu = figure(k, 0.4),
		.self_guest = figure(k, 1.1),
		.load1 = figure(k, 41.2),
		.mem_total_kb = 512u << 20,
		.mem_avail_kb = 100u << 20,
		.lost = 0,
		.entry_exit = !k->m->no_exits,
		.code_lost = k->m->code_lost ? 1234 : 0,
		.root = !k->m->no_root,
		.discovering = 4,
		.discovered = 4,
		.ex = make_sum(k, &all, 1, 0),
	};
	h->ex.n = k->s->nexits ? EXITS_EACH : 0;
	h->ex.first = (uint32_t)k->s->nexits - h->ex.n;
}

static void make_findings(struct maker *k)
{
	struct snap_finding *f = snapshot_alloc(k->s, 2, sizeof(*f));

	if (!f || !k->s->nvms || !k->s->vms[0].nvcpu)
		return;
	f[0] = (struct snap_finding){
		.rule = "quota",
		.level = 3,
		.vm = 0,
		.vcpu = 3,
		.value = value_known(60.2),
		.threshold = 10,
		.text = "instance-0000a1 vCPU 3: 60% steal, half of it its own CPU quota",
		.next = "raise the quota, or look at pane 5",
	};
	f[1] = (struct snap_finding){
		.rule = "steal",
		.level = 2,
		.vm = k->s->nvms > 1 ? 1 : 0,
		.vcpu = -1,
		.value = value_known(11.9),
		.threshold = 10,
		.text = "web01 vCPU 1: 12% steal",
		.next = "who else runs on its CPU: pane 6",
	};
	k->s->findings = f;
	k->s->nfindings = 2;
}

static void make_rest(struct maker *k)
{
	static const char *const comms[] = {"ceph-osd", "ovs-vswitchd", "kworker/3:1"};
	struct snap_task *t = snapshot_alloc(k->s, 3, sizeof(*t));
	struct snap_cpu *c = snapshot_alloc(k->s, NCPUS, sizeof(*c));

	for (int i = 0; t && i < 3; i++)
		t[i] = (struct snap_task){.pid = 900 + i,
					  .comm = comms[i],
					  .state = 'S',
					  .cpu = figure(k, 22 - i * 7)};
	for (int i = 0; c && i < NCPUS; i++)
		c[i] = (struct snap_cpu){
			.cpu = i,
			.online = i != 7,
			.node = i / 4,
			.core = i / 2,
			.sibling = i ^ 1,
			.usr = figure(k, 3),
			.sys = figure(k, 4),
			.irq = figure(k, 0.2),
			.wa = figure(k, 0),
			.st = figure(k, 0),
			.guest = figure(k, 10 * i),
			.idle = figure(k, 92.8 - 10 * i),
			.wait = figure(k, 3 * i),
			.nvcpu_seen = (unsigned)i % 3,
			.npinned = i == 3 ? 2 : 0,
			.vcpus = i == 3 ? "instance-0000a1/3 web01/1" : "",
		};
	k->s->tasks = t;
	k->s->ntasks = t ? 3 : 0;
	k->s->cpus = c;
	k->s->ncpus = c ? NCPUS : 0;
}

static void make_sources(struct maker *k)
{
	struct snap_source *src = snapshot_alloc(k->s, 1, sizeof(*src));

	if (!src || (!k->m->no_exits && !k->m->dropped && !k->m->no_root && !k->m->no_waits))
		return;
	src[0] = (struct snap_source){
		.name = "kvm_exit",
		.state = SOURCE_PARTIAL,
		.why = "this KVM fires no kvm_entry and kvm_exit: exits have no times",
		.mend = "",
	};
	if (k->m->dropped)
		src[0] = (struct snap_source){
			.name = "overhead",
			.state = SOURCE_PARTIAL,
			.why = "vmexit not collected: it would cost more than 2%",
			.mend = "kvmtop --max-overhead 10",
		};
	if (k->m->no_root)
		src[0] = (struct snap_source){
			.name = "kvm_events",
			.state = SOURCE_OFF,
			.why = "tracefs cannot be read: Permission denied (not root)",
			.mend = "sudo kvmtop",
		};
	if (k->m->no_waits)
		src[0] = (struct snap_source){
			.name = "waits",
			.state = SOURCE_OFF,
			.why = "counting in the kernel: BPF programs may not be loaded",
			.mend = "run as root, or with CAP_BPF and CAP_PERFMON",
		};
	k->s->sources = src;
	k->s->nsources = 1;
}

/* Rows of all VMs together: those of the first one, with everybody's counts. */
static void make_host_exits(struct snap_exit *ex, const struct snap_vm *vms, unsigned n,
			    struct snap_exit *out)
{
	for (unsigned r = 0; n && r < EXITS_EACH; r++) {
		out[r] = ex[vms[0].ex.first + r];
		out[r].vm = SNAP_NO_VM;
		for (unsigned i = 1; i < n; i++) {
			const struct snap_exit *x = &ex[vms[i].ex.first + r];

			out[r].now.count += x->now.count;
			out[r].now.timed += x->now.timed;
			out[r].now.time_ns += x->now.time_ns;
			out[r].now.rate.v += x->now.rate.v;
			out[r].total.count += x->total.count;
		}
	}
}

/* What is there for one VM only. */
static void make_details(struct maker *k, struct snap_vm *vms, unsigned n, struct snap_vcpu *vcpus,
			 unsigned nvcpus)
{
	const struct value none = value_na(WHY_NOT_ASKED);
	const struct snap_waits not_asked = {none, none, none, none, 0, 0};

	for (unsigned i = 0; i < n; i++)
		vms[i].waits = not_asked;
	for (unsigned i = 0; i < nvcpus; i++)
		vcpus[i].waits = not_asked;
	if (n && !k->m->no_waits)
		make_waited(k, &vms[0], vcpus);
	if (n > 1)
		make_code(k, &vms[1], 1);
}

static bool make_vms(struct maker *k)
{
	unsigned n = k->m->nvms, total = 0, at = 0;
	struct snap_vm *vms = snapshot_alloc(k->s, n ? n : 1, sizeof(*vms));
	struct snap_vcpu *vcpus;
	struct snap_exit *ex;
	struct snap_symbol *sym;

	for (unsigned i = 0; i < n; i++)
		total += shapes[i % 4].nvcpu;
	vcpus = snapshot_alloc(k->s, total ? total : 1, sizeof(*vcpus));
	ex = snapshot_alloc(k->s, (size_t)(n + total + 1) * EXITS_EACH, sizeof(*ex));
	sym = snapshot_alloc(k->s, (size_t)(n + total + 2) * SYMBOLS_EACH, sizeof(*sym));
	if (!vms || !vcpus || !ex || !sym)
		return false;
	for (unsigned i = 0; i < n; i++) {
		struct shape s = shape_of(k, i);

		vms[i] = (struct snap_vm){
			.id = i + 1,
			.vm_id = snapshot_printf(k->s, "4711-%u", i),
			.name = snapshot_str(k->s, s.name),
			.uuid = i ? "" : "0d0c3a52-3c2e-4e5a-9a39-3b8c61f3a6d1",
			.title = "",
			.vmm = s.vmm,
			.cmdline = "/usr/bin/qemu-system-x86_64 -name "
				   "guest=instance-0000a1,debug-threads=on "
				   "-m 4096 -smp 4",
			.cgroup = "/machine.slice/machine-qemu\\x2d1\\x2dinstance.scope",
			.pid = (pid_t)(4711 + i * 100),
			.nvcpu = s.nvcpu,
			.nthread = s.nvcpu + 3,
			.use = make_use(k, &s, 1, s.steal),
			.vcpu_pct = figure(k, s.cpu * 0.97),
			.io_pct = figure(k, s.cpu * 0.03),
			.steal_max = figure(k, s.worst),
			.steal_max_vcpu = s.nvcpu > 3 ? 3 : 1,
			.steal_source = "rundelay",
			.ex = make_sum(k, &s, 1, (i + at) * EXITS_EACH),
			.sym = make_samples(k, s.cpu * 10, (uint32_t)((i + at) * SYMBOLS_EACH)),
			.sym_why = k->m->no_symbols ? "no symbols of this guest" : "",
			.sym_mend = k->m->no_symbols
					    ? "kvmtop guest-symbols web01 -- ssh root@web01"
					    : "",
			.why = s.why[0] ? WHY_ROW_EXITS : WHY_ROW_NONE,
			.why_text = s.why,
			.quota_us = s.quota ? 200000 : 0,
			.quota_file = s.quota ? "/sys/fs/cgroup/machine.slice/a1/cpu.max" : NULL,
			.period_us = s.quota ? 100000 : 0,
			.vcpu_first = at,
			.vcpu_n = s.nvcpu,
		};
		add_exits(k, ex + (size_t)(i + at) * EXITS_EACH, i, -1, &s);
		add_symbols(k, sym + (size_t)(i + at) * SYMBOLS_EACH, (int32_t)i, -1, s.cpu * 10);
		for (unsigned c = 0; c < s.nvcpu; c++, at++) {
			make_vcpu(k, &vcpus[at], &s, i, c, 1000 + at);
			vcpus[at].ex.first = (i + at + 1) * EXITS_EACH;
			add_exits(k, ex + (size_t)(i + at + 1) * EXITS_EACH, i, (int32_t)at, &s);
			vcpus[at].sym = make_samples(k, s.cpu * 10 / s.nvcpu,
						     (uint32_t)((i + at + 1) * SYMBOLS_EACH));
			add_symbols(k, sym + (size_t)(i + at + 1) * SYMBOLS_EACH, (int32_t)i,
				    (int32_t)at, s.cpu * 10 / s.nvcpu);
		}
	}
	make_details(k, vms, n, vcpus, total);
	k->s->vms = vms;
	k->s->nvms = n;
	k->s->vcpus = vcpus;
	k->s->nvcpus = total;
	k->s->exits = ex;
	make_host_exits(ex, vms, n, ex + (size_t)(n + total) * EXITS_EACH);
	k->s->nexits = (size_t)(n ? n + total + 1 : 0) * EXITS_EACH;
	if (k->m->no_samples)
		return true;
	add_symbols(k, sym + (size_t)(n + total) * SYMBOLS_EACH, SNAP_ALL_VMS, -1, 9000);
	add_symbols(k, sym + (size_t)(n + total + 1) * SYMBOLS_EACH, SNAP_OTHER, -1, 1900);
	k->s->symbols = sym;
	k->s->nsymbols = (size_t)(n + total + 2) * SYMBOLS_EACH;
	return true;
}

/* Ten slices an interval; in the third of them times are long. */
static void make_slices(struct maker *k)
{
	const struct snap_vcpu *v = &k->s->vcpus[3];
	const struct snap_exit *ex = &k->s->exits[v->ex.first];
	struct snap_slice *x = snapshot_alloc(k->s, (size_t)EXITS_EACH * 10, sizeof(*x));

	if (!x)
		return;
	for (unsigned i = 0; i < EXITS_EACH * 10u; i++) {
		const struct snap_exit *e = &ex[i / 10];
		uint32_t *heat = snapshot_alloc(k->s, HEAT_BUCKETS, sizeof(*heat));
		unsigned shift = i % 10 == 3 ? 6 : 0;

		for (unsigned b = shift; heat && e->heat && b < HEAT_BUCKETS; b++)
			heat[b] = e->heat[b - shift] / 10;
		x[i] = (struct snap_slice){.at = k->s->time - NS_PER_S + i % 10 * NS_PER_S / 10,
					   .key = e->key,
					   .isa = e->isa,
					   .kind = e->kind,
					   .dir = e->dir,
					   .count = e->now.count / 10 * (i % 10 == 3 ? 2 : 1),
					   .timed = e->now.timed / 10,
					   .heat = e->has_time ? heat : NULL};
	}
	k->s->slices = x;
	k->s->nslices = (size_t)EXITS_EACH * 10;
	k->s->stream = (struct snap_stream){.vcpu = v->id,
					    .kinds = KIND_BIT(KIND_VMEXIT),
					    .slice_ns = NS_PER_S / 10,
					    .from = k->s->time - NS_PER_S,
					    .events = 53000};
}

struct snapshot *made_snapshot(const struct made *m)
{
	struct maker k = {.m = m, .s = snapshot_new(), .rng = m->seed};

	if (!k.s)
		return NULL;
	k.s->seq = m->step + 1;
	k.s->time = (int64_t)(1000 + m->step) * NS_PER_S;
	k.s->dt = NS_PER_S;
	/* 14:22:03 on a day of 2026, as UTC. */
	k.s->wall = (struct timespec){.tv_sec = 1772806923 + (time_t)m->step};
	k.s->delay_s = 1;
	k.s->open_kinds = KIND_ALL;
	if (!make_vms(&k)) {
		snapshot_unref(k.s);
		return NULL;
	}
	if (m->slow)
		make_slow(&k);
	if (m->fine && m->nvms)
		make_slices(&k);
	make_host(&k);
	if (m->pmu || m->pmu_inferred)
		made_pmu(k.s, m->pmu_inferred, m->pmu_ours);
	make_findings(&k);
	k.s->host.sym = make_samples(&k, 9000, (uint32_t)(k.s->nsymbols - 2 * SYMBOLS_EACH));
	k.s->host.other_sym = make_samples(&k, 1900, (uint32_t)(k.s->nsymbols - SYMBOLS_EACH));
	make_sampling(&k);
	make_rest(&k);
	make_sources(&k);
	return k.s;
}
