// SPDX-License-Identifier: GPL-2.0-only
/* Pairing, tables and rows of the model: every rule of docs/metrics.md, "Exits and their times". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model_fixture.h"

#define NPF 0x400
#define IO 0x7b
#define MSR 0x7c
#define HLT 0x78

static void near(double a, double b)
{
	if (a < b - 1e-6 || a > b + 1e-6)
		fail_msg("%g is not %g", a, b);
}

static void the_first_commit_is_a_baseline(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	s = commit(&f, 1 * SEC);
	assert_int_equal(s->dt, 0);
	assert_int_equal(s->nvms, 1);
	assert_int_equal(s->nvcpus, 2);
	assert_int_equal(s->nthreads, 1);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PENDING);
	assert_string_equal(s->host.node, "node17");
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->dt, 2 * SEC);
	snapshot_unref(s);
	fixture_free(&f);
}

static void an_exit_ends_with_its_entry(void **state)
{
	struct fixture f = fixture_new(8, 64);
	const struct snap_exit *row;
	const struct snap_vm *vm;
	struct snapshot *s;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	commit_drop(&f, 1 * SEC);
	for (int i = 0; i < 10; i++) {
		ev_exit(&f, 1 * SEC + (i + 1) * 10 * MS, 101, 0, MSR);
		ev_entry(&f, 1 * SEC + (i + 1) * 10 * MS + (i + 1) * 100 * US, 101, 0);
	}
	s = commit(&f, 2 * SEC);
	row = find_row(s, "web01", -1, KIND_VMEXIT, "msr");
	assert_non_null(row);
	assert_int_equal(row->now.count, 10);
	assert_int_equal(row->now.timed, 10);
	assert_int_equal(row->now.time_ns, 5500 * US);
	assert_int_equal(row->now.min_ns, 100 * US);
	assert_int_equal(row->now.max_ns, 1000 * US);
	near(row->now.avg_ns, 550e3);
	/* Sample deviation 302.765 us of mean 550 us over sqrt(10). */
	assert_true(row->now.stderr_pct > 17.40 && row->now.stderr_pct < 17.41);
	near(row->now.rate.v, 10);
	near(row->now.count_pct.v, 100);
	vm = find_vm(s, "web01");
	near(vm->ex.pct.v, 0.275); /* 5.5 ms of 1 s on 2 vCPUs */
	near(vm->ex.rate.v, 10);
	assert_string_equal(vm->ex.top, "msr");
	near(s->vcpus[0].ex.pct.v, 0.55);
	near(s->vcpus[1].ex.pct.v, 0);
	near(s->host.exits_rate.v, 10);
	assert_int_equal(s->kinds[KIND_VMEXIT].count, 10);
	snapshot_unref(s);
	fixture_free(&f);
}

/* The fixture's VM with a baseline at 1 s. */
static struct fixture started(int nvcpu)
{
	struct fixture f = fixture_new(8, 64);

	fixture_vm(&f, "web01", 100, nvcpu);
	commit_drop(&f, 1 * SEC);
	return f;
}

static void check_row(const struct snapshot *s, enum kvm_kind kind, const char *name,
		      uint64_t count, uint64_t timed, int64_t sum)
{
	const struct snap_exit *e = find_row(s, "web01", -1, kind, name);

	if (!e)
		fail_msg("no row %s", name);
	if (e->now.count != count || e->now.timed != timed || (int64_t)e->now.time_ns != sum)
		fail_msg("%s: count %lu timed %lu sum %lu", name, (unsigned long)e->now.count,
			 (unsigned long)e->now.timed, (unsigned long)e->now.time_ns);
}

