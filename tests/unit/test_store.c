// SPDX-License-Identifier: GPL-2.0-only
/* Recordings: what goes in comes out, whole, and damage is noticed (src/store*.c). */
#include <errno.h>
#include <math.h>
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
#include "store_merge.h"
#include "store_number.h"
#include "store_priv.h"
#include "store_reduce.h"
#include "store_time.h"
#include "store_file.h"
#include "written.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

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
		for (size_t i = 0; i < batch_ntables; i++) {
			const char *name = batch_tables[i].name;

			same_text(written(&format_csv, a, name, total),
				  written(&format_csv, b, name, total));
			same_text(written(&format_text, a, name, total),
				  written(&format_text, b, name, total));
		}
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
	if (id == STORE_INTERVAL) { /* of its memory, not of what was measured */
		memset(byte + offsetof(struct snapshot, bytes), 0, sizeof(size_t));
		/* They have an SQL table (store_tsc.c). */
		memset(byte + offsetof(struct snapshot, tsc_events), 0, sizeof(void *));
		memset(byte + offsetof(struct snapshot, ntsc_events), 0, sizeof(size_t));
	}
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
	CHECK_MEMBERS(STORE_WAITED, struct snap_waited);
	CHECK_MEMBERS(STORE_SLOW, struct snap_slow);
	CHECK_MEMBERS(STORE_SLICES, struct snap_slice);
	CHECK_MEMBERS(STORE_STREAM, struct snap_stream);
	CHECK_MEMBERS(STORE_PMCS, struct snap_pmc);
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
	size_t ruled = 0;

	(void)state;
	for (size_t i = 0; i < store_ntables; i++) {
		size_t n = store_leaves(&store_tables[i], leaf);

		for (size_t a = 0; a < n; a++) {
			ruled += leaf[a].f->rule != 0;
			assert_true(leaf[a].f->id < 64);
			for (size_t b = 0; b < a; b++)
				assert_int_not_equal(leaf[a].id, leaf[b].id);
		}
		for (size_t b = 0; b < i; b++)
			assert_int_not_equal(store_tables[i].id, store_tables[b].id);
	}
	assert_true(ruled <= STORE_RULED);
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
		{4.9996, FORM_RAW},    {999.9997, FORM_RAW},   {4.99, FORM_MILLI},
	};

	int64_t code;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(store_form_of(rows[i].v, &code), rows[i].form);
	/* Whatever it is rounded to, and on which side of a half it is. */
	for (int64_t n = -2600; n < 2600; n++) {
		for (int part = -3; part <= 3; part++) {
			double v = ((double)n + part * 0.125) / 1000;
			double again = store_decode_milli(store_milli_code(v));
			char a[32], b[32];

			if (store_form_of(v, &code) != FORM_MILLI)
				continue;
			assert_true(code == store_milli_code(v));
			for (int digits = 0; digits <= 3; digits++) {
				snprintf(a, sizeof(a), "%.*f", digits, v);
				snprintf(b, sizeof(b), "%.*f", digits, again);
				assert_string_equal(a, b);
			}
			assert_true(store_milli_code(again) == store_milli_code(v));
			assert_true(floor(again) == floor(v)); /* thresholds are whole numbers */
		}
	}
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
			     .pmu = i == 2 || i == 6,
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
		struct snapshot *s = step(i), *again = NULL, *kept;

		assert_int_equal(store_find(rd, i ? STORE_NEXT : STORE_FIRST, at.id, &at), 0);
		assert_int_equal(at.wall, timespec_ns(s->wall));
		assert_int_equal(store_read(rd, at.id, &again), 0);
		assert_int_equal(again->time, at.wall);
		kept = store_reduce(s);
		assert_non_null(kept);
		same(kept, again);
		snapshot_unref(kept);
		snapshot_unref(again);
		snapshot_unref(s);
	}
	assert_int_equal(store_find(rd, STORE_NEXT, at.id, &at), -ENOENT);
	store_close(rd);
	store_close(st);
}

