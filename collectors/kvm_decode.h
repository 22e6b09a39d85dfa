// SPDX-License-Identifier: GPL-2.0-only
/* From a ring's record to a sample. */
#ifndef KVMTOP_COLLECTORS_KVM_DECODE_H
#define KVMTOP_COLLECTORS_KVM_DECODE_H

#include "kvm_format.h"
#include "ring.h"

/* False: a record of another type, or no event of this format. Sets all of *s. */
static inline bool kvm_decode(const struct kvm_format *f, const struct ring_record *r,
			      struct sample *s)
{
	const uint8_t *raw;
	uint32_t len;

	if (r->h->type != PERF_RECORD_SAMPLE || !record_raw(r->h, &raw, &len) ||
	    !kvm_format_decode(f, raw, len, s))
		return false;
	s->time = r->time;
	s->cpu = r->ring->cpu;
	return true;
}

#endif
