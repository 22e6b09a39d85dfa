// SPDX-License-Identifier: GPL-2.0-only
/* Events into slices of time (slices.h). */
#include "slices.h"

#include <stdlib.h>
#include <string.h>

struct slices *slices_new(int64_t ns)
{
	struct slices *s = ns > 0 ? calloc(1, sizeof(*s)) : NULL;

	if (s)
		s->ns = ns;
	return s;
}

void slices_free(struct slices *s)
{
	free(s);
}

static bool same(const struct slice_cell *c, int64_t at, const struct ex_key *k)
{
	return c->at == at && c->key.key == k->key && c->key.isa == k->isa &&
	       c->key.kind == k->kind && c->key.dir == k->dir;
}

static uint32_t hash(int64_t at, const struct ex_key *k)
{
	uint64_t h = (uint64_t)at ^ k->key * 0x9e3779b97f4a7c15u ^ (uint64_t)k->isa << 40 ^
		     (uint64_t)(k->kind << 8 | k->dir) << 20;

	h *= 0xff51afd7ed558ccdu;
	return (uint32_t)(h >> 33);
}

/* Of a moment and key; NULL: there is no place for another one. */
static struct slice_cell *cell_of(struct slices *s, int64_t time, const struct ex_key *k)
{
	int64_t at = time - time % s->ns;

	for (uint32_t i = hash(at, k);; i++) {
		struct slice_cell *c = &s->cell[i & (SLICES_CELLS - 1)];

		if (!c->count && !c->timed) {
			if (s->n == SLICES_MOST)
				break;
			s->n++;
			c->at = at;
			c->key = *k;
			return c;
		}
		if (same(c, at, k))
			return c;
	}
	s->missed++;
	return NULL;
}

static void add_count(struct slices *s, int64_t time, const struct ex_key *k)
{
	struct slice_cell *c = cell_of(s, time, k);

	if (c)
		c->count++;
}

static void add_time(struct slices *s, int64_t end, const struct ex_key *k, uint64_t ns)
{
	struct slice_cell *c = cell_of(s, end, k);

	if (!c)
		return;
	c->timed++;
	c->heat[hist_heat_bucket(ns)]++;
}

static void begin_pair(struct slices *s, const struct sample *x, enum kvm_kind kind)
{
	struct slice_pair *p = &s->pair[kind];

	p->key = (struct ex_key){
		.key = kind == KIND_VMEXIT && x->isa == ISA_VMX ? x->key & EX_VMX_REASON : x->key,
		.isa = kind == KIND_VMEXIT ? x->isa : 0,
		.kind = (uint8_t)kind,
		.dir = x->dir & 3,
	};
	p->open = true;
	p->begin = x->time;
	add_count(s, x->time, &p->key);
}

static void on_entry(struct slices *s, const struct sample *x)
{
	for (unsigned k = 0; k < KIND_HALT; k++) {
		struct slice_pair *p = &s->pair[k];

		if (p->open && x->time >= p->begin)
			add_time(s, x->time, &p->key, (uint64_t)(x->time - p->begin));
		p->open = false;
	}
	s->read_timed = false;
}

/* Its time is that from the exit on, of the first of an exit. */
static void on_mmio_read(struct slices *s, const struct sample *x)
{
	const struct ex_key k = {.key = x->key, .kind = KIND_MMIO, .dir = DIR_READ};
	const struct slice_pair *e = &s->pair[KIND_VMEXIT];

	add_count(s, x->time, &k);
	if (!e->open || s->read_timed || x->time < e->begin)
		return;
	s->read_timed = true;
	add_time(s, x->time, &k, (uint64_t)(x->time - e->begin));
}

static void on_halt(struct slices *s, const struct sample *x, uint8_t dir)
{
	const struct ex_key k = {.kind = KIND_HALT, .dir = dir};

	add_count(s, x->time, &k);
	add_time(s, x->time, &k, x->aux);
}

static void add(struct slices *s, const struct sample *x)
{
	switch (x->type) {
	case EV_ENTRY:
		on_entry(s, x);
		break;
	case EV_EXIT:
		begin_pair(s, x, KIND_VMEXIT);
		break;
	case EV_MMIO:
		if (x->dir == DIR_READ)
			on_mmio_read(s, x);
		else if (x->dir == DIR_WRITE)
			begin_pair(s, x, KIND_MMIO);
		break; /* unsatisfied: the read proper follows */
	case EV_PIO:
		begin_pair(s, x, KIND_IOPORT);
		break;
	case EV_MSR:
		begin_pair(s, x, KIND_MSR);
		break;
	case EV_HYPERCALL:
		begin_pair(s, x, KIND_HYPERCALL);
		break;
	case EV_USEREXIT:
		begin_pair(s, x, KIND_USEREXIT);
		break;
	case EV_VCPU_WAKEUP:
		on_halt(s, x, x->dir & 3);
		break;
	case EV_HALT_POLL:
		on_halt(s, x, DIR_NONE);
		break;
	default:
		break;
	}
}

void slices_add(struct slices *s, const struct sample *x, size_t n)
{
	s->events += n;
	for (size_t i = 0; i < n; i++)
		add(s, &x[i]);
}

void slices_torn(struct slices *s)
{
	for (unsigned k = 0; k < KIND_HALT; k++)
		s->pair[k].open = false;
}

void slices_next(struct slices *s)
{
	s->events = s->missed = 0;
	s->n = 0;
	memset(s->cell, 0, sizeof(s->cell));
}
