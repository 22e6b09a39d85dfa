// SPDX-License-Identifier: GPL-2.0-only
/* VM sums, WHY, the host's line, CPUs, the row (other), sources: all that is not exits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "field.h"
#include "model_fixture.h"

static void near(double a, double b)
{
	if (fabs(a - b) > 0.01)
		fail_msg("%g is not %g", a, b);
}

/* A reading of a thread that ran and waited so much since it began. */
static void read_thread(struct fixture *f, pid_t tid, int64_t t, int64_t run, int64_t delay,
			int cpu)
{
	struct thread_reading r = {
		.thread = inventory_thread(f->inv, tid),
		.time = t,
		.has_sched = true,
		.has_gtime = true,
		.state = 'R',
		.cpu = cpu,
		.run_ns = (uint64_t)run,
		.delay_ns = (uint64_t)delay,
		.nr_sched = (uint64_t)(t / MS),
	};

	r.utime = (uint64_t)(run * 8 / 10 / (10 * MS));
	r.gtime = (uint64_t)(run * 6 / 10 / (10 * MS));
	r.stime = (uint64_t)(run * 2 / 10 / (10 * MS));
	f->sink->thread(f->sink->ctx, &r);
}

/* Two vCPUs, one starved by 60%, and a VMM thread; ends with the snapshot of 2 s. */
static struct snapshot *starved(struct fixture *f)
{
	struct inv_vm *vm = fixture_vm(f, "web01", 100, 2);

	inventory_set(&vm->uuid, "5f8c-uuid");
	for (int k = 0; k < 2; k++) {
		int64_t t = (k + 1) * SEC;

		read_thread(f, 100, t, k * 200 * MS, 0, 0);
		read_thread(f, 101, t, k * 900 * MS, k * 40 * MS, 1);
		read_thread(f, 102, t, k * 400 * MS, k * 600 * MS, 3);
		if (!k)
			commit_drop(f, t);
	}
	return commit(f, 2 * SEC);
}

static void a_vm_is_the_sum_of_its_threads(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s = starved(&f);
	const struct snap_vm *vm = &s->vms[0];

	(void)state;
	near(vm->use.cpu.v, 150);
	near(vm->vcpu_pct.v, 130);
	near(vm->io_pct.v, 20);
	near(vm->use.steal.v, 32); /* the mean */
	near(vm->steal_max.v, 60);
	assert_int_equal(vm->steal_max_vcpu, 1);
	assert_string_equal(vm->steal_source, "rundelay");
	assert_string_equal(vm->vm_id, "5f8c-uuid");
	assert_int_equal(vm->why, WHY_ROW_STEAL);
	assert_string_equal(vm->why_text, "steal 60%");
	assert_int_equal(s->vcpus[1].cpu, 3);
	assert_int_equal(s->threads[0].tid, 100);
	near(s->threads[0].use.cpu.v, 20);
	near(s->host.steal.v, 32);
	assert_int_equal(s->nfindings, 1);
	assert_string_equal(s->findings[0].text, "web01 vCPU 1: 60% steal, it waits for a CPU");
	snapshot_unref(s);
	fixture_free(&f);
}

/* Source and target of a migration within the host, or a VM that wants to pass for another. */
static void two_vms_of_one_uuid(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm[3];
	struct snapshot *s;

	(void)state;
	for (int i = 0; i < 3; i++) {
		vm[i] = fixture_vm(&f, "web01", 100 * (i + 1), 1);
		inventory_set(&vm[i]->uuid, i == 1 ? "another" : "5f8c-uuid");
	}
	s = commit(&f, SEC);
	assert_int_equal(s->nvms, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct snap_vm *row = &s->vms[i];

		assert_string_equal(row->uuid, row->pid == 200 ? "another" : "5f8c-uuid");
		if (row->pid == 300)
			assert_memory_equal(row->vm_id, "300-", 4);
		else
			assert_string_equal(row->vm_id, row->uuid);
	}
	snapshot_unref(s);
	fixture_free(&f);
}

