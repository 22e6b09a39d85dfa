// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a snapshot out of a recording holds together: screens and formats follow its indexes and
 * compute with its times without a look.
 */
#include <errno.h>
#include <math.h>

#include "store_code.h"
#include "store_fields.h"
#include "store_priv.h"

static bool index_ok(int64_t i, size_t n)
{
	return i >= 0 && (uint64_t)i < n;
}

static bool range_ok(uint32_t first, uint32_t n, size_t all)
{
	return first <= all && n <= all - first;
}

/* A moment of the snapshot's clock, which may have been set meanwhile, and how long ago it was. */
static bool moment_ok(const struct snapshot *s, int64_t t)
{
	int64_t ago;

	return !__builtin_sub_overflow(s->time, t, &ago) && ago <= STORE_AGO_MOST &&
	       ago >= -STORE_AGO_MOST;
}

static bool tables_ok(const struct snapshot *s, const struct snap_exits *ex,
		      const struct snap_samples *sym)
{
	return range_ok(ex->first, ex->n, s->nexits) &&
	       range_ok(sym->first, sym->rows, s->nsymbols);
}

static bool vms_ok(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nvms; i++) {
		const struct snap_vm *vm = &s->vms[i];

		if (!tables_ok(s, &vm->ex, &vm->sym) ||
		    !range_ok(vm->vcpu_first, vm->vcpu_n, s->nvcpus) ||
		    !range_ok(vm->thread_first, vm->thread_n, s->nthreads) ||
		    !range_ok(vm->code_first, vm->code_n, s->ncode) ||
		    !range_ok(vm->waits.first, vm->waits.n, s->nwaited) ||
		    !range_ok(vm->slow.first, vm->slow.n, s->nslow))
			return false;
	}
	for (size_t i = 0; i < s->nvcpus; i++)
		if (!index_ok(s->vcpus[i].vm, s->nvms) ||
		    !tables_ok(s, &s->vcpus[i].ex, &s->vcpus[i].sym) ||
		    !range_ok(s->vcpus[i].waits.first, s->vcpus[i].waits.n, s->nwaited) ||
		    !range_ok(s->vcpus[i].pmu.first, s->vcpus[i].pmu.n, s->npmcs))
			return false;
	for (size_t i = 0; i < s->nthreads; i++)
		if (!index_ok(s->threads[i].vm, s->nvms))
			return false;
	return true;
}

static bool rows_ok(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nexits; i++) {
		const struct snap_exit *x = &s->exits[i];

		if (x->vm != SNAP_NO_VM && !index_ok(x->vm, s->nvms))
			return false;
		if (x->vcpu != -1 && !index_ok(x->vcpu, s->nvcpus))
			return false;
	}
	for (size_t i = 0; i < s->nsymbols; i++) {
		const struct snap_symbol *y = &s->symbols[i];

		if (y->vm != SNAP_ALL_VMS && y->vm != SNAP_OTHER && !index_ok(y->vm, s->nvms))
			return false;
		if (y->vcpu != -1 && !index_ok(y->vcpu, s->nvcpus))
			return false;
	}
	for (size_t i = 0; i < s->ncode; i++)
		if (!index_ok(s->code[i].vm, s->nvms))
			return false;
	for (size_t i = 0; i < s->nwaited; i++)
		if (!index_ok(s->waited[i].vm, s->nvms) ||
		    (s->waited[i].vcpu != -1 && !index_ok(s->waited[i].vcpu, s->nvcpus)))
			return false;
	for (size_t i = 0; i < s->npmcs; i++)
		if (!index_ok(s->pmcs[i].vm, s->nvms) || !index_ok(s->pmcs[i].vcpu, s->nvcpus))
			return false;
	for (size_t i = 0; i < s->nslow; i++)
		if (!index_ok(s->slow[i].vm, s->nvms) ||
		    (s->slow[i].vcpu != -1 && !index_ok(s->slow[i].vcpu, s->nvcpus)))
			return false;
	for (size_t i = 0; i < s->nfindings; i++) {
		const struct snap_finding *f = &s->findings[i];

		if ((f->vm != -1 && !index_ok(f->vm, s->nvms)) ||
		    (f->vcpu != -1 && !index_ok(f->vcpu, s->nvcpus)) || !moment_ok(s, f->since))
			return false;
	}
	return true;
}

/* Rows belong to one level each: whoever copies them by level needs no more room than there is. */
static bool sums_ok(const struct snapshot *s)
{
	uint64_t exits = s->host.ex.n, threads = 0, code = 0, vcpus = 0, waited = 0, slow = 0,
		 pmcs = 0;
	uint64_t symbols = (uint64_t)s->host.sym.rows + s->host.other_sym.rows;

	for (size_t i = 0; i < s->nvms; i++) {
		exits += s->vms[i].ex.n;
		symbols += s->vms[i].sym.rows;
		vcpus += s->vms[i].vcpu_n;
		threads += s->vms[i].thread_n;
		code += s->vms[i].code_n;
		waited += s->vms[i].waits.n;
		slow += s->vms[i].slow.n;
	}
	for (size_t i = 0; i < s->nvcpus; i++) {
		exits += s->vcpus[i].ex.n;
		symbols += s->vcpus[i].sym.rows;
		waited += s->vcpus[i].waits.n;
		pmcs += s->vcpus[i].pmu.n;
	}
	return exits <= s->nexits && symbols <= s->nsymbols && vcpus <= s->nvcpus &&
	       threads <= s->nthreads && code <= s->ncode && waited <= s->nwaited &&
	       slow <= s->nslow && pmcs <= s->npmcs;
}

static bool times_ok(const struct snapshot *s)
{
	return s->time >= 0 && s->time <= STORE_TIME_MOST && moment_ok(s, s->since) && s->dt >= 0 &&
	       s->dt <= STORE_DT_MOST && s->wall.tv_sec >= 0 &&
	       s->wall.tv_sec < STORE_TIME_MOST / 1000000000 && s->wall.tv_nsec >= 0 &&
	       s->wall.tv_nsec < 1000000000 && s->delay_s >= 0 && s->delay_s <= 1e6;
}

int store_check(const struct snapshot *s)
{
	if (!times_ok(s) || !vms_ok(s) || !rows_ok(s) || !sums_ok(s))
		return -EBADMSG;
	if (!tables_ok(s, &s->host.ex, &s->host.sym) ||
	    !range_ok(s->host.other_sym.first, s->host.other_sym.rows, s->nsymbols))
		return -EBADMSG;
	return 0;
}
