// SPDX-License-Identifier: GPL-2.0-only
/* Loading and reading the program that sees writes to PMU MSRs; see vpmu_msrs.h. */
#include "vpmu_msrs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "kvm_access.h"
#include "sysroot.h"

#ifdef KVMTOP_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <event-parse.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/vpmu_msr.h"

/* KVMTOP_BPF is the folder of the object files. */
__asm__(".section .rodata\n"
	".balign 8\n"
	".globl kvmtop_vpmu_msr_begin\n"
	"kvmtop_vpmu_msr_begin:\n"
	".incbin \"" KVMTOP_BPF "/vpmu_msr.bpf.o\"\n"
	".globl kvmtop_vpmu_msr_end\n"
	"kvmtop_vpmu_msr_end:\n"
	".previous\n");
extern const char kvmtop_vpmu_msr_begin[], kvmtop_vpmu_msr_end[];

#define FORMAT_MAX 4096
#define ENTRIES 16384 /* of the kernel's memory 2 MiB: 800 vCPUs whose guests use all they have */
#define FORGET_NS (30 * NS_PER_S)

struct vpmu_msrs {
	struct bpf_object *object;
	struct bpf_link *link;
	int map;
	struct vpmu_entry *entry;
	size_t n, cap;
};

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* ---- the event's format ---- */

static int find(struct tep_event *ev, const char *name, int size, uint32_t *at, uint32_t *need)
{
	struct tep_format_field *f = tep_find_any_field(ev, name);
	uint32_t end;

	if (!f || f->size != size || f->offset < 0 || f->offset % size)
		return -ENOTSUP;
	*at = (uint32_t)f->offset;
	end = (uint32_t)(f->offset + f->size + 7) & ~7u;
	*need = end > *need ? end : *need;
	return end <= VM_RECORD ? 0 : -ENOTSUP;
}

static int parse(struct tep_event *ev, struct vm_config *c)
{
	int rc = find(ev, "write", 4, &c->write, &c->need);

	if (!rc)
		rc = find(ev, "ecx", 4, &c->ecx, &c->need);
	if (!rc)
		rc = find(ev, "data", 8, &c->data, &c->need);
	/* Without it each write is taken for one that took effect. */
	if (!rc && find(ev, "exception", 1, &c->exception, &c->need) < 0)
		c->exception = 0;
	return rc;
}

static int load_format(const struct sysroot *root, const char *tracefs, struct vm_config *c,
		       uint64_t *id)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *ev = NULL;
	char buf[FORMAT_MAX];
	ssize_t n = sysroot_readf(root, buf, sizeof(buf), "%s/events/kvm/kvm_msr/format", tracefs);
	int rc = tep ? 0 : -ENOMEM;

	if (n < 0)
		rc = (int)n;
	if (!rc && tep_parse_format(tep, &ev, buf, (size_t)n, "kvm") != 0)
		rc = -ENOTSUP;
	if (!rc)
		rc = parse(ev, c);
	if (!rc)
		*id = (uint64_t)ev->id;
	tep_free(tep);
	return rc;
}

static void set_ranges(struct vm_config *c)
{
	_Static_assert(PMU_RANGES <= VM_RANGES, "all ranges find room in the program");

	for (size_t i = 0; i < VM_RANGES; i++)
		c->range[i] = i < PMU_RANGES
				      ? (struct vm_range){pmu_ranges[i].first, pmu_ranges[i].last}
				      : (struct vm_range){1, 0};
}

/* ---- loading ---- */

static int load(struct vpmu_msrs *m, const struct vm_config *c)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "kvmtop_vpmu");
	struct bpf_map *config, *map;
	int rc;

	m->object =
		bpf_object__open_mem(kvmtop_vpmu_msr_begin,
				     (size_t)(kvmtop_vpmu_msr_end - kvmtop_vpmu_msr_begin), &opts);
	if (!m->object)
		return -errno;
	config = bpf_object__find_map_by_name(m->object, ".rodata.config");
	map = bpf_object__find_map_by_name(m->object, "accesses");
	if (!config || !map)
		return -ENOENT;
	rc = bpf_map__set_max_entries(map, ENTRIES);
	if (!rc)
		rc = bpf_map__set_initial_value(config, c, sizeof(*c));
	if (!rc)
		rc = bpf_object__load(m->object);
	m->map = bpf_map__fd(map);
	return rc;
}

