// SPDX-License-Identifier: GPL-2.0-only
/* Escaping, widths, cutting and figures (src/text.c, src/utf8.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "text.h"

typedef size_t (*escaper)(char *, size_t, const char *);

static void expect(escaper f, const char *in, const char *want)
{
	char out[256];

	assert_int_equal(f(out, sizeof(out), in), strlen(want));
	assert_string_equal(out, want);
}

static void escapes_what_a_terminal_acts_on(void **state)
{
	(void)state;
	expect(text_escape, "plain name", "plain name");
	expect(text_escape, "a\x1b[31mb", "a\\e[31mb");
	expect(text_escape, "a\nb\tc\rd\a", "a\\nb\\tc\\rd\\x07");
	expect(text_escape,
	       "\x7f\xc2\x9b"
	       "31m",
	       "\\x7f\\u009b31m");
	expect(text_escape, "a\\b", "a\\\\b");
	expect(text_escape, "x\xe2\x80\xaey", "x\\u202ey"); /* right-to-left override */
	expect(text_escape, "x\xe2\x80\xa8y", "x\\u2028y"); /* line separator */
	expect(text_escape, "w\xf3\xa0\x81\x81", "w\\U000e0041"); /* a tag character */
	expect(text_escape, "\xff\xc3(", "\\xff\\xc3(");
	expect(text_escape, "\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
	expect(text_escape, "\xc0\xaf", "\\xc0\\xaf"); /* over-long */
	expect(text_escape, "b\xc3\xbcro-\xe4\xb8\xad", "b\xc3\xbcro-\xe4\xb8\xad");
}

static void is_cut_between_characters(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(text_escape(out, 4, "ab\n"), 4);
	assert_string_equal(out, "ab");
	assert_int_equal(text_escape(out, 3, "a\xc3\xbc"), 3);
	assert_string_equal(out, "a");
	assert_int_equal(text_escape(out, 1, "abc"), 3);
	assert_string_equal(out, "");
	assert_int_equal(text_escape(NULL, 0, "abc"), 3);
}

static void words_have_no_blanks(void **state)
{
	(void)state;
	expect(text_escape_word, "my vm", "my\\x20vm");
	expect(text_escape_word, "", "-");
	expect(text_escape_word,
	       "a\xe3\x80\x80"
	       "b",
	       "a\\u3000b");
}

static void labels_have_no_quotes(void **state)
{
	char out[6];

	(void)state;
	expect(text_escape_label, "web01, {x}=\xf0\x9f\x90\xa7", "web01, {x}=\xf0\x9f\x90\xa7");
	expect(text_escape_label, "say \"hi\"", "say \\\"hi\\\"");
	expect(text_escape_label, "machine-qemu\\x2d1", "machine-qemu\\\\x2d1");
	/* Visible as they are elsewhere, and then as the format writes a backslash. */
	expect(text_escape_label, "a\nb\x1b\xff\xc2\x9b", "a\\\\nb\\\\e\\\\xff\\\\u009b");
	text_escape_label(out, sizeof(out), "abcd\"");
	assert_string_equal(out, "abcd"); /* never half an escape */
}

static void csv_is_quoted(void **state)
{
	char out[6];

	(void)state;
	expect(text_escape_csv, "web01", "web01");
	expect(text_escape_csv, "a,b", "\"a,b\"");
	expect(text_escape_csv, "say \"hi\"", "\"say \"\"hi\"\"\"");
	expect(text_escape_csv, "a\nb", "a\\nb");
	expect(text_escape_csv, " lead", "\" lead\"");
	text_escape_csv(out, sizeof(out), "a,bcdefg");
	assert_string_equal(out, "\"a,b\"");
}

/* What a shell makes of the word, all of it. */
static void assert_shell(const char *word, const char *wanted)
{
	char command[600], got[200];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "printf '<%%s>' %s", word);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(got, 1, sizeof(got) - 1, f);
	got[n] = '\0';
	assert_int_equal(pclose(f), 0);
	assert_string_equal(got, wanted);
}

static void a_shell_runs_nothing_of_a_word(void **state)
{
	static const char *const words[][2] = {
		{"web01", "web01"},
		{"/var/tmp/a=b", "/var/tmp/a=b"},
		{"", "''"},
		{"-x", "'-x'"},
		{"a b", "'a b'"},
		{"x'; echo ran; '", "'x'\"'\"'; echo ran; '\"'\"''"},
		{"$(echo ran)`echo ran`", "'$(echo ran)`echo ran`'"},
		{"a\\", "'a\\'"},
	};
	char word[200], again[300], wanted[100];

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		assert_int_equal(text_shell_word(word, sizeof(word), words[i][0]),
				 strlen(words[i][1]));
		assert_string_equal(word, words[i][1]);
		snprintf(wanted, sizeof(wanted), "<%s>", words[i][0]);
		assert_shell(word, wanted);
		/* Shown once more escaped, it may be another word, but still is one. */
		text_escape(again, sizeof(again), word);
		if (!strchr(word, '\\'))
			assert_shell(again, wanted);
	}
	assert_shell((text_escape(again, sizeof(again), word), again), "<a\\\\>");
	text_shell_word(word, sizeof(word), "\x1b[31m'; echo ran; '\n\xff");
	assert_string_equal(word, "$'\\e[31m\\x27; echo ran; \\x27\\n\\xff'");
	assert_int_equal(text_shell_word(word, 8, "a'bcdefgh"), strlen("'a'\"'\"'bcdefgh'"));
	assert_string_equal(word, "'a'");
	text_shell_word(word, 9, "a'bcdefgh");
	assert_string_equal(word, "'a'\"'\"''");
}

