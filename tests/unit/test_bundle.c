// SPDX-License-Identifier: GPL-2.0-only
/* What bundles are made of: words replaced, intervals as one, copies, the archive. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "anonymize.h"
#include "clock.h"
#include "format.h"
#include "host_facts.h"
#include "store.h"
#include "store_code.h"
#include "store_sum.h"
#include "tar.h"
#include "temp_dir.h"
#include "written.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

/* ---- words ---- */

static struct anon *knows(const char *const *names, size_t n)
{
	struct anon *a = anon_new();
	struct snapshot *s = snapshot_new();
	struct snap_vm *vm = snapshot_alloc(s, n, sizeof(*vm));

	assert_non_null(a);
	for (size_t i = 0; i < n; i++)
		vm[i] = (struct snap_vm){.name = names[i], .uuid = "", .title = "", .vm_id = ""};
	s->vms = vm;
	s->nvms = n;
	s->host.node = "node17.example.com";
	s->host.boot_id = "5d1f-22";
	assert_int_equal(anon_learn(a, s), 0);
	assert_int_equal(anon_learn(a, s), 0); /* once more teaches nothing */
	snapshot_unref(s);
	return a;
}

static void words_are_replaced(void **state)
{
	static const char *const names[] = {"web01",	  "web01-old",	"db",
					    "\x1b[31m x", "alice's db", "\x1b'q"};
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"web01 vCPU 3: 60% steal", "vm-1 vCPU 3: 60% steal"},
		{"web01-old and web01", "vm-2 and vm-1"},
		{"qemu-web01-io", "qemu-vm-1-io"},
		/* Short ones only where they stand alone. */
		{"db: adb, db_x, (db)", "vm-3: adb, db_x, (vm-3)"},
		/* As it is, as a terminal shows it, as a column has it. */
		{"a \x1b[31m x b", "a vm-4 b"},
		{"a \\e[31m x b", "a vm-4 b"},
		{"a \\e[31m\\x20x b", "a vm-4 b"},
		/* In a command, and as a folder. */
		{"guest-symbols 'alice'\"'\"'s db' -- ssh", "guest-symbols vm-5 -- ssh"},
		{"guest-symbols $'\\e\\x27q' -- ssh", "guest-symbols vm-6 -- ssh"},
		{"/kvmtop/guests/alice%27s%20db/kallsyms", "/kvmtop/guests/vm-5/kallsyms"},
		{"guests/%1B%5B31m%20x: denied", "guests/vm-4: denied"},
		{"alice's db's", "vm-5's"},
		{"on node17.example.com", "on host-1"},
		{"on node17", "on host-1"},
		{"boot 5d1f-22", "boot boot-1"},
		/* Where kvmtop itself is may be somebody's folder. */
		{"/home/al/kvmtop guest-symbols web01", "kvmtop guest-symbols vm-1"},
		{"sudo '/home/a b/kvmtop' doctor", "sudo kvmtop doctor"},
		{"/usr/kvmtop/x y", "/usr/kvmtop/x y"},
		{"", ""},
		{"nothing of it", "nothing of it"},
	};
	struct anon *a = knows(names, 6);
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = anon_text(a, rows[i].text);

		assert_non_null(got);
		assert_string_equal(got, rows[i].want);
		free(got);
	}
	/* Of VMs that are in no interval: names and UUIDs, not a process and its start. */
	assert_int_equal(anon_learn_vm(a, "oldmail"), 0);
	assert_int_equal(anon_learn_vm(a, "8f7c2c1e-1b2d-4c3e-9f00-0000000000aa"), 0);
	assert_int_equal(anon_learn_vm(a, "4711-991"), 0);
	text = anon_text(a, "oldmail 8f7c2c1e-1b2d-4c3e-9f00-0000000000aa 4711-991");
	assert_string_equal(text, "vm-7 uuid-1 4711-991");
	free(text);
	/* A program that is called like a VM has a name that the kernel cuts. */
	assert_int_equal(anon_learn_vm(a, "customer-web-frontend-01"), 0);
	text = anon_text(a, "customer-web-fr 44%, customer-web-frontend-01");
	assert_string_equal(text, "vm-8 44%, vm-8");
	free(text);
	anon_free(a);
	anon_free(NULL);
}

