// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's figures, a row a pCPU, and what belongs to no VM.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hoststat.h"
#include "model_rows.h"

#define VCPUS_TEXT 200

struct shares {
	struct value usr, sys, irq, wa, st, guest, idle;
};

/* iowait and idle of a kernel may step back by a tick; anything else going back is no baseline. */
static bool delta(uint64_t now, uint64_t prev, bool may_step_back, double *out)
{
	*out = now >= prev ? (double)(now - prev) : 0;
	return now >= prev || may_step_back;
}

static struct shares ticks_shares(const struct cpu_ticks *a, const struct cpu_ticks *b)
{
	double user, nice, sys, idle, wait, irq, soft, st, guest, gnice, usr, all;
	struct shares out = {0};

	if (!delta(b->user, a->user, false, &user) || !delta(b->nice, a->nice, false, &nice) ||
	    !delta(b->system, a->system, false, &sys) || !delta(b->idle, a->idle, true, &idle) ||
	    !delta(b->iowait, a->iowait, true, &wait) || !delta(b->irq, a->irq, false, &irq) ||
	    !delta(b->softirq, a->softirq, false, &soft) ||
	    !delta(b->steal, a->steal, false, &st) || !delta(b->guest, a->guest, false, &guest) ||
	    !delta(b->guest_nice, a->guest_nice, false, &gnice))
		return out;
	guest += gnice;
	usr = user + nice;
	guest = guest < usr ? guest : usr; /* user contains it, but is counted at another moment */
	usr -= guest;
	all = usr + guest + sys + idle + wait + irq + soft + st;
	if (all <= 0)
		return out;
	all /= 100;
	out.usr = value_known(usr / all);
	out.sys = value_known(sys / all);
	out.irq = value_known((irq + soft) / all);
	out.wa = value_known(wait / all);
	out.st = value_known(st / all);
	out.guest = value_known(guest / all);
	out.idle = value_known(idle / all);
	return out;
}

/* ---- pCPU rows ---- */

static int compare_cpu(const void *a, const void *b)
{
	const struct snap_cpu *x = a, *y = b;

	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static struct snap_cpu *find_cpu(struct snap_cpu *rows, size_t n, int cpu)
{
	struct snap_cpu key = {.cpu = cpu};

	return n && cpu >= 0 ? bsearch(&key, rows, n, sizeof(*rows), compare_cpu) : NULL;
}

/* Appends while there is room; a name cut in half would mislead. */
static void name_vcpu(char *text, const struct snap_vm *vm, const struct snap_vcpu *v)
{
	size_t len = strlen(text);
	int n = snprintf(text + len, VCPUS_TEXT - len, "%s%s/%d", len ? " " : "", vm->name,
			 v->index);

	if (n < 0 || (size_t)n >= VCPUS_TEXT - len)
		text[len] = '\0';
}

/* Without a thread it runs nowhere, and is pinned nowhere. */
static void count_pins(const struct snap_vcpu *v, unsigned *known, unsigned *unknown)
{
	if (v->pin[0])
		++*known;
	else if (v->tid && !(v->quality & SNAP_QUALITY_GONE))
		++*unknown;
}

static uint8_t pins_of(unsigned known, unsigned unknown)
{
	return unknown ? known ? SNAP_PINS_SOME : SNAP_PINS_NONE : SNAP_PINS_ALL;
}

static void place_vcpus(struct commit *c, struct snap_cpu *rows, size_t n)
{
	char(*text)[VCPUS_TEXT] = calloc(n ? n : 1, sizeof(*text));
	unsigned known = 0, unknown = 0;

	for (size_t i = 0; i < c->s->nvcpus; i++) {
		const struct snap_vcpu *v = &c->s->vcpus[i];
		struct snap_cpu *seen = find_cpu(rows, n, v->cpu);
		struct snap_cpu *pinned = find_cpu(rows, n, hoststat_only_cpu(v->pin));

		count_pins(v, &known, &unknown);
		if (pinned)
			pinned->npinned++;
		if (!seen)
			continue;
		seen->nvcpu_seen++;
		if (text)
			name_vcpu(text[seen - rows], &c->s->vms[v->vm], v);
	}
	for (size_t i = 0; i < n; i++) {
		rows[i].vcpus = text ? snapshot_str(c->s, text[i]) : "";
		rows[i].pins = pins_of(known, unknown);
	}
	free(text);
}

static const struct cpu_reading *prev_cpu(const struct model_host *h, int cpu, unsigned hint)
{
	if (!h->have_prev)
		return NULL;
	if (hint < h->prev.ncpu && h->prev_cpus[hint].cpu == cpu)
		return &h->prev_cpus[hint];
	for (unsigned i = 0; i < h->prev.ncpu; i++)
		if (h->prev_cpus[i].cpu == cpu)
			return &h->prev_cpus[i];
	return NULL;
}

static struct value wait_share(const struct model_host *h, const struct cpu_reading *a,
			       const struct cpu_reading *b)
{
	int64_t dt = h->now.time - h->prev.time;

	if (!b->has_wait)
		return value_na(WHY_NO_SCHEDSTAT);
	if (!a || !a->has_wait || dt <= 0 || b->wait_ns < a->wait_ns)
		return value_pending();
	return value_known(100.0 * (double)(b->wait_ns - a->wait_ns) / (double)dt);
}

static void put_cpu(const struct model_host *h, unsigned i, struct snap_cpu *row)
{
	const struct cpu_reading *b = &h->cpus[i], *a = prev_cpu(h, b->cpu, i);
	struct shares p = {0};

	/* Since it was switched off its counters stand still: no baseline. */
	if (a && a->online && b->online)
		p = ticks_shares(&a->t, &b->t);
	row->cpu = b->cpu;
	row->online = b->online;
	row->node = b->node;
	row->core = b->core;
	row->package = b->package;
	row->sibling = b->sibling;
	row->usr = p.usr;
	row->sys = p.sys;
	row->irq = p.irq;
	row->wa = p.wa;
	row->st = p.st;
	row->guest = p.guest;
	row->idle = p.idle;
	row->wait = wait_share(h, a, b);
	row->vcpus = "";
}

/* Without a new reading the CPUs are still there; how busy they were is not known. */
static void put_cpus(struct commit *c)
{
	struct model_host *h = &c->m->host;
	const struct model_host stale = {.now = h->prev, .cpus = h->prev_cpus};
	const struct model_host *use = h->have ? h : &stale;
	unsigned n = use->now.ncpu;
	struct snap_cpu *rows = snapshot_alloc(c->s, n, sizeof(*rows));

	if (!rows)
		return;
	for (unsigned i = 0; i < n; i++)
		put_cpu(use, i, &rows[i]);
	qsort(rows, n, sizeof(*rows), compare_cpu);
	place_vcpus(c, rows, n);
	c->s->cpus = rows;
	c->s->ncpus = n;
}

/* ---- the host's line ---- */

static unsigned online_cpus(const struct snapshot *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->ncpus; i++)
		n += s->cpus[i].online;
	return n;
}

