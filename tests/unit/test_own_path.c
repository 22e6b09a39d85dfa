// SPDX-License-Identifier: GPL-2.0-only
/* How the program calls itself where it tells people to run it. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "own_path.h"
#include "temp_dir.h"

static void words(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"sudo kvmtop", "sudo /x/y"},
		{"kvmtop --max-overhead 10", "/x/y --max-overhead 10"},
		{"sudo kvmtop, or give it CAP_PERFMON", "sudo /x/y, or give it CAP_PERFMON"},
		{"kvmtop demo, and kvmtop doctor", "/x/y demo, and /x/y doctor"},
		{"ls /opt/kvmtop kvmtop.db mykvmtop", "ls /opt/kvmtop kvmtop.db mykvmtop"},
		{"", ""},
	};
	char buf[100];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		own_words(buf, sizeof(buf), rows[i].text, "/x/y");
		assert_string_equal(buf, rows[i].want);
		own_words(buf, sizeof(buf), rows[i].text, "kvmtop");
		assert_string_equal(buf, rows[i].text);
	}
	/* Whatever room there is. */
	for (size_t size = 1; size < 30; size++) {
		memset(buf, 'x', sizeof(buf));
		own_words(buf, size, "sudo kvmtop or kvmtop", "/long/path");
		assert_true(strlen(buf) < size);
	}
}

/* This test is not called kvmtop, so PATH leads to it by a link of that name only. */
static void path_or_file(void **state)
{
	char self[PATH_MAX], path[200], buf[PATH_MAX];
	const char *link = in_dir("kvmtop");
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *f;

	(void)state;
	assert_true(n > 0);
	self[n] = '\0';
	snprintf(path, sizeof(path), "/nonexistent::%s", dir);
	setenv("PATH", path, 1);
	assert_string_equal(own_command(buf, sizeof(buf)), self);
	assert_int_equal(symlink(self, link), 0);
	assert_string_equal(own_command(buf, sizeof(buf)), "kvmtop");
	/* Another program of that name: it is not this one. */
	assert_int_equal(unlink(link), 0);
	f = fopen(link, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(link, 0755), 0);
	assert_string_equal(own_command(buf, sizeof(buf)), self);
	unsetenv("PATH");
	assert_string_equal(own_command(buf, sizeof(buf)), self);
	assert_string_equal(own_command(buf, 4), "kvmtop"); /* no room: better than a part */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(path_or_file),
	};

	return cmocka_run_group_tests_name("own_path", tests, make_dir, remove_dir);
}
