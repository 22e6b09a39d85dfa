// SPDX-License-Identifier: GPL-2.0-only
/* Samples by symbol: sums, rows, names, WHY. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "exits_code.h"
#include "model_fixture.h"

static void near(double a, double b)
{
	if (fabs(a - b) > 0.01)
		fail_msg("%g is not %g", a, b);
}

static struct symbol_key key(uint64_t value)
{
	return (struct symbol_key){.value = value, .table = 1, .domain = DOMAIN_GUEST_KERNEL};
}

/* ---- the model ---- */

static const char *prefix = "fn"; /* of made names */

static bool made_name(void *ctx, const struct symbol_key *k, const char **name, const char **module)
{
	static char text[32];

	(void)ctx;
	if (k->table != 1)
		return false;
	snprintf(text, sizeof(text), "%s%llu", prefix, (unsigned long long)k->value);
	*name = text;
	*module = k->value == 2 ? "virtio_ring" : "";
	return true;
}

static const char *made_reason(void *ctx, const struct inv_vm *vm, const struct symbol_key *k)
{
	(void)ctx;
	(void)vm;
	return k->reason == SYM_USER ? "its programs are not known" : "no symbols of this guest";
}

static bool made_guest(void *ctx, const struct inv_vm *vm, const char **why, const char **mend)
{
	(void)ctx;
	*why = "none found";
	*mend = "kvmtop guest-symbols db01 -- ssh root@db01";
	return !strcmp(vm->name, "db01");
}

/* Functions of 256 bytes in the upper half; below there are none. */
static void made_find(void *ctx, const struct inv_vm *vm, uint64_t addr, struct symbol_key *k)
{
	(void)ctx;
	(void)vm;
	if (addr >> 63)
		*k = (struct symbol_key){
			.value = addr >> 8 & 0xff, .table = 1, .domain = DOMAIN_GUEST_KERNEL};
	else
		*k = (struct symbol_key){
			.value = addr >> 12, .domain = DOMAIN_GUEST_USER, .reason = SYM_USER};
}

static const struct symbol_namer namer = {
	.name = made_name, .find = made_find, .reason = made_reason, .guest = made_guest};

static void open_sampling(struct fixture *f)
{
	struct sampling_state s = {.open = true,
				   .guest = true,
				   .event = "cpu-clock",
				   .hz = 997,
				   .wanted_hz = 997,
				   .why = ""};

	model_set_namer(f->m, &namer);
	f->sink->sampling(f->sink->ctx, &s);
}

static void hits(struct fixture *f, pid_t tid, struct symbol_key k, unsigned n)
{
	struct symbol_hit h = {.thread = inventory_thread(f->inv, tid), .key = k, .n = n};

	model_hits(f->m, &h, 1);
}

static struct symbol_key page(uint64_t addr, enum ip_domain d, enum no_symbol why)
{
	return (struct symbol_key){
		.value = addr >> 12, .domain = (uint8_t)d, .reason = (uint8_t)why};
}

static const struct snap_symbol *row(const struct snapshot *s, const struct snap_samples *sym,
				     const char *name)
{
	for (uint32_t i = sym->first; i < sym->first + sym->rows; i++)
		if (!strcmp(s->symbols[i].name, name))
			return &s->symbols[i];
	return NULL;
}

