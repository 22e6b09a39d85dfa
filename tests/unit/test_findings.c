// SPDX-License-Identifier: GPL-2.0-only
/* Each rule on a situation in which it must speak, and all of them on a quiet host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "findings.h"

#define SEC 1000000000LL

/* Two VMs of two vCPUs on four CPUs (0 and 1, 2 and 3 are siblings), all well. */
struct host {
	struct snapshot *s;
	struct snap_vm *vm;
	struct snap_vcpu *v;
	struct snap_cpu *cpu;
};

static struct host quiet(int64_t time)
{
	struct host h = {.s = snapshot_new()};
	static const char *const names[] = {"web01", "db02"};

	h.vm = snapshot_alloc(h.s, 2, sizeof(*h.vm));
	h.v = snapshot_alloc(h.s, 4, sizeof(*h.v));
	h.cpu = snapshot_alloc(h.s, 4, sizeof(*h.cpu));
	for (uint32_t i = 0; i < 2; i++) {
		h.vm[i] = (struct snap_vm){.id = i + 1,
					   .name = names[i],
					   .nvcpu = 2,
					   .vcpu_first = 2 * i,
					   .vcpu_n = 2};
		h.vm[i].ex.pct = value_known(3);
		h.vm[i].ex.top = "";
	}
	for (int i = 0; i < 4; i++) {
		h.v[i] = (struct snap_vcpu){.id = 10u + (uint32_t)i,
					    .vm = (uint32_t)i / 2,
					    .index = i % 2,
					    .cpu = i,
					    .pin = "0-3",
					    .state = 'R'};
		h.v[i].use.steal = value_known(1);
		h.v[i].use.throt = value_known(0);
		h.v[i].use.demand = value_known(90);
		h.v[i].ex.open = "";
		h.v[i].ex.open_ns = value_na(WHY_NONE);
		h.cpu[i] = (struct snap_cpu){
			.cpu = i, .online = true, .sibling = i ^ 1, .nvcpu_seen = 1, .vcpus = ""};
		h.cpu[i].idle = value_known(40);
	}
	h.s->vms = h.vm;
	h.s->vcpus = h.v;
	h.s->cpus = h.cpu;
	h.s->nvms = 2;
	h.s->nvcpus = h.s->ncpus = 4;
	h.s->time = time;
	h.s->dt = SEC;
	return h;
}

static const struct snap_finding *find(const struct snapshot *s, const char *rule)
{
	for (size_t i = 0; i < s->nfindings; i++)
		if (!strcmp(s->findings[i].rule, rule))
			return &s->findings[i];
	return NULL;
}

static const struct snap_finding *only(const struct snapshot *s, const char *rule)
{
	const struct snap_finding *f = find(s, rule);

	if (!f)
		fail_msg("no %s among %zu findings", rule, s->nfindings);
	assert_int_equal(s->nfindings, 1);
	assert_true(f->next[0]);
	return f;
}

static void a_quiet_host_has_none(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);

	(void)state;
	assert_int_equal(findings_make(f, h.s), 0);
	assert_int_equal(h.s->nfindings, 0);
	snapshot_unref(h.s);
	/* Nor has one of which nothing is known. */
	h = quiet(2 * SEC);
	memset(h.v, 0, 4 * sizeof(*h.v));
	for (int i = 0; i < 4; i++)
		h.v[i].pin = h.v[i].ex.open = "";
	h.vm[0].ex.pct = h.vm[1].ex.pct = value_na(WHY_NO_ENTRY_EXIT);
	h.s->ncpus = 0;
	assert_int_equal(findings_make(f, h.s), 0);
	assert_int_equal(h.s->nfindings, 0);
	snapshot_unref(h.s);
	findings_free(f);
	findings_free(NULL);
}

static void steal(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);
	const struct snap_finding *x;

	(void)state;
	h.v[3].use.steal = value_known(60.2);
	findings_make(f, h.s);
	x = only(h.s, "steal");
	assert_string_equal(x->text, "db02 vCPU 1: 60% steal, it waits for a CPU");
	assert_int_equal(x->level, 3);
	assert_int_equal(x->vm, 1);
	assert_int_equal(x->vcpu, 3);
	assert_non_null(strstr(x->next, "CPU 3"));
	snapshot_unref(h.s);

	h = quiet(2 * SEC); /* the worst of two, at a lower level */
	h.v[0].use.steal = value_known(6);
	h.v[1].use.steal = value_known(9);
	findings_make(f, h.s);
	x = only(h.s, "steal");
	assert_string_equal(x->text, "web01 vCPU 1 (and 1 more): 9% steal, it waits for a CPU");
	assert_int_equal(x->level, 1);
	snapshot_unref(h.s);

	h = quiet(3 * SEC);
	h.v[0].use.steal = value_known(12);
	findings_make(f, h.s);
	assert_int_equal(only(h.s, "steal")->level, 2);
	snapshot_unref(h.s);
	findings_free(f);
}

