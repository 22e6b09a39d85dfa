// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports of real recordings: perf's pipe mode and compressed records, cut off anywhere; and the
 * order in which records are handed out. That the figures are perf's, perf itself judges:
 * tests/integration/report.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "kvm_names.h"
#include "perf_files.h"
#include "perfdata_whole.h"
#include "report.h"
#include "report_out.h"

/* libtraceevent forgets what it has read of a text that turns out to be malformed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent";
}

static const struct report_query all = {.kinds = REPORT_KINDS, .figures = true, .as_perf = true};

static uint64_t count_of(const struct report *r, enum kvm_kind kind, const char *name)
{
	char buf[128];

	for (size_t i = 0; i < r->figures[kind].n; i++) {
		report_name(r, &r->figures[kind].row[i]->k, buf, sizeof(buf));
		if (!strcmp(buf, name))
			return r->figures[kind].row[i]->count;
	}
	return 0;
}

/* What the guest counted itself, as tests/data/perf/README.md says. */
static void has_all(const struct report *r)
{
	assert_int_equal(count_of(r, KIND_IOPORT, "0x3f8:POUT"), 120);
	assert_int_equal(count_of(r, KIND_IOPORT, "0x60:PIN"), 60);
	assert_int_equal(count_of(r, KIND_IOPORT, "0xf4:POUT"), 1);
	assert_int_equal(count_of(r, KIND_MMIO, "0xd0000:R"), 30);
	assert_int_equal(count_of(r, KIND_MMIO, "0xd0000:W"), 30);
	assert_int_equal(count_of(r, KIND_MSR, "0x8b:R"), 20);
	assert_int_equal(count_of(r, KIND_MSR, "0x8b:W"), 20);
	assert_int_equal(count_of(r, KIND_USEREXIT, "KVM_EXIT_IO"), 181);
	assert_int_equal(count_of(r, KIND_USEREXIT, "KVM_EXIT_MMIO"), 60);
	assert_false(r->entries); /* this KVM fires neither kvm_entry nor kvm_exit */
	assert_int_equal(r->undecoded, 0);
}

static void read_part(const uint8_t *bytes, size_t len, struct report *r, struct perfdata_sum *sum)
{
	struct perfdata *p;

	assert_int_equal(perfdata_parse(bytes, len, &p), 0);
	assert_int_equal(report_prepare(r, &all, p, -1), 0);
	assert_int_equal(report_read(r, p), 0);
	*sum = *perfdata_sum(p);
	perfdata_free(p);
}

static void whole(const char *name, uint64_t rounds)
{
	struct perfdata_sum sum;
	struct report r;
	size_t len;
	uint8_t *bytes = unpack(name, &len);

	read_part(bytes, len, &r, &sum);
	has_all(&r);
	assert_int_equal(sum.samples, 552);
	assert_int_equal(sum.broken + sum.lost, 0);
	assert_int_equal(sum.rounds, rounds);
	assert_false(sum.cut);
	report_free(&r);
	free(bytes);
}

static void pipe_mode(void **state)
{
	(void)state;
	whole("native-pipe-6.18", 1);
}

static void compressed(void **state)
{
	(void)state;
	whole("native-zstd-6.18", 2);
}

/* In memory of just that size, so that ASan sees a byte too far. */
static void cut(const char *name)
{
	uint64_t last = 0, reached = 0;
	size_t len, n = 0;
	uint8_t *bytes = unpack(name, &len);

	for (size_t at = 0; at < len; at += at < 3000 ? 7 : 1511) {
		uint8_t *part = malloc(at ? at : 1);
		struct perfdata *p;
		struct report r;

		memcpy(part, bytes, at);
		if (!perfdata_parse(part, at, &p)) {
			assert_int_equal(report_prepare(&r, &all, p, -1), 0);
			assert_in_range(report_read(&r, p) + 1000, 900, 1000);
			assert_true(perfdata_sum(p)->samples >= last);
			last = perfdata_sum(p)->samples;
			reached += r.events;
			report_free(&r);
			perfdata_free(p);
			n++;
		}
		free(part);
	}
	assert_true(n > 20 && last > 300);
	(void)reached;
	free(bytes);
}

static void cut_anywhere(void **state)
{
	(void)state;
	cut("native-pipe-6.18");
	cut("native-zstd-6.18");
	cut("kvm-6.1-svm");
}

