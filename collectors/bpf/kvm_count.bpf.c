// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts and times KVM's events inside the kernel: the rules of exits.c, event for event.
 *
 * Where the fields of an event are is told before loading, in constants read from its `format`;
 * the running kernel's type information is not needed. A record is copied to the stack at once:
 * the verifier lets nobody add a variable to the context.
 */
#include "kvm_counts.h"
#include "programs.h"

#include <stdbool.h>

#define USER_HLT 5 /* KVM_EXIT_HLT: the VMM waits, for its guest does */
#define BIT(n) (1u << (n))
/* For the verifier; the compiler would know it already, and leave it out or test a copy. */
#define BOUND(v, room)                                                                             \
	do {                                                                                       \
		asm volatile("" : "+r"(v));                                                        \
		(v) &= (room)-1;                                                                   \
	} while (0)

MAPPED_ARRAY(threads, struct kc_thread);
MAPPED_ARRAY(slots, struct kc_slot);
MAPPED_ARRAY(counts, struct kc_count); /* two halves of config.slots */
MAPPED_ARRAY(octaves, struct kc_octave);
MAPPED_ARRAY(busy, struct kc_busy);
MAPPED_ARRAY(dirty_threads, __u64); /* two halves of config.threads */
MAPPED_ARRAY(free_threads, __u64);
MAPPED_ARRAY(free_slots, __u64);
MAPPED_ARRAY(free_octaves, __u64);

struct thread_key {
	__u32 tid;
	__s32 vcpu; /* -1: what the thread runs now */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct thread_key);
	__type(value, __u32);
} by_thread SEC(".maps");

struct vcpu_key {
	__u32 tgid;
	__s32 vcpu;
};

/* The thread that runs a vCPU, for vCPUs may change threads in the middle of an exit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct vcpu_key);
	__type(value, __u32);
} by_vcpu SEC(".maps");

/* Tells of a thread at once that was not known: it may have ended before the next tick. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} news SEC(".maps");

/* Slow exits, read at the tick: nobody is woken. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} slow SEC(".maps");

const volatile struct kc_config config SEC(".rodata.config");
struct kc_control control SEC(".data.control");

/*
 * A bit each for what threads' numbers end in: most that the scheduler tells of have run no vCPU,
 * and are left alone at the price of one look. A bit stays set.
 */
__u64 known[KC_KNOWN] SEC(".data.known");

#include "kvm_record.h"

/* ---- memory ---- */

/* The `keep` last ones are for others; 0: none is free. */
static __always_inline __u32 take(void *list, enum kc_pool pool, __u32 size, __u32 keep)
{
	__u32 head = *(volatile __u32 *)&control.head[pool];
	__u32 tail = *(volatile __u32 *)&control.tail[pool], at;
	__u64 *index;

	if ((__s32)(tail - head) <= (__s32)(keep + config.margin))
		return 0;
	at = __sync_fetch_and_add(&control.head[pool], 1) & (size - 1);
	index = bpf_map_lookup_elem(list, &at);
	return index ? (__u32)*index : 0;
}

static __always_inline struct kc_slot *slot_at(__u32 index)
{
	return bpf_map_lookup_elem(&slots, &index);
}

static __always_inline struct kc_thread *thread_at(__u32 index)
{
	return bpf_map_lookup_elem(&threads, &index);
}

/* First event of the thread in this epoch: kvmtop will read it, and what it had open till now. */
static __always_inline void touch(struct event *e, struct kc_thread *t)
{
	__u64 *place;
	__u32 at;

	if (t->epoch == e->epoch)
		return;
	t->before.exit = t->pair[K_EXIT];
	t->before.user = t->pair[K_USEREXIT];
	t->before.off = t->off;
	t->before.open = t->open;
	t->off_ns[e->half & 1] = 0;
	t->blind[e->half & 1] = 0;
	t->dirty[e->half & 1] = 0;
	t->others[e->half & 1] = 0;
	t->unmatched[e->half & 1] = 0;
	t->slow[e->half & 1] = 0;
	*(volatile __u32 *)&t->epoch = e->epoch;
	at = __sync_fetch_and_add(&control.dirty[e->half & 1], 1);
	if (at >= config.threads)
		return;
	at += e->half ? config.threads : 0;
	place = bpf_map_lookup_elem(&dirty_threads, &at);
	if (place)
		*place = e->index;
}

static __always_inline void clear(struct kc_half *h, __u32 epoch)
{
	h->count = h->timed = h->sum = h->within = 0;
	h->sumsq_low = h->sumsq_high = 0;
	h->min = h->max = 0;
	h->octaves = 0;
	h->epoch = epoch;
}