/* The orders of a real KVM: port out, port in, MMIO write, MMIO read, MSR, hypercall. */
static void accesses_begin_and_end_as_they_are_seen(void **state)
{
	struct fixture f = started(1);
	int64_t t = 1 * SEC + 1 * MS;
	struct snapshot *s;

	(void)state;
	ev_exit(&f, t, 101, 0, IO); /* out: exit, pio, user, entry */
	ev(&f, t + 10, 101, EV_PIO, 0x3f8, DIR_WRITE);
	ev(&f, t + 30, 101, EV_USEREXIT, 2, DIR_NONE);
	ev_entry(&f, t + 100, 101, 0);
	ev_exit(&f, t + 200, 101, 0, IO); /* in: exit, user, pio, entry */
	ev(&f, t + 210, 101, EV_USEREXIT, 2, DIR_NONE);
	ev(&f, t + 280, 101, EV_PIO, 0x60, DIR_READ);
	ev_entry(&f, t + 300, 101, 0);
	ev_exit(&f, t + 400, 101, 0, NPF);
	ev(&f, t + 440, 101, EV_MMIO, 0xfee000b0, DIR_WRITE);
	ev_entry(&f, t + 500, 101, 0);
	ev_exit(&f, t + 600, 101, 0, NPF);
	ev(&f, t + 610, 101, EV_MMIO, 0xd0000020, DIR_UNSATISFIED);
	ev(&f, t + 620, 101, EV_USEREXIT, 6, DIR_NONE);
	ev(&f, t + 670, 101, EV_MMIO, 0xd0000020, DIR_READ);
	ev_entry(&f, t + 700, 101, 0);
	ev_exit(&f, t + 800, 101, 0, MSR);
	ev(&f, t + 805, 101, EV_MSR, 0x6e0, DIR_WRITE);
	ev_entry(&f, t + 900, 101, 0);
	ev_exit(&f, t + 1000, 101, 0, 0x81);
	ev(&f, t + 1001, 101, EV_HYPERCALL, 77, DIR_NONE);
	ev_entry(&f, t + 1100, 101, 0);
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_IOPORT, "0x3f8:POUT", 1, 1, 90);
	check_row(s, KIND_IOPORT, "0x60:PIN", 1, 1, 20);
	check_row(s, KIND_MMIO, "0xfee000b0:W", 1, 1, 60);
	check_row(s, KIND_MMIO, "0xd0000020:R", 1, 1, 70);
	check_row(s, KIND_MSR, "0x6e0:W", 1, 1, 95);
	check_row(s, KIND_HYPERCALL, "0x4d", 1, 1, 99);
	check_row(s, KIND_USEREXIT, "KVM_EXIT_IO", 2, 2, 160);
	check_row(s, KIND_USEREXIT, "KVM_EXIT_MMIO", 1, 1, 80);
	check_row(s, KIND_VMEXIT, "npf", 2, 2, 200);
	assert_int_equal(s->kinds[KIND_MMIO].count, 2);
	assert_int_equal(s->host.unmatched, 0);
	assert_true(find_row(s, "web01", -1, KIND_MSR, "0x6e0:W")->note[0]);
	snapshot_unref(s);
	fixture_free(&f);
}

static void halts_carry_their_own_time(void **state)
{
	struct fixture f = started(1);
	struct sample w = {.tid = 101, .vcpu_id = -1, .type = EV_VCPU_WAKEUP};
	struct snapshot *s;

	(void)state;
	for (int i = 1; i <= 3; i++) {
		w.time = 1 * SEC + i * MS;
		w.aux = 1000u * (unsigned)i;
		w.dir = i == 3 ? DIR_WRITE : DIR_READ;
		feed(&f, w);
	}
	w.type = EV_HALT_POLL;
	w.time++;
	w.aux = 200000;
	feed(&f, w);
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_HALT, "polled", 2, 2, 3000);
	check_row(s, KIND_HALT, "waited", 1, 1, 3000);
	check_row(s, KIND_HALT, "poll size", 1, 1, 200000);
	assert_int_equal(s->kinds[KIND_HALT].count, 3); /* a poll size is no halt */
	near(find_row(s, "web01", -1, KIND_HALT, "waited")->now.time_pct.v, 50);
	snapshot_unref(s);
	fixture_free(&f);
}

