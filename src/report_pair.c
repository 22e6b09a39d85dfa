// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events to pairs by the rules of docs/metrics.md, as the program pairs them live (exits.c): an
 * exit lasts to the next entry of its vCPU, an access from its event to there, but an MMIO read
 * from the exit to its event.
 */
#include <errno.h>
#include <stdlib.h>

#include "report_priv.h"

static struct report_vcpu *add_vcpu(struct report_thread *t, int32_t vcpu)
{
	struct report_vcpu *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->vcpu = vcpu;
	v->next = t->all;
	t->all = v;
	return v;
}

/* The vCPU that the thread runs now: the event says so, else the one before. */
static struct report_vcpu *vcpu_of(struct report_thread *t, const struct report_event *e)
{
	struct report_vcpu *v = t->vcpu;

	if (v && (e->vcpu < 0 || v->vcpu == e->vcpu))
		return v;
	if (v && v->vcpu < 0) { /* now it is known which it is */
		v->vcpu = e->vcpu;
		return v;
	}
	for (v = t->all; v && v->vcpu != e->vcpu; v = v->next)
		;
	if (!v)
		v = add_vcpu(t, e->vcpu);
	t->vcpu = v;
	return v;
}

static bool of_wanted_vcpu(const struct report *r, const struct report_vcpu *v)
{
	return report_vcpu_wanted(r, v->vcpu);
}

static bool torn(const struct report_run *run, uint64_t begin, uint64_t end)
{
	if (begin > run->loss_to || !run->nlosses)
		return false;
	for (size_t i = run->nlosses; i--;)
		if (end > run->loss[i].from && begin <= run->loss[i].to)
			return true;
	return false;
}

static void note_begin(struct report_pair *done, const struct report_key *k)
{
	if (!done)
		return;
	done[k->kind].begun = true;
	done[k->kind].begins = *k;
}

static int begin_pair(struct report *r, struct report_vcpu *v, const struct report_key *k,
		      uint64_t time, struct report_pair *done)
{
	struct open_pair_of *o = &v->pair[k->kind];

	if (o->begin == time && o->key.key == k->key && o->key.dir == k->dir)
		return 0; /* one record, written twice: seen in real recordings */
	r->unmatched += v->open >> k->kind & 1;
	v->open |= (uint8_t)KIND_BIT(k->kind);
	o->begin = time;
	if (!o->row || o->key.key != k->key || o->key.isa != k->isa || o->key.dir != k->dir) {
		o->key = *k;
		o->row = report_row_get(&r->figures[k->kind], k);
		if (!o->row)
			return -ENOMEM;
	}
	/* Which vCPU it is of may be known at its end only. */
	o->counted = of_wanted_vcpu(r, v);
	o->row->count += o->counted;
	if (o->counted)
		note_begin(done, k);
	return 0;
}

static void end_pair(struct report *r, struct report_vcpu *v, struct open_pair_of *o, uint64_t time,
		     struct report_pair *done)
{
	uint64_t ns = time > o->begin ? time - o->begin : 0;
	bool lost = torn(r->run, o->begin, time);

	v->open &= (uint8_t)~KIND_BIT(o->key.kind);
	if (!of_wanted_vcpu(r, v))
		return;
	o->row->count += !o->counted;
	if (done) {
		struct report_pair *p = &done[o->key.kind];

		p->key = o->key;
		p->ns = ns;
		p->done = true;
		p->torn = lost;
	}
	if (lost) {
		r->torn++;
		return;
	}
	report_row_add(o->row, ns);
	(void)hist_add(&o->row->hist, ns, 1);
}

static void drop_open(struct report *r, struct report_vcpu *v)
{
	r->unmatched += (unsigned)__builtin_popcount(v->open);
	v->open = 0;
}

static void on_kvm_entry(struct report *r, struct report_vcpu *v, uint64_t time,
			 struct report_pair *done)
{
	while (v->open)
		end_pair(r, v, &v->pair[__builtin_ctz(v->open)], time, done);
	v->exit_begin = 0;
}

static int on_kvm_exit(struct report *r, struct report_vcpu *v, const struct report_event *e,
		       uint64_t time, struct report_pair *done)
{
	struct report_key k = {.key = report_reason(e), .isa = e->isa, .kind = KIND_VMEXIT};

	if (v->exit_seen == time && v->exit_key.key == k.key)
		return 0; /* doubled, see begin_pair() */
	if (v->open)
		drop_open(r, v);
	v->exit_begin = v->exit_seen = time;
	v->exit_key = k;
	v->read_timed = false;
	return report_wants(r, KIND_VMEXIT) ? begin_pair(r, v, &k, time, done) : 0;
}

static int on_mmio_read(struct report *r, struct report_vcpu *v, const struct report_key *k,
			uint64_t time, struct report_pair *done)
{
	struct open_pair_of o = {.begin = v->exit_begin, .key = *k};

	o.row = report_row_get(&r->figures[KIND_MMIO], k);
	if (!o.row)
		return -ENOMEM;
	o.counted = of_wanted_vcpu(r, v);
	o.row->count += o.counted;
	if (o.counted)
		note_begin(done, k);
	if (!v->exit_begin || v->read_timed)
		return 0;
	v->read_timed = true;
	end_pair(r, v, &o, time, done);
	return 0;
}

static int on_access(struct report *r, struct report_vcpu *v, const struct report_event *e,
		     uint64_t time, struct report_pair *done)
{
	struct report_key k = {.key = e->key, .dir = e->dir};
	enum kvm_kind kind;

	if (!report_kind_of(e->type, &kind) || !report_wants(r, kind))
		return 0;
	k.kind = (uint8_t)kind;
	if (kind != KIND_MMIO || e->dir == DIR_WRITE)
		return begin_pair(r, v, &k, time, done);
	/* Unsatisfied: the read proper follows. */
	return e->dir == DIR_READ ? on_mmio_read(r, v, &k, time, done) : 0;
}

int report_pair_event(struct report *r, struct report_thread *t, const struct report_event *e,
		      uint64_t time, struct report_pair *done)
{
	struct report_vcpu *v = vcpu_of(t, e);

	if (!v)
		return -ENOMEM;
	if (e->type == EV_ENTRY) {
		on_kvm_entry(r, v, time, done);
		return 0;
	}
	return e->type == EV_EXIT ? on_kvm_exit(r, v, e, time, done)
				  : on_access(r, v, e, time, done);
}
