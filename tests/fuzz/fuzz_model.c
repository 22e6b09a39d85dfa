// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any sequence of events, losses, kinds, VMs that come, are identified and go: no event may be
 * missing from the sums, and no figure may leave its range.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inventory.h"
#include "kvm_names.h"
#include "model.h"

#define NTID 12
#define SCALE (1 << 20) /* leaves each event a time of its own */

struct fuzz {
	const uint8_t *p, *end;
	struct inventory *inv;
	struct model *m;
	const struct sink *sink;
	int64_t now;
	uint64_t unique; /* no two events are the same record */
	uint64_t count[KIND_NR], total[KIND_NR]; /* what must come out */
	bool first;
};

static unsigned byte(struct fuzz *f)
{
	return f->p < f->end ? *f->p++ : 0;
}

/* A macro, so that a crash names the line. */
#define must(ok)                                                                                   \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static int kind_of(const struct sample *s)
{
	switch (s->type) {
	case EV_EXIT:
		return KIND_VMEXIT;
	case EV_MMIO:
		return s->dir == DIR_READ || s->dir == DIR_WRITE ? KIND_MMIO : -1;
	case EV_PIO:
		return KIND_IOPORT;
	case EV_MSR:
		return KIND_MSR;
	case EV_HYPERCALL:
		return KIND_HYPERCALL;
	case EV_USEREXIT:
		return KIND_USEREXIT;
	case EV_VCPU_WAKEUP:
		return s->dir == DIR_NONE ? -1 : KIND_HALT; /* without a direction: as poll size */
	default:
		return -1;
	}
}

static void some_event(struct fuzz *f, unsigned op)
{
	unsigned who = byte(f), what = byte(f);
	struct sample s = {
		.type = (uint8_t)(op % (EV_NR + 1)),
		.tid = 100 + (int)(who % NTID),
		.vcpu_id = who & 0x80 ? (int)(who >> 4 & 3) : -1,
		.cpu = (uint16_t)who,
		.dir = what & 3,
		.key = what >> 2,
		.aux = (uint64_t)what << (what & 31),
		.isa = what & 1 ? ISA_SVM : ISA_VMX,
	};
	int kind = kind_of(&s);

	f->now += 1 + (int64_t)what * 1000;
	/* Sometimes late, sometimes far back. */
	s.time = f->now - (op & 0x40 ? (int64_t)(what * 3000) : 0);
	s.time = s.time * SCALE + (int64_t)(f->unique++ % SCALE);
	f->sink->samples(f->sink->ctx, &s, 1);
	if (kind >= 0)
		f->count[kind]++;
}

static void some_aggregate(struct fuzz *f)
{
	unsigned what = byte(f);
	struct aggregate a = {
		.tid = 100 + (int)(what % NTID),
		.vcpu_id = -1,
		.kind = (uint8_t)(what % (KIND_NR - 1)),
		.dir = DIR_WRITE,
		.key = what,
		.count = what,
		.timed = what / 2,
		.sum_ns = what / 2 * 100,
		.min_ns = 100,
		.max_ns = 100,
		.sumsq = what / 2 * 10000,
	};

	f->sink->aggregates(f->sink->ctx, &a, 1);
	f->count[a.kind] += what;
}

static void some_vm(struct fuzz *f)
{
	unsigned who = byte(f);
	pid_t tid = 100 + (pid_t)(who % NTID);
	pid_t pid = 50 + tid % 3; /* a thread stays in its process, which may hold two VMs */
	const char *key = who & 0x40 ? "4" : "9";
	struct inv_thread *t = inventory_thread(f->inv, tid);
	struct inv_vm *vm;

	if (t && t->vm->flags & INV_PROVISIONAL)
		vm = inventory_identify(f->inv, t->vm, pid, 1, key);
	else
		vm = inventory_add_vm(f->inv, pid, 1, key);
	t = inventory_add_thread(f->inv, vm, vm->pid, tid, who & 0x10 ? 2 : 1,
				 who & 0x20 ? ROLE_VCPU : ROLE_VMM);
	if (t && who & 0x20)
		inventory_set_thread(f->inv, inventory_add_vcpu(f->inv, vm, (int)(who >> 4 & 3)),
				     t);
}

static void some_end(struct fuzz *f)
{
	unsigned who = byte(f);
	struct inv_thread *t = inventory_thread(f->inv, 100 + (pid_t)(who % NTID));

	if (!t)
		return;
	if (who & 0x80)
		inventory_thread_gone(f->inv, t);
	else if (who & 0x40 && t->vcpu && t->vcpu->vm == t->vm)
		inventory_vcpu_gone(f->inv, t->vcpu);
	else
		inventory_vm_gone(f->inv, t->vm);
}

static void in_range(struct value v, double most)
{
	must(!value_has(v) || (v.v >= 0 && v.v <= most));
}