static void doubled_and_unmatched(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 100, 101, 0, MSR);
	ev_exit(&f, 1 * SEC + 100, 101, 0, MSR); /* the same record again */
	ev_entry(&f, 1 * SEC + 200, 101, 0);
	ev_entry(&f, 1 * SEC + 250, 101, 0); /* without an exit: nothing ends */
	ev_exit(&f, 1 * SEC + 300, 101, 0, NPF); /* its entry was never seen */
	ev_exit(&f, 1 * SEC + 400, 101, 0, NPF);
	ev_entry(&f, 1 * SEC + 450, 101, 0);
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_VMEXIT, "msr", 1, 1, 100);
	check_row(s, KIND_VMEXIT, "npf", 2, 1, 50);
	assert_int_equal(s->host.unmatched, 1);
	snapshot_unref(s);
	fixture_free(&f);
}

static void vmx_flags_are_not_reasons(void **state)
{
	struct fixture f = started(1);
	struct sample e = {.tid = 101, .vcpu_id = 0, .type = EV_EXIT, .isa = ISA_VMX};
	struct snapshot *s;

	(void)state;
	for (int i = 0; i < 4; i++) {
		e.time = 1 * SEC + 100 + i * 100;
		e.key = 48 | (i & 1 ? 1u << 27 : 0) | (i == 3 ? 1u << 31 : 0);
		feed(&f, e);
		ev_entry(&f, e.time + 10, 101, 0);
	}
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_VMEXIT, "EPT_VIOLATION", 3, 3, 30);
	check_row(s, KIND_VMEXIT, "EPT_VIOLATION FAILED_VMENTRY", 1, 1, 10);
	snapshot_unref(s);
	fixture_free(&f);
}

static void late_events_count_and_are_not_timed(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC - 10, 101, 0, MSR); /* of the interval before */
	ev_entry(&f, 1 * SEC + 100, 101, 0);
	ev_exit(&f, 1 * SEC + 200, 101, 0, MSR);
	ev_entry(&f, 1 * SEC + 230, 101, 0);
	/* Out of order: behind what was seen. Counted; what is open then has no time. */
	ev_exit(&f, 1 * SEC + 400, 101, 0, NPF);
	ev_exit(&f, 1 * SEC + 300, 101, 0, NPF);
	ev_entry(&f, 1 * SEC + 500, 101, 0);
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_VMEXIT, "msr", 2, 1, 30);
	check_row(s, KIND_VMEXIT, "npf", 2, 0, 0);
	assert_int_equal(s->host.late, 1);
	near(s->vcpus[0].ex.pct.v, (100 + 30) / 1e9 * 100); /* the late one from W on */
	snapshot_unref(s);
	fixture_free(&f);
}

