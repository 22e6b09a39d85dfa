// SPDX-License-Identifier: GPL-2.0-only
/* The engine's step from addresses to symbols: a guest's exits tell where KASLR put its kernel. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine_symbols.h"
#include "made_elf.c" /* NOLINT(bugprone-suspicious-include) */
#include "model_fixture.h"
#include "symbols.h"
#include "sysroot.h"

#define LINKED 0xffffffff81000000u
#define MOVED 0x1b600000u
#define PID 0x3ffffff0

static const struct made_symbol kernel[] = {
	{"_stext", LINKED, 0, STT_NOTYPE, STB_GLOBAL, false},
	{"default_idle", LINKED + 0x100, 0x20, STT_FUNC, STB_GLOBAL, false},
	{"native_cpuid", LINKED + 0x200, 0x20, STT_FUNC, STB_GLOBAL, false},
	{"native_write_msr", LINKED + 0x300, 0x20, STT_FUNC, STB_GLOBAL, false},
};

static char path[96];

static int setup(void **state)
{
	uint8_t code[0x400] = {
		[0x108] = 0xf4, [0x204] = 0x0f, [0x205] = 0xa2, [0x306] = 0x0f, [0x307] = 0x30};
	struct made_elf f = {.class = ELFCLASS64,
			     .data = ELFDATA2LSB,
			     .machine = EM_X86_64,
			     .text = LINKED,
			     .text_size = 0x4000,
			     .code = code,
			     .code_len = sizeof(code),
			     .symbol = kernel,
			     .n = sizeof(kernel) / sizeof(kernel[0])};
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/kvmtop-engine-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	close(made_elf(&f, path));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

struct test {
	struct fixture f;
	struct sysroot *root;
	struct engine_symbols *e;
	int64_t now;
};

static void sample_at(struct test *t, uint64_t ip)
{
	const struct ip_sample s = {
		.ip = ip, .pid = PID, .tid = PID + 1, .n = 1, .domain = DOMAIN_GUEST_KERNEL};

	t->now += MS;
	engine_symbols_ips(t->e, &s, 1);
}

static void exit_at(struct test *t, uint64_t reason, uint64_t rip)
{
	/* Others before it: entries, exits of user space, kinds without an instruction of their
	 * own. */
	const struct sample s[] = {
		{.time = t->now, .tid = PID + 1, .type = EV_ENTRY, .isa = ISA_SVM, .aux = rip},
		{.time = t->now,
		 .tid = PID + 1,
		 .type = EV_EXIT,
		 .isa = ISA_SVM,
		 .key = 0x72,
		 .aux = 1},
		{.time = t->now,
		 .tid = PID + 1,
		 .type = EV_EXIT,
		 .isa = ISA_SVM,
		 .key = 0x60,
		 .aux = rip},
		{.time = t->now,
		 .tid = PID + 1,
		 .type = EV_EXIT,
		 .isa = ISA_SVM,
		 .key = reason,
		 .aux = rip},
	};

	engine_symbols_exits(t->e, s, sizeof(s) / sizeof(s[0]));
}

/* Until the helper thread has something; false: it never has. */
static bool ready(struct test *t)
{
	struct pollfd p = {.fd = engine_symbols_fd(t->e), .events = POLLIN};

	if (poll(&p, 1, 20000) != 1)
		return false;
	engine_symbols_ready(t->e);
	return true;
}

static struct test start_with(const struct guest_file_option *option, size_t n)
{
	const struct guest_files files = {option, n};
	const struct sampling_state on = {.open = true, .event = "cpu-clock", .hz = 997};
	const struct demand all = {.samples = true, .samples_all = true};
	struct test t = {.f = fixture_new(8, 64)};

	/* A pid that is no process: nothing but the option says what its kernel is. */
	fixture_vm(&t.f, "web01", PID, 1);
	assert_int_equal(sysroot_open(NULL, &t.root), 0);
	assert_int_equal(engine_symbols_new(t.root, &files, t.f.inv, t.f.m, &t.e), 0);
	t.f.sink->sampling(t.f.sink->ctx, &on);
	model_demand(t.f.m, &all);
	t.now = SEC;
	commit_drop(&t.f, t.now);
	return t;
}

static struct test start(enum guest_file what, const char *file)
{
	const struct guest_file_option option = {what, "web01", file};

	return start_with(&option, 1);
}

static void end(struct test *t)
{
	engine_symbols_free(t->e);
	fixture_free(&t->f);
	sysroot_close(t->root);
}

/* The interval ends; what the VM's hot symbol was, and why there are no names. */
static void check_interval(struct test *t, const char *hot, const char *why)
{
	const struct snap_vm *vm;
	struct snapshot *s;

	t->now += SEC;
	engine_symbols_tick(t->e, t->now);
	s = commit(&t->f, t->now);
	vm = find_vm(s, "web01");
	assert_non_null(vm);
	assert_string_equal(vm->sym.hot, hot);
	if (!strstr(vm->sym_why, why))
		fail_msg("%s", vm->sym_why);
	snapshot_unref(s);
}

static void exits_find_the_slide(void **state)
{
	struct test t = start(GUEST_VMLINUX, path);

	(void)state;
	check_interval(&t, "", "");
	assert_false(engine_symbols_checks_exits(t.e));
	sample_at(&t, LINKED + MOVED + 0x210); /* asks for the guest's symbols */
	assert_true(ready(&t));
	check_interval(&t, "k:[guest 0xffffffff9c600000]", "slide is not known");
	assert_true(engine_symbols_wants_exits(t.e) && engine_symbols_checks_exits(t.e));
	exit_at(&t, 0x72, LINKED + MOVED + 0x204);
	exit_at(&t, 0x7c, LINKED + MOVED + 0x306);
	exit_at(&t, 0x78, LINKED + MOVED + 0x108);
	sample_at(&t, LINKED + MOVED + 0x210);
	check_interval(&t, "k:[guest 0xffffffff9c600000]", "slide is not known");
	assert_true(ready(&t)); /* read again for what had no name, before the exits */
	assert_true(ready(&t));
	for (int i = 0; i < 3; i++)
		sample_at(&t, LINKED + MOVED + 0x210);
	check_interval(&t, "k:native_cpuid", "a vmlinux has no symbols of modules");
	assert_false(engine_symbols_wants_exits(t.e));
	assert_true(engine_symbols_checks_exits(t.e)); /* whether they still fit */
	end(&t);
}

/* Of a guest without symbols no exit tells anything. */
static void nothing_is_checked_without_symbols(void **state)
{
	struct test t = start_with(NULL, 0);

	(void)state;
	sample_at(&t, LINKED + 0x210);
	check_interval(&t, "k:[guest 0xffffffff81000000]", "being read");
	assert_true(ready(&t));
	check_interval(&t, "", "");
	assert_false(engine_symbols_checks_exits(t.e));
	end(&t);
}

/* An idle guest halts again and again: what else it does is in the same batch, once. */
static void rare_exits_of_a_batch_find_it_too(void **state)
{
	struct test t = start(GUEST_VMLINUX, path);
	struct sample s[128];

	(void)state;
	sample_at(&t, LINKED + MOVED + 0x210);
	assert_true(ready(&t));
	check_interval(&t, "k:[guest 0xffffffff9c600000]", "slide is not known");
	for (int i = 0; i < 128; i++)
		s[i] = (struct sample){.time = t.now,
				       .tid = PID + 1,
				       .type = EV_EXIT,
				       .isa = ISA_SVM,
				       .key = 0x78,
				       .aux = LINKED + MOVED + 0x108};
	s[80].key = 0x72;
	s[80].aux = LINKED + MOVED + 0x204;
	s[127].key = 0x7c;
	s[127].aux = LINKED + MOVED + 0x306;
	engine_symbols_exits(t.e, s, 128);
	engine_symbols_tick(t.e, t.now); /* in the first answer, or asked for again by it */
	while (engine_symbols_wants_exits(t.e)) {
		assert_true(ready(&t));
		engine_symbols_tick(t.e, t.now);
	}
	sample_at(&t, LINKED + MOVED + 0x210);
	check_interval(&t, "k:native_cpuid", "a vmlinux has no symbols of modules");
	end(&t);
}

/* The guest booted anew: nothing of it falls on these symbols any more. */
static void samples_refuse_another_boot(void **state)
{
	char text[] = "/tmp/kvmtop-kallsyms-XXXXXX";
	int fd = mkstemp(text);
	struct test t;

	(void)state;
	assert_true(fd >= 0);
	dprintf(fd, "%lx T _stext\n%lx t default_idle\n%lx t f\n%lx T _etext\n", LINKED + 0ul,
		LINKED + 0x100ul, LINKED + 0x200ul, LINKED + 0x1000ul);
	close(fd);
	t = start(GUEST_KALLSYMS, text);
	sample_at(&t, LINKED + 0x210);
	assert_true(ready(&t));
	for (int i = 0; i < 100; i++)
		sample_at(&t, LINKED + 0x200 + (uint64_t)i * 8);
	check_interval(&t, "k:f", "");
	for (int i = 0; i < 100; i++)
		sample_at(&t, LINKED + MOVED + 0x200 + (uint64_t)i * 8);
	check_interval(&t, "k:[guest 0xffffffff9c600000]", "fall on these symbols");
	sample_at(&t, LINKED + 0x210);
	check_interval(&t, "k:[guest 0xffffffff81000000]", "fall on these symbols");
	end(&t);
	unlink(text);
}

/* An address that a call returns to is behind it: the call itself is looked up. And not all are
 * such. */
static void a_caller_is_where_its_call_is(void **state)
{
	/* Of a kernel without frame pointers: the stack, data, its program, a number. */
	static const uint64_t odd[] = {0xffffc900003bbae0, 0xffff888004af9021, 0x402300, 1};
	char text[] = "/tmp/kvmtop-kallsyms-XXXXXX";
	int fd = mkstemp(text);
	struct ip_sample x = {.pid = PID, .tid = PID + 1, .n = 1, .domain = DOMAIN_GUEST_KERNEL};
	const struct snap_symbol *row;
	struct snapshot *s;
	struct test t;

	(void)state;
	assert_true(fd >= 0);
	dprintf(fd, "%lx T _stext\n%lx t f\n%lx t g\n%lx T _etext\n", LINKED + 0ul,
		LINKED + 0x200ul, LINKED + 0x300ul, LINKED + 0x1000ul);
	close(fd);
	t = start(GUEST_KALLSYMS, text);
	sample_at(&t, LINKED + 0x210);
	assert_true(ready(&t));
	x.ip = LINKED + 0x210;
	for (unsigned i = 0; i < 10; i++) {
		x.caller = i < 6 ? LINKED + 0x300 : i < 9 ? LINKED + 0x5000 : 0;
		engine_symbols_ips(t.e, &x, 1);
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		x.caller = odd[i];
		engine_symbols_ips(t.e, &x, 1);
	}
	s = commit(&t.f, t.now + SEC);
	row = &s->symbols[find_vm(s, "web01")->sym.first];
	assert_string_equal(row->name, "f");
	assert_string_equal(row->caller[0].name, "f"); /* g begins where the call has returned to */
	assert_int_equal(row->caller[0].samples, 6);
	assert_string_equal(row->caller[1].name, "[guest 0xffffffff81005000]");
	assert_int_equal(row->caller[1].samples, 3);
	assert_string_equal(row->caller[2].name, "");
	snapshot_unref(s);
	end(&t);
	unlink(text);
}

/* A module without symbols (they may be hidden, or left out): its pages are known to be its. */
static void a_page_has_its_module(void **state)
{
	char kallsyms[] = "/tmp/kvmtop-kallsyms-XXXXXX", modules[] = "/tmp/kvmtop-modules-XXXXXX";
	const struct guest_file_option option[] = {{GUEST_KALLSYMS, "web01", kallsyms},
						   {GUEST_MODULES, "web01", modules}};
	int fd = mkstemp(kallsyms), fd2 = mkstemp(modules);
	const struct snap_symbol *row;
	const struct snap_vm *vm;
	struct snapshot *s;
	struct test t;

	(void)state;
	assert_true(fd >= 0 && fd2 >= 0);
	dprintf(fd, "%lx T _stext\n%lx t f\n%lx T _etext\n", LINKED + 0ul, LINKED + 0x200ul,
		LINKED + 0x1000ul);
	dprintf(fd2, "virtio_net 8192 0 - Live 0xffffffffc0a00000\n");
	close(fd);
	close(fd2);
	t = start_with(option, 2);
	sample_at(&t, LINKED + 0x210);
	assert_true(ready(&t));
	sample_at(&t, 0xffffffffc0a01234);
	sample_at(&t, 0xffffffffc0a01238);
	s = commit(&t.f, t.now + SEC);
	vm = find_vm(s, "web01");
	assert_non_null(strstr(vm->sym_why, "shown by module"));
	assert_non_null(strstr(vm->sym_why, kallsyms)); /* which file that is of */
	row = &s->symbols[vm->sym.first];
	assert_string_equal(row->name, "[guest 0xffffffffc0a01000]");
	assert_string_equal(row->module, "virtio_net");
	assert_string_equal(row->reason, "no symbol is at this address");
	assert_int_equal(row->samples, 2);
	/* Of all VMs together pages have nothing in common. */
	row = &s->symbols[s->host.sym.first];
	assert_string_equal(row->name, "[guest]");
	assert_string_equal(row->module, "");
	snapshot_unref(s);
	end(&t);
	unlink(kallsyms);
	unlink(modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exits_find_the_slide),
		cmocka_unit_test(nothing_is_checked_without_symbols),
		cmocka_unit_test(rare_exits_of_a_batch_find_it_too),
		cmocka_unit_test(samples_refuse_another_boot),
		cmocka_unit_test(a_caller_is_where_its_call_is),
		cmocka_unit_test(a_page_has_its_module),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
