// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the tick reads out of the memory that the programs in the kernel write: here the test writes
 * it, as they do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "kvm_bpf_read.h"

#define N 64
#define SLOTS 128
#define MANY 60
#define TWO_CHUNKS (KC_CHUNK + 5)
#define ROOM 64

struct memory {
	struct kvm_counts c;
	struct kc_control control;
	struct kc_thread thread[N];
	struct kc_slot slot[SLOTS];
	struct kc_count count[2 * SLOTS];
	struct kc_octave octave[N];
	struct kc_busy busy[2];
	uint64_t dirty[2 * N], free[KC_POOLS][N];
	/* what was handed over */
	struct aggregate a[ROOM];
	uint64_t median[ROOM], times[ROOM];
	size_t n;
	struct thread_open open[8];
	size_t nopen;
	uint64_t lost[EV_NR];
};

static void on_aggregates(void *ctx, const struct aggregate *a, size_t n)
{
	struct memory *m = ctx;

	for (size_t i = 0; i < n; i++) {
		struct hist h = {0};

		assert_true(m->n < ROOM);
		if (a[i].hist)
			assert_int_equal(hist_merge(&h, a[i].hist), 0);
		assert_int_equal(hist_add_few(&h, a[i].few, a[i].nfew), 0);
		m->times[m->n] = hist_count(&h);
		m->median[m->n] = hist_quantile(&h, 0.5);
		hist_free(&h);
		m->a[m->n++] = a[i];
	}
}

static void on_open(void *ctx, const struct thread_open *o)
{
	struct memory *m = ctx;

	assert_true(m->nopen < 8);
	m->open[m->nopen++] = *o;
}

static void on_lost(void *ctx, const struct loss_count *l)
{
	((struct memory *)ctx)->lost[l->type] += l->n;
}