static void a_loss_takes_the_time_of_every_pair_it_meets(void **state)
{
	struct fixture f = started(2);
	struct loss l = {.cpu = 1, .from = 1 * SEC + 150, .to = 1 * SEC + 300, .n = 7};
	struct loss_count c = {.type = -1, .n = 3};
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 10, 101, 0, MSR); /* whole before */
	ev_entry(&f, 1 * SEC + 20, 101, 0);
	ev_exit(&f, 1 * SEC + 100, 101, 0, MSR); /* open when it begins */
	f.sink->loss(f.sink->ctx, &l);
	ev_exit(&f, 1 * SEC + 200, 102, 1, MSR); /* another thread, within */
	ev_entry(&f, 1 * SEC + 250, 102, 1);
	ev_entry(&f, 1 * SEC + 400, 101, 0);
	ev_exit(&f, 1 * SEC + 301, 102, 1, MSR); /* whole after */
	ev_entry(&f, 1 * SEC + 305, 102, 1);
	f.sink->loss_count(f.sink->ctx, &c);
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_VMEXIT, "msr", 4, 2, 14);
	assert_int_equal(s->host.lost, 10);
	assert_int_equal(s->host.lost_total, 10);
	assert_int_equal(s->vms[0].ex.lost, 2);
	assert_int_equal(s->vcpus[0].ex.lost, 1);
	assert_int_equal(s->vms[0].ex.pct.state, VALUE_PARTIAL);
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->host.lost, 0);
	assert_int_equal(s->host.lost_total, 10);
	assert_int_equal(s->vms[0].ex.pct.state, VALUE_KNOWN);
	assert_int_equal(s->vms[0].ex.lost, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Many windows: old ones are joined, so what was dropped stays dropped. */
static void a_thousand_losses(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 1, 101, 0, NPF);
	for (int i = 0; i < 1000; i++) {
		int64_t t = 1 * SEC + 1000 + i * 1000;
		struct loss l = {.from = t + 500, .to = t + 600, .n = 1};

		f.sink->loss(f.sink->ctx, &l);
	}
	ev_entry(&f, 1 * SEC + 2 * MS, 101, 0);
	ev_exit(&f, 1 * SEC + 3 * MS, 101, 0, MSR);
	ev_entry(&f, 1 * SEC + 3 * MS + 50, 101, 0);
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_VMEXIT, "npf", 1, 0, 0);
	check_row(s, KIND_VMEXIT, "msr", 1, 1, 50);
	assert_int_equal(s->host.lost, 1000);
	snapshot_unref(s);
	fixture_free(&f);
}

static void an_exit_that_stays_open_shows_while_it_is_open(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 500 * MS, 101, 0, IO);
	ev(&f, 1 * SEC + 500 * MS + 100, 101, EV_USEREXIT, 2, DIR_NONE);
	s = commit(&f, 2 * SEC);
	near(s->vcpus[0].ex.pct.v, 50);
	assert_string_equal(s->vcpus[0].ex.open, "KVM_EXIT_IO");
	near(s->vcpus[0].ex.open_ns.v, 0.5e9);
	check_row(s, KIND_VMEXIT, "io", 1, 0, 0);
	assert_int_equal(s->nfindings, 1); /* 50% of the vCPU's time */
	snapshot_unref(s);
	s = commit(&f, 3 * SEC);
	near(s->vms[0].ex.pct.v, 100);
	near(s->vms[0].ex.open_ns.v, 1.5e9);
	assert_string_equal(s->findings[0].rule, "exits");
	assert_string_equal(s->findings[1].text, "web01 vCPU 0: in exit 1.5 s (KVM_EXIT_IO)");
	snapshot_unref(s);
	ev_entry(&f, 3 * SEC + 250 * MS, 101, 0);
	s = commit(&f, 4 * SEC);
	near(s->vcpus[0].ex.pct.v, 25); /* only this interval's part */
	assert_string_equal(s->vcpus[0].ex.open, "");
	check_row(s, KIND_VMEXIT, "io", 0, 1, 1750 * MS); /* the table: when it ends */
	snapshot_unref(s);
	fixture_free(&f);
}

static void idle_exits_wait_and_do_not_handle(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 1 * MS, 101, 0, HLT);
	ev_entry(&f, 1 * SEC + 901 * MS, 101, 0);
	ev_exit(&f, 1 * SEC + 910 * MS, 101, 0, MSR);
	ev_entry(&f, 1 * SEC + 920 * MS, 101, 0);
	ev_exit(&f, 1 * SEC + 930 * MS, 101, 0, HLT);
	s = commit(&f, 2 * SEC);
	assert_true(find_row(s, "web01", -1, KIND_VMEXIT, "hlt")->idle);
	near(s->vcpus[0].ex.pct.v, 1);
	near(s->vcpus[0].ex.rate.v, 3);
	assert_string_equal(s->vms[0].ex.top, "msr");
	near(s->vms[0].ex.top_pct.v, 100);
	near(s->vms[0].ex.max.v, 10e6);
	assert_true(s->vms[0].ex.p99.v < 11e6);
	assert_string_equal(s->vcpus[0].ex.open, "");
	assert_false(value_has(s->vcpus[0].ex.open_ns));
	snapshot_unref(s);
	fixture_free(&f);
}