/* No sampling: the event is there for the program's sake only, and counts on all CPUs. */
static int attach(struct vpmu_msrs *m, const struct sysroot *root, uint64_t id)
{
	struct bpf_program *p = bpf_object__find_program_by_name(m->object, "kvmtop_vpmu");
	struct perf_event_attr a = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(a),
		.config = id,
	};
	int *cpu = NULL, n = kvm_online_cpus(root, &cpu), fd = -1, rc;

	if (n > 0)
		fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu[0], -1, PERF_FLAG_FD_CLOEXEC);
	rc = n <= 0 ? (n ? n : -ENODEV) : fd < 0 ? -errno : 0;
	free(cpu);
	if (rc || !p) {
		if (fd >= 0)
			close(fd);
		return rc ? rc : -ENOENT;
	}
	m->link = bpf_program__attach_perf_event(p, fd);
	if (m->link)
		return 0;
	rc = -errno;
	close(fd);
	return rc ? rc : -EINVAL;
}

int vpmu_msrs_new(const struct sysroot *root, const char *tracefs, struct vpmu_msrs **out)
{
	struct vpmu_msrs *m = calloc(1, sizeof(*m));
	struct vm_config c = {0};
	uint64_t id = 0;
	int rc = m ? load_format(root, tracefs, &c, &id) : -ENOMEM;

	libbpf_set_print(silent); /* its warnings would write into the screen */
	set_ranges(&c);
	if (!rc)
		rc = load(m, &c);
	if (!rc)
		rc = attach(m, root, id);
	if (rc) {
		vpmu_msrs_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

void vpmu_msrs_free(struct vpmu_msrs *m)
{
	if (!m)
		return;
	bpf_link__destroy(m->link);
	bpf_object__close(m->object);
	free(m->entry);
	free(m);
}

/* ---- reading ---- */

static int add(struct vpmu_msrs *m, const struct vm_key *k, const struct vm_access *a)
{
	struct vpmu_entry *grown;

	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 64;

		grown = reallocarray(m->entry, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		m->entry = grown;
		m->cap = cap;
	}
	m->entry[m->n++] = (struct vpmu_entry){
		.tid = (pid_t)k->tid,
		.last = (int64_t)a->last,
		.a = {.msr = k->msr,
		      .has_value = a->has_value != 0,
		      .refused = a->write_refused != 0,
		      .value = a->value,
		      .count = a->count,
		      .nrefused = a->refused},
	};
	return 0;
}

static int in_order(const void *a, const void *b)
{
	const struct vpmu_entry *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->a.msr > y->a.msr) - (x->a.msr < y->a.msr);
}

/* Threads that ended: their numbers may be others' one day. */
static void forget(struct vpmu_msrs *m, int64_t now, bool (*known)(void *ctx, pid_t tid), void *ctx)
{
	size_t left = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct vpmu_entry *e = &m->entry[i];
		struct vm_key k = {(__u32)e->tid, e->a.msr};

		if (!known(ctx, e->tid) && now - e->last > FORGET_NS)
			bpf_map_delete_elem(m->map, &k);
		else
			m->entry[left++] = *e;
	}
	m->n = left;
}

const struct vpmu_entry *vpmu_msrs_read(struct vpmu_msrs *m, int64_t now,
					bool (*known)(void *ctx, pid_t tid), void *ctx, size_t *n)
{
	struct vm_key at, next;
	struct vm_access a;
	bool first = true;

	m->n = 0;
	/* Bounded: one that vanishes meanwhile begins the walk anew. */
	for (int i = 0; i < 2 * ENTRIES; i++) {
		if (bpf_map_get_next_key(m->map, first ? NULL : &at, &next) < 0)
			break;
		first = false;
		at = next;
		if (bpf_map_lookup_elem(m->map, &at, &a) == 0 && add(m, &at, &a) < 0)
			break;
	}
	if (m->n)
		qsort(m->entry, m->n, sizeof(m->entry[0]), in_order);
	forget(m, now, known, ctx);
	*n = m->n;
	return m->n ? m->entry : NULL;
}

#else /* made without BPF */

int vpmu_msrs_new(const struct sysroot *root, const char *tracefs, struct vpmu_msrs **out)
{
	(void)root;
	(void)tracefs;
	(void)out;
	return -ENOTSUP;
}

void vpmu_msrs_free(struct vpmu_msrs *m)
{
	(void)m;
}

const struct vpmu_entry *vpmu_msrs_read(struct vpmu_msrs *m, int64_t now,
					bool (*known)(void *ctx, pid_t tid), void *ctx, size_t *n)
{
	(void)m;
	(void)now;
	(void)known;
	(void)ctx;
	*n = 0;
	return NULL;
}

#endif
