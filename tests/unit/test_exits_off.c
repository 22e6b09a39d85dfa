// SPDX-License-Identifier: GPL-2.0-only
/* %EXIT in its two parts: with a CPU and without, as the programs in the kernel tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model_fixture.h"

#define SVM_IO 0x7b
#define SVM_HLT 0x78

/* Two vCPUs, the threads 101 and 102; exits were seen, the first second is over. */
static struct fixture started(void)
{
	struct fixture f = fixture_new(8, 64);

	fixture_vm(&f, "web01", 100, 2);
	ev_entry(&f, 1, 101, 0);
	f.sink->off_told(f.sink->ctx, true);
	commit_drop(&f, SEC);
	return f;
}

/* An exit of this length that ended in the interval. */
static void counted(struct fixture *f, int vcpu, uint64_t key, int64_t ns)
{
	const struct aggregate a = {
		.tid = 101 + vcpu,
		.vcpu_id = vcpu,
		.kind = KIND_VMEXIT,
		.isa = ISA_SVM,
		.key = key,
		.count = 1,
		.timed = 1,
		.sum_ns = (uint64_t)ns,
		.within_ns = (uint64_t)ns,
		.min_ns = (uint64_t)ns,
		.max_ns = (uint64_t)ns,
	};

	f->sink->aggregates(f->sink->ctx, &a, 1);
}

static void told(struct fixture *f, struct thread_open o)
{
	f->sink->open(f->sink->ctx, &o);
}

static void same(struct value v, double want)
{
	assert_int_equal(v.state, VALUE_KNOWN);
	assert_true(v.v > want - 0.001 && v.v < want + 0.001);
}

