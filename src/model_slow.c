// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow exits as rows of a snapshot: those of the interval of every VM, and older ones for a screen,
 * as far as they are kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "exits_slow.h"
#include "format.h"
#include "kvm_names.h"
#include "model_rows.h"

#define PAST_ALL 256 /* older lines of all VMs but the selected one; each with any has one */
#define NAME_SIZE 64

static struct ex_vm *ex_of(const struct inv_vm *vm)
{
	struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

	return s ? &s->ex : NULL;
}

static const struct ex_slow *slow_of(const struct inv_vm *vm)
{
	return ex_of(vm) ? ex_of(vm)->slow : NULL;
}

void model_on_slow(void *ctx, const struct slow_exit *s, size_t n)
{
	exits_slow(&((struct model *)ctx)->ex, s, n);
}

/* ---- one row ---- */

/* The wall clock's time of a moment before the end of the interval, to the microsecond. */
static void put_time(struct commit *c, struct snap_slow *row, struct timespec wall)
{
	int64_t ns = timespec_ns(wall) - (c->s->time - row->end);
	char iso[64];

	if (ns < 0)
		ns = 0;
	format_time_us(iso, sizeof(iso), timespec_of(ns));
	row->time = snapshot_str(c->s, iso);
	row->at = snapshot_printf(c->s, "%.12s", strchr(iso, 'T') + 1); /* to the millisecond */
}

static void put_code(struct commit *c, const struct inv_vm *vm, struct snap_slow *row, uint64_t rip)
{
	row->rip = row->name = row->module = row->why = "";
	if (!rip)
		return;
	row->rip = snapshot_printf(c->s, "0x%llx", (unsigned long long)rip);
	row->key = model_code_key(c, vm, rip);
	if (!model_name_key(c, &row->key, &row->name, &row->module))
		row->why = model_why_no_name(c, vm, &row->key);
}

static void put_user(struct commit *c, struct snap_slow *row, const struct slow_exit *x)
{
	char buf[NAME_SIZE];

	row->user = "";
	row->user_ns = value_pending();
	if (!x->user_begin)
		return;
	row->user = snapshot_str(c->s, kvm_names_key(c->m->names, KIND_USEREXIT, 0, x->user_key,
						     DIR_NONE, buf, sizeof(buf)));
	row->user_ns = value_known(x->end > x->user_begin ? (double)(x->end - x->user_begin) : 0);
}

/* The row of its vCPU: by the vCPU, or where it was not known then by the thread. */
static int32_t vcpu_row(const struct commit *c, uint32_t vm, const struct ex_slow_line *l)
{
	const struct snap_vm *v = &c->vms[vm];

	for (uint32_t i = v->vcpu_first; i < v->vcpu_first + v->vcpu_n; i++)
		if (l->vcpu ? c->vcpus[i].id == l->vcpu : c->vcpus[i].tid == l->x.tid)
			return (int32_t)i;
	return -1;
}

static void put_row(struct commit *c, const struct inv_vm *vm, uint32_t at, struct snap_slow *row,
		    const struct ex_slow_line *l)
{
	const struct slow_exit *x = &l->x;
	char buf[NAME_SIZE];

	row->vm = at;
	row->vcpu = vcpu_row(c, at, l);
	row->end = x->end;
	row->tid = x->tid;
	row->isa = x->isa;
	row->reason = x->key;
	row->exit = snapshot_str(c->s, kvm_names_key(c->m->names, (enum kvm_kind)x->kind, x->isa,
						     x->key, DIR_NONE, buf, sizeof(buf)));
	row->ns = x->end > x->begin ? (uint64_t)(x->end - x->begin) : 0;
	put_time(c, row, c->s->wall);
	put_code(c, vm, row, x->rip);
	put_user(c, row, x);
}

/* ---- all of them ---- */

/* Older lines that a VM may show, where so many VMs have some. */
static unsigned past_room(const struct model *m, const struct inv_vm *vm, unsigned vms)
{
	unsigned each = vms ? PAST_ALL / vms : 0;

	if (!m->demand.slow_past)
		return 0;
	if (m->demand.vm == vm->id || each > EX_SLOW_LINES)
		return EX_SLOW_LINES;
	return each ? each : 1;
}

static unsigned lines_of(const struct model *m, const struct inv_vm *vm, unsigned vms)
{
	const struct ex_slow *s = slow_of(vm);
	unsigned fresh, past;

	if (!s)
		return 0;
	fresh = ex_slow_fresh(s);
	past = past_room(m, vm, vms);
	return s->n - fresh < past ? s->n : fresh + past;
}

static void put_vm(struct commit *c, const struct inv_vm *vm, uint32_t at, unsigned n,
		   struct snap_slow *row)
{
	const struct ex_slow *s = slow_of(vm);
	struct snap_slows *to = &c->vms[at].slow;

	to->count = s->now;
	to->total = s->total + s->now;
	to->n = n;
	for (unsigned i = 0; i < n; i++) {
		unsigned line = s->n - n + i;

		row[i].fresh = line >= s->n - ex_slow_fresh(s);
		put_row(c, vm, at, &row[i], ex_slow_line(s, line));
	}
}

void model_slow_rows(struct commit *c)
{
	struct snap_slow *rows;
	uint32_t at = 0, n = 0, room = 0;
	unsigned vms = 0;

	c->s->slow_ns = c->m->ex.slow_ns;
	for (struct inv_vm *vm = inventory_first(c->m->inv); vm; vm = vm->next)
		vms += slow_of(vm) != NULL;
	if (!vms)
		return;
	for (struct inv_vm *vm = inventory_first(c->m->inv); vm; vm = vm->next)
		room += lines_of(c->m, vm, vms);
	rows = snapshot_alloc(c->s, room, sizeof(*rows));
	for (struct inv_vm *vm = inventory_first(c->m->inv);
	     rows && (vm = commit_next_vm(c, vm, at)); vm = vm->next, at++) {
		unsigned lines = lines_of(c->m, vm, vms);

		if (!slow_of(vm))
			continue;
		c->vms[at].slow.first = n;
		put_vm(c, vm, at, lines, rows + n);
		n += lines;
	}
	c->s->slow = rows;
	c->s->nslow = n;
}

void model_slow_next(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm && !m->demand.slow_ns; vm = vm->next) {
		struct ex_vm *x = ex_of(vm);

		if (!x)
			continue;
		free(x->slow);
		x->slow = NULL;
	}
}
