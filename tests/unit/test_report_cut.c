// SPDX-License-Identifier: GPL-2.0-only
/* A mapped file that another cuts off ends a report with a line, not by a signal
 * (src/report_cut.c). */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "commands.h"
#include "report_cut.h"

/* In a process of its own, whose standard error is `said`. */
static int look_behind_the_end(int said)
{
	FILE *f = tmpfile();
	volatile const char *map;

	if (!f || ftruncate(fileno(f), 8192))
		return 90;
	map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fileno(f), 0);
	if (map == MAP_FAILED || map[5000])
		return 91;
	dup2(said, STDERR_FILENO);
	report_cut_guard();
	if (ftruncate(fileno(f), 0))
		return 92;
	return map[5000] ? 93 : 94;
}

static void a_file_that_shrinks(void **state)
{
	char text[200] = "";
	int pipes[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child)
		_exit(look_behind_the_end(pipes[1]));
	assert_true(child > 0);
	close(pipes[1]);
	assert_true(read(pipes[0], text, sizeof(text) - 1) > 0);
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS_FAILED);
	assert_non_null(strstr(text, "the file shrank while it was read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_that_shrinks)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
