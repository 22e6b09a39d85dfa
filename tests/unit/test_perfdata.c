// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf.data: real recordings, made ones, broken ones; and that kvmtop's own path from rings to
 * tables makes of a recording what `perf kvm stat report` makes of it, to the last digit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "perf_files.h"
#include "perfdata_priv.h"
#include "replay.h"

#define DATA "tests/data/perf/"

/* ---- real ones ---- */

/* perf's row without its brackets, with single blanks; false: no row. */
static bool perf_row(const char *line, char *out, size_t size)
{
	size_t n = 0;
	bool gap = false;

	if (!strstr(line, "us ( +-"))
		return false;
	for (line += strspn(line, " "); *line && *line != ')' && n + 2 < size; line++) {
		if (*line == ' ' || *line == '(') {
			gap = true;
			continue;
		}
		if (gap && !(n >= 2 && out[n - 1] == '-' && out[n - 2] == '+'))
			out[n++] = ' ';
		gap = false;
		out[n++] = *line;
	}
	out[n] = '\0';
	return true;
}

static bool has_row(const struct snapshot *s, enum kvm_kind kind, const char *wanted)
{
	char row[256];

	for (size_t i = 0; i < s->nexits; i++)
		if (s->exits[i].kind == kind && replay_row(s, &s->exits[i], row, sizeof(row)) &&
		    !strcmp(row, wanted))
			return true;
	return false;
}

static size_t rows_of_kind(const struct snapshot *s, enum kvm_kind kind)
{
	char row[256];
	size_t n = 0;

	for (size_t i = 0; i < s->nexits; i++)
		n += s->exits[i].kind == kind && replay_row(s, &s->exits[i], row, sizeof(row));
	return n;
}

static void like_report(const struct snapshot *s, enum kvm_kind kind, const char *event)
{
	char path[96], line[256], row[256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), DATA "kvm-6.1-svm.%s.txt", event);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!perf_row(line, row, sizeof(row)))
			continue;
		if (!has_row(s, kind, row))
			fail_msg("perf says of %s: %s", event, row);
		n++;
	}
	fclose(f);
	assert_true(n >= 2);
	assert_int_equal(n, rows_of_kind(s, kind));
}

static void like_perf_kvm_stat_report(void **state)
{
	size_t len;
	uint8_t *bytes = unpack("kvm-6.1-svm", &len);
	struct perfdata *p;
	struct replay r;
	struct snapshot *s;

	(void)state;
	assert_int_equal(perfdata_parse(bytes, len, &p), 0);
	s = replay_all(&r, p, true);
	assert_non_null(s);
	assert_int_equal(r.samples, 11296);
	assert_int_equal(r.undecoded + r.broken + r.lost, 0);
	like_report(s, KIND_VMEXIT, "vmexit");
	like_report(s, KIND_MMIO, "mmio");
	like_report(s, KIND_IOPORT, "ioport");
	like_report(s, KIND_MSR, "msr");
	snapshot_unref(s);
	replay_free(&r);
	perfdata_free(p);
	free(bytes);
}

/* ---- what a recording says ---- */

struct seen {
	size_t n, samples, mode[8], other;
	int64_t last;
	bool in_order;
	uint64_t kernel_ip, user_ip; /* of guests */
	char text[4096];
	size_t formats;
};

static int see(void *ctx, const struct perfdata_record *r)
{
	struct seen *s = ctx;

	s->n++;
	s->in_order &= r->time >= s->last;
	s->last = r->time;
	if (r->type != PERF_RECORD_SAMPLE) {
		s->other++;
		return 0;
	}
	s->samples++;
	s->mode[r->misc & PERF_RECORD_MISC_CPUMODE_MASK]++;
	s->kernel_ip += r->tid == 145 && r->ip >= 0xffffffff80010000 && r->ip < 0xffffffff80014000;
	s->user_ip += r->ip >= 0x414000 && r->ip < 0x416000;
	assert_true(r->cpu == 0 || r->cpu == 1);
	return 0;
}

static int see_format(void *ctx, const char *system, const char *text, size_t len)
{
	struct seen *s = ctx;
	size_t at = strlen(s->text);

	s->formats++;
	snprintf(s->text + at, sizeof(s->text) - at, "%s:%.*s\n", system,
		 (int)(memchr(text, '\n', len) ? (const char *)memchr(text, '\n', len) - text : 0),
		 text);
	return 0;
}

