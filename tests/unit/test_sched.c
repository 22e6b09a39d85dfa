// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * The collector `sched` over made trees (threads, cgroups v1 and v2, NUMA) and over a real
 * process that ends: what it hands to the sink, what it holds open, who is gone.
 */
#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sched.h"
#include "vms_tree.h"

#define PID 500
#define GROUP "/machine.slice/vm.scope"
#define V2 "sys/fs/cgroup"

/* What came through the sink in the last tick. */
struct got {
	struct {
		pid_t tid;
		struct thread_reading r;
	} thread[64];
	struct {
		pid_t tid;
		struct quota_reading r;
		char group[128];
	} quota[64];
	struct {
		pid_t tid;
		char pin[32], node[32];
	} place[64];
	size_t nthread, nquota, nplace;
};

struct fix {
	struct host h;
	struct got got;
	struct sink sink;
	struct collector_env env;
	struct inv_vm *vm;
	void *sched;
};

static void on_thread(void *ctx, const struct thread_reading *r)
{
	struct got *g = ctx;

	g->thread[g->nthread].tid = r->thread->tid;
	g->thread[g->nthread++].r = *r;
}

static void on_quota(void *ctx, const struct quota_reading *r)
{
	struct got *g = ctx;

	g->quota[g->nquota].tid = r->thread->tid;
	snprintf(g->quota[g->nquota].group, 128, "%s", r->group ? r->group : "");
	g->quota[g->nquota++].r = *r;
}

static void on_place(void *ctx, const struct place_reading *r)
{
	struct got *g = ctx;

	g->place[g->nplace].tid = r->thread->tid;
	snprintf(g->place[g->nplace].pin, 32, "%s", r->pin ? r->pin : "");
	snprintf(g->place[g->nplace++].node, 32, "%s", r->node ? r->node : "");
}

static void start(struct fix *f, const char *dir)
{
	assert_int_equal(sysroot_open(dir, &f->h.root), 0);
	f->h.inv = inventory_new();
	assert_non_null(f->h.inv);
	f->sink = (struct sink){
		.ctx = &f->got, .thread = on_thread, .quota = on_quota, .place = on_place};
	f->env = (struct collector_env){.root = f->h.root, .inv = f->h.inv, .sink = &f->sink};
	assert_int_equal(collector_sched.open(&f->env, &f->sched), 0);
}

static void set_up(struct fix *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->h.dir, "/tmp/kvmtop-sched-XXXXXX");
	assert_non_null(mkdtemp(f->h.dir));
	start(f, f->h.dir);
	f->vm = inventory_add_vm(f->h.inv, PID, 5000, "500-10");
}

static void tear_down(struct fix *f)
{
	char cmd[128];

	collector_sched.close(f->sched);
	inventory_free(f->h.inv);
	sysroot_close(f->h.root);
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", f->h.dir);
	assert_int_equal(system(cmd), 0);
}

static void tick(struct fix *f)
{
	memset(&f->got, 0, sizeof(f->got));
	f->h.now += NS_PER_S;
	assert_int_equal(collector_sched.tick(f->sched, f->h.now, f->h.now), 0);
}

static void text(const struct fix *f, const char *path, const char *what)
{
	put(&f->h, what, strlen(what), "%s", path);
}

/* Files of a thread, in the inventory too; tids from PID + 1. */
static struct inv_thread *add_thread(struct fix *f, int tid, enum inv_role role, const char *group)
{
	char line[256];
	struct inv_thread *t = inventory_add_thread(f->h.inv, f->vm, PID, tid, 5001, role);

	assert_non_null(t);
	thread_of(&f->h, PID, tid, "CPU 0/KVM", 5001, 7);
	put(&f->h, "1000 200 3\n", 11, "proc/%d/task/%d/schedstat", PID, tid);
	snprintf(line, sizeof(line), "0::%s\n", group);
	put(&f->h, line, strlen(line), "proc/%d/task/%d/cgroup", PID, tid);
	if (role == ROLE_VCPU)
		inventory_set_thread(f->h.inv, inventory_add_vcpu(f->h.inv, f->vm, tid - PID - 1),
				     t);
	return t;
}

static const struct quota_reading *quota_of(const struct fix *f, pid_t tid)
{
	for (size_t i = 0; i < f->got.nquota; i++)
		if (f->got.quota[i].tid == tid)
			return &f->got.quota[i].r;
	fail_msg("no quota of %d", tid);
	return NULL;
}

static unsigned open_below(const char *dir)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");

	while ((e = readdir(d))) {
		char link[256];
		ssize_t len = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[len > 0 ? len : 0] = '\0';
		n += !strncmp(link, dir, strlen(dir)) && link[strlen(dir)];
	}
	closedir(d);
	return n;
}

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

/* ---- quotas ---- */

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
	assert_string_equal(f.got.quota[0].group, GROUP);
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
		cmocka_unit_test(places_on_demand),
		cmocka_unit_test(what_is_missing_is_said),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