/* As on a KVM without kvm_entry: all is counted, times are not known, and that is said. */
static void without_entry_and_exit(void **state)
{
	struct fixture f = started(1);
	const struct snap_exit *e;
	struct snapshot *s;

	(void)state;
	commit_drop(&f, 2 * SEC);
	for (int i = 0; i < 1000; i++) {
		ev(&f, 2 * SEC + i * MS / 2 + 1, 101, EV_PIO, 0x3f8, DIR_WRITE);
		ev(&f, 2 * SEC + i * MS / 2 + 2, 101, EV_USEREXIT, 2, DIR_NONE);
	}
	s = commit(&f, 3 * SEC);
	e = find_row(s, "web01", -1, KIND_IOPORT, "0x3f8:POUT");
	assert_int_equal(e->now.count, 1000);
	assert_int_equal(e->now.timed, 0);
	assert_false(e->has_time);
	assert_int_equal(e->now.time_pct.state, VALUE_PENDING);
	assert_int_equal(s->vms[0].ex.pct.state, VALUE_NA);
	assert_int_equal(s->vms[0].ex.pct.why, WHY_NO_ENTRY_EXIT);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PARTIAL);
	near(s->vms[0].ex.rate.v, 1000); /* not 2000: one exit is both */
	/* The returns are always watched, the port only while its pane is open. */
	assert_string_equal(s->vms[0].ex.top, "KVM_EXIT_IO");
	near(s->vms[0].ex.top_pct.v, 100);
	assert_false(s->host.entry_exit);
	assert_int_equal(s->host.exit_pct.state, VALUE_NA);
	near(s->host.exits_rate.v, 1000);
	assert_int_equal(s->host.unmatched, 0);
	snapshot_unref(s);
	/* A first kvm_exit (a VM of another kind, say) proves it wrong. */
	ev_exit(&f, 3 * SEC + 10, 101, 0, MSR);
	ev_entry(&f, 3 * SEC + 20, 101, 0);
	s = commit(&f, 4 * SEC);
	assert_true(s->host.entry_exit);
	assert_int_equal(s->vms[0].ex.pct.state, VALUE_KNOWN);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Accesses are opened when it shows that there is no kvm_exit: rates come an interval later. */
static void accesses_that_were_just_opened(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	f.sink->kinds(f.sink->ctx, KIND_BIT(KIND_VMEXIT), true, 1 * SEC + 1);
	commit_drop(&f, 2 * SEC);
	for (int i = 0; i < 1000; i++)
		ev(&f, 2 * SEC + i * MS / 2 + 1, 101, EV_PIO, 0x3f8, DIR_WRITE);
	f.sink->kinds(f.sink->ctx, KIND_ALL, true, 2 * SEC + 500 * MS);
	s = commit(&f, 3 * SEC);
	assert_int_equal(s->vms[0].ex.pct.state, VALUE_NA);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PENDING);
	assert_int_equal(s->host.exits_rate.state, VALUE_PENDING);
	snapshot_unref(s);
	s = commit(&f, 4 * SEC);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PARTIAL);
	snapshot_unref(s);
	/* Nor are they now. */
	f.sink->kinds(f.sink->ctx, KIND_BIT(KIND_VMEXIT), true, 4 * SEC + 1);
	s = commit(&f, 5 * SEC);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_NA);
	assert_int_equal(s->host.exits_rate.state, VALUE_NA);
	snapshot_unref(s);
	fixture_free(&f);
}

static void nothing_seen_is_not_zero(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PENDING);
	assert_int_equal(s->vms[0].ex.pct.state, VALUE_PENDING);
	snapshot_unref(s);
	ev_exit(&f, 2 * SEC + 1, 101, 0, MSR);
	ev_entry(&f, 2 * SEC + 2, 101, 0);
	commit_drop(&f, 3 * SEC);
	s = commit(&f, 4 * SEC); /* known to work, and quiet: now it is 0 */
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_KNOWN);
	near(s->vms[0].ex.rate.v, 0);
	assert_int_equal(s->vms[0].ex.p99.state, VALUE_PENDING); /* of no exit there is none */
	snapshot_unref(s);
	fixture_free(&f);
}

