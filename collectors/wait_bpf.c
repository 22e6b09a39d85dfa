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
#include "sysroot.h"

#ifdef KVMTOP_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <event-parse.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* KVMTOP_BPF is the folder of the object files. */
__asm__(".section .rodata\n"
	".balign 8\n"
	".globl kvmtop_sched_wait_begin\n"
	"kvmtop_sched_wait_begin:\n"
	".incbin \"" KVMTOP_BPF "/sched_wait.bpf.o\"\n"
	".globl kvmtop_sched_wait_end\n"
	"kvmtop_sched_wait_end:\n"
	".previous\n");
extern const char kvmtop_sched_wait_begin[], kvmtop_sched_wait_end[];

#define FORMAT_MAX 8192
#define EVENTS 4
#define MAPS 4

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
	void *mapped[MAPS];
	size_t len[MAPS];
	unsigned nmapped;
	int watched, members; /* the maps */
};

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* ---- the events' formats ---- */

/* Where a field of `size` bytes is. */
struct place {
	const char *name;
	int size;
	uint32_t *at, *need;
};

static int find(struct tep_event *ev, const struct place *p)
{
	struct tep_format_field *f = tep_find_any_field(ev, p->name);
	uint32_t end;

	if (!f || f->size != p->size || f->offset < 0 || f->offset % (p->size > 4 ? 8 : 4))
		return -ENOTSUP;
	*p->at = (uint32_t)f->offset;
	end = (uint32_t)(f->offset + f->size + 7) & ~7u;
	*p->need = end > *p->need ? end : *p->need;
	return end <= SW_RECORD ? 0 : -ENOTSUP;
}

/* The state is a long: its lower half is what counts, on either byte order. */
static int find_state(struct tep_event *ev, struct sw_config *c)
{
	struct place p = {"prev_state", (int)sizeof(long), &c->prev_state, &c->need_switch};
	int rc = find(ev, &p);

	if (!rc && sizeof(long) == 8 && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		c->prev_state += 4;
	return rc;
}

static int parse(struct tep_event *ev, struct sw_config *c)
{
	const struct place at_switch[] = {
		{"prev_pid", 4, &c->prev_pid, &c->need_switch},
		{"next_pid", 4, &c->next_pid, &c->need_switch},
		{"next_comm", SW_COMM, &c->next_comm, &c->need_switch},
	};
	const struct place at_wakeup[] = {
		{"pid", 4, &c->wake_pid, &c->need_wakeup},
		{"target_cpu", 4, &c->wake_cpu, &c->need_wakeup},
	};
	const struct place at_migrate[] = {
		{"pid", 4, &c->migrate_pid, &c->need_migrate},
		{"dest_cpu", 4, &c->migrate_to, &c->need_migrate},
	};
	const struct place *p = at_wakeup;
	size_t n = 2;
	int rc = 0;

	if (!strcmp(ev->name, "sched_switch")) {
		rc = find_state(ev, c);
		p = at_switch;
		n = 3;
	} else if (!strcmp(ev->name, "sched_migrate_task")) {
		p = at_migrate;
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = find(ev, &p[i]);
	return rc;
}

static int load_format(const struct sysroot *root, const char *tracefs, struct event *e,
		       struct sw_config *c)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *ev = NULL;
	char buf[FORMAT_MAX];
	ssize_t n = sysroot_readf(root, buf, sizeof(buf), "%s/events/sched/%s/format", tracefs,
				  e->name);
	int rc = tep ? 0 : -ENOMEM;

	if (n < 0)
		rc = (int)n;
	if (!rc && tep_parse_format(tep, &ev, buf, (size_t)n, "sched") != 0)
		rc = -ENOTSUP;
	if (!rc)
		rc = parse(ev, c);
	if (!rc)
		e->id = (uint64_t)ev->id;
	tep_free(tep);
	return rc;
}

/* ---- loading ---- */

static int size_map(struct bpf_object *o, const char *name, uint32_t entries)
{
	struct bpf_map *m = bpf_object__find_map_by_name(o, name);

	return m ? bpf_map__set_max_entries(m, entries) : -ENOENT;
}

static int size_maps(struct wait_bpf *b)
{
	uint32_t n = b->memory.threads;
	int rc = size_map(b->object, "threads", n);

	if (!rc)
		rc = size_map(b->object, "sets", n * SW_SETS);
	if (!rc)
		rc = size_map(b->object, "wakes", n);
	if (!rc)
		rc = size_map(b->object, "cpus", b->memory.cpus);
	return rc ? rc : size_map(b->object, "watched", n * 2);
}

static void *map_memory(struct wait_bpf *b, const char *name, size_t entry, uint32_t n)
{
	struct bpf_map *m = bpf_object__find_map_by_name(b->object, name);
	void *at;

	if (!m || bpf_map__value_size(m) != entry || b->nmapped == MAPS)
		return NULL;
	at = mmap(NULL, entry * n, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(m), 0);
	if (at == MAP_FAILED)
		return NULL;
	b->mapped[b->nmapped] = at;
	b->len[b->nmapped++] = entry * n;
	return at;
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
	return b->nmapped == MAPS && b->watched >= 0 && b->members >= 0 ? 0 : -ENOMEM;
}

static int load(struct wait_bpf *b, const struct sw_config *c)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "kvmtop_wait");
	int ncpu = libbpf_num_possible_cpus(), rc;
	struct bpf_map *config;

	if (ncpu <= 0)
		return ncpu ? ncpu : -ENOTSUP;
	b->memory.cpus = (uint32_t)ncpu;
	b->object = bpf_object__open_mem(kvmtop_sched_wait_begin,
					 (size_t)(kvmtop_sched_wait_end - kvmtop_sched_wait_begin),
					 &opts);
	if (!b->object)
		return -errno;
	rc = size_maps(b);
	config = bpf_object__find_map_by_name(b->object, ".rodata.config");
	if (!rc)
		rc = config ? bpf_map__set_initial_value(config, c, sizeof(*c)) : -ENOENT;
	if (!rc)
		rc = bpf_object__load(b->object);
	return rc ? rc : map_all(b);
}

