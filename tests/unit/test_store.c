// SPDX-License-Identifier: GPL-2.0-only
/* Recordings: what goes in comes out, whole, and damage is noticed (src/store*.c). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "format.h"
#include "store.h"
#include "store_code.h"
#include "store_fields.h"
#include "store_number.h"
#include "store_priv.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

/* ---- what is compared: all that batch says of a snapshot ---- */

static char *written(const struct format *f, const struct snapshot *s, const char *table,
		     bool total)
{
	struct format_job job = {.whole = !table};
	struct filter *filter = filter_new();
	struct format_state *state = NULL;
	int fd = memfd_create("out", 0);
	struct out *o = out_new(fd, -1, 0);
	char err[400] = "", *text;
	struct stat sb;

	job.query =
		(struct batch_query){.table = batch_table_find(table ? table : f->default_table),
				     .filter = filter,
				     .total = total};
	assert_int_equal(f->open(&job, &state, err, sizeof(err)), 0);
	assert_int_equal(f->record(state, o, s), 0);
	assert_int_equal(out_flush(o), 0);
	assert_int_equal(fstat(fd, &sb), 0);
	text = calloc(1, (size_t)sb.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)sb.st_size, 0), sb.st_size);
	f->close(state);
	filter_free(filter);
	out_free(o);
	close(fd);
	return text;
}

static void same_text(char *a, char *b)
{
	assert_string_equal(a, b);
	free(a);
	free(b);
}

static void same(const struct snapshot *a, const struct snapshot *b)
{
	for (int total = 0; total < 2; total++) {
		same_text(written(&format_json, a, NULL, total),
			  written(&format_json, b, NULL, total));
		for (size_t i = 0; i < batch_ntables; i++)
			same_text(written(&format_csv, a, batch_tables[i].name, total),
				  written(&format_csv, b, batch_tables[i].name, total));
	}
}

/* ---- texts ---- */

static uint32_t dict_id(void *ctx, const char *text)
{
	return store_dict_id(ctx, text);
}

static const char *dict_text(void *ctx, uint32_t id)
{
	return store_dict_text(ctx, id);
}

static struct store_texts texts_of(struct store_dict *d)
{
	return (struct store_texts){.ctx = d, .id = dict_id, .text = dict_text};
}

/* ---- tests ---- */

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define CAN_CLEAR_PADDING 1
#endif
#endif

#ifdef CAN_CLEAR_PADDING
/* Every byte of a row that is no padding belongs to a member that is recorded. */
#define CHECK_MEMBERS(table, type)                                                                 \
	do {                                                                                       \
		static union {                                                                     \
			type row;                                                                  \
			unsigned char byte[sizeof(type)];                                          \
		} u;                                                                               \
		memset(&u, 0xff, sizeof(u));                                                       \
		__builtin_clear_padding(&u.row);                                                   \
		members_gone(table, u.byte, sizeof(u));                                            \
	} while (0)

static const struct store_table *table_of(enum store_table_id id)
{
	for (size_t i = 0; i < store_ntables; i++)
		if (store_tables[i].id == id)
			return &store_tables[i];
	return NULL;
}

static void members_gone(enum store_table_id id, unsigned char *byte, size_t n)
{
	const struct store_table *t = table_of(id);
	struct store_leaf leaf[STORE_LEAVES];
	size_t nleaf = store_leaves(t, leaf);

	assert_int_equal(t->row_size, n);
	assert_true(nleaf < STORE_LEAVES);
	for (size_t l = 0; l < nleaf; l++)
		memset(byte + leaf[l].at, 0, (size_t)leaf[l].f->size * leaf[l].f->n);
	/* The snapshot's own members, apart from its tables, which have rows of their own. */
	for (size_t i = 0; id == STORE_INTERVAL && i < store_ntables; i++) {
		const struct store_table *other = &store_tables[i];

		if (other->fixed && other->id != STORE_INTERVAL)
			memset(byte + other->rows_at, 0, other->fixed * other->row_size);
		if (other->fixed)
			continue;
		memset(byte + other->rows_at, 0, sizeof(void *));
		memset(byte + other->n_at, 0, sizeof(size_t));
	}
	if (id == STORE_INTERVAL) /* of its memory, not of what was measured */
		memset(byte + offsetof(struct snapshot, bytes), 0, sizeof(size_t));
	for (size_t i = 0; i < n; i++)
		if (byte[i])
			fail_msg("table %s: the member at byte %zu is not recorded: it needs a row "
				 "in src/store_fields.c",
				 t->name, i);
}
#endif