/* It runs and runs, and no kvm_exit ever came: the KVM fires none, and that is said. */
static void a_busy_guest_without_exits(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s = NULL;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	for (int k = 0; k < 6; k++) {
		read_thread(&f, 101, (k + 1) * SEC, k * 900 * MS, 0, 1);
		snapshot_unref(s);
		s = commit(&f, (k + 1) * SEC);
		if (k == 1)
			assert_int_equal(s->vms[0].ex.pct.state, VALUE_PENDING);
	}
	assert_int_equal(s->vms[0].ex.pct.why, WHY_NO_ENTRY_EXIT);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PARTIAL); /* other kinds are open: 0 */
	snapshot_unref(s);
	fixture_free(&f);
}

/*
 * One vCPU for two seconds of which it had 0.4 s each and waited for the rest; q is what its quota
 * says in the second one, and held it back for so long.
 */
static struct snapshot *under_a_quota(struct fixture *f, struct quota_reading q)
{
	int64_t throttled = (int64_t)q.throttled_ns;
	bool begun = q.begun;

	q.vm = fixture_vm(f, "web01", 100, 1);
	for (int k = 0; k < 2; k++) {
		q.time = (k + 1) * SEC;
		q.throttled_ns = (uint64_t)(k * throttled);
		q.begun = k && begun;
		read_thread(f, 101, q.time, k * 400 * MS, k * 600 * MS, 1);
		f->sink->quota(f->sink->ctx, &q);
		if (!k)
			commit_drop(f, q.time);
	}
	return commit(f, 2 * SEC);
}

#define QUOTA_40 .has = true, .quota_us = 40000, .period_us = 100000

static void its_quota_is_the_reason(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s =
		under_a_quota(&f, (struct quota_reading){QUOTA_40, .throttled_ns = 580 * MS});

	(void)state;
	near(s->vcpus[0].use.throt.v, 58);
	near(s->vcpus[0].use.wait.v, 2);
	assert_true(s->vcpus[0].use.own_quota && s->vms[0].use.own_quota);
	assert_string_equal(s->vms[0].why_text, "quota");
	assert_int_equal(s->vms[0].quota_us, 40000);
	assert_string_equal(s->findings[0].rule, "quota");
	snapshot_unref(s);
	fixture_free(&f);
}

/* Its vCPUs wait for one another within a quota: without neighbours it would get no more. */
static void a_used_up_quota_is_the_reason(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s = under_a_quota(
		&f, (struct quota_reading){QUOTA_40, .throttled_ns = 200 * MS, .used_up = true});

	(void)state;
	near(s->vcpus[0].use.throt.v, 20);
	near(s->vcpus[0].use.wait.v, 40);
	assert_true(s->vcpus[0].use.own_quota && s->vms[0].use.own_quota);
	assert_string_equal(s->vms[0].why_text, "quota");
	assert_string_equal(s->findings[0].rule, "quota");
	assert_string_equal(s->findings[0].text,
			    "web01 vCPU 0: 60% steal, and its own CPU quota is used up");
	snapshot_unref(s);
	fixture_free(&f);
	f = fixture_new(8, 64);
	s = under_a_quota(&f, (struct quota_reading){QUOTA_40, .throttled_ns = 200 * MS});
	assert_false(s->vcpus[0].use.own_quota || s->vms[0].use.own_quota);
	assert_string_equal(s->findings[0].rule, "steal");
	snapshot_unref(s);
	fixture_free(&f);
	f = fixture_new(8, 64); /* not held back at all: whatever its group did */
	s = under_a_quota(&f, (struct quota_reading){QUOTA_40, .used_up = true});
	assert_false(s->vcpus[0].use.own_quota || s->vms[0].use.own_quota);
	snapshot_unref(s);
	fixture_free(&f);
}

/* A limit that is new: how long it held the VM back is not known, nor then who else did. */
static void a_new_limit_is_not_known_yet(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s = under_a_quota(&f, (struct quota_reading){QUOTA_40, .begun = true});

	(void)state;
	near(s->vcpus[0].use.steal.v, 60);
	assert_int_equal(s->vcpus[0].use.throt.state, VALUE_PENDING);
	assert_int_equal(s->vcpus[0].use.wait.state, VALUE_PENDING);
	assert_false(s->vcpus[0].use.own_quota);
	snapshot_unref(s);
	fixture_free(&f);
}

