// SPDX-License-Identifier: GPL-2.0-only
/* Loading and reading the program that sees writes to PMU MSRs; see vpmu_msrs.h. */
#include "vpmu_msrs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

static int in_order(const void *a, const void *b)
{
	const struct vpmu_entry *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->a.msr != y->a.msr)
		return x->a.msr < y->a.msr ? -1 : 1;
	return (x->last < y->last) - (x->last > y->last);
}

size_t vpmu_entries_once(struct vpmu_entry *e, size_t n)
{
	size_t left = 0;

	if (n)
		qsort(e, n, sizeof(*e), in_order);
	for (size_t i = 0; i < n; i++)
		if (!left || e[left - 1].tid != e[i].tid || e[left - 1].a.msr != e[i].a.msr)
			e[left++] = e[i];
	return left;
}

#ifdef KVMTOP_BPF

#include "bpf/vpmu_msr.h"
#include "bpf_load.h"
#include "event_format.h"

BPF_IMAGE(vpmu_msr);

#define ENTRIES 16384 /* of the kernel's memory 2 MiB: 800 vCPUs whose guests use all they have */

struct vpmu_msrs {
	struct bpf_object *object;
	struct bpf_link *link;
	int map;
	struct vpmu_entry *entry;
	size_t n, cap;
};

/* Without `exception` each write is taken for one that took effect. */
static int load_format(const struct sysroot *root, const char *tracefs, struct vm_config *c,
		       uint64_t *id)
{
	const struct event_field field[] = {
		{"write", 4, &c->write, false},
		{"ecx", 4, &c->ecx, false},
		{"data", 8, &c->data, false},
		{"exception", 1, &c->exception, true},
	};
	int rc = event_format(root, tracefs, "kvm", "kvm_msr", field,
			      sizeof(field) / sizeof(field[0]), &c->need, id);

	return rc ? rc : c->need <= VM_RECORD ? 0 : -ENOTSUP;
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
	static const struct bpf_size size = {"accesses", ENTRIES};
	int rc = BPF_OPEN(vpmu_msr, "kvmtop_vpmu", &m->object);

	if (!rc)
		rc = bpf_load_sizes(m->object, &size, 1);
	if (!rc)
		rc = bpf_load_config(m->object, c, sizeof(*c));
	if (!rc)
		rc = bpf_object__load(m->object);
	if (!rc)
		m->map = bpf_object__find_map_fd_by_name(m->object, size.map);
	return rc;
}

static int attach(struct vpmu_msrs *m, const struct sysroot *root, uint64_t id)
{
	int cpu = bpf_load_cpu(root);

	return cpu < 0 ? cpu : bpf_load_attach(m->object, "kvmtop_vpmu", id, cpu, &m->link);
}

int vpmu_msrs_new(const struct sysroot *root, const char *tracefs, struct vpmu_msrs **out)
{
	struct vpmu_msrs *m = calloc(1, sizeof(*m));
	struct vm_config c = {0};
	uint64_t id = 0;
	int rc = m ? load_format(root, tracefs, &c, &id) : -ENOMEM;

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
		      .written = (int64_t)a->written,
		      .count = a->count,
		      .nrefused = a->refused},
	};
	return 0;
}

static void forget(struct vpmu_msrs *m, int64_t now, vpmu_since since, void *ctx)
{
	size_t left = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct vpmu_entry *e = &m->entry[i];
		struct vm_key k = {(__u32)e->tid, e->a.msr};

		if (vpmu_entry_over(e, since(ctx, e->tid), now))
			bpf_map_delete_elem(m->map, &k);
		else
			m->entry[left++] = *e;
	}
	m->n = left;
}

const struct vpmu_entry *vpmu_msrs_read(struct vpmu_msrs *m, int64_t now, vpmu_since since,
					void *ctx, size_t *n)
{
	struct vm_key at, next;
	struct vm_access a;
	bool first = true;

	m->n = 0;
	/* Bounded: one that makes room meanwhile begins the walk anew, and others come twice. */
	for (int i = 0; i < 2 * ENTRIES; i++) {
		if (bpf_map_get_next_key(m->map, first ? NULL : &at, &next) < 0)
			break;
		first = false;
		at = next;
		if (bpf_map_lookup_elem(m->map, &at, &a) == 0 && add(m, &at, &a) < 0)
			break;
	}
	m->n = vpmu_entries_once(m->entry, m->n);
	forget(m, now, since, ctx);
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

const struct vpmu_entry *vpmu_msrs_read(struct vpmu_msrs *m, int64_t now, vpmu_since since,
					void *ctx, size_t *n)
{
	(void)m;
	(void)now;
	(void)since;
	(void)ctx;
	*n = 0;
	return NULL;
}

#endif
