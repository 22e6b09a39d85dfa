// SPDX-License-Identifier: GPL-2.0-only
/* The collector `tsc` over a made debugfs, and what of it is in a snapshot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "field.h"
#include "made_tree.h"
#include "model_fixture.h"
#include "sysroot.h"
#include "collector_tsc.h"

#define DIR_TEXT "sys/kernel/debug/kvm/4711-9/vcpu"

struct test {
	struct fixture f;
	char dir[64];
	struct sysroot *root;
	struct collector_config config;
	struct collector_env env;
	struct sink sink; /* as the model's, with a TSC of 2 GHz */
	void *tsc;
};

static void put(const struct test *t, const char *path, const char *text)
{
	tree_put(t->dir, path, text);
}

static void take(void *ctx, const struct tsc_reading *r)
{
	struct test *t = ctx;
	struct tsc_reading copy = *r;

	copy.hz = 2e9;
	t->f.sink->tsc(t->f.sink->ctx, &copy);
}

static struct test *made_new(void)
{
	struct test *t = calloc(1, sizeof(*t));

	t->f = fixture_new(8, 64);
	snprintf(t->dir, sizeof(t->dir), "/tmp/kvmtop-tsc-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	put(t, "proc/keep", "");
	put(t, DIR_TEXT "0/tsc-offset", "-38626992856217\n");
	put(t, DIR_TEXT "1/tsc-offset", "-38626992860217\n");
	put(t, DIR_TEXT "1/tsc-scaling-ratio", "422212465065984\n"); /* 1.5 * 2^48 */
	put(t, DIR_TEXT "1/tsc-scaling-ratio-frac-bits", "48\n");
	assert_int_equal(sysroot_open(t->dir, &t->root), 0);
	t->sink = (struct sink){.ctx = t, .tsc = take};
	t->env = (struct collector_env){
		.root = t->root, .inv = t->f.inv, .sink = &t->sink, .config = &t->config};
	assert_int_equal(collector_tsc.open(&t->env, &t->tsc), 0);
	return t;
}

static void made_free(struct test *t)
{
	collector_tsc.close(t->tsc);
	sysroot_close(t->root);
	fixture_free(&t->f);
	tree_remove(t->dir);
	free(t);
}

static void make_vm(struct test *t, int n)
{
	struct inv_vm *vm = inventory_add_vm(t->f.inv, 4711, 1, "4711-9");

	inventory_set(&vm->name, "web01");
	for (int i = 0; i < n; i++)
		inventory_add_vcpu(t->f.inv, vm, i);
}

static struct snapshot *tick(struct test *t, int64_t w)
{
	struct snapshot *s;

	assert_int_equal(collector_tsc.tick(t->tsc, w, w), 0);
	s = model_commit(t->f.m, w, (struct timespec){0}, false, 1);
	assert_non_null(s);
	return s;
}

static struct cell cell(const struct snapshot *s, size_t row, const char *field)
{
	const struct field *f = field_find(TABLE_VCPU, field);

