// SPDX-License-Identifier: GPL-2.0-only
/*
 * 500 events of a real SVM host, put into one ring a CPU as the kernel would: merged,
 * decoded and named, they must read as `perf script` reads the same recording.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kvm_format.h"
#include "kvm_names.h"
#include "made_tree.h"
#include "ring.h"

enum { PAGE = 4096, SIZE = 1 << 16, CPUS = 2 };

struct head {
	uint16_t cpu, len;
	uint32_t zero;
	int64_t time;
};

struct replay {
	struct kvm_format *format;
	struct kvm_names *names;
	FILE *expected;
	unsigned n;
};

static void load_formats(struct replay *r)
{
	for (unsigned i = 0; i < 9; i++) {
		char path[128], *text;
		size_t len;

		snprintf(path, sizeof(path), "tests/data/format/6.1-svm/%s", kvm_events[i].event);
		text = file_text(path, &len);
		assert_true(kvm_format_load(r->format, i, text, len) > 0);
		if (kvm_events[i].type == EV_EXIT)
			assert_int_equal(kvm_names_load(r->names, "kvm_exit", text, len), 0);
		free(text);
	}
}

static void put(struct ring *r, const struct head *h, const uint8_t *raw)
{
	uint8_t rec[256] = {0};
	size_t size = (28u + h->len + 7) & ~7ul;
	struct perf_event_header ph = {PERF_RECORD_SAMPLE, 0, (uint16_t)size};
	uint32_t len = (uint32_t)size - 28; /* the kernel pads raw data, and says so */

	memcpy(rec, &ph, sizeof(ph));
	memcpy(rec + 16, &h->time, sizeof(h->time));
	memcpy(rec + 24, &len, sizeof(len));
	memcpy(rec + 28, raw, h->len);
	assert_true(r->page->data_head + size <= SIZE);
	memcpy((uint8_t *)r->page + PAGE + r->page->data_head, rec, size);
	r->page->data_head += size;
}

static void describe(const struct replay *r, const struct sample *s, char *out, size_t size)
{
	static const char *const mmio[] = {"?", "read", "write", "unsatisfied-read"};
	char key[64];

	switch (s->type) {
	case EV_ENTRY:
		snprintf(out, size, "%d kvm_entry vcpu %d", s->tid, s->vcpu_id);
		break;
	case EV_EXIT:
		kvm_names_key(r->names, KIND_VMEXIT, s->isa, s->key, s->dir, key, sizeof(key));
		snprintf(out, size, "%d kvm_exit vcpu %d %s rip 0x%llx", s->tid, s->vcpu_id, key,
			 (unsigned long long)s->aux);
		break;
	case EV_MMIO:
		snprintf(out, size, "%d kvm_mmio %s 0x%llx", s->tid, mmio[s->dir],
			 (unsigned long long)s->key);
		break;
	case EV_PIO:
		kvm_names_key(r->names, KIND_IOPORT, s->isa, s->key, s->dir, key, sizeof(key));
		snprintf(out, size, "%d kvm_pio %s", s->tid, key);
		break;
	case EV_MSR:
		kvm_names_key(r->names, KIND_MSR, s->isa, s->key, s->dir, key, sizeof(key));
		snprintf(out, size, "%d kvm_msr %s", s->tid, key);
		break;
	default:
		snprintf(out, size, "type %d", s->type);
	}
}

static void on_batch(void *ctx, const struct ring_record *rec, size_t n)
{
	struct replay *r = ctx;

	for (size_t i = 0; i < n; i++, r->n++) {
		char got[128], want[128];
		const uint8_t *raw = NULL;
		struct sample s;
		uint32_t len = 0;

		assert_true(record_raw(rec[i].h, &raw, &len));
		assert_true(kvm_format_decode(r->format, raw, len, &s));
		describe(r, &s, got, sizeof(got));
		assert_non_null(fgets(want, sizeof(want), r->expected));
		want[strcspn(want, "\n")] = '\0';
		assert_string_equal(got, want);
	}
}

static void reads_as_perf_script_does(void **state)
{
	struct replay r = {.format = kvm_format_new(), .names = kvm_names_new()};
	struct ring_merge *m = ring_merge_new();
	struct ring ring[CPUS], *rings[CPUS];
	size_t len, at = 0;
	char *bin;

	(void)state;
	load_formats(&r);
	for (unsigned c = 0; c < CPUS; c++) {
		uint8_t *mem = aligned_alloc(PAGE, PAGE + SIZE);

		memset(mem, 0, PAGE);
		ring_init(&ring[c], mem, PAGE, SIZE, (uint16_t)c, 0);
		rings[c] = &ring[c];
	}
	bin = file_text("tests/data/events/kvm-6.1-svm.bin", &len);
	while (at < len) {
		struct head h;

		memcpy(&h, bin + at, sizeof(h));
		assert_true(h.cpu < CPUS && at + sizeof(h) + h.len <= len);
		put(&ring[h.cpu], &h, (const uint8_t *)bin + at + sizeof(h));
		at += sizeof(h) + h.len;
	}
	r.expected = fopen("tests/data/events/kvm-6.1-svm.txt", "r");
	assert_non_null(r.expected);
	assert_int_equal(ring_merge_drain(m, rings, CPUS, INT64_MAX, on_batch, &r), 0);
	assert_int_equal(r.n, 500);
	fclose(r.expected);
	free(bin);
	for (int c = 0; c < CPUS; c++)
		free(ring[c].page);
	ring_merge_free(m);
	kvm_names_free(r.names);
	kvm_format_free(r.format);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_as_perf_script_does),
	};

	return cmocka_run_group_tests_name("events_recording", tests, NULL, NULL);
}
