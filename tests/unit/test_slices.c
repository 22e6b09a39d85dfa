// SPDX-License-Identifier: GPL-2.0-only
/* Exits of one vCPU in slices of time: pairs, borders of slices, what finds no place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model_fixture.h"
#include "slices.h"

static struct slices *s;

static int make(void **state)
{
	(void)state;
	s = slices_new(100 * US);
	return s ? 0 : -1;
}

static int drop(void **state)
{
	(void)state;
	slices_free(s);
	return 0;
}

static void event(int64_t time, enum ev_type type, uint64_t key, uint8_t dir)
{
	const struct sample x = {.time = time,
				 .type = (uint8_t)type,
				 .key = key,
				 .dir = dir,
				 .aux = 3000,
				 .isa = type == EV_EXIT ? ISA_VMX : 0};

	slices_add(s, &x, 1);
}

static const struct slice_cell *cell(int64_t at, enum kvm_kind kind, uint64_t key, uint8_t dir)
{
	for (size_t i = 0; i < SLICES_CELLS; i++) {
		const struct slice_cell *c = &s->cell[i];

		if ((c->count || c->timed) && c->at == at && c->key.kind == kind &&
		    c->key.key == key && c->key.dir == dir)
			return c;
	}
	fail_msg("no cell at %lld", (long long)at);
	return NULL;
}

/* Counted where it began, timed where it ended, as the table of the interval does. */
static void pairs_and_borders(void **state)
{
	const struct slice_cell *c;

	(void)state;
	event(210 * US, EV_EXIT, 30 | 1u << 16,
	      DIR_NONE); /* a flag that is no part of the reason */
	event(220 * US, EV_ENTRY, 0, DIR_NONE);
	event(295 * US, EV_EXIT, 30, DIR_NONE);
	event(305 * US, EV_ENTRY, 0, DIR_NONE);
	c = cell(200 * US, KIND_VMEXIT, 30, DIR_NONE);
	assert_true(c->count == 2 && c->timed == 1);
	assert_int_equal(c->heat[hist_heat_bucket(10 * US)], 1);
	c = cell(300 * US, KIND_VMEXIT, 30, DIR_NONE);
	assert_true(c->count == 0 && c->timed == 1);
	assert_int_equal(c->heat[hist_heat_bucket(10 * US)], 1);
	assert_int_equal(s->events, 4);
}

static void accesses(void **state)
{
	(void)state;
	event(0, EV_EXIT, 48, DIR_NONE);
	event(1 * US, EV_MMIO, 0xfee0, DIR_UNSATISFIED);
	event(2 * US, EV_USEREXIT, 6, DIR_NONE);
	event(9 * US, EV_MMIO, 0xfee0, DIR_READ);
	event(10 * US, EV_ENTRY, 0, DIR_NONE);
	event(20 * US, EV_PIO, 0x3f8, DIR_WRITE); /* a KVM without kvm_exit: counted only */
	event(30 * US, EV_VCPU_WAKEUP, 0, DIR_WRITE);
	assert_int_equal(cell(0, KIND_MMIO, 0xfee0, DIR_READ)->count, 1);
	assert_int_equal(cell(0, KIND_MMIO, 0xfee0, DIR_READ)->heat[hist_heat_bucket(9 * US)], 1);
	assert_int_equal(cell(0, KIND_USEREXIT, 6, DIR_NONE)->heat[hist_heat_bucket(8 * US)], 1);
	assert_int_equal(cell(0, KIND_IOPORT, 0x3f8, DIR_WRITE)->count, 1);
	assert_int_equal(cell(0, KIND_IOPORT, 0x3f8, DIR_WRITE)->timed, 0);
	assert_int_equal(cell(0, KIND_HALT, 0, DIR_WRITE)->heat[hist_heat_bucket(3000)], 1);
}

static void what_is_open_over_the_border_of_an_interval(void **state)
{
	const struct slice_cell *c;

	(void)state;
	event(90 * US, EV_EXIT, 30, DIR_NONE);
	slices_next(s);
	assert_int_equal(s->n, 0);
	event(150 * US, EV_ENTRY, 0, DIR_NONE);
	c = cell(100 * US, KIND_VMEXIT, 30, DIR_NONE);
	assert_true(c->count == 0 && c->timed == 1);
	/* But not over a loss. */
	event(160 * US, EV_EXIT, 30, DIR_NONE);
	slices_torn(s);
	event(170 * US, EV_ENTRY, 0, DIR_NONE);
	assert_int_equal(c->timed, 1);
	assert_int_equal(c->count, 1);
}