static int setup(void **state)
{
	struct memory *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->c = (struct kvm_counts){
		.threads = N,
		.slots = SLOTS,
		.octaves = N,
		.cpus = 2,
		.control = &m->control,
		.thread = m->thread,
		.slot = m->slot,
		.count = m->count,
		.octave = m->octave,
		.busy = m->busy,
		.dirty = m->dirty,
		.free = {m->free[0], m->free[1], m->free[2]},
	};
	kvm_counts_init(&m->c);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct kvm_counts_state read_at(struct memory *m, int64_t watermark)
{
	const struct sink sink = {
		.ctx = m,
		.aggregates = on_aggregates,
		.open = on_open,
		.loss_count = on_lost,
	};
	struct kvm_counts_state s;

	m->n = m->nopen = 0;
	kvm_counts_read(&m->c, watermark, &sink, &s);
	return s;
}

static unsigned entries(enum kc_pool pool)
{
	return pool == KC_POOL_SLOTS ? SLOTS / KC_CHUNK : N;
}

static uint32_t take(struct memory *m, enum kc_pool pool)
{
	assert_true(m->control.head[pool] != m->control.tail[pool]);
	return (uint32_t)m->free[pool][m->control.head[pool]++ & (entries(pool) - 1)];
}

/* As take_slot() does. */
static uint32_t take_slot(struct memory *m, struct kc_thread *t)
{
	if (!t->chunk || t->used == KC_CHUNK) {
		uint32_t chunk = KC_CHUNK * take(m, KC_POOL_SLOTS);

		m->slot[chunk].before = t->chunk;
		t->chunk = chunk;
		t->used = 0;
	}
	return t->chunk + t->used++;
}

/* As find_thread() and touch() do. */
static uint32_t put_thread(struct memory *m, uint32_t tid, int32_t vcpu)
{
	uint32_t i = take(m, KC_POOL_THREADS), half = m->control.epoch & 1;

	m->thread[i].tid = tid;
	m->thread[i].vcpu = vcpu;
	m->thread[i].epoch = m->control.epoch;
	m->dirty[half * N + m->control.dirty[half]++] = i;
	return i;
}

/* As add_count() and add_time() do for `count` times of 1,000 ns. */
static uint32_t put_slot(struct memory *m, uint32_t thread, uint64_t key, uint64_t tag,
			 uint32_t count)
{
	struct kc_thread *t = &m->thread[thread];
	uint32_t i = take_slot(m, t), half = m->control.epoch & 1;
	struct kc_slot *s = &m->slot[i];
	struct kc_count *h = &m->count[half * SLOTS + i];

	s->key = key;
	s->tag = tag;
	s->next = t->bucket[0];
	t->bucket[0] = i;
	h->key = key;
	h->tag = tag;
	h->sums = (struct kc_half){
		.epoch = m->control.epoch,
		.next = t->dirty[half],
		.count = count,
		.timed = count,
		.sum = count * 1000ull,
		.within = count * 900ull,
		.min = 1000,
		.max = 1000,
		.sumsq_low = count * 1000000ull,
		.sumsq_high = 1,
		.octaves = 1 << 5, /* 512 … 1,023 ns */
	};
	s->octave[5] = take(m, KC_POOL_OCTAVES);
	m->octave[s->octave[5]].n[half][(1000 - 512) / 16] = count;
	t->dirty[half] = i;
	return i;
}

static void what_changed_is_handed_over_once(void **state)
{
	struct memory *m = *state;
	uint32_t t = put_thread(m, 4711, 3);
	struct kvm_counts_state s;

	put_slot(m, t, 0x3f8, KC_TAG(KIND_IOPORT, DIR_WRITE, 0), 5);
	put_slot(m, t, 0x78, KC_TAG(KIND_VMEXIT, 0, ISA_SVM), 7);
	s = read_at(m, 1000000);
	assert_int_equal(m->n, 2);
	assert_int_equal(s.all, 12);
	assert_int_equal(s.exits, 7);
	assert_int_equal(m->a[0].kind, KIND_VMEXIT);
	assert_int_equal(m->a[0].isa, ISA_SVM);
	assert_int_equal(m->a[0].key, 0x78);
	assert_int_equal(m->a[0].tid, 4711);
	assert_int_equal(m->a[0].vcpu_id, 3);
	assert_int_equal(m->a[0].within_ns, 6300);
	assert_true(m->a[0].sumsq == ((unsigned __int128)1 << 64 | 7000000));
	assert_in_range(m->median[0], 992, 1007);
	assert_int_equal(m->a[1].dir, DIR_WRITE);
	assert_int_equal(m->a[1].count, 5);
	assert_int_equal(m->control.start[m->control.epoch & 1], 1000000);
	assert_int_equal(m->nopen, 1);
	s = read_at(m, 2000000);
	assert_int_equal(m->n + m->nopen + s.all, 0);
}

/* The programs went on with the thread before it was read: what it was at the end is kept apart. */
static void open_as_the_epoch_ended(void **state)
{
	struct memory *m = *state;
	uint32_t a = put_thread(m, 1, 0), b = put_thread(m, 2, 1), half = m->control.epoch & 1;

	m->thread[a].open = KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_IOPORT);
	m->thread[a].pair[KIND_VMEXIT] =
		(struct kc_pair){.begin = 500, .key = 9, .tag = KC_TAG(KIND_VMEXIT, 0, ISA_VMX)};
	m->thread[a].unmatched[half] = 2;
	m->thread[a].slow[half] = 3;
	m->thread[a].slow[!half] = 9; /* of another epoch */
	m->thread[b].before.open = KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_USEREXIT);
	m->thread[b].before.exit.begin = 600;
	m->thread[b].before.user.key = 2;
	m->thread[b].epoch = m->control.epoch + 1;
	read_at(m, 1000);
	assert_int_equal(m->nopen, 2);
	assert_int_equal(m->open[0].open, KIND_BIT(KIND_VMEXIT));
	assert_int_equal(m->open[0].exit.begin, 500);
	assert_int_equal(m->open[0].exit.key, 9);
	assert_int_equal(m->open[0].exit.isa, ISA_VMX);
	assert_int_equal(m->open[0].unmatched, 2);
	assert_int_equal(m->open[0].slow, 3);
	assert_int_equal(m->open[1].open, KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_USEREXIT));
	assert_int_equal(m->open[1].exit.begin, 600);
	assert_int_equal(m->open[1].user.key, 2);
}