static void every_member_is_recorded(void **state)
{
	(void)state;
#ifdef CAN_CLEAR_PADDING
	CHECK_MEMBERS(STORE_INTERVAL, struct snapshot);
	CHECK_MEMBERS(STORE_HOST, struct snap_host);
	CHECK_MEMBERS(STORE_VMS, struct snap_vm);
	CHECK_MEMBERS(STORE_VCPUS, struct snap_vcpu);
	CHECK_MEMBERS(STORE_EXITS, struct snap_exit);
	CHECK_MEMBERS(STORE_SYMBOLS, struct snap_symbol);
	CHECK_MEMBERS(STORE_CODE, struct snap_code);
	CHECK_MEMBERS(STORE_THREADS, struct snap_thread);
	CHECK_MEMBERS(STORE_TASKS, struct snap_task);
	CHECK_MEMBERS(STORE_CPUS, struct snap_cpu);
	CHECK_MEMBERS(STORE_FINDINGS, struct snap_finding);
	CHECK_MEMBERS(STORE_SOURCES, struct snap_source);
	CHECK_MEMBERS(STORE_KINDS, struct tally);
	CHECK_MEMBERS(STORE_SAMPLING, struct snap_sampling);
#else
	skip();
#endif
}

/* A number of a column is never given twice, and none of a table either. */
static void numbers_are_unique(void **state)
{
	struct store_leaf leaf[STORE_LEAVES];

	(void)state;
	for (size_t i = 0; i < store_ntables; i++) {
		size_t n = store_leaves(&store_tables[i], leaf);

		for (size_t a = 0; a < n; a++) {
			assert_true(leaf[a].f->id < 64);
			for (size_t b = 0; b < a; b++)
				assert_int_not_equal(leaf[a].id, leaf[b].id);
		}
		for (size_t b = 0; b < i; b++)
			assert_int_not_equal(store_tables[i].id, store_tables[b].id);
	}
}

static void numbers_keep_what_is_shown(void **state)
{
	static const struct {
		double v;
		enum store_form form;
	} rows[] = {
		{0, FORM_ZERO},	       {3, FORM_WHOLE},	       {-3, FORM_WHOLE},
		{1e11, FORM_WHOLE},    {1.5, FORM_MILLI},      {60.2, FORM_MILLI},
		{1.0 / 3, FORM_MILLI}, {-12.3456, FORM_MILLI}, {2.4996, FORM_RAW},
		{0.0001, FORM_RAW},    {-0.0, FORM_RAW},       {1e300, FORM_RAW},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(store_form_of(rows[i].v), rows[i].form);
}

static struct made made_of(unsigned i)
{
	return (struct made){.nvms = i * 3,
			     .step = i,
			     .no_root = i == 2,
			     .no_exits = i == 3,
			     .no_samples = i == 4,
			     .no_symbols = i == 5,
			     .names = i == 6,
			     .seed = i > 6 ? i * 7919 : 0};
}

static void bytes_give_the_same_snapshot(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		const struct made m = made_of(i);
		struct snapshot *s = made_snapshot(&m), *again = NULL;
		struct store_dict d = {0};
		const struct store_texts t = texts_of(&d);
		struct store_put p = {0};

		assert_non_null(s);
		assert_int_equal(store_encode(s, &t, &p), 0);
		assert_int_equal(store_decode(p.data, p.n, &t, &again), 0);
		same(s, again);
		assert_int_equal(again->nthreads, s->nthreads);
		for (size_t x = 0; x < s->nexits; x++) {
			assert_int_equal(!s->exits[x].heat, !again->exits[x].heat);
			if (s->exits[x].heat)
				assert_memory_equal(s->exits[x].heat, again->exits[x].heat,
						    HEAT_BUCKETS * sizeof(uint32_t));
		}
		snapshot_unref(again);
		snapshot_unref(s);
		store_put_free(&p);
		store_dict_clear(&d);
	}
}

