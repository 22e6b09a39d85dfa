// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model: what collectors say goes in here. Snapshots are made in model_commit.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exits_slow.h"
#include "model_rows.h"
#include "own_path.h"

/* ---- state of the inventory's objects ---- */

struct model_vm *model_vm_state(struct inv_vm *vm)
{
	if (!vm->cookie[INV_COOKIE_MODEL])
		vm->cookie[INV_COOKIE_MODEL] = calloc(1, sizeof(struct model_vm));
	return vm->cookie[INV_COOKIE_MODEL];
}

struct ex_vm *state_ex_vm(struct inv_vm *vm)
{
	struct model_vm *s = model_vm_state(vm);

	if (!s)
		return NULL;
	s->ex.provisional = vm->flags & INV_PROVISIONAL;
	return &s->ex;
}

struct model_vcpu *model_vcpu_state(struct inv_vcpu *v)
{
	struct model_vcpu *s = v->cookie[INV_COOKIE_MODEL];

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s)
		s->ex.inv = v;
	v->cookie[INV_COOKIE_MODEL] = s;
	return s;
}

struct ex_vcpu *state_ex_vcpu(struct inv_vcpu *v)
{
	struct model_vcpu *s = model_vcpu_state(v);

	return s ? &s->ex : NULL;
}

struct model_thread *model_thread_state(struct inv_thread *t)
{
	if (!t->cookie[INV_COOKIE_MODEL])
		t->cookie[INV_COOKIE_MODEL] = calloc(1, sizeof(struct model_thread));
	return t->cookie[INV_COOKIE_MODEL];
}

struct ex_thread *state_ex_thread(struct inv_thread *t)
{
	struct model_thread *s = model_thread_state(t);

	return s ? &s->ex : NULL;
}

static void thread_free(void *ctx, struct inv_thread *t)
{
	struct model *m = ctx;
	struct model_thread *s = t->cookie[INV_COOKIE_MODEL];

	if (!s)
		return;
	exits_thread_gone(&m->ex, &s->ex);
	free(s->pin);
	free(s->node);
	free(s->limit);
	free(s);
	t->cookie[INV_COOKIE_MODEL] = NULL;
}

static void vcpu_free(void *ctx, struct inv_vcpu *v)
{
	struct model *m = ctx;
	struct model_vcpu *s = v->cookie[INV_COOKIE_MODEL];

	if (s) {
		sym_set_free(&s->sym);
		waited_free(&s->waited);
		model_pmu_free(s);
		exits_vcpu_gone(&m->ex, &s->ex);
	}
	v->cookie[INV_COOKIE_MODEL] = NULL;
}

static void vm_free(void *ctx, struct inv_vm *vm)
{
	struct model *m = ctx;
	struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

	if (s) {
		sym_set_free(&s->sym);
		waited_free(&s->waited);
		free(s->ex.code);
		s->ex.code = NULL; /* events of it may still come */
		exits_vm_gone(&m->ex, &s->ex);
	}
	vm->cookie[INV_COOKIE_MODEL] = NULL;
}

/* ---- the sink ---- */

static void on_samples(void *ctx, const struct sample *s, size_t n)
{
	exits_samples(&((struct model *)ctx)->ex, s, n);
}

static void on_aggregates(void *ctx, const struct aggregate *a, size_t n)
{
	exits_aggregates(&((struct model *)ctx)->ex, a, n);
}

static void on_open(void *ctx, const struct thread_open *o)
{
	exits_open(&((struct model *)ctx)->ex, o);
}

static void on_coming(void *ctx, const int32_t *tid, size_t n)
{
	exits_fetch_threads(&((struct model *)ctx)->ex, tid, n);
}

static void on_events_by(void *ctx, enum events_by by)
{
	((struct model *)ctx)->events_by = by;
}

static void on_off_told(void *ctx, bool told)
{
	exits_off_told(&((struct model *)ctx)->ex, told);
}

static void on_loss(void *ctx, const struct loss *l)
{
	struct model *m = ctx;

	exits_loss(&m->ex, l);
	missing_loss(&m->missing, l);
}

static void on_loss_count(void *ctx, const struct loss_count *c)
{
	struct model *m = ctx;

	m->lost += c->n;
	missing_count(&m->missing, c);
}

static void on_kinds(void *ctx, unsigned kinds, bool entry_exit, int64_t time)
{
	(void)time; /* what was opened or closed within an interval is not whole in it */
	exits_kinds(&((struct model *)ctx)->ex, kinds, entry_exit);
}

static void on_code(void *ctx, const struct sample *s, size_t n)
{
	exits_code(&((struct model *)ctx)->ex, s, n);
}

