// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tick's half of counting in the kernel; see kvm_bpf_read.h and bpf/kvm_counts.h.
 */
#include "kvm_bpf_read.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fetch.h"
#include "hist.h"

_Static_assert(KC_STEPS == HIST_STEPS && KC_OCTAVES == HIST_OCTAVES, "hist.c's histogram");
_Static_assert(KC_KINDS == KIND_NR && KC_PAIRS == KIND_HALT && KC_TYPES == EV_NR, "sample.h's");
_Static_assert(4096 % sizeof(struct kc_thread) == 0, "a thread is in one page");
_Static_assert(4096 % sizeof(struct kc_count) == 0, "and so are counters");

#define CHUNKS (KC_BUCKETS * KC_CHAIN / KC_CHUNK) /* that a thread has at most */
#define BATCH 16
#define GROUP 8 /* threads that are read side by side */
#define SPINS 200 /* loads before the CPU is given up: a program takes less than a microsecond */
#define NAPS 40 /* of 50 us, before the kernel is asked to wait */

static uint32_t load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* ---- free entries ---- */

static uint32_t entries(const struct kvm_counts *c, enum kc_pool pool)
{
	switch (pool) {
	case KC_POOL_THREADS:
		return c->threads;
	case KC_POOL_SLOTS:
		return c->slots / KC_CHUNK;
	default:
		return c->octaves;
	}
}

static void give_back(struct kvm_counts *c, enum kc_pool pool, uint32_t index)
{
	uint32_t tail = c->control->tail[pool];

	c->free[pool][tail & (entries(c, pool) - 1)] = index;
	__atomic_store_n(&c->control->tail[pool], tail + 1, __ATOMIC_RELEASE);
}

void kvm_counts_init(struct kvm_counts *c)
{
	c->control->epoch = 1;
	for (unsigned pool = 0; pool < KC_POOLS; pool++)
		for (uint32_t i = 1; i < entries(c, pool); i++)
			give_back(c, pool, i);
}

static struct kc_count *count_of(const struct kvm_counts *c, uint32_t slot, unsigned half)
{
	return &c->count[half ? c->slots + slot : slot];
}

static void clear_slot(struct kvm_counts *c, uint32_t index)
{
	struct kc_slot *s = &c->slot[index];

	for (unsigned o = 0; o < KC_OCTAVES; o++)
		if (s->octave[o] && s->octave[o] < c->octaves)
			give_back(c, KC_POOL_OCTAVES, s->octave[o]);
	memset(s, 0, sizeof(*s));
	memset(count_of(c, index, 0), 0, sizeof(struct kc_count));
	memset(count_of(c, index, 1), 0, sizeof(struct kc_count));
}

static void free_thread(struct kvm_counts *c, uint32_t index)
{
	struct kc_thread *t = &c->thread[index];
	uint32_t at = t->chunk;

	for (unsigned n = 0; at && at % KC_CHUNK == 0 && at < c->slots && n < CHUNKS; n++) {
		uint32_t before = c->slot[at].before;

		for (uint32_t i = 0; i < KC_CHUNK; i++)
			clear_slot(c, at + i);
		give_back(c, KC_POOL_SLOTS, at / KC_CHUNK);
		at = before;
	}
	memset(t, 0, sizeof(*t));
	give_back(c, KC_POOL_THREADS, index);
}

/* ---- the end of an epoch ---- */

/* False: it is still the same program after a long while. */
static bool wait_for(const __u64 *n)
{
	const struct timespec nap = {0, 50000};
	uint64_t before = __atomic_load_n(n, __ATOMIC_ACQUIRE);

	if (!(before & 1))
		return true;
	for (unsigned i = 0; i < SPINS + NAPS; i++) {
		if (__atomic_load_n(n, __ATOMIC_ACQUIRE) != before)
			return true;
		if (i >= SPINS)
			nanosleep(&nap, NULL);
	}
	return false;
}

/*
 * Programs that began before it have ended, those that run now are of the new epoch. Where one
 * does not end its CPU was taken from this host in the middle of it; the kernel's grace period
 * covers that, for programs are read sections of RCU.
 */