/* Whatever a byte is turned into, the answer is a sound snapshot or a refusal. */
static void damage_is_refused(void **state)
{
	const struct made m = {.nvms = 3};
	struct snapshot *s = made_snapshot(&m), *again;
	struct store_dict d = {0};
	const struct store_texts t = texts_of(&d);
	struct store_put p = {0};
	unsigned refused = 0;

	(void)state;
	assert_int_equal(store_encode(s, &t, &p), 0);
	for (size_t n = 0; n < p.n; n += 1 + n / 16)
		assert_int_equal(store_decode(p.data, n, &t, &again), -EBADMSG);
	for (size_t i = 0; i < p.n; i += 7) {
		uint8_t before = p.data[i];

		p.data[i] ^= (uint8_t)(1 + i % 255);
		if (store_decode(p.data, p.n, &t, &again) == 0) {
			free(written(&format_json, again, NULL, false));
			snapshot_unref(again);
		} else {
			refused++;
		}
		p.data[i] = before;
	}
	assert_true(refused > 0);
	snapshot_unref(s);
	store_put_free(&p);
	store_dict_clear(&d);
}

/* ---- the file ---- */

struct file {
	char dir[64], path[96];
};

static int make_dir(void **state)
{
	struct file *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/test-store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/r.db", f->dir);
	*state = f;
	return 0;
}