static void time_without_a_cpu(void **state)
{
	struct memory *m = *state;
	uint32_t epoch = m->control.epoch, half = epoch & 1, a = put_thread(m, 1, 0),
		 b = put_thread(m, 2, 1), c = put_thread(m, 3, 2);

	m->control.switch_since = 400;
	m->thread[a].open = m->thread[c].open = KIND_BIT(KIND_VMEXIT);
	m->thread[a].pair[KIND_VMEXIT].begin = 500;
	m->thread[a].off = (struct kc_off){.since = 700, .ns = 90, .epoch = epoch};
	m->thread[a].off_ns[half] = 30;
	m->thread[a].off_ns[!half] = 9; /* of another epoch */
	m->thread[a].blind[!half] = 1;
	m->thread[b].before.open = KIND_BIT(KIND_VMEXIT);
	m->thread[b].before.exit.begin = 600;
	m->thread[b].before.off = (struct kc_off){.ns = 90, .epoch = epoch - 1, .blind = 1};
	m->thread[b].epoch = epoch + 1;
	m->thread[c].pair[KIND_VMEXIT].begin = 399; /* before anybody looked */
	m->thread[c].blind[half] = 1;
	read_at(m, 1000);
	assert_int_equal(m->open[0].off_ns, 30);
	assert_int_equal(m->open[0].exit_off_ns, 90);
	assert_int_equal(m->open[0].exit_off_since, 700);
	assert_false(m->open[0].off_blind || m->open[0].exit_blind);
	assert_int_equal(m->open[1].exit_off_ns, 0);
	assert_true(m->open[1].exit_blind);
	assert_true(m->open[2].exit_blind && m->open[2].off_blind);
}

static void what_was_open_before_kinds_changed_is_not(void **state)
{
	struct memory *m = *state;
	uint32_t t = put_thread(m, 1, 0);

	m->thread[t].open = KIND_BIT(KIND_VMEXIT);
	m->control.generation++;
	read_at(m, 1000);
	assert_int_equal(m->open[0].open, 0);
}

static uint32_t nfree(const struct memory *m, enum kc_pool pool)
{
	return m->control.tail[pool] - m->control.head[pool];
}

static void memory_of_ended_threads_is_free_again(void **state)
{
	struct memory *m = *state;

	for (unsigned round = 0; round < 1000; round++) {
		uint32_t t = put_thread(m, 100 + round, 0);

		for (unsigned k = 0; k < TWO_CHUNKS; k++)
			put_slot(m, t, k, KC_TAG(KIND_MSR, DIR_READ, 0), 1);
		m->thread[t].dead = 1;
		/* Every other one had an event in the next epoch: it is freed a reading later. */
		m->thread[t].epoch += round & 1;
		read_at(m, round);
		assert_int_equal(m->n, TWO_CHUNKS);
		assert_int_equal(m->open[0].open, 0);
		if (!(round & 1))
			continue;
		m->thread[t].dirty[m->control.epoch & 1] = 0;
		m->dirty[(m->control.epoch & 1) * N + m->control.dirty[m->control.epoch & 1]++] = t;
		read_at(m, round);
		assert_int_equal(m->n, 0);
	}
	for (unsigned pool = 0; pool < KC_POOLS; pool++)
		assert_int_equal(nfree(m, pool), entries(pool) - 1);
}

static void what_found_no_place(void **state)
{
	struct memory *m = *state;
	uint32_t t = put_thread(m, 1, 0), half = m->control.epoch & 1;
	struct kvm_counts_state s;

	m->thread[t].other[half][KIND_MSR] = (struct kc_half){
		.epoch = m->control.epoch, .count = 3, .timed = 2, .sum = 40, .min = 10, .max = 30};
	m->thread[t].others[half] = KIND_BIT(KIND_MSR) | KIND_BIT(KIND_MMIO); /* not MMIO's epoch */
	m->control.other = 3;
	m->control.lost[EV_PIO] = 4;
	s = read_at(m, 1000);
	assert_int_equal(m->n, 1);
	assert_true(m->a[0].other);
	assert_int_equal(m->a[0].kind, KIND_MSR);
	assert_int_equal(m->a[0].count, 3);
	assert_int_equal(s.other, 3);
	assert_int_equal(s.no_octave, 2);
	assert_int_equal(m->lost[EV_PIO], 4);
	m->control.lost[EV_PIO] = 5;
	s = read_at(m, 2000);
	assert_int_equal(m->lost[EV_PIO], 5);
	assert_int_equal(s.other, 0);
}

