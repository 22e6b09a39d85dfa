// SPDX-License-Identifier: GPL-2.0-only
/*
 * The collecting thread's own loop: the tick, the event rings, the wishes of the readers
 * (engine.c makes it and hands orders over).
 */
#include "engine_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "host_cpu.h"
#include "inventory.h"
#include "model.h"
#include "priority.h"
#include "reader.h"
#include "sched.h"
#include "sched_iter.h"
#include "sysroot.h"
#include "vms.h"

/* Events were seen to become visible up to 2.7 ms after their own time (docs/metrics.md). */
#define WATERMARK_LAG (5 * NS_PER_MS)
/* Pins are asked for this long after a vCPU was starved: they may be why. */
#define STARVED_TICKS 30
/* Intervals in which the host's tasks did next to nothing, before they are looked for seldom. */
#define OTHERS_IDLE 3
/* As many intervals without memory for them, one after the other, are told. */
#define REFUSED_TICKS 3

/* The screen's first intervals, so that rates are there within a second. */
static const double first_delays[] = {0.25, 0.25, 0.5};
#define NFIRST (sizeof(first_delays) / sizeof(first_delays[0]))

/* ---- collectors ---- */

static void say_probe(struct engine *e, const struct collector *c, int open_error)
{
	struct probes p = {0};

	if (c->probe)
		c->probe(&e->env, &p);
	for (size_t i = 0; i < p.n; i++)
		e->env.sink->source(e->env.sink->ctx, p.p[i].source, p.p[i].state, p.p[i].why,
				    p.p[i].mend[0] ? p.p[i].mend : NULL);
	if (open_error)
		e->env.sink->source(e->env.sink->ctx, c->name, SOURCE_OFF, strerror(-open_error),
				    "kvmtop doctor");
}

/* Two of them read by it: it is loaded once. */
static void open_iter(struct engine *e)
{
	bool asked = false;

	for (size_t i = 0; i < e->nactive; i++)
		asked |=
			e->active[i].c == &collector_sched || e->active[i].c == &collector_host_cpu;
	if (asked && !e->config.collector.threads_by_proc && sysroot_is_live(e->env.root))
		e->env.iter = sched_iter_new();
}

static void open_collectors(struct engine *e)
{
	open_iter(e);
	for (size_t i = 0; i < e->nactive; i++) {
		struct active *a = &e->active[i];
		int rc = a->c->open(&e->env, &a->state), fd;

		a->open = rc == 0;
		say_probe(e, a->c, rc);
		if (!a->open)
			continue;
		if (!strcmp(a->c->name, "vms"))
			e->vms = a->state;
		fd = a->c->fd ? a->c->fd(a->state) : -1;
		if (fd >= 0)
			engine_watch(e, fd, a);
	}
}

static void close_collectors(struct engine *e)
{
	for (size_t i = e->nactive; i-- > 0;)
		if (e->active[i].open) {
			e->active[i].c->close(e->active[i].state);
			e->active[i].open = false;
		}
	sched_iter_free(e->env.iter);
	e->env.iter = NULL;
}

/* Events of threads nobody knew: ask who they are while they may still be alive. */
static void resolve_unknown(struct engine *e, int64_t now)
{
	if (e->vms)
		vms_resolve(e->vms, now);
}

static void merge_demand(struct demand *into, const struct demand *d)
{
	into->kinds |= d->kinds;
	into->exits_all_vcpus |= d->exits_all_vcpus;
	into->threads |= d->threads;
	into->tasks |= d->tasks;
	into->pins |= d->pins;
	into->samples |= d->samples;
	into->samples_all |= d->samples_all;
	into->exit_code |= d->exit_code;
	into->waits |= d->waits;
	into->waits_all |= d->waits_all;
	into->slices |= d->slices;
	if (d->slice_ns && (!into->slice_ns || d->slice_ns < into->slice_ns))
		into->slice_ns = d->slice_ns;
	into->slow_past |= d->slow_past;
	into->pmu |= d->pmu;
	into->pmu_all |= d->pmu_all;
	if (d->slow_ns && (!into->slow_ns || d->slow_ns < into->slow_ns))
		into->slow_ns = d->slow_ns;
	for (unsigned i = 0; i < DEMAND_VMS && d->code_vm[i]; i++)
		into->samples_all |= !demand_add_code(into, d->code_vm[i]);
	if (d->vm)
		into->vm = d->vm;
	if (d->vcpu)
		into->vcpu = d->vcpu;
}

