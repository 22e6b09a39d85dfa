// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * The task iterator on real threads, beside what /proc says of the same ones: it needs a kernel
 * with BPF and its type information, and the right to load programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "procfs.h"
#include "sched_iter.h"

struct seen {
	struct task_record r[16];
	void *token[16];
	size_t n;
};

static void see(void *ctx, void *token, const struct task_record *r)
{
	struct seen *s = ctx;

	assert_true(s->n < 16);
	s->token[s->n] = token;
	s->r[s->n++] = *r;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static struct sched_iter *loaded(void)
{
	struct sched_iter *it = sched_iter_new();

	assert_non_null(it);
	while (sched_iter_state(it) == ITER_LOADING)
		nap(5);
	return it;
}

static bool usable(void)
{
	const char *mend = NULL;
	char why[200];

	if (sched_iter_try(why, sizeof(why), &mend))
		return true;
	print_message("the task iterator does not work here: %s\n", why);
	return false;
}

static const struct task_record *record_of(const struct seen *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->r[i].tid == (uint32_t)tid)
			return &s->r[i];
	return NULL;
}

static void read_stat(pid_t pid, struct proc_stat *st, struct proc_schedstat *ss)
{
	char path[64], buf[1024];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	assert_int_equal(procfs_parse_stat(buf, n, st), 0);
	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	assert_int_equal(procfs_parse_schedstat(buf, n, ss), 0);
}