static void wait_until_quiet(const struct kvm_counts *c)
{
	for (uint32_t i = 0; i < c->cpus; i++)
		if (!wait_for(&c->busy[i].n) &&
		    !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
			return;
}

/* The epoch that ended. */
static uint32_t next_epoch(struct kvm_counts *c, int64_t watermark)
{
	struct kc_control *k = c->control;
	uint32_t epoch = k->epoch, half = (epoch + 1) & 1;

	k->dirty[half] = 0;
	k->start[half] = (uint64_t)watermark;
	__atomic_store_n(&k->epoch, epoch + 1, __ATOMIC_SEQ_CST);
	atomic_thread_fence(memory_order_seq_cst);
	wait_until_quiet(c);
	return epoch;
}

/* ---- one slot, one thread ---- */

/* What is handed over of one thread at a time. */
struct batch {
	struct aggregate a[BATCH];
	unsigned n;
};

/* The histogram of the last of a batch, and its counters. */
struct hist_room {
	struct hist hist;
	uint32_t octave[HIST_OCTAVES][HIST_STEPS];
};

static void hand_over(struct batch *b, const struct sink *sink)
{
	if (b->n)
		sink->aggregates(sink->ctx, b->a, b->n);
	b->n = 0;
}

static void take_hist(const struct kvm_counts *c, const struct kc_slot *s, unsigned half,
		      uint64_t left, struct hist_room *room)
{
	unsigned n = 0;

	room->hist = (struct hist){.octave = room->octave};
	while (left) {
		unsigned o = (unsigned)__builtin_ctzll(left);
		uint32_t at = o < KC_OCTAVES ? s->octave[o] : 0;

		left &= left - 1;
		if (!at || at >= c->octaves)
			continue;
		memcpy(room->octave[n++], c->octave[at].n[half], sizeof(room->octave[0]));
		room->hist.used |= UINT64_C(1) << o;
	}
}

/* Member by member: made elsewhere and copied, it takes longer than all the rest. */
static struct aggregate *add(struct batch *b, const struct kc_thread *t, const struct kc_half *h)
{
	struct aggregate *a = &b->a[b->n++];

	a->tid = (int32_t)t->tid;
	a->pid = (int32_t)t->tgid;
	a->vcpu_id = t->vcpu;
	a->count = h->count;
	a->timed = h->timed;
	a->sum_ns = h->sum;
	a->min_ns = h->min;
	a->max_ns = h->max;
	a->within_ns = h->within;
	a->sumsq = (unsigned __int128)h->sumsq_high << 64 | h->sumsq_low;
	a->hist = NULL;
	return a;
}

static void add_slot(struct batch *b, const struct kc_thread *t, const struct kc_count *h)
{
	struct aggregate *a = add(b, t, &h->sums);

	a->kind = (uint8_t)h->tag;
	a->dir = (uint8_t)(h->tag >> 8);
	a->isa = (uint32_t)(h->tag >> 32);
	a->key = h->key;
	a->few = h->few;
	a->nfew = KC_FEW;
	a->other = false;
}

/* Keys that found no place. */
static void add_other(const struct kc_thread *t, uint32_t epoch, struct batch *b,
		      const struct sink *sink, struct kvm_counts_state *out)
{
	uint32_t left = t->others[epoch & 1];

	for (unsigned k = 0; left && k < KC_KINDS; k++, left >>= 1) {
		const struct kc_half *h = &t->other[epoch & 1][k];
		struct aggregate *a;

		if (!(left & 1) || h->epoch != epoch)
			continue;
		a = add(b, t, h);
		a->kind = (uint8_t)k;
		a->dir = 0;
		a->isa = 0;
		a->key = 0;
		a->few = NULL;
		a->nfew = 0;
		a->other = true;
		out->all += h->count;
		out->no_octave += h->timed;
		if (b->n == BATCH)
			hand_over(b, sink);
	}
}

static void set_pair(struct open_pair *to, const struct kc_pair *p)
{
	to->begin = (int64_t)p->begin;
	to->key = p->key;
	to->isa = (uint32_t)(p->tag >> 32);
	to->dir = (uint8_t)(p->tag >> 8);
}

/* The programs may be at it again, in the new epoch: then they left what it was before. */
static void open_at_end(const struct kc_thread *t, uint32_t epoch, struct kc_open *o)
{
	*o = (struct kc_open){.exit = t->pair[KIND_VMEXIT],
			      .user = t->pair[KIND_USEREXIT],
			      .off = t->off,
			      .open = t->open};
	atomic_thread_fence(memory_order_seq_cst);
	if (load32(&t->epoch) != epoch)
		*o = t->before;
}

static void hand_over_open(const struct kvm_counts *c, const struct kc_thread *t, uint32_t epoch,
			   const struct sink *sink)
{
	struct thread_open to = {
		.tid = (int32_t)t->tid,
		.vcpu_id = t->vcpu,
		.unmatched = t->unmatched[epoch & 1],
		.slow = t->slow[epoch & 1],
		.off_ns = t->off_ns[epoch & 1],
		.off_blind = t->blind[epoch & 1],
		.elsewhere = t->lent,
	};
	struct kc_open o;

	open_at_end(t, epoch, &o);
	if (t->generation == c->control->generation && !t->dead)
		to.open = o.open & (KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_USEREXIT));
	set_pair(&to.exit, &o.exit);
	set_pair(&to.user, &o.user);
	to.exit_off_since = (int64_t)o.off.since;
	to.exit_off_ns = o.off.epoch == epoch ? o.off.ns : 0;
	to.exit_blind = o.off.blind || o.exit.begin < c->control->switch_since;
	if (sink->open)
		sink->open(sink->ctx, &to);
}

