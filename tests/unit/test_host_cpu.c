// SPDX-License-Identifier: GPL-2.0-only
/* The collector `host_cpu` over made trees: hotplug, large hosts, tasks that are no VM's. */
#include <pthread.h>

#include "host_cpu.h"
#include "sched_iter.h"
#include "vms_tree.h"

struct got {
	struct host_reading r;
	struct cpu_reading cpu[1024];
	struct task_reading task[16];
	char comm[16][64];
	size_t ntask;
	unsigned hosts, lists;
};

struct fix {
	struct host h;
	struct got got;
	struct sink sink;
	struct collector_env env;
	void *state;
};

static void on_host(void *ctx, const struct host_reading *r)
{
	struct got *g = ctx;

	g->hosts++;
	g->r = *r;
	assert_true(r->ncpu <= 1024);
	if (r->ncpu)
		memcpy(g->cpu, r->cpu, r->ncpu * sizeof(*r->cpu));
}

static void on_tasks(void *ctx, const struct task_reading *t, size_t n)
{
	struct got *g = ctx;

	g->lists++;
	g->ntask = n;
	assert_true(n <= 10);
	for (size_t i = 0; i < n; i++) {
		g->task[i] = t[i];
		snprintf(g->comm[i], sizeof(g->comm[i]), "%s", t[i].comm);
	}
}

static void set_up(struct fix *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->h.dir, "/tmp/kvmtop-host-XXXXXX");
	assert_non_null(mkdtemp(f->h.dir));
	assert_int_equal(sysroot_open(f->h.dir, &f->h.root), 0);
	f->h.inv = inventory_new();
	assert_non_null(f->h.inv);
	f->sink = (struct sink){.ctx = &f->got, .host = on_host, .tasks = on_tasks};
	f->env = (struct collector_env){.root = f->h.root, .inv = f->h.inv, .sink = &f->sink};
	assert_int_equal(collector_host_cpu.open(&f->env, &f->state), 0);
}

static void tear_down(struct fix *f)
{
	collector_host_cpu.close(f->state);
	inventory_free(f->h.inv);
	sysroot_close(f->h.root);
	tree_remove(f->h.dir);
}

static void text(const struct fix *f, const char *path, const char *what)
{
	put(&f->h, what, strlen(what), "%s", path);
}

static void tick(struct fix *f)
{
	assert_int_equal(collector_host_cpu.tick(f->state, 0, 0), 0);
}

static const struct cpu_reading *cpu_of(const struct fix *f, int cpu)
{
	for (unsigned i = 0; i < f->got.r.ncpu; i++)
		if (f->got.cpu[i].cpu == cpu)
			return &f->got.cpu[i];
	fail_msg("no CPU %d", cpu);
	return NULL;
}

