// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which thread has the event, and which vCPU it runs: a part of kvm_count.bpf.c, which includes it
 * once.
 */
#ifndef KVMTOP_BPF_KVM_THREADS_H
#define KVMTOP_BPF_KVM_THREADS_H

__noinline __u32 new_thread(__u64 id, __s32 vcpu, __u32 sibling)
{
	struct thread_key k = {(__u32)id, -1}, own = {(__u32)id, vcpu};
	__u32 index = take(&free_threads, KC_POOL_THREADS, config.threads, 0);
	struct kc_news what = {(__u32)id, index};
	struct kc_thread *t = thread_at(index);

	if (!index || !t)
		return 0;
	t->tid = (__u32)id;
	t->tgid = id >> 32;
	t->vcpu = vcpu;
	t->sibling = sibling;
	t->generation = control.generation;
	set_known((__u32)id);
	/* Where that fails its place is lost, not the event's only: so the map has twice the room.
	 */
	if (bpf_map_update_elem(&by_thread, &k, &index, BPF_ANY))
		return 0;
	if (vcpu >= 0)
		bpf_map_update_elem(&by_thread, &own, &index, BPF_ANY);
	bpf_ringbuf_output(&news, &what, sizeof(what), 0);
	return index;
}

/* The thread runs another vCPU than it did. */
__noinline __u32 other_vcpu(__u64 id, __s32 vcpu, __u32 old)
{
	struct thread_key k = {(__u32)id, vcpu}, now = {(__u32)id, -1};
	__u32 *found = bpf_map_lookup_elem(&by_thread, &k), index;
	struct kc_thread *t = thread_at(old);

	if (t)
		t->away = 1;
	if (!found)
		return new_thread(id, vcpu, old);
	index = *found;
	bpf_map_update_elem(&by_thread, &now, &index, BPF_ANY);
	t = thread_at(index);
	if (t)
		t->away = 0;
	return index;
}

/* The entry of the running thread; 0: there is no room for it. */
__noinline __u32 look_up(struct kc_busy *b, __s32 vcpu)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct thread_key k = {(__u32)id, -1};
	__u32 *found = bpf_map_lookup_elem(&by_thread, &k), index;

	index = found ? *found : new_thread(id, vcpu, 0);
	if (!b)
		return 0;
	b->last = 0;
	b->ended = control.ended;
	b->last = (__u64)index << 32 | (__u32)id;
	return index;
}

/*
 * Most often it is the thread that had the last event on this CPU, too. It is the same thread only
 * as long as none has ended since, and may have run another vCPU on another CPU.
 */
static __always_inline struct kc_thread *current_thread(struct event *e, struct kc_busy *b)
{
	__u64 last = b->last;
	struct kc_thread *t;

	e->index = last >> 32;
	if ((__u32)last == (__u32)bpf_get_current_pid_tgid() && b->ended == control.ended) {
		t = thread_at(e->index);
		if (e->index && t && !t->away)
			return t;
	}
	e->index = look_up(b, e->vcpu);
	t = thread_at(e->index);
	return e->index ? t : NULL;
}

static __always_inline struct kc_thread *find_thread(struct event *e, struct kc_busy *b)
{
	struct kc_thread *t = current_thread(e, b);

	if (!t)
		return NULL;
	if (e->vcpu >= 0 && t->vcpu != e->vcpu) {
		__u64 id = bpf_get_current_pid_tgid();

		if (t->vcpu < 0) {
			struct thread_key k = {(__u32)id, e->vcpu};

			t->vcpu = e->vcpu;
			bpf_map_update_elem(&by_thread, &k, &e->index, BPF_ANY);
		} else {
			e->index = other_vcpu(id, e->vcpu, e->index);
			t = thread_at(e->index);
			if (!e->index || !t)
				return NULL;
		}
	}
	if (t->generation != control.generation) {
		t->generation = control.generation;
		t->open = 0;
	}
	return t;
}

#endif