/* ---- the threads' lists ---- */

/*
 * Slots lie where memory was free when their key came, so that one after the other each of them
 * would be waited for. Therefore the lists of some threads are read side by side, a key of each in
 * turn: what the next step of one needs is asked for while the others take theirs.
 */
struct lane {
	struct kc_thread *t;
	uint32_t index; /* of t */
	uint32_t at; /* the slot that is next; 0: none */
	uint32_t numbers, octaves; /* slots that wait for these; 0: none */
	uint32_t left; /* slots that it may have yet */
	struct batch batch;
};

struct reading {
	struct kvm_counts *c;
	const struct sink *sink;
	struct kvm_counts_state *out;
	const struct kc_count *count; /* of the epoch's half */
	uint32_t epoch, half;
	struct hist_room room;
	struct lane lane[GROUP];
};

/* Where the slot has the numbers of its octaves; they are needed to fetch these. */
static void fetch_numbers(const struct kvm_counts *c, uint32_t slot, uint64_t octaves)
{
	unsigned o = (unsigned)__builtin_ctzll(octaves);

	if (o < KC_OCTAVES)
		fetch(&c->slot[slot].octave[o], sizeof(uint32_t));
}

static void fetch_octaves(const struct reading *r, uint32_t slot)
{
	const struct kc_slot *s = &r->c->slot[slot];
	uint64_t left = r->count[slot].sums.octaves;

	for (; left; left &= left - 1) {
		unsigned o = (unsigned)__builtin_ctzll(left);
		uint32_t at = o < KC_OCTAVES ? s->octave[o] : 0;

		if (at && at < r->c->octaves)
			fetch(r->c->octave[at].n[r->half], sizeof(r->c->octave[at].n[0]));
	}
}

/* A slot whose octaves came is done, one whose numbers came waits for its octaves. */
static void read_octaves(struct reading *r, struct lane *l)
{
	struct batch *b = &l->batch;

	if (l->octaves) {
		const struct kc_count *h = &r->count[l->octaves];

		add_slot(b, l->t, h);
		take_hist(r->c, &r->c->slot[l->octaves], r->half, h->sums.octaves, &r->room);
		b->a[b->n - 1].hist = &r->room.hist;
		hand_over(b, r->sink);
	}
	l->octaves = l->numbers;
	l->numbers = 0;
	if (l->octaves)
		fetch_octaves(r, l->octaves);
}

/* One slot of a thread. False: there are no more. */
static inline bool read_slot(struct reading *r, struct lane *l)
{
	const struct kc_count *h = &r->count[l->at];
	uint32_t next = h->sums.next;

	if (l->numbers | l->octaves)
		read_octaves(r, l);
	if (!l->at || h->sums.epoch != r->epoch || !l->left--) {
		l->at = 0;
		return l->octaves;
	}
	r->out->all += h->sums.count;
	if ((uint8_t)h->tag == KIND_VMEXIT)
		r->out->exits += h->sums.count;
	if (h->sums.octaves) {
		fetch_numbers(r->c, l->at, h->sums.octaves);
		l->numbers = l->at;
	} else {
		add_slot(&l->batch, l->t, h);
		if (l->batch.n == BATCH)
			hand_over(&l->batch, r->sink);
	}
	l->at = next < r->c->slots ? next : 0;
	fetch(&r->count[l->at], sizeof(*r->count));
	return true;
}

static void end_thread(struct reading *r, struct lane *l)
{
	add_other(l->t, r->epoch, &l->batch, r->sink, r->out);
	hand_over(&l->batch, r->sink);
	hand_over_open(r->c, l->t, r->epoch, r->sink);
	if (l->t->dead && load32(&l->t->epoch) == r->epoch)
		free_thread(r->c, l->index);
}

static void fetch_group(const struct reading *r, const uint64_t *thread, uint32_t n)
{
	const struct kvm_counts *c = r->c;
	int32_t tid[GROUP];
	unsigned ntid = 0;

	n = n < GROUP ? n : GROUP;
	for (uint32_t i = 0; i < n; i++)
		if (thread[i] < c->threads)
			fetch(&c->thread[thread[i]], offsetof(struct kc_thread, bucket));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot;

		if (thread[i] >= c->threads)
			continue;
		tid[ntid++] = (int32_t)c->thread[thread[i]].tid;
		slot = c->thread[thread[i]].dirty[r->half];
		if (slot < c->slots)
			fetch(&r->count[slot], sizeof(*r->count));
	}
	if (r->sink->coming)
		r->sink->coming(r->sink->ctx, tid, ntid);
}