static void topology(const struct fix *f, int cpu, const char *siblings, const char *core)
{
	put(&f->h, siblings, strlen(siblings),
	    "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	put(&f->h, core, strlen(core), "sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
	put(&f->h, "0\n", 2, "sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
	put(&f->h, "", 0, "sys/devices/system/cpu/cpu%d/node%d/x", cpu, cpu / 2);
}

static void cpus_come_and_go(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	text(&f, "sys/devices/system/cpu/present", "0-3\n");
	topology(&f, 0, "0\n", "7\n");
	topology(&f, 2, "2-3\n", "8\n");
	topology(&f, 3, "2-3\n", "8\n");
	text(&f, "proc/stat", "cpu  6 0 6 60\ncpu0 1 0 1 10\ncpu2 2 0 2 20\ncpu3 3 0 3 30\n");
	tick(&f);
	assert_int_equal(f.got.r.ncpu, 4);
	assert_int_equal(f.got.r.all.idle, 60);
	assert_false(cpu_of(&f, 1)->online); /* there, but off: nothing is known of it */
	assert_int_equal(cpu_of(&f, 1)->core, -1);
	assert_true(cpu_of(&f, 0)->online);
	assert_int_equal(cpu_of(&f, 0)->sibling, -1);
	assert_int_equal(cpu_of(&f, 0)->core, 7);
	assert_int_equal(cpu_of(&f, 2)->sibling, 3);
	assert_int_equal(cpu_of(&f, 3)->sibling, 2);
	assert_int_equal(cpu_of(&f, 3)->node, 1);
	assert_int_equal(cpu_of(&f, 3)->t.user, 3);

	/* 1 is switched on and is the sibling of 0; 3 goes off. */
	topology(&f, 0, "0-1\n", "7\n");
	topology(&f, 1, "0-1\n", "7\n");
	topology(&f, 2, "2\n", "8\n");
	text(&f, "proc/stat", "cpu  6 0 6 61\ncpu0 1 0 1 11\ncpu1 0 0 0 1\ncpu2 2 0 2 20\n");
	tick(&f);
	assert_true(cpu_of(&f, 1)->online);
	assert_int_equal(cpu_of(&f, 0)->sibling, 1);
	assert_int_equal(cpu_of(&f, 1)->sibling, 0);
	assert_int_equal(cpu_of(&f, 2)->sibling, -1);
	assert_false(cpu_of(&f, 3)->online);
	assert_int_equal(cpu_of(&f, 3)->t.idle, 30); /* its last figures stay */
	tear_down(&f);
}

static void waits_of_a_large_host(void **state)
{
	const size_t size = 1 << 20;
	char *schedstat = malloc(size), *stat = malloc(size);
	size_t a = 0, b;
	struct fix f;

	(void)state;
	set_up(&f);
	assert_true(schedstat && stat);
	b = (size_t)sprintf(stat, "cpu  1 0 1 1\n");
	for (int i = 0; i < 640; i++) {
		b += (size_t)sprintf(stat + b, "cpu%d 1 0 1 1 0 0 0 0 0 0\n", i);
		a += (size_t)sprintf(schedstat + a, "cpu%d 0 0 0 0 0 0 100 %d 5\n", i, 1000 + i);
		for (int d = 0; d < 4; d++)
			a += (size_t)sprintf(schedstat + a, "domain%d %0200d\n", d, 0);
	}
	assert_true(a > 512 << 10); /* more than any buffer that would do for a small one */
	put(&f.h, stat, b, "proc/stat");
	put(&f.h, schedstat, a, "proc/schedstat");
	tick(&f);
	assert_int_equal(f.got.r.ncpu, 640);
	assert_true(cpu_of(&f, 639)->has_wait);
	assert_int_equal(cpu_of(&f, 639)->wait_ns, 1639);
	unmake(&f.h, "proc/schedstat"); /* a kernel without it */
	tick(&f);
	assert_false(cpu_of(&f, 639)->has_wait);
	free(schedstat);
	free(stat);
	tear_down(&f);
}

static void task(const struct fix *f, int pid, const char *comm, int start, int ticks)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d", pid);
	put_stat(&f->h, path, pid, comm, 4194304, 1, start, ticks);
}

static void busiest_tasks_are_no_vms(void **state)
{
	struct demand d = {.tasks = true};
	struct inv_vm *vm;
	struct fix f;

	(void)state;
	set_up(&f);
	vm = inventory_add_vm(f.h.inv, 500, 50, "500-10");
	inventory_add_thread(f.h.inv, vm, 501, 501, 51, ROLE_HELPER);
	text(&f, "proc/stat", "cpu  1 0 1 1\ncpu0 1 0 1 1\n");
	task(&f, 500, "qemu-system-x86", 50, 0);
	task(&f, 501, "vhost-500", 51, 0);
	task(&f, 600, "ceph-osd", 60, 0);
	task(&f, 700, "a name (odd)", 70, 0);
	task(&f, 800, "ends", 80, 0);
	tick(&f);
	assert_int_equal(f.got.ntask, 0); /* a frame waits for the first tick */
	collector_host_cpu.demand(f.state, &d); /* but who asks for them gets a baseline at once */
	tick(&f);
	assert_int_equal(f.got.ntask, 3);
	assert_true(f.got.task[0].cpu_pct < 0); /* no baseline: not known, not 0 */
	task(&f, 500, "qemu-system-x86", 50, 90);
	task(&f, 501, "vhost-500", 51, 80);
	task(&f, 600, "ceph-osd", 60, 5);
	task(&f, 700, "a name (odd)", 70, 50);
	task(&f, 800, "begins", 800, 70); /* the pid is used again */
	tick(&f); /* the second reading comes at once */
	assert_int_equal(f.got.lists, 2);
	assert_int_equal(f.got.ntask, 3);
	assert_string_equal(f.got.comm[0], "a name (odd)");
	assert_string_equal(f.got.comm[1], "ceph-osd");
	assert_true(f.got.task[0].cpu_pct > f.got.task[1].cpu_pct && f.got.task[1].cpu_pct > 0);
	assert_string_equal(f.got.comm[2], "begins");
	assert_true(f.got.task[2].cpu_pct < 0);
	tear_down(&f);
}

static void tasks_are_read_seldom(void **state)
{
	struct demand d = {.tasks = true};
	struct fix f;

	(void)state;
	set_up(&f);
	text(&f, "proc/stat", "cpu  1 0 1 1\ncpu0 1 0 1 1\n");
	task(&f, 600, "ceph-osd", 60, 0);
	for (int i = 0; i < 3; i++)
		tick(&f);
	assert_int_equal(f.got.lists,
			 2); /* the first figures, after the tick that a frame waits for */
	for (int i = 0; i < 5; i++)
		tick(&f);
	assert_int_equal(f.got.lists, 3); /* then every fifth … */
	collector_host_cpu.demand(f.state, &d);
	tick(&f);
	tick(&f);
	assert_int_equal(f.got.lists, 5); /* … unless the list is on screen */
	d = (struct demand){.others_quiet = true};
	collector_host_cpu.demand(f.state, &d);
	for (int i = 0; i < 29; i++)
		tick(&f);
	assert_int_equal(f.got.lists, 5); /* where nothing of the host's is busy, seldom … */
	tick(&f);
	assert_int_equal(f.got.lists, 6);
	for (int i = 0; i < 10; i++)
		tick(&f);
	d.others_quiet = false;
	collector_host_cpu.demand(f.state, &d);
	tick(&f);
	assert_int_equal(f.got.lists,
			 7); /* … and when it is, at once, and once more for figures of now */
	tick(&f);
	assert_int_equal(f.got.lists, 8);
	for (int i = 0; i < 4; i++)
		tick(&f);
	assert_int_equal(f.got.lists, 8);
	tick(&f);
	assert_int_equal(f.got.lists, 9);
	tear_down(&f);
}

static void load_and_memory(void **state)
{
	struct fix f;

	(void)state;
	set_up(&f);
	text(&f, "proc/stat", "cpu  1 0 1 1\n");
	text(&f, "proc/loadavg", "3.25 1.00 1.00 1/100 1\n");
	text(&f, "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\n");
	tick(&f);
	assert_true(f.got.r.load1 > 3.24 && f.got.r.load1 < 3.26);
	assert_int_equal(f.got.r.mem_total_kb, 1000);
	assert_int_equal(f.got.r.mem_avail_kb, 400);
	unmake(&f.h, "proc/stat"); /* the rest goes on without a host line */
	assert_true(collector_host_cpu.tick(f.state, 0, 0) < 0);
	assert_int_equal(f.got.hosts, 1);
	tear_down(&f);
}

static void what_is_missing_is_said(void **state)
{
	struct probes p = {0};
	struct fix f;

	(void)state;
	set_up(&f);
	collector_host_cpu.probe(&f.env, &p);
	assert_int_equal(p.p[0].state, SOURCE_OFF);
	assert_string_equal(p.p[0].mend, "mount -t proc proc /proc");
	assert_int_equal(p.p[1].state, SOURCE_PARTIAL);
	assert_non_null(strstr(p.p[1].why, "CONFIG_SCHEDSTATS"));
	text(&f, "proc/stat", "cpu  1 0 1 1\n");
	text(&f, "proc/schedstat", "version 15\ncpu0 0 0 0 0 0 0 1 2 3\n");
	memset(&p, 0, sizeof(p));
	collector_host_cpu.probe(&f.env, &p);
	assert_int_equal(p.p[0].state, SOURCE_OK);
	assert_int_equal(p.p[1].state, SOURCE_OK);
	tear_down(&f);
}

/* ---- the real host's: this test is one of its tasks ---- */

static void open_real(struct fix *f)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(sysroot_open(NULL, &f->h.root), 0);
	f->h.inv = inventory_new();
	f->sink = (struct sink){.ctx = &f->got, .host = on_host, .tasks = on_tasks};
	f->env = (struct collector_env){.root = f->h.root, .inv = f->h.inv, .sink = &f->sink};
}

