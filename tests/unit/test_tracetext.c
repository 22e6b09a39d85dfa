// SPDX-License-Identifier: GPL-2.0-only
/* ftrace's text in the forms that kernels and trace-cmd print; recordings of tests/data/ftrace. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "tracetext.h"

/* The event's parts, as one text: "pid tgid cpu stamp name". */
static const char *parts(const char *line, unsigned columns)
{
	static char buf[200];
	struct tracetext_event e = {0};

	if (!tracetext_line(line, strlen(line), columns, &e))
		return "none";
	snprintf(buf, sizeof(buf), "%d %d %u %.*s %.*s", e.pid, e.tgid, e.cpu, (int)e.stamp_len,
		 line + e.stamp, (int)e.name_len, line + e.name);
	return buf;
}

static void flags_of_every_width(void **state)
{
	(void)state;
	/* 3.x: four columns; 5.x: five with migrate-disable; 7: with lazy preemption. */
	assert_string_equal(
		parts("            bash-1977  [003] d..2 17284993656: sched_wakeup: x", 0),
		"1977 0 3 17284993656 sched_wakeup");
	assert_string_equal(
		parts("            bash-1977  [003] d..2. 17284993656: sched_wakeup: x", 0),
		"1977 0 3 17284993656 sched_wakeup");
	assert_string_equal(
		parts("            bash-1977  [003] d..h2.. 17284993656: kvm_exit: x", 0),
		"1977 0 3 17284993656 kvm_exit");
	assert_string_equal(parts("            bash-1977  [003]  17284993656: sched_wakeup: x", 0),
			    "1977 0 3 17284993656 sched_wakeup");
	assert_string_equal(parts("comm-3826 [000] d...49836825726903: sched_wakeup: [detail]", 0),
			    "3826 0 0 49836825726903 sched_wakeup");
	/* Without a head that says so there may be more than four. */
	assert_string_equal(parts("comm-3826 [000] d....49836825726903: a: b", 0),
			    "3826 0 0 49836825726903 a");
	assert_string_equal(parts("comm-3826 [000] d.h2...49836825726903: a: b", 0),
			    "3826 0 0 49836825726903 a");
	/* The fourth column may be a digit, the fifth too. */
	assert_string_equal(parts("comm-3826 [000] d.h149836825726903: a: b", 4),
			    "3826 0 0 49836825726903 a");
	assert_string_equal(parts("comm-3826 [000] d.h1249836825726903: a: b", 5),
			    "3826 0 0 49836825726903 a");
}

static void thread_groups(void **state)
{
	(void)state;
	assert_string_equal(parts("          <idle>-0     (-----) [001] d..1  5678: a: b", 0),
			    "0 0 1 5678 a");
	assert_string_equal(parts("      tinyvm-run-563     (    563) [000] d..1. 5678: a: b", 0),
			    "563 563 0 5678 a");
	assert_string_equal(parts(" qemu-system-x86-23513   (-------) [001] d..2. 5678: a: b", 0),
			    "23513 0 1 5678 a");
}

static void names_that_pose_as_a_line(void **state)
{
	(void)state;
	assert_string_equal(parts("       CPU 0/KVM-11387   [000] ..... 5678: kvm_fpu: load", 0),
			    "11387 0 0 5678 kvm_fpu");
	assert_string_equal(parts(" a-1 [1] 5: x: y-77      [002] d..1. 5678: kvm_fpu: load", 0),
			    "77 0 2 5678 kvm_fpu");
	assert_string_equal(parts("    kvm-pit/1-2-3-12789   [000] ...1. 5678: a: b", 0),
			    "12789 0 0 5678 a");
	assert_string_equal(parts("           - - --5     [000] ...1. 5678: a: b", 0),
			    "5 0 0 5678 a");
}

static void lines_without_a_name(void **state)
{
	(void)state;
	assert_string_equal(parts(" test_kvm_events-29594   [001] ..... 39261: <stack trace>", 0),
			    "29594 0 1 39261 ");
	assert_string_equal(
		parts("            bash-1     [001] .....  5: do_idle <-cpu_startup", 0),
		"1 0 1 5 ");
}

static void latency_columns_of_trace_cmd(void **state)
{
	(void)state;
	assert_string_equal(
		parts("test_kvm-1195    0..... 39323897762239: kvm_userspace_exit: x", 0),
		"1195 0 0 39323897762239 kvm_userspace_exit");
	assert_string_equal(parts("test_kvm-1195   12d..2. 39323897762239: a: x", 0),
			    "1195 0 12 39323897762239 a");
}