static void more_than_there_is_room_for(void **state)
{
	uint64_t all = 0;

	(void)state;
	for (unsigned i = 0; i < SLICES_CELLS * 2; i++)
		event(i * US, EV_PIO, i, DIR_WRITE);
	for (size_t i = 0; i < SLICES_CELLS; i++)
		all += s->cell[i].count;
	assert_int_equal(s->n, SLICES_MOST);
	assert_int_equal(all, SLICES_MOST);
	assert_int_equal(s->missed, SLICES_CELLS * 2 - SLICES_MOST);
}

/* ---- in the model ---- */

static void told(struct fixture *f, uint32_t vcpu, int64_t since, uint64_t lost)
{
	const struct vcpu_stream st = {
		.vcpu = vcpu, .kinds = KIND_BIT(KIND_IOPORT), .since = since, .lost = lost};

	f->sink->vcpu_stream(f->sink->ctx, &st);
}

static void port(struct fixture *f, int64_t time, uint64_t key)
{
	const struct sample x = {.time = time, .type = EV_PIO, .key = key, .dir = DIR_WRITE};

	f->sink->vcpu_events(f->sink->ctx, &x, 1);
}

static void in_the_model(void **state)
{
	const struct demand d = {.vcpu = 7, .slices = KIND_BIT(KIND_IOPORT), .slice_ns = 100 * MS};
	struct fixture f = fixture_new(8, 64);
	struct snapshot *x;

	(void)state;
	commit_drop(&f, 1 * SEC);
	port(&f, 1100 * MS, 1); /* nobody asked */
	model_demand(f.m, &d);
	told(&f, 7, 1200 * MS, 0);
	port(&f, 1210 * MS, 1);
	port(&f, 1290 * MS, 1);
	port(&f, 1950 * MS, 2);
	told(&f, 7, 1200 * MS, 0);
	x = commit(&f, 2 * SEC);
	assert_true(x->stream.vcpu == 7 && x->stream.slice_ns == 100 * MS);
	assert_true(x->stream.from == 1200 * MS && x->stream.events == 3 && !x->stream.lost);
	assert_int_equal(x->nslices, 2);
	for (size_t i = 0; i < x->nslices; i++) {
		const struct snap_slice *l = &x->slices[i];

		assert_int_equal(l->at, l->key == 1 ? 1200 * MS : 1900 * MS);
		assert_int_equal(l->count, l->key == 1 ? 2 : 1);
		assert_true(l->kind == KIND_IOPORT && l->dir == DIR_WRITE && !l->heat);
	}
	snapshot_unref(x);
	/* The tables of exits have nothing of it: these are counted elsewhere. */
	told(&f, 7, 1200 * MS, 5);
	x = commit(&f, 3 * SEC);
	assert_true(x->nslices == 0 && x->stream.lost == 5 && x->stream.from == 2 * SEC);
	assert_int_equal(x->host.ex.n, 0);
	snapshot_unref(x);
	/* Another vCPU, and none. */
	port(&f, 3100 * MS, 1);
	told(&f, 8, 3200 * MS, 0);
	x = commit(&f, 4 * SEC);
	assert_true(x->stream.vcpu == 8 && x->nslices == 0);
	snapshot_unref(x);
	told(&f, 0, 3200 * MS, 0);
	port(&f, 4100 * MS, 1);
	x = commit(&f, 5 * SEC);
	assert_true(x->stream.vcpu == 0 && x->nslices == 0);
	snapshot_unref(x);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pairs_and_borders, make, drop),
		cmocka_unit_test_setup_teardown(accesses, make, drop),
		cmocka_unit_test_setup_teardown(what_is_open_over_the_border_of_an_interval, make,
						drop),
		cmocka_unit_test(in_the_model),
		cmocka_unit_test_setup_teardown(more_than_there_is_room_for, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