static __always_inline struct kc_count *count_at(__u32 slot, __u32 half)
{
	__u32 at = half & 1 ? config.slots + slot : slot;

	return bpf_map_lookup_elem(&counts, &at);
}

/* NULL: there is no such slot. */
static __always_inline struct kc_count *count_of(struct event *e, struct kc_thread *t,
						 struct kc_slot *s, __u32 index)
{
	struct kc_count *c = count_at(index, e->half);

	if (!c || c->sums.epoch == e->epoch)
		return c;
	clear(&c->sums, e->epoch);
	for (int i = 0; i < KC_FEW; i++)
		c->few[i] = 0;
	c->key = s->key;
	c->tag = s->tag;
	c->sums.next = t->dirty[e->half & 1];
	t->dirty[e->half & 1] = index;
	return c;
}

/* Where a key without a slot is counted: it is always there. */
static __always_inline struct kc_half *other_of(struct event *e, struct kc_thread *t, __u32 kind)
{
	struct kc_half *h;

	BOUND(kind, KC_KINDS_ROOM);
	h = &t->other[e->half & 1][kind];
	if (h->epoch != e->epoch)
		clear(h, e->epoch);
	t->others[e->half & 1] |= BIT(kind);
	return h;
}

#include "kvm_slots.h"

/* ---- times ---- */

#include "kvm_times.h"

/* ---- pairs ---- */

/* The slot, made at the key's first event; 0: there is none, counted it is anyway. */
__noinline __u32 add_count_new(struct event *e, __u32 kind, __u64 key, __u64 tag)
{
	__u32 i = find_slot(e, kind, key, tag);
	struct kc_slot *s = slot_at(i);
	struct kc_count *c = NULL;
	struct kc_thread *t;

	if (!e)
		return 0;
	t = thread_at(e->index);
	if (!t)
		return 0;
	if (i && s)
		c = count_of(e, t, s, i);
	if (c) {
		c->sums.count++;
		return i;
	}
	other_of(e, t, kind)->count++;
	__sync_fetch_and_add(&control.other, 1);
	return 0;
}

/*
 * Nearly always it is the key of the last event of its kind, `slot`, or the first of its bucket,
 * and had an event in this epoch: its counters' memory is then all that must be fetched.
 */
static __always_inline __u32 add_count(struct event *e, struct kc_thread *t, __u32 slot, __u32 kind,
				       __u64 key, __u64 tag)
{
	struct kc_count *c = same_count(e, slot, key, tag);

	if (!c) {
		__u32 b = bucket_of(key, tag, kind);

		slot = b < KC_BUCKETS ? t->bucket[b] : 0;
		c = same_count(e, slot, key, tag);
	}
	if (!c)
		return add_count_new(e, kind, key, tag);
	c->sums.count++;
	return slot;
}

static __always_inline __u32 count_bits(__u32 v)
{
	__u32 n = 0;

	for (int i = 0; i < KC_PAIRS; i++)
		n += v >> i & 1;
	return n;
}

static __always_inline void begin_pair(struct event *e, struct kc_thread *t, __u32 kind, __u32 isa)
{
	struct kc_pair *p = &t->pair[kind];
	__u64 tag = KC_TAG(kind, e->dir, isa);

	if (t->open & BIT(kind)) {
		t->unmatched[e->half & 1]++;
		t->open &= ~BIT(kind);
	}
	p->begin = e->now;
	p->key = e->key;
	p->tag = tag;
	p->rip = e->aux;
	p->slot = add_count(e, t, p->slot, kind, e->key, tag);
	if (e->timed)
		t->open |= BIT(kind);
}

/* A slot that stood unused for long may have another key by now. */
static __always_inline __u32 slot_of(struct event *e, struct kc_pair *p, __u32 kind)
{
	struct kc_slot *s;

	if (same_count(e, p->slot, p->key, p->tag))
		return p->slot;
	s = slot_at(p->slot);
	if (p->slot && s && s->key == p->key && s->tag == p->tag)
		return p->slot;
	return find_slot(e, kind, p->key, p->tag);
}

static __always_inline __u64 within(struct event *e, __u64 begin)
{
	__u64 start = control.start[e->half & 1];
	__u64 from = begin > start ? begin : start;

	return e->now > from ? e->now - from : 0;
}

static __always_inline bool is_idle(__u32 isa, __u64 key)
{
	for (int i = 0; i < KC_IDLE; i++)
		if (config.idle[i].isa && config.idle[i].isa == isa && config.idle[i].key == key)
			return true;
	return false;
}