static void kinds_opened_and_closed(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 100, 101, 0, IO);
	ev(&f, 1 * SEC + 110, 101, EV_PIO, 0x60, DIR_READ);
	f.sink->kinds(f.sink->ctx, KIND_BIT(KIND_VMEXIT), true, 1 * SEC + 150);
	ev_entry(&f, 1 * SEC + 200, 101, 0); /* ends the exit, not the access */
	s = commit(&f, 2 * SEC);
	check_row(s, KIND_VMEXIT, "io", 1, 1, 100);
	check_row(s, KIND_IOPORT, "0x60:PIN", 1, 0, 0);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x60:PIN")->now.rate.state,
			 VALUE_NA);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x60:PIN")->now.low, WHY_NOT_OPEN);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "io")->now.low, WHY_NONE);
	assert_int_equal(s->open_kinds, KIND_BIT(KIND_VMEXIT));
	snapshot_unref(s);
	/* Closed with an exit open: it must not look like one that lasts. */
	ev_exit(&f, 2 * SEC + 100, 101, 0, IO);
	f.sink->kinds(f.sink->ctx, 0, false, 2 * SEC + 200);
	s = commit(&f, 3 * SEC);
	assert_string_equal(s->vcpus[0].ex.open, "");
	assert_int_equal(s->vcpus[0].ex.pct.state, VALUE_NA);
	assert_int_equal(s->vcpus[0].ex.pct.why, WHY_NOT_OPEN);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "io")->now.low, WHY_NOT_OPEN);
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x60:PIN")->now.low, WHY_NONE);
	snapshot_unref(s);
	f.sink->kinds(f.sink->ctx, KIND_BIT(KIND_VMEXIT), true, 3 * SEC + 100);
	s = commit(&f, 4 * SEC); /* open for a part of it only */
	assert_int_equal(s->vcpus[0].ex.pct.state, VALUE_PENDING);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "io")->now.low, WHY_NOT_OPEN);
	assert_int_equal(s->open_kinds, 0);
	snapshot_unref(s);
	s = commit(&f, 5 * SEC);
	assert_int_equal(s->vcpus[0].ex.pct.state, VALUE_KNOWN);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "io")->now.low, WHY_NONE);
	snapshot_unref(s);
	fixture_free(&f);
}

/* 30 ports on a table of 4 keys a vCPU and 6 a VM: no event is missing from any sum. */
static void what_does_not_fit_is_in_other(void **state)
{
	struct fixture f = fixture_new(4, 6);
	struct demand d = {.exits_all_vcpus = true};
	int64_t t = 1 * SEC;
	uint64_t total = 0;

	(void)state;
	fixture_vm(&f, "web01", 100, 2);
	model_demand(f.m, &d);
	commit_drop(&f, t);
	for (int round = 0; round < 6; round++) {
		uint64_t count[3] = {0}, time[3] = {0}, all[3] = {0};
		struct snapshot *s;

		for (int i = 0; i < 300; i++) {
			int tid = 101 + (i & 1);
			/* The busy keys change from round to round. */
			unsigned port = (unsigned)(i % 3 ? (i + round * 7) % 30 : round * 5 % 30);

			t += 10000;
			ev_exit(&f, t, tid, tid - 101, IO);
			ev(&f, t + 1000, tid, EV_PIO, port, DIR_WRITE);
			ev_entry(&f, t + 3000, tid, tid - 101);
			total++;
		}
		s = commit(&f, t += SEC);
		for (size_t i = 0; i < s->nexits; i++) {
			const struct snap_exit *e = &s->exits[i];

			if (e->kind != KIND_IOPORT || e->vm == SNAP_NO_VM)
				continue;
			count[e->vcpu + 1] += e->now.count;
			time[e->vcpu + 1] += e->now.time_ns;
			all[e->vcpu + 1] += e->total.count;
		}
		assert_int_equal(count[0], 300);
		assert_int_equal(count[1] + count[2], 300);
		assert_int_equal(time[0], 300 * 2000);
		assert_int_equal(time[1] + time[2], 300 * 2000);
		assert_int_equal(all[0], total);
		assert_int_equal(all[1] + all[2], total);
		assert_int_equal(s->kinds[KIND_IOPORT].count, 300);
		assert_int_equal(s->kinds_total[KIND_IOPORT].count, total);
		assert_non_null(find_row(s, "web01", -1, KIND_IOPORT, "other"));
		snapshot_unref(s);
	}
	fixture_free(&f);
}