/* What could not be read any more has no figures, and not those of the interval before. */
static void what_ended_has_no_figures(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s = starved(&f);

	(void)state;
	near(s->vms[0].steal_max.v, 60);
	assert_int_equal(s->nfindings, 1);
	snapshot_unref(s);
	read_thread(&f, 100, 3 * SEC, 400 * MS, 0, 0);
	read_thread(&f, 101, 3 * SEC, 1800 * MS, 60 * MS, 1);
	ev_exit(&f, 2 * SEC + 10, 102, 1, 0x7b);
	inventory_vcpu_gone(f.inv, inventory_vcpu(inventory_first(f.inv), 1));
	inventory_thread_gone(f.inv, inventory_thread(f.inv, 102));
	s = commit(&f, 3 * SEC);
	inventory_sweep(f.inv);
	assert_int_equal(s->nvcpus, 2);
	assert_int_equal(s->vcpus[1].use.cpu.state, VALUE_PENDING);
	assert_int_equal(s->vcpus[1].use.steal.state, VALUE_PENDING);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "io")->now.count, 1);
	assert_int_equal(s->vms[0].steal_max_vcpu, 0);
	near(s->vms[0].steal_max.v, 2);
	near(s->vms[0].use.steal.v, 2);
	near(s->vms[0].use.cpu.v, 110);
	assert_int_equal(s->vms[0].use.cpu.state, VALUE_PARTIAL); /* without the one that ended */
	near(s->host.steal.v, 2);
	assert_int_equal(s->nfindings, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

static void a_vm_that_ended_has_no_figures(void **state)
{
	struct fixture f = fixture_new(8, 64);

	(void)state;
	for (int read = 0; read < 2; read++) { /* its end was seen only after it was read */
		struct inv_vm *vm;
		struct snapshot *s;

		snapshot_unref(starved(&f));
		vm = inventory_first(f.inv);
		if (read)
			read_thread(&f, 102, 3 * SEC, 500 * MS, 1500 * MS, 3);
		inventory_vm_gone(f.inv, vm);
		s = commit(&f, 3 * SEC);
		assert_int_equal(s->nvms, 1);
		assert_int_equal(s->vms[0].quality, SNAP_QUALITY_GONE);
		assert_int_equal(s->vms[0].use.cpu.state, read ? VALUE_PARTIAL : VALUE_PENDING);
		assert_int_equal(s->vms[0].use.steal.state, read ? VALUE_PARTIAL : VALUE_PENDING);
		assert_int_equal(s->vms[0].steal_max.state, read ? VALUE_KNOWN : VALUE_PENDING);
		assert_string_equal(s->vms[0].why_text, read ? "steal 90%" : "");
		assert_int_equal(s->nfindings, read);
		snapshot_unref(s);
		fixture_free(&f);
		f = fixture_new(8, 64);
	}
	fixture_free(&f);
}

/* One thread runs both vCPUs: none has a steal of its own, but the VM has. */
static void steal_of_no_vcpu_is_the_vms(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	struct snapshot *s;

	(void)state;
	inventory_set_thread(f.inv, inventory_add_vcpu(f.inv, vm, 1), inventory_thread(f.inv, 101));
	read_thread(&f, 101, 1 * SEC, 0, 0, 1);
	commit_drop(&f, 1 * SEC);
	read_thread(&f, 101, 2 * SEC, 400 * MS, 570 * MS, 1);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->vcpus[0].use.steal.state, VALUE_NA);
	assert_false(value_has(s->vms[0].steal_max));
	near(s->vms[0].use.steal.v, 57);
	assert_int_equal(s->vms[0].why, WHY_ROW_STEAL);
	assert_string_equal(s->vms[0].why_text, "steal 57%");
	snapshot_unref(s);
	fixture_free(&f);
}

static void exits_are_the_reason(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	commit_drop(&f, 1 * SEC);
	ev_exit(&f, 1 * SEC + 10, 101, 0, 0x7c);
	ev_entry(&f, 1 * SEC + 10 + 41 * MS, 101, 0);
	ev_exit(&f, 1 * SEC + 100 * MS, 101, 0, 0x7b);
	ev_entry(&f, 1 * SEC + 159 * MS, 101, 0);
	s = commit(&f, 2 * SEC);
	near(s->vms[0].ex.pct.v, 10);
	assert_int_equal(s->vms[0].why, WHY_ROW_EXITS);
	assert_string_equal(s->vms[0].why_text, "io 59%");
	assert_int_equal(s->nfindings, 0); /* below 20%: worth a word, no alarm */
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->vms[0].why, WHY_ROW_NONE);
	assert_string_equal(s->vms[0].why_text, "");
	snapshot_unref(s);
	fixture_free(&f);
}