/* Seldom: what ends now, an exit or what the VMM had of it, was slow. */
__noinline int tell_slow(struct event *e, __u32 kind)
{
	struct kc_slow s = {};
	struct kc_pair *p, *user;
	struct kc_thread *t;

	if (!e)
		return 0;
	t = thread_at(e->index);
	if (!t)
		return 0;
	user = &t->pair[K_USEREXIT];
	p = kind == K_USEREXIT ? user : &t->pair[K_EXIT];
	s.kind = kind == K_USEREXIT ? K_USEREXIT : K_EXIT;
	s.isa = kind == K_USEREXIT ? 0 : (__u32)(p->tag >> 32);
	if (s.isa ? is_idle(s.isa, p->key) : kind == K_USEREXIT && p->key == USER_HLT)
		return 0;
	t->slow[e->half & 1]++;
	s.begin = p->begin;
	s.end = e->now;
	s.key = p->key;
	s.rip = kind == K_USEREXIT ? 0 : p->rip;
	if (user->begin >= p->begin) {
		s.user_begin = user->begin;
		s.user_key = user->key;
	}
	s.tid = t->tid;
	s.vcpu = t->vcpu;
	s.epoch = e->epoch;
	bpf_ringbuf_output(&slow, &s, sizeof(s), BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- with a CPU and without ---- */

static __always_inline bool is_known(__u32 tid)
{
	return known[tid >> 6 & (KC_KNOWN - 1)] & 1ull << (tid & 63);
}

static __always_inline void set_known(__u32 tid)
{
	__sync_fetch_and_or(&known[tid >> 6 & (KC_KNOWN - 1)], 1ull << (tid & 63));
}

/* The thread runs. Where a switch is missing, for the kernel leaves programs out, it is blind. */
static __always_inline void get_cpu(struct event *e, struct kc_thread *t)
{
	__u64 from = control.start[e->half & 1];

	if (!t->off.since) {
		t->off.blind = 1;
		return;
	}
	if (t->off.epoch != e->epoch) {
		t->off.epoch = e->epoch;
		t->off.ns = 0;
	}
	from = t->off.since > from ? t->off.since : from;
	if (e->now > from)
		t->off.ns += e->now - from;
	t->off.since = 0;
}

static __always_inline void end_off(struct event *e, struct kc_thread *t, struct kc_pair *p)
{
	bool blind = t->off.blind || t->off.since || p->begin < control.switch_since;

	if (!control.switch_since || !(blind || t->off.epoch == e->epoch))
		return;
	if (is_idle((__u32)(p->tag >> 32), p->key))
		return;
	if (blind)
		t->blind[e->half & 1] = 1;
	else
		t->off_ns[e->half & 1] += t->off.ns;
}

static __always_inline void end_pair(struct event *e, struct kc_thread *t, __u32 kind)
{
	struct kc_pair *p = &t->pair[kind];
	__u64 ns = e->now > p->begin ? e->now - p->begin : 0;

	add_time(e, slot_of(e, p, kind), kind, ns, within(e, p->begin));
	if (kind == K_EXIT)
		end_off(e, t, p);
	if (kind == K_EXIT && control.slow_ns && ns > control.slow_ns)
		tell_slow(e, K_EXIT);
}

/* ---- threads ---- */

#include "kvm_threads.h"

/* ---- events ---- */

static __always_inline struct kc_busy *enter(struct event *e)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct kc_busy *b = bpf_map_lookup_elem(&busy, &cpu);

	if (!b)
		return NULL;
	/* A full barrier: the epoch is read after it. */
	__sync_fetch_and_add(&b->n, 1);
	e->epoch = *(volatile __u32 *)&control.epoch;
	e->half = e->epoch & 1;
	return b;
}

/* To ask for the time is dear: only where something begins or ends. An exit asks for itself. */
static __always_inline void ask_time(struct event *e, __u32 type)
{
	e->timed = control.seen && control.entry_exit;
	if (type != WAKEUP && type != POLL && type != EXIT && (e->timed || control.slow_ns))
		e->now = bpf_ktime_get_ns();
}

/* What watching costs is measured here: the kernel's own measuring costs each event 200 ns. */
static __always_inline void begin_sample(struct event *e, struct kc_busy *b)
{
	if (!(b->runs++ & (KC_SAMPLE - 1)))
		e->sampled = bpf_ktime_get_ns();
}

static __always_inline void end_sample(struct event *e, struct kc_busy *b)
{
	__u64 ns = e->sampled ? bpf_ktime_get_ns() - e->sampled : KC_SAMPLE_MAX;

	if (ns >= KC_SAMPLE_MAX)
		return;
	b->sampled_ns += ns;
	b->samples++;
}

static __always_inline void leave(struct kc_busy *b)
{
	__sync_fetch_and_add(&b->n, 1);
}

/* Where another thread ran the vCPU last, what is open there is open here. */
static __always_inline void own_vcpu(struct event *e, struct kc_thread *t)
{
	struct vcpu_key k = {t->tgid, t->vcpu};
	__u32 *owner, index = e->index;
	struct kc_thread *old;

	if (t->vcpu < 0 || t->several || t->owner)
		return;
	owner = bpf_map_lookup_elem(&by_vcpu, &k);
	if (!owner) {
		t->owner = !bpf_map_update_elem(&by_vcpu, &k, &index, BPF_ANY);
		return;
	}
	t->owner = 1;
	if (*owner == index)
		return;
	old = thread_at(*owner);
	*owner = index;
	t->lent = 0;
	if (!old || old->tgid != t->tgid || old->vcpu != t->vcpu)
		return;
	old->owner = 0;
	if (old->several)
		return;
	for (int i = 0; i < KC_PAIRS; i++) {
		t->pair[i] = old->pair[i];
		t->pair[i].slot = 0;
	}
	/* Whether this one had a CPU meanwhile, nobody looked. */
	t->off = (struct kc_off){.blind = 1};
	t->open = old->open;
	t->read_timed = old->read_timed;
	old->open = 0;
	old->lent = 1;
}

static __always_inline void on_entry(struct event *e, struct kc_thread *t)
{
	__u32 open;

	own_vcpu(e, t);
	open = t->open;
	t->open = 0;
	for (__u32 k = 0; k < KC_PAIRS; k++)
		if (open & BIT(k))
			end_pair(e, t, k);
}

static __always_inline void on_exit(struct event *e, struct kc_thread *t)
{
	if (t->open) {
		t->unmatched[e->half & 1] += count_bits(t->open);
		t->open = 0;
	}
	t->read_timed = 0;
	t->off = (struct kc_off){};
	begin_pair(e, t, K_EXIT, e->isa);
	/* At last: what counting takes here is no time of the exit. */
	if (e->timed)
		t->pair[K_EXIT].begin = bpf_ktime_get_ns();
}

/* A read was counted by nobody yet: it begins with the exit and ends here. */
static __always_inline void on_mmio_read(struct event *e, struct kc_thread *t)
{
	struct kc_pair *p = &t->pair[K_EXIT];
	__u32 slot = add_count(e, t, 0, K_MMIO, e->key, KC_TAG(K_MMIO, D_READ, 0));

	if (!(t->open & BIT(K_EXIT)) || t->read_timed || !e->timed)
		return;
	t->read_timed = 1;
	add_time(e, slot, K_MMIO, e->now > p->begin ? e->now - p->begin : 0, 0);
}

static __always_inline void on_halt(struct event *e, struct kc_thread *t, __u32 type)
{
	__u32 dir = type == POLL ? D_NONE : e->dir;

	add_time(e, add_count(e, t, 0, K_HALT, 0, KC_TAG(K_HALT, dir, 0)), K_HALT, e->aux, e->aux);
}

/* Where no exit shows, how long the VMM had the vCPU still does. */
static __always_inline void on_fpu(struct event *e, struct kc_thread *t)
{
	__u64 begin = t->pair[K_USEREXIT].begin;

	if (!e->key || !t->in_vmm)
		return;
	t->in_vmm = 0;
	if (!control.seen && control.slow_ns && begin > control.fpu_since && e->now > begin &&
	    e->now - begin > control.slow_ns)
		tell_slow(e, K_USEREXIT);
}

static __always_inline void apply(struct event *e, struct kc_thread *t, __u32 type)
{
	switch (type) {
	case ENTRY:
		on_entry(e, t);
		break;
	case EXIT:
		on_exit(e, t);
		break;
	case MMIO:
		if (e->dir == D_READ)
			on_mmio_read(e, t);
		else
			begin_pair(e, t, K_MMIO, 0);
		break;
	case PIO:
		begin_pair(e, t, K_IOPORT, 0);
		break;
	case MSR:
		begin_pair(e, t, K_MSR, 0);
		break;
	case HYPERCALL:
		begin_pair(e, t, K_HYPERCALL, 0);
		break;
	case USEREXIT:
		begin_pair(e, t, K_USEREXIT, 0);
		t->in_vmm = 1;
		break;
	case FPU:
		on_fpu(e, t);
		break;
	default:
		on_halt(e, t, type);
		break;
	}
}

static __always_inline int on_event(const void *ctx, __u32 type)
{
	const volatile struct kc_layout *l = &config.layout[type];
	struct kc_thread *t;
	struct event e = {};
	struct kc_busy *b;

	if (!decode(ctx, l, &e))
		return PASS_ON;
	/* Unsatisfied: the read proper follows. */
	if (type == MMIO && e.dir != D_READ && e.dir != D_WRITE)
		return PASS_ON;
	b = enter(&e);
	if (!b)
		return PASS_ON;
	begin_sample(&e, b);
	if (type <= EXIT && !control.seen)
		control.seen = 1;
	ask_time(&e, type);
	t = find_thread(&e, b);
	if (t) {
		touch(&e, t);
		apply(&e, t, type);
	} else {
		__sync_fetch_and_add(&control.lost[type], 1);
	}
	end_sample(&e, b);
	leave(b);
	return PASS_ON;
}

#define PROGRAM(name, type)                                                                        \
	SEC("tp")                                                                                  \
	int name(void *ctx)                                                                        \
	{                                                                                          \
		return on_event(ctx, type);                                                        \
	}

PROGRAM(kvmtop_entry, ENTRY)
PROGRAM(kvmtop_exit, EXIT)
PROGRAM(kvmtop_mmio, MMIO)
PROGRAM(kvmtop_pio, PIO)
PROGRAM(kvmtop_msr, MSR)
PROGRAM(kvmtop_hypercall, HYPERCALL)
PROGRAM(kvmtop_user, USEREXIT)
PROGRAM(kvmtop_wakeup, WAKEUP)
PROGRAM(kvmtop_poll, POLL)
PROGRAM(kvmtop_fpu, FPU)

/* In an exit; guest mode is left by one before the scheduler is asked. */
static __always_inline struct kc_thread *in_exit(struct event *e, __u32 tid)
{
	struct thread_key k = {tid, -1};
	__u32 *found = bpf_map_lookup_elem(&by_thread, &k);
	struct kc_thread *t;

	e->index = found ? *found : 0;
	t = thread_at(e->index);
	if (!e->index || !t || !(t->open & BIT(K_EXIT)) || t->generation != control.generation)
		return NULL;
	touch(e, t);
	return t;
}

__noinline int on_switch(__u32 prev, __u32 next)
{
	struct event e = {};
	struct kc_busy *b = enter(&e);
	struct kc_thread *t;

	if (!b)
		return 0;
	e.now = bpf_ktime_get_ns();
	t = prev ? in_exit(&e, prev) : NULL;
	if (t) {
		t->off.blind |= t->off.since != 0;
		t->off.since = e.now;
	}
	t = next ? in_exit(&e, next) : NULL;
	if (t)
		get_cpu(&e, t);
	leave(b);
	return 0;
}

SEC("tp")
int kvmtop_switch(void *ctx)
{
	__u32 prev = (__u32)bpf_get_current_pid_tgid(), next, cpu = bpf_get_smp_processor_id();
	struct kc_busy *b = bpf_map_lookup_elem(&busy, &cpu);

	if (b)
		b->switches++;
	if (!config.next_pid || bpf_probe_read_kernel(&next, sizeof(next), ctx + config.next_pid))
		return PASS_ON;
	prev = is_known(prev) ? prev : 0;
	next = is_known(next) ? next : 0;
	if (prev || next)
		on_switch(prev, next);
	return PASS_ON;
}

/* A thread ends: its number may be another's at once. */
SEC("tp")
int kvmtop_ended(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct thread_key k = {(__u32)id, -1};
	__u32 *found = bpf_map_lookup_elem(&by_thread, &k), next, *owner;
	struct vcpu_key v;
	struct kc_thread *t;
	struct event e = {};
	struct kc_busy *b;

	(void)ctx;
	if (!found)
		return PASS_ON;
	b = enter(&e);
	if (!b)
		return PASS_ON;
	next = *found;
	bpf_map_delete_elem(&by_thread, &k);
	__sync_fetch_and_add(&control.ended, 1);
	for (int i = 0; i < KC_SIBLINGS && next; i++) {
		e.index = next;
		t = thread_at(next);
		if (!t)
			break;
		k.vcpu = t->vcpu;
		bpf_map_delete_elem(&by_thread, &k);
		v.tgid = t->tgid;
		v.vcpu = t->vcpu;
		owner = bpf_map_lookup_elem(&by_vcpu, &v);
		if (owner && *owner == next && !t->open)
			bpf_map_delete_elem(&by_vcpu, &v);
		touch(&e, t);
		t->dead = 1;
		next = t->sibling;
	}
	leave(b);
	return PASS_ON;
}

const char _license[] SEC("license") = "GPL";
