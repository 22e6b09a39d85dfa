// SPDX-License-Identifier: GPL-2.0-only
/* The command line (src/options.c): what is taken, and the words for each mistake. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "batch_table.h"
#include "commands.h"
#include "options.h"

#define MAX_WORDS 24

/* Splits at blanks; "|" in a word stands for a blank. */
static int parse(const char *line, struct options *o, char *err, size_t size, char *buf)
{
	static char name[] = "kvmtop", *argv[MAX_WORDS + 1] = {name}; /* options point into it */
	int argc = 1;

	strcpy(buf, line);
	for (char *p = strtok(buf, " "); p && argc < MAX_WORDS; p = strtok(NULL, " ")) {
		for (char *c = p; *c; c++)
			if (*c == '|')
				*c = ' ';
		argv[argc++] = p;
	}
	argv[argc] = NULL;
	return options_parse(argc, argv, o, err, size);
}

static void good(const char *line, struct options *o, char *buf)
{
	char err[400];

	if (parse(line, o, err, sizeof(err), buf))
		fail_msg("%s: %s", line, err);
}

static void defaults(void **state)
{
	struct options o;
	char buf[256];

	(void)state;
	good("--batch", &o, buf);
	assert_float_equal(o.delay_s, 1, 0);
	assert_float_equal(o.max_overhead_pct, 2, 0);
	assert_int_equal(o.iterations, 0);
	assert_int_equal(o.format, FORMAT_TEXT);
	assert_int_equal(o.kinds, 0);
	assert_non_null(o.filter);
	assert_ptr_equal(o.command->run, cmd_batch);
	options_free(&o);
	good("", &o, buf);
	assert_int_equal(o.command->bit, FOR_LIVE);
	options_free(&o);
	good("doctor --format json", &o, buf);
	assert_ptr_equal(o.command->run, cmd_doctor);
	options_free(&o);
}

static void values(void **state)
{
	struct options o;
	char buf[256];

	(void)state;
	good("-b -d 0.1 -n 3 -p 23,42 -M web01 --vcpu 0,id:4 -s %steal -r --format csv --table vm "
	     "--fields name,cpu_pct",
	     &o, buf);
	assert_float_equal(o.delay_s, 0.1, 1e-12);
	assert_int_equal(o.iterations, 3);
	assert_string_equal(o.sort, "%steal");
	assert_true(o.reverse && filter_has_vms(o.filter) && filter_has_vcpus(o.filter));
	assert_int_equal(o.format, FORMAT_CSV);
	assert_string_equal(o.table->name, "vm");
	options_free(&o);
	good("--batch --event mmio,ioport --totals --max-overhead 0 --root /x --collectors "
	     "vms,sched",
	     &o, buf);
	assert_int_equal(o.kinds, KIND_BIT(KIND_MMIO) | KIND_BIT(KIND_IOPORT));
	assert_true(o.totals);
	assert_string_equal(o.root, "/x");
	options_free(&o);
	good("-b --event all --when steal_max_pct>20|and|exit_pct>5|for|3", &o, buf);
	assert_int_equal(o.kinds, KIND_ALL);
	assert_non_null(o.when);
	options_free(&o);
	good("-k pid", &o, buf); /* the full screen sorts by columns of either list */
	options_free(&o);
	good("-s tid", &o, buf);
	options_free(&o);
}

static void check_guest_file(const struct guest_file_option *f, enum guest_file what,
			     const char *vm, const char *file)
{
	assert_int_equal(f->what, what);
	assert_string_equal(f->vm ? f->vm : "-", vm);
	assert_string_equal(f->file, file);
}

static void files_of_guests(void **state)
{
	struct options o;
	char buf[256];

	(void)state;
	good("--guestkallsyms /tmp/a --guestkallsyms web01=/tmp/b --guestmodules b|1=m "
	     "--guestvmlinux /tmp/x=y --guestmount ./a=b --guestmount db01=mnt=1",
	     &o, buf);
	assert_int_equal(o.guest_files.n, 6);
	check_guest_file(&o.guest_files.option[0], GUEST_KALLSYMS, "-", "/tmp/a");
	check_guest_file(&o.guest_files.option[1], GUEST_KALLSYMS, "web01", "/tmp/b");
	check_guest_file(&o.guest_files.option[2], GUEST_MODULES, "b 1", "m");
	/* A "=" behind a "/" is the file's. */
	check_guest_file(&o.guest_files.option[3], GUEST_VMLINUX, "-", "/tmp/x=y");
	check_guest_file(&o.guest_files.option[4], GUEST_MOUNT, "-", "./a=b");
	check_guest_file(&o.guest_files.option[5], GUEST_MOUNT, "db01", "mnt=1");
	options_free(&o);
}

