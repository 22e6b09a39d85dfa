// SPDX-License-Identifier: GPL-2.0-only
/* From samples to the model's rows: whose, guest kernel or user, which symbol, and why none. */
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "engine_symbols.h"
#include "model_fixture.h"
#include "symbols.h"
#include "sysroot.h"

#define TEXT 0xffffffff81000000u

struct setup {
	struct fixture f;
	struct sysroot *root;
	struct engine_symbols *e;
	char dir[64], file[96];
	struct guest_file_option option;
	struct guest_files files;
};

/* 20 functions of 0x100 bytes from TEXT on. */
static void write_kallsyms(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "%016lx T _stext\n", (unsigned long)TEXT);
	for (unsigned i = 0; i < 20; i++)
		fprintf(f, "%016lx T fn%u\n", (unsigned long)TEXT + i * 0x100, i);
	fprintf(f, "%016lx T _etext\n", (unsigned long)TEXT + 20 * 0x100);
	fclose(f);
}

static struct setup *begin(bool kallsyms)
{
	static const struct demand all = {.samples = true, .samples_all = true, .exit_code = true};
	const struct sampling_state open = {
		.open = true, .event = "cpu-clock", .hz = 997, .wanted_hz = 997, .why = ""};
	struct setup *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	snprintf(s->dir, sizeof(s->dir), "/tmp/kvmtop-symbols-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->file, sizeof(s->file), "%s/kallsyms", s->dir);
	write_kallsyms(s->file);
	s->option =
		(struct guest_file_option){.what = GUEST_KALLSYMS, .vm = "web01", .file = s->file};
	s->files = (struct guest_files){.option = &s->option, .n = kallsyms};
	s->f = fixture_new(8, 64);
	assert_int_equal(sysroot_open(NULL, &s->root), 0);
	assert_int_equal(engine_symbols_new(s->root, &s->files, s->f.inv, s->f.m, &s->e), 0);
	model_demand(s->f.m, &all);
	s->f.sink->sampling(s->f.sink->ctx, &open);
	commit_drop(&s->f, SEC);
	return s;
}

static void end(struct setup *s)
{
	engine_symbols_free(s->e);
	fixture_free(&s->f);
	sysroot_close(s->root);
	unlink(s->file);
	rmdir(s->dir);
	free(s);
}

static void sample(struct setup *s, int tid, enum ip_domain d, uint64_t ip, unsigned n)
{
	const struct ip_sample x = {.ip = ip, .pid = 100, .tid = tid, .n = n, .domain = (uint8_t)d};

	engine_symbols_ips(s->e, &x, 1);
}

/* Until the helper thread has read what was asked for. */
static void loaded(struct setup *s)
{
	struct pollfd p = {.fd = engine_symbols_fd(s->e), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 20000), 1);
	engine_symbols_ready(s->e);
}

static const struct snap_symbol *row(const struct snapshot *s, const char *vm, const char *name)
{
	const struct snap_samples *sym = &find_vm(s, vm)->sym;

	for (uint32_t i = sym->first; i < sym->first + sym->rows; i++)
		if (!strcmp(s->symbols[i].name, name) && s->symbols[i].samples)
			return &s->symbols[i];
	return NULL;
}

static void the_address_decides_where_the_guest_is_known(void **state)
{
	struct setup *t = begin(true);
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&t->f, "web01", 100, 1);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT, 1); /* asks for its symbols */
	loaded(t);
	commit_drop(&t->f, 2 * SEC);
	sample(t, 101, DOMAIN_GUEST_USER, TEXT + 0x310, 5); /* the record's word is wrong */
	sample(t, 101, DOMAIN_GUEST_KERNEL, 0x401234, 4); /* here too */
	s = commit(&t->f, 3 * SEC);
	r = row(s, "web01", "fn3");
	assert_int_equal(r->key.domain, DOMAIN_GUEST_KERNEL);
	assert_int_equal(r->samples, 5);
	assert_false(r->guessed);
	r = row(s, "web01", "[guest 0x401000]");
	assert_int_equal(r->key.domain, DOMAIN_GUEST_USER);
	assert_false(r->guessed);
	assert_non_null(strstr(r->reason, "user space"));
	assert_string_equal(find_vm(s, "web01")->sym_why, "");
	snapshot_unref(s);
	end(t);
}

/* The first samples ask for the symbols: they have their names all the same. */
static void samples_wait_for_their_symbols(void **state)
{
	struct setup *t = begin(true);
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&t->f, "web01", 100, 1);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT + 0x310, 3);
	loaded(t);
	s = commit(&t->f, 2 * SEC);
	r = row(s, "web01", "fn3");
	assert_non_null(r);
	assert_int_equal(r->samples, 3);
	snapshot_unref(s);
	end(t);
}

/* But not for ever: at the end of the interval they are counted with what is known. */
static void an_interval_does_not_wait(void **state)
{
	struct setup *t = begin(true);
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&t->f, "web01", 100, 1);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT + 0x310, 3);
	engine_symbols_tick(t->e, 2 * SEC);
	s = commit(&t->f, 2 * SEC);
	r = row(s, "web01", "[guest 0xffffffff81000000]");
	assert_non_null(r);
	assert_int_equal(r->samples, 3);
	assert_string_equal(r->reason, "its symbols are being read");
	snapshot_unref(s);
	loaded(t);
	s = commit(&t->f, 3 * SEC);
	assert_null(row(s, "web01", "fn3"));
	snapshot_unref(s);
	end(t);
}

