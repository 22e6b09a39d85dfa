// SPDX-License-Identifier: GPL-2.0-only
/* The tiny guests' programs and their machine code; what they do is in tests/integration. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tinyvm_code.h"

static void test_parse(void **state)
{
	struct tinyvm_program p = {.rate = 7};

	(void)state;
	assert_int_equal(tinyvm_parse("out:1000, in:inf  spin", &p), 0);
	assert_int_equal(p.nsteps, 3);
	assert_int_equal(p.step[0].op, TINYVM_OUT);
	assert_int_equal(p.step[0].n, 1000);
	assert_int_equal(p.step[1].op, TINYVM_IN);
	assert_int_equal(p.step[1].n, TINYVM_FOREVER);
	assert_int_equal(p.step[2].n, 1);
	assert_int_equal(p.loops, 1);
	assert_int_equal(p.rate, 7);
}

static void test_parse_refuses(void **state)
{
	static const char *const bad[] = {
		"",	"  ",	  "push:1",	     "out:",	 "out:0", "out:1x", "out:-1:2",
		"ou:1", "outs:1", "out:99999999999", "out:infx", ":3"};
	struct tinyvm_program p;
	char many[TINYVM_MAX_STEPS * 4 + 8] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tinyvm_parse(bad[i], &p), -EINVAL);
	for (int i = 0; i < TINYVM_MAX_STEPS; i++)
		strcat(many, "out ");
	assert_int_equal(tinyvm_parse(many, &p), 0);
	strcat(many, "in");
	assert_int_equal(tinyvm_parse(many, &p), -E2BIG);
}

static void test_mode(void **state)
{
	struct tinyvm_program p;

	(void)state;
	assert_int_equal(tinyvm_parse("out in mmior mmiow spin hold:1 sleep:1 cpuid", &p), 0);
	assert_false(tinyvm_needs_real(&p));
	assert_int_equal(tinyvm_parse("out wrmsr", &p), 0);
	assert_true(tinyvm_needs_real(&p));
}

/* One `out` for ever, once as 64-bit and once as 16-bit code: the same but for the prefixes. */
static void test_code(void **state)
{
	static const uint8_t user[] = {
		0xbd, 0,    0,
		0,    0, /* mov ebp, 0: unused, for ever */
		0xba, 0xf8, 0x03,
		0,    0, /* mov edx, 0x3f8 */
		0xee, /* out dx, al */
		0xff, 0x46, 0x00, /* inc dword [rsi] */
		0x80, 0x7e, offsetof(struct tinyvm_data, stop),
		0, /* cmp byte [rsi + stop], 0 */
		0x0f, 0x85, 14,
		0,    0,    0, /* jne end */
		0xe9, 0xe8, 0xff,
		0xff, 0xff, /* jmp out */
	};
	static const uint8_t real[] = {0x66, 0xbd, 0, 0,    0,	  0,	0x66, 0xba, 0xf8,
				       0x03, 0,	   0, 0xee, 0x66, 0x67, 0xff, 0x46, 0x00};
	struct tinyvm_program p;
	uint8_t code[256];

	(void)state;
	assert_int_equal(tinyvm_parse("out:inf", &p), 0);
	assert_true(tinyvm_emit(&p, false, code, sizeof(code)) > 0);
	assert_memory_equal(code, user, sizeof(user));
	assert_true(tinyvm_emit(&p, true, code, sizeof(code)) > 0);
	assert_memory_equal(code, real, sizeof(real));
}

static void test_code_too_long(void **state)
{
	struct tinyvm_program p;
	uint8_t code[40];

	(void)state;
	memset(code, 0xcc, sizeof(code));
	assert_int_equal(tinyvm_parse("wrmsr:5 wrmsr:5 wrmsr:5", &p), 0);
	assert_int_equal(tinyvm_emit(&p, true, code, 32), -E2BIG);
	assert_int_equal(code[32], 0xcc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	      cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_mode),	      cmocka_unit_test(test_code),
		cmocka_unit_test(test_code_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
