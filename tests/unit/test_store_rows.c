// SPDX-License-Identifier: GPL-2.0-only
/* Rows that we never wrote, in a recording of somebody else: src/store_read.c, src/store_age.c. */
#include <errno.h>
#include <string.h>

#include <sqlite3.h>

#include "store_file.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

#define S INT64_C(1000000000)
#define BEGIN (INT64_C(1790000000) * S)
#define LAST " WHERE id=(SELECT max(id) FROM interval)"

/* Intervals of a second each. */
static void write_some(struct store *st, unsigned n)
{
	struct store_range range = {.last = BEGIN};

	(void)store_range(st, &range);
	for (unsigned i = 0; i < n; i++) {
		const struct made m = {.nvms = 1, .step = i};
		struct snapshot *s = made_snapshot(&m);

		assert_non_null(s);
		s->dt = S;
		s->wall = (struct timespec){.tv_sec = range.last / S + 1 + i};
		assert_int_equal(store_write(st, s, 0), 0);
		assert_int_equal(store_age(st), 0);
		snapshot_unref(s);
	}
}

static void change(const struct file *f, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static int create_kept(const struct file *f, struct store **out)
{
	struct store_keep keep = {0};
	char err[300] = "";

	assert_true(store_keep_parse("1s:4s,4s:20s,8s:40s", &keep));
	return store_create(f->path, &keep, out, err, sizeof(err));
}

static void at_is_sound(const struct store_at *at)
{
	assert_true(at->id > 0 && at->id <= INT64_C(1) << 53);
	assert_true(at->wall >= 0 && at->wall <= INT64_C(1) << 62);
	assert_true(at->dt >= 0 && at->dt <= INT64_C(1) << 53);
	assert_true(at->session >= 0 && at->session <= INT64_C(1) << 53);
}

/* All ways to an interval give such ones only that can be computed with. Returns how many. */
static unsigned read_all(const struct file *f)
{
	static const enum store_seek ways[] = {STORE_AT,     STORE_FROM,  STORE_NEXT,
					       STORE_BEFORE, STORE_FIRST, STORE_LAST};
	static const int64_t from[] = {INT64_MIN, 0, BEGIN, INT64_MAX};
	struct store *st = open_again(f);
	struct store_range range = {0};
	struct store_at at = {0};
	unsigned n = 0;

	if (!store_range(st, &range))
		assert_true(range.first >= 0 && range.last <= INT64_C(1) << 62);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		for (size_t k = 0; k < sizeof(from) / sizeof(from[0]); k++)
			if (!store_find(st, ways[i], from[k], &at))
				at_is_sound(&at);
	for (at.id = 0; !store_find(st, STORE_NEXT, at.id, &at); n++)
		at_is_sound(&at);
	store_close(st);
	return n;
}

static void hostile_rows_are_not_seen(void **state)
{
	static const struct {
		const char *sql;
		unsigned left; /* of eight */
	} rows[] = {
		{"UPDATE interval SET time=-9223372036854775808", 0},
		{"UPDATE interval SET time=9223372036854775807", 0},
		{"UPDATE interval SET time=1e300", 0},
		{"UPDATE interval SET time='soon'" LAST, 7},
		{"UPDATE interval SET time=9223372036854775807" LAST, 7},
		{"UPDATE interval SET dt=-9223372036854775808", 0},
		{"UPDATE interval SET dt=9223372036854775807", 0},
		{"UPDATE interval SET session=9223372036854775807" LAST, 7},
		{"UPDATE interval SET session=-9223372036854775808", 0},
		{"UPDATE interval SET merged=9223372036854775807, skipped=-1, tier=0", 8},
		{"UPDATE interval SET tier=9223372036854775807", 8},
		{"UPDATE interval SET id=-9223372036854775808" LAST, 7},
	};
	const struct file *f = *state;
	char path[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct store *st = create(f);

		write_some(st, 8);
		store_close(st);
		change(f, rows[i].sql);
		assert_int_equal(read_all(f), rows[i].left);
		/* Whoever goes on with it merges them, or drops them. */
		assert_int_equal(create_kept(f, &st), 0);
		write_some(st, 30);
		store_close(st);
		assert_true(read_all(f) > 0);
		assert_int_equal(unlink(f->path), 0);
		for (int k = 0; k < 2; k++) {
			snprintf(path, sizeof(path), "%s-%s", f->path, k ? "wal" : "shm");
			unlink(path);
		}
	}
}

static void ids_at_their_end_are_damage(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);

	write_some(st, 3);
	store_close(st);
	st = NULL;
	change(f, "UPDATE interval SET id=9223372036854775807" LAST);
	assert_int_equal(read_all(f), 2);
	assert_int_equal(create_kept(f, &st), -EBADMSG);
	assert_null(st);
}

/* Rows of the other tables whose interval is gone: their numbers are not used again. */
static void rows_without_an_interval(void **state)
{
	static const char *const sql[] = {
		"UPDATE interval SET id=-1" LAST,
		"DELETE FROM interval" LAST,
		"DELETE FROM segment",
		"DELETE FROM frame; DELETE FROM interval WHERE id>1",
	};
	const struct file *f = *state;

	for (size_t i = 0; i < sizeof(sql) / sizeof(sql[0]); i++) {
		struct store *st = create(f);

		write_some(st, 3);
		store_close(st);
		change(f, sql[i]);
		st = create(f);
		write_some(st, 3);
		store_close(st);
		assert_true(read_all(f) >= 3);
	}
}

/* What another program puts in the way while we write is damage, and nothing of ours is half there.
 */
static void a_row_in_the_way_is_damage(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	const struct made m = {.nvms = 1};
	struct snapshot *s = made_snapshot(&m);

	assert_non_null(s);
	write_some(st, 2);
	change(f, "INSERT INTO frame VALUES(3,1,x'00')");
	s->dt = S;
	s->wall = (struct timespec){.tv_sec = BEGIN / S + 10};
	assert_int_equal(store_write(st, s, 0), -EBADMSG);
	snapshot_unref(s);
	store_close(st);
	assert_int_equal(read_all(f), 2);
}

/* A damaged figure of a vCPU: what follows from it is not below 0. */
static void nothing_follows_below_zero(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	const struct made m = {.nvms = 1};
	struct snapshot *s = made_snapshot(&m);
	struct snap_vm *vm = (struct snap_vm *)s->vms;
	struct snap_vcpu *v = (struct snap_vcpu *)s->vcpus;
	struct store_at at = {0};

	assert_true(vm->vcpu_n > 0);
	for (uint32_t i = 0; i < vm->vcpu_n; i++)
		v[vm->vcpu_first + i].use.cpu = value_known(50);
	vm->use.cpu = value_known(10);
	vm->io_pct = value_known(10 - 50.0 * vm->vcpu_n);
	s->dt = S;
	s->wall = (struct timespec){.tv_sec = BEGIN / S + 1};
	assert_int_equal(store_write(st, s, 0), 0);
	snapshot_unref(s);
	s = NULL;
	assert_int_equal(store_find(st, STORE_LAST, 0, &at), 0);
	assert_int_equal(store_read(st, at.id, &s), 0);
	assert_int_equal(s->vms[0].io_pct.state, VALUE_KNOWN);
	assert_float_equal(s->vms[0].io_pct.v, 0, 0);
	assert_float_equal(s->vms[0].use.cpu.v, 10, 0);
	snapshot_unref(s);
	store_close(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hostile_rows_are_not_seen, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(ids_at_their_end_are_damage, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(rows_without_an_interval, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(a_row_in_the_way_is_damage, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(nothing_follows_below_zero, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
