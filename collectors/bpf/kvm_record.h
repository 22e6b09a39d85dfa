// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a tracepoint's record to an event, by offsets that were read from its `format`: a part of
 * kvm_count.bpf.c, which includes it once.
 */
#ifndef KVMTOP_BPF_KVM_RECORD_H
#define KVMTOP_BPF_KVM_RECORD_H

/* enum ev_type, kvm_kind, ev_dir of sample.h; key and dir rules of kvm_format.h */
enum { ENTRY, EXIT, MMIO, PIO, MSR, HYPERCALL, USEREXIT, WAKEUP, POLL, FPU };
enum { K_EXIT, K_MMIO, K_IOPORT, K_MSR, K_HYPERCALL, K_USEREXIT, K_HALT };
enum { D_NONE, D_READ, D_WRITE, D_UNSATISFIED };
enum { DIR_RULE_NONE, DIR_RULE_FLAG, DIR_RULE_MMIO };
enum { KEY_PLAIN, KEY_ISA, KEY_ARM64, KEY_USER, KEY_NONE };
#define ISA_VMX 1

/*
 * One event, and where it is counted. Of numbers only: functions that are verified once, and not
 * again for each way that leads to them, take no other pointers.
 */
struct event {
	__u64 now, key, aux;
	__u64 sampled; /* when it began, if it is to be told how long it takes */
	__u32 isa;
	__s32 vcpu;
	__u32 dir;
	__u32 epoch, half;
	__u32 index; /* the thread's entry */
	__u32 timed; /* there is something to time: `now` is known */
};

static __always_inline __u64 field(const __u8 *raw, const volatile struct kc_field *f)
{
	__u32 at = f->offset;

	switch (f->size) {
	case 8:
		return *(const volatile __u64 *)(raw + at);
	case 4:
		if (f->is_signed)
			return (__u64)(__s64) * (const volatile __s32 *)(raw + at);
		return *(const volatile __u32 *)(raw + at);
	case 2:
		return *(const volatile __u16 *)(raw + at);
	case 1:
		return raw[at];
	default:
		return 0;
	}
}

static __always_inline __u32 direction(const __u8 *raw, const volatile struct kc_layout *l)
{
	__u64 v;

	if (l->dir_rule == DIR_RULE_NONE)
		return D_NONE;
	v = field(raw, &l->dir);
	if (l->dir_rule == DIR_RULE_FLAG)
		return v ? D_WRITE : D_READ;
	return v == 0 ? D_UNSATISFIED : v == 1 ? D_READ : v == 2 ? D_WRITE : D_NONE;
}

static __always_inline void decode_key(const __u8 *raw, const volatile struct kc_layout *l,
				       struct event *e)
{
	__s32 err;

	switch (l->key_rule) {
	case KEY_ISA:
		e->isa = (__u32)field(raw, &l->extra);
		e->key &= e->isa == ISA_VMX ? 0x8000ffff : 0xffffffff;
		break;
	case KEY_ARM64:
		e->key &= 0x7fffffff;
		if (e->key == 2)
			e->key = 0x10000 | (field(raw, &l->extra) & 0xffff);
		break;
	case KEY_USER:
		err = (__s32)field(raw, &l->extra);
		if (err < 0 && err != -4)
			e->key = 0x100000000ull | (__u32)-err;
		break;
	default:
		break;
	}
}

/*
 * Which of these loads are needed is known when the program is verified, and the others are left
 * out: the kernel lets no program look behind the last field. What they leave is far cheaper than
 * the call of a helper. Unrolled, for the context can be read at constant offsets only.
 */
static __always_inline void load_words(const void *ctx, __u32 need, __u64 *raw)
{
#define WORD(i)                                                                                    \
	if (need >= (i)*8 + 8)                                                                     \
		raw[i] = *(const volatile __u64 *)(ctx + (i)*8);                                   \
	else if (need >= (i)*8 + 4)                                                                \
	*(__u32 *)&raw[i] = *(const volatile __u32 *)(ctx + (i)*8)
	WORD(1);
	WORD(2);
	WORD(3);
	WORD(4);
	WORD(5);
	WORD(6);
	WORD(7);
	WORD(8);
	WORD(9);
	WORD(10);
	WORD(11);
#undef WORD
}

static __always_inline bool decode(const void *ctx, const volatile struct kc_layout *l,
				   struct event *e)
{
	__u64 raw[KC_RECORD / 8];
	const __u8 *r = (const __u8 *)raw;

	if (l->direct)
		load_words(ctx, l->need, raw);
	else if (bpf_probe_read_kernel(raw, l->need, ctx))
		return false;
	e->key = field(r, &l->key);
	e->aux = field(r, &l->aux);
	e->vcpu = l->vcpu.size ? (__s32)field(r, &l->vcpu) : -1;
	e->isa = l->isa;
	e->dir = direction(r, l);
	decode_key(r, l, e);
	return true;
}

#endif