static void facts_lose_what_names(void **state)
{
	static const char *const names[] = {"web01"};
	struct anon *a = knows(names, 1);
	struct host_facts f = {0};

	(void)state;
	host_facts_add(&f, "cmdline",
		       "BOOT_IMAGE=/vmlinuz root=UUID=1-2 mitigations=off "
		       "hugepages=10 kvm.nx_huge_pages=never/etc/secret hostname=x");
	host_facts_add(&f, "node", "node17.example.com");
	assert_int_equal(anon_facts(a, &f), 0);
	assert_string_equal(host_facts_get(&f, "cmdline"), "mitigations=off hugepages=10 ...");
	assert_string_equal(host_facts_get(&f, "node"), "host-1");
	host_facts_free(&f);
	anon_free(a);
}

/* All texts of all tables, by way of all formats. */
static void no_name_is_left_in_a_snapshot(void **state)
{
	const struct made m = {.nvms = 6};
	struct snapshot *s = made_snapshot(&m);
	struct anon *a = anon_new();
	char *text;

	(void)state;
	assert_int_equal(anon_learn(a, s), 0);
	assert_int_equal(anon_snapshot(a, s), 0);
	assert_int_equal(store_check(s), 0);
	text = written(&format_json, s, NULL, false);
	assert_null(strstr(text, "web01"));
	assert_null(strstr(text, "instance-0000a1"));
	assert_null(strstr(text, "0d0c3a52-3c2e-4e5a-9a39-3b8c61f3a6d1"));
	assert_non_null(strstr(text, "vm-1"));
	free(text);
	for (size_t i = 0; i < batch_ntables; i++) {
		text = written(&format_csv, s, batch_tables[i].name, false);
		assert_null(strstr(text, "web01"));
		assert_null(strstr(text, "instance-0000a1"));
		free(text);
	}
	snapshot_unref(s);
	anon_free(a);
}

/* ---- intervals as one ---- */

static uint64_t exits_of(const struct snapshot *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nexits; i++)
		n += s->exits[i].now.count;
	return n;
}

static void any_number_of_intervals_is_one(void **state)
{
	struct store_sum *sum = store_sum_new();
	struct snapshot *s, *all;
	uint64_t count = 0;

	(void)state;
	assert_int_equal(store_sum_take(sum, &all), -ENOENT);
	for (unsigned i = 0; i < 110; i++) {
		const struct made m = {.nvms = 3, .step = i};

		s = made_snapshot(&m);
		/* The first ten are of another run. */
		if (i >= 10)
			count += exits_of(s);
		assert_int_equal(store_sum_add(sum, s, i < 10 ? 1 : 2), 0);
		snapshot_unref(s);
	}
	assert_int_equal(store_sum_take(sum, &all), 0);
	assert_int_equal(exits_of(all), count);
	assert_int_equal(all->dt, 100 * NS_PER_S);
	assert_int_equal(all->nvms, 3);
	store_sum_free(sum);
	/* It does not need what it was made of. */
	free(written(&format_json, all, NULL, false));
	snapshot_unref(all);
	store_sum_free(NULL);
}

/* ---- copies ---- */

static struct store *made_recording(const char *path, unsigned n)
{
	const struct store_keep keep = {0};
	struct host_facts f = {0};
	struct store *st = NULL;
	char err[300] = "";

