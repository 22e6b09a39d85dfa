// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules behind line 3 of the screen and the JSON "findings": each looks at a whole snapshot
 * and says in words what is wrong. One finding a VM and rule, about its worst vCPU: a host with a
 * thousand starved vCPUs has one cause, not a thousand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "grow.h"
#include "hoststat.h"

#define STEAL_WARNING 10.0 /* the host is overcommitted */
#define STEAL_ALARM 50.0
#define EXIT_WARNING 20.0
#define EXIT_ALARM 50.0
#define OPEN_WARNING 1e9 /* ns */
#define OPEN_ALARM 10e9
#define BUSY 80.0 /* of a pCPU */
#define IDLE 90.0
#define HYSTERESIS 0.8 /* what held before holds until it is below this part of its threshold */

/* What a finding is about, across snapshots. */
struct subject {
	const char *rule; /* one of the table's, compared by address */
	uint32_t vm; /* inv_vm.id, 0 none */
	int32_t cpu; /* -1 none */
};

struct held {
	struct subject subject;
	int64_t since;
	bool now;
};

struct findings {
	struct held *held;
	size_t n, room;
};

struct look {
	struct findings *f;
	struct snapshot *s;
	struct snap_finding *out; /* grows; copied into the snapshot at the end */
	size_t n, room;
	int err;
};

struct rule {
	const char *id;
	void (*look)(struct look *l, const char *id);
};

struct findings *findings_new(void)
{
	return calloc(1, sizeof(struct findings));
}

void findings_free(struct findings *f)
{
	if (!f)
		return;
	free(f->held);
	free(f);
}

/* ---- since when ---- */

static struct held *find_held(const struct findings *f, const struct subject *s)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct subject *h = &f->held[i].subject;

		if (h->rule == s->rule && h->vm == s->vm && h->cpu == s->cpu)
			return &f->held[i];
	}
	return NULL;
}

/* The threshold for a subject: lower while it holds. */
static double threshold(const struct look *l, const struct subject *s, double t)
{
	return find_held(l->f, s) ? t * HYSTERESIS : t;
}

static int64_t hold(struct look *l, const struct subject *s)
{
	struct findings *f = l->f;
	struct held *h = find_held(f, s);

	if (!h) {
		if (!grow(&f->held, f->n, &f->room, sizeof(*f->held)))
			return l->s->time;
		h = &f->held[f->n++];
		*h = (struct held){.subject = *s, .since = l->s->time};
	}
	h->now = true;
	return h->since;
}

static void forget_what_ended(struct findings *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (!f->held[i].now)
			continue;
		f->held[n] = f->held[i];
		f->held[n++].now = false;
	}
	f->n = n;
}

/* Adds one; the caller fills text and next. NULL: no memory. */
static struct snap_finding *add(struct look *l, const struct subject *subject, uint8_t level,
				double value, double limit)
{
	struct snap_finding *r;

	if (!grow(&l->out, l->n, &l->room, sizeof(*l->out))) {
		l->err = -ENOMEM;
		return NULL;
	}
	r = &l->out[l->n++];
	*r = (struct snap_finding){
		.rule = subject->rule,
		.level = level,
		.vm = -1,
		.vcpu = -1,
		.value = value_known(value),
		.threshold = limit,
		.since = hold(l, subject),
		.text = "",
		.next = "",
	};
	return r;
}

static uint8_t level_of(double v, double warning, double alarm)
{
	return v >= alarm ? 3 : v >= warning ? 2 : 1;
}

/* ---- the rules ---- */

/* "web01 vCPU 3", and how many others of the VM are over the limit as well. */
static const char *who(struct look *l, const struct snap_vm *vm, const struct snap_vcpu *v,
		       unsigned others)
{
	if (!others)
		return snapshot_printf(l->s, "%s vCPU %d", vm->name, v->index);
	return snapshot_printf(l->s, "%s vCPU %d (and %u more)", vm->name, v->index, others);
}

struct worst {
	const struct snap_vcpu *v;
	unsigned others;
	double value;
};

static struct worst worst_of(const struct snapshot *s, const struct snap_vm *vm, double limit,
			     struct value (*get)(const struct snap_vcpu *v))
{
	struct worst w = {0};

	for (uint32_t i = 0; i < vm->vcpu_n; i++) {
		const struct snap_vcpu *v = &s->vcpus[vm->vcpu_first + i];
		struct value x = get(v);

		if (!value_has(x) || x.v < limit)
			continue;
		w.others += w.v != NULL;
		if (w.v && x.v <= w.value)
			continue;
		w.v = v;
		w.value = x.v;
	}
	return w;
}