static void words_of_guest_symbols(void **state)
{
	struct options o;
	char buf[256];

	(void)state;
	good("guest-symbols web01 -- ssh -p 22 root@web01", &o, buf);
	assert_int_equal(o.command->bit, FOR_GUEST_SYMBOLS);
	assert_int_equal(o.nwords, 5);
	assert_string_equal(o.words[0], "web01");
	assert_string_equal(o.words[2], "-p");
	options_free(&o);
}

static void actions(void **state)
{
	static const struct {
		const char *line;
		enum options_action action;
	} rows[] = {{"--help", ACTION_HELP},
		    {"-h", ACTION_HELP},
		    {"-V", ACTION_VERSION},
		    {"doctor -h", ACTION_HELP},
		    {"-b --fields help", ACTION_FIELDS},
		    {"--fields help", ACTION_FIELDS},
		    {"--completion zsh", ACTION_COMPLETION},
		    {"--dump-tables keys", ACTION_DUMP},
		    {"--help --nonsense", ACTION_HELP}};
	struct options o;
	char buf[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		good(rows[i].line, &o, buf);
		assert_int_equal(o.action, rows[i].action);
		options_free(&o);
	}
}

/* Each: one line that has what was given and what would be right. */
static void mistakes(void **state)
{
	static const struct {
		const char *line, *what, *mend;
	} rows[] = {
		{"-b -d 0", "-d '0'", "0.1 to 3600"},
		{"-b -d 0.05", "-d '0.05'", "0.1 to 3600"},
		{"-b -d 1e2", "-d '1e2'", "seconds"},
		{"-b -d nan", "-d 'nan'", "seconds"},
		{"-b -d 1.2.3", "-d '1.2.3'", "seconds"},
		{"-b -d -1", "-d '-1'", "seconds"},
		{"-b -n 0", "-n '0'", "1 or more"},
		{"-b -n 1.5", "-n '1.5'", "1 or more"},
		{"-b -n", "--iterations: no value", "give --iterations N"},
		{"-b -p x", "-p 'x'", "-p 23,42"},
		{"-b -p 1,,2", "-p '1,,2'", "-p 23,42"},
		{"-b -p 0", "-p '0'", "numbers"},
		{"-b -p 99999999", "-p '99999999'", "numbers"},
		{"-b -M /[/", "-M '/[/'", "regular expression"},
		{"-b -M /(((a{255}){255}){255})/", "'/(((a{", "shorter"},
		{"-b -M /(((a{0,99}){0,99}){0,99})/", "'/(((a{", "shorter"},
		{"-b -M /a{18446744073709551615}/", "'/a{", "shorter"},
		{"-b --vcpu -1", "--vcpu '-1'", "id:5"},
		{"-b --vcpu id:", "--vcpu 'id:'", "id:5"},
		{"-b -s nonsense", "-s 'nonsense'", "--fields help"},
		{"-b --format csv -s tid", "-s 'tid'", "--fields help"},
		{"-s nonsense", "-s 'nonsense'", "--fields help"},
		{"-b --format xml", "--format 'xml'", "text, csv, json or prometheus"},
		{"-b --format prometheus --totals", "--totals", "_total"},
		{"-b --format prometheus --table slow", "--table slow", "slow_exits"},
		{"-b --format prometheus --fields cpu_pct,why", "--fields", "why"},
		{"replay --format prometheus", "--format", "add --batch"},
		{"--format prometheus", "--format", "add --batch"},
		{"doctor --format prometheus", "--format prometheus", "doctor"},
		{"diff a b --format prometheus", "--format prometheus", "diff"},
		{"report --format prometheus", "--format prometheus", "report"},
		{"-b --table x", "--table 'x'", "vcpu-exit"},
		{"-b --fields x", "'x'", "--fields help"},
		{"-b --fields cpu_pct,", "''", "--fields help"},
		{"-b --collectors nope", "'nope'", "sched"},
		{"-b --event io", "--event 'io'", "ioport"},
		{"-b --when steal>", "the end", "for example"},
		{"-b --when nope>1", "no such field", "--fields help"},
		{"-b --max-overhead 101", "'101'", "percent"},
		{"--color blue", "--color 'blue'", "truecolor"},
		{"-b --root=", "--root", "folder"},
		{"--completion tcsh", "'tcsh'", "bash, zsh or fish"},
		{"--batch=yes", "--batch: takes no value", "leave away"},
		{"--nonsense", "'--nonsense'", "--help"},
		{"-b -x", "'-x'", "--help"},
		{"nonsense", "'nonsense'", "--help"},
		{"doctor twice", "'twice'", "options only"},
		{"doctor --format csv", "--format csv", "text or json"},
		{"--guestkallsyms =/tmp/a", "--guestkallsyms '=/tmp/a'", "NAME=PATH"},
		{"--guestmount web01=", "--guestmount 'web01='", "NAME=PATH"},
		{"guest-symbols a -b", "--batch", "not for kvmtop guest-symbols"},
		{"doctor --guestmodules a", "--guestmodules", "not for kvmtop doctor"},
		{"--table vm", "--table", "add --batch"},
		{"doctor --totals", "--totals", "not for kvmtop doctor"},
		{"-b --color never", "--color", "not for --batch"},
		{"-b -M \x1b[31m|x --table \x1b[2J", "\\e[2J", "give one of"},
	};
	struct options o;
	char buf[256], err[400];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (parse(rows[i].line, &o, err, sizeof(err), buf) != -22)
			fail_msg("%s: taken", rows[i].line);
		if (!strstr(err, rows[i].what) || !strstr(err, rows[i].mend))
			fail_msg("%s: says: %s", rows[i].line, err);
		assert_null(strchr(err, '\n'));
		assert_null(strchr(err, '\x1b'));
		options_free(&o);
	}
}

