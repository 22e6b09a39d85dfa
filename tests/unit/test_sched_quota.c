// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU quotas in the collector `sched`, over made trees of cgroups v1 and v2: how long which group
 * held which vCPU back, where its limit stands, threads and limits that come and go.
 */
#include "sched_tree.h"

static void throttled(const struct fix *f, const char *group, uint64_t us)
{
	char stat[128];
	int n = snprintf(stat, sizeof(stat),
			 "usage_usec 1\nnr_periods 1\nnr_throttled 1\nthrottled_usec %llu\n",
			 (unsigned long long)us);

	put(&f->h, stat, (size_t)n, V2 "%s/cpu.stat", group);
}

static void own_group_of_a_vcpu(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP "/libvirt/vcpu0");
	add_thread(&f, PID + 2, ROLE_VCPU, GROUP "/libvirt/vcpu1");
	text(&f, V2 GROUP "/libvirt/vcpu0/cpu.max", "40000 100000\n");
	text(&f, V2 GROUP "/libvirt/vcpu1/cpu.max", "max 100000\n");
	throttled(&f, GROUP "/libvirt/vcpu0", 5000000);
	tick(&f);
	assert_true(quota_of(&f, PID + 1)->has);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 0); /* what was before is not ours */
	throttled(&f, GROUP "/libvirt/vcpu0", 5600000);
	tick(&f);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 600000000);
	assert_int_equal(quota_of(&f, PID + 1)->quota_us, 40000);
	assert_int_equal(quota_of(&f, PID + 1)->period_us, 100000);
	assert_true(quota_of(&f, PID + 2)->has); /* no limit: 0 and not unknown, without cpu.stat */
	assert_int_equal(quota_of(&f, PID + 2)->throttled_ns, 0);
	assert_int_equal(quota_of(&f, PID + 2)->quota_us, 0);
	tear_down(&f);
}

static void group_of_the_vm_is_shared_by_its_vcpus(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP "/libvirt/vcpu0");
	add_thread(&f, PID + 2, ROLE_VCPU, GROUP "/libvirt/vcpu1");
	add_thread(&f, PID + 3, ROLE_VMM, GROUP "/libvirt/emulator");
	text(&f, V2 GROUP "/cpu.max", "50000 100000\n");
	text(&f, V2 GROUP "/libvirt/vcpu0/x", "");
	text(&f, V2 GROUP "/libvirt/vcpu1/x", "");
	throttled(&f, GROUP, 0);
	/* Above the machine's scope is what all machines share: not this one's own. */
	text(&f, V2 "/machine.slice/cpu.max", "1000 100000\n");
	throttled(&f, "/machine.slice", 0);
	tick(&f);
	throttled(&f, GROUP, 800000);
	throttled(&f, "/machine.slice", 99000000);
	tick(&f);
	assert_int_equal(f.got.nquota, 2);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 400000000);
	assert_int_equal(quota_of(&f, PID + 2)->throttled_ns, 400000000);
	assert_int_equal(quota_of(&f, PID + 1)->quota_us, 50000);
	assert_string_equal(quota_of(&f, PID + 1)->limit, "/" V2 GROUP "/cpu.max");
	tear_down(&f);
}

/* The thread's stat: its state and the CPU it was on last. */
static void on_cpu(const struct fix *f, int tid, char state, int cpu)
{
	char line[256];
	int n = snprintf(line, sizeof(line),
			 "%d (CPU 0/KVM) %c 1 1 1 0 -1 4194368 1 0 0 0 7 0 0 0 20 0 1 0 5001 1 426 "
			 "1 1 2 3 0 0 0 0 6 0 0 0 0 -1 %d 0 0 0 7 0 1 2 3 4 5 6 7 0\n",
			 tid, state, cpu);

	put(&f->h, line, (size_t)n, "proc/%d/task/%d/stat", PID, tid);
}

static void hold_back(struct fix *f, uint64_t us)
{
	throttled(f, GROUP, us);
	tick(f);
}

/* The kernel sums over CPUs: who shares one is held back by all of it, who is idle by none. */
static void held_back_by_cpu_and_not_by_vcpu(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	for (int tid = PID + 1; tid <= PID + 3; tid++) {
		add_thread(&f, tid, ROLE_VCPU, GROUP);
		on_cpu(&f, tid, 'R', 1);
	}
	text(&f, V2 GROUP "/cpu.max", "50000 100000\n");
	hold_back(&f, 0);
	hold_back(&f, 600000);
	for (int tid = PID + 1; tid <= PID + 3; tid++)
		assert_int_equal(quota_of(&f, tid)->throttled_ns, 600000000);
	on_cpu(&f, PID + 3, 'R', 2);
	hold_back(&f, 1200000); /* two CPUs */
	for (int tid = PID + 1; tid <= PID + 3; tid++)
		assert_int_equal(quota_of(&f, tid)->throttled_ns, 900000000);
	on_cpu(&f, PID + 3, 'S', 2);
	hold_back(&f, 1500000);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 1200000000);
	assert_int_equal(quota_of(&f, PID + 3)->throttled_ns, 900000000);
	put(&f.h, "400001000 200 3\n", 16, "proc/%d/task/%d/schedstat", PID, PID + 3);
	hold_back(&f, 1900000); /* it sleeps now, and ran meanwhile */
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 1400000000);
	assert_int_equal(quota_of(&f, PID + 3)->throttled_ns, 1100000000);
	tear_down(&f);
}

