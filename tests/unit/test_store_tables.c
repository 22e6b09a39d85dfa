// SPDX-License-Identifier: GPL-2.0-only
/* What recordings have beside their intervals, and what longer ones leave out. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>

#include "clock.h"
#include "store.h"
#include "store_code.h"
#include "store_file.h"
#include "store_merge.h"
#include "store_reduce.h"
#include "store_worst.h"
/* The helper is part of each test program that needs it. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

static struct snapshot *step(unsigned i)
{
	const struct made m = {.nvms = 3, .step = i};
	struct snapshot *s = made_snapshot(&m);

	assert_non_null(s);
	s->wall = (struct timespec){.tv_sec = 1790000000 + i, .tv_nsec = 250000000};
	s->dt = NS_PER_S;
	return s;
}

/* Each part of the time line has the worst of its intervals, and where it is. */
static void moments_are_the_worst(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	struct store_moment m[8];
	struct store_range range;

	for (unsigned i = 0; i < 20; i++) {
		struct snapshot *s = step(i);
		struct snap_vm *vms = (struct snap_vm *)s->vms;

		s->wall.tv_sec = 1790000000 + i + (i >= 10 ? 20 : 0); /* a gap */
		for (size_t k = 0; k < s->nvms; k++)
			vms[k].steal_max = value_known(i == 7 ? 80.25 : i);
		assert_int_equal(store_write(st, s, 0), 0);
		snapshot_unref(s);
	}
	assert_int_equal(store_range(st, &range), 0);
	assert_int_equal(store_moments(st, &range, m, 4), 2); /* two parts are empty */
	assert_true(m[0].steal_max > 80.2 && m[0].steal_max < 80.3);
	assert_int_equal(m[0].wall / NS_PER_S, 1790000007);
	assert_int_equal(m[0].dt, NS_PER_S);
	assert_int_equal(m[1].wall / NS_PER_S, 1790000039);
	assert_true(m[1].steal_max > 18.9 && m[1].steal_max < 19.1);
	/* No more than there is room for, and one part alone. */
	assert_int_equal(store_moments(st, &range, m, 1), 1);
	assert_int_equal(m[0].wall / NS_PER_S, 1790000007);
	store_close(st);
}

/* The walls of the moments in the order in which they are gone to, "2 7 4". */
static const char *worst_order(const double *steal, int n, char *buf, size_t size)
{
	struct store_moment m[64];
	const struct store_moment *w;
	size_t len = 0;

	for (int i = 0; i < n; i++)
		m[i] = (struct store_moment){.wall = i, .steal_max = steal[i]};
	buf[0] = '\0';
	for (int k = 0; (w = store_worst(m, n, k)) != NULL; k++)
		len += (size_t)snprintf(buf + len, size - len, "%s%d", k ? " " : "", (int)w->wall);
	return buf;
}

#define WORST(steal) worst_order(steal, sizeof(steal) / sizeof((steal)[0]), buf, sizeof(buf))

static void the_worst_moments_in_their_order(void **state)
{
	const double peaks[] = {0, 20, 80, 30, 4, 50, 90, 10}, none[] = {0, 4.9, 2};
	const double row[] = {100, 100, 100, 40, 60, 100, 100, 3}, step[] = {50, 50, 80, 70, 70};
	double all[64];
	char buf[256];

	(void)state;
	assert_string_equal(WORST(peaks), "6 2");
	assert_string_equal(WORST(none), "");
	/* Equally bad ones: each trouble where it began, then on through them. */
	assert_string_equal(WORST(row), "0 5 1 2 6");
	/* What leads up to a worse one and away from it is that one. */
	assert_string_equal(WORST(step), "2");
	for (size_t i = 0; i < 64; i++)
		all[i] = 100;
	assert_string_equal(WORST(all), "0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60");
	assert_null(store_worst(NULL, 0, 0));
}

/* Where no vCPU waited, findings tell which moments are worth a look; not those that always hold.
 */
static void moments_of_findings(void **state)
{
	const struct file *f = *state;
	static const unsigned findings[] = {1, 1, 1, 4, 1, 1, 2, 1, 1, 1};
	struct store *st = create(f);
	struct store_range range;
	struct store_moment m[10];
	int n;

	for (unsigned i = 0; i < 10; i++) {
		struct snapshot *s = step(i);
		struct snap_finding *x = snapshot_alloc(s, 4, sizeof(*x));

		for (size_t k = 0; k < s->nvms; k++)
			((struct snap_vm *)s->vms)[k].steal_max = value_known(i == 8 ? 7 : 3);
		for (unsigned k = 0; k < 4; k++)
			x[k] = (struct snap_finding){.rule = "pin-overlap",
						     .vm = -1,
						     .vcpu = -1,
						     .text = "",
						     .next = ""};
		s->findings = x;
		s->nfindings = findings[i];
		assert_int_equal(store_write(st, s, 0), 0);
		snapshot_unref(s);
	}
	assert_int_equal(store_range(st, &range), 0);
	n = store_moments(st, &range, m, 10);
	assert_int_equal(n, 10);
	assert_int_equal(m[3].findings, 4);
	assert_int_equal(store_worst(m, n, 0)->wall / NS_PER_S, 1790000008);
	assert_int_equal(store_worst(m, n, 1)->wall / NS_PER_S, 1790000003);
	assert_int_equal(store_worst(m, n, 2)->wall / NS_PER_S, 1790000006);
	assert_null(store_worst(m, n, 3));
	/* In a part of several intervals the one that has most. */
	assert_int_equal(store_moments(st, &range, m, 2), 2);
	assert_int_equal(m[0].wall / NS_PER_S, 1790000003);
	assert_int_equal(m[1].wall / NS_PER_S, 1790000008);
	store_close(st);
}

