// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exit rows of the host: the tallies of all VMs merged, against a merge made here from the
 * single times.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "hist.h"
#include "model_fixture.h"

#define NPF 0x400
#define IO 0x7b
#define MSR 0x7c
#define HLT 0x78

/* What a row must say, from each single time. */
struct truth {
	uint64_t n, sum, min, max;
	double mean, m2; /* Welford */
	struct hist hist;
};

static void truth_add(struct truth *t, uint64_t ns)
{
	double d = (double)ns - t->mean;

	if (!t->n || ns < t->min)
		t->min = ns;
	if (ns > t->max)
		t->max = ns;
	t->n++;
	t->sum += ns;
	t->mean += d / (double)t->n;
	t->m2 += d * ((double)ns - t->mean);
	assert_int_equal(hist_add(&t->hist, ns, 1), 0);
}

static void near(double a, double b, double share)
{
	if (fabs(a - b) > share * fabs(b) + 1e-12)
		fail_msg("%.12g is not %.12g", a, b);
}

static void is_truth(const struct tally *got, const struct truth *want)
{
	double n = (double)want->n, se = 0;

	if (want->n > 1)
		se = 100 * sqrt(want->m2 / (n - 1) / n) / want->mean;
	assert_int_equal(got->count, want->n);
	assert_int_equal(got->timed, want->n);
	assert_int_equal(got->time_ns, want->sum);
	assert_int_equal(got->min_ns, want->min);
	assert_int_equal(got->max_ns, want->max);
	near(got->avg_ns, want->mean, 1e-9);
	near(got->stderr_pct, se, 1e-6);
	assert_int_equal(got->pctl, PCTL_ALL);
	assert_int_equal(got->p50_ns, hist_quantile(&want->hist, 0.5));
	assert_int_equal(got->p99_ns, hist_quantile(&want->hist, 0.99));
	assert_int_equal(got->p999_ns, hist_quantile(&want->hist, 0.999));
}

struct host {
	struct fixture f;
	int64_t t;
	uint32_t seed;
};

static struct host host_new(unsigned vcpu_keys, unsigned vm_keys, int vms, int vcpus)
{
	struct host h = {.f = fixture_new(vcpu_keys, vm_keys), .t = SEC, .seed = 7};
	char name[16];

	for (int i = 0; i < vms; i++) {
		snprintf(name, sizeof(name), "vm%d", i);
		fixture_vm(&h.f, name, 100 * (i + 1), vcpus);
	}
	commit_drop(&h.f, h.t);
	return h;
}

static uint32_t some(struct host *h, uint32_t below)
{
	h->seed = h->seed * 1664525u + 1013904223u;
	return (h->seed >> 8) % below;
}

static void an_exit(struct host *h, int vm, int vcpu, uint64_t reason, int64_t ns)
{
	int tid = 100 * (vm + 1) + 1 + vcpu;

	h->t += 1000;
	ev_exit(&h->f, h->t, tid, vcpu, reason);
	ev_entry(&h->f, h->t += ns, tid, vcpu);
}

static struct snapshot *next(struct host *h)
{
	h->t += SEC;
	return commit(&h->f, h->t);
}

static const struct snap_exit *host_row(const struct snapshot *s, enum kvm_kind kind,
					const char *name)
{
	return find_row(s, NULL, -1, kind, name);
}