static void close_real(struct fix *f)
{
	collector_host_cpu.close(f->state);
	inventory_free(f->h.inv);
	sysroot_close(f->h.root);
}

static void work(long ms)
{
	for (int64_t end = clock_mono_ns() + ms * NS_PER_MS; clock_mono_ns() < end;)
		;
}

static void tasks_of_the_real_host(void **state)
{
	struct cpu_ticks before;
	struct fix f;

	(void)state;
	open_real(&f);
	assert_int_equal(collector_host_cpu.open(&f.env, &f.state), 0);
	tick(&f);
	tick(&f);
	before = f.got.r.all;
	work(150);
	tick(&f);
	assert_int_equal(f.got.hosts, 3);
	assert_true(f.got.r.ncpu >= 1 && f.got.r.all.idle > 0);
	/* Files that are held open are read anew each time. */
	assert_true(f.got.r.all.user + f.got.r.all.nice + f.got.r.all.system >
		    before.user + before.nice + before.system);
	assert_true(f.got.ntask > 0 && f.got.task[0].cpu_pct > 0);
	close_real(&f);
}

static void *work_and_end(void *arg)
{
	(void)arg;
	work(100);
	return NULL;
}

static const struct task_reading *listed(const struct fix *f, pid_t pid)
{
	for (size_t i = 0; i < f->got.ntask; i++)
		if (f->got.task[i].pid == pid)
			return &f->got.task[i];
	return NULL;
}

