// SPDX-License-Identifier: GPL-2.0-only
/* Parsers of the host's files and of cgroups' cpu.stat: real files, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cgroup.h"
#include "hoststat.h"

static size_t load(const char *name, char *buf, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/host/%s", name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(buf, 1, size, f);
	fclose(f);
	return n;
}

static void real_stat_adds_up(void **state)
{
	char buf[8192];
	size_t n = load("stat", buf, sizeof(buf)), at = 0;
	struct cpu_ticks all = {0}, t;
	uint64_t user = 0, idle = 0;
	int cpu, cpus = 0;

	(void)state;
	while (hoststat_next_cpu(buf, n, &at, &cpu, &t)) {
		if (cpu < 0) {
			all = t;
			continue;
		}
		assert_int_equal(cpu, cpus);
		cpus++;
		user += t.user;
		idle += t.idle;
	}
	assert_int_equal(cpus, 2);
	/* The sum's line is rounded by itself. */
	assert_true(all.user >= user && all.user - user <= 2);
	assert_true(all.idle >= idle && all.idle - idle <= 2);
	assert_true(all.user > 0);
}

static void offline_cpu_and_short_lines(void **state)
{
	/* CPU 1 is offline; an old kernel has four figures; the last line is cut. */
	static const char text[] =
		"cpu  1 2 3 4\ncpu0 1 2 3 4 5 6 7 8 9 10 11\ncpu2 9 9 9 9\ncpux 1\n"
		"intr 5\ncpu3 1 2";
	struct cpu_ticks t;
	size_t at = 0;
	int cpu;

	(void)state;
	assert_true(hoststat_next_cpu(text, sizeof(text) - 1, &at, &cpu, &t));
	assert_int_equal(cpu, -1);
	assert_int_equal(t.iowait, 0);
	assert_true(hoststat_next_cpu(text, sizeof(text) - 1, &at, &cpu, &t));
	assert_int_equal(cpu, 0);
	assert_int_equal(t.guest_nice, 10);
	assert_true(hoststat_next_cpu(text, sizeof(text) - 1, &at, &cpu, &t));
	assert_int_equal(cpu, 2);
	assert_false(hoststat_next_cpu(text, sizeof(text) - 1, &at, &cpu, &t));
}

static void absurd_numbers_saturate(void **state)
{
	static const char text[] = "cpu0 99999999999999999999999 0 0 1\ncpu99999999 1 1 1 1\n";
	struct cpu_ticks t;
	size_t at = 0;
	int cpu;

	(void)state;
	assert_true(hoststat_next_cpu(text, sizeof(text) - 1, &at, &cpu, &t));
	assert_true(t.user == UINT64_MAX);
	assert_false(hoststat_next_cpu(text, sizeof(text) - 1, &at, &cpu, &t));
}

static void schedstat_wait_is_the_eighth(void **state)
{
	static const char text[] = "version 15\ntimestamp 4295\ncpu0 0 0 10 5 7 3 111 222 333\n"
				   "domain0 3 1 2 3\ncpu1 0 0 0 0 0 0 1 2 3\ncpu2 1 2 3\n";
	uint64_t wait;
	size_t at = 0;
	int cpu;

	(void)state;
	assert_true(hoststat_next_wait(text, sizeof(text) - 1, &at, &cpu, &wait));
	assert_int_equal(cpu, 0);
	assert_int_equal(wait, 222);
	assert_true(hoststat_next_wait(text, sizeof(text) - 1, &at, &cpu, &wait));
	assert_int_equal(wait, 2);
	assert_false(hoststat_next_wait(text, sizeof(text) - 1, &at, &cpu, &wait));
}

static void add_bit(void *ctx, int cpu)
{
	*(uint64_t *)ctx |= 1ull << cpu;
}

static int list(const char *text, uint64_t *mask)
{
	*mask = 0;
	return hoststat_cpulist(text, strlen(text), 64, add_bit, mask);
}

static void cpu_lists(void **state)
{
	uint64_t m;

	(void)state;
	assert_int_equal(list("0-3,8\n", &m), 0);
	assert_int_equal(m, 0x10f);
	assert_int_equal(list("", &m), 0);
	assert_int_equal(m, 0);
	assert_int_equal(list("62-999999999999\n", &m), 0); /* cut at max, and soon */
	assert_true(m == 3ull << 62);
	assert_int_equal(list("3-1", &m), -EBADMSG);
	assert_int_equal(list("1-", &m), -EBADMSG);
	assert_int_equal(list("a", &m), -EBADMSG);
	assert_int_equal(list("1;2", &m), -EBADMSG);
	assert_int_equal(list("-1", &m), -EBADMSG);
	assert_int_equal(list("0x1", &m), -EBADMSG);
	assert_int_equal(list("1,,2", &m), -EBADMSG);
}