	if (store_create(path, &keep, &st, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(host_facts_add(&f, "kernel", "6.1"), 0);
	assert_int_equal(store_write_facts(st, &f), 0);
	host_facts_free(&f);
	for (unsigned i = 0; i < n; i++) {
		const struct made m = {.nvms = 3, .step = i};
		struct snapshot *s = made_snapshot(&m);

		assert_int_equal(store_write(st, s, i), 0);
		snapshot_unref(s);
	}
	return st;
}

static void a_copy_is_the_same(void **state)
{
	struct store *from = made_recording(in_dir("r.db"), 6), *to = NULL;
	struct store_at at = {0}, other = {0};
	char err[300] = "";

	(void)state;
	if (store_copy_new(in_dir("copy.db"), &to, err, sizeof(err)))
		fail_msg("%s", err);
	for (int rc = store_find(from, STORE_FIRST, 0, &at); !rc;
	     rc = store_find(from, STORE_NEXT, at.id, &at)) {
		struct snapshot *s;

		if (at.id < 3) /* a range */
			continue;
		assert_int_equal(store_read(from, at.id, &s), 0);
		assert_int_equal(store_copy(from, &at, s, to), 0);
		snapshot_unref(s);
	}
	assert_int_equal(store_copy_end(to), 0);
	store_close(to);
	/* No other file is needed beside it. */
	assert_int_equal(access(in_dir("copy.db-wal"), F_OK), -1);
	if (store_open(in_dir("copy.db"), &to, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(store_find(from, STORE_FROM, 1772806923ll * NS_PER_S, &at), 0);
	for (at.id = 2; !store_find(from, STORE_NEXT, at.id, &at);) {
		struct snapshot *x, *y;
		char *one, *two;

		assert_int_equal(store_find(to, STORE_NEXT, other.id, &other), 0);
		assert_int_equal(other.id, at.id);
		assert_int_equal(other.wall, at.wall);
		assert_int_equal(other.session, at.session);
		assert_int_equal(store_read(from, at.id, &x), 0);
		assert_int_equal(store_read(to, other.id, &y), 0);
		one = written(&format_json, x, NULL, false);
		two = written(&format_json, y, NULL, false);
		assert_string_equal(one, two);
		free(one);
		free(two);
		snapshot_unref(x);
		snapshot_unref(y);
	}
	assert_int_equal(store_find(to, STORE_NEXT, other.id, &other), -ENOENT);
	store_close(to);
	store_close(from);
}

/* ---- the archive ---- */

static void archive(void **state)
{
	static const char text[] = "some text\n";
	int fd = memfd_create("tar", 0), in = memfd_create("in", 0);
	struct tar *t = tar_new(fd, 1790000000);
	char *raw = calloc(1, 65536), name[120];
	gzFile gz;

	(void)state;
	assert_non_null(t);
	assert_int_equal(write(in, text, sizeof(text) - 1), 10);
	assert_int_equal(tar_add(t, "a/b.txt", text, strlen(text)), 0);
	assert_int_equal(tar_add_fd(t, "a/c.txt", in), 0);
	assert_int_equal(tar_add(t, "a/empty", "", 0), 0);
	assert_int_equal(tar_end(t), 0);
	tar_free(t);
	lseek(fd, 0, SEEK_SET);
	gz = gzdopen(dup(fd), "rb");
	/* Header, block, header, block, header, end. */
	assert_int_equal(gzread(gz, raw, 65536), 7 * 512);
	gzclose(gz);
	assert_string_equal(raw, "a/b.txt");
	assert_string_equal(raw + 100, "0000600");
	assert_memory_equal(raw + 257, "ustar\00000", 8);
	assert_memory_equal(raw + 512, text, 10);
	assert_string_equal(raw + 1024, "a/c.txt");
	assert_string_equal(raw + 1024 + 124, "00000000012");
	free(raw);
	/* What cannot be is said, and goes on being said. */
	t = tar_new(fd, 0);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(tar_add(t, name, text, 1), -ENAMETOOLONG);
	assert_int_equal(tar_add(t, "a", text, 1), -ENAMETOOLONG);
	assert_int_equal(tar_end(t), -ENAMETOOLONG);
	tar_free(t);
	t = tar_new(fd, 0);
	assert_int_equal(tar_add_fd(t, "dev", STDIN_FILENO + 1000), -EINVAL);
	tar_free(t);
	tar_free(NULL);
	close(in);
	close(fd);
	fd = open("/dev/full", O_WRONLY);
	t = tar_new(fd, 0);
	assert_int_equal(tar_add(t, "a", text, sizeof(text)), 0);
	assert_int_equal(tar_end(t), -ENOSPC);
	tar_free(t);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_replaced),
		cmocka_unit_test(facts_lose_what_names),
		cmocka_unit_test(no_name_is_left_in_a_snapshot),
		cmocka_unit_test(any_number_of_intervals_is_one),
		cmocka_unit_test_setup_teardown(a_copy_is_the_same, make_dir, remove_dir),
		cmocka_unit_test(archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
