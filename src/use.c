// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU and steal of threads and VMs (use.h).
 *
 * The kernel adds run delay only when a thread gets the CPU, so a starved vCPU reads 0 for
 * seconds and then one lump. The wait in progress is therefore kept here: where a thread was
 * runnable all the time, all that it did not run it waited, and the lump that comes later
 * takes what was shown already away again.
 *
 * Time may be neither run nor delay: interrupts, what a hypervisor below took, a tick's lag. It is
 * no steal, so it counts only while the thread does wait: where it is not said, it was scheduled in
 * once more than it was switched out while it is on a CPU, and as often while it waits for one.
 */
#include "use.h"

#include <string.h>

#include "clock.h"

/* sum_exec_runtime of a running thread is brought up to date by the tick: at most 10 ms (HZ 100).
 */
#define TICK_LAG (10 * NS_PER_MS)
#define TICK_WINDOW NS_PER_S
/*
 * More than can be is a damaged counter, and no figure: twice the time that passed (on a nohz_full
 * CPU run time comes once a second), a switch every 200 ns, a fault from a disk every us.
 */
#define PERIODS 5 /* of a quota: what one of them has too much is a fifth then */
#define LEAP_SLACK (2 * NS_PER_S)
#define CSW_MOST 5e6
#define MAJFLT_MOST 1e6

enum where { SOMEWHERE, ON_CPU, WAITING };

static double pct(double part, int64_t whole)
{
	return 100.0 * part / (double)whole;
}

static bool backwards(const struct thread_reading *a, const struct thread_reading *b)
{
	if (b->time <= a->time || b->utime < a->utime || b->stime < a->stime ||
	    (a->has_gtime && b->has_gtime && b->gtime < a->gtime))
		return true;
	if (a->has_gstime && b->has_gstime && b->gstime < a->gstime)
		return true;
	return a->has_sched && b->has_sched &&
	       (b->run_ns < a->run_ns || b->delay_ns < a->delay_ns || b->nr_sched < a->nr_sched);
}

/* It claims to have run for longer than can be. */
static bool leapt(const struct thread_reading *a, const struct thread_reading *b, long hz)
{
	double most = 2.0 * (double)(b->time - a->time) + LEAP_SLACK;
	double ticks = (double)(b->utime - a->utime) + (double)(b->stime - a->stime);

	return ticks * 1e9 / (double)hz > most ||
	       (a->has_sched && b->has_sched && (double)(b->run_ns - a->run_ns) > most);
}

static void set_pending(struct snap_use *u)
{
	memset(u, 0, sizeof(*u)); /* VALUE_PENDING is 0 */
}

static struct use_ticks ticks_of(const struct thread_reading *r, int64_t wait_ns)
{
	return (struct use_ticks){r->time, r->utime, r->stime, r->gtime, r->gstime, wait_ns};
}

/*
 * A kernel misses to count one in some thousand times scheduled in: such a thread seems to wait
 * while it runs, which is harmless as long as its run time grows.
 */
static enum where where_is(const struct thread_reading *r)
{
	if (r->state == 'R' && r->has_on_cpu)
		return r->on_cpu ? ON_CPU : WAITING;
	if (r->state != 'R' || !r->has_sched || !r->has_vol || !r->has_nonvol)
		return SOMEWHERE;
	return (int64_t)(r->nr_sched - r->vol - r->nonvol) > 0 ? ON_CPU : WAITING;
}

static void baseline(struct use_state *u, const struct thread_reading *r)
{
	u->seen = true;
	u->last = *r;
	u->base = u->mid = ticks_of(r, 0);
	u->wait_ns = 0;
	u->shares_known = false;
	set_pending(&u->use);
}

/* The window's far end: a second or more back wherever readings reach that far. */
static void move_window(struct use_state *u, int64_t now)
{
	if (now - u->mid.time < TICK_WINDOW)
		return;
	u->base = u->mid;
}

static void find_shares(struct use_state *u, const struct thread_reading *r)
{
	double user, sys, guest;

	move_window(u, r->time);
	user = (double)(r->utime - u->base.utime);
	sys = (double)(r->stime - u->base.stime);
	guest = r->has_gtime ? (double)(r->gtime - u->base.gtime) : 0;
	if (user + sys > 0) {
		u->guest_share = (guest < user ? guest : user) / (user + sys);
		u->sys_share = sys / (user + sys);
		u->shares_known = true;
		u->shares_partial = r->time - u->base.time < TICK_WINDOW - 50 * NS_PER_MS;
	}
	if (r->time - u->mid.time >= TICK_WINDOW)
		u->mid = ticks_of(r, u->wait_ns);
}