static void apply_demand(struct engine *e)
{
	struct demand all = {.kinds = KIND_BIT(KIND_VMEXIT)}, d;

	for (size_t i = 0; i < e->nreader; i++) {
		reader_wants(e->reader[i], &d);
		merge_demand(&all, &d);
	}
	/* A KVM without kvm_exit still tells what leaves to the VMM: that stands in for EXIT/s. */
	if (e->no_entry_exit)
		all.kinds |= KIND_BIT(KIND_USEREXIT);
	/* What the VMM did in a slow exit is in the user exits. */
	if (all.slow_ns)
		all.kinds |= KIND_BIT(KIND_USEREXIT);
	/* What a guest's use of its PMU costs is in its MSR exits. */
	if (all.pmu || all.pmu_all)
		all.kinds |= KIND_BIT(KIND_MSR);
	all.pins |= e->starved > 0;
	all.given_up = e->governor.dropped;
	all.kinds &= ~all.given_up;
	if (e->governor.no_slices)
		all.slices = 0;
	if (e->governor.no_code)
		all.exit_code = false;
	if (e->governor.no_waits)
		all.waits = all.waits_all = false;
	all.exit_where = all.samples && e->exit_where;
	all.exit_places = e->exit_places;
	all.others_quiet = e->others_idle >= OTHERS_IDLE;
	all.exit_off = !e->governor.no_exit_off;
	all.sample_shift = e->governor.sample_shift;
	if (all.samples && e->symbols)
		engine_symbols_begin(e->symbols);
	e->demand = all;
	model_demand(e->model, &all);
	for (size_t i = 0; i < e->nactive; i++)
		if (e->active[i].open && e->active[i].c->demand)
			e->active[i].c->demand(e->active[i].state, &all);
}

/* ---- the interval ---- */

static double next_delay(struct engine *e)
{
	double d;

	if (e->config.short_first && e->ticks <= NFIRST && e->ticks > 0)
		return first_delays[e->ticks - 1];
	pthread_mutex_lock(&e->lock);
	d = e->delay_wanted;
	pthread_mutex_unlock(&e->lock);
	return d;
}

