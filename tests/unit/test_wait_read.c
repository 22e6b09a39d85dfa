// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is read out of the memory that the scheduler's programs write: differences, what is in
 * progress, and what the kernel's run delay has beside. The test plays the programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wait_read.h"

#define THREADS 4
#define CPUS 2
#define ME 1 /* the place of the watched thread */
#define MS 1000000LL

struct fixture {
	struct wait_memory m;
	struct wait_seen seen;
	struct wait_buffer buf;
	struct wait_reading r;
};

/* Threads 100 to 199 are of VMs, ten each. */
static uint32_t vm_of(void *ctx, int32_t tid)
{
	(void)ctx;
	return tid >= 100 && tid < 200 ? (uint32_t)tid / 10 : 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->m = (struct wait_memory){
		.threads = THREADS,
		.cpus = CPUS,
		.thread = calloc(THREADS, sizeof(struct sw_thread)),
		.set = calloc((size_t)THREADS * SW_SETS, sizeof(struct sw_set)),
		.wake = calloc(THREADS, sizeof(struct sw_wake)),
		.cpu = aligned_alloc(64, CPUS * sizeof(struct sw_cpu)),
		.vm_of = vm_of,
	};
	memset(f->m.cpu, 0, CPUS * sizeof(struct sw_cpu));
	wait_place_init(&f->m, ME, 101);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->m.thread);
	free(f->m.set);
	free(f->m.wake);
	free(f->m.cpu);
	free(f);
	return 0;
}

static void read_at(struct fixture *f, int64_t now, const uint64_t *delay)
{
	f->r = (struct wait_reading){0};
	wait_read(&f->m, ME, now, delay, &f->seen, &f->buf, &f->r);
}

static void put_comm(__u64 *comm, const char *name)
{
	char text[SW_COMM] = "";

	strncpy(text, name, SW_COMM - 1);
	memcpy(comm, text, SW_COMM);
}

/* Who ran, as a program adds it. */
static void add(struct fixture *f, unsigned cell, uint64_t id, const char *name, uint64_t ns)
{
	struct sw_cell *c = &f->m.set[ME * SW_SETS + cell / SW_WAYS].way[cell % SW_WAYS];

	c->id = id;
	put_comm(c->comm, name);
	c->ns += ns;
}

static const struct wait_part *part(const struct fixture *f, uint32_t vm, const char *comm)
{
	for (size_t i = 0; i < f->r.n; i++)
		if (f->r.part[i].vm == vm && !strcmp(f->r.part[i].comm, comm))
			return &f->r.part[i];
	return NULL;
}

static void differences_only(void **state)
{
	struct fixture *f = *state;
	uint64_t cc1 = SW_TASK | 5;

	add(f, 3, 15, "CPU 0/KVM", 7);
	add(f, 60, cc1, "cc1", 11);
	add(f, 9, SW_IDLE, "swapper/1", 13);
	read_at(f, 1 * MS, NULL);
	assert_int_equal(f->r.n, 3);
	assert_int_equal(part(f, 15, "CPU 0/KVM")->ns, 7);
	assert_int_equal(part(f, 0, "cc1")->ns, 11);
	assert_int_equal(part(f, 0, "")->ns, 13);
	assert_true(part(f, 0, "")->idle);
	assert_false(f->r.has_missed);
	add(f, 60, cc1, "cc1", 4);
	read_at(f, 2 * MS, NULL);
	assert_int_equal(f->r.n, 1);
	assert_int_equal(part(f, 0, "cc1")->ns, 4);
	read_at(f, 3 * MS, NULL);
	assert_int_equal(f->r.n, 0);
}

/* A name of all 16 bytes, which the kernel never writes, ends all the same. */
static void names_end(void **state)
{
	struct fixture *f = *state;
	struct sw_cell *c = &f->m.set[ME * SW_SETS].way[0];

	c->id = SW_TASK | 7;
	c->ns = 1;
	memset(c->comm, 'x', SW_COMM);
	read_at(f, MS, NULL);
	assert_int_equal(strlen(f->r.part[0].comm), SW_COMM);
}

static void what_is_in_progress_is_taken_once(void **state)
{
	struct fixture *f = *state;
	struct sw_thread *t = &f->m.thread[ME];

	f->m.cpu[1].seen = 1;
	f->m.cpu[1].tid = 700;
	put_comm(f->m.cpu[1].comm, "hog");
	wait_place_waiting(&f->m, ME, 1, 10 * MS);
	assert_int_equal(t->cpu, 1);
	assert_int_equal(f->m.cpu[1].slot[t->slot], ME);
	assert_int_equal(f->m.cpu[1].used, 1);
	read_at(f, 15 * MS, NULL);
	assert_int_equal(f->r.n, 1);
	assert_int_equal(part(f, 0, "hog")->ns, 5 * MS);
	/* The program goes on where that ended, and so does the next reading. */
	assert_int_equal(t->since, 15 * MS);
	f->m.cpu[1].tid = 150;
	put_comm(f->m.cpu[1].comm, "CPU 0/KVM");
	read_at(f, 18 * MS, NULL);
	assert_int_equal(f->r.n, 1);
	assert_int_equal(part(f, 15, "CPU 0/KVM")->ns, 3 * MS);
	f->m.cpu[1].tid = 0;
	read_at(f, 19 * MS, NULL);
	assert_true(f->r.part[0].idle);
	/* It runs: what was taken for waiting is none. */
	f->m.cpu[1].tid = 101;
	read_at(f, 30 * MS, NULL);
	assert_int_equal(f->r.n, 0);
}