static void on_sampling(void *ctx, const struct sampling_state *s)
{
	model_sampling(ctx, s);
}

/* It runs a vCPU, whatever is known of it: only what runs one has guest time. */
static bool is_guests(const struct use_state *u, const struct thread_reading *r)
{
	return !r->thread->vcpu && u->seen && u->last.has_gtime && r->has_gtime &&
	       r->gtime > u->last.gtime;
}

static void on_thread(void *ctx, const struct thread_reading *r)
{
	struct model_thread *s = model_thread_state(r->thread);
	struct model *m = ctx;

	if (s && is_guests(&s->use, r))
		inventory_unsure(m->inv, r->thread);
	if (!s)
		return;
	use_reading(&s->use, r, m->config.clk_tck);
	s->read = true;
}

static void on_place(void *ctx, const struct place_reading *r)
{
	struct model_thread *s = model_thread_state(r->thread);

	(void)ctx;
	if (!s)
		return;
	inventory_set(&s->pin, r->pin);
	inventory_set(&s->node, r->node);
}

static void on_quota(void *ctx, const struct quota_reading *r)
{
	struct model_thread *t = r->thread ? model_thread_state(r->thread) : NULL;

	(void)ctx;
	if (t) {
		use_quota_reading(&t->quota, r);
		inventory_set(&t->limit, r->limit);
	} else if (!r->thread && state_ex_vm(r->vm)) {
		use_quota_reading(&((struct model_vm *)r->vm->cookie[INV_COOKIE_MODEL])->quota, r);
	}
}

/* Without memory for the CPUs the reading is not taken: the next one has the longer interval. */
static void on_host(void *ctx, const struct host_reading *r)
{
	struct model_host *h = &((struct model *)ctx)->host;

	if (r->ncpu > h->room) {
		struct cpu_reading *c = realloc(h->cpus, r->ncpu * sizeof(*c));

		if (!c)
			return;
		h->cpus = c;
		h->room = r->ncpu;
	}
	h->now = *r;
	h->now.cpu = h->cpus;
	if (r->ncpu)
		memcpy(h->cpus, r->cpu, r->ncpu * sizeof(*h->cpus));
	h->have = true;
}

static void on_tasks(void *ctx, const struct task_reading *t, size_t n)
{
	struct model *m = ctx;

	if (n > m->task_room) {
		struct model_task *more = realloc(m->tasks, n * sizeof(*more));

		if (!more)
			return;
		m->tasks = more;
		m->task_room = n;
	}
	for (size_t i = 0; i < n; i++) {
		m->tasks[i].pid = t[i].pid;
		m->tasks[i].cpu_pct = t[i].cpu_pct;
		m->tasks[i].state = t[i].state;
		snprintf(m->tasks[i].comm, sizeof(m->tasks[i].comm), "%s",
			 t[i].comm ? t[i].comm : "");
	}
	m->ntasks = n;
}

static struct model_source *find_source(struct model *m, const char *name)
{
	struct model_source *s;

	for (size_t i = 0; i < m->nsources; i++)
		if (!strcmp(m->sources[i].name, name))
			return &m->sources[i];
	s = realloc(m->sources, (m->nsources + 1) * sizeof(*s));
	if (!s)
		return NULL;
	m->sources = s;
	s += m->nsources;
	*s = (struct model_source){0};
	if (inventory_set(&s->name, name))
		return NULL;
	m->nsources++;
	return s;
}

static void on_source(void *ctx, const char *name, int state, const char *why, const char *mend)
{
	struct model *m = ctx;
	struct model_source *s = find_source(m, name);
	char words[MEND_SIZE];

	if (!s)
		return;
	s->state = (uint8_t)state;
	inventory_set(&s->why, why);
	if (mend)
		own_words(words, sizeof(words), mend, m->self);
	inventory_set(&s->mend, mend ? words : NULL);
}

static const struct sink sink_template = {
	.samples = on_samples,
	.aggregates = on_aggregates,
	.open = on_open,
	.coming = on_coming,
	.slow = model_on_slow,
	.events_by = on_events_by,
	.off_told = on_off_told,
	.loss = on_loss,
	.loss_count = on_loss_count,
	.kinds = on_kinds,
	.code = on_code,
	.code_lost = model_on_code_lost,
	.sampling = on_sampling,
	.thread = on_thread,
	.place = on_place,
	.quota = on_quota,
	.host = on_host,
	.tasks = on_tasks,
	.tsc = model_on_tsc,
	.tsc_write = model_on_tsc_write,
	.waits = model_on_waits,
	.program_cost = model_on_program_cost,
	.vcpu_events = model_on_vcpu_events,
	.vcpu_stream = model_on_vcpu_stream,
	.pmu = model_on_pmu,
	.pmu_host = model_on_pmu_host,
	.source = on_source,
};

