// SPDX-License-Identifier: GPL-2.0-only
/* Facts of the host: what is read below a root, and what recordings keep of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "host_facts.h"
#include "made_tree.h"
#include "store.h"
#include "sysroot.h"
#include "temp_dir.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

static void put(const char *path, const char *text)
{
	tree_put(dir, path, text);
}

static void a_host(const char *nested)
{
	put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
	put("proc/sys/kernel/random/boot_id", "5d1f\n");
	put("proc/cmdline", "BOOT_IMAGE=/vmlinuz ro mitigations=off\n");
	put("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU: fast\nmicrocode\t: 0x1\n\n"
			    "processor\t: 1\nmodel name\t: another\n");
	put("sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: untrained return\n");
	put("sys/devices/system/cpu/smt/active", "1\n");
	put("sys/devices/system/node/online", "0-1\n");
	put("sys/module/kvm/parameters/halt_poll_ns", "200000\n");
	put("sys/module/kvm_amd/parameters/nested", nested);
	put("sys/module/ext4/parameters/other", "1\n");
}

static struct host_facts read_facts(void)
{
	struct host_facts f;
	struct sysroot *r;

	assert_int_equal(sysroot_open(dir, &r), 0);
	assert_int_equal(host_facts_read(r, &f), 0);
	sysroot_close(r);
	return f;
}

static void what_is_there_is_read(void **state)
{
	static const struct {
		const char *name, *value;
	} want[] = {
		{"kernel", "6.1.0-18-amd64"},
		{"boot_id", "5d1f"},
		{"cmdline", "BOOT_IMAGE=/vmlinuz ro mitigations=off"},
		{"cpu.model", "A CPU: fast"},
		{"cpu.microcode", "0x1"},
		{"mitigation.retbleed", "Mitigation: untrained return"},
		{"smt.active", "1"},
		{"numa.online", "0-1"},
		{"kvm.halt_poll_ns", "200000"},
		{"kvm_amd.nested", "1"},
	};
	struct host_facts f, g;

	(void)state;
	a_host("1\n");
	f = read_facts();
	assert_int_equal(f.n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < f.n; i++)
		assert_string_equal(host_facts_get(&f, want[i].name), want[i].value);
	for (size_t i = 1; i < f.n; i++)
		assert_true(strcmp(f.fact[i - 1].name, f.fact[i].name) < 0);
	assert_null(host_facts_get(&f, "ksm"));
	g = read_facts();
	assert_true(host_facts_equal(&f, &g));
	host_facts_free(&g);
	a_host("0\n");
	g = read_facts();
	assert_false(host_facts_equal(&f, &g));
	host_facts_free(&g);
	host_facts_free(&f);
	host_facts_free(&f);
}

/* A program of this length, with QEMU's words so many bytes from its start. */
static void a_vmm(int pid, long at, const char *version)
{
	char path[64], full[256];
	FILE *f;

	snprintf(path, sizeof(path), "proc/%d/exe", pid);
	put(path, "");
	snprintf(full, sizeof(full), "%s/%s", dir, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	fprintf(f, "QEMU emulator version %s\nCopyright", version);
	assert_int_equal(fseek(f, 700 << 10, SEEK_SET), 0);
	fputc(0, f);
	fclose(f);
}

static void versions_of_vmms(void **state)
{
	struct vmm_versions *v = vmm_versions_new();
	struct host_facts f = {0};
	struct sysroot *r;

	(void)state;
	assert_non_null(v);
	/* Also where they lie across the border of what is read at a time. */
	a_vmm(100, 5, "7.2.9 (Debian 1:7.2+dfsg-7)");
	a_vmm(101, (256 << 10) - 12, "6.0.0");
	a_vmm(102, 5, "7.2.9 (Debian 1:7.2+dfsg-7)");
	put("proc/103/exe", "another program");
	assert_int_equal(sysroot_open(dir, &r), 0);
	for (int pid = 100; pid < 105; pid++)
		assert_int_equal(vmm_versions_add(v, r, pid, "qemu", &f), 0);
	assert_int_equal(f.n, 1);
	assert_string_equal(host_facts_get(&f, "vmm.qemu"), "6.0.0; 7.2.9 (Debian 1:7.2+dfsg-7)");
	sysroot_close(r);
	host_facts_free(&f);
	vmm_versions_free(v);
	vmm_versions_free(NULL);
}

/* ---- in recordings ---- */

static struct store *record_into(const char *name)
{
	const struct store_keep keep = {0};
	struct store *st = NULL;
	char err[300] = "";

	if (store_create(in_dir(name), &keep, &st, err, sizeof(err)))
		fail_msg("%s", err);
	return st;
}

static void add_intervals(struct store *st, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct made m = {.nvms = 2, .step = i};
		struct snapshot *s = made_snapshot(&m);

		assert_non_null(s);
		assert_int_equal(store_write(st, s, 0), 0);
		snapshot_unref(s);
	}
}

