// SPDX-License-Identifier: GPL-2.0-only
/* live: yes */
/*
 * Real guests, measured, recorded and read again: the figures of both are the same, byte for byte
 * (src/store*.c). The guests are the demo's; where there is no /dev/kvm the host alone is recorded.
 */
#include <poll.h>
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

#include "demo.h"
#include "engine.h"
#include "format.h"
#include "store.h"
#include "store_reduce.h"
#include "written.h"

#define INTERVALS 6

static void same(const struct format *f, const char *table, const struct snapshot *a,
		 const struct snapshot *b)
{
	for (int total = 0; total < 2; total++) {
		char *one = written(f, a, table, total), *two = written(f, b, table, total);

		assert_string_equal(one, two);
		free(one);
		free(two);
	}
}

/* INTERVALS snapshots of this host; the caller's references. */
static void measure(struct snapshot **out)
{
	const struct engine_config cfg = {
		.delay_s = 0.3,
		.collector = {.delay_s = 0.3, .sample_hz = 997},
	};
	const struct demand d = {
		.kinds = KIND_ALL,
		.exits_all_vcpus = true,
		.samples = true,
		.samples_all = true,
		.threads = true,
		.tasks = true,
		.pins = true,
	};
	struct engine *e = NULL;
	struct reader *r;
	char err[400] = "";
	uint64_t skipped;
	unsigned n = 0;

	if (engine_new(&cfg, &e, err, sizeof(err)))
		fail_msg("%s", err);
	r = engine_reader(e, INTERVALS);
	assert_non_null(r);
	reader_demand(r, &d);
	assert_int_equal(engine_start(e), 0);
	while (n < INTERVALS) {
		struct pollfd p = {.fd = reader_fd(r), .events = POLLIN};
		struct snapshot *s;

		assert_true(poll(&p, 1, 30000) > 0);
		while (n < INTERVALS && (s = reader_take(r, &skipped)) != NULL) {
			if (s->dt)
				out[n++] = s;
			else
				snapshot_unref(s);
		}
	}
	engine_free(e);
}

static void recorded_and_read_is_the_same(void **state)
{
	char dir[] = "/tmp/test-store-live.XXXXXX", path[96], side[128], err[400] = "";
	const struct store_keep keep = {0};
	struct snapshot *s[INTERVALS], *again, *kept;
	struct demo *demo = NULL;
	struct store_at at = {0};
	struct store *st = NULL;

	(void)state;
	if (access("/dev/kvm", R_OK | W_OK) == 0 && demo_start(&demo, err, sizeof(err)))
		demo = NULL;
	measure(s);
	demo_stop(demo);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/r.db", dir);
	if (store_create(path, &keep, &st, err, sizeof(err)))
		fail_msg("%s", err);
	for (int i = 0; i < INTERVALS; i++)
		assert_int_equal(store_write(st, s[i], 0), 0);
	store_close(st);
	if (store_open(path, &st, err, sizeof(err)))
		fail_msg("%s", err);
	for (int i = 0; i < INTERVALS; i++) {
		assert_int_equal(store_find(st, STORE_NEXT, at.id, &at), 0);
		assert_int_equal(store_read(st, at.id, &again), 0);
		assert_int_equal(again->nvms, s[i]->nvms);
		kept = store_reduce(s[i]);
		assert_non_null(kept);
		same(&format_json, NULL, kept, again);
		for (size_t t = 0; t < batch_ntables; t++) {
			const char *name = batch_tables[t].name;
			bool all = !strstr(name, "symbol") && !strstr(name, "waited") &&
				   strcmp(name, "vcpu-exit") != 0;

			same(&format_json, name, all ? s[i] : kept, again);
			same(&format_csv, name, all ? s[i] : kept, again);
			same(&format_text, name, all ? s[i] : kept, again);
		}
		snapshot_unref(kept);
		snapshot_unref(again);
		snapshot_unref(s[i]);
	}
	store_close(st);
	snprintf(side, sizeof(side), "%s-wal", path);
	unlink(side);
	snprintf(side, sizeof(side), "%s-shm", path);
	unlink(side);
	unlink(path);
	rmdir(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_and_read_is_the_same)};

	/* The demo's guests are this program, started again. */
	if (argc > 1 && strcmp(argv[1], DEMO_GUEST_COMMAND) == 0)
		return demo_guest_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