static bool used_up(struct fix *f, unsigned periods, unsigned used)
{
	char stat[128];
	int n = snprintf(stat, sizeof(stat),
			 "usage_usec 1\nnr_periods %u\nnr_throttled %u\nthrottled_usec 5\n",
			 periods, used);

	put(&f->h, stat, (size_t)n, V2 GROUP "/cpu.stat");
	tick(f);
	return quota_of(f, PID + 1)->used_up;
}

static void a_quota_is_used_up(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP "/vcpu0");
	text(&f, V2 GROUP "/cpu.max", "50000 100000\n");
	assert_false(used_up(&f, 100, 100)); /* what was before is not ours */
	assert_true(used_up(&f, 110, 105));
	assert_false(used_up(&f, 120, 109));
	assert_false(used_up(&f, 120, 109));
	assert_true(used_up(&f, 121, 110));
	assert_true(used_up(&f, 121, 110)); /* no period ended: as it was */
	assert_false(used_up(&f, 3, 3)); /* another group of that name */
	assert_true(used_up(&f, 4, 4));
	add_thread(&f, PID + 2, ROLE_VCPU, GROUP "/vcpu1");
	on_cpu(&f, PID + 1, 'R', 0);
	on_cpu(&f, PID + 2, 'R', 1);
	assert_false(used_up(&f, 5, 5)); /* on two CPUs: the other one may have had it */
	on_cpu(&f, PID + 2, 'R', 0);
	assert_true(used_up(&f, 6, 6));
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	assert_false(used_up(&f, 9, 9));
	tear_down(&f);
}

/* A thread that is no vCPU and runs elsewhere has its part in the kernel's sum. */
static void other_threads_of_the_group_count(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	add_thread(&f, PID + 2, ROLE_VMM, GROUP);
	on_cpu(&f, PID + 1, 'R', 0);
	on_cpu(&f, PID + 2, 'R', 1);
	text(&f, V2 GROUP "/cpu.max", "50000 100000\n");
	for (int i = 0; i <= 5; i++) /* threads that are no vCPU are read in turn */
		hold_back(&f, 0);
	hold_back(&f, 1000000);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 500000000);
	tear_down(&f);
}

static void the_group_that_holds_back_is_named(void **state)
{
	const struct quota_reading *r;
	struct inv_vm *other;
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP "/a");
	on_cpu(&f, PID + 1, 'R', 0);
	text(&f, V2 GROUP "/cpu.max", "40000 100000\n");
	text(&f, V2 GROUP "/a/cpu.max", "35000 100000\n");
	throttled(&f, GROUP "/a", 0);
	hold_back(&f, 0);
	r = quota_of(&f, PID + 1); /* nothing was held back: the tightest */
	assert_string_equal(r->limit, "/" V2 GROUP "/a/cpu.max");
	hold_back(&f, 600000);
	r = quota_of(&f, PID + 1);
	assert_int_equal(r->quota_us, 35000);
	assert_string_equal(r->limit, "/" V2 GROUP "/cpu.max");
	assert_true(r->limit_pct > 39.9 && r->limit_pct < 40.1);
	assert_false(r->shared);
	other = inventory_add_vm(f.h.inv, PID, 5000, "500-11");
	f.vm = other;
	add_thread(&f, PID + 2, ROLE_VCPU, GROUP "/b");
	text(&f, V2 GROUP "/b/cpu.max", "max 100000\n");
	hold_back(&f, 1200000);
	assert_true(quota_of(&f, PID + 1)->shared);
	tear_down(&f);
}

/* What was held back before a limit was seen is not known; what until it ended is. */
static void a_limit_that_begins_and_ends(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	on_cpu(&f, PID + 1, 'R', 0);
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	hold_back(&f, 0);
	assert_false(quota_of(&f, PID + 1)->begun);
	text(&f, V2 GROUP "/cpu.max", "50000 100000\n");
	hold_back(&f, 300000);
	assert_true(quota_of(&f, PID + 1)->begun);
	hold_back(&f, 800000);
	assert_false(quota_of(&f, PID + 1)->begun);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 500000000);
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	hold_back(&f, 900000);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 600000000);
	hold_back(&f, 5000000);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 600000000);
	tear_down(&f);
}

static void limits_that_come_and_go(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	throttled(&f, GROUP, 7000000);
	tick(&f);
	assert_int_equal(open_below(f.h.dir), 2);
	text(&f, V2 GROUP "/cpu.max", "20000 100000\n");
	tick(&f);
	assert_int_equal(open_below(f.h.dir), 3); /* cpu.stat is held while it bites */
	throttled(&f, GROUP, 7300000);
	tick(&f);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 300000000);
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	throttled(&f, GROUP, 1); /* a removed group's counter starts anew under its name */
	tick(&f);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 300000000);
	assert_int_equal(quota_of(&f, PID + 1)->quota_us, 0);
	assert_int_equal(open_below(f.h.dir), 2);
	unmake(&f.h, V2);
	tick(&f);
	assert_false(quota_of(&f, PID + 1)->has);
	tear_down(&f);
}