static void put_ticks(struct commit *c)
{
	const struct model_host *h = &c->m->host;
	struct snap_host *row = &c->s->host;
	struct shares p = {0};

	if (!h->have)
		return;
	if (h->have_prev && h->now.time > h->prev.time)
		p = ticks_shares(&h->prev.all, &h->now.all);
	row->usr = p.usr;
	row->sys = p.sys;
	row->irq = p.irq;
	row->wa = p.wa;
	row->st = p.st;
	row->guest = p.guest;
	row->idle = p.idle;
	row->mem_total_kb = h->now.mem_total_kb;
	row->mem_avail_kb = h->now.mem_avail_kb;
	row->load1 = value_known(h->now.load1);
}

/* What is left of the host (percent of one CPU) without the VMs' part. */
static struct value rest(double host, double vms, bool partial)
{
	double v = host > vms ? host - vms : 0;

	return partial ? value_partial(v, WHY_NONE) : value_known(v);
}

static void put_other(struct commit *c)
{
	struct snap_host *row = &c->s->host;
	double cpu = 0, sys = 0, ncpu = row->ncpu;
	bool partial = false;

	if (!value_has(row->usr))
		return;
	for (size_t i = 0; i < c->s->nvms; i++) {
		const struct snap_use *u = &c->s->vms[i].use;

		partial |= !value_has(u->cpu);
		cpu += value_has(u->cpu) ? u->cpu.v : 0;
		sys += value_has(u->sys) ? u->sys.v : 0;
	}
	row->other_cpu =
		rest((row->usr.v + row->sys.v + row->irq.v + row->guest.v) * ncpu, cpu, partial);
	row->other_sys = rest((row->sys.v + row->irq.v) * ncpu, sys, partial);
}

static void put_means(struct commit *c)
{
	struct snap_host *row = &c->s->host;
	double steal = 0, exits = 0, rate = 0;
	unsigned nsteal = 0, nexits = 0, nrate = 0;
	bool pending = false;
	struct value none = value_pending(), partial = none;

	for (size_t i = 0; i < c->s->nvcpus; i++) {
		const struct snap_vcpu *v = &c->s->vcpus[i];

		if (value_has(v->use.steal)) {
			steal += v->use.steal.v;
			nsteal++;
		} else if (v->use.steal.state == VALUE_NA) {
			none = v->use.steal;
		}
		if (value_has(v->ex.pct)) {
			exits += v->ex.pct.v;
			nexits++;
		}
	}
	for (size_t i = 0; i < c->s->nvms; i++) {
		struct value v = c->s->vms[i].ex.rate;

		nrate += value_has(v);
		rate += value_has(v) ? v.v : 0;
		pending |= v.state == VALUE_PENDING;
		if (v.state == VALUE_PARTIAL)
			partial = v;
	}
	row->steal = nsteal ? value_known(steal / nsteal) : none;
	row->exit_pct = nexits ? value_known(exits / nexits) : commit_exit_value(c, 0);
	row->exit_pct = missing_mark_time(&c->m->missing, row->exit_pct);
	row->exits_rate = commit_exit_value(c, rate);
	if (nrate && !value_has(row->exits_rate))
		row->exits_rate = value_partial(rate, WHY_NO_ENTRY_EXIT);
	else if (pending && row->exits_rate.state == VALUE_NA)
		row->exits_rate = value_pending();
	if (partial.state == VALUE_PARTIAL && value_has(row->exits_rate))
		row->exits_rate = value_partial(rate, partial.why);
}

