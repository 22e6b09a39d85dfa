// SPDX-License-Identifier: GPL-2.0-only
/* What our programs in the kernel (*.bpf.c) share. */
#ifndef KVMTOP_BPF_PROGRAMS_H
#define KVMTOP_BPF_PROGRAMS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Of 0 the kernel takes the event away from everybody who listens to the tracepoint through perf.
 */
#define PASS_ON 1

/* An array that kvmtop maps; it sets how many entries there are before loading. */
#define MAPPED_ARRAY(name, of)                                                                     \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, 1);                                                            \
		__type(key, __u32);                                                                \
		__type(value, of);                                                                 \
	} name SEC(".maps")

#endif
