// SPDX-License-Identifier: GPL-2.0-only
/*
 * What guests write into the MSRs of their PMU: the last value of each, and how often they were
 * used. All other MSRs are passed over. Where the fields of kvm_msr are is told before loading.
 */
#include "vpmu_msr.h"
#include "programs.h"

#include <stdbool.h>

/* What was not used for long makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct vm_key);
	__type(value, struct vm_access);
} accesses SEC(".maps");

const volatile struct vm_config config SEC(".rodata.config");

static __always_inline bool wanted(__u32 msr)
{
	for (int i = 0; i < VM_RANGES; i++)
		if (msr >= config.range[i].first && msr <= config.range[i].last)
			return true;
	return false;
}

static __always_inline void note(struct vm_access *a, const __u8 *raw)
{
	bool refused = config.exception && raw[config.exception & (VM_RECORD - 1)];

	a->last = bpf_ktime_get_ns();
	a->count++;
	a->refused += refused;
	if (!*(const volatile __u32 *)(raw + config.write))
		return;
	a->write_refused = refused;
	if (refused)
		return;
	a->has_value = 1;
	a->written = a->last;
	a->value = *(const volatile __u64 *)(raw + config.data);
}

SEC("tp")
int kvmtop_vpmu(void *ctx)
{
	struct vm_key key = {.tid = (__u32)bpf_get_current_pid_tgid()};
	struct vm_access fresh = {}, *a;
	__u64 room[VM_RECORD / 8];
	const __u8 *raw = (const __u8 *)room;

	if (bpf_probe_read_kernel(room, config.need, ctx))
		return PASS_ON;
	key.msr = *(const volatile __u32 *)(raw + config.ecx);
	if (!wanted(key.msr))
		return PASS_ON;
	a = bpf_map_lookup_elem(&accesses, &key);
	if (a) {
		note(a, raw);
		return PASS_ON;
	}
	note(&fresh, raw);
	bpf_map_update_elem(&accesses, &key, &fresh, BPF_NOEXIST);
	return PASS_ON;
}

const char _license[] SEC("license") = "GPL";