/* Few different times are in the count itself; they and those of the octave are one histogram. */
static void few_times_and_an_octave(void **state)
{
	struct memory *m = *state;
	uint32_t t = put_thread(m, 1, 0), half = m->control.epoch & 1;
	uint32_t i = put_slot(m, t, 1, KC_TAG(KIND_MSR, 0, 0), 4);
	struct kc_count *h = &m->count[half * SLOTS + i];

	h->few[0] = KC_PLACE(5, 2) << 16 | 3;
	h->few[1] = KC_PLACE(9, 31) << 16 | KC_FEW_MAX;
	i = put_slot(m, t, 2, KC_TAG(KIND_MSR, 0, 0), 1);
	m->count[half * SLOTS + i].sums.octaves = 0;
	read_at(m, 1000);
	assert_int_equal(m->n, 2);
	assert_int_equal(m->times[0], 0);
	assert_int_equal(m->times[1], 3 + KC_FEW_MAX + 4);
}

/* More keys than are handed over at once; each once, and in the order of the list. */
static void many_keys(void **state)
{
	struct memory *m = *state;
	uint32_t t = put_thread(m, 1, 0), half = m->control.epoch & 1;

	for (uint64_t key = 0; key < MANY; key++) {
		uint32_t i = put_slot(m, t, key, KC_TAG(KIND_MSR, 0, 0), 1);

		m->count[half * SLOTS + i].sums.octaves = 0;
	}
	read_at(m, 1000);
	assert_int_equal(m->n, MANY);
	for (uint64_t key = 0; key < MANY; key++)
		assert_int_equal(m->a[key].key, MANY - 1 - key);
	assert_int_equal(m->nopen, 1);
}

/* Of all CPUs, since the last reading. */
static void what_the_programs_did(void **state)
{
	struct memory *m = *state;
	struct kvm_counts_state s;

	m->busy[0] = (struct kc_busy){.runs = 600, .switches = 5, .sampled_ns = 700, .samples = 3};
	m->busy[1] = (struct kc_busy){.runs = 400, .sampled_ns = 300, .samples = 2};
	s = read_at(m, 1000);
	assert_int_equal(s.runs.events, 1000);
	assert_int_equal(s.runs.switches, 5);
	assert_int_equal(s.runs.sampled_ns, 1000);
	assert_int_equal(s.runs.samples, 5);
	m->busy[1].runs += 7;
	s = read_at(m, 2000);
	assert_int_equal(s.runs.events, 7);
	assert_int_equal(s.runs.switches + s.runs.sampled_ns + s.runs.samples, 0);
}

/* Numbers that no program would write lead nowhere. */
static void damaged_memory(void **state)
{
	struct memory *m = *state;
	uint32_t t = put_thread(m, 1, 0), half = m->control.epoch & 1, i;

	i = put_slot(m, t, 1, KC_TAG(KIND_MSR, 0, 0), 1);
	m->count[half * SLOTS + i].sums.next = i; /* a ring */
	m->count[half * SLOTS + i].sums.octaves = UINT64_MAX;
	m->slot[i].octave[7] = N + 1;
	m->control.dirty[half] = 10 * N;
	m->dirty[half * N + 1] = 1ull << 40;
	m->thread[t].dead = 1;
	m->slot[i].before = i; /* another one */
	m->c.slots = 2 * KC_CHUNK;
	m->count[half * m->c.slots + i] = m->count[half * SLOTS + i];
	read_at(m, 1000);
	assert_true(m->n >= 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_changed_is_handed_over_once),
		TEST(what_the_programs_did),
		TEST(open_as_the_epoch_ended),
		TEST(time_without_a_cpu),
		TEST(what_was_open_before_kinds_changed_is_not),
		TEST(memory_of_ended_threads_is_free_again),
		TEST(what_found_no_place),
		TEST(few_times_and_an_octave),
		TEST(many_keys),
		TEST(damaged_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
