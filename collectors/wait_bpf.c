// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and attaching the programs that see who ran; see wait_bpf.h.
 */
#include "wait_bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_cost.h"

#ifdef KVMTOP_BPF

#include "bpf_load.h"
#include "event_format.h"

BPF_IMAGE(sched_wait);

/* In the order in which they may begin: a wait is never begun by one and not ended. */
enum { SWITCH, MIGRATE, WAKEUP, WAKEUP_NEW, EVENTS };

#define MAPS 4 /* that are mapped */

struct event {
	const char *name, *program;
	uint64_t id;
};

/*
 * ns a change of tasks, before it was measured: two processes that wake each other through pipes on
 * one CPU took 3.10 us of CPU a change with the programs and 2.56 without.
 */
#define ASSUMED_NS 540

struct wait_bpf {
	struct bpf_cost cost;
	struct bpf_object *object;
	struct bpf_link *link[EVENTS];
	struct wait_memory memory;
	struct bpf_memory mapped;
	int watched, members; /* the maps */
};

/* ---- the events' formats ---- */

static int load_format(const struct sysroot *root, const char *tracefs, struct event *e,
		       const struct event_field *field, size_t n, uint32_t *need)
{
	int rc = event_format(root, tracefs, "sched", e->name, field, n, need, &e->id);

	return rc ? rc : *need <= SW_RECORD ? 0 : -ENOTSUP;
}

