// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a time adds to its key, sums and histogram: a part of kvm_count.bpf.c,
 * which includes it once.
 */
#ifndef KVMTOP_BPF_KVM_TIMES_H
#define KVMTOP_BPF_KVM_TIMES_H

static __always_inline __u32 highest_bit(__u64 v)
{
	__u32 n = 0;

	if (v >> 32) {
		n += 32;
		v >>= 32;
	}
	if (v >> 16) {
		n += 16;
		v >>= 16;
	}
	if (v >> 8) {
		n += 8;
		v >>= 8;
	}
	if (v >> 4) {
		n += 4;
		v >>= 4;
	}
	if (v >> 2) {
		n += 2;
		v >>= 2;
	}
	return n + (__u32)(v >> 1);
}

/* False: as many others came before, or it came too often. */
static __always_inline bool add_few(struct kc_count *h, __u32 place)
{
	for (int i = 0; i < KC_FEW; i++) {
		__u32 v = h->few[i];

		if (v && (v >> 16 != place || (v & 0xffff) == KC_FEW_MAX))
			continue;
		h->few[i] = v ? v + 1 : place << 16 | 1;
		return true;
	}
	return false;
}

/* As hist.c places it. */
static __always_inline void add_hist(struct event *e, __u32 slot, struct kc_count *h, __u64 ns)
{
	__u32 octave = 0, step = (__u32)ns & (KC_STEPS - 1), bit, half = e->half & 1;
	struct kc_octave *o;
	struct kc_slot *s;

	if (ns >= KC_STEPS) {
		bit = highest_bit(ns);
		octave = bit - 4;
		step = (__u32)(ns >> ((bit - 5) & 63)) & (KC_STEPS - 1);
		if (octave >= KC_OCTAVES) {
			octave = KC_OCTAVES - 1;
			step = KC_STEPS - 1;
		}
	}
	if (octave >= KC_OCTAVES || add_few(h, KC_PLACE(octave, step)))
		return;
	s = slot_at(slot);
	if (!s)
		return;
	if (!s->octave[octave])
		s->octave[octave] = take(&free_octaves, KC_POOL_OCTAVES, config.octaves, 0);
	bit = s->octave[octave];
	o = bpf_map_lookup_elem(&octaves, &bit);
	if (!bit || !o) {
		__sync_fetch_and_add(&control.no_octave, 1);
		return;
	}
	if (!(h->sums.octaves & 1ull << octave)) {
		__u64 *clear = (__u64 *)o->n[half];

		for (int i = 0; i < KC_STEPS / 2; i++)
			((volatile __u64 *)clear)[i] = 0;
		h->sums.octaves |= 1ull << octave;
	}
	o->n[half][step & (KC_STEPS - 1)]++;
}

static __always_inline void add_square(struct kc_half *h, __u64 ns)
{
	__u64 high = ns >> 32, low = ns & 0xffffffff, sum;

	sum = h->sumsq_low + low * low;
	h->sumsq_high += sum < h->sumsq_low;
	h->sumsq_low = sum;
	if (!high)
		return;
	sum = h->sumsq_low + (high * low << 33);
	h->sumsq_high += (sum < h->sumsq_low) + (high * low >> 31) + high * high;
	h->sumsq_low = sum;
}

__noinline int add_time(struct event *e, __u32 slot, __u32 kind, __u64 ns, __u64 within)
{
	struct kc_count *c = NULL;
	struct kc_thread *t;
	struct kc_slot *s;
	struct kc_half *h;

	if (!e)
		return 0;
	t = thread_at(e->index);
	if (!t)
		return 0;
	if (slot) {
		c = count_at(slot, e->half);
		if (c && c->sums.epoch != e->epoch) {
			s = slot_at(slot);
			c = s ? count_of(e, t, s, slot) : NULL;
		}
		if (!c)
			return 0;
		h = &c->sums;
	} else {
		h = other_of(e, t, kind);
	}
	if (!h->timed || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->timed++;
	h->sum += ns;
	h->within += within;
	add_square(h, ns);
	if (c)
		add_hist(e, slot, c, ns);
	return 0;
}

#endif