/* What the thread did between two readings. */
struct flow {
	int64_t dt, run, delay;
};

/* A damaged counter may have jumped by anything: sums of these cannot overflow. */
static int64_t grown(uint64_t from, uint64_t to)
{
	const uint64_t most = 1ull << 60;

	return (int64_t)(to - from < most ? to - from : most);
}

static int64_t at_least_0(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

/* Runnable from one reading to the next, as far as can be known. */
static bool never_slept(const struct thread_reading *a, const struct thread_reading *b)
{
	if (a->state != 'R' || b->state != 'R')
		return false;
	if (a->has_vol && b->has_vol)
		return a->vol == b->vol;
	return a->nr_sched == b->nr_sched;
}

/* Where it is not known whether it is on a CPU: what it did not run it waited. */
static int64_t wait_guessed(const struct use_state *u, const struct flow *d)
{
	int64_t w = u->wait_ns + d->dt - d->run - d->delay;

	return w > TICK_LAG ? w : 0;
}

/* It waits for a CPU now: since when? */
static int64_t wait_in_progress(const struct use_state *u, const struct thread_reading *r,
				const struct flow *d)
{
	uint64_t times = r->nr_sched - u->last.nr_sched;
	/* Interrupts' time must not add up: it waits hardly longer than a few of its turns. */
	int64_t most = times > 4 && times < INT32_MAX ? 4 * d->dt / (int64_t)times : d->dt, w;

	if (!times && !d->run)
		return u->wait_ns + d->dt;
	w = d->dt - d->run - at_least_0(d->delay - u->wait_ns);
	return w < 0 ? 0 : w < most ? w : most;
}

static struct flow find_flow(struct use_state *u, const struct thread_reading *r)
{
	const struct thread_reading *a = &u->last;
	struct flow d = {.dt = r->time - a->time};
	int64_t wait = 0; /* what it waits since it woke comes with the kernel's lump */
	enum where now = where_is(r);

	if (!a->has_sched || !r->has_sched)
		return d;
	d.run = grown(a->run_ns, r->run_ns);
	d.delay = grown(a->delay_ns, r->delay_ns);
	if (now != ON_CPU && never_slept(a, r))
		wait = now == WAITING ? wait_in_progress(u, r, &d) : wait_guessed(u, &d);
	d.delay = at_least_0(d.delay + wait - u->wait_ns);
	u->wait_ns = wait;
	return d;
}

/* No thread runs for longer than the time; a tick's lag is let through, it evens out. */
static double cpu_of(double run_ns, int64_t dt)
{
	return run_ns > (double)(dt + TICK_LAG) ? 100 : pct(run_ns, dt);
}

static void cpu_figures(struct use_state *u, const struct thread_reading *r, const struct flow *d,
			long hz)
{
	const struct thread_reading *a = &u->last;
	double run = (double)d->run, cpu;

	if (!a->has_sched || !r->has_sched)
		run = ((double)(r->utime - a->utime) + (double)(r->stime - a->stime)) * 1e9 /
		      (double)hz;
	cpu = cpu_of(run, d->dt);
	find_shares(u, r);
	u->use.cpu = value_known(cpu);
	if (cpu <= 0) {
		u->use.guest = u->use.sys = u->use.usr = value_known(0);
	} else if (!u->shares_known && r->time - u->base.time < TICK_WINDOW) {
		u->use.guest = u->use.sys = u->use.usr = value_pending();
	} else if (!u->shares_known) {
		/* Not one tick of it in a second: below what ticks can tell apart. */
		u->use.guest = u->use.sys = value_known(0);
		u->use.usr = value_known(cpu);
	} else {
		double guest = cpu * u->guest_share, sys = cpu * u->sys_share;
		enum value_state st = u->shares_partial ? VALUE_PARTIAL : VALUE_KNOWN;

		u->use.guest = (struct value){.v = guest, .state = (uint8_t)st};
		u->use.sys = (struct value){.v = sys, .state = (uint8_t)st};
		u->use.usr = (struct value){.v = cpu - guest - sys > 0 ? cpu - guest - sys : 0,
					    .state = (uint8_t)st};
	}
	if (!r->has_gtime)
		u->use.guest = value_na(WHY_NO_SOURCE);
}

/* What is left of the time beside what it ran. */
static struct value steal_of(const struct use_state *u, double steal)
{
	double most = 100 - u->use.cpu.v;

	steal = steal > most ? most : steal;
	return value_known(steal > 0 ? steal : 0);
}

/* What it waits for now comes with the next lump: the kernel adds when the vCPU gets to run. */
static double guest_steal_ns(const struct use_state *u, const struct thread_reading *r, long hz)
{
	double told = (double)(r->gstime - u->base.gstime) * 1e9 / (double)hz;

	return told + (double)(u->wait_ns - u->base.wait_ns);
}

static void steal_figures(struct use_state *u, const struct thread_reading *r, const struct flow *d,
			  long hz)
{
	if (r->has_gstime && u->last.has_gstime) {
		int64_t dt = r->time - u->base.time;

		u->use.steal =
			dt > 0 ? steal_of(u, pct(guest_steal_ns(u, r, hz), dt)) : value_pending();
	} else if (r->has_sched && u->last.has_sched) {
		u->use.steal = steal_of(u, pct((double)d->delay, d->dt));
	} else {
		u->use.steal = r->has_sched ? value_pending() : value_na(WHY_NO_SCHEDSTAT);
	}
	u->use.demand =
		value_has(u->use.steal) ? value_known(u->use.cpu.v + u->use.steal.v) : u->use.steal;
}

static struct value rate_of(uint64_t from, uint64_t to, double s, double most)
{
	double v = to >= from ? (double)(to - from) / s : -1;

	return v >= 0 && v <= most ? value_known(v) : value_pending();
}

static void rate_figures(struct use_state *u, const struct thread_reading *r, long hz)
{
	const struct thread_reading *a = &u->last;
	double s = (double)(r->time - a->time) / 1e9, blk;
	bool moved = r->cpu >= 0 && a->cpu >= 0 && r->cpu != a->cpu;

	u->use.mig = r->cpu >= 0 && a->cpu >= 0 ? value_known(moved / s) : value_pending();
	if (a->has_sched && r->has_sched)
		u->use.csw = rate_of(a->nr_sched, r->nr_sched, s, CSW_MOST);
	else
		u->use.csw = value_na(WHY_NO_SCHEDSTAT);
	u->use.majflt = rate_of(a->majflt, r->majflt, s, MAJFLT_MOST);
	blk = 100.0 * (double)(r->blkio_ticks - a->blkio_ticks) / (double)hz / s;
	u->use.blk = r->blkio_ticks >= a->blkio_ticks ? value_known(blk < 100 ? blk : 100)
						      : value_pending();
}

void use_reading(struct use_state *u, const struct thread_reading *r, long clk_tck)
{
	struct flow d;

	if (!u->seen || backwards(&u->last, r) || leapt(&u->last, r, clk_tck)) {
		baseline(u, r);
		return;
	}
	d = find_flow(u, r);
	cpu_figures(u, r, &d, clk_tck);
	steal_figures(u, r, &d, clk_tck);
	rate_figures(u, r, clk_tck);
	u->last = *r;
}

void use_quota_reading(struct use_quota *q, const struct quota_reading *r)
{
	int64_t dt = r->time - q->time;

	q->quota_us = r->quota_us;
	q->period_us = r->period_us;
	q->used_up = r->has && r->used_up;
	q->shared = r->has && r->shared;
	q->limit_pct = r->has ? r->limit_pct : 0;
	if (!r->has) {
		q->throt = value_na(WHY_NO_CGROUP);
		q->seen = false;
		return;
	}
	if (!q->seen || dt <= 0 || r->throttled_ns < q->throttled_ns || r->begun) {
		q->throt = value_pending();
	} else {
		q->throt = value_known(pct((double)(r->throttled_ns - q->throttled_ns), dt));
		q->whole = dt / 1000 > PERIODS * (int64_t)r->period_us;
	}
	q->seen = true;
	q->time = r->time;
	q->throttled_ns = r->throttled_ns;
}

/*
 * No more was throttled than not run. But the kernel counts it when a period ends: short intervals
 * have a period's worth too much or too little.
 */
static double most_throttled(const struct use_quota *quota, struct value cpu)
{
	if (!quota->whole || !value_has(cpu))
		return 100;
	return cpu.v < 100 ? 100 - cpu.v : 0;
}

void use_result(const struct use_state *u, const struct use_quota *quota, struct snap_use *out)
{
	struct value throt = quota ? quota->throt : value_na(WHY_NO_CGROUP);

	*out = u->use;
	if (!u->seen)
		set_pending(out);
	if (value_has(throt) && throt.v > most_throttled(quota, out->cpu))
		throt.v = most_throttled(quota, out->cpu);
	if (!value_has(out->steal)) {
		out->throt = throt;
		out->wait = out->steal;
		return;
	}
	out->throt = throt;
	if (value_has(throt)) {
		double wait = out->steal.v - throt.v;

		out->wait = (struct value){.v = wait > 0 ? wait : 0, .state = out->steal.state};
		/*
		 * What held it back for most of the time; or the quota is used up on this CPU: then
		 * it gets no more without neighbours either, also where the VM's vCPUs wait for one
		 * another within it.
		 */
		out->own_quota = throt.v > 0 && (throt.v >= out->steal.v / 2 || quota->used_up);
	} else if (throt.state == VALUE_PENDING) {
		out->wait = throt;
	} else {
		out->wait = out->steal; /* no quota is known of: all of it is competition */
	}
}

/* ---- sums ---- */

static const struct {
	unsigned short offset;
	bool mean; /* over the vCPUs; else the sum over all threads */
} parts[] = {
	{offsetof(struct snap_use, cpu), false},    {offsetof(struct snap_use, guest), false},
	{offsetof(struct snap_use, usr), false},    {offsetof(struct snap_use, sys), false},
	{offsetof(struct snap_use, steal), true},   {offsetof(struct snap_use, throt), true},
	{offsetof(struct snap_use, wait), true},    {offsetof(struct snap_use, demand), true},
	{offsetof(struct snap_use, csw), false},    {offsetof(struct snap_use, mig), false},
	{offsetof(struct snap_use, majflt), false}, {offsetof(struct snap_use, blk), false},
};
#define NPARTS (sizeof(parts) / sizeof(parts[0]))

void use_sum_add(struct use_sum *s, const struct snap_use *u, bool is_vcpu)
{
	for (size_t i = 0; i < NPARTS; i++) {
		const struct value *v = (const void *)((const char *)u + parts[i].offset);

		if (parts[i].mean && !is_vcpu)
			continue;
		if (value_has(*v)) {
			s->part[i].v += v->v;
			s->part[i].known++;
			s->part[i].vcpus_known += is_vcpu;
			s->part[i].partial |= v->state == VALUE_PARTIAL;
		} else if (v->state == VALUE_NA) {
			s->part[i].na++;
			s->part[i].why = v->why;
		} else {
			s->part[i].pending++;
			s->part[i].vcpus_pending += is_vcpu;
		}
	}
	if (is_vcpu) {
		s->vcpus++;
		if (value_has(u->steal)) {
			s->vcpu_steal += u->steal.v;
			s->quota_steal += u->own_quota ? u->steal.v : 0;
		}
	}
}

void use_sum_result(const struct use_sum *s, struct snap_use *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < NPARTS; i++) {
		struct value *v = (void *)((char *)out + parts[i].offset);
		unsigned n = s->part[i].known;

		/* The rest of a VM is next to nothing: without one vCPU its sum would be a false 0.
		 */
		if (s->part[i].vcpus_pending && !s->part[i].vcpus_known)
			continue;
		if (n)
			*v = value_known(parts[i].mean ? s->part[i].v / n : s->part[i].v);
		else if (s->part[i].na)
			*v = value_na(s->part[i].why);
		if (n && (s->part[i].pending || s->part[i].partial || s->part[i].na)) {
			v->state = VALUE_PARTIAL;
			v->why = s->part[i].why;
		}
	}
	/* As for one vCPU: half or more of what the VM waited was its own quota. */
	out->own_quota = value_has(out->throt) && value_has(out->steal) && out->throt.v > 0 &&
			 (out->throt.v >= out->steal.v / 2 || s->quota_steal >= s->vcpu_steal / 2);
}
