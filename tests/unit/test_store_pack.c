// SPDX-License-Identifier: GPL-2.0-only
/* How intervals lie in a recording: numbers, packing, and packing as older versions did it. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "clock.h"
#include "store_file.h"
#include "store_fields.h"
#include "store_priv.h"
#include "store_reduce.h"
#include "written.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

/* Numbers of every length, at the end of the bytes and with others behind them. */
static void numbers_of_every_length(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits <= 64; bits++) {
		for (int less = 0; less < 2; less++) {
			uint64_t v = (bits < 64 ? UINT64_C(1) << bits : 0) - (uint64_t)less;
			struct store_put p = {0};
			struct store_get g;
			uint8_t room[STORE_VARINT_MOST];

			for (unsigned i = 0; i < 12; i++)
				store_put_u64(&p, v);
			assert_int_equal(store_varint(room, v) - room, p.n / 12);
			assert_memory_equal(room, p.data, p.n / 12);
			g = (struct store_get){.at = p.data, .end = p.data + p.n};
			for (unsigned i = 0; i < 12; i++)
				assert_true(store_get_u64(&g) == v);
			assert_false(g.failed);
			assert_int_equal(store_get_left(&g), 0);
			/* One that is cut off is none. */
			g = (struct store_get){.at = p.data, .end = p.data + p.n / 12 - 1};
			assert_true(store_get_u64(&g) == 0);
			assert_true(g.failed);
			store_put_free(&p);
		}
	}
}

static void longer_than_any_number(void **state)
{
	static const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					0xff, 0xff, 0xff, 0xff, 0xff, 0x00};
	struct store_get g = {.at = bytes, .end = bytes + sizeof(bytes)};

	(void)state;
	assert_true(store_get_u64(&g) == 0);
	assert_true(g.failed);
}

static void what_is_packed_is_unpacked(void **state)
{
	struct store_packer p = {0};
	struct store_put from = {0}, packed = {0}, again = {0};

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		store_put_u64(&from, i * i % 1000);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(store_pack(&p, &from, round, &packed), 0);
		assert_true(packed.n < from.n);
		assert_int_equal(store_unpack(&p, packed.data, packed.n, from.n, &again), 0);
		assert_int_equal(again.n, from.n);
		assert_memory_equal(again.data, from.data, from.n);
	}
	assert_int_equal(store_unpack(&p, packed.data, packed.n, from.n - 1, &again), -EBADMSG);
	assert_int_equal(store_unpack(&p, packed.data, packed.n, from.n + 1, &again), -EBADMSG);
	assert_int_equal(store_unpack(&p, packed.data, packed.n - 1, from.n, &again), -EBADMSG);
	assert_int_equal(store_unpack(&p, packed.data, packed.n, 0, &again), -EBADMSG);
	/* So much of so little is refused before there is memory for it. */
	assert_int_equal(store_unpack(&p, packed.data, 12, STORE_UNPACKED_MOST, &again), -EBADMSG);
	assert_int_equal(store_unpack(&p, packed.data, packed.n, STORE_UNPACKED_MOST + 1, &again),
			 -EBADMSG);
	store_packer_free(&p);
	store_packer_free(&p);
	store_put_free(&from);
	store_put_free(&packed);
	store_put_free(&again);
}

/* ---- figures beside whole numbers, which thresholds are, and where other digits are shown ---- */

static double beside_whole(uint32_t *seed)
{
	static const double whole[] = {1, 5, 10, 20, 50, 100, 1000, 9995, 12345, 99950};
	static const double off[] = {-0.0004, -1e-9, 0, 0.0004};

	*seed = *seed * 1664525 + 1013904223;
	return whole[(*seed >> 16) % 10] + off[*seed >> 8 & 3];
}

/* All figures of the snapshot that are known. */
static void put_beside_whole(struct snapshot *s, uint32_t *seed)
{
	struct store_leaf leaf[STORE_LEAVES];

	for (size_t t = 0; t < store_ntables; t++) {
		size_t n, nleaf = store_leaves(&store_tables[t], leaf);
		char *rows = (char *)store_rows(&store_tables[t], s, &n);

		for (size_t i = 0; i < n * nleaf; i++) {
			const struct store_leaf *l = &leaf[i % nleaf];
			char *at = rows + i / nleaf * store_tables[t].row_size + l->at;
			struct value v;

			if (l->f->type != STORE_VALUE)
				continue;
			memcpy(&v, at, sizeof(v));
			if (value_has(v))
				v.v = beside_whole(seed);
			memcpy(at, &v, sizeof(v));
		}
	}
}