static void samples_belong_to_the_vm_of_their_thread(void **state)
{
	struct fixture f = fixture_new(8, 64);
	const struct demand all = {.samples = true, .samples_all = true};
	struct symbol_hit idle = {.idle = true, .n = 50};
	const struct snap_vm *web, *db;
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	fixture_vm(&f, "db01", 200, 1);
	open_sampling(&f);
	model_demand(f.m, &all);
	commit_drop(&f, SEC);
	hits(&f, 101, key(1), 60);
	hits(&f, 102, key(1), 20);
	hits(&f, 102, key(2), 10);
	hits(&f, 100, (struct symbol_key){.value = 9, .table = 1, .domain = DOMAIN_HOST_USER}, 10);
	hits(&f, 201, page(0xffffffff81234567, DOMAIN_GUEST_KERNEL, SYM_NO_SOURCE), 30);
	hits(&f, 201, page(0x401abc, DOMAIN_GUEST_USER, SYM_USER), 10);
	hits(&f, 999, (struct symbol_key){.value = 5, .table = 1}, 60); /* of no VM */
	model_hits(f.m, &idle, 1);
	s = commit(&f, 2 * SEC);
	web = find_vm(s, "web01");
	db = find_vm(s, "db01");

	near(web->sym.n.v, 100);
	near(web->sym.domain[DOMAIN_GUEST_KERNEL].v, 90);
	near(web->sym.domain[DOMAIN_HOST_USER].v, 10);
	assert_string_equal(web->sym.hot, "k:fn1");
	near(web->sym.hot_pct.v, 80);
	assert_true(web->sym.hot_named);
	r = row(s, &web->sym, "fn2");
	near((double)r->samples, 10);
	near(r->pct.v, 10);
	assert_string_equal(r->module, "virtio_ring");
	assert_string_equal(web->sym_why, "");
	/* vCPUs have their own; the VMM's thread is none. */
	near(s->vcpus[web->vcpu_first].sym.n.v, 60);
	near(s->vcpus[web->vcpu_first + 1].sym.n.v, 30);
	assert_int_equal(s->vcpus[web->vcpu_first + 1].sym.rows, 2);
	/* Largest first. */
	assert_string_equal(s->symbols[web->sym.first].name, "fn1");

	near(db->sym.n.v, 40);
	assert_string_equal(db->sym.hot, "k:[guest 0xffffffff81234000]");
	assert_false(db->sym.hot_named);
	r = row(s, &db->sym, "[guest 0x401000]");
	assert_string_equal(r->reason, "its programs are not known");
	assert_string_equal(db->sym_why, "none found");
	assert_non_null(strstr(db->sym_mend, "kvmtop guest-symbols"));

	/* All VMs together; pages of guests have nothing in common. What is no VM is apart. */
	near(s->host.sym.n.v, 140);
	near(s->host.other_sym.n.v, 60);
	near(s->sampling.idle.v, 20);
	near(s->host.sym.domain[DOMAIN_HOST_KERNEL].v, 0);
	near(s->host.other_sym.domain[DOMAIN_HOST_KERNEL].v, 100);
	assert_non_null(row(s, &s->host.other_sym, "fn5"));
	assert_null(row(s, &s->host.sym, "fn5"));
	r = row(s, &s->host.sym, "[guest]"); /* of the kernel comes first: there is more of it */
	assert_int_equal(r->key.domain, DOMAIN_GUEST_KERNEL);
	assert_string_equal(r->reason, "no symbols of this guest");
	assert_string_equal(s->sampling.event, "cpu-clock");
	snapshot_unref(s);

	fixture_free(&f);
}

/* A name is made once a snapshot, and each has those of its own time, for all keys of a place. */
static void names_are_those_of_their_snapshot(void **state)
{
	struct fixture f = fixture_new(8, 300);
	const struct demand all = {.samples = true, .samples_all = true};
	struct snapshot *before, *s;
	char name[32];

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	open_sampling(&f);
	model_demand(f.m, &all);
	commit_drop(&f, SEC);
	for (unsigned v = 0; v < 300; v++)
		hits(&f, 101, key(v), 1);
	before = commit(&f, 2 * SEC);
	prefix = "other";
	for (unsigned v = 0; v < 300; v++)
		hits(&f, 101, key(v), 1);
	s = commit(&f, 3 * SEC);
	prefix = "fn";
	for (unsigned v = 0; v < 300; v++) {
		snprintf(name, sizeof(name), "fn%u", v);
		assert_non_null(row(before, &before->vms[0].sym, name));
		assert_non_null(row(before, &before->host.sym, name));
		snprintf(name, sizeof(name), "other%u", v);
		assert_non_null(row(s, &s->vms[0].sym, name));
		assert_non_null(row(s, &s->host.sym, name));
	}
	snapshot_unref(before);
	snapshot_unref(s);
	fixture_free(&f);
}