static void lists_of_one_cpu(void **state)
{
	static const char *const more[] = {"", "0-3", "1,3", "3 ", "3\n", "a", "-1", "4294967299"};

	(void)state;
	assert_int_equal(hoststat_only_cpu("0"), 0);
	assert_int_equal(hoststat_only_cpu("511"), 511);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		assert_int_equal(hoststat_only_cpu(more[i]), -1);
}

static void real_meminfo(void **state)
{
	char buf[8192];
	size_t n = load("meminfo", buf, sizeof(buf));
	uint64_t total, avail, none;

	(void)state;
	assert_true(hoststat_meminfo(buf, n, "MemTotal", &total));
	assert_true(hoststat_meminfo(buf, n, "MemAvailable", &avail));
	assert_true(total > 1000000 && avail > 0 && avail < total);
	assert_false(hoststat_meminfo(buf, n, "Mem", &none));
}

static void throttled_time_of_both_versions(void **state)
{
	static const char v2[] =
		"usage_usec 5\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1730\n";
	char buf[256];
	size_t n = load("cpu.stat.v1", buf, sizeof(buf));
	struct cgroup_throttled t = {1, 1, 1};

	(void)state;
	assert_int_equal(cgroup_parse_throttled(buf, n, &t), 0);
	assert_true(t.ns == 0 && t.periods == 0 && t.used_up == 0);
	assert_int_equal(cgroup_parse_throttled(v2, sizeof(v2) - 1, &t), 0);
	assert_true(t.ns == 1730000 && t.periods == 7 && t.used_up == 3);
	t.periods = t.used_up = 1;
	assert_int_equal(cgroup_parse_throttled("throttled_usec 2\n", 17, &t), 0);
	assert_true(t.ns == 2000 && t.periods == 0 && t.used_up == 0); /* not told */
	assert_int_equal(cgroup_parse_throttled("usage_usec 5\n", 13, &t), -EBADMSG);
	assert_int_equal(cgroup_parse_throttled("throttled_usec\n", 15, &t), -EBADMSG);
	assert_int_equal(cgroup_parse_throttled("", 0, &t), -EBADMSG);
}

static void limits_of_both_versions(void **state)
{
	uint64_t q, p;

	(void)state;
	assert_int_equal(cgroup_parse_max("40000 100000\n", 13, &q, &p), 0);
	assert_int_equal(q, 40000);
	assert_int_equal(p, 100000);
	assert_int_equal(cgroup_parse_max("max 100000\n", 11, &q, &p), 0);
	assert_int_equal(q, 0);
	assert_int_equal(cgroup_parse_max("max", 3, &q, &p), -EBADMSG);
	assert_int_equal(cgroup_parse_max("40000", 5, &q, &p), -EBADMSG);
	assert_int_equal(cgroup_parse_number("-1\n", 3, &q), 0);
	assert_int_equal(q, 0);
	assert_int_equal(cgroup_parse_number("x", 1, &q), -EBADMSG);
}

static void ancestors_end_at_the_scope(void **state)
{
	static const char deep[] = "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/vcpu0";
	size_t n = strlen(deep);

	(void)state;
	n = cgroup_parent(deep, n);
	assert_int_equal(n, strlen(deep) - strlen("/vcpu0"));
	n = cgroup_parent(deep, n);
	assert_int_equal(n, strlen(deep) - strlen("/libvirt/vcpu0"));
	assert_int_equal(cgroup_parent(deep, n), 0); /* the slice above is not the VM's */
	assert_int_equal(cgroup_parent("/a/b", 4), 2);
	assert_int_equal(cgroup_parent("/a", 2), 0);
	assert_int_equal(cgroup_parent("", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_stat_adds_up),
		cmocka_unit_test(offline_cpu_and_short_lines),
		cmocka_unit_test(absurd_numbers_saturate),
		cmocka_unit_test(schedstat_wait_is_the_eighth),
		cmocka_unit_test(cpu_lists),
		cmocka_unit_test(lists_of_one_cpu),
		cmocka_unit_test(real_meminfo),
		cmocka_unit_test(throttled_time_of_both_versions),
		cmocka_unit_test(limits_of_both_versions),
		cmocka_unit_test(ancestors_end_at_the_scope),
	};

	return cmocka_run_group_tests_name("hoststat", tests, NULL, NULL);
}