/* Old keys that fell silent make room for one that became busy. */
static void a_busy_newcomer_gets_its_row(void **state)
{
	struct fixture f = fixture_new(4, 6);
	int64_t t = 1 * SEC;
	struct snapshot *s = NULL;

	(void)state;
	fixture_vm(&f, "web01", 100, 1);
	commit_drop(&f, t);
	for (int round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 100; i++)
			ev(&f, t + 1 + i, 101, EV_PIO, round ? 0x999 : i % 20, DIR_WRITE);
		snapshot_unref(s);
		s = commit(&f, t += SEC);
	}
	assert_int_equal(find_row(s, "web01", -1, KIND_IOPORT, "0x999:POUT")->now.count, 100);
	assert_int_equal(s->kinds_total[KIND_IOPORT].count, 500);
	snapshot_unref(s);
	fixture_free(&f);
}

static void totals_go_on_and_are_reset(void **state)
{
	struct fixture f = started(1);
	const struct snap_exit *e;
	struct snapshot *s;

	(void)state;
	for (int k = 1; k <= 3; k++) {
		ev_exit(&f, k * SEC + 100, 101, 0, MSR);
		ev_entry(&f, k * SEC + 100 + k * US, 101, 0);
		s = commit(&f, (k + 1) * SEC);
		e = find_row(s, "web01", -1, KIND_VMEXIT, "msr");
		assert_int_equal(e->now.count, 1);
		assert_int_equal(e->now.time_ns, k * US);
		assert_int_equal(e->total.count, k);
		assert_int_equal(e->total.time_ns, k * (k + 1) / 2 * US);
		assert_int_equal(e->total.min_ns, US);
		assert_int_equal(e->total.max_ns, k * US);
		near(e->total.rate.v, 1);
		assert_int_equal(s->kinds_total[KIND_VMEXIT].count, k);
		snapshot_unref(s);
	}
	model_reset(f.m);
	s = commit(&f, 5 * SEC);
	assert_null(find_row(s, "web01", -1, KIND_VMEXIT, "msr"));
	assert_int_equal(s->kinds_total[KIND_VMEXIT].count, 0);
	snapshot_unref(s);
	ev_exit(&f, 5 * SEC + 100, 101, 0, MSR);
	ev_entry(&f, 5 * SEC + 200, 101, 0);
	s = commit(&f, 6 * SEC);
	e = find_row(s, "web01", -1, KIND_VMEXIT, "msr");
	assert_int_equal(e->total.count, 1);
	assert_int_equal(e->total.min_ns, 100);
	near(e->total.rate.v, 0.5); /* two seconds since the reset */
	snapshot_unref(s);
	fixture_free(&f);
}

/* A watermark that stands still or steps back makes no interval, and no figure of one. */
static void time_that_does_not_pass(void **state)
{
	struct fixture f = started(1);
	struct snapshot *s;

	(void)state;
	ev_exit(&f, 1 * SEC + 100, 101, 0, MSR);
	ev_entry(&f, 1 * SEC + 200, 101, 0);
	s = commit(&f, 1 * SEC);
	assert_int_equal(s->dt, 0);
	assert_int_equal(s->vms[0].ex.rate.state, VALUE_PENDING);
	snapshot_unref(s);
	s = commit(&f, 1 * SEC - 500);
	assert_int_equal(s->dt, 0);
	snapshot_unref(s);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->dt, 1 * SEC + 500);
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "msr")->total.count, 1);
	snapshot_unref(s);
	fixture_free(&f);
}

