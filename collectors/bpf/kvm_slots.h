// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a thread's key is counted, and room for one that is new: a part of kvm_count.bpf.c, which
 * includes it once.
 */
#ifndef KVMTOP_BPF_KVM_SLOTS_H
#define KVMTOP_BPF_KVM_SLOTS_H

static __always_inline bool stale(__u32 slot, __u32 epoch)
{
	const struct kc_count *a = count_at(slot, 0), *b = count_at(slot, 1);

	return a && b && epoch - a->sums.epoch > KC_STALE && epoch - b->sums.epoch > KC_STALE;
}

static __always_inline __u32 bucket_of(__u64 key, __u64 tag, __u32 kind)
{
	__u32 v = (__u32)(key ^ key >> 12);

	if (kind == K_EXIT)
		return key & (KC_EXIT_BUCKETS - 1);
	v ^= (__u32)(tag & 0xffff) << 16; /* kind and direction */
	return KC_EXIT_BUCKETS + (v * 0x9e3779b1u >> 26);
}

/* How many chunks one more key must leave free: no thread's ports take the last ones. */
static __always_inline __u32 leave_chunks(__u32 kind, __u32 in_bucket)
{
	__u32 all = config.slots / KC_CHUNK;

	if (kind == K_EXIT)
		return 0;
	return in_bucket < KC_CHAIN_FEW ? all / 8 : all / 2;
}

/* 0: none is free. */
static __always_inline __u32 take_slot(struct kc_thread *t, __u32 keep)
{
	__u32 chunk;
	struct kc_slot *s;

	if (!t->chunk || t->used >= KC_CHUNK) {
		chunk = KC_CHUNK * take(&free_slots, KC_POOL_SLOTS, config.slots / KC_CHUNK, keep);
		s = slot_at(chunk);
		if (!chunk || !s)
			return 0;
		s->before = t->chunk;
		t->chunk = chunk;
		t->used = 0;
	}
	return t->chunk + t->used++;
}

/* NULL: it is not that key's, or had no event in this epoch. */
static __always_inline struct kc_count *same_count(struct event *e, __u32 slot, __u64 key,
						   __u64 tag)
{
	struct kc_count *c = slot ? count_at(slot, e->half) : NULL;

	return c && c->sums.epoch == e->epoch && c->key == key && c->tag == tag ? c : NULL;
}

/* The slot of a key, made at its first event; 0: there is no place for it. */
__noinline __u32 find_slot(struct event *e, __u32 kind, __u64 key, __u64 tag)
{
	__u32 b = bucket_of(key, tag, kind), i, unused = 0, left = KC_CHAIN;
	struct kc_thread *t;
	struct kc_slot *s;

	if (!e)
		return 0;
	t = thread_at(e->index);
	if (!t || b >= KC_BUCKETS)
		return 0;
	i = t->bucket[b];
	for (int n = 0; n < KC_CHAIN; n++) {
		if (!i)
			break;
		s = slot_at(i);
		if (!s)
			return 0;
		if (s->key == key && s->tag == tag)
			return i;
		if (stale(i, e->epoch))
			unused = i;
		left--;
		i = s->next;
	}
	if (unused) {
		i = unused;
		s = slot_at(i);
		if (!s)
			return 0;
	} else {
		i = left ? take_slot(t, leave_chunks(kind, KC_CHAIN - left)) : 0;
		s = slot_at(i);
		if (!i || !s)
			return 0;
		s->next = t->bucket[b];
		t->bucket[b] = i;
	}
	s->key = key;
	s->tag = tag;
	return i;
}

#endif