static void called(struct fixture *f, struct symbol_key k, struct symbol_key caller, unsigned n)
{
	const struct symbol_hit h = {.thread = inventory_thread(f->inv, 101),
				     .key = k,
				     .caller = caller,
				     .n = n,
				     .called = true};

	model_hits(f->m, &h, 1);
}

static void callers_of_a_vms_symbols(void **state)
{
	struct fixture f = fixture_new(8, 64);
	const struct demand all = {.samples = true, .samples_all = true};
	struct snap_caller from[SNAP_CALLERS];
	const struct snap_symbol *r;
	const struct snap_vm *web;
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	open_sampling(&f);
	model_demand(f.m, &all);
	commit_drop(&f, SEC);
	called(&f, key(1), key(7), 20);
	called(&f, key(1), key(8), 30);
	called(&f, key(1), page(0xffffffff81234567, DOMAIN_GUEST_KERNEL, SYM_OUTSIDE), 5);
	hits(&f, 101, key(1), 45); /* without a frame */
	hits(&f, 101, key(2), 10);
	s = commit(&f, 2 * SEC);
	web = find_vm(s, "web01");
	r = row(s, &web->sym, "fn1");
	assert_int_equal(r->samples, 100);
	assert_string_equal(r->caller[0].name, "fn8");
	assert_int_equal(r->caller[0].samples, 30);
	assert_string_equal(r->caller[1].name, "fn7");
	assert_int_equal(r->caller[1].samples, 20);
	assert_string_equal(r->caller[2].name, "[guest 0xffffffff81234000]");
	assert_string_equal(r->caller[3].name, "");
	assert_string_equal(row(s, &web->sym, "fn2")->caller[0].name, "");
	/* A vCPU's row has none. */
	r = row(s, &s->vcpus[web->vcpu_first].sym, "fn1");
	assert_string_equal(r->caller[0].name, "");
	snapshot_unref(s);

	called(&f, key(1), key(7), 20);
	s = commit(&f, 3 * SEC);
	web = find_vm(s, "web01");
	r = row(s, &web->sym, "fn1");
	assert_string_equal(r->caller[0].name, "fn7");
	assert_int_equal(r->caller[0].samples, 20);
	assert_int_equal(r->caller[0].samples_total, 40);
	assert_string_equal(r->caller[1].name, "fn8");
	assert_int_equal(r->caller[1].samples, 0);
	assert_int_equal(r->caller[1].samples_total, 30);
	assert_int_equal(snap_callers(r, false, from), 1); /* fn8 did not call in the interval */
	assert_string_equal(from[0].name, "fn7");
	snapshot_unref(s);

	called(&f, key(1), key(8), 20);
	called(&f, key(1), key(7), 21);
	s = commit(&f, 4 * SEC);
	r = row(s, &find_vm(s, "web01")->sym, "fn1"); /* in all 50 by fn8, 61 by fn7, 5 by a page */
	assert_int_equal(snap_callers(r, true, from), 3);
	assert_string_equal(from[0].name, "fn7");
	assert_int_equal(from[0].samples_total, 61);
	snapshot_unref(s);

	called(&f, key(1), key(8), 5);
	called(&f, key(1), key(7), 6);
	called(&f, key(1), page(0xffffffff81234567, DOMAIN_GUEST_KERNEL, SYM_OUTSIDE), 7);
	s = commit(&f, 5 * SEC);
	r = row(s, &find_vm(s, "web01")->sym, "fn1");
	assert_int_equal(snap_callers(r, false, from), 3);
	assert_string_equal(from[0].name, "[guest 0xffffffff81234000]");
	assert_int_equal(snap_callers(r, true, from), 3);
	assert_string_equal(from[0].name, "fn7");
	assert_string_equal(from[1].name, "fn8");
	assert_int_equal(from[1].samples_total, 55);
	snapshot_unref(s);
	model_reset(f.m);
	s = commit(&f, 6 * SEC);
	r = row(s, &find_vm(s, "web01")->sym, "fn1");
	assert_non_null(r);
	assert_int_equal(r->caller[0].samples_total, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

static void totals_go_on_until_the_reset(void **state)
{
	struct fixture f = fixture_new(8, 64);
	const struct demand all = {.samples = true, .samples_all = true};
	const struct snap_vm *web;
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	open_sampling(&f);
	model_demand(f.m, &all);
	commit_drop(&f, SEC);
	hits(&f, 101, key(1), 80);
	hits(&f, 101, key(2), 20);
	commit_drop(&f, 2 * SEC);
	hits(&f, 101, key(1), 5);
	s = commit(&f, 3 * SEC);
	web = find_vm(s, "web01");
	near(web->sym.n.v, 5);
	near(web->sym.n_total.v, 105);
	r = row(s, &web->sym, "fn1");
	assert_int_equal(r->samples, 5);
	assert_int_equal(r->samples_total, 85);
	snapshot_unref(s);
	model_reset(f.m);
	s = commit(&f, 4 * SEC);
	assert_false(value_has(find_vm(s, "web01")->sym.n_total));
	snapshot_unref(s);
	fixture_free(&f);
}

static void rows_are_made_for_what_is_looked_at(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	struct snapshot *s;

	(void)state;
	open_sampling(&f);
	commit_drop(&f, SEC);
	hits(&f, 101, key(1), 9);
	s = commit(&f, 2 * SEC);
	assert_int_equal(find_vm(s, "web01")->sym.rows, 0);
	assert_string_equal(find_vm(s, "web01")->sym.hot, "k:fn1");
	snapshot_unref(s);
	model_demand(f.m, &(struct demand){.samples = true, .vm = vm->id});
	hits(&f, 101, key(1), 9);
	s = commit(&f, 3 * SEC);
	assert_int_equal(find_vm(s, "web01")->sym.rows, 1);
	snapshot_unref(s);
	fixture_free(&f);
}

static void a_hot_symbol_is_why(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	open_sampling(&f);
	commit_drop(&f, SEC);
	hits(&f, 101, key(1), 40);
	hits(&f, 101, page(0x1000, DOMAIN_GUEST_USER, SYM_USER), 60);
	s = commit(&f, 2 * SEC);
	/* Most is an address that says nothing. */
	assert_string_equal(find_vm(s, "web01")->why_text, "");
	snapshot_unref(s);
	hits(&f, 101, key(1), 60);
	hits(&f, 101, key(2), 40);
	s = commit(&f, 3 * SEC);
	assert_int_equal(find_vm(s, "web01")->why, WHY_ROW_SYMBOL);
	assert_string_equal(find_vm(s, "web01")->why_text, "k:fn1 60%");
	snapshot_unref(s);
	hits(&f, 101, key(1), 10); /* too few to speak of */
	s = commit(&f, 4 * SEC);
	assert_int_equal(find_vm(s, "web01")->why, WHY_ROW_NONE);
	snapshot_unref(s);
	fixture_free(&f);
}

static void nothing_sampled_is_not_nothing(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	commit_drop(&f, SEC);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->vms[0].sym.n.state, VALUE_NA);
	assert_int_equal(s->vms[0].sym.hot_pct.state, VALUE_NA);
	assert_int_equal(s->sampling.idle.state, VALUE_NA);
	assert_false(s->sampling.open);
	snapshot_unref(s);
	open_sampling(&f);
	s = commit(&f, 3 * SEC);
	near(s->vms[0].sym.n.v, 0); /* it did not run */
	assert_int_equal(s->vms[0].sym.domain[0].state, VALUE_PENDING);
	snapshot_unref(s);
	fixture_free(&f);
}

static void run_in_guest(struct fixture *f, int64_t t)
{
	struct thread_reading r = {
		.thread = inventory_thread(f->inv, 101),
		.time = t,
		.has_sched = true,
		.has_gtime = true,
		.state = 'R',
		.run_ns = (uint64_t)t,
		.nr_sched = 1,
		.utime = (uint64_t)(t / (10 * MS)),
		.gtime = (uint64_t)(t / (10 * MS)),
	};

	f->sink->thread(f->sink->ctx, &r);
}

/* Guests run for seconds and not one sample is of guest mode: that is this KVM's. */
static void guest_mode_that_is_never_sampled_is_said(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;
	bool said = false;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	open_sampling(&f);
	for (int t = 1; t <= 12; t++) {
		run_in_guest(&f, t * SEC);
		hits(&f, 101,
		     (struct symbol_key){.domain = DOMAIN_HOST_KERNEL, .value = 1, .table = 1}, 9);
		s = commit(&f, t * SEC);
		assert_true(t > 4 || !s->sampling.no_guest);
		said = s->sampling.no_guest;
		snapshot_unref(s);
	}
	assert_true(said);
	hits(&f, 101, key(1), 1);
	s = commit(&f, 13 * SEC);
	assert_false(s->sampling.no_guest);
	snapshot_unref(s);
	fixture_free(&f);
}

/* A thread that runs several vCPUs does not say for which. */
static void a_shared_thread_is_of_the_vm_only(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	struct inv_vcpu *second = inventory_add_vcpu(f.inv, vm, 1);
	struct snapshot *s;

	(void)state;
	inventory_set_thread(f.inv, second, inventory_thread(f.inv, 101));
	open_sampling(&f);
	commit_drop(&f, SEC);
	hits(&f, 101, key(1), 9);
	s = commit(&f, 2 * SEC);
	near(s->vms[0].sym.n.v, 9);
	near(s->vcpus[0].sym.n.v, 0);
	near(s->vcpus[1].sym.n.v, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

/* ---- guest code that makes exits ---- */

static void exit_at(struct fixture *f, int64_t t, int tid, uint64_t reason, uint64_t rip)
{
	feed(f, (struct sample){.time = t,
				.tid = tid,
				.vcpu_id = tid - 101,
				.type = EV_EXIT,
				.key = reason,
				.aux = rip,
				.isa = ISA_SVM});
	ev_entry(f, t + US, tid, tid - 101);
}

static const struct snap_code *code(const struct snapshot *s, const char *exit, const char *name)
{
	const struct snap_vm *vm = find_vm(s, "web01");

	for (uint32_t i = vm->code_first; i < vm->code_first + vm->code_n; i++)
		if (!strcmp(s->code[i].exit, exit) && !strcmp(s->code[i].name, name))
			return &s->code[i];
	return NULL;
}

#define SVM_MSR 0x7c
#define SVM_CPUID 0x72
#define TEXT 0xffffffff81000000u

static void exits_are_told_by_guest_code(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 2);
	const struct demand d = {.exit_code = true, .vm = vm->id};
	const struct snap_code *x;
	struct snapshot *s;

	(void)state;
	model_set_namer(f.m, &namer);
	model_demand(f.m, &d);
	ev_entry(&f, 1, 101, 0);
	ev_entry(&f, 1, 102, 1);
	commit_drop(&f, SEC); /* nobody has counted before */
	for (int i = 0; i < 93; i++)
		exit_at(&f, SEC + (i + 1) * MS, 101 + i % 2, SVM_MSR,
			TEXT + 0x100 + (unsigned)i % 7);
	for (int i = 0; i < 7; i++)
		exit_at(&f, SEC + (100 + i) * MS, 101, SVM_MSR, TEXT + 0x200);
	exit_at(&f, SEC + 200 * MS, 101, SVM_CPUID, 0x401234);
	s = commit(&f, 2 * SEC);
	x = code(s, "msr", "fn1");
	assert_int_equal(x->count, 93);
	near(x->pct.v, 93);
	near(code(s, "msr", "fn2")->pct.v, 7);
	assert_string_equal(code(s, "msr", "fn2")->module, "virtio_ring");
	x = code(s, "cpuid", "[guest 0x401000]");
	near(x->pct.v, 100);
	assert_string_equal(x->why, "its programs are not known");
	assert_int_equal(find_vm(s, "web01")->code_n, 3);
	assert_true(find_vm(s, "web01")->code_known);
	snapshot_unref(s);
	exit_at(&f, 2 * SEC + MS, 101, SVM_MSR, TEXT + 0x200);
	s = commit(&f, 3 * SEC);
	assert_int_equal(code(s, "msr", "fn2")->count, 1);
	assert_int_equal(code(s, "msr", "fn2")->total, 8);
	assert_int_equal(code(s, "msr", "fn1")->count, 0);
	snapshot_unref(s);
	/* Nobody asks any more. */
	model_demand(f.m, &(struct demand){0});
	commit_drop(&f, 4 * SEC);
	exit_at(&f, 4 * SEC + MS, 101, SVM_MSR, TEXT);
	s = commit(&f, 5 * SEC);
	assert_int_equal(s->ncode, 0);
	assert_false(find_vm(s, "web01")->code_known);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Of one vCPU in an interval, as programs in the kernel count them, and where one of them came
 * from. */
static const struct aggregate ten_exits = {
	.tid = 101, .kind = KIND_VMEXIT, .isa = ISA_SVM, .key = SVM_MSR, .count = 10};
static const struct sample one_exit = {.time = SEC + MS,
				       .tid = 101,
				       .type = EV_EXIT,
				       .key = SVM_MSR,
				       .aux = TEXT + 0x100,
				       .isa = ISA_SVM};

/* Where programs in the kernel count, the events of kvm_exit tell the code only. */
static void code_beside_counts_made_in_the_kernel(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	const struct demand d = {.exit_code = true, .vm = vm->id};
	struct snapshot *s;

	(void)state;
	model_set_namer(f.m, &namer);
	model_demand(f.m, &d);
	f.sink->aggregates(f.sink->ctx, &ten_exits, 1);
	commit_drop(&f, SEC);
	f.sink->aggregates(f.sink->ctx, &ten_exits, 1);
	for (int i = 0; i < 9; i++)
		f.sink->code(f.sink->ctx, &one_exit, 1);
	s = commit(&f, 2 * SEC);
	assert_int_equal(code(s, "msr", "fn1")->count, 9);
	near(code(s, "msr", "fn1")->pct.v, 90);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "msr")->now.count, 10);
	snapshot_unref(s);
	fixture_free(&f);
}

/* However many places the exits come from: bounded, and the busiest stay. */
static void guest_code_is_bounded(void **state)
{
	static struct ex_code c;
	uint64_t all = 0;

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 5000; i++) {
			ex_code_add(&c, ISA_SVM, SVM_MSR, TEXT + i * 16 + (uint64_t)round);
			ex_code_add(&c, ISA_SVM, SVM_CPUID, TEXT);
		}
		assert_true(c.n <= EX_CODE_MOST);
		ex_code_next(&c);
	}
	for (unsigned i = 0; i < EX_CODE_PLACES; i++) {
		all += c.cell[i].total;
		if (c.cell[i].key == SVM_CPUID)
			assert_int_equal(c.cell[i].total, 25000);
	}
	assert_int_equal(all + c.missed_total, 50000);
	ex_code_reset(&c);
	assert_int_equal(c.n, 0);
	ex_code_add(&c, ISA_SVM, SVM_MSR, 1);
	assert_int_equal(c.n, 1);
}