static pid_t spin_on(int cpu)
{
	pid_t child = fork();

	if (child == 0) {
		cpu_set_t set;
		volatile unsigned long n = 0;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		for (;;)
			n = n + 1;
	}
	assert_true(child > 0);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_stopped_process_reads_as_in_proc(void **state)
{
	struct seen s = {0};
	struct proc_schedstat ss;
	struct proc_stat st;
	struct sched_iter *it;
	pid_t child;

	(void)state;
	if (!usable())
		skip();
	it = loaded();
	assert_int_equal(sched_iter_state(it), ITER_WORKS);
	child = spin_on(0);
	nap(50);
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	assert_int_equal(sched_iter_want(it, child, &s), 0);
	/* A parent is told before the stopped child has left its CPU. */
	do {
		s.n = 0;
		assert_int_equal(sched_iter_read(it, see, &s), 0);
		assert_int_equal(s.n, 1);
	} while (s.r[0].on_cpu && (nap(2), true));
	assert_ptr_equal(s.token[0], &s);
	read_stat(child, &st, &ss);
	assert_int_equal(sched_iter_letter(s.r[0].state), 'T');
	assert_int_equal(s.r[0].run_ns, ss.run_ns);
	assert_int_equal(s.r[0].delay_ns, ss.delay_ns);
	assert_int_equal(s.r[0].nr_sched, ss.nr_sched);
	assert_int_equal(s.r[0].start / 10000000, st.start);
	assert_int_equal(s.r[0].minflt, st.minflt);
	assert_int_equal(s.r[0].cpu, st.cpu);
	assert_true(s.r[0].run_ns > 0);
	assert_true((int64_t)s.r[0].time <= clock_mono_ns());
	end(child);
	sched_iter_free(it);
}

/* Which of two that share a CPU has it: exactly one, at any moment. */
static void of_two_on_one_cpu_one_is_on_it(void **state)
{
	unsigned both = 0, one = 0, seen = 0;
	struct sched_iter *it;
	bool running = true;
	pid_t a, b;

	(void)state;
	if (!usable())
		skip();
	it = loaded();
	a = spin_on(0);
	b = spin_on(0);
	nap(20);
	sched_iter_want(it, a, NULL);
	sched_iter_want(it, b, NULL);
	/* On a machine at work others have that CPU most of the time. */
	for (int i = 0; i < 5000 && one < 20; i++) {
		struct seen s = {0};
		const struct task_record *ra, *rb;

		sched_iter_read(it, see, &s);
		ra = record_of(&s, a);
		rb = record_of(&s, b);
		seen += ra && rb;
		running &= ra && rb && sched_iter_letter(ra->state) == 'R' &&
			   sched_iter_letter(rb->state) == 'R';
		both += ra && rb && ra->on_cpu && rb->on_cpu;
		one += ra && rb && ra->on_cpu != rb->on_cpu;
		nap(3);
	}
	end(a);
	end(b);
	sched_iter_free(it);
	assert_true(seen >= 20 && running);
	assert_int_equal(one, 20);
	assert_in_range(both, 0, 4); /* looked at one after the other: a switch may lie between */
}

static void who_ended_is_not_there_and_a_token_can_change(void **state)
{
	struct seen s = {0};
	struct sched_iter *it;
	int x, y;
	pid_t child;

	(void)state;
	if (!usable())
		skip();
	it = loaded();
	child = spin_on(0);
	sched_iter_want(it, child, &x);
	sched_iter_want(it, child, &y); /* another thread of that number */
	sched_iter_drop(it, child, &x); /* must not forget the later one */
	sched_iter_want(it, getpid(), &s);
	assert_int_equal(sched_iter_read(it, see, &s), 0);
	assert_int_equal(s.n, 2);
	assert_ptr_equal(s.token[s.r[0].tid == (uint32_t)child ? 0 : 1], &y);
	end(child);
	s.n = 0;
	assert_int_equal(sched_iter_read(it, see, &s), 0);
	assert_int_equal(s.n, 1);
	sched_iter_drop(it, getpid(), &s);
	s.n = 0;
	assert_int_equal(sched_iter_read(it, see, &s), 0);
	assert_int_equal(s.n, 0);
	sched_iter_free(it);
}

struct others {
	pid_t child;
	uint64_t run_ns; /* of all its threads */
	unsigned leaders, threads, of_me;
	struct other_record leader;
};

static void see_other(void *ctx, const struct other_record *r)
{
	struct others *o = ctx;

	o->of_me += r->tid == (uint32_t)getpid();
	if (r->pid != (uint32_t)o->child)
		return;
	o->run_ns += r->run_ns;
	o->threads++;
	if (r->tid != r->pid)
		return;
	o->leaders++;
	o->leader = *r;
}

static void *work_and_end(void *arg)
{
	for (int64_t end = clock_mono_ns() + *(long *)arg * 1000000; clock_mono_ns() < end;)
		;
	return NULL;
}

static void *work_and_stay(void *arg)
{
	work_and_end(arg);
	pause();
	return NULL;
}

/* A process with a thread that has ended and one that has not; all of it is stopped. */
static pid_t threaded(void)
{
	int ready[2];
	char one = 0;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		static long shortly = 60, longer = 90;
		pthread_t a, b;

		if (pthread_create(&a, NULL, work_and_end, &shortly) ||
		    pthread_create(&b, NULL, work_and_stay, &longer) || pthread_join(a, NULL))
			_exit(1);
		nap(200);
		_exit(write(ready[1], &one, 1) == 1 && !pause());
	}
	assert_int_equal(read(ready[0], &one, 1), 1);
	close(ready[0]);
	close(ready[1]);
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	return child;
}

static void others_are_all_that_nobody_asked_for(void **state)
{
	struct others o = {0};
	struct proc_schedstat ss;
	struct proc_stat st;
	struct sched_iter *it;
	uint64_t ticks;

	(void)state;
	if (!usable())
		skip();
	it = loaded();
	o.child = threaded();
	assert_int_equal(sched_iter_want(it, getpid(), &o), 0);
	assert_int_equal(sched_iter_others(it, see_other, &o), 0);
	read_stat(o.child, &st, &ss);
	ticks = st.utime + st.stime;
	assert_int_equal(o.of_me, 0);
	assert_int_equal(o.leaders, 1);
	assert_int_equal(o.threads, 2);
	assert_string_equal(o.leader.comm, st.comm);
	assert_int_equal(o.leader.start / 10000000, st.start);
	assert_int_equal(sched_iter_letter(o.leader.state), 'T');
	assert_int_equal(o.leader.worker, 0);
	/* Each of the two is whole ticks of what it is. */
	assert_in_range(o.run_ns / 10000000, ticks, ticks + 2);
	assert_true(o.leader.run_ns > ss.run_ns); /* with what the thread ran that ended */
	sched_iter_drop(it, getpid(), &o);
	assert_int_equal(sched_iter_others(it, see_other, &o), 0);
	assert_int_equal(o.of_me, 1);
	end(o.child);
	sched_iter_free(it);
}