/* Each cause by itself: what its own quota took is no reason to look for neighbours. */
static struct value steal_of_others(const struct snap_vcpu *v)
{
	return v->use.own_quota ? value_pending() : v->use.steal;
}

static struct value steal_of_quota(const struct snap_vcpu *v)
{
	return v->use.own_quota ? v->use.steal : value_pending();
}

/* The worst vCPU of each VM that waits for a CPU; say() finds the words for it. */
static void look_waiting(struct look *l, const char *id,
			 struct value (*get)(const struct snap_vcpu *v),
			 void (*say)(struct look *l, struct snap_finding *f,
				     const struct snap_vm *vm, const struct worst *w))
{
	for (size_t i = 0; i < l->s->nvms; i++) {
		const struct snap_vm *vm = &l->s->vms[i];
		struct subject subject = {id, vm->id, -1};
		struct worst w = worst_of(l->s, vm, threshold(l, &subject, STEAL_NOTICE), get);
		struct snap_finding *f;

		if (!w.v)
			continue;
		f = add(l, &subject, level_of(w.value, STEAL_WARNING, STEAL_ALARM), w.value,
			STEAL_NOTICE);
		if (!f)
			return;
		f->vm = (int32_t)i;
		f->vcpu = (int32_t)(w.v - l->s->vcpus);
		say(l, f, vm, &w);
	}
}

static void say_steal(struct look *l, struct snap_finding *f, const struct snap_vm *vm,
		      const struct worst *w)
{
	f->text = snapshot_printf(l->s, "%s: %.0f%% steal, it waits for a CPU",
				  who(l, vm, w->v, w->others), w->value);
	f->next = w->v->cpu < 0
			  ? "5: who had the CPU meanwhile; 6: how busy the CPUs are"
			  : snapshot_printf(
				    l->s, "5: who had the CPU meanwhile; 6: what else wants CPU %d",
				    w->v->cpu);
}

static void look_steal(struct look *l, const char *id)
{
	look_waiting(l, id, steal_of_others, say_steal);
}

static const char *how_much(double part, double whole)
{
	return part >= 0.95 * whole ? "all" : part >= 0.67 * whole ? "most" : "half";
}

static void say_quota(struct look *l, struct snap_finding *f, const struct snap_vm *vm,
		      const struct worst *w)
{
	const char *vcpus = who(l, vm, w->v, w->others);
	const char *whose = vm->quota_shared ? "a CPU quota that it shares" : "its own CPU quota";
	double throt = w->v->use.throt.v;

	if (throt < w->value / 2)
		f->text = snapshot_printf(l->s, "%s: %.0f%% steal, and %s is used up", vcpus,
					  w->value, whose);
	else
		f->text = snapshot_printf(l->s, "%s: %.0f%% steal, %s of it %s", vcpus, w->value,
					  how_much(throt, w->value), whose);
	if (vm->quota_held_pct > 0)
		f->next = snapshot_printf(l->s,
					  "its cgroup may use %.0f%% of a CPU: raise its quota (i: "
					  "which file)",
					  vm->quota_held_pct);
	else
		f->next = "raise the quota of its cgroup (i: which file)";
}

static void look_quota(struct look *l, const char *id)
{
	look_waiting(l, id, steal_of_quota, say_quota);
}

static void look_exits(struct look *l, const char *id)
{
	for (size_t i = 0; i < l->s->nvms; i++) {
		const struct snap_vm *vm = &l->s->vms[i];
		struct subject subject = {id, vm->id, -1};
		struct value v = vm->ex.pct;
		double at = value_has(v) ? v.v - snapshot_waited_in_exits(vm) : 0;
		const char *off = "";
		struct snap_finding *f;

		if (!value_has(v) || at < threshold(l, &subject, EXIT_WARNING))
			continue;
		f = add(l, &subject, level_of(at, 0, EXIT_ALARM), v.v, EXIT_WARNING);
		if (!f)
			return;
		f->vm = (int32_t)i;
		if (value_has(vm->ex.off_pct) && vm->ex.off_pct.v >= 1)
			off = snapshot_printf(l->s, " (%.0f%% without a CPU)", vm->ex.off_pct.v);
		if (vm->ex.top[0] && value_has(vm->ex.top_pct))
			f->text = snapshot_printf(l->s,
						  "%s: %.0f%% of its vCPUs' time is in exits%s, "
						  "%s %.0f%% of it",
						  vm->name, v.v, off, vm->ex.top, vm->ex.top_pct.v);
		else
			f->text =
				snapshot_printf(l->s, "%s: %.0f%% of its vCPUs' time is in exits%s",
						vm->name, v.v, off);
		f->next = "2: its exits and their times; 3: what they access";
	}
}

static struct value open_of(const struct snap_vcpu *v)
{
	return v->ex.open_ns;
}

