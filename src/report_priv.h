// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between report.c (events in order), report_pair.c (our rules) and report_perf.c (perf's rules,
 * faults and all).
 */
#ifndef KVMTOP_REPORT_PRIV_H
#define KVMTOP_REPORT_PRIV_H

#include "kvm_format.h"
#include "report.h"

/* An event as it waits for its turn: small, for many may wait. Its size is a multiple of 8. */
struct report_event {
	uint64_t key; /* as struct sample; an exit's reason with all its bits */
	int32_t pid, tid;
	int32_t vcpu; /* KVM's id, -1: the event has none */
	uint8_t type, dir; /* EV_…, DIR_… */
	uint8_t isa; /* ISA_…; 255: no such */
	bool guest; /* the record says that it was in guest mode */
};

/* A pair that just ended, by either's rules. */
struct report_pair {
	struct report_key key; /* as it is shown: no flags */
	uint64_t ns;
	bool done, torn; /* torn: done, but a loss lies in it */
	bool begun; /* one began, of the key `begins` */
	struct report_key begins;
	bool flags; /* VMX flags make perf count it under `raw` */
	uint64_t raw;
};

struct open_pair_of {
	uint64_t begin;
	struct report_row *row;
	struct report_key key;
	bool counted;
};

/* One vCPU as one thread runs it. */
struct report_vcpu {
	struct report_vcpu *next; /* of the same thread */
	int32_t vcpu; /* -1: not known yet */
	bool read_timed; /* this exit's MMIO read has its time */
	uint64_t exit_begin; /* 0: none is open */
	uint64_t exit_seen; /* time and reason of the last, to know a doubled record */
	struct report_key exit_key;
	uint8_t open; /* KIND_BIT: which of pair[] are */
	struct open_pair_of pair[KIND_HALT];
};

/* perf's note of a thread. */
struct perf_note {
	bool known;
	int32_t vcpu;
	struct {
		uint64_t begin; /* 0: none */
		struct report_row *row; /* NULL: not known before the end */
	} kind[KIND_HALT];
};

struct report_thread {
	int32_t tid;
	struct report_vcpu *vcpu, *all;
	struct perf_note note[2]; /* perf takes guest mode for another machine's thread */
};

struct report_loss {
	uint64_t from, to; /* (from, to] */
};

/*
 * Of an event's raw data: offsets, and what of the bytes there counts. Without a branch on which
 * event it is: a processor cannot foresee that, and a wrong guess costs more than all the rest.
 */
struct report_fields {
	bool quick; /* these say all that is needed */
	uint8_t type; /* EV_… */
	uint8_t dir_of[4]; /* by the value there, 3 for all above */
	uint16_t key, vcpu, dir, isa;
	uint32_t need; /* so many bytes must be there */
	uint32_t no_vcpu; /* all bits where it has none */
	uint32_t isa_mask; /* 0 where it has none */
	uint64_t key_mask;
};

struct report_run {
	const struct kvm_format_ids *ids;
	struct report_fields fields[KVM_EVENTS];
	struct report_thread **slot; /* open addressing by tid */
	size_t nthreads, nslots;
	struct report_thread *last;
	uint64_t *cpu_time; /* of each CPU's newest record */
	size_t ncpus;
	struct report_loss *loss;
	size_t nlosses, loss_room;
	uint64_t loss_to;
	bool losses_known; /* all of them, from the beginning */
	uint32_t want; /* 1 << EV_… */
};

/*
 * What the event begins and ends by our rules: at most one pair a kind, to `done`, which is empty
 * before, NULL: nobody asks. 0 or -ENOMEM.
 */
int report_pair_event(struct report *r, struct report_thread *t, const struct report_event *e,
		      uint64_t time, struct report_pair *done);
/* The same by perf's. */
int report_perf_event(struct report *r, struct report_thread *t, const struct report_event *e,
		      uint64_t time, struct report_pair *done);

/* What a kind of access begins with; false: nothing of any kind. */
static inline bool report_kind_of(uint8_t type, enum kvm_kind *kind)
{
	switch (type) {
	case EV_MMIO:
		*kind = KIND_MMIO;
		return true;
	case EV_PIO:
		*kind = KIND_IOPORT;
		return true;
	case EV_MSR:
		*kind = KIND_MSR;
		return true;
	case EV_HYPERCALL:
		*kind = KIND_HYPERCALL;
		return true;
	case EV_USEREXIT:
		*kind = KIND_USEREXIT;
		return true;
	default:
		return false;
	}
}

#define VMX_REASON 0x8000ffffu /* the reason and FAILED_VMENTRY; other bits are flags */

static inline uint64_t report_reason(const struct report_event *e)
{
	return e->isa == ISA_VMX ? e->key & VMX_REASON : e->key;
}

static inline bool report_pid_wanted(const struct report_query *q, int32_t pid)
{
	for (size_t i = 0; i < q->npids; i++)
		if (q->pid[i] == pid)
			return true;
	return !q->npids;
}

static inline bool report_vcpu_wanted(const struct report *r, int32_t vcpu)
{
	for (size_t i = 0; i < r->q->nvcpus; i++)
		if (r->q->vcpu[i] == vcpu)
			return true;
	return !r->q->nvcpus;
}

static inline bool report_wants(const struct report *r, unsigned kind)
{
	return r->q->kinds >> kind & 1;
}

#endif