static void samples_in_guest_mode(void **state)
{
	struct seen s = {.in_order = true};
	struct perfdata *p;
	size_t len;
	uint8_t *bytes = unpack("guest-samples-6.1-svm", &len);

	(void)state;
	assert_int_equal(perfdata_parse(bytes, len, &p), 0);
	assert_int_equal(perfdata_events(p), 2);
	assert_int_equal(perfdata_attr(p, 0)->type, PERF_TYPE_SOFTWARE);
	assert_int_equal(perfdata_attr(p, 0)->sample_freq, 499);
	assert_null(perfdata_attr(p, 2));
	assert_int_equal(perfdata_read(p, see, &s), 0);
	assert_true(s.in_order);
	/* as perf script -D counts them */
	assert_int_equal(s.samples, 2466);
	assert_int_equal(s.other, 65 + 64 + 15 + 76 + 1);
	assert_int_equal(s.mode[PERF_RECORD_MISC_KERNEL], 568);
	assert_int_equal(s.mode[PERF_RECORD_MISC_USER], 94);
	assert_int_equal(s.mode[PERF_RECORD_MISC_GUEST_KERNEL], 677);
	assert_int_equal(s.mode[PERF_RECORD_MISC_GUEST_USER], 1127);
	assert_true(s.user_ip > 700 && s.user_ip <= 1804);
	assert_int_equal(perfdata_sum(p)->broken, 0);
	assert_int_equal(perfdata_formats(p, see_format, &s), 0);
	assert_int_equal(s.formats, 0);
	perfdata_free(p);
	free(bytes);
}

static void formats_come_along(void **state)
{
	struct seen s = {.in_order = true};
	struct perfdata *p;
	size_t len;
	uint8_t *bytes = unpack("kvm-6.1-svm", &len);

	(void)state;
	assert_int_equal(perfdata_parse(bytes, len, &p), 0);
	assert_int_equal(perfdata_formats(p, see_format, &s), 0);
	assert_int_equal(s.formats, 5);
	assert_non_null(strstr(s.text, "kvm:name: kvm_exit\n"));
	assert_non_null(strstr(s.text, "kvm:name: kvm_msr\n"));
	perfdata_free(p);
	free(bytes);
}

/* As a perf that was killed leaves it: no size of the data, no features. */
static void cut_off(void **state)
{
	struct seen s = {.in_order = true}, all = {.in_order = true};
	struct perfdata *p;
	size_t len;
	uint8_t *bytes = unpack("kvm-6.1-svm", &len);
	uint64_t offset;

	(void)state;
	assert_int_equal(perfdata_parse(bytes, len, &p), 0);
	assert_int_equal(perfdata_read(p, see, &all), 0);
	perfdata_free(p);
	memcpy(&offset, bytes + 40, sizeof(offset)); /* of the data */
	memset(bytes + 48, 0, 8);
	len = offset + 500000;
	assert_int_equal(perfdata_parse(bytes, len, &p), 0);
	assert_int_equal(perfdata_read(p, see, &s), 0);
	assert_true(s.in_order && s.samples > 3000 && s.samples < all.samples);
	assert_int_equal(perfdata_sum(p)->broken,
			 1); /* the record in the middle of which it ends */
	assert_int_equal(perfdata_formats(p, see_format, &s), 0);
	assert_int_equal(s.formats, 0);
	perfdata_free(p);
	free(bytes);
}

static int count_it(void *ctx, const struct perfdata_record *r)
{
	(void)r;
	++*(size_t *)ctx;
	return 0;
}

/* Cut anywhere, in memory of just that size: refused or read, never read beyond. */
static void cut_anywhere(void **state)
{
	size_t len, n = 0, read = 0;
	uint8_t *bytes = unpack("guest-samples-6.1-svm", &len);

	(void)state;
	for (size_t cut = 0; cut < len; cut += cut < 2000 ? 13 : 4999) {
		uint8_t *part = malloc(cut ? cut : 1);
		struct seen s = {.in_order = true};
		struct perfdata *p;

		memcpy(part, bytes, cut);
		if (!perfdata_parse(part, cut, &p)) {
			assert_int_equal(perfdata_read(p, count_it, &n), 0);
			assert_int_equal(perfdata_formats(p, see_format, &s), 0);
			perfdata_free(p);
			read++;
		}
		free(part);
	}
	assert_true(read > 20 && n > 1000);
	free(bytes);
}