static void look_open(struct look *l, const char *id)
{
	for (size_t i = 0; i < l->s->nvms; i++) {
		const struct snap_vm *vm = &l->s->vms[i];
		struct subject subject = {id, vm->id, -1};
		struct worst w = worst_of(l->s, vm, OPEN_WARNING, open_of);
		struct snap_finding *f;
		bool stopped;

		if (!w.v)
			continue;
		f = add(l, &subject, level_of(w.value, OPEN_WARNING, OPEN_ALARM), w.value,
			OPEN_WARNING);
		if (!f)
			return;
		stopped = w.v->state == 'T' || w.v->state == 't';
		f->vm = (int32_t)i;
		f->vcpu = (int32_t)(w.v - l->s->vcpus);
		f->text = snapshot_printf(l->s, "%s: in exit %.1f s (%s)%s",
					  who(l, vm, w.v, w.others), w.value / 1e9, w.v->ex.open,
					  stopped ? ", its thread is stopped" : "");
		f->next = stopped ? "the VMM's process was stopped by a signal or a debugger"
				  : "9: what the VMM's threads do meanwhile";
	}
}

struct pinned {
	int32_t cpu;
	uint32_t vcpu;
};

static int compare_pinned(const void *a, const void *b)
{
	const struct pinned *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->vcpu < y->vcpu ? -1 : x->vcpu > y->vcpu;
}

static void say_pinned(struct look *l, const char *id, const struct pinned *p, size_t n)
{
	const struct snap_vcpu *a = &l->s->vcpus[p[0].vcpu], *b = &l->s->vcpus[p[1].vcpu];
	const struct snap_vm *va = &l->s->vms[a->vm], *vb = &l->s->vms[b->vm];
	struct subject subject = {id, 0, p->cpu};
	double demand = 0;
	struct snap_finding *f;

	for (size_t i = 0; i < n; i++) {
		struct value d = l->s->vcpus[p[i].vcpu].use.demand;

		demand += value_has(d) ? d.v : 0;
	}
	f = add(l, &subject, demand >= 100 ? 2 : 1, (double)n, 2);
	if (!f)
		return;
	f->vm = (int32_t)a->vm;
	f->vcpu = (int32_t)p[0].vcpu;
	if (n == 2)
		f->text = snapshot_printf(l->s,
					  "%s vCPU %d and %s vCPU %d are pinned to CPU %d alone",
					  va->name, a->index, vb->name, b->index, p->cpu);
	else
		f->text =
			snapshot_printf(l->s,
					"%s vCPU %d, %s vCPU %d and %zu more are pinned to CPU %d "
					"alone",
					va->name, a->index, vb->name, b->index, n - 2, p->cpu);
	f->next = "6: the CPUs; give each vCPU a CPU of its own, or a range";
}

static void look_pins(struct look *l, const char *id)
{
	struct pinned *p = calloc(l->s->nvcpus ? l->s->nvcpus : 1, sizeof(*p));
	size_t n = 0, k;

	if (!p) {
		l->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < l->s->nvcpus; i++) {
		int32_t cpu = hoststat_only_cpu(l->s->vcpus[i].pin);

		if (cpu >= 0)
			p[n++] = (struct pinned){cpu, i};
	}
	qsort(p, n, sizeof(*p), compare_pinned);
	for (size_t i = 0; i < n; i += k) {
		for (k = 1; i + k < n && p[i + k].cpu == p[i].cpu;)
			k++;
		if (k > 1)
			say_pinned(l, id, p + i, k);
	}
	free(p);
}

static const struct snap_cpu *cpu_row(const struct snapshot *s, int cpu)
{
	for (size_t i = 0; i < s->ncpus; i++)
		if (s->cpus[i].cpu == cpu)
			return &s->cpus[i];
	return NULL;
}

/* Both threads of a core do nothing. */
static const struct snap_cpu *idle_core(const struct snapshot *s)
{
	for (size_t i = 0; i < s->ncpus; i++) {
		const struct snap_cpu *a = &s->cpus[i];
		const struct snap_cpu *b = a->sibling < 0 ? a : cpu_row(s, a->sibling);

		if (b && a->online && b->online && value_has(a->idle) && value_has(b->idle) &&
		    a->idle.v >= IDLE && b->idle.v >= IDLE)
			return a;
	}
	return NULL;
}

/* The busiest pair of siblings that both run vCPUs; its less busy half counts. */
static const struct snap_cpu *busy_pair(const struct snapshot *s, double limit, double *busy)
{
	const struct snap_cpu *found = NULL;

	*busy = limit;
	for (size_t i = 0; i < s->ncpus; i++) {
		const struct snap_cpu *a = &s->cpus[i], *b;
		double less;

		if (a->sibling <= a->cpu || !a->nvcpu_seen || !value_has(a->idle))
			continue;
		b = cpu_row(s, a->sibling);
		if (!b || !b->nvcpu_seen || !value_has(b->idle))
			continue;
		less = 100 - (a->idle.v > b->idle.v ? a->idle.v : b->idle.v);
		if (less < *busy)
			continue;
		*busy = less;
		found = a;
	}
	return found;
}