/* A CPU is taken away behind an exit: nobody tells, but such exits are long because it waits. */
static void starved_in_exits(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	read_thread(&f, 101, 1 * SEC, 0, 0, 1);
	commit_drop(&f, 1 * SEC);
	ev_exit(&f, 1 * SEC + 10 * MS, 101, 0, 0x60);
	ev_entry(&f, 1 * SEC + 980 * MS, 101, 0);
	read_thread(&f, 101, 2 * SEC, 330 * MS, 670 * MS, 2);
	s = commit(&f, 2 * SEC);
	near(s->vms[0].ex.pct.v, 97);
	assert_false(value_has(s->vms[0].ex.on_pct));
	near(s->vms[0].use.steal.v, 67);
	assert_int_equal(s->vms[0].why, WHY_ROW_STEAL);
	assert_string_equal(s->vms[0].why_text, "steal 67%");
	snapshot_unref(s);
	fixture_free(&f);
}

static void read_host(struct fixture *f, int64_t t, const struct cpu_reading *cpu, unsigned n)
{
	struct host_reading h = {.time = t,
				 .ncpu = n,
				 .cpu = cpu,
				 .mem_total_kb = 1 << 20,
				 .mem_avail_kb = 1 << 19,
				 .load1 = 2.5};

	for (unsigned i = 0; i < n; i++) {
		h.all.user += cpu[i].t.user;
		h.all.guest += cpu[i].t.guest;
		h.all.system += cpu[i].t.system;
		h.all.idle += cpu[i].t.idle;
		h.all.softirq += cpu[i].t.softirq;
		h.all.iowait += cpu[i].t.iowait;
	}
	f->sink->host(f->sink->ctx, &h);
}

static void asked(void *ctx, struct inv_thread *t)
{
	(void)ctx;
	(void)t;
}

/* A thread that runs no vCPU as far as is known has guest time: who knows more is asked. */
static void guest_time_of_another_thread(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct thread_reading r = {.cpu = -1, .has_gtime = true, .state = 'R'};

	(void)state;
	inventory_on_ask(f.inv, asked, NULL);
	fixture_vm(&f, "web01", 100, 1);
	for (pid_t tid = 100; tid <= 101; tid++) { /* the VMM's thread, the vCPU's */
		r.thread = inventory_thread(f.inv, tid);
		for (int i = 1; i <= 3; i++) {
			r.time = i * SEC;
			r.utime = (uint64_t)i * 50;
			r.gtime = i < 3 ? 20 : 60;
			f.sink->thread(f.sink->ctx, &r);
			assert_int_equal(inventory_take_unknown(f.inv),
					 i == 3 && tid == 100 ? 100 : 0);
		}
	}
	fixture_free(&f);
}

/* More than all CPUs is all of them; far more is a counter that leapt. */
static void a_task_uses_no_more_than_there_is(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct cpu_reading cpu[2] = {{.cpu = 0, .online = true}, {.cpu = 1, .online = true}};
	struct task_reading task[] = {
		{7, "damaged", 9954028.5, 'S'}, {8, "make", 212, 'R'}, {9, "sh", 30, 'R'}};
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 1 * SEC);
	read_host(&f, 2 * SEC, cpu, 2);
	f.sink->tasks(f.sink->ctx, task, 3);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->ntasks, 3);
	assert_int_equal(s->tasks[0].cpu.state, VALUE_PENDING);
	near(s->tasks[1].cpu.v, 200);
	near(s->tasks[2].cpu.v, 30);
	assert_string_equal(s->host.other_why, "make 200%");
	snapshot_unref(s);
	fixture_free(&f);
}