static void what_is_no_event(void **state)
{
	static const char *const bad[] = {
		"",
		"-",
		" => do_syscall_64",
		"cpus=2",
		"a-1 [0] 5",
		"            bash-1977  [003] d..2 99999999999999999999999: a: b",
		"            bash-1977  [9000] d..2 1: a: b",
		"            bash-x [000] 1: a: b",
		" 0)   1.234 us    |  ktime_get();",
		"bash-1977 003 d..2 17: a: b",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_string_equal(parts(bad[i], 0), "none");
}

/* --- files --- */

static int file_of(const char *text, size_t len)
{
	int fd = memfd_create("trace", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	return fd;
}

static struct tracetext *open_text(const char *text, int *fd)
{
	struct tracetext *t;

	*fd = file_of(text, strlen(text));
	assert_int_equal(tracetext_open(*fd, 0, &t), 0);
	return t;
}

static void close_text(struct tracetext *t, int fd)
{
	tracetext_close(t);
	close(fd);
}

#define LINE(comm, cpu, ts) comm "-1     [00" #cpu "] d..1. " #ts ": ev: x"
#define A LINE("               a", 0, 100)
#define B LINE("               b", 1, 110)
#define C LINE("               c", 0, 120)

static void next_is(struct tracetext *t, const char *text, uint64_t ts)
{
	struct tracetext_event e;

	assert_int_equal(tracetext_next(t, &e), 1);
	assert_int_equal(e.len, strlen(text));
	assert_memory_equal(e.text, text, e.len);
	assert_true(e.ts == ts);
	assert_true(e.line + e.line_len <= e.len);
	assert_memory_equal(e.text + e.name, "ev", 2);
}

static void ends(struct tracetext *t)
{
	struct tracetext_event e;

	assert_int_equal(tracetext_next(t, &e), 0);
	assert_int_equal(tracetext_next(t, &e), 0);
}

static void lines_belong_to_their_event(void **state)
{
	struct tracetext *t;
	int fd;

	(void)state;
	t = open_text("# tracer: nop\n#\n" A "\n => one\n => two\nCPU:1 [LOST 7 EVENTS]\n" B "\n\n"
		      "##### CPU 0 buffer started ####\n" C,
		      &fd);
	next_is(t, A "\n => one\n => two", 100);
	next_is(t, "CPU:1 [LOST 7 EVENTS]\n" B, 110);
	next_is(t, "##### CPU 0 buffer started ####\n" C, 120);
	ends(t);
	assert_string_equal(tracetext_facts(t)->tracer, "nop");
	assert_int_equal(tracetext_facts(t)->events, 3);
	close_text(t, fd);
}

static void one_cpu_alone(void **state)
{
	static const char text[] = A "\n => one\nCPU:1 [LOST 7 EVENTS]\nCPU:0 [LOST 9 EVENTS]\n" B
				     "\n => two\n" C "\n";
	struct tracetext_cpus one = {0};
	struct tracetext *t;
	int fd;

	(void)state;
	t = open_text(text, &fd);
	tracetext_add_cpu(&one, 1);
	assert_int_equal(tracetext_only(t, &one, 0), 0);
	next_is(t, "CPU:1 [LOST 7 EVENTS]\nCPU:0 [LOST 9 EVENTS]\n" B "\n => two", 110);
	ends(t);
	close_text(t, fd);
}

static void dos_line_ends(void **state)
{
	struct tracetext *t;
	int fd;

	(void)state;
	t = open_text(A "\r\n" B "\r\n" C "\r", &fd);
	next_is(t, A, 100);
	next_is(t, B, 110);
	next_is(t, C, 120);
	ends(t);
	close_text(t, fd);
}

static void a_line_longer_than_any_buffer(void **state)
{
	size_t big = (size_t)3 << 20, at = 0;
	char *text = malloc(big + 1000);
	struct tracetext_event e;
	struct tracetext *t;
	int fd;

	(void)state;
	assert_non_null(text);
	at += (size_t)sprintf(text, "%s", A);
	memset(text + at, 'x', big);
	at += big;
	at += (size_t)sprintf(text + at, "\n%s\n", B);
	fd = file_of(text, at);
	assert_int_equal(tracetext_open(fd, 0, &t), 0);
	assert_int_equal(tracetext_next(t, &e), 1);
	assert_true(e.ts == 100 && e.len >= (size_t)1 << 20 && e.len < big);
	next_is(t, B, 110);
	ends(t);
	assert_int_equal(tracetext_facts(t)->cut, 1);
	close_text(t, fd);
	free(text);
}

/* Many events over many buffers: none is lost where one buffer ends. */
static void no_event_is_lost_between_buffers(void **state)
{
	FILE *f = tmpfile();
	struct tracetext_event e;
	struct tracetext *t;
	struct tracetext_cpus cpus = {0};
	uint64_t n = 0, of_cpu = 0;

	(void)state;
	for (int i = 0; i < 20000; i++)
		fprintf(f, "%16s-%-7d [%03d] d..1. %d: ev: %.*s\n", "name", i, i % 7, 1000 + i,
			i % 50, "..................................................");
	fflush(f);
	assert_int_equal(tracetext_open(fileno(f), 0, &t), 0);
	while (tracetext_next(t, &e) == 1) {
		assert_int_equal(e.pid, n);
		assert_true(e.ts == 1000 + n);
		n++;
	}
	assert_int_equal(n, 20000);
	tracetext_close(t);
	/* The same through the least of buffers, of one CPU. */
	assert_int_equal(tracetext_open(fileno(f), 0, &t), 0);
	tracetext_add_cpu(&cpus, 3);
	tracetext_add_cpu(&cpus, 70);
	assert_int_equal(tracetext_only(t, &cpus, 1), 0);
	while (tracetext_next(t, &e) == 1)
		assert_int_equal(e.pid, 3 + 7 * of_cpu++);
	assert_int_equal(of_cpu, 2857);
	tracetext_close(t);
	fclose(f);
}

/* --- recordings --- */

struct want {
	const char *file;
	uint64_t events, writes, orphans;
	enum tracetext_clock clock;
};

static void recordings(void **state)
{
	static const struct want all[] = {
		{"tsc-6.18.txt", 125, 2, 0, TRACETEXT_CYCLES},
		{"tsc-6.18-tgid.txt", 111, 2, 0, TRACETEXT_CYCLES},
		{"tsc-6.18-noirq.txt", 35, 2, 0, TRACETEXT_CYCLES},
		{"tsc-6.18-stack.txt", 20, 1, 0, TRACETEXT_CYCLES},
		{"tsc-6.18-lost.txt", 14, 0, 0, TRACETEXT_CYCLES},
		{"tsc-trace-cmd.txt", 61, 2, 1, TRACETEXT_CYCLES},
		{"counter-6.18.txt", 28, 0, 0, TRACETEXT_COUNTER},
		{"uptime-6.18.txt", 28, 2, 0, TRACETEXT_COUNTER},
		{"kvm-6.1-svm.txt", 988, 19, 0, TRACETEXT_SECONDS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		enum tracetext_clock clock;
		struct tracetext_event e;
		struct tracetext *t;
		uint64_t writes = 0, last = 0;
		char path[100];
		int fd;

		snprintf(path, sizeof(path), "tests/data/ftrace/%s", all[i].file);
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0);
		assert_int_equal(tracetext_open(fd, 0, &t), 0);
		assert_int_equal(tracetext_clock(t, &clock), 0);
		assert_int_equal(clock, all[i].clock);
		while (tracetext_next(t, &e) == 1) {
			writes += e.name_len == 20 &&
				  memcmp(e.text + e.name, "kvm_write_tsc_offset", 20) == 0;
			assert_true(e.ts >= last);
			last = e.ts;
		}
		assert_int_equal(writes, all[i].writes);
		assert_int_equal(tracetext_facts(t)->orphans, all[i].orphans);
		if (all[i].events)
			assert_int_equal(tracetext_facts(t)->events, all[i].events);
		close_text(t, fd);
	}
}

static void relative_stamps_are_known(void **state)
{
	int fd = open("tests/data/ftrace/latency-6.18.txt", O_RDONLY);
	enum tracetext_clock clock;
	struct tracetext *t;

	(void)state;
	assert_int_equal(tracetext_open(fd, 0, &t), 0);
	assert_int_equal(tracetext_clock(t, &clock), 0);
	assert_true(tracetext_facts(t)->latency);
	close_text(t, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_of_every_width),
		cmocka_unit_test(thread_groups),
		cmocka_unit_test(names_that_pose_as_a_line),
		cmocka_unit_test(lines_without_a_name),
		cmocka_unit_test(latency_columns_of_trace_cmd),
		cmocka_unit_test(what_is_no_event),
		cmocka_unit_test(lines_belong_to_their_event),
		cmocka_unit_test(one_cpu_alone),
		cmocka_unit_test(dos_line_ends),
		cmocka_unit_test(a_line_longer_than_any_buffer),
		cmocka_unit_test(no_event_is_lost_between_buffers),
		cmocka_unit_test(recordings),
		cmocka_unit_test(relative_stamps_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