static void clean_utf8_keeps_the_rest(void **state)
{
	(void)state;
	expect(text_utf8_clean, "a\xff\nb\xe4\xb8\xad", "a\\xff\nb\xe4\xb8\xad");
}

static void widths(void **state)
{
	(void)state;
	assert_int_equal(utf8_width(""), 0);
	assert_int_equal(utf8_width("abc"), 3);
	assert_int_equal(utf8_width("\xe4\xb8\xad\xe6\x96\x87"), 4);
	assert_int_equal(utf8_width("e\xcc\x81"), 1); /* e and a combining accent */
	assert_int_equal(utf8_width("\xf0\x9f\x98\x80"), 2);
	assert_int_equal(utf8_width("\xef\xbc\xa1"), 2); /* fullwidth A */
	assert_int_equal(utf8_width("\xff\xfe"), 2);
	assert_int_equal(utf8_width_cp(0x3fffd), 2);
	assert_int_equal(utf8_width_cp(0x200d), 0);
	assert_int_equal(utf8_width_cp(0x2588), 1);
}

static void expect_cut(const char *in, size_t width, const char *want)
{
	char out[64];

	text_cut_middle(out, sizeof(out), in, width);
	assert_string_equal(out, want);
	assert_true(utf8_width(out) <= width);
}

static void cuts_in_the_middle(void **state)
{
	(void)state;
	expect_cut("web01", 12, "web01");
	expect_cut("instance-000000a1", 12, "instance-0~1");
	expect_cut("instance-000000a1", 17, "instance-000000a1");
	expect_cut("abcdef", 3, "a~f");
	expect_cut("abcdef", 2, "a~");
	expect_cut("abcdef", 1, "~");
	expect_cut("abcdef", 0, "");
	/* A wide character is never halved. */
	expect_cut("\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 5, "\xe4\xb8\xad~");
	expect_cut("\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 4, "\xe4\xb8\xad~");
}

static const char *count(double v, int width)
{
	static char out[32];

	fmt_count(out, sizeof(out), value_known(v), width);
	return out;
}

static void counts(void **state)
{
	char out[16];

	(void)state;
	assert_string_equal(count(0, 6), "0");
	assert_string_equal(count(0.42, 6), "0.4");
	assert_string_equal(count(9999, 6), "9999");
	assert_string_equal(count(10000, 6), "10.0k");
	assert_string_equal(count(48219, 6), "48.2k");
	assert_string_equal(count(212400, 6), "212k");
	assert_string_equal(count(999999, 6), "1.00M");
	assert_string_equal(count(1.2e6, 6), "1.20M");
	assert_string_equal(count(9999, 3), "10k");
	assert_string_equal(count(123456, 2), "#");
	assert_string_equal(count(1.8e19, 6), "18.0E");
	assert_string_equal(count(-12345, 7), "-12.3k");
	assert_string_equal(count(NAN, 6), "-");
	fmt_count(out, sizeof(out), value_pending(), 6);
	assert_string_equal(out, "-");
	fmt_count(out, sizeof(out), value_na(WHY_NO_EVENTS), 6);
	assert_string_equal(out, "n/a");
	fmt_count(out, sizeof(out), value_partial(12, WHY_SHARED), 6);
	assert_string_equal(out, "~12");
}

static void percents_and_times(void **state)
{
	char out[16];

	(void)state;
	fmt_pct(out, sizeof(out), value_known(401.02), 6);
	assert_string_equal(out, "401.0");
	fmt_pct(out, sizeof(out), value_known(6400.0), 4);
	assert_string_equal(out, "6400");
	fmt_pct(out, sizeof(out), value_known(64000.0), 4);
	assert_string_equal(out, "64k");
	fmt_ns(out, sizeof(out), value_known(813), 6);
	assert_string_equal(out, "813ns");
	fmt_ns(out, sizeof(out), value_known(48219), 6);
	assert_string_equal(out, "48.2us");
	fmt_ns(out, sizeof(out), value_known(1.2e6), 6);
	assert_string_equal(out, "1.20ms");
	fmt_ns(out, sizeof(out), value_known(3.41e9), 6);
	assert_string_equal(out, "3.41s");
	fmt_ns(out, sizeof(out), value_known(3412e9), 6);
	assert_string_equal(out, "3412s");
	fmt_ns(out, sizeof(out), value_known(999.9), 6);
	assert_string_equal(out, "1.00us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_what_a_terminal_acts_on),
		cmocka_unit_test(is_cut_between_characters),
		cmocka_unit_test(words_have_no_blanks),
		cmocka_unit_test(csv_is_quoted),
		cmocka_unit_test(labels_have_no_quotes),
		cmocka_unit_test(a_shell_runs_nothing_of_a_word),
		cmocka_unit_test(clean_utf8_keeps_the_rest),
		cmocka_unit_test(widths),
		cmocka_unit_test(cuts_in_the_middle),
		cmocka_unit_test(counts),
		cmocka_unit_test(percents_and_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
