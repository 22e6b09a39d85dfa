// SPDX-License-Identifier: GPL-2.0-only
/* Small files of /proc: real recordings, and what such files have been seen to contain. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "procfs.h"
#include "sysroot.h"

#define ROOT "tests/data/roots/tinyvm-6.18"

/* One line of a 6.18 host (tests/data/roots), with the name and the CPU to be put in. */
#define LINE(comm, cpu)                                                                            \
	"17879 (" comm ") R 17873 17869 3282 0 -1 4194368 1 2 3 4 57 5 6 7 20 0 4 0 284897 "       \
	"19750912 426 18446744073709551615 1 2 3 0 0 0 0 6 0 0 0 0 -1 " cpu " 0 0 8 59 0 1 2 3 4 " \
	"5 6 7 0\n"

static struct proc_stat parsed(const char *text)
{
	struct proc_stat st;

	assert_int_equal(procfs_parse_stat(text, strlen(text), &st), 0);
	return st;
}

static void a_recorded_vcpu(void **state)
{
	struct sysroot *r;
	struct proc_stat st;
	struct proc_schedstat ss;
	char buf[1024];
	ssize_t n;

	(void)state;
	assert_int_equal(sysroot_open(ROOT, &r), 0);
	n = sysroot_read(r, "proc/17876/task/17879/stat", buf, sizeof(buf));
	assert_true(n > 0);
	assert_int_equal(procfs_parse_stat(buf, (size_t)n, &st), 0);
	assert_int_equal(st.pid, 17879);
	assert_string_equal(st.comm, "vcpu0");
	assert_int_equal(st.state, 'R');
	assert_int_equal(st.nfields, 52);
	assert_int_equal(st.utime, 57);
	assert_int_equal(st.stime, 0);
	assert_int_equal(st.gtime, 59);
	assert_int_equal(st.start, 284897);
	assert_int_equal(st.num_threads, 4);
	assert_int_equal(st.cpu, 1);
	assert_false(st.flags & (PROC_PF_KTHREAD | PROC_PF_USER_WORKER));
	n = sysroot_read(r, "proc/17876/task/17881/stat", buf, sizeof(buf));
	assert_int_equal(procfs_parse_stat(buf, (size_t)n, &st), 0);
	assert_true(st.flags & PROC_PF_USER_WORKER); /* kvm-nx-lpage-re… is a thread of the VMM */
	n = sysroot_read(r, "proc/2/stat", buf, sizeof(buf));
	assert_int_equal(procfs_parse_stat(buf, (size_t)n, &st), 0);
	assert_true(st.flags & PROC_PF_KTHREAD);
	n = sysroot_read(r, "proc/17876/task/17879/schedstat", buf, sizeof(buf));
	assert_int_equal(procfs_parse_schedstat(buf, (size_t)n, &ss), 0);
	assert_true(ss.run_ns > 100000000 && ss.nr_sched > 0);
	sysroot_close(r);
}

static void every_field_in_its_place(void **state)
{
	struct proc_stat st = parsed(LINE("x", "7"));

	(void)state;
	assert_int_equal(st.ppid, 17873);
	assert_int_equal(st.minflt, 1);
	assert_int_equal(st.majflt, 3);
	assert_int_equal(st.utime, 57);
	assert_int_equal(st.stime, 5);
	assert_int_equal(st.num_threads, 4);
	assert_int_equal(st.start, 284897);
	assert_int_equal(st.cpu, 7);
	assert_int_equal(st.blkio_ticks, 8);
	assert_int_equal(st.gtime, 59);
	assert_int_equal(st.gstime, 0);
}

