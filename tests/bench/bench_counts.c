// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a tick costs that reads the sums made in the kernel: 16,000 vCPU threads of 100 keys each,
 * of which 1 or 8 had events in the interval. The memory is filled here as the programs fill it;
 * rows for bench.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_bpf_read.h"
#include "kvm_names.h"
#include "model.h"

#define VCPUS 16
#define VMS 1000
#define THREADS (VMS * VCPUS)
#define KEYS 100
#define ROOM_THREADS 16384u
#define ROOM_SLOTS (1u << 21)
#define TICKS 5

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return timespec_ns(t);
}

/* Whole pages of 4 KiB, as the kernel's arrays are mapped; what they have is 0. */
static void *pages(size_t n, size_t size)
{
	void *at = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	(void)madvise(at, n * size, MADV_NOHUGEPAGE);
	return at;
}

static struct kvm_counts *counts_new(void)
{
	struct kvm_counts *c = calloc(1, sizeof(*c));

	*c = (struct kvm_counts){
		.threads = ROOM_THREADS,
		.slots = ROOM_SLOTS,
		.octaves = ROOM_SLOTS,
		.cpus = 512,
		.control = pages(1, sizeof(*c->control)),
		.thread = pages(ROOM_THREADS, sizeof(*c->thread)),
		.slot = pages(ROOM_SLOTS, sizeof(*c->slot)),
		.count = pages(2 * ROOM_SLOTS, sizeof(*c->count)),
		.octave = pages(ROOM_SLOTS, sizeof(*c->octave)),
		.busy = pages(512, sizeof(*c->busy)),
		.dirty = pages(2 * ROOM_THREADS, sizeof(*c->dirty)),
		.free = {pages(ROOM_THREADS, 8), pages(ROOM_SLOTS, 8), pages(ROOM_SLOTS, 8)},
	};
	kvm_counts_init(c);
	return c;
}

/* A thread's chunks lie apart in memory, as they were needed: one of each, in an order of chance.
 */
static uint32_t slot_of(uint32_t thread, unsigned key)
{
	unsigned nth = key / KC_CHUNK;
	/* 7919 has no divisor in common with their number. */
	uint32_t chunk = (uint32_t)((thread * 7919ul + nth * 4099ul) % THREADS);

	return (1 + nth * THREADS + chunk) * KC_CHUNK + key % KC_CHUNK;
}

static void write_slot(struct kvm_counts *c, uint32_t thread, unsigned key)
{
	uint32_t i = slot_of(thread, key), half = c->control->epoch & 1;
	struct kc_thread *t = &c->thread[1 + thread];
	struct kc_slot *s = &c->slot[i];
	struct kc_count *h = &c->count[half * ROOM_SLOTS + i];

	s->key = key;
	s->tag = KC_TAG(KIND_VMEXIT, 0, ISA_SVM);
	h->key = s->key;
	h->tag = s->tag;
	h->few[0] = KC_PLACE(5, 18) << 16 | 7;
	h->few[1] = KC_PLACE(5, 20) << 16 | 3;
	h->few[2] = 0;
	h->sums = (struct kc_half){
		.epoch = c->control->epoch,
		.next = t->dirty[half],
		.count = 10,
		.timed = 10,
		.sum = 8000,
		.within = 8000,
		.min = 700,
		.max = 900,
		.sumsq_low = 6400000,
	};
	t->dirty[half] = i;
}

static void write_interval(struct kvm_counts *c, unsigned tick, unsigned keys)
{
	uint32_t half = c->control->epoch & 1;

	for (uint32_t i = 0; i < THREADS; i++) {
		struct kc_thread *t = &c->thread[1 + i];

		t->tid = 1001 + i + i / VCPUS;
		t->vcpu = (int32_t)(i % VCPUS);
		t->epoch = c->control->epoch;
		t->dirty[half] = 0;
		c->dirty[half * ROOM_THREADS + c->control->dirty[half]++] = 1 + i;
		for (unsigned k = 0; k < keys; k++)
			write_slot(c, i, keys == KEYS ? k : (tick % 2 + k) % KEYS);
	}
}

static void nothing(void *ctx, const struct aggregate *a, size_t n)
{
	*(uint64_t *)ctx += a->count + n;
}

static void no_open(void *ctx, const struct thread_open *o)
{
	*(uint64_t *)ctx += o->open;
}

static void no_loss(void *ctx, const struct loss_count *l)
{
	*(uint64_t *)ctx += l->n;
}

static void rows(const char *what, const double *ms, double limit)
{
	printf("{\"what\": \"%s\", \"unit\": \"ms\", \"ours\": [", what);
	for (unsigned i = 0; i < TICKS; i++)
		printf("%s%.2f", i ? ", " : "", ms[i]);
	printf("]");
	if (limit > 0)
		printf(", \"limit\": %g", limit);
	printf("}\n");
}

static void measure(struct kvm_counts *c, unsigned keys, const struct sink *sink, const char *what,
		    struct model *m, double limit)
{
	double ms[TICKS];

	for (int tick = -1; tick < TICKS; tick++) {
		struct kvm_counts_state s;
		int64_t t0;

		write_interval(c, (unsigned)(tick + 1), keys);
		t0 = cpu_ns();
		kvm_counts_read(c, (tick + 2) * NS_PER_S, sink, &s);
		if (tick >= 0) /* the first one makes the model's cells */
			ms[tick] = (double)(cpu_ns() - t0) / 1e6;
		if (m)
			snapshot_unref(model_commit(m, (tick + 2) * NS_PER_S, (struct timespec){0},
						    false, 1));
	}
	rows(what, ms, limit);
}

static struct inventory *inventory_of_vms(void)
{
	struct inventory *inv = inventory_new();

	for (int i = 0; i < VMS; i++) {
		pid_t pid = 1000 + i * (VCPUS + 1);
		struct inv_vm *vm = inventory_add_vm(inv, pid, 1, "k");

		for (int k = 0; k < VCPUS; k++)
			inventory_set_thread(
				inv, inventory_add_vcpu(inv, vm, k),
				inventory_add_thread(inv, vm, pid, pid + 1 + k, 1, ROLE_VCPU));
	}
	return inv;
}

int main(void)
{
	static const struct model_config config = {.clk_tck = 100, .vcpu_keys = 8, .vm_keys = 64};
	struct kvm_counts *c = counts_new();
	uint64_t sum = 0;
	const struct sink none = {
		.ctx = &sum, .aggregates = nothing, .open = no_open, .loss_count = no_loss};
	struct inventory *inv = inventory_of_vms();
	struct kvm_names *names = kvm_names_new();
	struct model *m = model_new(&config, inv, names);
	const struct sink *sink = model_sink(m);

	sink->kinds(sink->ctx, KIND_ALL, true, 0);
	measure(c, KEYS, &none, "counts: 16,000 vCPUs x 100 keys, all changed, read only", NULL,
		50);
	measure(c, 1, sink, "counts: 16,000 vCPUs x 100 keys, 1 changed, with the model", m, 50);
	measure(c, 8, sink, "counts: 16,000 vCPUs x 100 keys, 8 changed, with the model", m, 50);
	measure(c, KEYS, sink, "counts: 16,000 vCPUs x 100 keys, all changed, with the model", m,
		50);
	model_free(m);
	kvm_names_free(names);
	inventory_free(inv);
	free(c);
	return sum == 0;
}