/* ---- made ones ---- */

#define MADE_TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

struct made {
	uint64_t word[512]; /* aligned, as everything in such a file is */
	size_t n; /* words */
};

#define MADE_ATTR 13 /* words of header before the attribute */
#define MADE_DATA (MADE_ATTR + 16 + 2)

static struct made made_file(uint64_t sample_type, uint64_t read_format)
{
	struct made m = {.n = MADE_DATA};
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = 128,
				    .sample_type = sample_type,
				    .read_format = read_format,
				    .sample_id_all = 1};

	memcpy(m.word, "PERFILE2", 8);
	m.word[1] = MADE_ATTR * 8; /* size of the header */
	m.word[2] = 128 + 16; /* of an attribute and its ids' place */
	m.word[3] = MADE_ATTR * 8;
	m.word[4] = 128 + 16;
	m.word[5] = MADE_DATA * 8;
	memcpy(m.word + MADE_ATTR, &a, sizeof(a) < 128 ? sizeof(a) : 128);
	return m;
}

static void made_record(struct made *m, uint32_t type, const uint64_t *body, size_t n)
{
	struct perf_event_header h = {type, PERF_RECORD_MISC_KERNEL, (uint16_t)(8 + 8 * n)};

	memcpy(&m->word[m->n++], &h, sizeof(h));
	memcpy(m->word + m->n, body, n * 8);
	m->n += n;
	m->word[6] = (m->n - MADE_DATA) * 8;
}

#define RECORD(m, type, ...)                                                                       \
	made_record(m, type, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)
#define TID(pid, tid) ((uint64_t)(tid) << 32 | (pid))

struct list {
	struct perfdata_record r[16];
	uint8_t raw[16][8];
	size_t n;
};

static int note_it(void *ctx, const struct perfdata_record *r)
{
	struct list *l = ctx;

	assert_true(l->n < 16);
	l->r[l->n] = *r;
	if (r->raw && r->raw_len <= sizeof(l->raw[0])) { /* it is gone after the call */
		memcpy(l->raw[l->n], r->raw, r->raw_len);
		l->r[l->n].raw = NULL;
	}
	l->n++;
	return 0;
}

static struct list made_read(const struct made *m, int rc, uint64_t broken)
{
	struct list l = {0};
	struct perfdata *p;

	assert_int_equal(perfdata_parse(m->word, m->n * 8, &p), 0);
	assert_int_equal(perfdata_read(p, note_it, &l), rc);
	if (!rc)
		assert_int_equal(perfdata_sum(p)->broken, broken);
	perfdata_free(p);
	return l;
}

static void in_time_order(void **state)
{
	struct made m = made_file(MADE_TYPE, 0);
	struct list l;

	(void)state;
	RECORD(&m, PERF_RECORD_SAMPLE, 0x1000, TID(7, 8), 300, 1);
	RECORD(&m, 68 /* a round is finished: perf's own */, 0);
	RECORD(&m, PERF_RECORD_SAMPLE, 0x2000, TID(7, 9), 100, 0);
	RECORD(&m, PERF_RECORD_LOST, 5, 42, TID(7, 9), 200, 0);
	RECORD(&m, PERF_RECORD_SAMPLE, 0x3000, TID(7, 8), 300, 0);
	l = made_read(&m, 0, 0);
	assert_int_equal(l.n, 4);
	assert_int_equal(l.r[0].ip, 0x2000);
	assert_int_equal(l.r[0].tid, 9);
	assert_int_equal(l.r[1].type, PERF_RECORD_LOST);
	assert_int_equal(l.r[1].time, 200);
	assert_int_equal(l.r[2].ip, 0x1000); /* of one time: as they stand in the file */
	assert_int_equal(l.r[2].cpu, 1);
	assert_int_equal(l.r[3].ip, 0x3000);
}