struct offsets {
	struct store_tsc t[8];
	size_t n;
};

static int take_offset(void *ctx, const struct store_tsc *t)
{
	struct offsets *o = ctx;

	assert_true(o->n < 8);
	o->t[o->n++] = *t;
	return o->n == 7 ? -ECANCELED : 0;
}

/* Of several VMs of one name the one that was seen last; writes and readings in their order. */
static void offsets_are_of_the_newest_vm(void **state)
{
	const struct file *f = *state;
	struct store *st = create(f);
	struct snap_tsc_event e[2] = {
		{.vm = 0, .kvm_id = 3, .at = UINT64_MAX - 5, .next = 1u << 31},
		{.vm = 0, .kvm_id = 3, .next = UINT64_MAX, .ratio = 7, .frac_bits = 48}};
	struct offsets got = {0};
	for (unsigned i = 0; i < 4; i++) {
		struct snapshot *s = step(i);
		struct snap_vm *vms = (struct snap_vm *)s->vms;

		vms[0].name = "offsets";
		vms[0].vm_id = i < 2 ? "old" : "new";
		e[0].prev = i;
		s->tsc_events = i == 1 ? NULL : e;
		s->ntsc_events = i == 1 ? 0 : 2;
		assert_int_equal(store_write(st, s, 0), 0);
		snapshot_unref(s);
	}
	assert_int_equal(store_tsc(st, "offsets", take_offset, &got), 0);
	assert_int_equal(got.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(got.t[i].vcpu, 3);
	assert_true(got.t[0].at == UINT64_MAX - 5 && got.t[0].prev == 2 && got.t[2].prev == 3);
	assert_true(got.t[0].next == 1u << 31 && !got.t[0].ratio);
	assert_true(!got.t[1].at && got.t[1].next == UINT64_MAX);
	assert_true(got.t[1].ratio == 7 && got.t[1].frac_bits == 48);
	got.n = 0;
	assert_int_equal(store_tsc(st, "old", take_offset, &got), 0);
	assert_int_equal(got.n, 2);
	assert_int_equal(store_tsc(st, "nobody", take_offset, &got), -ENOENT);
	got.n = 6;
	assert_int_equal(store_tsc(st, "offsets", take_offset, &got), -ECANCELED);
	store_close(st);
}

static void write_offset(struct store *st, unsigned i, int want)
{
	const struct snap_tsc_event e = {.vm = 0, .kvm_id = (int32_t)i, .at = i, .next = i};
	struct snapshot *s = step(i);

	s->tsc_events = &e;
	s->ntsc_events = 1;
	assert_int_equal(store_write(st, s, 0), want);
	snapshot_unref(s);
}

/* Whether it could not be written or was skipped: its TSC offsets are in the next one. */
static void offsets_of_lost_intervals_are_kept(void **state)
{
	const struct snap_vm vm = {.name = "web01", .vm_id = "id"};
	const struct snap_tsc_event e = {.vm = 0, .kvm_id = 3, .at = 3, .next = 3};
	const struct snapshot late = {.vms = &vm, .nvms = 1, .tsc_events = &e, .ntsc_events = 1};
	const struct file *f = *state;
	struct store *st = create(f);
	struct offsets got = {0};
	struct snapshot *s = step(5);
	sqlite3 *other;

	assert_int_equal(sqlite3_open(f->path, &other), SQLITE_OK);
	write_offset(st, 1, 0);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	write_offset(st, 2, -EBUSY);
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_late_tsc(st, &late), 0);
	write_offset(st, 4, 0);
	assert_int_equal(store_write(st, s, 0), 0); /* what is written is written once */
	snapshot_unref(s);
	assert_int_equal(
		sqlite3_exec(other, "UPDATE tsc SET vm='all', vm_id='all'", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(store_tsc(st, "all", take_offset, &got), 0);
	assert_int_equal(got.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(got.t[i].vcpu, i + 1);
	sqlite3_close(other);
	store_late_tsc(st, &late); /* and what is left at the end is no leak */
	store_close(st);
}

static const struct snap_exit *first_of_kind(const struct snapshot *s, const struct snap_exits *ex,
					     unsigned kind)
{
	for (uint32_t i = ex->first; i < ex->first + ex->n; i++)
		if (s->exits[i].kind == kind)
			return &s->exits[i];
	return NULL;
}

static void all_shares(const struct snapshot *s, const struct snap_exits *ex, unsigned kind)
{
	double count = 0, time = 0;

	for (uint32_t i = ex->first; i < ex->first + ex->n; i++) {
		if (s->exits[i].kind != kind)
			continue;
		count += s->exits[i].now.count_pct.v;
		time += s->exits[i].now.time_pct.v;
	}
	assert_true(fabs(count - 100) < 1e-9 && fabs(time - 100) < 1e-9);
}

/* What of vCPUs is not kept in longer intervals is not known, and of VMs it is there. */
static void longer_intervals_have_less_of_vcpus(void **state)
{
	const struct made m = {.nvms = 2, .step = 1};
	struct snapshot *s = made_snapshot(&m), *kept = store_reduce_longer(s);
	const struct snap_exits *vm, *vcpu;
	const struct snap_exit *x, *was;

	(void)state;
	assert_non_null(kept);
	assert_int_equal(store_check(kept), 0);
	vm = &kept->vms[0].ex;
	vcpu = &kept->vcpus[1].ex;
	assert_int_equal(vm->n, s->vms[0].ex.n);
	assert_non_null(first_of_kind(kept, vm, KIND_IOPORT));
	assert_null(first_of_kind(kept, vcpu, KIND_IOPORT));
	x = first_of_kind(kept, vcpu, KIND_VMEXIT);
	was = first_of_kind(s, &s->vcpus[1].ex, KIND_VMEXIT);
	assert_true(x->now.count == was->now.count && x->now.p99_ns == was->now.p99_ns);
	assert_true(fabs((double)x->now.max_ns / (double)was->now.max_ns - 1) < 1e-3);
	assert_true(fabs((double)x->now.time_ns / (double)was->now.time_ns - 1) < 1e-3);
	assert_int_equal(x->total.low, WHY_NOT_KEPT);
	assert_int_equal(x->total.rate.state, VALUE_NA);
	assert_int_equal(first_of_kind(kept, vm, KIND_VMEXIT)->total.low, WHY_NONE);
	all_shares(kept, vm, KIND_VMEXIT);
	all_shares(kept, vcpu, KIND_VMEXIT);
	snapshot_unref(kept);
	snapshot_unref(s);
}

static enum value_state cpu_state(const struct snapshot *s, uint32_t id)
{
	for (size_t i = 0; i < s->nvms; i++)
		if (s->vms[i].id == id) {
			assert_int_equal(s->vcpus[s->vms[i].vcpu_first].use.cpu.state,
					 s->vms[i].use.cpu.state);
			return (enum value_state)s->vms[i].use.cpu.state;
		}
	return VALUE_PENDING;
}

/* Figures of a VM that was there for a part are of that part, and marked, however often merged. */
static void what_was_there_for_a_part_is_marked(void **state)
{
	struct snapshot *part[3], *sum = NULL, *again = NULL;
	uint32_t first, third;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const struct made m = {.nvms = i == 1 ? 2 : 3, .step = i};

		part[i] = made_snapshot(&m);
		part[i]->dt = NS_PER_S;
	}
	first = part[0]->vms[0].id;
	third = part[0]->vms[2].id;
	/* It went. */
	assert_int_equal(store_merge(part, 2, &sum), 0);
	assert_int_equal(cpu_state(sum, first), VALUE_KNOWN);
	assert_int_equal(cpu_state(sum, third), VALUE_PARTIAL);
	/* It was there for all of the last part, and not of the sum. */
	assert_int_equal(store_merge((struct snapshot *[]){sum, part[2]}, 2, &again), 0);
	assert_int_equal(cpu_state(again, first), VALUE_KNOWN);
	assert_int_equal(cpu_state(again, third), VALUE_PARTIAL);
	snapshot_unref(again);
	snapshot_unref(sum);
	/* It came. */
	assert_int_equal(store_merge(part + 1, 2, &sum), 0);
	assert_int_equal(cpu_state(sum, first), VALUE_KNOWN);
	assert_int_equal(cpu_state(sum, third), VALUE_PARTIAL);
	snapshot_unref(sum);
	for (unsigned i = 0; i < 3; i++)
		snapshot_unref(part[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(moments_are_the_worst, make_dir, drop_dir),
		cmocka_unit_test(the_worst_moments_in_their_order),
		cmocka_unit_test_setup_teardown(moments_of_findings, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(offsets_are_of_the_newest_vm, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(offsets_of_lost_intervals_are_kept, make_dir,
						drop_dir),
		cmocka_unit_test(longer_intervals_have_less_of_vcpus),
		cmocka_unit_test(what_was_there_for_a_part_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