/*
 * No task uses more than all CPUs. Its ticks and the time are read one after the other, so somewhat
 * more is all of them; twice as much is a counter that leapt, and no figure.
 */
static struct value task_cpu(const struct commit *c, double pct)
{
	double most = 100.0 * (c->s->host.ncpu ? c->s->host.ncpu : 1);

	if (pct < 0 || pct > 2 * most)
		return value_pending();
	return value_known(pct < most ? pct : most);
}

/* The busiest one, where it is busy enough to be the reason. */
static void put_other_why(struct commit *c)
{
	struct snap_host *row = &c->s->host;

	row->other_why = "";
	/* Where all of them take less, they are read seldom: it would be of long ago. */
	if (value_has(row->other_cpu) && row->other_cpu.v < OTHER_TASK_PCT)
		return;
	for (size_t i = 0; i < c->m->ntasks; i++) {
		const struct model_task *t = &c->m->tasks[i];
		struct value cpu = task_cpu(c, t->cpu_pct);

		if (!value_has(cpu))
			continue;
		if (cpu.v >= OTHER_TASK_PCT)
			row->other_why = snapshot_printf(c->s, "%s %.0f%%", t->comm, cpu.v);
		return;
	}
}

static void put_tasks(struct commit *c)
{
	struct model *m = c->m;
	struct snap_task *row = snapshot_alloc(c->s, m->ntasks, sizeof(*row));

	put_other_why(c);
	if (!row)
		return;
	for (size_t i = 0; i < m->ntasks; i++) {
		row[i].pid = m->tasks[i].pid;
		row[i].comm = snapshot_str(c->s, m->tasks[i].comm);
		row[i].state = m->tasks[i].state;
		row[i].cpu = task_cpu(c, m->tasks[i].cpu_pct);
	}
	c->s->tasks = row;
	c->s->ntasks = m->ntasks;
}

int model_host_rows(struct commit *c)
{
	struct model *m = c->m;
	struct snap_host *row = &c->s->host;
	unsigned online;

	put_cpus(c);
	put_ticks(c);
	online = online_cpus(c->s);
	row->node = snapshot_str(c->s, m->node);
	row->kernel = snapshot_str(c->s, m->kernel);
	row->boot_id = snapshot_str(c->s, m->boot_id);
	row->root = m->config.root;
	row->ncpu = online;
	row->nvm = (unsigned)c->s->nvms;
	row->nvcpu = (unsigned)c->s->nvcpus;
	row->overcommit = online ? value_known((double)row->nvcpu / online) : value_pending();
	put_other(c);
	put_means(c);
	put_tasks(c);
	row->self_cpu = m->self_cpu;
	row->self_guest = m->self_guest;
	m->lost += m->ex.lost;
	m->lost_total += m->lost;
	row->lost = m->lost;
	row->lost_total = m->lost_total;
	row->code_lost = m->code_lost;
	row->code_lost_total = m->code_lost_total += m->code_lost;
	row->unwatched = m->missing.gap.n;
	row->unwatched_cpu = m->missing.gap.cpu;
	row->unwatched_ns = m->missing.gap.longest;
	row->late = m->ex.late;
	row->unmatched = m->ex.unmatched;
	row->entry_exit = m->ex.seen;
	row->events_by = (uint8_t)m->events_by;
	row->switches = m->waiting.switches;
	row->waits_ns = m->waiting.ns;
	row->exit_off_ns = m->counting.switches_ns;
	row->counting_ns = m->counting.ns;
	row->singles = m->counting.singles;
	row->discovering = m->discovering;
	row->discovered = m->discovered;
	return 0;
}

/* The reading becomes the baseline; it is not used again unless it was renewed. */
void model_host_next(struct model *m)
{
	struct model_host *h = &m->host;
	struct cpu_reading *spare = h->prev_cpus;
	unsigned room = h->prev_room;

	m->lost = m->code_lost = 0;
	if (!h->have)
		return;
	h->prev_cpus = h->cpus;
	h->prev_room = h->room;
	h->prev = h->now;
	h->prev.cpu = h->prev_cpus;
	h->cpus = spare;
	h->room = room;
	h->have_prev = true;
	h->have = false;
}