/*
 * No sampling: the event is there for the program's sake only, which runs on all CPUs. Enabled, it
 * would be counted after the program on its own CPU each time.
 */
static int attach(struct wait_bpf *b, const struct event *e, int cpu, struct bpf_link **out)
{
	struct bpf_program *p = bpf_object__find_program_by_name(b->object, e->program);
	struct perf_event_attr a = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(a),
		.config = e->id,
	};
	int fd;

	if (!p)
		return -ENOENT;
	fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*out = bpf_program__attach_perf_event(p, fd);
	if (*out) {
		(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		return 0;
	}
	fd = (close(fd), -errno);
	return fd ? fd : -EINVAL;
}

static int attach_all(struct wait_bpf *b, const struct sysroot *root, const struct event *e)
{
	int *cpu = NULL, n = kvm_online_cpus(root, &cpu), rc = n < 0 ? n : n ? 0 : -ENODEV;

	for (unsigned i = 0; i < EVENTS && !rc; i++)
		rc = attach(b, &e[i], cpu[0], &b->link[i]);
	free(cpu);
	return rc;
}

int wait_bpf_new(const struct sysroot *root, const char *tracefs, uint32_t threads,
		 struct wait_bpf **out)
{
	/* In the order in which they may begin: a wait is never begun by one and not ended. */
	struct event e[EVENTS] = {
		{"sched_switch", "kvmtop_switch", 0},
		{"sched_migrate_task", "kvmtop_migrate", 0},
		{"sched_wakeup", "kvmtop_wakes", 0},
		{"sched_wakeup_new", "kvmtop_new", 0},
	};
	struct wait_bpf *b = calloc(1, sizeof(*b));
	struct sw_config c = {0};
	int rc = b ? 0 : -ENOMEM;

	if (b)
		bpf_cost_init(&b->cost, ASSUMED_NS);
	for (unsigned i = 0; i < EVENTS && !rc; i++)
		rc = load_format(root, tracefs, &e[i], &c);
	libbpf_set_print(silent); /* its warnings would write into the screen */
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
	for (unsigned i = 0; i < b->nmapped; i++)
		munmap(b->mapped[i], b->len[i]);
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