static void check_tally(const struct tally *t)
{
	must(t->min_ns <= t->max_ns);
	must(!t->timed ||
	     (t->avg_ns >= (double)t->min_ns - 1 && t->avg_ns <= (double)t->max_ns + 1));
	must(t->stderr_pct >= 0 && t->p50_ns <= t->p99_ns && t->p99_ns <= t->p999_ns);
	in_range(t->count_pct, 100.001);
	in_range(t->time_pct, 100.001);
}

static void check_rows(struct fuzz *f, const struct snapshot *s)
{
	uint64_t now[KIND_NR] = {0}, host[KIND_NR] = {0}, total[KIND_NR] = {0};

	for (size_t i = 0; i < s->nexits; i++) {
		const struct snap_exit *e = &s->exits[i];

		must(e->vm < s->nvms || (e->vm == SNAP_NO_VM && e->vcpu < 0));
		must(e->vcpu < (int32_t)s->nvcpus);
		check_tally(&e->now);
		check_tally(&e->total);
		must(e->total.count >= e->now.count);
		if (e->vm == SNAP_NO_VM) {
			host[e->kind] += e->now.count;
			total[e->kind] += e->total.count;
		} else if (e->vcpu < 0) {
			now[e->kind] += e->now.count;
		}
	}
	for (int k = 0; k < KIND_NR; k++) {
		f->total[k] += f->count[k];
		/* What did not fit holds poll sizes too; they are no events. */
		if (k != KIND_HALT) {
			must(now[k] == f->count[k] && s->kinds[k].count == f->count[k]);
			must(s->kinds_total[k].count == f->total[k]);
			must(host[k] == f->count[k] && total[k] == f->total[k]);
		}
		f->count[k] = 0;
	}
}

static void check_uses(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nvms; i++) {
		in_range(s->vms[i].ex.pct, 100);
		in_range(s->vms[i].ex.top_pct, 100.001);
		must(s->vms[i].name && s->vms[i].why_text && s->vms[i].ex.top);
	}
	for (size_t i = 0; i < s->nvcpus; i++) {
		in_range(s->vcpus[i].ex.pct, 100);
		must(s->vcpus[i].vm < s->nvms && s->vcpus[i].ex.open && s->vcpus[i].pin);
	}
	for (size_t i = 0; i < s->nfindings; i++)
		must(s->findings[i].text[0] && s->findings[i].since <= s->time);
}

static void check_slow(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nvms; i++) {
		const struct snap_slows *w = &s->vms[i].slow;
		uint64_t fresh = 0;

		must(w->total >= w->count && w->first + w->n <= s->nslow);
		for (uint32_t k = 0; k < w->n; k++) {
			const struct snap_slow *x = &s->slow[w->first + k];

			must(x->vm == i && x->vcpu < (int32_t)s->nvcpus);
			must(x->exit && x->rip && x->name && x->user && x->time && x->at);
			fresh += x->fresh;
		}
		must(fresh <= w->count);
	}
}

static void some_commit(struct fuzz *f)
{
	struct snapshot *s;

	f->now += 1000;
	s = model_commit(f->m, f->now * SCALE, (struct timespec){0}, false, 1);
	must(s);
	check_rows(f, s);
	check_uses(s);
	check_slow(s);
	snapshot_unref(s);
	inventory_sweep_old(f->inv);
}

static void step(struct fuzz *f)
{
	unsigned op = byte(f);
	struct demand d = {.exits_all_vcpus = op & 0x40,
			   .vm = op >> 4 & 3,
			   .slow_ns = op & 0x80 ? SCALE : 0,
			   .slow_past = op & 0x40};
	struct loss l = {
		.from = f->now * SCALE - (int64_t)op * 4 * SCALE, .to = f->now * SCALE, .n = 1};

	switch (op & 15) {
	case 0:
		some_commit(f);
		break;
	case 1:
		f->sink->loss(f->sink->ctx, &l);
		break;
	case 2:
		some_aggregate(f);
		break;
	case 3:
	case 4:
		some_vm(f);
		break;
	case 5:
		some_end(f);
		break;
	case 6:
		model_demand(f->m, &d);
		break;
	case 7:
		f->sink->kinds(f->sink->ctx, byte(f) & KIND_ALL, op & 0x80, f->now);
		break;
	default:
		some_event(f, op);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct model_config c = {.clk_tck = 100, .vcpu_keys = 3, .vm_keys = 5};
	struct kvm_names *names = kvm_names_new();
	struct fuzz f = {.p = data, .end = data + len, .inv = inventory_new(), .now = 1000000};

	f.m = model_new(&c, f.inv, names);
	must(f.m && names);
	f.sink = model_sink(f.m);
	f.sink->kinds(f.sink->ctx, KIND_ALL, true, 0);
	some_commit(&f);
	while (f.p < f.end)
		step(&f);
	some_commit(&f);
	some_commit(&f);
	model_free(f.m);
	inventory_free(f.inv);
	kvm_names_free(names);
	return 0;
}