/* One byte after the other is another one: read or refused, nothing else. */
static void damaged(void **state)
{
	size_t len;
	uint8_t *bytes = unpack("native-zstd-6.18", &len);

	(void)state;
	for (size_t at = 0; at < len; at += 211) {
		struct perfdata *p;
		struct report r;

		bytes[at] ^= 0x5a;
		if (!perfdata_parse(bytes, len, &p)) {
			(void)report_prepare(&r, &all, p, -1);
			(void)report_read(&r, p);
			report_free(&r);
			perfdata_free(p);
		}
		bytes[at] ^= 0x5a;
	}
	free(bytes);
}

/* The same through a descriptor, in pieces as a pipe hands them over. */
static void through_a_pipe(void **state)
{
	size_t len, at = 0;
	uint8_t *bytes = unpack("native-pipe-6.18", &len);
	struct perfdata *p;
	struct report r;
	int fd[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	child = fork();
	if (!child) {
		close(fd[0]);
		while (at < len) {
			size_t n = len - at < 4099 ? len - at : 4099;

			if (write(fd[1], bytes + at, n) != (ssize_t)n)
				_exit(1);
			at += n;
		}
		_exit(0);
	}
	close(fd[1]);
	assert_int_equal(perfdata_open_fd(fd[0], &p), 0);
	assert_int_equal(report_prepare(&r, &all, p, -1), 0);
	assert_int_equal(report_read(&r, p), 0);
	has_all(&r);
	report_free(&r);
	perfdata_free(p);
	close(fd[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	free(bytes);
}

/* ---- order ---- */

struct made {
	uint64_t word[256];
	size_t n;
};

static void event_attr(struct made *m)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = 128,
				    .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
	struct perf_event_header h = {64, 0, 8 + 128};

	memcpy(m->word, "PERFILE2", 8);
	m->word[1] = 16;
	memcpy(&m->word[2], &h, sizeof(h));
	memcpy(&m->word[3], &a, sizeof(a) < 128 ? sizeof(a) : 128);
	m->n = 2 + 17;
}

static void sample_at(struct made *m, uint64_t time)
{
	struct perf_event_header h = {PERF_RECORD_SAMPLE, 0, 24};

	memcpy(&m->word[m->n], &h, sizeof(h));
	m->word[m->n + 1] = time;
	m->word[m->n + 2] = 0;
	m->n += 3;
}

static void round_ends(struct made *m)
{
	struct perf_event_header h = {68, 0, 8};

	memcpy(&m->word[m->n++], &h, sizeof(h));
}

static int note_time(void *ctx, const struct perfdata_record *r)
{
	char *text = ctx;
	size_t n = strlen(text);

	snprintf(text + n, 200 - n, "%lld ", (long long)r->time);
	return 0;
}

/*
 * perf's own rule: at a mark goes what is not younger than the newest before the mark before; what
 * comes too late follows; what has no time goes at once.
 */
static void rounds(void **state)
{
	struct made m = {0};
	struct perfdata *p;
	char text[200] = "";

	(void)state;
	event_attr(&m);
	sample_at(&m, 100);
	sample_at(&m, 200);
	round_ends(&m);
	sample_at(&m, 150);
	sample_at(&m, 300);
	sample_at(&m, 0);
	round_ends(&m); /* lets 100 to 200 go */
	sample_at(&m, 50);
	sample_at(&m, 250);
	round_ends(&m); /* and now up to 300 */
	sample_at(&m, 400);
	sample_at(&m, 350);
	assert_int_equal(perfdata_parse(m.word, m.n * 8, &p), 0);
	assert_int_equal(perfdata_read(p, note_time, text), 0);
	assert_string_equal(text, "0 100 150 200 50 250 300 350 400 ");
	assert_int_equal(perfdata_sum(p)->unordered, 1);
	assert_int_equal(perfdata_sum(p)->rounds, 3);
	perfdata_free(p);
}

/* Many CPUs' runs at once. */
static void many_runs(void **state)
{
	struct made m = {0};
	struct perfdata *p;
	char text[200] = "", want[200] = "";

	(void)state;
	event_attr(&m);
	for (uint64_t cpu = 0; cpu < 9; cpu++)
		for (uint64_t i = 0; i < 4; i++)
			sample_at(&m, 1 + i * 9 + (cpu * 4) % 9);
	for (size_t i = 1; i <= 36; i++)
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%zu ", i);
	assert_int_equal(perfdata_parse(m.word, m.n * 8, &p), 0);
	assert_int_equal(perfdata_read(p, note_time, text), 0);
	assert_string_equal(text, want);
	perfdata_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipe_mode),	  cmocka_unit_test(compressed),
		cmocka_unit_test(cut_anywhere),	  cmocka_unit_test(damaged),
		cmocka_unit_test(through_a_pipe), cmocka_unit_test(rounds),
		cmocka_unit_test(many_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
