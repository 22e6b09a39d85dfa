// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the model costs: CPU time an event, memory a vCPU, time a commit; rows for bench.py.
 * `bench_model N` takes N million events.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_names.h"
#include "model.h"

#define BATCH 512
#define KEYS 8

static const uint64_t reasons[KEYS] = {0x72, 0x7b, 0x400, 0x7c, 0x78, 0x64, 0x60, 0x61};

struct bench {
	struct inventory *inv;
	struct kvm_names *names;
	struct model *m;
	const struct sink *sink;
	int64_t now;
	uint32_t seed;
};

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return timespec_ns(t);
}

static uint32_t next_random(struct bench *b)
{
	b->seed = b->seed * 1664525u + 1013904223u;
	return b->seed >> 8;
}

static struct bench bench_new(unsigned vms, unsigned vcpus)
{
	static const struct model_config c = {.clk_tck = 100, .vcpu_keys = 8, .vm_keys = 64};
	struct bench b = {.inv = inventory_new(), .names = kvm_names_new(), .now = NS_PER_S};

	for (unsigned i = 0; i < vms; i++) {
		pid_t pid = 1000 + (pid_t)(i * (vcpus + 1));
		struct inv_vm *vm = inventory_add_vm(b.inv, pid, 1, "k");

		for (unsigned k = 0; k < vcpus; k++)
			inventory_set_thread(b.inv, inventory_add_vcpu(b.inv, vm, (int)k),
					     inventory_add_thread(b.inv, vm, pid,
								  pid + 1 + (pid_t)k, 1,
								  ROLE_VCPU));
	}
	b.m = model_new(&c, b.inv, b.names);
	b.sink = model_sink(b.m);
	b.sink->kinds(b.sink->ctx, KIND_ALL, true, 0);
	return b;
}

static void bench_free(struct bench *b)
{
	model_free(b->m);
	inventory_free(b->inv);
	kvm_names_free(b->names);
}

static void tick(struct bench *b, int64_t *took, size_t *bytes)
{
	int64_t t0 = cpu_ns();
	struct snapshot *s = model_commit(b->m, b->now, (struct timespec){0}, false, 1);

	*took = cpu_ns() - t0;
	*bytes = s ? s->bytes : 0;
	snapshot_unref(s);
}

/* Exit and entry of vCPUs in turn, as rings of several CPUs give them when merged. */
static size_t fill_batch(struct bench *b, struct sample *s, const pid_t *tid, unsigned n)
{
	size_t k = 0;

	while (k + 2 * n <= BATCH) {
		for (unsigned i = 0; i < n; i++)
			s[k++] = (struct sample){
				.time = b->now += 300,
				.tid = tid[i],
				.vcpu_id = (int)i & 1,
				.cpu = (uint16_t)i,
				.type = EV_EXIT,
				.isa = ISA_SVM,
				.key = reasons[next_random(b) % KEYS],
			};
		for (unsigned i = 0; i < n; i++)
			s[k++] = (struct sample){
				.time = b->now += 200 + next_random(b) % 1000,
				.tid = tid[i],
				.vcpu_id = (int)i & 1,
				.cpu = (uint16_t)i,
				.type = EV_ENTRY,
			};
	}
	return k;
}

/* Two VMs of two vCPUs. */
static double ns_an_event(unsigned long events)
{
	struct bench b = bench_new(2, 2);
	const pid_t tid[] = {1001, 1002, 1004, 1005};
	struct sample *s = calloc(BATCH, sizeof(*s));
	unsigned long done = 0;
	int64_t took = 0, t0;

	model_commit(b.m, b.now, (struct timespec){0}, false, 1);
	while (s && done < events) {
		size_t n = fill_batch(&b, s, tid, 4);

		t0 = cpu_ns();
		b.sink->samples(b.sink->ctx, s, n);
		took += cpu_ns() - t0;
		done += n;
		if (done % (BATCH * 2048) == 0)
			snapshot_unref(model_commit(b.m, b.now, (struct timespec){0}, false, 1));
	}
	free(s);
	bench_free(&b);
	return (double)took / (double)done;
}

#define INTERVALS 5

struct memory {
	double model_mib, snapshot_mib, commit_ms[INTERVALS];
};

/* Every vCPU has all keys, each with times over some octaves, for several intervals. */
static struct memory memory_of(unsigned vms, unsigned vcpus, bool all_rows)
{
	const struct demand d = {.exits_all_vcpus = all_rows};
	struct bench b = bench_new(vms, vcpus);
	struct memory out = {0};
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, bytes = 0;
	int64_t took = 0;

	model_demand(b.m, &d);
	tick(&b, &took, &bytes);
	for (int interval = 0; interval < INTERVALS; interval++) {
		for (unsigned i = 0; i < vms * vcpus * KEYS * 4; i++) {
			unsigned v = i / 4 % (vms * vcpus);
			struct sample s = {
				.time = b.now += 50,
				.tid = 1001 + (pid_t)(v / vcpus * (vcpus + 1) + v % vcpus),
				.vcpu_id = (int)(v % vcpus),
				.cpu = (uint16_t)(v % 512),
				.type = EV_EXIT,
				.isa = ISA_SVM,
				.key = reasons[i / 4 / (vms * vcpus)],
			};

			b.sink->samples(b.sink->ctx, &s, 1);
			s.type = EV_ENTRY;
			s.time = b.now += 1u << (9 + next_random(&b) % 6);
			b.sink->samples(b.sink->ctx, &s, 1);
		}
		tick(&b, &took, &bytes);
		out.commit_ms[interval] = (double)took / 1e6;
	}
	out.model_mib = (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / 1024 / 1024;
	out.snapshot_mib = (double)bytes / 1024 / 1024;
	bench_free(&b);
	return out;
}

/* One object a line, for bench.py's table. */
static void rows(const char *what, const double *value, unsigned n, const char *unit, double limit)
{
	printf("{\"what\": \"%s\", \"unit\": \"%s\", \"ours\": [", what, unit);
	for (unsigned i = 0; i < n; i++)
		printf("%s%.2f", i ? ", " : "", value[i]);
	printf("]");
	if (limit > 0)
		printf(", \"limit\": %g", limit);
	printf("}\n");
}

static void row(const char *what, double value, const char *unit, double limit)
{
	rows(what, &value, 1, unit, limit);
}

int main(int argc, char **argv)
{
	unsigned long million = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	struct memory small, large, recorded;

	row("model alone, an event", ns_an_event(million * 1000000), "ns", 40);
	small = memory_of(63, 16, false);
	large = memory_of(1000, 16, false);
	recorded = memory_of(1000, 16, true);
	row("memory: 1,008 vCPUs x 8 keys, 4 snapshots", small.model_mib + 4 * small.snapshot_mib,
	    "MiB", 64);
	row("memory: 16,000 vCPUs x 8 keys, 4 snapshots", large.model_mib + 4 * large.snapshot_mib,
	    "MiB", 256);
	row("  of it one snapshot", large.snapshot_mib, "MiB", 0);
	row("  with rows of every vCPU, 2 snapshots",
	    recorded.model_mib + 2 * recorded.snapshot_mib, "MiB", 256);
	rows("commit, 16,000 vCPUs x 8 keys", large.commit_ms, INTERVALS, "ms", 50);
	return 0;
}
