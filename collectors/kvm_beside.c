// SPDX-License-Identifier: GPL-2.0-only
/* Single exits beside their counts (kvm_beside.h). */
#include "kvm_beside.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_access.h"
#include "kvm_decode.h"
#include "thread_events.h"

#define BATCH 128
/* One of so many exits tells where guests are: some hundred a second, which costs nothing. */
#define PERIOD 997
#define PERIOD_SOME 97
#define PERIOD_FEW 7

struct kvm_beside {
	const struct collector_env *env;
	const struct kvm_format *format;
	struct perf_rings *rings; /* of all CPUs */
	int online; /* the list of these, held; -1: not yet */
	struct thread_events *threads; /* of some VMs' vCPUs */
	struct demand demand;
	bool code, code_all; /* of every exit: of those VMs, of all */
	bool where, places; /* of some; of more: that is for a while */
	bool chosen; /* kvm_exit is chosen for the threads */
	unsigned where_period; /* of how many one, 0: not known yet */
	unsigned open; /* the rings of all CPUs are: one of so many, 0 closed */
	uint64_t taken; /* one by one, and not told yet */
	uint64_t lost; /* of these, while they are drained */
	bool may_lack; /* they were full, and nobody knows how many were lost */
	struct sample batch[BATCH];
	size_t filled;
};

/* ---- from records to samples ---- */

static void tell(struct kvm_beside *b, bool code, const struct sample *s, size_t n)
{
	const struct sink *to = b->env->sink;

	b->taken += n;
	if (code && to->code)
		to->code(to->ctx, s, n);
	if (to->exits)
		to->exits(to->ips_ctx, s, n);
}

static void on_thread(void *ctx, const struct sample *s, size_t n)
{
	tell(ctx, true, s, n);
}

/* Not where only some are taken, nor where those of the VMs in question come from their own rings.
 */
static bool counts_all(const struct kvm_beside *b)
{
	return b->open == 1 && b->code && b->code_all;
}

static void flush(struct kvm_beside *b)
{
	if (b->filled)
		tell(b, counts_all(b), b->batch, b->filled);
	b->filled = 0;
}

static void lost(struct kvm_beside *b, const struct ring_record *r)
{
	uint64_t n;

	r->ring->was_full = true;
	if (!perf_rings_has_lost(b->rings) && record_lost(r->h, &n))
		b->lost += n;
}

static void on_batch(void *ctx, const struct ring_record *r, size_t n)
{
	struct kvm_beside *b = ctx;

	for (size_t i = 0; i < n; i++) {
		struct sample *s = &b->batch[b->filled];

		if (r[i].h->type == PERF_RECORD_LOST)
			lost(b, &r[i]);
		if (kvm_decode(b->format, &r[i], s) && s->type == EV_EXIT && ++b->filled == BATCH)
			flush(b);
	}
}

static void add_lost(void *ctx, unsigned slot, uint64_t n)
{
	struct kvm_beside *b = ctx;

	(void)slot; /* whichever: only kvm_exit is open */
	b->lost += n;
}

/* A ring was full whose last loss no record tells yet: the kernel's counters have told it, if any.
 */
static void untold(void *ctx, uint16_t cpu, int64_t from)
{
	struct kvm_beside *b = ctx;

	(void)cpu;
	(void)from;
	b->may_lack |= !perf_rings_has_lost(b->rings);
}

static void tell_lost(const struct kvm_beside *b, uint64_t n)
{
	const struct sink *to = b->env->sink;

	if (to->code_lost)
		to->code_lost(to->ctx, n);
}

/* Each costs the vCPU that makes it, whatever it is taken for. */
static void tell_taken(struct kvm_beside *b)
{
	const struct sink *to = b->env->sink;
	const struct program_cost c = {.singles = b->taken};

	if (b->taken && to->program_cost)
		to->program_cost(to->ctx, &c);
	b->taken = 0;
}

static void drain_all(struct kvm_beside *b, int64_t watermark)
{
	(void)perf_rings_drain(b->rings, watermark, on_batch, b);
	flush(b);
	perf_rings_losses(b->rings, add_lost, untold, b);
	/* Where only some are taken none is missed. */
	if (counts_all(b) && (b->lost || b->may_lack))
		tell_lost(b, b->lost);
	b->lost = 0;
	b->may_lack = false;
}

static void tell_lost_of_threads(struct kvm_beside *b)
{
	uint64_t n = thread_events_lost(b->threads);

	if (n)
		tell_lost(b, n);
}

void kvm_beside_drain(struct kvm_beside *b, int64_t watermark)
{
	if (b->open)
		drain_all(b, watermark);
	thread_events_drain(b->threads, watermark);
	tell_lost_of_threads(b);
	tell_taken(b);
}

/* ---- of all VMs ---- */

static void close_all(struct kvm_beside *b)
{
	if (!b->open)
		return;
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (perf_rings_is_open(b->rings, i))
			perf_rings_close(b->rings, i);
	(void)perf_rings_set_cpus(b->rings, NULL, 0, clock_mono_ns(), NULL, NULL);
	drain_all(b, INT64_MAX);
	b->open = 0;
}