static int drop_dir(void **state)
{
	static const char *const names[] = {"r.db", "r.db-wal", "r.db-shm", "link.db"};
	struct file *f = *state;
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		unlink(path);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

static struct store *create(const struct file *f)
{
	const struct store_keep keep = {0};
	struct store *st = NULL;
	char err[300] = "";

	if (store_create(f->path, &keep, &st, err, sizeof(err)))
		fail_msg("%s", err);
	return st;
}

static struct store *open_again(const struct file *f)
{
	struct store *st = NULL;
	char err[300] = "";

	if (store_open(f->path, &st, err, sizeof(err)))
		fail_msg("%s", err);
	return st;
}

/* The i-th interval of a recording of a second each. */
static struct snapshot *step(unsigned i)
{
	struct made m = made_of(i % 16);
	struct snapshot *s;

	m.step = i;
	s = made_snapshot(&m);
	assert_non_null(s);
	s->wall = (struct timespec){.tv_sec = 1790000000 + i, .tv_nsec = 250000000};
	s->dt = NS_PER_S;
	return s;
}

static void what_is_written_is_read(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f), *rd;
	struct store_range range;
	struct store_at at = {0};
	struct stat sb;

	for (unsigned i = 0; i < 20; i++) {
		struct snapshot *s = step(i);

		assert_int_equal(store_write(st, s, 0), 0);
		snapshot_unref(s);
	}
	/* Others read while it is being written. */
	rd = open_again(f);
	assert_int_equal(stat(f->path, &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0600);
	assert_int_equal(store_range(rd, &range), 0);
	assert_int_equal(range.n, 20);
	assert_int_equal(range.last - range.first, 19 * NS_PER_S);
	for (unsigned i = 0; i < 20; i++) {
		struct snapshot *s = step(i), *again = NULL;

		assert_int_equal(store_find(rd, i ? STORE_NEXT : STORE_FIRST, at.id, &at), 0);
		assert_int_equal(at.wall, timespec_ns(s->wall));
		assert_int_equal(store_read(rd, at.id, &again), 0);
		assert_int_equal(again->time, at.wall);
		same(s, again);
		snapshot_unref(again);
		snapshot_unref(s);
	}
	assert_int_equal(store_find(rd, STORE_NEXT, at.id, &at), -ENOENT);
	store_close(rd);
	store_close(st);
}

static void times_are_found(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	int64_t first = 1790000000 * NS_PER_S + 250000000;
	struct store_range range;
	struct store_at at;

	assert_int_equal(store_range(st, &range), -ENOENT);
	assert_int_equal(store_find(st, STORE_AT, first, &at), -ENOENT);
	for (unsigned i = 0; i < 5; i++) {
		struct snapshot *s = step(i);

		assert_int_equal(store_write(st, s, i), 0);
		snapshot_unref(s);
	}
	assert_int_equal(store_find(st, STORE_AT, first + NS_PER_S * 2 + 1, &at), 0);
	assert_int_equal(at.wall, first + NS_PER_S * 2);
	assert_int_equal(store_find(st, STORE_FROM, first + NS_PER_S * 2 + 1, &at), 0);
	assert_int_equal(at.wall, first + NS_PER_S * 3);
	assert_int_equal(store_find(st, STORE_AT, 5, &at), 0);
	assert_int_equal(at.wall, first);
	assert_int_equal(store_find(st, STORE_FROM, INT64_MAX, &at), -ENOENT);
	assert_int_equal(store_find(st, STORE_LAST, 0, &at), 0);
	assert_int_equal(at.wall, first + NS_PER_S * 4);
	store_close(st);
}

static void a_recording_is_gone_on_with(void **state)
{
	const struct file *f = *state;
	struct store *st, *second;
	const struct store_keep keep = {0};
	struct store_at at, before;
	char err[300];

	for (unsigned run = 0; run < 3; run++) {
		st = create(f);
		for (unsigned i = 0; i < 2; i++) {
			struct snapshot *s = step(run * 2 + i);

			assert_int_equal(store_write(st, s, 0), 0);
			snapshot_unref(s);
		}
		/* Two recorders would overwrite each other's order. */
		assert_int_equal(store_create(f->path, &keep, &second, err, sizeof(err)), -EBUSY);
		assert_non_null(strstr(err, "another kvmtop records into it"));
		store_close(st);
	}
	st = open_again(f);
	assert_int_equal(store_find(st, STORE_LAST, 0, &at), 0);
	assert_int_equal(at.id, 6);
	assert_int_equal(store_find(st, STORE_BEFORE, 5, &before), 0);
	assert_int_equal(at.session, before.session + 1);
	store_close(st);
}

static void other_files_are_refused(void **state)
{
	const struct file *f = *state;
	const struct store_keep keep = {0};
	char err[300], link[128];
	struct store *st = NULL;
	sqlite3 *db;
	FILE *file;

	assert_int_equal(store_open(f->path, &st, err, sizeof(err)), -ENOENT);
	snprintf(link, sizeof(link), "%s/link.db", f->dir);
	assert_int_equal(symlink("r.db", link), 0);
	assert_int_equal(store_create(link, &keep, &st, err, sizeof(err)), -ELOOP);
	assert_true(store_create(f->dir, &keep, &st, err, sizeof(err)) < 0);
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(store_create(f->path, &keep, &st, err, sizeof(err)), -EBADMSG);
	assert_non_null(strstr(err, "not a recording of kvmtop"));
	assert_int_equal(store_open(f->path, &st, err, sizeof(err)), -EBADMSG);
	file = fopen(f->path, "w");
	assert_non_null(file);
	fputs("This is no database, and long enough to be looked at as one would be.\n", file);
	fclose(file);
	assert_true(store_open(f->path, &st, err, sizeof(err)) < 0);
	assert_true(store_create(f->path, &keep, &st, err, sizeof(err)) < 0);
	assert_null(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_is_recorded),
		cmocka_unit_test(numbers_are_unique),
		cmocka_unit_test(numbers_keep_what_is_shown),
		cmocka_unit_test(bytes_give_the_same_snapshot),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test_setup_teardown(what_is_written_is_read, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(times_are_found, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(a_recording_is_gone_on_with, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(other_files_are_refused, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