static void version_1_and_the_root_of_a_namespace(void **state)
{
	static const char both[] = "4:cpu,cpuacct:/qemu\n1:name=systemd:/x\n0::/elsewhere\n";
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, "/");
	add_thread(&f, PID + 2, ROLE_VCPU, "/../../elsewhere");
	add_thread(&f, PID + 3, ROLE_VCPU, "/");
	put(&f.h, both, strlen(both), "proc/%d/task/%d/cgroup", PID, PID + 3);
	text(&f, V2 "/cpu.max", "30000 100000\n");
	throttled(&f, "", 100);
	text(&f, V2 "/cpu,cpuacct/qemu/cpu.cfs_quota_us", "25000\n");
	text(&f, V2 "/cpu,cpuacct/qemu/cpu.cfs_period_us", "100000\n");
	text(&f, V2 "/cpu,cpuacct/qemu/cpu.stat", "nr_periods 1\nthrottled_time 1000\n");
	tick(&f);
	throttled(&f, "", 300);
	text(&f, V2 "/cpu,cpuacct/qemu/cpu.stat", "nr_periods 1\nthrottled_time 91000\n");
	tick(&f);
	assert_int_equal(quota_of(&f, PID + 1)->throttled_ns, 200000);
	assert_int_equal(quota_of(&f, PID + 1)->quota_us, 30000);
	assert_false(quota_of(&f, PID + 2)->has); /* of another namespace: not known */
	assert_int_equal(quota_of(&f, PID + 3)->throttled_ns, 90000);
	assert_int_equal(quota_of(&f, PID + 3)->quota_us, 25000);
	assert_string_equal(quota_of(&f, PID + 3)->limit,
			    "/" V2 "/cpu,cpuacct/qemu/cpu.cfs_quota_us");
	tear_down(&f);
}

static void a_thread_moved_to_another_group_is_followed(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	tick(&f);
	text(&f, V2 "/other/cpu.max", "10000 100000\n");
	throttled(&f, "/other", 0);
	put(&f.h, "0::/other\n", 10, "proc/%d/task/%d/cgroup", PID, PID + 1);
	for (int i = 0; i < 11; i++)
		tick(&f);
	assert_int_equal(quota_of(&f, PID + 1)->quota_us, 10000);
	for (int i = 0; i < 40; i++) /* the group left behind is forgotten, and nothing breaks */
		tick(&f);
	assert_int_equal(quota_of(&f, PID + 1)->quota_us, 10000);
	tear_down(&f);
}

/* The threads of a VM are moved together: one of them is looked at often, and tells for all. */
static void a_vm_moved_to_another_group_is_seen_soon(void **state)
{
	int n = 0;
	struct fix f;

	(void)state;
	set_up(&f);
	for (int tid = PID + 1; tid <= PID + 4; tid++)
		add_thread(&f, tid, ROLE_VCPU, GROUP);
	text(&f, V2 GROUP "/cpu.max", "max 100000\n");
	for (int i = 0; i < 60; i++)
		tick(&f);
	text(&f, V2 "/other/cpu.max", "10000 100000\n");
	throttled(&f, "/other", 0);
	for (int tid = PID + 1; tid <= PID + 4; tid++)
		put(&f.h, "0::/other\n", 10, "proc/%d/task/%d/cgroup", PID, tid);
	while (!quota_of(&f, PID + 4)->quota_us && n++ < 20)
		tick(&f);
	assert_in_range(n, 1, 6);
	for (int tid = PID + 1; tid <= PID + 4; tid++)
		assert_int_equal(quota_of(&f, tid)->quota_us, 10000);
	put(&f.h, "0::" GROUP "\n", strlen("0::" GROUP "\n"), "proc/%d/task/%d/cgroup", PID,
	    PID + 3);
	for (n = 0; quota_of(&f, PID + 3)->quota_us && n < 100; n++)
		tick(&f);
	assert_in_range(n, 1, 49); /* one alone, which nobody does: later */
	assert_int_equal(quota_of(&f, PID + 4)->quota_us, 10000);
	tear_down(&f);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_group_of_a_vcpu),
		cmocka_unit_test(group_of_the_vm_is_shared_by_its_vcpus),
		cmocka_unit_test(held_back_by_cpu_and_not_by_vcpu),
		cmocka_unit_test(a_quota_is_used_up),
		cmocka_unit_test(other_threads_of_the_group_count),
		cmocka_unit_test(the_group_that_holds_back_is_named),
		cmocka_unit_test(a_limit_that_begins_and_ends),
		cmocka_unit_test(limits_that_come_and_go),
		cmocka_unit_test(version_1_and_the_root_of_a_namespace),
		cmocka_unit_test(a_thread_moved_to_another_group_is_followed),
		cmocka_unit_test(a_vm_moved_to_another_group_is_seen_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
