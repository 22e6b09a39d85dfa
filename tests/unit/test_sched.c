// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * The collector `sched` over made trees (threads, NUMA) and over a real
 * process that ends: what it hands to the sink, what it holds open, who is gone.
 */
#include <linux/capability.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sched_tree.h"

/* ---- threads ---- */

static void counters_come_as_they_stand(void **state)
{
	const struct thread_reading *r;
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	tick(&f);
	assert_int_equal(f.got.nthread, 1);
	r = &f.got.thread[0].r;
	assert_int_equal(f.got.thread[0].tid, PID + 1);
	assert_true(r->has_sched && r->has_gtime && !r->has_gstime);
	assert_int_equal(r->run_ns, 1000);
	assert_int_equal(r->delay_ns, 200);
	assert_int_equal(r->nr_sched, 3);
	assert_int_equal(r->gtime, 7);
	assert_true(r->time > 0);
	assert_false(r->has_vol); /* it sleeps: nothing to ask for */
	tear_down(&f);
}

static void without_schedstat_the_rest_comes(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	unmake(&f.h, "proc/%d/task/%d/schedstat", PID, PID + 1);
	tick(&f);
	assert_int_equal(f.got.nthread, 1);
	assert_false(f.got.thread[0].r.has_sched);
	assert_int_equal(f.got.thread[0].r.gtime, 7);
	tear_down(&f);
}

static void switches_are_asked_where_it_is_open_what_it_did(void **state)
{
	static const char status[] = "Name:\tx\nvoluntary_ctxt_switches:\t11\n"
				     "nonvoluntary_ctxt_switches:\t22\n";
	struct fix f;
	char line[256];

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	snprintf(line, sizeof(line), "%d (x) R 1 1 1 0 -1 0 1 0 0 0 7 0 0 0 20 0 1 0 5001 1\n",
		 PID + 1);
	put(&f.h, line, strlen(line), "proc/%d/task/%d/stat", PID, PID + 1);
	put(&f.h, status, strlen(status), "proc/%d/task/%d/status", PID, PID + 1);
	for (int i = 0; i < 2; i++) { /* runnable, and its run time stands still */
		tick(&f);
		assert_true(f.got.thread[0].r.has_vol && f.got.thread[0].r.has_nonvol);
		assert_int_equal(f.got.thread[0].r.vol, 11);
		assert_int_equal(f.got.thread[0].r.nonvol, 22);
	}
	tear_down(&f);
}

static void who_is_gone(void **state)
{
	struct inv_thread *ended, *reused, *lives;
	struct fix f;

	(void)state;
	set_up(&f);
	ended = add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	reused = add_thread(&f, PID + 2, ROLE_VMM, GROUP);
	lives = add_thread(&f, PID + 3, ROLE_VMM, GROUP);
	unmake(&f.h, "proc/%d/task/%d", PID, PID + 1);
	thread_of(&f.h, PID, PID + 2, "another", 9999, 1); /* the same tid, started later */
	tick(&f);
	assert_true(ended->flags & INV_GONE);
	assert_true(reused->flags & INV_GONE);
	assert_false(lives->flags & INV_GONE);
	assert_int_equal(f.got.nthread, 1);
	assert_int_equal(f.got.thread[0].tid, PID + 3);
	tear_down(&f);
}

static void other_threads_come_every_fifth_tick(void **state)
{
	struct demand d = {.threads = true};
	unsigned n = 0;
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VMM, GROUP);
	tick(&f);
	tick(&f); /* a baseline and first figures at once */
	assert_int_equal(f.got.nthread, 1);
	for (int i = 0; i < 10; i++) {
		tick(&f);
		n += (unsigned)f.got.nthread;
	}
	assert_int_equal(n, 2);
	collector_sched.demand(f.sched, &d);
	for (int i = 0; i < 3; i++) {
		tick(&f);
		assert_int_equal(f.got.nthread, 1);
	}
	tear_down(&f);
}