#define MANY 3000

static void *sleep_long(void *arg)
{
	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	pause();
	return NULL;
}

static void count(void *ctx, void *token, const struct task_record *r)
{
	unsigned *times = ctx;

	assert_int_equal(*(pid_t *)token, r->tid);
	times[(pid_t *)token - (pid_t *)(void *)(times + MANY)]++;
}

/* More records than one read of the kernel's buffer holds: none is cut, none comes twice. */
static void of_thousands_each_comes_once(void **state)
{
	struct {
		unsigned times[MANY];
		pid_t tid[MANY];
	} * all;
	pthread_attr_t small;
	struct sched_iter *it;
	unsigned made = 0;
	pid_t child;
	int go[2];

	(void)state;
	if (!usable())
		skip();
	it = loaded();
	all = calloc(1, sizeof(*all));
	assert_non_null(all);
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (child == 0) {
		pid_t *tid = calloc(MANY, sizeof(*tid));
		pthread_t t;

		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, 64 << 10);
		for (unsigned i = 0; i < MANY; i++)
			made += pthread_create(&t, &small, sleep_long, &tid[i]) == 0;
		if (write(go[1], &made, sizeof(made)) < 0)
			_exit(1);
		for (unsigned i = 0; i < made; i++)
			while (!__atomic_load_n(&tid[i], __ATOMIC_RELAXED))
				nap(2);
		if (write(go[1], tid, MANY * sizeof(*tid)) < 0)
			_exit(1);
		pause();
	}
	assert_int_equal(read(go[0], &made, sizeof(made)), sizeof(made));
	assert_int_equal(made, MANY);
	for (size_t have = 0; have < sizeof(all->tid);) {
		ssize_t n = read(go[0], (char *)all->tid + have, sizeof(all->tid) - have);

		assert_true(n > 0);
		have += (size_t)n;
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(sched_iter_want(it, all->tid[i], &all->tid[i]), 0);
	assert_int_equal(sched_iter_read(it, count, all->times), 0);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(all->times[i], 1);
	end(child);
	close(go[0]);
	close(go[1]);
	free(all);
	sched_iter_free(it);
}

static void states_are_spelled_as_stat_does(void **state)
{
	(void)state;
	assert_int_equal(sched_iter_letter(0), 'R');
	assert_int_equal(sched_iter_letter(1), 'S');
	assert_int_equal(sched_iter_letter(2), 'D');
	assert_int_equal(sched_iter_letter(0x402), 'I');
	assert_int_equal(sched_iter_letter(0x102), 'D'); /* killable */
	assert_int_equal(sched_iter_letter(4), 'T');
	assert_int_equal(sched_iter_letter(8), 't');
	assert_int_equal(sched_iter_letter(0x20), 'Z');
	assert_int_equal(sched_iter_letter(0x10), 'X');
	assert_int_equal(sched_iter_letter(0x8000), 'D'); /* frozen */
	assert_int_equal(sched_iter_letter(~0u), 'P');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_process_reads_as_in_proc),
		cmocka_unit_test(of_two_on_one_cpu_one_is_on_it),
		cmocka_unit_test(who_ended_is_not_there_and_a_token_can_change),
		cmocka_unit_test(of_thousands_each_comes_once),
		cmocka_unit_test(others_are_all_that_nobody_asked_for),
		cmocka_unit_test(states_are_spelled_as_stat_does),
	};

	return cmocka_run_group_tests_name("sched_iter", tests, NULL, NULL);
}