/* regcomp() calls itself for each bracket: as many as a command line may have end its stack. */
static void a_regular_expression_that_is_too_long(void **state)
{
	static char spec[60000];
	struct filter *f = filter_new();
	char err[400];

	(void)state;
	memset(spec, '(', sizeof(spec));
	spec[0] = spec[sizeof(spec) - 2] = '/';
	spec[sizeof(spec) - 1] = '\0';
	assert_int_equal(filter_add_vm(f, spec, err, sizeof(err)), -22);
	assert_non_null(strstr(err, "shorter"));
	assert_int_equal(filter_add_vm(f, "/^(web|db)[0-9]{1,4}$/", err, sizeof(err)), 0);
	filter_free(f);
}

static void the_table_is_in_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < option_nrows; i++) {
		const struct option_row *r = &option_rows[i];

		assert_non_null(r->parse);
		assert_true(r->hidden || strlen(r->help) > 10);
		assert_true(r->commands != 0);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(option_rows[j].name, r->name);
			assert_int_not_equal(option_rows[j].letter, r->letter);
		}
	}
	for (const struct command *c = commands; c->run; c++)
		assert_true(strlen(c->what) > 10);
}

static char *written(void (*make)(FILE *), size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);

	make(f);
	fclose(f);
	return text;
}

static char *help_of(const char *line)
{
	struct options o;
	char buf[256], *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	good(line, &o, buf);
	options_help(f, o.command);
	options_free(&o);
	fclose(f);
	return text;
}

static void a_command_has_its_own_help(void **state)
{
	static const char *const lines[] = {"record --help", "-h record", "record -o x -h"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char *help = help_of(lines[i]);

		assert_non_null(strstr(help, "usage: kvmtop record [OPTION]... [-- COMMAND...]\n"));
		assert_non_null(strstr(help, "--max-size SIZE"));
		assert_null(strstr(help, "--host-trace"));
		assert_null(strstr(help, "kvmtop demo"));
		free(help);
	}
}

