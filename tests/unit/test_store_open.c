// SPDX-License-Identifier: GPL-2.0-only
/* What is found where a recording is to be: src/store.c. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "store_file.h"
#include "store_priv.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

static void write_one(struct store *st)
{
	const struct made m = {.nvms = 2};
	struct snapshot *s = made_snapshot(&m);

	assert_non_null(s);
	s->dt = 1000000000;
	s->wall = (struct timespec){.tv_sec = 1790000000};
	assert_int_equal(store_write(st, s, 0), 0);
	snapshot_unref(s);
}

static sqlite3 *other_program(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	return db;
}

/* The first start was ended after SQLite's first page, before the tables. */
static void a_first_start_that_was_cut_short(void **state)
{
	const struct file *f = *state;
	struct store_range range;
	struct store *st = NULL;
	char err[300] = "";
	struct stat sb;

	sqlite3_close(other_program(f->path, "PRAGMA page_size=4096; PRAGMA journal_mode=WAL"));
	assert_int_equal(stat(f->path, &sb), 0);
	assert_int_equal(sb.st_size, 4096);
	assert_int_equal(store_open(f->path, &st, err, sizeof(err)), -EBADMSG);
	assert_non_null(strstr(err, "an empty file"));
	st = create(f);
	write_one(st);
	store_close(st);
	st = open_again(f);
	assert_int_equal(store_range(st, &range), 0);
	assert_int_equal(range.n, 1);
	store_close(st);
}

static void a_locked_recording_is_called_locked(void **state)
{
	const struct store_keep keep = {0};
	const struct file *f = *state;
	struct store *st = create(f);
	char err[300] = "";
	sqlite3 *db;

	write_one(st);
	store_close(st);
	st = NULL;
	db = other_program(f->path, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE");
	assert_int_equal(store_create(f->path, &keep, &st, err, sizeof(err)), -EBUSY);
	assert_non_null(strstr(err, "another program has it locked"));
	assert_int_equal(store_open(f->path, &st, err, sizeof(err)), -EBUSY);
	assert_non_null(strstr(err, "another program has it locked"));
	assert_null(st);
	sqlite3_close(db);
	store_close(create(f));
}

static void a_path_is_a_path(void **state)
{
	static const char *const names[] = {":memory:", "file:a.db", "file:b?mode=memory"};
	const struct store_keep keep = {0};
	const struct file *f = *state;
	char before[512], err[300] = "";

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(f->dir), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct store_range range;
		struct store *st = NULL;
		struct stat sb;

		if (store_create(names[i], &keep, &st, err, sizeof(err)))
			fail_msg("%s", err);
		write_one(st);
		store_close(st);
		assert_int_equal(stat(names[i], &sb), 0);
		assert_true(sb.st_size > 0);
		if (store_open(names[i], &st, err, sizeof(err)))
			fail_msg("%s", err);
		assert_int_equal(store_range(st, &range), 0);
		store_close(st);
		assert_int_equal(unlink(names[i]), 0);
	}
	assert_int_equal(chdir(before), 0);
}

static uint64_t intervals_of(const char *path)
{
	struct store_range range = {0};
	struct store *st = NULL;
	char err[300] = "";

	if (store_open(path, &st, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(store_range(st, &range), 0);
	store_close(st);
	return range.n;
}

/* Its log has the old name, which a recorder that begins there takes for its own. */
static void a_renamed_recording_is_whole(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	char old[128];

	write_one(st);
	write_one(st);
	assert_false(store_is_moved(st));
	snprintf(old, sizeof(old), "%s/link.db", f->dir);
	assert_int_equal(rename(f->path, old), 0);
	assert_true(store_is_moved(st));
	store_close(st);
	st = create(f);
	assert_false(store_is_moved(st));
	write_one(st);
	assert_int_equal(intervals_of(f->path), 1);
	assert_int_equal(intervals_of(old), 2);
	assert_int_equal(unlink(f->path), 0);
	assert_true(store_is_moved(st));
	store_close(st);
	/* Another file is there now. */
	st = create(f);
	assert_int_equal(rename(old, f->path), 0);
	assert_true(store_is_moved(st));
	store_close(st);
	assert_int_equal(intervals_of(f->path), 2);
	snprintf(old, sizeof(old), "%s/link.db-wal", f->dir);
	unlink(old);
	snprintf(old, sizeof(old), "%s/link.db-shm", f->dir);
	unlink(old);
}

/* What is written is on the disk when it is said to be, whatever ends the machine. */
static void it_is_safe_at_a_power_cut(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	sqlite3_stmt *q;

	assert_int_equal(store_pragma(st, "synchronous"), 2); /* FULL */
	assert_int_equal(sqlite3_prepare_v2(st->db, "PRAGMA journal_mode", -1, &q, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	assert_string_equal(sqlite3_column_text(q, 0), "wal");
	sqlite3_finalize(q);
	store_close(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_first_start_that_was_cut_short, make_dir,
						drop_dir),
		cmocka_unit_test_setup_teardown(a_locked_recording_is_called_locked, make_dir,
						drop_dir),
		cmocka_unit_test_setup_teardown(it_is_safe_at_a_power_cut, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(a_path_is_a_path, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(a_renamed_recording_is_whole, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
