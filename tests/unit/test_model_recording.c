// SPDX-License-Identifier: GPL-2.0-only
/*
 * A real recording through the model: counts and times must be those that a plain pairing of the
 * same text gives (they were computed apart from this code, see tests/data/ftrace).
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "hist.h"
#include "model_fixture.h"

#define RECORDING "tests/data/ftrace/kvm-6.1-svm.txt"

static uint64_t number_after(const char *text, const char *mark)
{
	const char *p = strstr(text, mark);

	return p ? strtoull(p + strlen(mark), NULL, 0) : 0;
}

static uint64_t svm_reason(const char *text)
{
	static const struct {
		const char *name;
		uint64_t reason;
	} names[] = {{"cpuid ", 0x72}, {"io ", 0x7b},	 {"npf ", 0x400},     {"msr ", 0x7c},
		     {"hlt ", 0x78},   {"vintr ", 0x64}, {"interrupt ", 0x60}};
	const char *p = strstr(text, "reason ");

	for (size_t i = 0; p && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(p + 7, names[i].name, strlen(names[i].name)))
			return names[i].reason;
	fail_msg("no reason in: %s", text);
	return 0;
}

/* What stands behind "kvm_exit: " of a line; false: an event that the model does not take. */
static bool read_event(const char *p, struct sample *s)
{
	s->vcpu_id = -1;
	if (!strncmp(p, "kvm_exit: ", 10)) {
		s->type = EV_EXIT;
		s->isa = ISA_SVM;
		s->key = svm_reason(p);
		s->vcpu_id = (int32_t)number_after(p, "vcpu ");
	} else if (!strncmp(p, "kvm_entry: ", 11)) {
		s->type = EV_ENTRY;
		s->vcpu_id = (int32_t)number_after(p, "vcpu ");
	} else if (!strncmp(p, "kvm_pio: ", 9)) {
		s->type = EV_PIO;
		s->dir = strstr(p, "pio_write") ? DIR_WRITE : DIR_READ;
		s->key = number_after(p, " at ");
	} else if (!strncmp(p, "kvm_mmio: ", 10)) {
		s->type = EV_MMIO;
		s->dir = strstr(p, "unsatisfied")  ? DIR_UNSATISFIED
			 : strstr(p, "mmio write") ? DIR_WRITE
						   : DIR_READ;
		s->key = number_after(p, " gpa ");
	} else if (!strncmp(p, "kvm_userspace_exit: ", 20)) {
		s->type = EV_USEREXIT;
		s->key = number_after(p, "(");
	} else {
		return false;
	}
	return true;
}

/* "  CPU 0/KVM-146  [001] .....  13.238646: kvm_exit: …" */
static bool read_line(const char *line, struct sample *s)
{
	const char *cpu = strstr(line, " ["), *p, *dash;
	unsigned sec, us;

	memset(s, 0, sizeof(*s));
	p = strstr(line, ": kvm_");
	if (line[0] == '#' || !cpu || !p)
		return false;
	for (dash = cpu; dash > line && *dash != '-';)
		dash--;
	s->tid = atoi(dash + 1);
	s->cpu = (uint16_t)atoi(cpu + 2);
	while (p[-1] != ' ')
		p--;
	if (sscanf(p, "%u.%u", &sec, &us) != 2)
		return false;
	s->time = sec * SEC + us * US;
	return read_event(strstr(p, ": kvm_") + 2, s);
}

static size_t read_recording(struct sample **out)
{
	FILE *f = fopen(RECORDING, "r");
	char line[512];
	size_t n = 0;

	assert_non_null(f);
	*out = calloc(1100, sizeof(**out));
	while (n < 1100 && fgets(line, sizeof(line), f))
		n += read_line(line, &(*out)[n]);
	fclose(f);
	return n;
}

static const struct {
	enum kvm_kind kind;
	const char *name;
	uint64_t count, timed, sum_us, min_us, max_us;
} truth[] = {
	{KIND_VMEXIT, "cpuid", 82, 82, 33314, 23, 13095},
	{KIND_VMEXIT, "hlt", 19, 19, 13573, 29, 6934},
	{KIND_VMEXIT, "interrupt", 121, 120, 315826, 8, 20441},
	{KIND_VMEXIT, "io", 40, 39, 48829, 56, 21672},
	{KIND_VMEXIT, "msr", 38, 38, 23162, 36, 12116},
	{KIND_VMEXIT, "npf", 63, 63, 39463, 41, 12566},
	{KIND_VMEXIT, "vintr", 22, 22, 820, 15, 161},
	{KIND_MMIO, "0xd0000010:W", 19, 19, 1764, 50, 207},
	{KIND_MMIO, "0xd0000020:R", 19, 19, 8746, 75, 4665},
	{KIND_MMIO, "0xfee000b0:W", 25, 25, 1230, 14, 283},
	{KIND_IOPORT, "0x3f8:POUT", 20, 20, 46145, 100, 21659},
	{KIND_IOPORT, "0x60:PIN", 19, 19, 353, 9, 60},
	{KIND_USEREXIT, "KVM_EXIT_IO", 40, 39, 46077, 35, 21587},
	{KIND_USEREXIT, "KVM_EXIT_MMIO", 38, 38, 25558, 28, 12468},
};
#define NTRUTH (sizeof(truth) / sizeof(truth[0]))