/* What is in progress and what was counted are of the same one. */
static void one_part_each(void **state)
{
	struct fixture *f = *state;
	__u64 comm[SW_COMM / 8];

	put_comm(comm, "hog");
	add(f, 0, sw_task_id(comm[0], comm[1]), "hog", 100);
	f->m.cpu[0].seen = 1;
	f->m.cpu[0].tid = 700;
	memcpy(f->m.cpu[0].comm, comm, SW_COMM);
	wait_place_waiting(&f->m, ME, 0, 0);
	read_at(f, 50, NULL);
	assert_int_equal(f->r.n, 1);
	assert_int_equal(f->r.part[0].ns, 150);
}

static void unknown_while_the_cpu_did_not_switch(void **state)
{
	struct fixture *f = *state;

	wait_place_waiting(&f->m, ME, 1, 10 * MS);
	read_at(f, 15 * MS, NULL);
	assert_int_equal(f->r.n, 0);
	wait_place_waiting(&f->m, 2, CPUS, 10 * MS); /* no such CPU */
	assert_int_equal(f->m.thread[2].slot, 0);
	wait_place_end(&f->m, ME);
	assert_int_equal(f->m.cpu[1].used, 0);
	for (unsigned i = 0; i < SW_SLOTS; i++)
		assert_int_equal(f->m.cpu[1].slot[i], 0);
}

static void who_found_no_place(void **state)
{
	struct fixture *f = *state;

	f->m.thread[ME].other = 9;
	read_at(f, MS, NULL);
	assert_int_equal(f->r.n, 1);
	assert_true(f->r.part[0].other);
	assert_int_equal(f->r.part[0].ns, 9);
	read_at(f, 2 * MS, NULL);
	assert_int_equal(f->r.n, 0);
}

/* The kernel's figure and ours are read one after the other. */
static void missed(void **state)
{
	struct fixture *f = *state;
	struct sw_thread *t = &f->m.thread[ME];
	uint64_t delay = 1000;

	read_at(f, 1 * MS, &delay);
	assert_false(f->r.has_missed); /* no baseline */
	t->done += 50;
	t->waits++;
	delay += 80;
	read_at(f, 2 * MS, &delay);
	assert_true(f->r.has_missed);
	assert_int_equal(f->r.missed_ns, 30);
	/* A wait ended after the kernel's figure was read: it is in that the next time. */
	t->done += 40;
	read_at(f, 3 * MS, &delay);
	assert_int_equal(f->r.missed_ns, 0);
	delay += 40;
	read_at(f, 4 * MS, &delay);
	assert_int_equal(f->r.missed_ns, 0);
	/* But what was too much long ago hides nothing. */
	t->done += 40;
	read_at(f, 5 * MS, &delay);
	read_at(f, 6 * MS, &delay);
	delay += 40;
	read_at(f, 7 * MS, &delay);
	assert_int_equal(f->r.missed_ns, 40);
	/* Not to be read any more, then again: a new baseline. */
	read_at(f, 8 * MS, NULL);
	assert_false(f->r.has_missed);
	delay += 500;
	read_at(f, 9 * MS, &delay);
	assert_false(f->r.has_missed);
}

static uint64_t sum_of(const struct fixture *f)
{
	uint64_t ns = f->r.missed_ns;

	for (size_t i = 0; i < f->r.n; i++)
		ns += f->r.part[i].ns;
	return ns;
}

/* The programs went on for long between the clock and the look: what is too much comes later. */
static void no_more_than_there_was_time(void **state)
{
	struct fixture *f = *state;
	struct sw_thread *t = &f->m.thread[ME];
	uint64_t delay = 0;

	read_at(f, 10 * MS, &delay);
	assert_int_equal(f->r.dt, 0);
	add(f, 3, SW_TASK | 5, "cc1", 2 * MS);
	add(f, 60, SW_TASK | 7, "hog", 5 * MS);
	t->other = 1 * MS;
	f->m.cpu[1].seen = 1;
	f->m.cpu[1].tid = 700;
	put_comm(f->m.cpu[1].comm, "late");
	wait_place_waiting(&f->m, ME, 1, 12 * MS);
	read_at(f, 13 * MS, &delay);
	assert_int_equal(f->r.dt, 3 * MS);
	assert_int_equal(part(f, 0, "cc1")->ns, 2 * MS);
	assert_int_equal(part(f, 0, "hog")->ns, 1 * MS);
	assert_int_equal(sum_of(f), 3 * MS);
	assert_int_equal(t->since, 12 * MS); /* nothing of it was taken */
	read_at(f, 18 * MS, &delay);
	assert_int_equal(part(f, 0, "hog")->ns, 4 * MS);
	assert_int_equal(part(f, 0, "late")->ns, 1 * MS);
	assert_int_equal(sum_of(f), 5 * MS);
	assert_int_equal(t->since, 13 * MS);
	/* It ended in time: all of it comes, and nothing twice. */
	t->cpu = -1;
	add(f, 20, SW_TASK | 9, "late", 6 * MS);
	read_at(f, 30 * MS, &delay);
	assert_int_equal(part(f, 0, "late")->ns, 6 * MS);
	assert_int_equal(sum_of(f), 7 * MS);
	read_at(f, 40 * MS, &delay);
	assert_int_equal(sum_of(f), 0);
}