/* Rows and heat a vCPU only for those who look; the VM's always. */
static void rows_of_vcpus_on_demand(void **state)
{
	struct fixture f = started(2);
	struct demand d = {0};
	const struct snap_exit *e;
	struct snapshot *s;
	uint64_t heat = 0;

	(void)state;
	d.vm = inventory_first(f.inv)->id;
	ev_exit(&f, 1 * SEC + 100, 102, 1, MSR);
	ev_entry(&f, 1 * SEC + 200, 102, 1);
	s = commit(&f, 2 * SEC);
	assert_int_equal(s->nexits, 2); /* the VM's, and the host's */
	assert_int_equal(s->vms[0].ex.n, 1);
	assert_int_equal(s->host.ex.n, 1);
	e = &s->exits[s->vms[0].ex.first];
	assert_non_null(e->heat);
	for (int i = 0; i < HEAT_BUCKETS; i++)
		heat += e->heat[i];
	assert_int_equal(heat, 1);
	snapshot_unref(s);
	model_demand(f.m, &d);
	commit_drop(&f, 3 * SEC); /* from now on histograms are kept a key */
	ev_exit(&f, 3 * SEC + 100, 102, 1, MSR);
	ev_entry(&f, 3 * SEC + 300, 102, 1);
	s = commit(&f, 4 * SEC);
	e = find_row(s, "web01", 1, KIND_VMEXIT, "msr");
	assert_non_null(e);
	assert_int_equal(e->total.count, 2); /* counted before somebody looked, too */
	assert_int_equal(e->now.pctl, PCTL_ALL);
	assert_int_equal(e->total.pctl, PCTL_PART); /* but of the first there is no histogram */
	assert_int_equal(find_row(s, "web01", -1, KIND_VMEXIT, "msr")->total.pctl, PCTL_ALL);
	assert_true(e->now.p50_ns > 190 && e->now.p50_ns < 210);
	assert_non_null(e->heat);
	assert_int_equal(s->vcpus[1].ex.n, 1);
	assert_ptr_equal(&s->exits[s->vcpus[1].ex.first], e);
	snapshot_unref(s);
	d.vm = 0;
	model_demand(f.m, &d);
	s = commit(&f, 5 * SEC);
	assert_int_equal(s->vcpus[1].ex.n, 0);
	snapshot_unref(s);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_commit_is_a_baseline),
		cmocka_unit_test(an_exit_ends_with_its_entry),
		cmocka_unit_test(accesses_begin_and_end_as_they_are_seen),
		cmocka_unit_test(halts_carry_their_own_time),
		cmocka_unit_test(doubled_and_unmatched),
		cmocka_unit_test(vmx_flags_are_not_reasons),
		cmocka_unit_test(late_events_count_and_are_not_timed),
		cmocka_unit_test(a_loss_takes_the_time_of_every_pair_it_meets),
		cmocka_unit_test(a_thousand_losses),
		cmocka_unit_test(an_exit_that_stays_open_shows_while_it_is_open),
		cmocka_unit_test(idle_exits_wait_and_do_not_handle),
		cmocka_unit_test(without_entry_and_exit),
		cmocka_unit_test(accesses_that_were_just_opened),
		cmocka_unit_test(nothing_seen_is_not_zero),
		cmocka_unit_test(kinds_opened_and_closed),
		cmocka_unit_test(what_does_not_fit_is_in_other),
		cmocka_unit_test(a_busy_newcomer_gets_its_row),
		cmocka_unit_test(totals_go_on_and_are_reset),
		cmocka_unit_test(time_that_does_not_pass),
		cmocka_unit_test(rows_of_vcpus_on_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