static void what_stands_before_raw_data(void **state)
{
	struct made m =
		made_file(MADE_TYPE | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
				  PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
			  PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED);
	struct list l;
	uint64_t raw = UINT64_C(0xaabbccdd) << 32 | 4;

	(void)state;
	RECORD(&m, PERF_RECORD_SAMPLE, 1, TID(7, 8), 10, 0xadd, 1, 1 /* period */, 2, 99, 1, 2, 3,
	       4, /* read */
	       3, 11, 12, 13 /* callchain */, raw);
	l = made_read(&m, 0, 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.r[0].raw_len, 4);
	assert_memory_equal(l.raw[0], "\xdd\xcc\xbb\xaa", 4);
}

static void lengths_that_lie(void **state)
{
	struct made m = made_file(MADE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW, 0);
	struct list l;

	(void)state;
	RECORD(&m, PERF_RECORD_SAMPLE, 1, TID(7, 8), 10, 1, UINT64_MAX / 8 + 2, 0);
	RECORD(&m, PERF_RECORD_SAMPLE, 2, TID(7, 8), 20, 1, 0, UINT32_MAX);
	RECORD(&m, PERF_RECORD_SAMPLE, 3, TID(7, 8));
	RECORD(&m, PERF_RECORD_SAMPLE, 4, TID(7, 8), 40, 1, 0, 0);
	l = made_read(&m, 0, 3);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.r[0].ip, 4);
	m.word[MADE_DATA] = PERF_RECORD_SAMPLE | UINT64_C(4)
							 << 48; /* nothing can be found behind it */
	assert_int_equal(made_read(&m, 0, 1).n, 0);
}

static void data_that_no_size_tells(void **state)
{
	struct made m = made_file(MADE_TYPE, 0);
	struct list l;

	(void)state;
	RECORD(&m, 71 /* AUXTRACE */, 16, 0, 0, 0, 0);
	RECORD(&m, PERF_RECORD_SAMPLE, 0xbad); /* 16 bytes that are no record */
	RECORD(&m, PERF_RECORD_SAMPLE, 1, TID(7, 8), 10, 1);
	l = made_read(&m, 0, 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.r[0].ip, 1);
}

static int parse_bytes(const void *bytes, size_t len)
{
	struct perfdata *p = NULL;
	int rc = perfdata_parse(bytes, len, &p);

	perfdata_free(p);
	return rc;
}

static void refused(void **state)
{
	struct made m = made_file(MADE_TYPE, 0);

	(void)state;
	assert_int_equal(parse_bytes(m.word, m.n * 8), 0);
	assert_int_equal(parse_bytes("", 0), -EBADMSG);
	assert_int_equal(parse_bytes("# some text, not a recording of perf\n", 37), -EBADMSG);
	assert_int_equal(parse_bytes("2ELIFREP\0\0\0\0\0\0\0\x68", 16), -EBADMSG);
	m.word[2] = 0;
	assert_int_equal(parse_bytes(m.word, m.n * 8), -EBADMSG);
	m.word[2] = 128 + 16;
	m.word[3] = UINT64_MAX - 8;
	assert_int_equal(parse_bytes(m.word, m.n * 8), -EBADMSG);
	m = made_file(MADE_TYPE, 0);
	RECORD(&m, 81 /* compressed */, 1, 2);
	(void)made_read(&m, -EBADMSG, 0);
}