static void the_host_line_sums_to_100(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct cpu_reading cpu[4];
	struct task_reading task[] = {{7, "ceph-osd", 22.4, 'S'}, {8, "sh", -1, 'R'}};
	const struct snap_host *h;
	struct snapshot *s;
	double sum;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 4; i++) {
			cpu[i] = (struct cpu_reading){.cpu = 3 - i,
						      .online = true,
						      .node = 0,
						      .core = i / 2,
						      .sibling = -1,
						      .has_wait = true};
			cpu[i].wait_ns = (uint64_t)k * 250 * MS;
			cpu[i].t = (struct cpu_ticks){.user = 1000 + (uint64_t)k * 50,
						      .guest = 900 + (uint64_t)k * 40,
						      .system = 100 + (uint64_t)k * 15,
						      .idle = 5000 + (uint64_t)k * 33,
						      .softirq = 10 + (uint64_t)k * 2,
						      .iowait = 50 - (uint64_t)k}; /* may */
		}
		read_host(&f, (k + 1) * SEC, cpu, 4);
		f.sink->tasks(f.sink->ctx, task, 2);
		read_thread(&f, 100, (k + 1) * SEC, 0, 0, 0);
		read_thread(&f, 101, (k + 1) * SEC, k * 900 * MS, 0, 1);
		read_thread(&f, 102, (k + 1) * SEC, k * 700 * MS, 0, 1);
		if (!k)
			commit_drop(&f, 1 * SEC);
	}
	s = commit(&f, 2 * SEC);
	h = &s->host;
	sum = h->usr.v + h->sys.v + h->irq.v + h->wa.v + h->st.v + h->guest.v + h->idle.v;
	near(sum, 100);
	near(h->usr.v, 10);
	near(h->guest.v, 40);
	near(h->sys.v, 15);
	near(h->irq.v, 2);
	/* 4 CPUs at 67%, of which the VM has 160. */
	near(h->other_cpu.v, 4 * 67 - 160);
	near(h->other_cpu.v + s->vms[0].use.cpu.v,
	     (h->usr.v + h->sys.v + h->irq.v + h->guest.v) * 4);
	assert_string_equal(h->other_why, "ceph-osd 22%");
	assert_int_equal(s->ntasks, 2);
	assert_int_equal(s->tasks[1].cpu.state, VALUE_PENDING);
	near(h->overcommit.v, 0.5);
	near(h->load1.v, 2.5);
	assert_int_equal(h->ncpu, 4);
	assert_int_equal(s->ncpus, 4);
	assert_int_equal(s->cpus[1].cpu, 1); /* in order */
	assert_int_equal(s->cpus[1].nvcpu_seen, 2);
	assert_string_equal(s->cpus[1].vcpus, "web01/0 web01/1");
	near(s->cpus[1].wait.v, 25);
	near(s->cpus[1].guest.v, 40);
	snapshot_unref(s);
	/* No new reading: the CPUs are known, what they did is not. */
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->ncpus, 4);
	assert_int_equal(s->host.ncpu, 4);
	assert_int_equal(s->cpus[1].idle.state, VALUE_PENDING);
	assert_int_equal(s->host.usr.state, VALUE_PENDING);
	snapshot_unref(s);
	fixture_free(&f);
}

static void counters_that_go_back_are_a_new_baseline(void **state)
{
	struct fixture f = fixture_new(8, 64);
	static const uint64_t user[] = {1000, 1050, 20, 70};
	struct snapshot *s;

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct cpu_reading cpu = {.cpu = 0, .online = true, .sibling = -1};

		cpu.t.user = user[k];
		cpu.t.idle = 100 * (uint64_t)(k + 1);
		read_host(&f, (k + 1) * SEC, &cpu, 1);
		s = commit(&f, (k + 1) * SEC);
		assert_int_equal(s->host.usr.state, k & 1 ? VALUE_KNOWN : VALUE_PENDING);
		if (k & 1)
			near(s->host.usr.v, 100.0 * 50 / 150);
		snapshot_unref(s);
	}
	fixture_free(&f);
}

static void pins_and_nodes(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct cpu_reading cpu[2] = {{.cpu = 0, .online = true, .sibling = -1},
				     {.cpu = 1, .online = false, .sibling = -1}};
	struct place_reading p = {.pin = "0", .node = "1!0"};
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	p.thread = inventory_thread(f.inv, 101);
	f.sink->place(f.sink->ctx, &p);
	inventory_set(&inventory_first(f.inv)->vcpu[1]->xml_pin, "0");
	read_host(&f, 1 * SEC, cpu, 2);
	commit_drop(&f, 1 * SEC);
	read_host(&f, 2 * SEC, cpu, 2);
	s = commit(&f, 2 * SEC);
	assert_string_equal(s->vcpus[0].pin, "0");
	assert_string_equal(s->vcpus[0].node, "1!0");
	assert_int_equal(s->cpus[0].npinned, 2);
	assert_int_equal(s->cpus[0].pins, SNAP_PINS_ALL);
	assert_int_equal(s->host.ncpu, 1); /* of two, one is off */
	assert_string_equal(s->findings[0].rule, "pin-overlap");
	snapshot_unref(s);
	fixture_free(&f);
}