static void holds(struct store *st, int64_t id, const char *kernel)
{
	struct host_facts f;
	int rc = store_facts(st, id, &f);

	if (!kernel) {
		assert_int_equal(rc, -ENOENT);
		return;
	}
	assert_int_equal(rc, 0);
	assert_string_equal(host_facts_get(&f, "kernel"), kernel);
	host_facts_free(&f);
}

static void write_kernel(struct store *st, const char *kernel)
{
	struct host_facts f = {0};

	assert_int_equal(host_facts_add(&f, "kernel", kernel), 0);
	assert_int_equal(host_facts_add(&f, "node", "n1"), 0);
	assert_int_equal(store_write_facts(st, &f), 0);
	host_facts_free(&f);
}

static void facts_hold_until_others_do(void **state)
{
	struct store *st = record_into("facts.db");

	(void)state;
	add_intervals(st, 2);
	write_kernel(st, "one");
	add_intervals(st, 2);
	write_kernel(st, "not for long");
	write_kernel(st, "two");
	add_intervals(st, 2);
	holds(st, 2, NULL);
	holds(st, 3, "one");
	holds(st, 4, "one");
	holds(st, 5, "two");
	holds(st, 1000, "two");
	store_close(st);
}

static void facts_go_with_their_intervals(void **state)
{
	struct store *st = record_into("gone.db");
	sqlite3 *db;

	(void)state;
	write_kernel(st, "one");
	add_intervals(st, 2);
	write_kernel(st, "two");
	add_intervals(st, 2);
	assert_int_equal(sqlite3_open(in_dir("gone.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM interval WHERE id<=3", NULL, NULL, NULL),
			 SQLITE_OK);
	write_kernel(st, "three");
	holds(st, 2, NULL);
	holds(st, 4, "two");
	holds(st, 5, "three");
	sqlite3_close(db);
	store_close(st);
}

static void older_recordings_have_none(void **state)
{
	static const char to_version_1[] =
		"DROP VIEW waits; DROP TABLE waited; DROP TABLE facts; DROP TABLE tsc; "
		"ALTER TABLE segment ADD tier INTEGER NOT NULL DEFAULT 0; PRAGMA user_version=1";
	struct store *st = record_into("old.db");
	char err[300] = "";
	sqlite3 *db;

	(void)state;
	add_intervals(st, 2);
	store_close(st);
	assert_int_equal(sqlite3_open(in_dir("old.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, to_version_1, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_open(in_dir("old.db"), &st, err, sizeof(err)), 0);
	holds(st, 1, NULL);
	store_close(st);
	/* One that is gone on with becomes a new one. */
	st = record_into("old.db");
	write_kernel(st, "new");
	add_intervals(st, 1);
	holds(st, 2, NULL);
	holds(st, 3, "new");
	store_close(st);
	/* What is newer than this is not ours to read. */
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=7", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_open(in_dir("old.db"), &st, err, sizeof(err)), -EBADMSG);
	assert_non_null(strstr(err, "version 7"));
	assert_int_equal(
		sqlite3_exec(db, "DROP TABLE facts; PRAGMA user_version=4", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(store_open(in_dir("old.db"), &st, err, sizeof(err)), -EBADMSG);
	assert_non_null(strstr(err, "tables are missing"));
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_there_is_read, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(versions_of_vmms, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(facts_hold_until_others_do, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(facts_go_with_their_intervals, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(older_recordings_have_none, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