static void files_of_vcpus_are_held(void **state)
{
	struct inv_thread *late;
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	late = add_thread(&f, PID + 2, ROLE_VMM, GROUP);
	tick(&f);
	assert_int_equal(open_below(f.h.dir), 2);
	/* Found to run a vCPU only now. */
	late->role = ROLE_VCPU;
	inventory_set_thread(f.h.inv, inventory_add_vcpu(f.h.inv, f.vm, 1), late);
	tick(&f);
	assert_int_equal(open_below(f.h.dir), 4);
	inventory_thread_gone(f.h.inv, late);
	inventory_sweep(f.h.inv);
	assert_int_equal(open_below(f.h.dir), 2);
	tear_down(&f);
}

/* Root could go above any limit otherwise. */
static int give_up_resources(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -1;
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	return (int)syscall(SYS_capset, &head, data);
}

static void beyond_the_limit_files_are_opened_anew(void **state)
{
	const rlim_t elsewhere = 1024 + 2; /* for others; two a VM */
	const struct rlimit few = {elsewhere + 5, elsewhere + 5};
	int status;
	struct fix f;
	pid_t child;

	(void)state;
	set_up(&f);
	for (int i = 1; i <= 4; i++)
		add_thread(&f, PID + i, ROLE_VCPU, GROUP);
	child = fork(); /* a hard limit cannot be raised again */
	if (!child) {
		if (setrlimit(RLIMIT_NOFILE, &few) || give_up_resources())
			_exit(99);
		tick(&f);
		_exit((int)(f.got.nthread * 10 + open_below(f.h.dir)));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 44); /* all are read; two threads' files are held */
	tick(&f);
	assert_int_equal(open_below(f.h.dir), 8);
	tear_down(&f);
}

static void a_real_process_that_ends_is_gone(void **state)
{
	pid_t child = fork();
	struct inv_thread *t;
	struct fix f = {0};
	struct inv_vm *vm;

	(void)state;
	if (!child)
		for (;;)
			pause();
	start(&f, NULL);
	vm = inventory_add_vm(f.h.inv, child, 0, "x");
	t = inventory_add_thread(f.h.inv, vm, child, child, 0, ROLE_VCPU);
	tick(&f);
	assert_int_equal(f.got.nthread, 1);
	assert_true(f.got.thread[0].r.has_sched);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tick(&f); /* the held descriptor answers ESRCH, whoever has that number now */
	assert_true(t->flags & INV_GONE);
	assert_int_equal(f.got.nthread, 0);
	collector_sched.close(f.sched);
	inventory_free(f.h.inv);
	sysroot_close(f.h.root);
}