/* Every time is once in a VM's row and once in the host's, with all figures that follow from it. */
static void a_row_is_the_merge_of_all_vms(void **state)
{
	static const uint64_t reasons[] = {NPF, IO, MSR, HLT};
	static const char *const names[] = {"npf", "io", "msr", "hlt"};
	struct host h = host_new(8, 64, 5, 3);
	struct truth total[4] = {0};

	(void)state;
	for (int round = 0; round < 3; round++) {
		struct truth now[4] = {0};
		struct snapshot *s;
		double shares = 0;

		for (int i = 0; i < 3000; i++) {
			unsigned r = some(&h, 4);
			/* Each VM has a speed of its own, so that min and max are of different
			 * ones. */
			int vm = (int)some(&h, 5);
			uint64_t ns = (100ull << some(&h, 12)) * (unsigned)(vm + 1) + some(&h, 99);

			an_exit(&h, vm, (int)some(&h, 3), reasons[r], (int64_t)ns);
			truth_add(&now[r], ns);
			truth_add(&total[r], ns);
		}
		s = next(&h);
		assert_int_equal(s->host.ex.n, 4);
		for (int r = 0; r < 4; r++) {
			const struct snap_exit *e = host_row(s, KIND_VMEXIT, names[r]);

			assert_non_null(e);
			assert_true(e->idle == (reasons[r] == HLT) && e->has_time && !e->other);
			assert_int_equal(e->vcpu, -1);
			assert_non_null(e->heat);
			is_truth(&e->now, &now[r]);
			is_truth(&e->total, &total[r]);
			near(e->now.rate.v, (double)e->now.count / ((double)s->dt / 1e9), 1e-9);
			shares += e->now.count_pct.v;
			hist_free(&now[r].hist);
		}
		near(shares, 100, 1e-9);
		snapshot_unref(s);
	}
	for (int r = 0; r < 4; r++)
		hist_free(&total[r].hist);
	fixture_free(&h.f);
}

/* The host's own figures: waiting is no handling, here as in a VM. */
static void figures_leave_idle_out(void **state)
{
	struct host h = host_new(8, 64, 2, 1);
	struct snapshot *s;

	(void)state;
	an_exit(&h, 0, 0, MSR, 1000);
	an_exit(&h, 1, 0, MSR, 3000);
	an_exit(&h, 1, 0, IO, 500);
	an_exit(&h, 0, 0, HLT, 900 * MS);
	s = next(&h);
	assert_string_equal(s->host.ex.top, "msr");
	near(s->host.ex.top_pct.v, 100.0 * 4000 / 4500, 1e-9);
	near(s->host.ex.max.v, 3000, 0);
	assert_true(s->host.ex.p99.v < 3200);
	near(s->host.ex.rate.v, 4 / ((double)s->dt / 1e9), 1e-9);
	assert_true(s->host.ex.pct.v == s->host.exit_pct.v);
	assert_string_equal(s->host.ex.open, "");
	snapshot_unref(s);
	fixture_free(&h.f);
}

/* One key is one row a direction and instruction set. */
static void directions_and_isas_are_apart(void **state)
{
	struct host h = host_new(8, 64, 2, 1);
	struct snapshot *s;

	(void)state;
	ev(&h.f, h.t + 1, 101, EV_PIO, 0x3f8, DIR_WRITE);
	ev(&h.f, h.t + 2, 201, EV_PIO, 0x3f8, DIR_WRITE);
	ev(&h.f, h.t + 3, 201, EV_PIO, 0x3f8, DIR_READ);
	ev_exit(&h.f, h.t + 4, 101, 0, 10);
	feed(&h.f,
	     (struct sample){
		     .time = h.t + 5, .tid = 201, .type = EV_EXIT, .key = 10, .isa = ISA_VMX});
	s = next(&h);
	assert_int_equal(host_row(s, KIND_IOPORT, "0x3f8:POUT")->now.count, 2);
	assert_int_equal(host_row(s, KIND_IOPORT, "0x3f8:PIN")->now.count, 1);
	assert_int_equal(s->host.ex.n, 4);
	assert_int_equal(host_row(s, KIND_VMEXIT, "CPUID")->now.count, 1);
	snapshot_unref(s);
	fixture_free(&h.f);
}

