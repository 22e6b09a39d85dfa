// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events to pairs by the rules of perf 6.1, for who compares with its figures: one begin a thread
 * and kind, whatever comes next, which the next end takes; nothing before a thread's first
 * kvm_entry, for only that makes perf's note of the thread; reasons with all their bits. On arm64
 * it has the two the other way round: from an entry to the exit, whose reason gives the row.
 */
#include <errno.h>

#include "report_priv.h"

/* perf's row is of the reason as it stands in the record. */
static struct report_row *row_of(struct report *r, enum kvm_kind kind, const struct report_event *e)
{
	struct report_key k = {.key = e->key, .kind = (uint8_t)kind};

	if (kind == KIND_VMEXIT)
		k.isa = e->isa;
	else
		k.dir = e->dir;
	return report_row_get(&r->perf[kind], &k);
}

static bool begins(const struct report *r, enum kvm_kind kind, const struct report_event *e,
		   bool *keyed)
{
	enum kvm_kind of;

	*keyed = !r->arm64;
	if (r->arm64)
		return kind == KIND_VMEXIT && e->type == EV_ENTRY;
	if (kind == KIND_VMEXIT)
		return e->type == EV_EXIT;
	if (kind == KIND_MMIO && e->type == EV_EXIT) { /* of a read, perhaps */
		*keyed = false;
		return true;
	}
	if (!report_kind_of(e->type, &of) || of != kind)
		return false;
	return kind != KIND_MMIO || e->dir == DIR_WRITE;
}

static void pair_of(struct report_pair *done, const struct report_row *row, uint64_t ns)
{
	*done = (struct report_pair){.key = row->k, .ns = ns, .done = true, .raw = row->k.key};
	if (row->k.kind == KIND_VMEXIT && row->k.isa == ISA_VMX) {
		done->key.key &= VMX_REASON;
		done->flags = done->key.key != row->k.key;
	}
}

/* An entry, or an MMIO read, which has a key of its own. */
static int end(struct report *r, struct perf_note *n, enum kvm_kind kind,
	       const struct report_event *e, uint64_t time, struct report_pair *done)
{
	uint64_t begin = n->kind[kind].begin;
	struct report_row *row = n->kind[kind].row;

	if (!begin || (!row && e->type == EV_ENTRY))
		return 0;
	if (!row)
		row = row_of(r, kind, e);
	if (!row)
		return -ENOMEM;
	n->kind[kind].begin = 0;
	n->kind[kind].row = NULL;
	if (time < begin)
		return 0;
	report_row_add_as_perf(row, time - begin);
	if (done)
		pair_of(&done[kind], row, time - begin);
	return 0;
}

static bool ends(const struct report *r, enum kvm_kind kind, const struct report_event *e)
{
	if (r->arm64)
		return kind == KIND_VMEXIT && e->type == EV_EXIT;
	return e->type == EV_ENTRY ||
	       (kind == KIND_MMIO && e->type == EV_MMIO && e->dir == DIR_READ);
}

static int one_kind(struct report *r, struct perf_note *n, enum kvm_kind kind,
		    const struct report_event *e, uint64_t time, struct report_pair *done)
{
	bool keyed;

	if (begins(r, kind, e, &keyed)) {
		n->kind[kind].begin = time;
		n->kind[kind].row = keyed ? row_of(r, kind, e) : NULL;
		return keyed && !n->kind[kind].row ? -ENOMEM : 0;
	}
	if (ends(r, kind, e))
		return end(r, n, kind, e, time, done);
	return 0;
}

int report_perf_event(struct report *r, struct report_thread *t, const struct report_event *e,
		      uint64_t time, struct report_pair *done)
{
	struct perf_note *n = &t->note[e->guest];
	int rc = 0;

	if (!n->known && e->type == EV_ENTRY) {
		n->known = true;
		n->vcpu = e->vcpu < 0 ? 0 : e->vcpu; /* a field that is not there is 0 */
	}
	if (!n->known || !report_vcpu_wanted(r, n->vcpu))
		return 0;
	for (unsigned k = 0; k < KIND_HALT && !rc; k++)
		if (report_wants(r, k))
			rc = one_kind(r, n, (enum kvm_kind)k, e, time, done);
	return rc;
}