/* It is alone on its CPU; whoever reads this must not look for a neighbour. */
static void its_own_quota(void **state)
{
	static const struct {
		double throt;
		const char *text;
	} cases[] = {
		{60, "web01 vCPU 0: 60% steal, all of it its own CPU quota"},
		{45, "web01 vCPU 0: 60% steal, most of it its own CPU quota"},
		{31, "web01 vCPU 0: 60% steal, half of it its own CPU quota"},
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct findings *f = findings_new();
		struct host h = quiet(SEC);
		const struct snap_finding *x;

		h.v[0].use.steal = value_known(60);
		h.v[0].use.throt = value_known(cases[i].throt);
		h.v[0].use.own_quota = true;
		h.vm[0].quota_held_pct = 40;
		findings_make(f, h.s);
		x = only(h.s, "quota");
		assert_string_equal(x->text, cases[i].text);
		assert_non_null(strstr(x->next, "40% of a CPU"));
		assert_null(strstr(x->text, "db02"));
		assert_null(strstr(x->next, "db02"));
		snapshot_unref(h.s);
		findings_free(f);
	}
}

/* The cure is at the group that holds back, which may not be the tightest, nor the VM's alone. */
static void a_quota_that_it_shares(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);
	const struct snap_finding *x;

	(void)state;
	h.v[0].use.steal = value_known(60);
	h.v[0].use.throt = value_known(50);
	h.v[0].use.own_quota = true;
	h.vm[0].quota_us = 40000;
	h.vm[0].period_us = 100000;
	h.vm[0].quota_held_pct = 75;
	h.vm[0].quota_shared = true;
	findings_make(f, h.s);
	x = only(h.s, "quota");
	assert_string_equal(x->text,
			    "web01 vCPU 0: 60% steal, most of it a CPU quota that it shares");
	assert_non_null(strstr(x->next, "75% of a CPU"));
	snapshot_unref(h.s);
	findings_free(f);
}

/* As the only finding of the two VMs. */
static void exits_say(struct findings *f, struct host *h, int level, const char *text)
{
	const struct snap_finding *x;

	findings_make(f, h->s);
	x = only(h->s, "exits");
	assert_string_equal(x->text, text);
	assert_int_equal(x->level, level);
	assert_int_equal(x->vcpu, -1);
}

static void exits(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);

	(void)state;
	h.vm[0].ex.pct = value_known(31);
	h.vm[0].ex.top = "MSR_WRITE";
	h.vm[0].ex.top_pct = value_known(41);
	exits_say(f, &h, 2, "web01: 31% of its vCPUs' time is in exits, MSR_WRITE 41% of it");
	snapshot_unref(h.s);
	h = quiet(2 * SEC);
	h.vm[1].ex.pct = value_known(19.9);
	findings_make(f, h.s);
	assert_int_equal(h.s->nfindings, 0);
	snapshot_unref(h.s);
	findings_free(f);
}

/* What it waited for a CPU is steal's to tell; where nobody tells, all of the steal may be that. */
static void exits_without_a_cpu(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);

	(void)state;
	h.vm[0].ex.pct = value_known(97);
	h.vm[0].ex.top = "interrupt";
	h.vm[0].ex.top_pct = value_known(100);
	h.vm[0].ex.off_pct = h.vm[0].ex.on_pct = value_na(WHY_NO_SWITCHES);
	h.vm[0].use.steal = value_known(92);
	findings_make(f, h.s);
	assert_int_equal(h.s->nfindings, 0);
	h.vm[0].use.steal = value_known(60);
	exits_say(f, &h, 2, "web01: 97% of its vCPUs' time is in exits, interrupt 100% of it");
	snapshot_unref(h.s);
	findings_free(f);

	f = findings_new();
	h = quiet(SEC);
	h.vm[0].ex.pct = value_known(60);
	h.vm[0].ex.off_pct = value_known(5); /* steal is elsewhere, then: behind wake-ups */
	h.vm[0].use.steal = value_known(50);
	exits_say(f, &h, 3, "web01: 60% of its vCPUs' time is in exits (5% without a CPU)");
	snapshot_unref(h.s);
	findings_free(f);
}

static void an_open_exit(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);
	const struct snap_finding *x;

	(void)state;
	h.v[2].ex.open = "KVM_EXIT_IO";
	h.v[2].ex.open_ns = value_known(7.3e9);
	h.v[0].ex.open = "npf"; /* short: no finding */
	h.v[0].ex.open_ns = value_known(0.9e9);
	findings_make(f, h.s);
	x = only(h.s, "open-exit");
	assert_string_equal(x->text, "db02 vCPU 0: in exit 7.3 s (KVM_EXIT_IO)");
	assert_int_equal(x->level, 2);
	snapshot_unref(h.s);
	h = quiet(2 * SEC);
	h.v[2].ex.open = "KVM_EXIT_INTR";
	h.v[2].ex.open_ns = value_known(12e9);
	h.v[2].state = 'T';
	findings_make(f, h.s);
	x = only(h.s, "open-exit");
	assert_string_equal(x->text,
			    "db02 vCPU 0: in exit 12.0 s (KVM_EXIT_INTR), its thread is stopped");
	assert_int_equal(x->level, 3);
	snapshot_unref(h.s);
	findings_free(f);
}