/* Rows lack what was lost of the events that make them, and only these. */
static void code_that_was_lost_is_marked(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	const struct demand d = {.exit_code = true, .vm = vm->id};
	const struct loss_count other = {.type = EV_MSR, .n = 5}, exits = {.type = EV_EXIT, .n = 2};
	const struct snap_code *x;
	struct snapshot *s;

	(void)state;
	model_set_namer(f.m, &namer);
	f.sink->code_lost(f.sink->ctx, 9); /* nobody asks: nothing lacks it */
	model_demand(f.m, &d);
	ev_entry(&f, 1, 101, 0);
	commit_drop(&f, SEC);
	for (int64_t t = 1; t < 6; t++) {
		exit_at(&f, t * SEC + MS, 101, SVM_MSR, TEXT + 0x100);
		if (t == 2)
			f.sink->code_lost(f.sink->ctx, 3);
		if (t == 3)
			f.sink->loss_count(f.sink->ctx, &other);
		if (t == 4)
			model_reset(f.m);
		if (t == 5) /* the same events make the exits' own counts */
			f.sink->loss_count(f.sink->ctx, &exits);
		s = commit(&f, (t + 1) * SEC);
		x = code(s, "msr", "fn1");
		assert_int_equal(x->count, 1);
		assert_int_equal(x->low, t == 2 || t == 5 ? WHY_LOST : WHY_NONE);
		assert_int_equal(x->pct.state, x->low ? VALUE_PARTIAL : VALUE_KNOWN);
		assert_int_equal(x->low_total, t == 1 || t == 4 ? WHY_NONE : WHY_LOST);
		assert_int_equal(x->pct_total.state, x->low_total ? VALUE_PARTIAL : VALUE_KNOWN);
		assert_int_equal(s->host.code_lost, t == 2 ? 3 : 0);
		assert_int_equal(s->host.code_lost_total, t == 2 || t == 3 ? 3 : 0);
		assert_int_equal(s->host.lost, t == 3 ? 5 : t == 5 ? 2 : 0);
		snapshot_unref(s);
	}
	fixture_free(&f);
}