static void arm_timer(struct engine *e, int64_t now)
{
	int64_t step = (int64_t)(next_delay(e) * (double)NS_PER_S);
	struct itimerspec t = {{0, 0}, {0, 0}};

	e->deadline += step;
	if (e->deadline <=
	    now) /* late by more than an interval: the missed ones are one long one */
		e->deadline = now + step;
	t.it_value = timespec_of(e->deadline);
	timerfd_settime(e->timerfd, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Both clocks are read together: a tick takes its time, and single exits are told by theirs. */
static struct timespec wall_at(int64_t mono)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return timespec_of(timespec_ns(t) - (clock_mono_ns() - mono));
}

/* Our own machine's. The C library opens a file for it, so a snapshot's number is taken if it can.
 */
static unsigned count_cpus(const struct engine *e)
{
	long n;

	if (e->ncpu)
		return e->ncpu;
	n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}

static void tell_cost(struct engine *e, int64_t now)
{
	double self = governor_self(&e->governor, now, count_cpus(e));

	model_self(e->model, self < 0 ? value_pending() : value_known(self),
		   self < 0 ? value_pending() : value_known(e->governor.guest_pct));
}

static void govern(struct engine *e, const struct snapshot *s)
{
	char kinds[160], why[240];
	bool dropped;

	if (!governor_look(&e->governor, s))
		return;
	apply_demand(e);
	governor_text(&e->governor, kinds, sizeof(kinds));
	dropped = governor_gave_up(&e->governor);
	if (dropped)
		snprintf(why, sizeof(why), "%s not collected: it would cost more than %.3g%%",
			 kinds, e->governor.max_pct);
	else
		snprintf(why, sizeof(why), "within %.3g%%%s%s%s", e->governor.max_pct,
			 *kinds ? ", without " : "", kinds,
			 *kinds ? ", which would cost more" : "");
	e->env.sink->source(e->env.sink->ctx, GOVERNOR_SOURCE, dropped ? SOURCE_PARTIAL : SOURCE_OK,
			    why, dropped ? "kvmtop --max-overhead 10" : NULL);
}

/* vCPUs run and not one kvm_exit: whether this KVM fires any is then found by other events. */
static void find_entry_exit(struct engine *e, const struct snapshot *s)
{
	bool none = !s->host.entry_exit;

	/* An interval without vCPUs says nothing. */
	if (none == e->no_entry_exit || (none && (!s->nvcpus || s->dt <= 0)))
		return;
	e->no_entry_exit = none;
	apply_demand(e);
}

/*
 * Where a vCPU is starved its pins may be the reason (the rule pin-overlap), so they are read
 * though no column shows them; and for a while longer, for steal comes and goes.
 */
static void find_starved(struct engine *e, const struct snapshot *s)
{
	bool before = e->starved > 0;

	if (e->starved > 0)
		e->starved--;
	for (size_t i = 0; i < s->nfindings; i++)
		if (!strcmp(s->findings[i].rule, "steal"))
			e->starved = STARVED_TICKS;
	if (before != (e->starved > 0))
		apply_demand(e);
}

static void find_others(struct engine *e, const struct snapshot *s)
{
	struct value v = s->host.other_cpu;
	bool before = e->demand.others_quiet;

	if (!value_has(v) || v.v >= OTHER_TASK_PCT)
		e->others_idle = 0;
	else if (e->others_idle < OTHERS_IDLE)
		e->others_idle++;
	if (before != (e->others_idle >= OTHERS_IDLE))
		apply_demand(e);
}

/*
 * Some exits tell whether a guest's symbols fit; until the slide of its kernel is known more of
 * them are looked at.
 */
static void find_places(struct engine *e)
{
	bool where = engine_symbols_checks_exits(e->symbols);
	bool more = engine_symbols_wants_exits(e->symbols);

	if (where == e->exit_where && more == e->exit_places)
		return;
	e->exit_where = where;
	e->exit_places = more;
	apply_demand(e);
}

static void publish(struct engine *e, struct snapshot *s)
{
	for (size_t i = 0; i < e->nreader; i++)
		reader_put(e->reader[i], s);
}

/* The figures are kept: the next interval is the longer. But who waits for it shall know. */
static void refuse(struct engine *e)
{
	if (++e->refused != REFUSED_TICKS)
		return;
	e->env.sink->source(e->env.sink->ctx, "memory", SOURCE_PARTIAL,
			    "refused: there was none for an interval, which is longer for it",
			    "ulimit -v, or MemoryMax= of the service");
	for (size_t i = 0; i < e->nreader; i++)
		reader_fail(e->reader[i], -ENOMEM);
}

/* After the snapshot that says it. */
static void end_refusal(struct engine *e)
{
	if (e->refused >= REFUSED_TICKS)
		e->env.sink->source(e->env.sink->ctx, "memory", SOURCE_OK, "works", NULL);
	e->refused = 0;
}

static void tick(struct engine *e)
{
	int64_t now = clock_mono_ns(), w = now - WATERMARK_LAG;
	bool first_rates = e->config.short_first && e->ticks > 0 && e->ticks <= NFIRST;
	struct snapshot *s;
	unsigned done = 0, all = 0;

	if (atomic_exchange(&e->reset, false))
		model_reset(e->model);
	for (size_t i = 0; i < e->nactive; i++)
		if (e->active[i].open && e->active[i].c->tick)
			e->active[i].c->tick(e->active[i].state, now, w);
	resolve_unknown(e, now);
	engine_symbols_tick(e->symbols, now);
	find_places(e);
	if (e->vms) {
		vms_progress(e->vms, &done, &all);
		model_discovery(e->model, done, all);
	}
	tell_cost(e, now);
	s = model_commit(e->model, w, wall_at(w), first_rates, next_delay(e));
	e->watermark = w;
	e->ticks++;
	if (s) {
		e->ncpu = sysroot_is_live(e->env.root) ? s->host.ncpu : 0;
		govern(e, s);
		find_entry_exit(e, s);
		find_starved(e, s);
		find_others(e, s);
		publish(e, s);
		snapshot_unref(s);
		end_refusal(e);
	} else {
		refuse(e);
	}
	inventory_sweep_old(e->env.inv);
	arm_timer(e, clock_mono_ns());
}

/* ---- the loop ---- */

static void on_control(struct engine *e)
{
	uint64_t n;

	if (read(e->ctlfd, &n, sizeof(n)) < 0)
		return;
	apply_demand(e);
	if (atomic_exchange(&e->tick_now, false)) {
		e->deadline = clock_mono_ns();
		tick(e);
	}
}

static void on_timer(struct engine *e)
{
	uint64_t missed;

	if (read(e->timerfd, &missed, sizeof(missed)) == (ssize_t)sizeof(missed))
		tick(e);
}

static void on_collector(struct engine *e, struct active *a)
{
	int64_t now = clock_mono_ns();

	if (a->open && a->c->ready)
		a->c->ready(a->state, now);
	resolve_unknown(e, now);
}

void *engine_collect(void *arg)
{
	struct engine *e = arg;
	struct epoll_event ev[8];

	pthread_setname_np(pthread_self(), "kvmtop-collect");
	priority_raise();
	open_collectors(e);
	apply_demand(e);
	e->deadline = clock_mono_ns();
	tick(e); /* the baseline */
	while (!atomic_load(&e->stop)) {
		int n = epoll_wait(e->epfd, ev, 8, -1);

		for (int i = 0; i < n; i++)
			if (ev[i].data.ptr == &e->ctlfd)
				on_control(e);
			else if (ev[i].data.ptr == &e->timerfd)
				on_timer(e);
			else if (ev[i].data.ptr == &e->symbols)
				engine_symbols_ready(e->symbols);
			else
				on_collector(e, ev[i].data.ptr);
	}
	close_collectors(e);
	return NULL;
}