/* The iterator takes over from the files as soon as it is loaded: no counter goes back or leaps. */
static void the_source_changes_without_a_seam(void **state)
{
	const struct collector_config config = {.first_frame = true};
	pid_t child = fork();
	struct thread_reading before;
	struct fix f = {0};
	struct inv_vm *vm;

	(void)state;
	if (!child)
		for (volatile unsigned n = 0;; n++)
			;
	assert_int_equal(sysroot_open(NULL, &f.h.root), 0);
	f.h.inv = inventory_new();
	f.sink = (struct sink){.ctx = &f.got, .thread = on_thread, .quota = on_quota};
	f.env = (struct collector_env){
		.root = f.h.root, .inv = f.h.inv, .sink = &f.sink, .config = &config};
	usleep(300000); /* some ticks of the processor's time */
	assert_int_equal(collector_sched.open(&f.env, &f.sched), 0);
	vm = inventory_add_vm(f.h.inv, child, 0, "x");
	inventory_add_thread(f.h.inv, vm, child, child, 0, ROLE_VCPU);
	tick(&f);
	assert_int_equal(f.got.nthread, 1);
	for (int i = 0; i < 20; i++) {
		before = f.got.thread[0].r;
		usleep(20000);
		tick(&f);
		assert_int_equal(f.got.nthread, 1);
		assert_true(f.got.thread[0].r.run_ns >= before.run_ns);
		assert_in_range(f.got.thread[0].r.utime, before.utime, before.utime + 20);
		assert_in_range(f.got.thread[0].r.stime, before.stime, before.stime + 20);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	collector_sched.close(f.sched);
	inventory_free(f.h.inv);
	sysroot_close(f.h.root);
}

/* ---- places ---- */

static void places_on_demand(void **state)
{
	struct demand d = {.pins = true};
	unsigned n = 0;
	struct fix f;

	(void)state;
	set_up(&f);
	add_thread(&f, PID + 1, ROLE_VCPU, GROUP);
	put(&f.h, "Name:\tx\nCpus_allowed_list:\t1-3\nMems_allowed:\t1\n", 48,
	    "proc/%d/task/%d/status", PID, PID + 1);
	text(&f, "sys/devices/system/node/node1/x", "");
	text(&f, "sys/devices/system/cpu/cpu1/node1/x", "");
	text(&f, "proc/500/numa_maps",
	     "7f00 default anon=9 N0=5 N1=4 kernelpagesize_kB=4\n"
	     "7f10 default huge anon=2 dirty=2 N0=2 kernelpagesize_kB=2048\n");
	tick(&f);
	assert_int_equal(f.got.nplace, 0);
	collector_sched.demand(f.sched, &d);
	tick(&f);
	assert_int_equal(f.got.nplace, 1);
	assert_string_equal(f.got.place[0].pin, "1-3");
	assert_string_equal(f.got.place[0].node, "1!0");
	for (int i = 0; i < 20; i++) {
		tick(&f);
		n += (unsigned)f.got.nplace;
	}
	assert_int_equal(n, 2); /* costly: seldom */
	tear_down(&f);
}

/* ---- what doctor says ---- */

static void what_is_missing_is_said(void **state)
{
	struct probes p = {0};
	struct fix f;

	(void)state;
	set_up(&f);
	collector_sched.probe(&f.env, &p);
	assert_int_equal(p.n, 3);
	assert_string_equal(p.p[0].source, "threads"); /* files are all that a fixture has */
	assert_int_equal(p.p[0].state, SOURCE_OK);
	assert_int_not_equal(p.p[1].state, SOURCE_OK);
	assert_non_null(strstr(p.p[1].why, "schedstat"));
	assert_non_null(strstr(p.p[2].mend, "mount -t cgroup2"));
	text(&f, "proc/1/schedstat", "1 2 3\n");
	text(&f, V2 "/cgroup.controllers", "cpu\n");
	memset(&p, 0, sizeof(p));
	collector_sched.probe(&f.env, &p);
	assert_int_equal(p.p[1].state, SOURCE_OK);
	assert_int_equal(p.p[2].state, SOURCE_OK);
	assert_non_null(strstr(p.p[2].why, "v2"));
	text(&f, "sys/fs/cgroup/cpu/tasks", "");
	memset(&p, 0, sizeof(p));
	collector_sched.probe(&f.env, &p);
	assert_non_null(strstr(p.p[2].why, "v1")); /* v2 is there for other things */
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_come_as_they_stand),
		cmocka_unit_test(without_schedstat_the_rest_comes),
		cmocka_unit_test(switches_are_asked_where_it_is_open_what_it_did),
		cmocka_unit_test(who_is_gone),
		cmocka_unit_test(other_threads_come_every_fifth_tick),
		cmocka_unit_test(files_of_vcpus_are_held),
		cmocka_unit_test(beyond_the_limit_files_are_opened_anew),
		cmocka_unit_test(a_real_process_that_ends_is_gone),
		cmocka_unit_test(the_source_changes_without_a_seam),
		cmocka_unit_test(places_on_demand),
		cmocka_unit_test(what_is_missing_is_said),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
