// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sources of symbols as the collecting thread sees them: loaded beside it, read again, given up
 * when the guest contradicts them. The guest is this very process.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guest_env.h"

#define HALT 0xffffffff81000100u

static bool wait_for(struct symbols *s, const struct symsource *src)
{
	struct pollfd p = {.fd = symbols_fd(s), .events = POLLIN};

	while (symsource_status(src)->state == SYMBOLS_LOADING) {
		if (poll(&p, 1, 20000) != 1)
			return false;
		symbols_poll(s);
	}
	return true;
}

static struct symsource *open_guest(struct env *e, struct symbols *s)
{
	struct guest_vm vm = web01;
	struct symsource *src;

	(void)e;
	vm.pid = getpid();
	src = symbols_guest(s, &vm);
	assert_non_null(src);
	assert_int_equal(symsource_status(src)->state, SYMBOLS_LOADING);
	assert_true(wait_for(s, src));
	return src;
}

static void sources_load_beside(void **state)
{
	struct env *e = *state;
	struct symsource *src, *other;
	struct symbols *s;
	struct symbol a, b;

	copy(e, DATA "kallsyms-6.1.txt", "kvmtop/guests/web01/kallsyms");
	assert_int_equal(symbols_new(e->root, &e->files, &s), 0);
	src = open_guest(e, s);
	assert_int_equal(symsource_status(src)->state, SYMBOLS_OK);
	assert_true(symsource_lookup(src, 0xffffffff81a59190, &a));
	assert_true(symbols_symbol(s, a.table, a.index, &b));
	assert_string_equal(a.name, b.name);
	/* A second one has the same tables; closing the first does not hurt. */
	other = open_guest(e, s);
	symsource_close(src);
	symbols_poll(s);
	assert_true(symsource_lookup(other, 0xffffffff81a59190, &b));
	assert_int_equal(a.table, b.table);
	/* Closed while it is loaded, and freed with sources open. */
	symsource_close(symbols_host(s));
	assert_non_null(symbols_process(s, getpid()));
	symbols_free(s);
}

static void a_new_boot_is_read_again(void **state)
{
	struct env *e = *state;
	struct symsource *src;
	struct symbols *s;
	struct symbol a;
	struct pollfd p;

	put(e, "kvmtop/guests/web01/kallsyms",
	    "ffffffff81000000 T _stext\nffffffff81000100 T f\nffffffff81000200 T _etext\n");
	assert_int_equal(symbols_new(e->root, NULL, &s), 0);
	src = open_guest(e, s);
	assert_true(symsource_lookup(src, HALT, &a));
	assert_string_equal(a.name, "f");
	put(e, "kvmtop/guests/web01/kallsyms.new",
	    "ffffffff81000000 T _stext\nffffffff81000100 T newer\nffffffff81000200 T _etext\n");
	assert_int_equal(rename(path_in(e, "kvmtop/guests/web01/kallsyms.new"),
				path_in(e, "kvmtop/guests/web01/kallsyms")),
			 0);
	symsource_refresh(src, 1);
	p = (struct pollfd){.fd = symbols_fd(s), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_true(symbols_poll(s));
	assert_true(symsource_lookup(src, HALT, &a));
	assert_string_equal(a.name, "newer");
	/* Not twice in 30 s; in 60 s when nothing had changed. */
	symsource_refresh(src, 1000000000);
	assert_int_equal(poll(&p, 1, 50), 0);
	symsource_refresh(src, 31000000000);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_false(symbols_poll(s));
	symsource_refresh(src, 62000000000);
	assert_int_equal(poll(&p, 1, 50), 0);
	symsource_refresh(src, 92000000000);
	assert_int_equal(poll(&p, 1, 20000), 1);
	symbols_free(s);
}

static bool feed(struct symsource *src, uint64_t addr, enum evidence_kind kind, size_t n)
{
	bool changed = false;

	for (size_t i = 0; i < n; i++) {
		struct symbols_evidence one = {addr + (kind == EVIDENCE_SAMPLE ? i * 8 : 0), kind};

		changed |= symsource_evidence(src, &one, 1);
	}
	return changed;
}

/* What the guest does contradicts its symbols: they are not used from then on. */
static void evidence_against(void **state)
{
	struct env *e = *state;
	struct symsource *src;
	struct symbols *s;
	struct symbol a;

	copy(e, DATA "kallsyms-6.1.txt", "kvmtop/guests/web01/kallsyms");
	assert_int_equal(symbols_new(e->root, NULL, &s), 0);
	src = open_guest(e, s);
	/* Its own functions, its modules, and user code: nothing to say against it. */
	assert_false(feed(src, 0xffffffff81a59180, EVIDENCE_SAMPLE, 200));
	assert_false(feed(src, 0xffffffffc0800000, EVIDENCE_SAMPLE, 200));
	assert_false(feed(src, 0x7f0000001000, EVIDENCE_SAMPLE, 200));
	assert_true(symsource_lookup(src, 0xffffffff81a59190, &a));
	/* A kernel that KASLR put elsewhere. */
	assert_true(feed(src, 0xffffffff9c600000, EVIDENCE_SAMPLE, 200));
	assert_int_equal(symsource_status(src)->state, SYMBOLS_REFUSED);
	assert_non_null(strstr(symsource_status(src)->why, "fall on these symbols"));
	assert_non_null(strstr(symsource_status(src)->mend, "kvmtop guest-symbols web01"));
	assert_false(symsource_lookup(src, 0xffffffff81a59190, &a));
	/* The same file again is no better. */
	symsource_refresh(src, 1);
	struct pollfd p = {.fd = symbols_fd(s), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_false(symbols_poll(s));
	assert_int_equal(symsource_status(src)->state, SYMBOLS_REFUSED);
	symbols_free(s);
}

static void halts_elsewhere(void **state)
{
	struct env *e = *state;
	struct symsource *src;
	struct symbols *s;

	put(e, "kvmtop/guests/web01/kallsyms",
	    "ffffffff81000000 T _stext\nffffffff81000100 T default_idle\n"
	    "ffffffff81000200 T vfs_read\nffffffff81000300 T _etext\n");
	assert_int_equal(symbols_new(e->root, NULL, &s), 0);
	src = open_guest(e, s);
	assert_false(feed(src, 0xffffffff81000110, EVIDENCE_HLT, 10));
	assert_false(feed(src, 0xffffffff81000210, EVIDENCE_HLT, 10));
	symsource_close(src);
	src = open_guest(e, s);
	assert_true(feed(src, 0xffffffff81000210, EVIDENCE_HLT, 10));
	assert_non_null(strstr(symsource_status(src)->why, "no idle loop"));
	/* A list in which nothing is known to halt. */
	put(e, "kvmtop/guests/web01/kallsyms",
	    "ffffffff81000000 T _stext\nffffffff81000200 T f\nffffffff81000300 T _etext\n");
	src = open_guest(e, s);
	assert_false(feed(src, 0xffffffff81000210, EVIDENCE_HLT, 10));
	symbols_free(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sources_load_beside),
		TEST(a_new_boot_is_read_again),
		TEST(evidence_against),
		TEST(halts_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