static int open_all(struct kvm_beside *b, unsigned period)
{
	int rc = kvm_follow_cpus(b->env->root, &b->online, b->rings, clock_mono_ns(), NULL, NULL);

	for (unsigned i = 0; !rc && i < KVM_EVENTS; i++) {
		const struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT,
						  .config = (uint64_t)kvm_format_id(b->format, i),
						  .sample_period = period};

		if (kvm_events[i].type == EV_EXIT && a.config && !perf_rings_is_open(b->rings, i))
			rc = perf_rings_open_attr(b->rings, i, &a);
	}
	return rc;
}

static unsigned period_of(uint64_t exits_per_s)
{
	return exits_per_s > 20000 ? PERIOD : exits_per_s > 1000 ? PERIOD_SOME : PERIOD_FEW;
}

/* More seldom at once; more often only where it is far fewer, for rings are opened anew. */
void kvm_beside_pace(struct kvm_beside *b, uint64_t exits, int64_t passed)
{
	uint64_t rate = passed > 0 ? exits * NS_PER_S / (uint64_t)passed : UINT64_MAX;

	if (period_of(rate) > b->where_period ||
	    (passed > 0 && period_of(rate * 2) < b->where_period))
		b->where_period = period_of(rate);
}

/* Every exit while somebody wants all VMs' code, a few where guests' symbols are to be checked. */
static unsigned wanted_period(const struct kvm_beside *b)
{
	unsigned want = b->code && b->code_all ? 1 : b->where ? b->where_period : 0;

	if (b->places && want > 1)
		want = want == PERIOD ? PERIOD_SOME : want == PERIOD_SOME ? PERIOD_FEW : 1;
	return want;
}

static void follow_all(struct kvm_beside *b, unsigned want)
{
	if (want != b->open)
		close_all(b);
	if (!want)
		return;
	/* Also where it is open: CPUs come and go. What is refused is tried at the next tick. */
	b->open = want;
	if (open_all(b, want))
		close_all(b);
}

/* ---- of some VMs ---- */

static int choose_exits(struct kvm_beside *b)
{
	uint64_t id[KVM_EVENTS];
	size_t n = 0;

	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (kvm_events[i].type == EV_EXIT && kvm_format_id(b->format, i))
			id[n++] = (uint64_t)kvm_format_id(b->format, i);
	return thread_events_choose(b->threads, b->format, id, n);
}

static size_t add_threads(const struct inv_vm *vm, pid_t *tid, size_t n)
{
	for (size_t i = 0; i < vm->nvcpu; i++) {
		const struct inv_thread *t = vm->vcpu[i]->thread;

		if (t && !(t->flags & INV_GONE))
			tid[n++] = t->tid;
	}
	return n;
}

/* What is refused is tried at the next tick. */
static void follow_vms(struct kvm_beside *b, bool on)
{
	const struct inv_vm *vm, *first = on ? inventory_first(b->env->inv) : NULL;
	size_t room = 0, n = 0;
	pid_t *tid;

	for (vm = first; vm; vm = vm->next)
		room += demand_code_of(&b->demand, vm->id) ? vm->nvcpu : 0;
	tid = room ? malloc(room * sizeof(*tid)) : NULL;
	for (vm = first; vm && tid; vm = vm->next)
		if (demand_code_of(&b->demand, vm->id))
			n = add_threads(vm, tid, n);
	(void)thread_events_follow(b->threads, tid, n);
	tell_lost_of_threads(b);
	free(tid);
}

void kvm_beside_follow(struct kvm_beside *b, bool on)
{
	bool some = on && b->code && !b->code_all && b->env->inv;

	follow_all(b, on ? wanted_period(b) : 0);
	b->chosen = some && (b->chosen || !choose_exits(b));
	follow_vms(b, b->chosen);
}

/* ---- life ---- */

void kvm_beside_demand(struct kvm_beside *b, const struct demand *d)
{
	b->demand = *d;
	b->code = d->exit_code;
	b->code_all = d->samples_all;
	b->where = d->exit_where && b->env->config->sample_hz;
	b->places = d->exit_places;
}

int kvm_beside_new(const struct collector_env *env, const struct kvm_format *f,
		   struct perf_rings *rings, struct kvm_beside **out)
{
	struct kvm_beside *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return -ENOMEM;
	rc = thread_events_new(on_thread, b, env->config->lost_test ? RING_MIN : 0, &b->threads);
	if (rc) {
		free(b);
		return rc;
	}
	b->env = env;
	b->format = f;
	b->rings = rings;
	b->online = -1;
	*out = b;
	return 0;
}

void kvm_beside_free(struct kvm_beside *b)
{
	if (!b)
		return;
	thread_events_free(b->threads);
	if (b->online >= 0)
		close(b->online);
	free(b);
}

int kvm_beside_fd(const struct kvm_beside *b)
{
	return thread_events_fd(b->threads);
}