/* The state is a long: its lower half is what counts, on either byte order. */
static void take_lower_half(struct sw_config *c)
{
	if (sizeof(long) == 8 && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		c->prev_state += 4;
}

static int load_formats(const struct sysroot *root, const char *tracefs, struct event *e,
			struct sw_config *c)
{
	const struct event_field at_switch[] = {
		{"prev_state", (int)sizeof(long), &c->prev_state, false},
		{"prev_pid", 4, &c->prev_pid, false},
		{"next_pid", 4, &c->next_pid, false},
		{"next_comm", SW_COMM, &c->next_comm, false},
	};
	const struct event_field at_migrate[] = {
		{"pid", 4, &c->migrate_pid, false},
		{"dest_cpu", 4, &c->migrate_to, false},
	};
	const struct event_field at_wakeup[] = {
		{"pid", 4, &c->wake_pid, false},
		{"target_cpu", 4, &c->wake_cpu, false},
	};
	int rc = load_format(root, tracefs, &e[SWITCH], at_switch, 4, &c->need_switch);

	if (!rc)
		rc = load_format(root, tracefs, &e[MIGRATE], at_migrate, 2, &c->need_migrate);
	if (!rc)
		rc = load_format(root, tracefs, &e[WAKEUP], at_wakeup, 2, &c->need_wakeup);
	if (!rc)
		rc = load_format(root, tracefs, &e[WAKEUP_NEW], at_wakeup, 2, &c->need_wakeup);
	take_lower_half(c);
	return rc;
}

/* ---- loading ---- */

static int size_maps(struct wait_bpf *b)
{
	uint32_t n = b->memory.threads;
	const struct bpf_size size[] = {
		{"threads", n},	    {"sets", n * SW_SETS},    {"wakes", n},
		{"watched", n * 2}, {"cpus", b->memory.cpus},
	};

	return bpf_load_sizes(b->object, size, sizeof(size) / sizeof(size[0]));
}

static void *map_memory(struct wait_bpf *b, const char *name, size_t entry, uint32_t n)
{
	return bpf_memory_map(&b->mapped, b->object, name, entry, n);
}

static int map_all(struct wait_bpf *b)
{
	struct wait_memory *m = &b->memory;

	m->thread = map_memory(b, "threads", sizeof(*m->thread), m->threads);
	m->set = map_memory(b, "sets", sizeof(*m->set), m->threads * SW_SETS);
	m->wake = map_memory(b, "wakes", sizeof(*m->wake), m->threads);
	m->cpu = map_memory(b, "cpus", sizeof(*m->cpu), m->cpus);
	b->watched = bpf_object__find_map_fd_by_name(b->object, "watched");
	b->members = bpf_object__find_map_fd_by_name(b->object, "members");
	return b->mapped.n == MAPS && b->watched >= 0 && b->members >= 0 ? 0 : -ENOMEM;
}

static int load(struct wait_bpf *b, const struct sw_config *c)
{
	int ncpu = libbpf_num_possible_cpus(), rc;

	if (ncpu <= 0)
		return ncpu ? ncpu : -ENOTSUP;
	b->memory.cpus = (uint32_t)ncpu;
	rc = BPF_OPEN(sched_wait, "kvmtop_wait", &b->object);
	if (!rc)
		rc = size_maps(b);
	if (!rc)
		rc = bpf_load_config(b->object, c, sizeof(*c));
	if (!rc)
		rc = bpf_object__load(b->object);
	return rc ? rc : map_all(b);
}

static int attach_all(struct wait_bpf *b, const struct sysroot *root, const struct event *e)
{
	int cpu = bpf_load_cpu(root), rc = cpu < 0 ? cpu : 0;

	for (unsigned i = 0; i < EVENTS && !rc; i++)
		rc = bpf_load_attach(b->object, e[i].program, e[i].id, cpu, &b->link[i]);
	return rc;
}

int wait_bpf_new(const struct sysroot *root, const char *tracefs, uint32_t threads,
		 struct wait_bpf **out)
{
	struct event e[EVENTS] = {
		[SWITCH] = {"sched_switch", "kvmtop_switch", 0},
		[MIGRATE] = {"sched_migrate_task", "kvmtop_migrate", 0},
		[WAKEUP] = {"sched_wakeup", "kvmtop_wakes", 0},
		[WAKEUP_NEW] = {"sched_wakeup_new", "kvmtop_new", 0},
	};
	struct wait_bpf *b = calloc(1, sizeof(*b));
	struct sw_config c = {0};
	int rc = b ? 0 : -ENOMEM;

	if (b)
		bpf_cost_init(&b->cost, ASSUMED_NS);
	if (!rc)
		rc = load_formats(root, tracefs, e, &c);
	if (!rc) {
		b->memory.threads = threads;
		rc = load(b, &c);
	}
	if (!rc)
		rc = attach_all(b, root, e);
	if (rc) {
		wait_bpf_free(b);
		return rc;
	}
	for (unsigned i = 0; i < EVENTS; i++)
		bpf_cost_add(&b->cost, bpf_program__fd(bpf_object__find_program_by_name(
					       b->object, e[i].program)));
	*out = b;
	return 0;
}

void wait_bpf_free(struct wait_bpf *b)
{
	if (!b)
		return;
	bpf_cost_end(&b->cost);
	for (unsigned i = 0; i < EVENTS; i++)
		bpf_link__destroy(b->link[i]);
	bpf_memory_unmap(&b->mapped);
	bpf_object__close(b->object);
	free(b);
}

struct wait_memory *wait_bpf_memory(struct wait_bpf *b)
{
	return &b->memory;
}

uint64_t wait_bpf_cost(struct wait_bpf *b, int64_t now, uint64_t n)
{
	return bpf_cost_tick(&b->cost, now, n);
}

static int put(int map, pid_t tid, uint32_t value)
{
	__u32 key = (__u32)tid;

	return bpf_map_update_elem(map, &key, &value, BPF_ANY) < 0 ? -errno : 0;
}

static void take_out(int map, pid_t tid)
{
	__u32 key = (__u32)tid;

	bpf_map_delete_elem(map, &key);
}

int wait_bpf_watch(struct wait_bpf *b, pid_t tid, uint32_t index)
{
	return put(b->watched, tid, index);
}

void wait_bpf_unwatch(struct wait_bpf *b, pid_t tid)
{
	take_out(b->watched, tid);
}

int wait_bpf_member(struct wait_bpf *b, pid_t tid, uint32_t vm)
{
	return put(b->members, tid, vm);
}

void wait_bpf_no_member(struct wait_bpf *b, pid_t tid)
{
	take_out(b->members, tid);
}

#else /* made without BPF */

int wait_bpf_new(const struct sysroot *root, const char *tracefs, uint32_t threads,
		 struct wait_bpf **out)
{
	(void)root;
	(void)tracefs;
	(void)threads;
	(void)out;
	return -ENOTSUP;
}

void wait_bpf_free(struct wait_bpf *b)
{
	(void)b;
}

struct wait_memory *wait_bpf_memory(struct wait_bpf *b)
{
	(void)b;
	return NULL;
}

uint64_t wait_bpf_cost(struct wait_bpf *b, int64_t now, uint64_t n)
{
	(void)b;
	(void)now;
	(void)n;
	return 0;
}

int wait_bpf_watch(struct wait_bpf *b, pid_t tid, uint32_t index)
{
	(void)b;
	(void)tid;
	(void)index;
	return -ENOTSUP;
}

void wait_bpf_unwatch(struct wait_bpf *b, pid_t tid)
{
	(void)b;
	(void)tid;
}

int wait_bpf_member(struct wait_bpf *b, pid_t tid, uint32_t vm)
{
	(void)b;
	(void)tid;
	(void)vm;
	return -ENOTSUP;
}

void wait_bpf_no_member(struct wait_bpf *b, pid_t tid)
{
	(void)b;
	(void)tid;
}

#endif