static void look_smt(struct look *l, const char *id)
{
	struct subject subject = {id, 0, -1};
	const struct snap_cpu *free_core = idle_core(l->s), *pair;
	struct snap_finding *f;
	double busy;

	if (!free_core)
		return;
	pair = busy_pair(l->s, threshold(l, &subject, BUSY), &busy);
	f = pair ? add(l, &subject, 1, busy, BUSY) : NULL;
	if (!f)
		return;
	f->text =
		snapshot_printf(l->s,
				"CPU %d and its SMT sibling %d both run vCPUs (%.0f%% busy) while "
				"the core of CPU %d idles",
				pair->cpu, pair->sibling, busy, free_core->cpu);
	f->next = "6: the CPUs and who is pinned there";
}

static void look_lost(struct look *l, const char *id)
{
	struct subject subject = {id, 0, -1};
	struct snap_finding *f;

	if (!l->s->host.lost)
		return;
	f = add(l, &subject, 2, (double)l->s->host.lost, 0);
	if (!f)
		return;
	f->text = snapshot_printf(l->s, "%llu events lost: counts are too low by as many",
				  (unsigned long long)l->s->host.lost);
	f->next =
		"close panes that open more kinds of events, or run doctor: the rings may be small";
}

static void look_code_lost(struct look *l, const char *id)
{
	struct subject subject = {id, 0, -1};
	uint64_t n = l->s->host.code_lost;
	struct snap_finding *f = n ? add(l, &subject, 2, (double)n, 0) : NULL;

	if (!f)
		return;
	f->text = snapshot_printf(l->s,
				  "%llu exits lost: counts by guest code are too low by as many",
				  (unsigned long long)n);
	f->next = "the exits' own counts are whole: how many there are is in the table of exits";
}

static void look_unwatched(struct look *l, const char *id)
{
	const struct snap_host *h = &l->s->host;
	struct subject subject = {id, 0, -1};
	double s = (double)h->unwatched_ns / 1e9;
	struct snap_finding *f;

	if (!h->unwatched)
		return;
	f = add(l, &subject, 2, s, 0);
	if (!f)
		return;
	if (h->unwatched == 1)
		f->text = snapshot_printf(l->s,
					  "CPU %d was not watched for up to %.1f s: events "
					  "there are missing",
					  h->unwatched_cpu, s);
	else
		f->text = snapshot_printf(l->s,
					  "CPU %d and %u more were not watched for up to %.1f s: "
					  "events there are missing",
					  h->unwatched_cpu, h->unwatched - 1, s);
	f->next = "counts of this interval are too low; was the CPU offline, the host suspended?";
}

static const struct rule rules[] = {
	{"quota", look_quota},	       {"steal", look_steal},	   {"open-exit", look_open},
	{"exits", look_exits},	       {"lost", look_lost},	   {"code-lost", look_code_lost},
	{"unwatched", look_unwatched}, {"pin-overlap", look_pins}, {"smt-siblings", look_smt},
};

/* ---- the whole ---- */

static double urgency(const struct snap_finding *f)
{
	return f->threshold > 0 ? f->value.v / f->threshold : 1;
}

/* Ties by VM: an order that is the same in each interval. */
static int most_pressing_first(const void *a, const void *b)
{
	const struct snap_finding *x = a, *y = b;
	double ux = urgency(x), uy = urgency(y);

	if (x->level != y->level)
		return y->level - x->level;
	if (ux > uy || ux < uy)
		return ux > uy ? -1 : 1;
	return x->vm < y->vm ? -1 : x->vm > y->vm;
}

int findings_make(struct findings *f, struct snapshot *s)
{
	struct look l = {.f = f, .s = s};
	struct snap_finding *out = NULL;

	for (size_t i = 0; s->dt > 0 && i < sizeof(rules) / sizeof(rules[0]); i++)
		rules[i].look(&l, rules[i].id);
	forget_what_ended(f);
	if (l.n) {
		qsort(l.out, l.n, sizeof(*l.out), most_pressing_first);
		out = snapshot_alloc(s, l.n, sizeof(*out));
	}
	if (out) {
		memcpy(out, l.out, l.n * sizeof(*out));
		s->findings = out;
		s->nfindings = l.n;
	}
	free(l.out);
	return l.err || (l.n && !out) ? -ENOMEM : 0;
}