static void names_of_any_kind(void **state)
{
	static const struct {
		const char *line, *comm;
	} cases[] = {
		{LINE("CPU 0/KVM", "1"), "CPU 0/KVM"},
		{LINE("a) R 1 (b", "1"), "a) R 1 (b"},
		{LINE(") S 1 1 1", "1"), ") S 1 1 1"},
		{LINE("two\nlines", "1"), "two\nlines"},
		{LINE("", "1"), ""},
		{LINE("((()))", "1"), "((()))"},
		{LINE("\xff\xfe\x1b[2J", "1"), "\xff\xfe\x1b[2J"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proc_stat st = parsed(cases[i].line);

		assert_string_equal(st.comm, cases[i].comm);
		assert_int_equal(st.start, 284897);
		assert_int_equal(st.nfields, 52);
	}
}

static void absurd_processor_numbers(void **state)
{
	(void)state;
	assert_int_equal(parsed(LINE("x", "-1")).cpu, -1);
	assert_int_equal(parsed(LINE("x", "4294967295")).cpu, -1);
	assert_int_equal(parsed(LINE("x", "99999999999999999999999")).cpu, -1);
	assert_int_equal(parsed(LINE("x", "65535")).cpu, 65535);
}

static void more_and_fewer_fields(void **state)
{
	char line[1024], *p;
	struct proc_stat st;

	(void)state;
	/* This project's kernels add gstime, later ones may add more. */
	snprintf(line, sizeof(line), "%s", LINE("x", "1"));
	strcpy(strchr(line, '\n'), " 4711 12 13\n");
	st = parsed(line);
	assert_int_equal(st.nfields, 55);
	assert_int_equal(st.gstime, 4711);
	/* A kernel without guest time. */
	snprintf(line, sizeof(line), "%s", LINE("x", "1"));
	p = strstr(line, " 0 0 8 59");
	assert_non_null(p);
	strcpy(p, "\n");
	st = parsed(line);
	assert_int_equal(st.nfields, 39);
	assert_int_equal(st.cpu, 1);
	assert_int_equal(st.gtime, 0);
	/* Cut in the middle: what came before is good. */
	st = parsed("1 (x) S 2 3");
	assert_int_equal(st.nfields, 5);
	assert_int_equal(st.ppid, 2);
	assert_int_equal(st.cpu, -1);
	/* Not a number: nothing behind it can be counted. */
	assert_int_equal(parsed("1 (x) S 2 3 four 5 6").nfields, 5);
}

static void what_is_no_stat(void **state)
{
	static const char *const bad[] = {"",	     "1",      "1 x S 1", "1 (x S 1",
					  "1 (x)",   "1 (x) ", "(x) S 1", "99999999999 (x) S 1",
					  "1(x) S 1"};
	struct proc_stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(procfs_parse_stat(bad[i], strlen(bad[i]), &st), -EBADMSG);
}

static void schedstat(void **state)
{
	struct proc_schedstat s;

	(void)state;
	assert_int_equal(procfs_parse_schedstat("1 2 3\n", 6, &s), 0);
	assert_int_equal(s.run_ns, 1);
	assert_int_equal(s.delay_ns, 2);
	assert_int_equal(s.nr_sched, 3);
	assert_int_equal(procfs_parse_schedstat("1 2 3 4 5\n", 10, &s), 0);
	assert_int_equal(procfs_parse_schedstat("1 2\n", 4, &s), -EBADMSG);
	assert_int_equal(procfs_parse_schedstat("", 0, &s), -EBADMSG);
	assert_int_equal(procfs_parse_schedstat("a b c", 5, &s), -EBADMSG);
}

static void cgroup_lines(void **state)
{
	static const char v1[] = "12:memory:/machine\n4:cpu,cpuacct:/machine/a:b.scope\n"
				 "1:name=systemd:/machine.slice/x\n0::/\n";
	static const char v2[] = "0::/machine.slice/gone.scope (deleted)\n";
	char out[64];

	(void)state;
	assert_int_equal(procfs_parse_cgroup(v1, strlen(v1), "cpu", out, sizeof(out)), 18);
	assert_string_equal(out, "/machine/a:b.scope");
	procfs_parse_cgroup(v1, strlen(v1), "name=systemd", out, sizeof(out));
	assert_string_equal(out, "/machine.slice/x");
	assert_int_equal(procfs_parse_cgroup(v1, strlen(v1), NULL, out, sizeof(out)), 1);
	assert_int_equal(procfs_parse_cgroup(v1, strlen(v1), "cpuset", out, sizeof(out)), -ENOENT);
	procfs_parse_cgroup(v2, strlen(v2), NULL, out, sizeof(out));
	assert_string_equal(out, "/machine.slice/gone.scope");
	assert_int_equal(procfs_parse_cgroup(v2, strlen(v2), NULL, out, 8), -ENAMETOOLONG);
	assert_int_equal(procfs_parse_cgroup("0:", 2, NULL, out, sizeof(out)), -ENOENT);
	assert_int_equal(procfs_parse_cgroup("0::x\n", 5, NULL, out, sizeof(out)), -ENOENT);
}

static void names_of_debugfs(void **state)
{
	pid_t id;
	int fd, n;

	(void)state;
	assert_int_equal(procfs_parse_kvm_dir("17876-4", &id, &fd), 0);
	assert_int_equal(id, 17876);
	assert_int_equal(fd, 4);
	assert_int_equal(procfs_parse_kvm_dir("halt_exits", &id, &fd), -EBADMSG);
	assert_int_equal(procfs_parse_kvm_dir("1-", &id, &fd), -EBADMSG);
	assert_int_equal(procfs_parse_kvm_dir("-1", &id, &fd), -EBADMSG);
	assert_int_equal(procfs_parse_kvm_dir("1-2x", &id, &fd), -EBADMSG);
	assert_int_equal(procfs_parse_kvm_dir("99999999999-2", &id, &fd), -EBADMSG);
	assert_int_equal(procfs_parse_vcpu_dir("vcpu10", &n), 0);
	assert_int_equal(n, 10);
	assert_int_equal(procfs_parse_vcpu_dir("vcpu", &n), -EBADMSG);
	assert_int_equal(procfs_parse_vcpu_dir("vcpu-1", &n), -EBADMSG);
}

static void links_of_descriptors(void **state)
{
	int n;

	(void)state;
	assert_int_equal(procfs_parse_kvm_link("anon_inode:kvm-vm", &n), KVM_LINK_VM);
	assert_int_equal(procfs_parse_kvm_link("anon_inode:kvm-vcpu:12", &n), KVM_LINK_VCPU);
	assert_int_equal(n, 12);
	assert_int_equal(procfs_parse_kvm_link("anon_inode:kvm-vcpu", &n), KVM_LINK_VCPU);
	assert_int_equal(n, -1);
	assert_int_equal(procfs_parse_kvm_link("/dev/kvm", &n), KVM_LINK_DEV);
	assert_int_equal(procfs_parse_kvm_link("/tmp/anon_inode:kvm-vm", &n), KVM_LINK_NONE);
	assert_int_equal(procfs_parse_kvm_link("anon_inode:kvm-vcpu:x", &n), KVM_LINK_NONE);
	assert_int_equal(procfs_parse_kvm_link("anon_inode:kvm-vcpu-stats:1", &n), KVM_LINK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorded_vcpu),
		cmocka_unit_test(every_field_in_its_place),
		cmocka_unit_test(names_of_any_kind),
		cmocka_unit_test(absurd_processor_numbers),
		cmocka_unit_test(more_and_fewer_fields),
		cmocka_unit_test(what_is_no_stat),
		cmocka_unit_test(schedstat),
		cmocka_unit_test(cgroup_lines),
		cmocka_unit_test(names_of_debugfs),
		cmocka_unit_test(links_of_descriptors),
	};

	return cmocka_run_group_tests_name("procfs", tests, NULL, NULL);
}