static void without_symbols_the_lower_half_is_a_guess(void **state)
{
	struct setup *t = begin(false);
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&t->f, "db01", 200, 1);
	sample(t, 201, DOMAIN_GUEST_KERNEL, TEXT, 1);
	loaded(t);
	commit_drop(&t->f, 2 * SEC);
	sample(t, 201, DOMAIN_GUEST_USER, TEXT + 0x310, 5);
	sample(t, 201, DOMAIN_GUEST_KERNEL, 0x7c00, 4); /* a loader, perhaps */
	s = commit(&t->f, 3 * SEC);
	r = row(s, "db01", "[guest 0xffffffff81000000]");
	assert_int_equal(r->key.domain, DOMAIN_GUEST_KERNEL);
	assert_false(r->guessed);
	assert_true(r->reason[0]);
	r = row(s, "db01", "[guest 0x7000]");
	assert_int_equal(r->key.domain, DOMAIN_GUEST_KERNEL);
	assert_true(r->guessed);
	assert_true(find_vm(s, "db01")->sym_why[0]);
	assert_non_null(strstr(find_vm(s, "db01")->sym_mend, "guest-symbols"));
	snapshot_unref(s);
	end(t);
}

/* Its kernel is at another place, or is another one: its names would be wrong. */
static void symbols_that_do_not_fit_are_not_used(void **state)
{
	struct setup *t = begin(true);
	const struct snap_symbol *r;
	struct snapshot *s;

	(void)state;
	fixture_vm(&t->f, "web01", 100, 1);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT + 0x310, 1);
	loaded(t);
	for (unsigned i = 0; i < 60; i++)
		sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT + 0x4000000 + i * 0x1000, 1);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT + 0x310, 4);
	engine_symbols_tick(t->e, clock_mono_ns());
	commit_drop(&t->f, 2 * SEC);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT + 0x310, 4);
	s = commit(&t->f, 3 * SEC);
	assert_null(row(s, "web01", "fn3"));
	r = row(s, "web01", "[guest 0xffffffff81000000]");
	assert_non_null(strstr(r->reason, "another kernel"));
	assert_non_null(strstr(find_vm(s, "web01")->sym_why, "another kernel"));
	snapshot_unref(s);
	end(t);
}

static void guest_mode_makes_a_vm_of_an_unknown_thread(void **state)
{
	struct setup *t = begin(false);
	struct snapshot *s;

	(void)state;
	sample(t, 4242, DOMAIN_HOST_USER, 0x401000, 3); /* anybody */
	sample(t, 0, DOMAIN_HOST_KERNEL, TEXT, 7); /* idle */
	engine_symbols_tick(t->e, 2 * SEC);
	s = commit(&t->f, 2 * SEC);
	assert_int_equal(s->nvms, 0);
	assert_int_equal((int)s->host.other_sym.n.v, 3);
	assert_true(fabs(s->sampling.idle.v - 70) < 0.1);
	snapshot_unref(s);
	sample(t, 4243, DOMAIN_GUEST_KERNEL, TEXT, 3); /* nothing but a vCPU is there */
	engine_symbols_tick(t->e, 3 * SEC);
	s = commit(&t->f, 3 * SEC);
	assert_int_equal(s->nvms, 1);
	assert_int_equal((int)s->vms[0].sym.n.v, 3);
	snapshot_unref(s);
	end(t);
}

static void exits_find_their_guest_code(void **state)
{
	struct setup *t = begin(true);
	struct snapshot *s;

	(void)state;
	fixture_vm(&t->f, "web01", 100, 1);
	sample(t, 101, DOMAIN_GUEST_KERNEL, TEXT, 1);
	loaded(t);
	commit_drop(&t->f, 2 * SEC);
	feed(&t->f, (struct sample){.time = 2 * SEC + MS,
				    .tid = 101,
				    .type = EV_EXIT,
				    .key = 0x7c,
				    .aux = TEXT + 0x520,
				    .isa = ISA_SVM});
	s = commit(&t->f, 3 * SEC);
	assert_int_equal(s->ncode, 1);
	assert_string_equal(s->code[0].exit, "msr");
	assert_string_equal(s->code[0].name, "fn5");
	snapshot_unref(s);
	end(t);
}

static void own_code_has_names(void **state)
{
	struct setup *t = begin(false);
	const struct snap_symbol *r;
	struct snapshot *s;
	struct inv_vm *vm;

	(void)state;
	vm = fixture_vm(&t->f, "web01", getpid(), 1);
	assert_non_null(vm);
	sample(t, getpid() + 1, DOMAIN_HOST_USER, (uint64_t)(uintptr_t)own_code_has_names, 1);
	loaded(t);
	commit_drop(&t->f, 2 * SEC);
	sample(t, getpid() + 1, DOMAIN_HOST_USER, (uint64_t)(uintptr_t)own_code_has_names, 2);
	s = commit(&t->f, 3 * SEC);
	r = row(s, "web01", "own_code_has_names");
	assert_non_null(r);
	assert_int_equal(r->samples, 2);
	assert_string_equal(r->module, "test_engine_samples");
	snapshot_unref(s);
	end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_address_decides_where_the_guest_is_known),
		cmocka_unit_test(samples_wait_for_their_symbols),
		cmocka_unit_test(an_interval_does_not_wait),
		cmocka_unit_test(without_symbols_the_lower_half_is_a_guess),
		cmocka_unit_test(symbols_that_do_not_fit_are_not_used),
		cmocka_unit_test(guest_mode_makes_a_vm_of_an_unknown_thread),
		cmocka_unit_test(exits_find_their_guest_code),
		cmocka_unit_test(own_code_has_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