/* Counted in the kernel: what that missed is missing in all exits, of which a row is a share. */
static void counts_that_miss_exits_mark_shares_of_code(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	const struct demand d = {.exit_code = true, .vm = vm->id};
	const struct loss_count exits = {.type = EV_EXIT, .n = 2};
	const struct snap_code *x;
	struct snapshot *s;

	(void)state;
	model_set_namer(f.m, &namer);
	f.sink->events_by(f.sink->ctx, EVENTS_BY_BPF);
	model_demand(f.m, &d);
	f.sink->aggregates(f.sink->ctx, &ten_exits, 1);
	commit_drop(&f, SEC);
	f.sink->aggregates(f.sink->ctx, &ten_exits, 1);
	f.sink->code(f.sink->ctx, &one_exit, 1);
	f.sink->loss_count(f.sink->ctx, &exits);
	s = commit(&f, 2 * SEC);
	x = code(s, "msr", "fn1");
	assert_int_equal(x->low, WHY_NONE);
	assert_int_equal(x->pct.state, VALUE_PARTIAL);
	assert_int_equal(x->pct.why, WHY_LOST);
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_belong_to_the_vm_of_their_thread),
		cmocka_unit_test(names_are_those_of_their_snapshot),
		cmocka_unit_test(callers_of_a_vms_symbols),
		cmocka_unit_test(totals_go_on_until_the_reset),
		cmocka_unit_test(rows_are_made_for_what_is_looked_at),
		cmocka_unit_test(a_hot_symbol_is_why),
		cmocka_unit_test(nothing_sampled_is_not_nothing),
		cmocka_unit_test(guest_mode_that_is_never_sampled_is_said),
		cmocka_unit_test(a_shared_thread_is_of_the_vm_only),
		cmocka_unit_test(exits_are_told_by_guest_code),
		cmocka_unit_test(code_beside_counts_made_in_the_kernel),
		cmocka_unit_test(code_that_was_lost_is_marked),
		cmocka_unit_test(counts_that_miss_exits_mark_shares_of_code),
		cmocka_unit_test(guest_code_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