static void two_on_one_cpu(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);
	const struct snap_finding *x;

	(void)state;
	h.v[0].pin = "3";
	h.v[3].pin = "3";
	h.v[1].pin = "1"; /* alone there */
	findings_make(f, h.s);
	x = only(h.s, "pin-overlap");
	assert_string_equal(x->text, "web01 vCPU 0 and db02 vCPU 1 are pinned to CPU 3 alone");
	assert_int_equal(x->level, 2); /* together they want more than it has */
	snapshot_unref(h.s);
	h = quiet(2 * SEC);
	for (int i = 0; i < 4; i++) {
		h.v[i].pin = "2";
		h.v[i].use.demand = value_known(2);
	}
	findings_make(f, h.s);
	x = only(h.s, "pin-overlap");
	assert_string_equal(x->text,
			    "web01 vCPU 0, web01 vCPU 1 and 2 more are pinned to CPU 2 alone");
	assert_int_equal(x->level, 1);
	snapshot_unref(h.s);
	h = quiet(3 * SEC); /* a range or a list is not one CPU */
	h.v[0].pin = h.v[1].pin = "2-3";
	h.v[2].pin = h.v[3].pin = "1,3";
	findings_make(f, h.s);
	assert_int_equal(h.s->nfindings, 0);
	snapshot_unref(h.s);
	findings_free(f);
}

static void siblings_busy_while_a_core_idles(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);
	const struct snap_finding *x;

	(void)state;
	h.cpu[0].idle = value_known(2);
	h.cpu[1].idle = value_known(10);
	h.cpu[2].idle = h.cpu[3].idle = value_known(99);
	findings_make(f, h.s);
	x = only(h.s, "smt-siblings");
	assert_string_equal(x->text, "CPU 0 and its SMT sibling 1 both run vCPUs (90% busy) while "
				     "the core of CPU 2 idles");
	snapshot_unref(h.s);
	h = quiet(2 * SEC); /* half an idle core is none */
	h.cpu[0].idle = h.cpu[1].idle = value_known(2);
	h.cpu[2].idle = value_known(99);
	findings_make(f, h.s);
	assert_int_equal(h.s->nfindings, 0);
	snapshot_unref(h.s);
	findings_free(f);
}

static void lost(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);

	(void)state;
	h.s->host.lost = 4120;
	findings_make(f, h.s);
	assert_string_equal(only(h.s, "lost")->text,
			    "4120 events lost: counts are too low by as many");
	snapshot_unref(h.s);
	h = quiet(2 * SEC);
	h.s->host.code_lost = 17;
	findings_make(f, h.s);
	assert_string_equal(only(h.s, "code-lost")->text,
			    "17 exits lost: counts by guest code are too low by as many");
	snapshot_unref(h.s);
	findings_free(f);
}

/* `since` stays while it holds, a little below the threshold as well, and begins anew after. */
static void since_and_hysteresis(void **state)
{
	static const double steal_pct[] = {5.5, 4.2, 5.1, 3.9, 4.2, 5.5};
	static const int64_t since[] = {1, 1, 1, 0, 0, 6};
	struct findings *f = findings_new();

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct host h = quiet((i + 1) * SEC);

		h.v[0].use.steal = value_known(steal_pct[i]);
		findings_make(f, h.s);
		if (since[i])
			assert_int_equal(only(h.s, "steal")->since, since[i] * SEC);
		else
			assert_int_equal(h.s->nfindings, 0);
		snapshot_unref(h.s);
	}
	findings_free(f);
}

static void the_most_pressing_is_first(void **state)
{
	struct findings *f = findings_new();
	struct host h = quiet(SEC);

	(void)state;
	h.v[0].use.steal = value_known(11);
	h.v[2].use.steal = value_known(80);
	h.vm[1].ex.pct = value_known(22);
	h.s->host.lost = 1;
	findings_make(f, h.s);
	assert_int_equal(h.s->nfindings, 4);
	assert_string_equal(h.s->findings[0].text, "db02 vCPU 0: 80% steal, it waits for a CPU");
	assert_string_equal(h.s->findings[1].rule, "steal");
	assert_string_equal(h.s->findings[2].rule, "exits");
	assert_string_equal(h.s->findings[3].rule, "lost");
	snapshot_unref(h.s);
	findings_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quiet_host_has_none),
		cmocka_unit_test(steal),
		cmocka_unit_test(its_own_quota),
		cmocka_unit_test(a_quota_that_it_shares),
		cmocka_unit_test(exits),
		cmocka_unit_test(exits_without_a_cpu),
		cmocka_unit_test(an_open_exit),
		cmocka_unit_test(two_on_one_cpu),
		cmocka_unit_test(siblings_busy_while_a_core_idles),
		cmocka_unit_test(lost),
		cmocka_unit_test(since_and_hysteresis),
		cmocka_unit_test(the_most_pressing_is_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