static void help_has_every_option_and_fits(void **state)
{
	size_t n;
	char *help = help_of("--help");

	(void)state;
	for (size_t i = 0; i < option_nrows; i++) {
		char name[40];

		snprintf(name, sizeof(name), "--%s", option_rows[i].name);
		assert_true((strstr(help, name) != NULL) == !option_rows[i].hidden);
	}
	for (char *p = help; *p; p += strcspn(p, "\n") + 1)
		assert_true(strcspn(p, "\n") <= 80);
	for (size_t i = 0; i < batch_ntables; i++)
		assert_non_null(strstr(help, batch_tables[i].name));
	free(help);
	help = written(options_fields_help, &n);
	assert_non_null(strstr(help, "steal_max_pct"));
	for (size_t i = 0; i < batch_ntables; i++)
		if (strcmp(batch_tables[i].name, "tsc") != 0) /* it has fields of vcpu */
			assert_non_null(strstr(help, batch_tables[i].name));
	free(help);
}

static void files_that_are_not_there(void **state)
{
	static const struct {
		const char *line, *say;
	} cases[] = {
		{"--guestkallsyms /nonexistent", "No such file"},
		{"--guestvmlinux web01=/nonexistent", "--guestvmlinux '/nonexistent'"},
		{"--guestkallsyms /", "not a regular file"},
		{"--guestmount /proc/self/stat", "not a folder"},
		{"--guestkallsyms tests/data/symbols/kallsyms-6.1.txt --guestmount /proc", NULL},
		{"--guestkallsyms tests/data/symbols/modules-6.1.txt",
		 "modules-6.1.txt': no kallsyms"},
		{"--guestvmlinux tests/data/symbols/modules-6.1.txt", "no vmlinux"},
		{"--root /nonexistent", "--root '/nonexistent'"},
		{"--root tests/data/symbols/modules-6.1.txt", "not a folder"},
		{"--root /proc", NULL},
		{"--guestkallsyms web01=/proc/self/stat", "copy of the guest's /proc/kallsyms"},
		{"--guestkallsyms /dev/null", "not a regular file"},
		{"--guestkallsyms tests/data/symbols/notes-6.1.bin", "no kallsyms"},
		{"--guestmodules tests/data/symbols/kallsyms-6.1.txt", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char err[400] = "", line[100], *argv[8], *save = NULL;
		struct options o;
		int argc = 1;

		argv[0] = (char *)"kvmtop";
		snprintf(line, sizeof(line), "%s", cases[i].line);
		for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
			argv[argc++] = w;
		argv[argc] = NULL;
		assert_int_equal(options_parse(argc, argv, &o, err, sizeof(err)), 0);
		assert_int_equal(options_check_files(&o, err, sizeof(err)),
				 cases[i].say ? -EINVAL : 0);
		if (cases[i].say)
			assert_non_null(strstr(err, cases[i].say));
		options_free(&o);
	}
}

/* What /boot has instead of a vmlinux. */
static void a_boot_image(void **state)
{
	char path[] = "/tmp/kvmtop-image-XXXXXX", image[0x400] = "MZ", err[400] = "";
	char *argv[] = {(char *)"kvmtop", (char *)"--guestvmlinux", path, NULL};
	static const char magic[4] = {'H', 'd', 'r', 'S'};
	struct options o;
	int fd = mkstemp(path);

	(void)state;
	memcpy(image + 0x202, magic, sizeof(magic));
	assert_int_equal(write(fd, image, sizeof(image)), sizeof(image));
	close(fd);
	assert_int_equal(options_parse(3, argv, &o, err, sizeof(err)), 0);
	assert_int_equal(options_check_files(&o, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "a bzImage has no symbols: give the path of the vmlinux"));
	options_free(&o);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_are_not_there),
		cmocka_unit_test(a_boot_image),
		cmocka_unit_test(defaults),
		cmocka_unit_test(values),
		cmocka_unit_test(files_of_guests),
		cmocka_unit_test(words_of_guest_symbols),
		cmocka_unit_test(actions),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(a_regular_expression_that_is_too_long),
		cmocka_unit_test(the_table_is_in_order),
		cmocka_unit_test(a_command_has_its_own_help),
		cmocka_unit_test(help_has_every_option_and_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