/* As the model gives them: the largest first, `other` and what is unexplained last. */
static void fewer_who_had_the_cpu(void **state)
{
	struct snapshot *s = snapshot_new(), *kept;
	struct snap_vm *vm = snapshot_alloc(s, 1, sizeof(*vm));
	struct snap_vcpu *vcpu = snapshot_alloc(s, 1, sizeof(*vcpu));
	struct snap_waited *w = snapshot_alloc(s, 32, sizeof(*w));
	uint64_t ns[2] = {0, 0};

	(void)state;
	for (uint32_t i = 0; i < 32; i++)
		w[i] = (struct snap_waited){
			.vcpu = i < 16 ? -1 : 0,
			.kind = i % 16 == 14   ? WAITED_OTHER
				: i % 16 == 15 ? WAITED_UNKNOWN
					       : WAITED_TASK,
			.name = snapshot_printf(s, "task%u", i % 16),
			.ns = 1000 - i % 16,
			.share = value_known(6.25),
			.pct = value_known(1),
		};
	vm->waits.n = vcpu->waits.n = 16;
	vcpu->waits.first = 16;
	s->vms = vm;
	s->vcpus = vcpu;
	s->waited = w;
	s->nvms = s->nvcpus = 1;
	s->nwaited = 32;
	kept = store_reduce(s);
	assert_non_null(kept);
	assert_int_equal(kept->vms[0].waits.n, STORE_VM_WAITED + 2);
	assert_int_equal(kept->vcpus[0].waits.n, STORE_VCPU_WAITED + 2);
	assert_int_equal(kept->nwaited, STORE_VM_WAITED + STORE_VCPU_WAITED + 4);
	for (uint32_t i = 0; i < kept->nwaited; i++)
		ns[i >= kept->vcpus[0].waits.first] += kept->waited[i].ns;
	assert_true(ns[0] == 16 * 1000 - 120 && ns[1] == ns[0]);
	assert_string_equal(kept->waited[STORE_VM_WAITED - 1].name, "task7");
	assert_string_equal(kept->waited[STORE_VM_WAITED].name, "other");
	assert_int_equal(kept->waited[STORE_VM_WAITED].kind, WAITED_OTHER);
	assert_true(kept->waited[STORE_VM_WAITED].share.v > 7 * 6.25 - 1e-9 &&
		    kept->waited[STORE_VM_WAITED].share.v < 7 * 6.25 + 1e-9);
	assert_int_equal(kept->waited[STORE_VM_WAITED + 1].kind, WAITED_UNKNOWN);
	snapshot_unref(kept);
	snapshot_unref(s);
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

/* ---- intervals that become longer ---- */

static uint64_t exits_of(const struct snapshot *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nexits; i++)
		n += s->exits[i].now.count;
	return n;
}

static void counts_are_added_and_maxima_kept(void **state)
{
	struct snapshot *part[5], *sum = NULL;
	uint64_t count = 0, samples = 0, got = 0, vm_max = 0;
	double steal = 0, cpu = 0, most = 0;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		const struct made m = {.nvms = 3, .step = i, .pmu = i != 2};

		part[i] = made_snapshot(&m);
		assert_non_null(part[i]);
		part[i]->dt = NS_PER_S;
		count += exits_of(part[i]);
		steal = fmax(steal, part[i]->vms[0].steal_max.v);
		cpu += part[i]->vms[0].use.cpu.v / 5;
		most = fmax(most, part[i]->vms[0].ex.max.v);
		for (size_t k = 0; k < part[i]->nsymbols; k++)
			samples += part[i]->symbols[k].samples;
		for (size_t k = 0; k < part[i]->nexits; k++)
			vm_max = part[i]->exits[k].now.max_ns > vm_max
					 ? part[i]->exits[k].now.max_ns
					 : vm_max;
	}
	assert_int_equal(store_merge(part, 5, &sum), 0);
	assert_int_equal(store_check(sum), 0);
	assert_int_equal(sum->nvms, 3);
	assert_int_equal(sum->nvcpus, part[0]->nvcpus);
	assert_int_equal(sum->nexits, part[0]->nexits);
	assert_int_equal(sum->dt, 5 * NS_PER_S);
	assert_int_equal(exits_of(sum), count);
	for (size_t k = 0; k < sum->nsymbols; k++)
		got += sum->symbols[k].samples;
	assert_int_equal(got, samples);
	assert_true(fabs(sum->vms[0].steal_max.v - steal) < 1e-9);
	assert_true(fabs(sum->vms[0].use.cpu.v - cpu) < 1e-9);
	assert_true(fabs(sum->vms[0].ex.max.v - most) < 1e-9);
	got = 0;
	for (size_t k = 0; k < sum->nexits; k++) {
		const struct tally *t = &sum->exits[k].now;

		got = t->max_ns > got ? t->max_ns : got;
		assert_true(t->p50_ns <= t->p99_ns && t->p99_ns <= t->p999_ns);
		assert_true(!t->timed || fabs(t->avg_ns - (double)t->time_ns / (double)t->timed) <
						 1e-3 * t->avg_ns + 1);
	}
	assert_int_equal(got, vm_max);
	/* A counter is where the last part left it. */
	assert_int_equal(sum->npmcs, 6);
	assert_int_equal(sum->vcpus[1].pmu.first, 3);
	assert_int_equal(sum->vcpus[1].pmu.n, 3);
	assert_string_equal(sum->pmcs[5].counter, "gp2");
	assert_int_equal(sum->pmcs[5].vcpu, 1);
	assert_true(sum->pmcs[0].value.v == part[4]->pmcs[0].value.v);
	snapshot_unref(sum);
	/* One part alone stays what it is. */
	assert_int_equal(store_merge(part, 1, &sum), 0);
	assert_int_equal(exits_of(sum), exits_of(part[0]));
	assert_true(fabs(sum->vms[1].use.cpu.v - part[0]->vms[1].use.cpu.v) < 1e-9);
	snapshot_unref(sum);
	for (unsigned i = 0; i < 5; i++)
		snapshot_unref(part[i]);
}