	assert_non_null(f);
	return f->get(s, &s->vcpus[row], false);
}

static void offsets_and_scaling(void **state)
{
	struct test *t = made_new();
	struct snapshot *s;

	(void)state;
	make_vm(t, 3);
	s = tick(t, SEC);
	assert_int_equal(s->nvcpus, 3);
	assert_string_equal(cell(s, 0, "tsc_offset").text, "-38626992856217");
	assert_true(cell(s, 0, "tsc_scale").v.v == 1);
	assert_true(cell(s, 0, "tsc_apart_ns").v.v == 0);
	/* 38626992856217 cycles of 2 GHz. */
	assert_true(cell(s, 0, "tsc_offset_s").v.v < -19313.49 &&
		    cell(s, 0, "tsc_offset_s").v.v > -19313.51);
	/* 4,000 cycles of 3 GHz. */
	assert_true(cell(s, 1, "tsc_scale").v.v == 1.5);
	assert_true(cell(s, 1, "tsc_apart_ns").v.v > 1333.3 &&
		    cell(s, 1, "tsc_apart_ns").v.v < 1333.4);
	/* It has no files. */
	assert_string_equal(cell(s, 2, "tsc_offset").text, "");
	assert_int_equal(cell(s, 2, "tsc_apart_ns").v.state, VALUE_NA);
	snapshot_unref(s);
	made_free(t);
}

static void changes_are_counted(void **state)
{
	struct test *t = made_new();

	(void)state;
	make_vm(t, 2);
	snapshot_unref(tick(t, SEC));
	for (int i = 0; i < 3; i++) {
		struct snapshot *s;
		char text[40];

		snprintf(text, sizeof(text), "%d\n", i / 2);
		put(t, DIR_TEXT "0/tsc-offset", text);
		s = tick(t, (2 + i) * SEC);
		assert_true(cell(s, 0, "tsc_changes").v.v == (i < 2 ? 1 : 2));
		assert_true(cell(s, 1, "tsc_changes").v.v == 0);
		snapshot_unref(s);
	}
	made_free(t);
}

/* More vCPUs than one tick reads: all have had their turn after some. */
static void many_vcpus_take_turns(void **state)
{
	enum { N = 150 };
	struct test *t = made_new();
	struct snapshot *s = NULL;
	size_t known = 0;

	(void)state;
	make_vm(t, N);
	for (int i = 0; i < N; i++) {
		char path[80];

		snprintf(path, sizeof(path), DIR_TEXT "%d/tsc-offset", i);
		put(t, path, "5\n");
	}
	for (int i = 1; i <= 3; i++) {
		snapshot_unref(s);
		s = tick(t, i * SEC);
	}
	for (size_t i = 0; i < N; i++)
		known += cell(s, i, "tsc_offset").text[0] == '5';
	assert_int_equal(known, N);
	snapshot_unref(s);
	made_free(t);
}

static double scale_at(struct test *t, int64_t w, size_t row)
{
	struct snapshot *s = tick(t, w);
	double scale = cell(s, row, "tsc_scale").v.v;

	snapshot_unref(s);
	return scale;
}

/* Where a vCPU has no files of scaling they are not looked for at each tick; a new vCPU's are. */
static void no_scaling_is_remembered(void **state)
{
	struct test *t = made_new();
	struct inv_vm *vm;

	(void)state;
	make_vm(t, 1);
	for (int i = 1; i <= 2; i++)
		assert_true(scale_at(t, i * SEC, 0) == 1);
	/* Who opened them would see them now. */
	put(t, DIR_TEXT "0/tsc-scaling-ratio", "422212465065984\n");
	put(t, DIR_TEXT "0/tsc-scaling-ratio-frac-bits", "48\n");
	assert_true(scale_at(t, 3 * SEC, 0) == 1);
	vm = inventory_add_vm(t->f.inv, 4712, 1, "4712-9");
	inventory_add_vcpu(t->f.inv, vm, 0);
	put(t, "sys/kernel/debug/kvm/4712-9/vcpu0/tsc-offset", "5\n");
	assert_true(scale_at(t, 4 * SEC, 1) == 1);
	/* A new one's may be late by one look. */
	put(t, "sys/kernel/debug/kvm/4712-9/vcpu0/tsc-scaling-ratio", "422212465065984\n");
	put(t, "sys/kernel/debug/kvm/4712-9/vcpu0/tsc-scaling-ratio-frac-bits", "48\n");
	for (int i = 5; i <= 7; i++)
		assert_true(scale_at(t, i * SEC, 1) == 1.5);
	assert_true(scale_at(t, 8 * SEC, 0) == 1);
	made_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_and_scaling),
		cmocka_unit_test(changes_are_counted),
		cmocka_unit_test(many_vcpus_take_turns),
		cmocka_unit_test(no_scaling_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
