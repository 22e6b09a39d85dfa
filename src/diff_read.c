// SPDX-License-Identifier: GPL-2.0-only
/* One side of a comparison: sums by blocks out of a recording (diff.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "diff.h"
#include "filter.h"
#include "snapshot.h"
#include "store.h"
#include "store_span.h"

/* Names come from the file; a host with a thousand VMs has a tenth of it. */
#define SERIES_MOST 1000000u
#define VMS_MOST 100000u

/* ---- series ---- */

static uint32_t hash_text(uint32_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return (h ^ 0xff) * 16777619u;
}

static uint32_t hash_of(const struct diff_series *k)
{
	uint32_t h = 2166136261u;

	h = (h ^ k->vm) * 16777619u;
	h = (h ^ k->what) * 16777619u;
	h = (h ^ k->kind) * 16777619u;
	h = hash_text(hash_text(h, k->name), k->module);
	return h ^ h >> 15;
}

static bool same(const struct diff_series *a, const struct diff_series *b)
{
	return a->vm == b->vm && a->what == b->what && a->kind == b->kind &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->module, b->module) == 0;
}

/* Where its number is (plus one), or the free place where it would go. */
static uint32_t *find_slot(const struct diff_side *side, const struct diff_series *key)
{
	size_t mask = side->nslot - 1, at = hash_of(key) & mask;

	while (side->slot[at] && !same(&side->series[side->slot[at] - 1], key))
		at = (at + 1) & mask;
	return &side->slot[at];
}

const struct diff_series *diff_find(const struct diff_side *side, const struct diff_series *key)
{
	uint32_t slot = side->nslot ? *find_slot(side, key) : 0;

	return slot ? &side->series[slot - 1] : NULL;
}