/* By the iterator, once it is there: with what a thread ran that has ended, and anew from there. */
static void tasks_by_the_iterator(void **state)
{
	struct demand d = {.tasks = true};
	const struct task_reading *t;
	int64_t before, cpu, passed;
	char comm[17] = "";
	pthread_t thread;
	struct fix f;

	(void)state;
	if (!sched_iter_try(comm, sizeof(comm), &(const char *){NULL}))
		skip();
	open_real(&f);
	assert_int_equal(collector_host_cpu.open(&f.env, &f.state), 0);
	collector_host_cpu.demand(f.state, &d);
	tick(&f);
	work(50);
	tick(&f); /* by files */
	t = listed(&f, getpid());
	assert_true(t && t->cpu_pct > 0);
	f.env.iter = sched_iter_new();
	assert_non_null(f.env.iter);
	sched_iter_wait(f.env.iter);
	tick(&f);
	assert_true(f.got.ntask > 0 && f.got.task[0].cpu_pct < 0); /* no baseline: not known */
	passed = clock_mono_ns();
	before = clock();
	assert_int_equal(pthread_create(&thread, NULL, work_and_end, NULL), 0);
	pthread_join(thread, NULL);
	work(50);
	cpu = (clock() - before) * (NS_PER_S / CLOCKS_PER_SEC);
	tick(&f);
	passed = clock_mono_ns() - passed;
	t = listed(&f, getpid());
	assert_non_null(t);
	assert_string_equal(f.got.comm[t - f.got.task], "test_host_cpu");
	/* What ticking itself took comes on top; the time from one reading to the next is a bit
	 * more. */
	assert_true(t->cpu_pct > 70.0 * (double)cpu / (double)passed);
	assert_true(t->cpu_pct < 110);
	close_real(&f);
	sched_iter_free(f.env.iter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_come_and_go),
		cmocka_unit_test(waits_of_a_large_host),
		cmocka_unit_test(busiest_tasks_are_no_vms),
		cmocka_unit_test(tasks_are_read_seldom),
		cmocka_unit_test(load_and_memory),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(tasks_of_the_real_host),
		cmocka_unit_test(tasks_by_the_iterator),
	};

	return cmocka_run_group_tests_name("host_cpu", tests, NULL, NULL);
}