/* VMs that come and go: the longer interval has all of them, with their own vCPUs. */
static void vms_come_and_go(void **state)
{
	struct snapshot *part[8], *sum = NULL;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		const struct made m = {.nvms = 2 + i * 5 % 7, .step = i, .seed = i == 5 ? 99 : 0};

		part[i] = made_snapshot(&m);
		part[i]->dt = NS_PER_S;
	}
	assert_int_equal(store_merge(part, 8, &sum), 0);
	assert_int_equal(store_check(sum), 0);
	assert_int_equal(sum->nvms, 8);
	for (size_t i = 0; i < sum->nvcpus; i++) {
		const struct snap_vm *vm = &sum->vms[sum->vcpus[i].vm];

		assert_true(i >= vm->vcpu_first && i < vm->vcpu_first + vm->vcpu_n);
	}
	free(written(&format_json, sum, NULL, false));
	snapshot_unref(sum);
	for (unsigned i = 0; i < 8; i++)
		snapshot_unref(part[i]);
}

/* n intervals of a second each, aged after each as the recorder does. */
static void write_many(struct store *st, unsigned from, unsigned n, unsigned nvms)
{
	struct snapshot *s[5];

	for (unsigned i = 0; i < 5; i++) {
		const struct made m = {.nvms = nvms, .step = i};

		s[i] = made_snapshot(&m);
		s[i]->dt = NS_PER_S;
	}
	for (unsigned i = 0; i < n; i++) {
		s[i % 5]->wall = (struct timespec){.tv_sec = 1790000000 + from + i};
		assert_int_equal(store_write(st, s[i % 5], 0), 0);
		assert_int_equal(store_age(st), 0);
	}
	for (unsigned i = 0; i < 5; i++)
		snapshot_unref(s[i]);
}

static void old_intervals_become_longer(void **state)
{
	const struct file *f = *state;
	struct store *st = create_tiers(f, "1s:20s,10s:1m,30s:2m", 0);
	struct store_at at = {0};
	struct store_range range;
	int64_t last = 0, lengths = 0;
	unsigned n = 0;

	write_many(st, 0, 300, 2);
	store_close(st);
	st = open_again(f);
	assert_int_equal(store_range(st, &range), 0);
	/* Whole groups stay until they are too old. */
	assert_true(range.last - range.first >= 90 * NS_PER_S);
	assert_true(range.last - range.first <= 150 * NS_PER_S);
	while (!store_find(st, STORE_NEXT, at.id, &at)) {
		struct snapshot *s;

		assert_true(at.wall > last);
		/* Nothing between them is missing, nothing is there twice. */
		assert_true(!last || at.wall - at.dt == last);
		last = at.wall;
		lengths += at.dt;
		n++;
		assert_int_equal(store_read(st, at.id, &s), 0);
		assert_int_equal(s->dt, at.dt);
		assert_true(at.dt == NS_PER_S || at.dt % (10 * NS_PER_S) == 0);
		snapshot_unref(s);
	}
	assert_int_equal(last, (1790000000 + 299) * NS_PER_S);
	assert_true(n > 24 && n < 60);
	assert_true(lengths >= 100 * NS_PER_S);
	store_close(st);
}

static void size_is_limited(void **state)
{
	const struct file *f = *state;
	struct store *st = create_tiers(f, "1s:1h,10s:24h,60s:7d", 3 << 19);
	struct store_range range;
	struct store_at at;
	struct stat sb;
	char log[128];

	write_many(st, 0, 400, 10);
	/* SQLite's own log would be 4 MiB beside it. */
	snprintf(log, sizeof(log), "%s-wal", f->path);
	assert_int_equal(stat(log, &sb), 0);
	assert_true(sb.st_size > 0 && sb.st_size < 3 << 19);
	assert_true(store_bytes(st) < (3 << 19) + (256 << 10));
	assert_int_equal(store_range(st, &range), 0);
	/* Finer ones gave way first: it still reaches back to the start. */
	assert_true(range.n < 400);
	assert_true(range.first < 1790000010 * NS_PER_S);
	assert_int_equal(store_find(st, STORE_AT, 1790000100 * NS_PER_S, &at), 0);
	assert_int_equal(at.dt, 10 * NS_PER_S);
	assert_int_equal(store_find(st, STORE_LAST, 0, &at), 0);
	assert_int_equal(at.dt, NS_PER_S);
	store_close(st);
	/* Texts of what is gone are gone. */
	st = create_tiers(f, "1s:2s", 0);
	write_many(st, 1000, 5, 1);
	store_close(st);
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
		cmocka_unit_test(fewer_who_had_the_cpu),
		cmocka_unit_test_setup_teardown(times_are_found, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(a_recording_is_gone_on_with, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(other_files_are_refused, make_dir, drop_dir),
		cmocka_unit_test(counts_are_added_and_maxima_kept),
		cmocka_unit_test(vms_come_and_go),
		cmocka_unit_test_setup_teardown(old_intervals_become_longer, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(size_is_limited, make_dir, drop_dir),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