/* Room for one more. */
static int grow(struct diff_side *side)
{
	size_t n = side->nslot ? side->nslot * 2 : 1024;
	struct diff_series *more;
	uint32_t *slot;

	if (side->nseries >= SERIES_MOST)
		return -E2BIG;
	if (side->nseries * 2 < side->nslot)
		return 0;
	more = reallocarray(side->series, n / 2 + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	side->series = more;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(side->slot);
	side->slot = slot;
	side->nslot = n;
	for (size_t i = 0; i < side->nseries; i++)
		*find_slot(side, &side->series[i]) = (uint32_t)i + 1;
	return 0;
}

static int new_series(struct diff_side *side, const struct diff_series *key, uint32_t *slot)
{
	struct diff_series one = *key;

	one.name = strdup(key->name);
	one.module = strdup(key->module);
	one.block = calloc(DIFF_BLOCKS, sizeof(*one.block));
	one.sum = 0;
	if (!one.name || !one.module || !one.block) {
		free((char *)one.name);
		free((char *)one.module);
		free(one.block);
		return -ENOMEM;
	}
	side->series[side->nseries++] = one;
	*slot = (uint32_t)side->nseries;
	return 0;
}

/* What is being added: to which side, which VM, which block. */
struct adder {
	struct diff_side *side;
	uint32_t vm;
	unsigned block;
	int rc;
};

int diff_put(struct diff_side *side, uint32_t vm, unsigned block, const struct diff_series *like,
	     double v)
{
	struct diff_series key = *like, *s;
	uint32_t *slot;
	int rc = grow(side);

	if (rc)
		return rc;
	key.vm = vm;
	slot = find_slot(side, &key);
	if (!*slot) {
		rc = new_series(side, &key, slot);
		if (rc)
			return rc;
	}
	s = &side->series[*slot - 1];
	s->block[block] += v;
	s->sum += v;
	return 0;
}

static void add(struct adder *a, enum diff_what what, unsigned kind, const char *name,
		const char *module, double v)
{
	const struct diff_series key = {
		.what = (uint8_t)what, .kind = (uint8_t)kind, .name = name, .module = module};

	if (!a->rc)
		a->rc = diff_put(a->side, a->vm, a->block, &key, v);
}

/* ---- VMs ---- */

static bool ends_in_pid(const struct snap_vm *vm)
{
	char pid[24];
	size_t n = strlen(vm->name), len;

	len = (size_t)snprintf(pid, sizeof(pid), ":%d", (int)vm->pid);
	return n > len && strcmp(vm->name + n - len, pid) == 0;
}

static bool is_vm(const struct diff_vm *known, const struct snap_vm *vm, const char *uuid,
		  bool by_pid)
{
	if (*uuid || *known->uuid)
		return strcmp(known->uuid, uuid) == 0;
	if (by_pid || known->by_pid)
		return strcmp(known->vm_id, vm->vm_id) == 0;
	return strcmp(known->name, vm->name) == 0;
}

static int new_vm(struct diff_side *side, const struct snap_vm *vm, const char *uuid, bool by_pid)
{
	struct diff_vm *more, *one;

	if (side->nvm >= VMS_MOST)
		return -E2BIG;
	more = reallocarray(side->vm, side->nvm + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	side->vm = more;
	one = &more[side->nvm++];
	*one = (struct diff_vm){.name = strdup(vm->name),
				.uuid = strdup(uuid),
				.vm_id = strdup(vm->vm_id),
				.by_pid = by_pid};
	return one->name && one->uuid && one->vm_id ? 0 : -ENOMEM;
}

/* The same VM has the same number over all intervals, also when it was started anew meanwhile. */
int diff_vm_number(struct diff_side *side, const struct snap_vm *vm, uint64_t at, uint32_t hint,
		   uint32_t *out)
{
	/* A UUID that another VM has as well is no one's. */
	const char *uuid = strcmp(vm->vm_id, vm->uuid) == 0 ? vm->uuid : "";
	bool by_pid = !*uuid && ends_in_pid(vm);
	struct diff_vm *found;
	size_t i = hint;
	int rc;

	/* They stand in the same order in most intervals. */
	if (i >= side->nvm || !is_vm(&side->vm[i], vm, uuid, by_pid))
		for (i = 0; i < side->nvm && !is_vm(&side->vm[i], vm, uuid, by_pid);)
			i++;
	if (i == side->nvm) {
		rc = new_vm(side, vm, uuid, by_pid);
		if (rc)
			return rc;
	}
	found = &side->vm[i];
	found->twice = found->twice || found->seen == at + 1;
	found->seen = at + 1;
	found->nvcpu = vm->nvcpu;
	*out = (uint32_t)i;
	return 0;
}

/* ---- an interval ---- */

static void add_known(struct adder *a, enum diff_what what, unsigned n, const char *name,
		      struct value v, double seconds)
{
	if (!value_has(v) || !isfinite(v.v)) /* a file may say anything */
		return;
	add(a, what, n, name, "", v.v * seconds);
	add(a, DIFF_TIME, DIFF_TIME_USE + n, "", "", seconds);
}

static void add_host(struct adder *a, const struct snap_host *h, double dt)
{
	const struct {
		const char *name;
		struct value v;
	} figures[] = {
		{"usr", h->usr},   {"sys", h->sys},	{"irq", h->irq},
		{"iowait", h->wa}, {"stolen", h->st},	{"guest", h->guest},
		{"idle", h->idle}, {"steal", h->steal}, {"exit", h->exit_pct},
	};

	a->vm = DIFF_HOST;
	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		add_known(a, DIFF_HOSTS, i, figures[i].name, figures[i].v, dt);
}

static struct value times(struct value v, double f)
{
	v.v *= f;
	return v;
}

/* Sums over threads count once a vCPU; what is a mean over vCPUs already counts as often as those.
 */
static void add_use(struct adder *a, const struct snap_vm *vm, double dt)
{
	double n = vm->nvcpu;
	const struct {
		const char *name;
		struct value v;
	} figures[] = {
		{"cpu", times(vm->use.cpu, 1 / n)}, {"guest", times(vm->use.guest, 1 / n)},
		{"sys", times(vm->use.sys, 1 / n)}, {"steal", vm->use.steal},
		{"throt", vm->use.throt},	    {"exit", vm->ex.pct},
	};

	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		add_known(a, DIFF_USE, i, figures[i].name, figures[i].v, n * dt);
}

static void add_wakes(struct adder *a, const struct snap_waits *w, double dt)
{
	const struct {
		const char *name;
		struct value v;
	} figures[] = {{"p50", w->wake_p50}, {"p99", w->wake_p99}};

	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (!value_has(figures[i].v) || !isfinite(figures[i].v.v))
			continue;
		add(a, DIFF_WAKES, i, figures[i].name, "", figures[i].v.v / 1e3 * dt);
		add(a, DIFF_TIME, DIFF_TIME_WAKES + i, "", "", dt);
	}
}

/* Its rows are of all that a VM's vCPUs waited, also where that was nothing. */
static void add_waited(struct adder *a, const struct snapshot *s, const struct snap_vm *vm,
		       double vcpu_s)
{
	if (!value_has(vm->waits.pct))
		return;
	for (uint32_t i = vm->waits.first; i < vm->waits.first + vm->waits.n; i++) {
		const struct snap_waited *w = &s->waited[i];
		double v = value_has(w->pct) && isfinite(w->pct.v) ? w->pct.v * vcpu_s : 0;

		add(a, DIFF_WAITED, w->kind, w->name, "", v);
		add(a, DIFF_TOTAL, DIFF_TOTAL_WAITED, "", "", v);
	}
	add(a, DIFF_TIME, DIFF_TIME_WAITED, "", "", vcpu_s);
}

static void add_exits(struct adder *a, const struct snapshot *s, const struct snap_vm *vm,
		      double vcpu_s)
{
	for (uint32_t i = vm->ex.first; i < vm->ex.first + vm->ex.n; i++) {
		const struct snap_exit *x = &s->exits[i];
		double count = (double)x->now.count, t = (double)x->now.time_ns * 1e-7;

		if (x->kind >= KIND_NR || !(s->open_kinds & KIND_BIT(x->kind)))
			continue;
		add(a, DIFF_EXITS, x->kind, x->name, "", count);
		add(a, DIFF_TOTAL, x->kind, "", "", count);
		if (!x->has_time || x->idle)
			continue;
		add(a, DIFF_EXIT_TIME, x->kind, x->name, "", t);
		add(a, DIFF_TOTAL, DIFF_TOTAL_TIME + x->kind, "", "", t);
	}
	for (unsigned k = 0; k < KIND_NR; k++)
		if (s->open_kinds & KIND_BIT(k))
			add(a, DIFF_TIME, k, "", "", vcpu_s);
}

bool diff_wants_domain(const struct diff_side *side, unsigned domain)
{
	if (side->part == DIFF_WHOLE)
		return true;
	return domain < DOMAIN_NR && DOMAIN_IS_GUEST(domain) == (side->part == DIFF_GUEST_PART);
}

uint8_t diff_domain_kind(const struct diff_side *side, unsigned domain)
{
	if (side->part == DIFF_WHOLE)
		return (uint8_t)domain;
	return domain == DOMAIN_HOST_KERNEL || domain == DOMAIN_GUEST_KERNEL ? DIFF_KERNEL
									     : DIFF_USER;
}

static void add_symbols(struct adder *a, const struct snapshot *s, const struct snap_vm *vm,
			double vcpu_s)
{
	double a_sample = s->sampling.hz ? 100.0 / s->sampling.hz : 0;

	if (!s->sampling.open || !s->sampling.hz)
		return;
	for (uint32_t i = vm->sym.first; i < vm->sym.first + vm->sym.rows; i++) {
		const struct snap_symbol *y = &s->symbols[i];
		double v = (double)y->samples * a_sample;
		unsigned domain = y->other ? DOMAIN_NR : y->key.domain;

		if (!diff_wants_domain(a->side, domain))
			continue;
		domain = diff_domain_kind(a->side, domain);
		add(a, DIFF_SYMBOLS, domain, y->name, y->module, v);
		if (a->side->part != DIFF_WHOLE)
			add(a, DIFF_SYMBOLS, domain, DIFF_ALL, "", v);
		add(a, DIFF_TOTAL, DIFF_TOTAL_SAMPLES, "", "", v);
	}
	add(a, DIFF_TIME, DIFF_TIME_SAMPLES, "", "", vcpu_s);
}

static void add_vm(struct adder *a, const struct snapshot *s, const struct snap_vm *vm)
{
	double dt = (double)s->dt / 1e9, vcpu_s = dt * vm->nvcpu;

	if (!vm->nvcpu)
		return;
	if (a->side->part == DIFF_WHOLE) {
		add_use(a, vm, dt);
		add_wakes(a, &vm->waits, dt);
		add_waited(a, s, vm, vcpu_s);
		add_exits(a, s, vm, vcpu_s);
	}
	add_symbols(a, s, vm, vcpu_s);
}

static void add_interval(struct diff_side *side, const struct snapshot *s)
{
	const char *boot = s->host.boot_id ? s->host.boot_id : "";
	int64_t end = timespec_ns(s->wall);

	if (!side->intervals)
		side->first = end - s->dt;
	if (side->intervals && strncmp(side->boot_id, boot, sizeof(side->boot_id) - 1) != 0)
		side->boots = true;
	snprintf(side->boot_id, sizeof(side->boot_id), "%s", boot);
	snprintf(side->node, sizeof(side->node), "%s", s->host.node ? s->host.node : "");
	side->last = end;
	side->length += s->dt;
	side->lost += s->host.lost;
	if (!side->intervals || s->dt < side->shortest)
		side->shortest = s->dt;
	if (s->dt > side->longest)
		side->longest = s->dt;
	side->intervals++;
}

int diff_add(struct diff_side *side, const struct snapshot *s, uint64_t at, uint64_t n)
{
	uint64_t nblocks = n < DIFF_BLOCKS ? n : DIFF_BLOCKS;
	struct adder a = {.side = side, .block = (unsigned)(at * nblocks / (n ? n : 1))};

	if (a.block >= DIFF_BLOCKS)
		return -E2BIG;
	side->nblocks = (unsigned)nblocks;
	if (s->dt <= 0)
		return 0;
	add_interval(side, s);
	if (side->part == DIFF_WHOLE)
		add_host(&a, &s->host, (double)s->dt / 1e9);
	for (size_t i = 0; i < s->nvms && !a.rc; i++) {
		if (side->filter && !filter_vm(side->filter, &s->vms[i]))
			continue;
		a.rc = diff_vm_number(side, &s->vms[i], at, (uint32_t)i, &a.vm);
		if (!a.rc)
			add_vm(&a, s, &s->vms[i]);
	}
	return a.rc;
}

/* ---- a recording ---- */

/* How many there are, and the first. */
static int count(struct store *st, int64_t from, int64_t to, uint64_t *n, struct store_at *first)
{
	struct store_at at = {0};
	int rc;

	for (*n = 0; !(rc = store_span_next(st, from, to, &at)); ++*n)
		if (!*n)
			*first = at;
	return rc == -ENOENT ? 0 : rc;
}

static int read_facts(struct store *st, int64_t id, struct host_facts *out)
{
	int rc = store_facts(st, id, out);

	return rc == -ENOENT ? 0 : rc;
}

static int read_all(struct store *st, struct store_at at, int64_t from, int64_t to, uint64_t n,
		    struct diff_side *side)
{
	uint64_t i = 0;
	int rc = read_facts(st, at.id, &side->before);
	int64_t last = at.id;

	for (; !rc && i < n; i++) {
		struct snapshot *s;

		rc = store_read(st, at.id, &s);
		if (!rc) {
			last = at.id;
			rc = diff_add(side, s, i, n);
			snapshot_unref(s);
		} else if (rc == -EBADMSG || rc == -ENOENT) {
			side->damaged++;
			rc = 0;
		}
		if (!rc)
			rc = store_span_next(st, from, to, &at);
	}
	if (rc == -ENOENT) /* the rest was merged meanwhile */
		rc = 0;
	return rc ? rc : read_facts(st, last, &side->facts);
}

int diff_read(struct store *st, int64_t from, int64_t to, struct diff_side *side)
{
	struct store_at first = {0};
	uint64_t n;
	int rc = count(st, from, to, &n, &first);

	if (!rc && !n)
		return -ENOENT;
	if (!rc)
		rc = read_all(st, first, from, to, n, side);
	if (!rc && !side->intervals)
		rc = side->damaged ? -EBADMSG : -ENOENT;
	return rc;
}

void diff_side_free(struct diff_side *side)
{
	for (size_t i = 0; i < side->nvm; i++) {
		free(side->vm[i].name);
		free(side->vm[i].uuid);
		free(side->vm[i].vm_id);
	}
	for (size_t i = 0; i < side->nseries; i++) {
		free((char *)side->series[i].name);
		free((char *)side->series[i].module);
		free(side->series[i].block);
	}
	free(side->vm);
	free(side->series);
	free(side->slot);
	host_facts_free(&side->facts);
	host_facts_free(&side->before);
	side->vm = NULL;
	side->series = NULL;
	side->slot = NULL;
	side->nvm = side->nseries = side->nslot = 0;
}