static void totals_outlive_their_vm_and_are_reset(void **state)
{
	struct host h = host_new(8, 64, 2, 1);
	const struct snap_exit *e;
	struct snapshot *s;

	(void)state;
	an_exit(&h, 0, 0, MSR, 100);
	an_exit(&h, 1, 0, MSR, 700);
	an_exit(&h, 0, 0, IO, 50);
	commit_drop(&h.f, h.t += SEC);
	an_exit(&h, 0, 0, MSR, 300);
	inventory_vm_gone(h.f.inv, inventory_first(h.f.inv));
	s = next(&h); /* its last interval */
	inventory_sweep(h.f.inv);
	assert_int_equal(host_row(s, KIND_VMEXIT, "msr")->now.count, 1);
	snapshot_unref(s);
	an_exit(&h, 1, 0, MSR, 900);
	s = next(&h);
	assert_int_equal(s->nvms, 1);
	e = host_row(s, KIND_VMEXIT, "msr");
	assert_int_equal(e->now.count, 1);
	assert_int_equal(e->total.count, 4);
	assert_int_equal(e->total.time_ns, 2000);
	assert_int_equal(e->total.min_ns, 100);
	assert_int_equal(e->total.max_ns, 900);
	assert_int_equal(host_row(s, KIND_VMEXIT, "io")->total.count, 1);
	assert_int_equal(host_row(s, KIND_VMEXIT, "io")->now.count, 0);
	snapshot_unref(s);
	model_reset(h.f.m);
	s = next(&h);
	assert_int_equal(s->host.ex.n, 0);
	snapshot_unref(s);
	an_exit(&h, 1, 0, MSR, 400);
	s = next(&h);
	assert_int_equal(host_row(s, KIND_VMEXIT, "msr")->total.count, 1);
	assert_int_equal(host_row(s, KIND_VMEXIT, "msr")->total.max_ns, 400);
	snapshot_unref(s);
	fixture_free(&h.f);
}

/*
 * Three VMs with six ports each, of which a VM and the host have room for four, and the busy ones
 * change: no sum is off by one, and what has a row is no less than in the VMs that have it too.
 */
static void other_keeps_the_sums(void **state)
{
	struct host h = host_new(3, 4, 3, 2);
	uint64_t all = 0;

	(void)state;
	for (int round = 0; round < 12; round++) {
		uint64_t count = 0, time = 0, total = 0, others = 0;
		struct snapshot *s;

		for (int i = 0; i < 600; i++) {
			int vm = i % 3, vcpu = (int)some(&h, 2), tid = 100 * (vm + 1) + 1 + vcpu;
			unsigned port = some(&h, 3) ? (unsigned)(round / 3 + vm) % 9 : some(&h, 9);

			ev_exit(&h.f, h.t += 5000, tid, vcpu, IO);
			ev(&h.f, h.t + 100, tid, EV_PIO, port, DIR_WRITE);
			ev_entry(&h.f, h.t + 2100, tid, vcpu);
			all++;
		}
		s = next(&h);
		for (uint32_t i = 0; i < s->host.ex.n; i++) {
			const struct snap_exit *e = &s->exits[s->host.ex.first + i];
			uint64_t in_vms = 0;

			assert_int_equal(e->vm, SNAP_NO_VM);
			if (e->kind != KIND_IOPORT)
				continue;
			count += e->now.count;
			time += e->now.time_ns;
			total += e->total.count;
			others += e->other;
			for (int vm = 0; vm < 3; vm++) {
				const struct snap_exit *x =
					find_row(s, s->vms[vm].name, -1, KIND_IOPORT, e->name);

				in_vms += x && !x->other ? x->now.count : 0;
			}
			assert_true(e->other || e->now.count == in_vms);
		}
		assert_int_equal(count, 600);
		assert_int_equal(time, 600 * 2000);
		assert_int_equal(total, all);
		assert_int_equal(others, 1);
		assert_int_equal(s->kinds[KIND_IOPORT].count, 600);
		snapshot_unref(s);
	}
	fixture_free(&h.f);
}