static void check_pinned(struct fixture *f, int64_t t, uint8_t pins, unsigned npinned)
{
	struct cpu_reading cpu = {.cpu = 0, .online = true, .sibling = -1};
	const struct field *field = field_find(TABLE_CPU, "npinned");
	struct snapshot *s;
	struct cell c;

	read_host(f, t, &cpu, 1);
	s = commit(f, t);
	assert_int_equal(s->cpus[0].pins, pins);
	c = field->get(s, &s->cpus[0], false);
	assert_int_equal(c.v.state, pins == SNAP_PINS_ALL    ? VALUE_KNOWN
				    : pins == SNAP_PINS_SOME ? VALUE_PARTIAL
							     : VALUE_PENDING);
	if (pins != SNAP_PINS_NONE)
		near(c.v.v, npinned);
	snapshot_unref(s);
}

/* How many are pinned to a CPU is not known while nobody has asked. */
static void pins_that_are_not_known(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct place_reading p = {.pin = "0", .node = ""};

	(void)state;
	check_pinned(&f, 1 * SEC, SNAP_PINS_ALL, 0); /* there is no vCPU */
	fixture_vm(&f, "web01", 100, 2);
	check_pinned(&f, 2 * SEC, SNAP_PINS_NONE, 0);
	p.thread = inventory_thread(f.inv, 101);
	f.sink->place(f.sink->ctx, &p);
	check_pinned(&f, 3 * SEC, SNAP_PINS_SOME, 1);
	p.thread = inventory_thread(f.inv, 102);
	p.pin = "0-1";
	f.sink->place(f.sink->ctx, &p);
	check_pinned(&f, 4 * SEC, SNAP_PINS_ALL, 1);
	fixture_free(&f);
}

static void sources_self_and_discovery(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	f.sink->source(f.sink->ctx, "kvm_events", SOURCE_OFF, "tracefs is not mounted",
		       "mount -t tracefs tracefs /sys/kernel/tracing");
	f.sink->source(f.sink->ctx, "sched", SOURCE_OK, "works", NULL);
	f.sink->source(f.sink->ctx, "kvm_events", SOURCE_OK, "works", NULL);
	model_self(f.m, value_known(0.4), value_known(1.1));
	model_discovery(f.m, 214, 1000);
	s = commit(&f, 1 * SEC);
	assert_int_equal(s->nsources, 2);
	assert_string_equal(s->sources[0].name, "kvm_events");
	assert_int_equal(s->sources[0].state, SOURCE_OK);
	assert_string_equal(s->sources[0].mend, "");
	near(s->host.self_guest.v, 1.1);
	assert_int_equal(s->host.discovered, 214);
	assert_int_equal(s->host.discovering, 1000);
	assert_true(s->host.root);
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vm_is_the_sum_of_its_threads),
		cmocka_unit_test(two_vms_of_one_uuid),
		cmocka_unit_test(a_busy_guest_without_exits),
		cmocka_unit_test(its_quota_is_the_reason),
		cmocka_unit_test(a_used_up_quota_is_the_reason),
		cmocka_unit_test(a_new_limit_is_not_known_yet),
		cmocka_unit_test(what_ended_has_no_figures),
		cmocka_unit_test(a_vm_that_ended_has_no_figures),
		cmocka_unit_test(steal_of_no_vcpu_is_the_vms),
		cmocka_unit_test(exits_are_the_reason),
		cmocka_unit_test(starved_in_exits),
		cmocka_unit_test(guest_time_of_another_thread),
		cmocka_unit_test(a_task_uses_no_more_than_there_is),
		cmocka_unit_test(the_host_line_sums_to_100),
		cmocka_unit_test(counters_that_go_back_are_a_new_baseline),
		cmocka_unit_test(pins_and_nodes),
		cmocka_unit_test(pins_that_are_not_known),
		cmocka_unit_test(sources_self_and_discovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