/* As the other byte order has an attribute: the first flag is the highest bit of the first byte. */
static void attribute_of_other_order(void **state)
{
	static const uint8_t bytes[PERF_ATTR_SIZE_VER0 + 4] = {
		[3] = PERF_TYPE_TRACEPOINT,
		[7] = PERF_ATTR_SIZE_VER0,
		[14] = 0x05,
		[15] = 0x98, /* config */
		[22] = 0x0f,
		[23] = 0xa0, /* sample_freq */
		[29] = 1,
		[30] = 0x05,
		[31] = 0x87, /* sample_type */
		[40] = 0x80, /* disabled */
		[41] = 0x21, /* freq; of precise_ip the high bit, the low one is 0 */
		[42] = 0x20, /* sample_id_all */
		[51] = 7, /* wakeup_events */
		[63] = 9, /* config1 */
		[64] = 0xff, /* of a member that is not whole */
	};
	const struct perfdata p = {.swapped = true};
	struct perf_event_attr a = perfdata_attr_of(&p, bytes, PERF_ATTR_SIZE_VER0);

	(void)state;
	assert_int_equal(a.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(a.size, PERF_ATTR_SIZE_VER0);
	assert_int_equal(a.config, 0x598);
	assert_int_equal(a.sample_freq, 4000);
	assert_int_equal(a.sample_type, 0x10587);
	assert_true(a.disabled && a.freq && a.sample_id_all);
	assert_false(a.inherit || a.mmap || a.exclude_host || a.exclude_guest);
	assert_int_equal(a.precise_ip, 2);
	assert_int_equal(a.wakeup_events, 7);
	assert_int_equal(a.config1, 9);
	assert_int_equal(a.config2, 0);
}

static void files(void **state)
{
	struct perfdata *p;

	(void)state;
	assert_int_equal(perfdata_open(AT_FDCWD, "tests/data/perf/none", &p), -ENOENT);
	assert_int_equal(perfdata_open(AT_FDCWD, "tests/data/perf", &p), -EISDIR);
	assert_int_equal(perfdata_open(AT_FDCWD, "/dev/null", &p), -EBADMSG);
	assert_int_equal(perfdata_open(AT_FDCWD, "tests/data/perf/README.md", &p), -EBADMSG);
	perfdata_free(NULL);
}

/* ---- who else has the file ---- */

struct visit {
	const char *path;
	uint64_t samples, at; /* when to come */
	int fd; /* what open(2) for writing gave then */
	int err;
};

static int visit_take(void *ctx, const struct perfdata_record *r, void *slot)
{
	struct visit *v = ctx;

	(void)slot;
	if (r->type != PERF_RECORD_SAMPLE || ++v->samples != v->at)
		return 0;
	v->fd = open(v->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	v->err = v->fd < 0 ? errno : 0;
	return 0;
}

static int visit_give(void *ctx, int64_t time, const void *slot)
{
	(void)ctx;
	(void)time;
	(void)slot;
	return 0;
}

/* A recording through a pipe, its records again and again: several parts are mapped. */
static unsigned write_long(const char *path)
{
	size_t len, n = 0;
	uint8_t *bytes = unpack("native-pipe-6.18", &len);
	FILE *f = fopen(path, "w");
	unsigned times = 0;

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, 16, f), 16);
	for (; n < 7u << 20; n += len - 16, times++)
		assert_int_equal(fwrite(bytes + 16, 1, len - 16, f), len - 16);
	assert_int_equal(fclose(f), 0);
	free(bytes);
	return times;
}

static uint64_t visited(struct visit *v)
{
	struct perfdata_reader reader = {0, false, visit_take, visit_give, v};
	struct perfdata *p;

	v->samples = 0;
	v->fd = -1;
	assert_int_equal(perfdata_open(AT_FDCWD, v->path, &p), 0);
	assert_int_equal(perfdata_run(p, &reader), 0);
	assert_false(perfdata_sum(p)->cut);
	perfdata_free(p);
	if (v->fd >= 0)
		close(v->fd);
	return v->samples;
}

/* Who wants to write has to wait for a part at most, and all is read whoever comes. */
static void writers_come(void **state)
{
	char path[] = "/tmp/test-perfdata.XXXXXX";
	int fd = mkstemp(path);
	struct visit v = {.path = path};
	uint64_t all;
	unsigned times;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	times = write_long(path);
	all = visited(&v);
	assert_true(all > 1000 && all % times == 0);
	for (v.at = 1; v.at < all; v.at += all / 5) {
		assert_int_equal(visited(&v), all);
		assert_true(v.fd >= 0 || v.err == EWOULDBLOCK);
	}
	/* Open for writing from the beginning: nothing can be mapped. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	v.at = 0;
	assert_int_equal(visited(&v), all);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_perf_kvm_stat_report),
		cmocka_unit_test(samples_in_guest_mode),
		cmocka_unit_test(formats_come_along),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(in_time_order),
		cmocka_unit_test(what_stands_before_raw_data),
		cmocka_unit_test(lengths_that_lie),
		cmocka_unit_test(data_that_no_size_tells),
		cmocka_unit_test(refused),
		cmocka_unit_test(attribute_of_other_order),
		cmocka_unit_test(files),
		cmocka_unit_test(writers_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