/* Keys that fell silent make room; the VMs' cells do not go on adding to the row they had. */
static void a_busy_newcomer_gets_its_row(void **state)
{
	struct host h = host_new(8, 4, 2, 1);
	struct snapshot *s = NULL;

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 100; i++) {
			ev(&h.f, h.t + 1 + i, 101, EV_PIO, round ? 0x10 : i % 4, DIR_WRITE);
			ev(&h.f, h.t + 1 + i, 201, EV_PIO, round ? 0x20 : i % 4, DIR_WRITE);
		}
		snapshot_unref(s);
		s = next(&h);
	}
	assert_int_equal(host_row(s, KIND_IOPORT, "0x10:POUT")->now.count, 100);
	assert_int_equal(host_row(s, KIND_IOPORT, "0x20:POUT")->now.count, 100);
	assert_int_equal(s->kinds_total[KIND_IOPORT].count, 1000);
	snapshot_unref(s);
	fixture_free(&h.f);
}

/* What an unknown thread did moves to its VM; for the host it happened once. */
static void found_later_is_counted_once(void **state)
{
	struct host h = host_new(8, 64, 1, 1);
	struct inv_vm *vm;
	struct snapshot *s;

	(void)state;
	for (int i = 0; i < 3; i++)
		ev(&h.f, h.t + 100 + i, 501, EV_PIO, 0x3f8, DIR_WRITE);
	s = next(&h);
	assert_int_equal(host_row(s, KIND_IOPORT, "0x3f8:POUT")->now.count, 3);
	snapshot_unref(s);
	vm = fixture_vm(&h.f, "late", 500, 1);
	ev(&h.f, h.t + 100, 501, EV_PIO, 0x3f8, DIR_WRITE);
	s = next(&h);
	assert_int_equal(find_row(s, vm->name, -1, KIND_IOPORT, "0x3f8:POUT")->total.count, 4);
	assert_int_equal(host_row(s, KIND_IOPORT, "0x3f8:POUT")->total.count, 4);
	assert_int_equal(host_row(s, KIND_IOPORT, "0x3f8:POUT")->now.count, 1);
	snapshot_unref(s);
	fixture_free(&h.f);
}

/* Poll sizes have their row and are in no share. */
static void a_poll_size_is_no_halt(void **state)
{
	struct host h = host_new(8, 64, 2, 1);
	struct snapshot *s;
	unsigned rows = 0;

	(void)state;
	for (int tid = 101; tid <= 201; tid += 100) {
		feed(&h.f, (struct sample){.time = h.t + 10,
					   .tid = tid,
					   .vcpu_id = 0,
					   .type = EV_VCPU_WAKEUP,
					   .dir = DIR_WRITE,
					   .aux = 5000});
		feed(&h.f, (struct sample){.time = h.t + 20,
					   .tid = tid,
					   .vcpu_id = 0,
					   .type = EV_HALT_POLL,
					   .aux = 200000});
	}
	s = next(&h);
	for (uint32_t i = 0; i < s->host.ex.n; i++) {
		const struct snap_exit *e = &s->exits[s->host.ex.first + i];

		assert_int_equal(e->kind, KIND_HALT);
		assert_int_equal(e->now.count, 2);
		assert_true(value_has(e->now.count_pct) == (e->dir != DIR_NONE));
		rows++;
	}
	assert_int_equal(rows, 2);
	assert_int_equal(s->kinds[KIND_HALT].count, 2);
	snapshot_unref(s);
	fixture_free(&h.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_the_merge_of_all_vms),
		cmocka_unit_test(figures_leave_idle_out),
		cmocka_unit_test(directions_and_isas_are_apart),
		cmocka_unit_test(totals_outlive_their_vm_and_are_reset),
		cmocka_unit_test(other_keeps_the_sums),
		cmocka_unit_test(a_busy_newcomer_gets_its_row),
		cmocka_unit_test(found_later_is_counted_once),
		cmocka_unit_test(a_poll_size_is_no_halt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