static void parts_of_what_ended(void **state)
{
	struct fixture f = started();
	const struct snap_vm *vm;
	struct snapshot *s;

	(void)state;
	counted(&f, 0, SVM_IO, 400 * MS);
	told(&f, (struct thread_open){.tid = 101, .vcpu_id = 0, .off_ns = 300 * MS});
	counted(&f, 1, SVM_HLT, 900 * MS); /* idle: in no part */
	told(&f, (struct thread_open){.tid = 102, .vcpu_id = 1});
	s = commit(&f, 2 * SEC);
	vm = find_vm(s, "web01");
	same(s->vcpus[vm->vcpu_first].ex.pct, 40);
	same(s->vcpus[vm->vcpu_first].ex.off_pct, 30);
	same(s->vcpus[vm->vcpu_first].ex.on_pct, 10);
	same(s->vcpus[vm->vcpu_first + 1].ex.off_pct, 0);
	same(vm->ex.off_pct, 15);
	same(vm->ex.on_pct, 5);
	same(s->host.ex.off_pct, 15);
	same(s->host.ex.on_pct, 5);
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	same(find_vm(s, "web01")->ex.off_pct, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

static void parts_of_what_is_open(void **state)
{
	struct fixture f = started();
	const struct snap_exits *ex;
	struct snapshot *s;

	(void)state;
	counted(&f, 0, SVM_IO, MS);
	told(&f, (struct thread_open){
			 .tid = 101,
			 .vcpu_id = 0,
			 .open = KIND_BIT(KIND_VMEXIT),
			 .exit = {.begin = SEC + 500 * MS, .key = SVM_IO, .isa = ISA_SVM},
			 .exit_off_ns = 50 * MS,
			 .exit_off_since = SEC + 800 * MS,
		 });
	s = commit(&f, 2 * SEC);
	ex = &s->vcpus[0].ex;
	same(ex->pct, 50.1);
	same(ex->off_pct, 25); /* 50 ms before, 200 ms that last */
	same(ex->on_pct, 25.1);
	snapshot_unref(s);
	/* Nothing happened to the thread: it sleeps on. */
	s = commit(&f, 3 * SEC);
	ex = &s->vcpus[0].ex;
	same(ex->pct, 100);
	same(ex->off_pct, 100);
	same(ex->on_pct, 0);
	snapshot_unref(s);
	/* It has a CPU again, and the exit goes on. */
	told(&f, (struct thread_open){
			 .tid = 101,
			 .vcpu_id = 0,
			 .open = KIND_BIT(KIND_VMEXIT),
			 .exit = {.begin = SEC + 500 * MS, .key = SVM_IO, .isa = ISA_SVM},
			 .exit_off_ns = 400 * MS,
		 });
	s = commit(&f, 4 * SEC);
	ex = &s->vcpus[0].ex;
	same(ex->off_pct, 40);
	same(ex->on_pct, 60);
	snapshot_unref(s);
	s = commit(&f, 5 * SEC);
	same(s->vcpus[0].ex.on_pct, 100);
	snapshot_unref(s);
	fixture_free(&f);
}

/* A VMM that became another program: the exit it left its VM in stays open in the kernel's half. */
static void what_is_left_open_makes_no_vm(void **state)
{
	struct thread_open o = {
		.tid = 4711,
		.vcpu_id = 0,
		.open = KIND_BIT(KIND_USEREXIT),
		.user = {.begin = SEC + 500 * MS, .key = 2},
	};
	struct fixture f = started();
	struct snapshot *s;
	uint32_t n;

	(void)state;
	s = commit(&f, 2 * SEC);
	n = s->nvms;
	snapshot_unref(s);
	told(&f, o);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->nvms, n);
	snapshot_unref(s);
	o.unmatched = 1; /* something happened to it, which is of a VM that nobody has found yet */
	told(&f, o);
	s = commit(&f, 4 * SEC);
	assert_int_equal(s->nvms, n + 1);
	snapshot_unref(s);
	fixture_free(&f);
}

static void what_was_not_seen_is_said(void **state)
{
	struct fixture f = started();
	struct snapshot *s;

	(void)state;
	counted(&f, 0, SVM_IO, 400 * MS);
	told(&f,
	     (struct thread_open){.tid = 101, .vcpu_id = 0, .off_ns = 100 * MS, .off_blind = true});
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->vcpus[0].ex.off_pct.state, VALUE_PARTIAL);
	assert_int_equal(s->vcpus[0].ex.on_pct.why, WHY_BLIND);
	assert_int_equal(s->vcpus[0].ex.pct.state, VALUE_KNOWN);
	assert_int_equal(find_vm(s, "web01")->ex.on_pct.state, VALUE_PARTIAL);
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->vcpus[0].ex.off_pct.state, VALUE_KNOWN);
	snapshot_unref(s);
	fixture_free(&f);
}

static struct value on_after(struct fixture *f, int64_t time)
{
	struct snapshot *s;
	struct value v;

	counted(f, 0, SVM_IO, 400 * MS);
	s = commit(f, time);
	v = s->vcpus[0].ex.on_pct;
	assert_true(v.state == s->host.ex.on_pct.state && v.why == s->host.ex.on_pct.why);
	assert_int_equal(s->vcpus[0].ex.pct.state, VALUE_KNOWN);
	snapshot_unref(s);
	return v;
}

static void nobody_tells(void **state)
{
	struct fixture f = started();
	struct value v;

	(void)state;
	f.sink->off_told(f.sink->ctx, false);
	v = on_after(&f, 2 * SEC);
	assert_int_equal(v.state, VALUE_NA);
	assert_int_equal(v.why, WHY_NO_SWITCHES);
	f.sink->off_told(f.sink->ctx, true);
	assert_int_equal(on_after(&f, 3 * SEC).state,
			 VALUE_PENDING); /* not of all of the interval */
	assert_int_equal(on_after(&f, 4 * SEC).state, VALUE_KNOWN);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_what_ended),
		cmocka_unit_test(parts_of_what_is_open),
		cmocka_unit_test(what_is_left_open_makes_no_vm),
		cmocka_unit_test(what_was_not_seen_is_said),
		cmocka_unit_test(nobody_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