/* ---- life ---- */

static int init(struct model *m, const struct model_config *c)
{
	const struct inv_observer observer = {m, thread_free, vcpu_free, vm_free};
	int err;

	m->config = *c;
	if (m->config.clk_tck <= 0)
		m->config.clk_tck = 100;
	m->sink = sink_template;
	m->sink.ctx = m;
	m->all.gen = 1;
	m->no_entry_exit = c->no_entry_exit;
	err = exits_init(&m->ex, m->inv, c->vcpu_keys ? c->vcpu_keys : 8,
			 c->vm_keys ? c->vm_keys : 64);
	if (err)
		return err;
	if (inventory_set(&m->node, c->node ? c->node : "") ||
	    inventory_set(&m->kernel, c->kernel ? c->kernel : "") ||
	    inventory_set(&m->boot_id, c->boot_id ? c->boot_id : "") ||
	    inventory_set(&m->self, c->self ? c->self : "kvmtop"))
		return -ENOMEM;
	m->findings = findings_new();
	if (!m->findings)
		return -ENOMEM;
	return inventory_observe(m->inv, &observer);
}

struct model *model_new(const struct model_config *c, struct inventory *inv,
			const struct kvm_names *names)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->inv = inv;
	m->names = names;
	if (!init(m, c))
		return m;
	exits_free(&m->ex);
	findings_free(m->findings);
	free(m->node);
	free(m->kernel);
	free(m->boot_id);
	free(m->self);
	free(m);
	return NULL;
}

/* The inventory outlives the model: its cookies are taken back here. */
static void free_cookies(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next) {
		for (size_t i = 0; i < vm->nvcpu; i++)
			vcpu_free(m, vm->vcpu[i]);
		for (struct inv_thread *t = vm->threads; t; t = t->next)
			thread_free(m, t);
		vm_free(m, vm);
	}
	inventory_unobserve(m->inv, m);
}

void model_free(struct model *m)
{
	if (!m)
		return;
	free_cookies(m);
	model_tsc_free(m);
	exits_free(&m->ex);
	for (size_t i = 0; i < m->nsources; i++) {
		free(m->sources[i].name);
		free(m->sources[i].why);
		free(m->sources[i].mend);
	}
	for (int k = 0; k < KIND_NR; k++) {
		hist_free(&m->kinds[k].now_hist);
		hist_free(&m->kinds[k].total_hist);
	}
	ex_set_free(&m->all.set);
	model_symbols_free(m);
	model_slices_free(m);
	findings_free(m->findings);
	free(m->sources);
	free(m->tasks);
	free(m->host.cpus);
	free(m->host.prev_cpus);
	free(m->node);
	free(m->kernel);
	free(m->boot_id);
	free(m->self);
	free(m);
}

const struct sink *model_sink(struct model *m)
{
	return &m->sink;
}

void model_demand(struct model *m, const struct demand *d)
{
	m->demand = *d;
	m->ex.slow_ns = d->slow_ns;
}

void model_self(struct model *m, struct value cpu, struct value guest)
{
	m->self_cpu = cpu;
	m->self_guest = guest;
}

void model_discovery(struct model *m, unsigned done, unsigned all)
{
	m->discovered = done;
	m->discovering = all;
}

static void reset_vm(struct inv_vm *vm)
{
	struct model_vm *s = vm->cookie[INV_COOKIE_MODEL];

	if (s)
		ex_set_reset(&s->ex.set);
	if (s)
		ex_slow_reset(s->ex.slow);
	for (size_t i = 0; i < vm->nvcpu; i++) {
		struct model_vcpu *v = vm->vcpu[i]->cookie[INV_COOKIE_MODEL];

		if (v)
			ex_set_reset(&v->ex.set);
	}
	for (struct inv_thread *t = vm->threads; t; t = t->next) {
		struct model_thread *th = t->cookie[INV_COOKIE_MODEL];

		if (th && th->ex.own)
			ex_set_reset(&th->ex.own->set);
	}
}

void model_reset(struct model *m)
{
	for (struct inv_vm *vm = inventory_first(m->inv); vm; vm = vm->next)
		reset_vm(vm);
	ex_set_reset(&m->all.set);
	for (int k = 0; k < KIND_NR; k++) {
		m->kinds[k].total = (struct ex_acc){0};
		hist_free(&m->kinds[k].total_hist);
	}
	model_symbols_reset(m);
	model_code_reset(m);
	m->lost_total = m->code_lost_total = 0;
	missing_reset(&m->missing);
	m->since = m->last;
}