/*
 * Could what is handed over of one change whose the other's is? It can where a thread runs several
 * vCPUs or a vCPU had two threads: then theirs come one after the other, in the list's order.
 */
static bool related(const struct kc_thread *a, const struct kc_thread *b)
{
	if (a->tid == b->tid)
		return true;
	return a->tgid == b->tgid &&
	       (a->vcpu < 0 ? b->vcpu >= 0 : b->vcpu < 0 || a->vcpu == b->vcpu);
}

static bool related_to_any(const struct reading *r, unsigned n, const struct kc_thread *t)
{
	for (unsigned i = 0; i < n; i++)
		if (related(r->lane[i].t, t))
			return true;
	return false;
}

static void begin_thread(const struct reading *r, struct lane *l, uint32_t index)
{
	l->index = index;
	l->t = &r->c->thread[index];
	l->at = l->t->dirty[r->half] < r->c->slots ? l->t->dirty[r->half] : 0;
	l->numbers = l->octaves = l->batch.n = 0;
	l->left = r->c->slots;
}

/* The first of n threads; how many. */
static uint32_t read_group(struct reading *r, const uint64_t *thread, uint32_t n)
{
	struct lane *on[GROUP];
	unsigned lanes = 0, non;
	uint32_t taken;

	for (taken = 0; taken < n && lanes < GROUP; taken++) {
		uint32_t index = thread[taken] < r->c->threads ? (uint32_t)thread[taken] : 0;

		if (!index)
			continue;
		if (related_to_any(r, lanes, &r->c->thread[index]))
			break;
		on[lanes] = &r->lane[lanes];
		begin_thread(r, on[lanes++], index);
	}
	for (non = lanes; non;)
		for (unsigned i = 0; i < non;) {
			if (read_slot(r, on[i]))
				i++;
			else
				on[i] = on[--non];
		}
	for (unsigned i = 0; i < lanes; i++)
		end_thread(r, &r->lane[i]);
	return taken;
}

/* ---- all of them ---- */

static uint64_t since(uint64_t *before, const __u64 *now)
{
	uint64_t v = __atomic_load_n(now, __ATOMIC_RELAXED), d = v - *before;

	*before = v;
	return d;
}

static void tell_losses(struct kvm_counts *c, const struct sink *sink, struct kvm_counts_state *out)
{
	for (int type = 0; type < KC_TYPES; type++) {
		struct loss_count l = {.type = type,
				       .n = since(&c->lost[type], &c->control->lost[type])};

		if (l.n)
			sink->loss_count(sink->ctx, &l);
	}
	out->other = since(&c->other, &c->control->other);
	out->no_octave += since(&c->no_octave, &c->control->no_octave);
}

static struct kvm_counts_runs runs(const struct kvm_counts *c)
{
	struct kvm_counts_runs r = {0};

	for (uint32_t i = 0; i < c->cpus; i++) {
		const struct kc_busy *b = &c->busy[i];

		r.switches += __atomic_load_n(&b->switches, __ATOMIC_RELAXED);
		r.events += __atomic_load_n(&b->runs, __ATOMIC_RELAXED);
		r.sampled_ns += __atomic_load_n(&b->sampled_ns, __ATOMIC_RELAXED);
		r.samples += __atomic_load_n(&b->samples, __ATOMIC_RELAXED);
	}
	return r;
}

static void tell_runs(struct kvm_counts *c, struct kvm_counts_runs *out)
{
	struct kvm_counts_runs now = runs(c), *before = &c->runs;

	out->switches = now.switches - before->switches;
	out->events = now.events - before->events;
	out->sampled_ns = now.sampled_ns - before->sampled_ns;
	out->samples = now.samples - before->samples;
	*before = now;
}

void kvm_counts_read(struct kvm_counts *c, int64_t watermark, const struct sink *sink,
		     struct kvm_counts_state *out)
{
	uint32_t epoch = next_epoch(c, watermark), half = epoch & 1;
	uint32_t n = load32(&c->control->dirty[half]);
	const uint64_t *list = c->dirty + (half ? c->threads : 0);
	struct reading r;

	r.c = c;
	r.sink = sink;
	r.out = out;
	r.count = count_of(c, 0, half);
	r.epoch = epoch;
	r.half = half;
	*out = (struct kvm_counts_state){0};
	n = n < c->threads ? n : c->threads;
	fetch_group(&r, list, n);
	for (uint32_t i = 0; i < n;) {
		if (n - i > GROUP)
			fetch_group(&r, list + i + GROUP, n - i - GROUP);
		i += read_group(&r, list + i, n - i);
	}
	tell_losses(c, sink, out);
	tell_runs(c, &out->runs);
}