static void is_read_as_shown(const struct file *f, const struct snapshot *s)
{
	static const struct format *const formats[] = {&format_text, &format_csv, &format_json};
	struct store *st = create(f);
	struct store_at at;
	struct snapshot *again = NULL, *kept = store_reduce(s);

	assert_non_null(kept);
	assert_int_equal(store_write(st, s, 0), 0);
	assert_int_equal(store_find(st, STORE_LAST, 0, &at), 0);
	assert_int_equal(store_read(st, at.id, &again), 0);
	for (size_t i = 0; i < 2 * 3 * batch_ntables; i++) {
		const struct format *format = formats[i / 2 % 3];
		const char *table = batch_tables[i / 6].name;
		char *a = written(format, kept, table, i % 2),
		     *b = written(format, again, table, i % 2);

		assert_string_equal(a, b);
		free(a);
		free(b);
	}
	snapshot_unref(kept);
	snapshot_unref(again);
	store_close(st);
}

static void thresholds_are_passed_as_before(void **state)
{
	uint32_t seed = 1;

	for (unsigned i = 0; i < 12; i++) {
		const struct made m = {
			.nvms = 1 + i % 4, .step = i, .pmu = i % 3 == 0, .slow = i % 2};
		struct snapshot *s = made_snapshot(&m);

		assert_non_null(s);
		s->dt = NS_PER_S;
		put_beside_whole(s, &seed);
		is_read_as_shown(*state, s);
		snapshot_unref(s);
	}
}

/* A mean that is below a threshold by its last bit follows from figures that reach it. */
static void a_mean_at_a_threshold(void **state)
{
	const struct made m = {.nvms = 1};
	struct snapshot *s = made_snapshot(&m);
	struct snap_vm *vm = (struct snap_vm *)s->vms;

	assert_non_null(s);
	s->dt = NS_PER_S;
	for (size_t i = 0; i < s->nvcpus; i++)
		((struct snap_vcpu *)s->vcpus)[i].use.steal = value_known(5);
	vm->use.own_quota = false; /* its mark is in the way */
	vm->use.steal = value_known(nextafter(5, 0));
	is_read_as_shown(*state, s);
	vm->use.steal = value_known(nextafter(5, 6));
	is_read_as_shown(*state, s);
	snapshot_unref(s);
}

static char *first_of(const struct file *f)
{
	struct store *st = open_again(f);
	struct store_at at;
	struct snapshot *s = NULL;
	char *text;

	assert_int_equal(store_find(st, STORE_FIRST, 0, &at), 0);
	assert_int_equal(store_read(st, at.id, &s), 0);
	text = written(&format_json, s, NULL, false);
	snapshot_unref(s);
	store_close(st);
	return text;
}

/* The first interval as version 3 had it. */
static void pack_by_zlib(const struct file *f)
{
	struct store *st = create(f);
	sqlite3_stmt *q;
	uint8_t packed[1 << 16];
	uLongf n = sizeof(packed);

	assert_int_equal(sqlite3_prepare_v2(st->db,
					    "SELECT length,data FROM frame WHERE interval=1", -1,
					    &q, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	assert_int_equal(store_unpack(&st->packer, sqlite3_column_blob(q, 1),
				      (size_t)sqlite3_column_bytes(q, 1),
				      (size_t)sqlite3_column_int64(q, 0), &st->bytes),
			 0);
	sqlite3_finalize(q);
	assert_int_equal(compress2(packed, &n, st->bytes.data, st->bytes.n, 1), Z_OK);
	assert_int_equal(sqlite3_prepare_v2(st->db, "UPDATE frame SET data=? WHERE interval=1", -1,
					    &q, NULL),
			 SQLITE_OK);
	sqlite3_bind_blob64(q, 1, packed, n, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(q), SQLITE_DONE);
	sqlite3_finalize(q);
	assert_int_equal(store_exec(st, "ALTER TABLE segment ADD tier INTEGER NOT NULL DEFAULT 0;"
					"PRAGMA user_version=3"),
			 0);
	store_close(st);
}

static void older_recordings_are_read_and_gone_on_with(void **state)
{
	const struct file *f = *state;
	const struct made m = {.nvms = 4};
	struct snapshot *s = made_snapshot(&m);
	struct store *st = create(f);
	char *before, *after;

	assert_non_null(s);
	s->dt = NS_PER_S;
	assert_int_equal(store_write(st, s, 0), 0);
	store_close(st);
	before = first_of(f);
	pack_by_zlib(f);
	after = first_of(f);
	assert_string_equal(before, after);
	free(after);
	st = create(f);
	assert_int_equal(store_pragma(st, "user_version"), 6);
	assert_int_equal(store_write(st, s, 0), 0);
	store_close(st);
	after = first_of(f);
	assert_string_equal(before, after);
	free(after);
	free(before);
	snapshot_unref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_length),
		cmocka_unit_test(longer_than_any_number),
		cmocka_unit_test(what_is_packed_is_unpacked),
		cmocka_unit_test_setup_teardown(thresholds_are_passed_as_before, make_dir,
						drop_dir),
		cmocka_unit_test_setup_teardown(a_mean_at_a_threshold, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(older_recordings_are_read_and_gone_on_with,
						make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