static void check_truth(const struct snapshot *s, bool total)
{
	for (size_t i = 0; i < NTRUTH; i++) {
		const struct snap_exit *e = find_row(s, "vmm", -1, truth[i].kind, truth[i].name);
		const struct tally *t;

		if (!e)
			fail_msg("no row %s", truth[i].name);
		t = total ? &e->total : &e->now;
		if (t->count != truth[i].count || t->timed != truth[i].timed ||
		    t->time_ns != truth[i].sum_us * 1000 || t->min_ns != truth[i].min_us * 1000 ||
		    t->max_ns != truth[i].max_us * 1000)
			fail_msg("%s: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
				 truth[i].name, t->count, t->timed, t->time_ns, t->min_ns,
				 t->max_ns);
	}
}

static struct fixture recorded_host(void)
{
	struct fixture f = fixture_new(16, 64);

	fixture_vm(&f, "vmm", 145, 3);
	return f;
}

static void one_interval(void **state)
{
	struct fixture f = recorded_host();
	struct sample *ev;
	size_t n = read_recording(&ev);
	struct snapshot *s;

	(void)state;
	assert_int_equal(n, 969);
	commit_drop(&f, ev[0].time - 1);
	f.sink->samples(f.sink->ctx, ev, n);
	s = commit(&f, ev[n - 1].time + 1);
	check_truth(s, false);
	assert_int_equal(s->host.late + s->host.lost, 0);
	assert_int_equal(s->nvms, 1);
	assert_int_equal(s->vcpus[0].ex.n, 0); /* nobody asked for rows of vCPUs */
	snapshot_unref(s);
	free(ev);
	fixture_free(&f);
}

/* Cut into intervals in the middle of pairs: totals are the same to the last nanosecond. */
static void many_intervals_have_the_same_totals(void **state)
{
	struct fixture f = recorded_host();
	struct sample *ev;
	size_t n = read_recording(&ev);
	struct snapshot *s = NULL;
	double in_exits = 0, whole = 0;

	(void)state;
	commit_drop(&f, ev[0].time - 1);
	for (size_t i = 0; i < n; i += 7) {
		size_t k = n - i < 7 ? n - i : 7;

		f.sink->samples(f.sink->ctx, ev + i, k);
		snapshot_unref(s);
		s = commit(&f, ev[i + k - 1].time);
		if (value_has(s->vms[0].ex.pct)) {
			in_exits += s->vms[0].ex.pct.v / 100 * (double)s->dt * 3;
			whole += (double)s->dt * 3;
		}
	}
	check_truth(s, true);
	/* %EXIT over all intervals is the time of the exits, idle ones left out, and those open. */
	assert_true(in_exits >= 461414e3 && in_exits < 461414e3 + 30e6 && whole > in_exits);
	snapshot_unref(s);
	free(ev);
	fixture_free(&f);
}

/* What a source that counts in the kernel would have handed over for the same events. */
static void aggregates_give_the_same_rows(void **state)
{
	struct fixture f = recorded_host(), g = recorded_host();
	struct sample *ev;
	size_t n = read_recording(&ev);
	struct demand d = {.exits_all_vcpus = true};
	struct snapshot *a, *b;

	(void)state;
	model_demand(f.m, &d);
	model_demand(g.m, &d);
	commit_drop(&f, ev[0].time - 1);
	commit_drop(&g, ev[0].time - 1);
	f.sink->samples(f.sink->ctx, ev, n);
	a = commit(&f, 20 * SEC);
	for (size_t i = 0; i < a->nexits; i++) {
		const struct snap_exit *e = &a->exits[i];
		struct hist h = {0};
		struct aggregate agg = {
			.vcpu_id = -1,
			.kind = e->kind,
			.dir = e->dir,
			.isa = e->isa,
			.key = e->key,
			.count = e->now.count,
			.timed = e->now.timed,
			.sum_ns = e->now.time_ns,
			.min_ns = e->now.min_ns,
			.max_ns = e->now.max_ns,
			.hist = &h,
		};
		double mean = e->now.avg_ns, se = e->now.stderr_pct / 100 * mean;
		double k = (double)e->now.timed;

		if (e->vcpu < 0)
			continue;
		agg.tid = a->vcpus[e->vcpu].tid;
		agg.sumsq = (unsigned __int128)(se * se * k * (k - 1) + k * mean * mean);
		hist_add(&h, e->now.p50_ns, (uint32_t)e->now.timed);
		g.sink->aggregates(g.sink->ctx, &agg, 1);
		hist_free(&h);
	}
	b = commit(&g, 20 * SEC);
	assert_int_equal(a->nexits, b->nexits);
	check_truth(b, false);
	for (size_t i = 0; i < a->nexits; i++) {
		const struct snap_exit *x = &a->exits[i], *y;

		y = find_row(b, x->vm == SNAP_NO_VM ? NULL : "vmm",
			     x->vcpu < 0 ? -1 : a->vcpus[x->vcpu].kvm_id, x->kind, x->name);
		assert_non_null(y);
		assert_int_equal(x->now.count, y->now.count);
		assert_int_equal(x->now.time_ns, y->now.time_ns);
		assert_true(x->now.stderr_pct - y->now.stderr_pct < 1e-3 &&
			    y->now.stderr_pct - x->now.stderr_pct < 1e-3);
		assert_true(x->has_time == y->has_time && x->idle == y->idle);
	}
	assert_true(value_has(b->vms[0].ex.pct) && value_has(b->vms[0].ex.rate));
	assert_true(a->vms[0].ex.rate.v == b->vms[0].ex.rate.v);
	assert_string_equal(a->vms[0].ex.top, b->vms[0].ex.top);
	snapshot_unref(a);
	snapshot_unref(b);
	free(ev);
	fixture_free(&f);
	fixture_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_interval),
		cmocka_unit_test(many_intervals_have_the_same_totals),
		cmocka_unit_test(aggregates_give_the_same_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
