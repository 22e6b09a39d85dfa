// SPDX-License-Identifier: GPL-2.0-only
/*
 * A made snapshot for tests of what reads snapshots: two VMs, one of them of a hostile name,
 * vCPUs, exits of which one cannot be timed, a finding.
 */
#ifndef TEST_MADE_H
#define TEST_MADE_H

#include "snapshot.h"

#define HOSTILE "=evil, \"x\"\n\x1b[31m\xff\xc2\x9b\xe2\x80\xae;$(reboot)"

struct made {
	struct snapshot s;
	struct snap_vm vm[3];
	struct snap_vcpu vcpu[4];
	struct snap_exit exit[5]; /* the last one of all VMs together */
	struct snap_finding finding[1];
	struct snap_cpu cpu[2];
	struct snap_source source[1];
};

static inline struct snap_exits made_exits(uint32_t first, uint32_t n)
{
	return (struct snap_exits){.rate = value_known(1234.5),
				   .pct = value_na(WHY_NO_ENTRY_EXIT),
				   .p50 = value_known(900),
				   .p99 = value_known(48200),
				   .max = value_known(7000000),
				   .top = "MSR_WRITE 41%",
				   .top_pct = value_known(41),
				   .open = "",
				   .open_ns = value_na(WHY_NONE),
				   .first = first,
				   .n = n};
}

static inline void made_vm(struct snap_vm *vm, uint32_t id, const char *name, pid_t pid, double cpu,
			   double steal)
{
	*vm = (struct snap_vm){.id = id,
			       .name = name,
			       .vm_id = id == 1 ? "6f1c2c1e-0000-4000-8000-000000000001"
						: "77-12345",
			       .uuid = id == 1 ? "6F1C2C1E-0000-4000-8000-000000000001" : "",
			       .title = "",
			       .vmm = "qemu",
			       .cgroup = "/machine.slice",
			       .pid = pid,
			       .nvcpu = 2,
			       .nthread = 3,
			       .steal_max = value_known(steal),
			       .steal_max_vcpu = 1,
			       .steal_source = "rundelay",
			       .why_text = "steal 31%",
			       .vcpu_first = (id - 1) * 2,
			       .vcpu_n = 2,
			       .ex = made_exits((id - 1) * 2, 2)};
	vm->use.cpu = value_known(cpu);
	vm->use.guest = value_partial(cpu / 2, WHY_NO_SOURCE);
	vm->use.steal = value_known(steal / 2);
	vm->use.sys = value_pending();
}

static inline void made_vcpu(struct made *m, uint32_t i, double steal)
{
	m->vcpu[i] = (struct snap_vcpu){.id = i + 1,
					.vm = i / 2,
					.index = (int)(i % 2),
					.kvm_id = (int)(i % 2) * 4,
					.tid = 100 + (int)i,
					.comm = "CPU 0/KVM",
					.state = 'R',
					.cpu = 1,
					.pin = "",
					.node = "",
					.ex = made_exits(0, 0)};
	m->vcpu[i].use.steal = value_known(steal);
	m->vcpu[i].use.cpu = value_known(100 - steal);
	m->vcpu[i].use.own_quota = i == 1;
}

static inline void made_exit(struct made *m, uint32_t i, const char *name, uint64_t count,
			     bool has_time)
{
	m->exit[i] = (struct snap_exit){.vm = i < 4 ? i / 2 : SNAP_NO_VM,
					.vcpu = -1,
					.kind = i % 2 ? KIND_IOPORT : KIND_VMEXIT,
					.has_time = has_time,
					.name = name,
					.note = "",
					.key = i};
	m->exit[i].now = (struct tally){.count = count,
					.timed = has_time ? count : 0,
					.time_ns = count * 1500,
					.avg_ns = 1500,
					.count_pct = value_known(100)};
	m->exit[i].total = m->exit[i].now;
	m->exit[i].total.count = count * 10;
}

static inline void made_host(struct snap_host *h)
{
	*h = (struct snap_host){.node = "node17",
				.kernel = "6.1.0",
				.boot_id = "b",
				.ncpu = 2,
				.nvm = 2,
				.nvcpu = 4,
				.usr = value_known(3.1),
				.idle = value_known(30.8),
				.steal = value_known(4.2),
				.other_cpu = value_known(98),
				.other_why = "ceph-osd 22%",
				.lost = 3};
}

/* Fills in place: the pointers point into m. */
static inline void made_fill(struct made *m)
{
	*m = (struct made){0};
	m->s = (struct snapshot){.seq = 1,
				 .time = 5000000000,
				 .dt = 1000200000,
				 .wall = {.tv_sec = 1795964523, .tv_nsec = 512000000},
				 .vms = m->vm,
				 .nvms = 2,
				 .vcpus = m->vcpu,
				 .nvcpus = 4,
				 .exits = m->exit,
				 .nexits = 5,
				 .findings = m->finding,
				 .nfindings = 1,
				 .cpus = m->cpu,
				 .ncpus = 1,
				 .sources = m->source,
				 .nsources = 1};
	made_host(&m->s.host);
	made_vm(&m->vm[0], 1, "web01", 4711, 371.24, 11.9);
	made_vm(&m->vm[1], 2, HOSTILE, 77, 100, 60.2);
	for (uint32_t i = 0; i < 4; i++)
		made_vcpu(m, i, i * 20);
	made_exit(m, 0, "EPT_VIOLATION", 7, true);
	made_exit(m, 1, "0x3f8:POUT", 9, false);
	made_exit(m, 2, "PF excp", 1, true);
	made_exit(m, 3, "0x60:PIN", 2, false);
	made_exit(m, 4, "EPT_VIOLATION", 8, true);
	m->s.host.ex = made_exits(4, 1);
	m->finding[0] = (struct snap_finding){.rule = "steal",
					      .level = 2,
					      .vm = 1,
					      .vcpu = 3,
					      .value = value_known(60.2),
					      .threshold = 10,
					      .since = 2000000000,
					      .text = "VM x: 60% steal",
					      .next = "Enter"};
	m->cpu[0] = (struct snap_cpu){
		.online = true, .vcpus = "web01/0", .wait = value_na(WHY_NO_SCHEDSTAT)};
	m->source[0] = (struct snap_source){
		.name = "tracefs", .state = SOURCE_OFF, .why = "not mounted", .mend = "mount it"};
}

#endif