/* What the kernel tells at the end of a wait that we did not see may be older. */
static void a_long_wait_that_was_missed(void **state)
{
	struct fixture *f = *state;
	uint64_t delay = 0;

	read_at(f, 100 * MS, &delay);
	delay = 90 * MS;
	add(f, 3, SW_TASK | 5, "cc1", 4 * MS);
	read_at(f, 110 * MS, &delay);
	assert_int_equal(f->r.missed_ns, 6 * MS);
	assert_true(f->r.cut);
	assert_int_equal(sum_of(f), 10 * MS);
	delay += 2 * MS;
	read_at(f, 120 * MS, &delay);
	assert_int_equal(f->r.missed_ns, 2 * MS);
	assert_false(f->r.cut);
}

/* The kernel tells a wait when it ends: one that began before we looked is not missed. */
static void a_wait_from_before(void **state)
{
	struct fixture *f = *state;
	struct sw_thread *t = &f->m.thread[ME];
	uint64_t delay = 0;

	wait_place_waiting(&f->m, ME, 0, 10);
	read_at(f, 20, &delay);
	t->cpu = -1;
	t->done = 20;
	t->waits = 1;
	delay = 5000;
	read_at(f, 30, &delay);
	assert_false(f->r.has_missed);
	t->done += 5;
	delay += 5;
	read_at(f, 40, &delay);
	assert_true(f->r.has_missed);
	assert_int_equal(f->r.missed_ns, 0);
}

/* 20 us: 2^14 <= 20000 < 2^15, the step of 512 ns that it is in. */
static void wake_ups(void **state)
{
	struct fixture *f = *state;

	read_at(f, 1, NULL);
	assert_null(f->r.wake);
	f->m.wake[ME].n[10][(20000 >> 9) & 31] = 3;
	f->m.thread[ME].wakeups = 3;
	read_at(f, 2, NULL);
	assert_int_equal(f->r.wakeups, 3);
	assert_non_null(f->r.wake);
	assert_int_equal(hist_count(f->r.wake), 3);
	assert_in_range(hist_quantile(f->r.wake, 0.5), 19968, 20479);
	f->m.wake[ME].n[3][0]++;
	f->m.thread[ME].wakeups++;
	read_at(f, 3, NULL);
	assert_int_equal(f->r.wakeups, 1);
	assert_int_equal(hist_count(f->r.wake), 1);
	assert_in_range(hist_quantile(f->r.wake, 0.5), 128, 131);
}

/* A name that does not come any more leaves its place; the counter goes on under the next. */
static void old_names_go(void **state)
{
	struct fixture *f = *state;
	struct sw_cell *c = &f->m.set[ME * SW_SETS].way[0];

	add(f, 0, SW_TASK | 5, "once", 100);
	for (int i = 0; i < 100; i++)
		read_at(f, i * MS, NULL);
	assert_int_equal(c->id, 0);
	add(f, 0, SW_TASK | 6, "next", 10);
	read_at(f, 101 * MS, NULL);
	assert_int_equal(f->r.n, 1);
	assert_int_equal(part(f, 0, "next")->ns, 10);
}

/* Counters of 32 bits go round. */
static void changes_of_tasks(void **state)
{
	struct fixture *f = *state;
	uint32_t seen[CPUS] = {0};

	f->m.cpu[0].switches = 5;
	f->m.cpu[1].switches = UINT32_MAX - 1;
	assert_int_equal(wait_switches(&f->m, seen), UINT32_MAX + 4ull);
	assert_int_equal(wait_switches(&f->m, seen), 0);
	f->m.cpu[1].switches = 3;
	assert_int_equal(wait_switches(&f->m, seen), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(differences_only, setup, teardown),
		cmocka_unit_test_setup_teardown(names_end, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_in_progress_is_taken_once, setup, teardown),
		cmocka_unit_test_setup_teardown(one_part_each, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_while_the_cpu_did_not_switch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_found_no_place, setup, teardown),
		cmocka_unit_test_setup_teardown(missed, setup, teardown),
		cmocka_unit_test_setup_teardown(no_more_than_there_was_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_wait_that_was_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_from_before, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_of_tasks, setup, teardown),
		cmocka_unit_test_setup_teardown(wake_ups, setup, teardown),
		cmocka_unit_test_setup_teardown(old_names_go, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
