// SPDX-License-Identifier: GPL-2.0-only
/* How large a buffer a trace of one VM takes (the rest is tests/integration/trace.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "trace_instance.h"

static void a_large_host_gives_no_more_memory(void **state)
{
	(void)state;
	assert_int_equal(trace_instance_kb(1), 16384);
	assert_int_equal(trace_instance_kb(16), 16384);
	assert_int_equal(trace_instance_kb(64), 4096);
	assert_int_equal(trace_instance_kb(512), 512);
	for (long n = 1; n <= 1024; n++)
		assert_true(trace_instance_kb(n) * n <= 256 << 10);
	/* Not known, or absurd: it works all the same. */
	assert_int_equal(trace_instance_kb(-1), 256);
	assert_int_equal(trace_instance_kb(100000), 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_host_gives_no_more_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
