// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `waits`: who had the CPU while a vCPU's thread could have run on it, and how long a
 * woken one waited. Programs in the kernel see every change of tasks (wait_bpf.h); they are there
 * only while somebody asks, for all of the host's changes pass through them.
 */
#include "waits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf_access.h"
#include "clock.h"
#include "inventory.h"
#include "procfs.h"
#include "sysroot.h"
#include "wait_bpf.h"

#define PLACES 1024 /* threads that are watched at once; 8 MiB of the kernel's memory */
#define SOURCE "waits"

/* A thread's cookie. */
struct wait_task {
	uint32_t vm; /* of which the programs know it to be a thread, 0: none */
	uint32_t index; /* its place, 0: it is not watched */
	int schedstat; /* held while it is watched, else -1 */
	struct wait_seen seen;
};

struct waits {
	const struct collector_env *env;
	struct wait_bpf *bpf; /* NULL: nobody asks, or it cannot be had */
	bool asked, all, failed;
	uint32_t vm; /* the selected one */
	bool changed; /* who is to be watched */
	uint64_t generation; /* of the inventory, as of the last look */
	uint32_t *switches; /* seen so far, a number a CPU */
	unsigned left_out; /* vCPUs that found no place */
	uint32_t free[PLACES], nfree;
	uint32_t ended[PLACES], nended; /* places that a program may still write into */
	struct wait_buffer buf;
};

/* ---- threads ---- */

static void unwatch(struct waits *w, struct inv_thread *t, struct wait_task *k)
{
	if (k->index) {
		wait_bpf_unwatch(w->bpf, t->tid);
		w->ended[w->nended++] = k->index;
	}
	k->index = 0;
	if (k->schedstat >= 0)
		close(k->schedstat);
	k->schedstat = -1;
}

static void drop(struct waits *w, struct inv_thread *t)
{
	struct wait_task *k = t->cookie[INV_COOKIE_WAITS];

	if (!k)
		return;
	unwatch(w, t, k);
	if (k->vm)
		wait_bpf_no_member(w->bpf, t->tid);
	free(k);
	t->cookie[INV_COOKIE_WAITS] = NULL;
}

static void thread_free(void *ctx, struct inv_thread *t)
{
	drop(ctx, t);
}

static struct wait_task *task_of(struct waits *w, struct inv_thread *t)
{
	struct wait_task *k = t->cookie[INV_COOKIE_WAITS];

	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return NULL;
		k->schedstat = -1;
		t->cookie[INV_COOKIE_WAITS] = k;
	}
	if (k->vm != t->vm->id && wait_bpf_member(w->bpf, t->tid, t->vm->id) == 0)
		k->vm = t->vm->id;
	return k;
}

/* Runnable now: the program was not there when it began to wait, if it does. */
static void look_whether_waiting(struct waits *w, const struct inv_thread *t, uint32_t index)
{
	char buf[1024];
	struct proc_stat st;
	ssize_t n = sysroot_readf(w->env->root, buf, sizeof(buf), "proc/%d/task/%d/stat", t->pid,
				  t->tid);

	if (n > 0 && !procfs_parse_stat(buf, (size_t)n, &st) && st.state == 'R' && st.cpu >= 0)
		wait_place_waiting(wait_bpf_memory(w->bpf), index, (uint32_t)st.cpu,
				   clock_mono_ns());
}

static const uint64_t *read_delay(const struct wait_task *k, uint64_t *delay)
{
	struct proc_schedstat st;
	char buf[128];
	ssize_t n = k->schedstat < 0 ? -1 : fd_read_once(k->schedstat, buf, sizeof(buf));

	if (n <= 0 || procfs_parse_schedstat(buf, (size_t)n, &st) < 0)
		return NULL;
	*delay = st.delay_ns;
	return delay;
}

/* What comes now is new. */
static void set_baseline(struct waits *w, struct wait_task *k)
{
	struct wait_reading r;
	uint64_t delay;

	memset(&k->seen, 0, sizeof(k->seen));
	wait_read(wait_bpf_memory(w->bpf), k->index, clock_mono_ns(), read_delay(k, &delay),
		  &k->seen, &w->buf, &r);
}

static void watch(struct waits *w, struct inv_thread *t, struct wait_task *k)
{
	char path[64];

	if (!w->nfree) {
		w->left_out++;
		return;
	}
	k->index = w->free[--w->nfree];
	wait_place_init(wait_bpf_memory(w->bpf), k->index, t->tid);
	snprintf(path, sizeof(path), "proc/%d/task/%d/schedstat", t->pid, t->tid);
	k->schedstat = sysroot_openat(w->env->root, path, O_RDONLY | O_CLOEXEC);
	if (wait_bpf_watch(w->bpf, t->tid, k->index) < 0) {
		unwatch(w, t, k);
		return;
	}
	look_whether_waiting(w, t, k->index);
	set_baseline(w, k);
}

static bool wanted(const struct waits *w, const struct inv_thread *t)
{
	return t->role == ROLE_VCPU && !(t->flags & INV_GONE) && (w->all || t->vm->id == w->vm);
}

/* Places of the interval before are free now: for those who found none, too. */
static void free_places(struct waits *w)
{
	w->changed |= w->nended && w->left_out;
	while (w->nended) {
		uint32_t index = w->ended[--w->nended];

		wait_place_end(wait_bpf_memory(w->bpf), index);
		w->free[w->nfree++] = index;
	}
}

static void each_thread(struct waits *w, void (*fn)(struct waits *w, struct inv_thread *t))
{
	for (struct inv_vm *vm = inventory_first(w->env->inv); vm; vm = vm->next)
		for (struct inv_thread *t = vm->threads; t; t = t->next)
			fn(w, t);
}

static void leave_unwanted(struct waits *w, struct inv_thread *t)
{
	struct wait_task *k = t->cookie[INV_COOKIE_WAITS];

	if (k && k->index && !wanted(w, t))
		unwatch(w, t, k);
	/* Its number may be another thread's by now, which comes after it. */
	if (k && k->vm && t->flags & INV_GONE) {
		wait_bpf_no_member(w->bpf, t->tid);
		k->vm = 0;
	}
}

static void take_wanted(struct waits *w, struct inv_thread *t)
{
	struct wait_task *k = t->flags & INV_GONE ? NULL : task_of(w, t);

	if (k && !k->index && wanted(w, t))
		watch(w, t, k);
}

static void say_works(struct waits *w)
{
	const struct sink *s = w->env->sink;
	char why[PROBE_TEXT];

	snprintf(why, sizeof(why), "%d vCPUs are watched, %u are not", PLACES - 1, w->left_out);
	if (w->left_out)
		s->source(s->ctx, SOURCE, SOURCE_PARTIAL, why, NULL);
	else
		s->source(s->ctx, SOURCE, SOURCE_OK, "works", NULL);
}

static void look_who_is_there(struct waits *w)
{
	uint64_t generation = inventory_generation(w->env->inv);
	unsigned before = w->left_out;

	if (generation == w->generation && !w->changed)
		return;
	w->generation = generation;
	w->changed = false;
	w->left_out = 0;
	each_thread(w, leave_unwanted);
	each_thread(w, take_wanted);
	if (before != w->left_out)
		say_works(w);
}

/* ---- loading ---- */

static uint32_t vm_of(void *ctx, int32_t tid)
{
	const struct inv_thread *t = inventory_thread(((struct waits *)ctx)->env->inv, tid);

	return t ? t->vm->id : 0;
}

static int try(const struct collector_env *env, uint32_t places, struct wait_bpf **out)
{
	int rc;
	const char *tracefs = bpf_tracefs(env->root, &rc);

	return tracefs ? wait_bpf_new(env->root, tracefs, places, out) : rc;
}

static void load(struct waits *w)
{
	const struct sink *s = w->env->sink;
	struct wait_memory *m;
	struct kvm_reason r;
	int rc = try(w->env, PLACES, &w->bpf);

	if (rc) {
		w->bpf = NULL;
		w->failed = true;
		bpf_why_not(w->env->root, rc, &r);
		s->source(s->ctx, SOURCE, SOURCE_OFF, r.why, r.mend[0] ? r.mend : NULL);
		return;
	}
	m = wait_bpf_memory(w->bpf);
	w->switches = calloc(m->cpus, sizeof(*w->switches)); /* NULL: not told */
	m->vm_of = vm_of;
	m->ctx = w;
	w->nended = w->nfree = 0;
	for (uint32_t i = PLACES; i-- > 1;)
		w->free[w->nfree++] = i;
	w->changed = true;
	w->left_out = 0;
	say_works(w);
}

static void unload(struct waits *w)
{
	if (!w->bpf)
		return;
	each_thread(w, drop);
	wait_bpf_free(w->bpf);
	w->bpf = NULL;
	free(w->switches);
	w->switches = NULL;
}

/* ---- the interval ---- */

static void read_thread(struct waits *w, struct inv_thread *t)
{
	struct wait_task *k = t->cookie[INV_COOKIE_WAITS];
	struct wait_reading r = {.thread = t};
	uint64_t delay;

	if (!k || !k->index || t->flags & INV_GONE)
		return;
	wait_read(wait_bpf_memory(w->bpf), k->index, clock_mono_ns(), read_delay(k, &delay),
		  &k->seen, &w->buf, &r);
	w->env->sink->waits(w->env->sink->ctx, &r);
}

static void tell_cost(struct waits *w, int64_t now)
{
	const struct sink *s = w->env->sink;
	struct program_cost c = {.waits = true};

	if (!s->program_cost || !w->switches)
		return;
	c.switches = wait_switches(wait_bpf_memory(w->bpf), w->switches);
	c.ns = wait_bpf_cost(w->bpf, now, c.switches);
	s->program_cost(s->ctx, &c);
}

static int waits_tick(void *state, int64_t now_ns, int64_t watermark)
{
	struct waits *w = state;

	(void)watermark;
	if (!w->bpf)
		return 0;
	free_places(w);
	each_thread(w, read_thread);
	tell_cost(w, now_ns);
	look_who_is_there(w);
	return 0;
}

static void waits_demand(void *state, const struct demand *d)
{
	struct waits *w = state;
	bool asked = d->waits_all || (d->waits && d->vm);

	w->changed |= w->all != d->waits_all || w->vm != d->vm;
	w->all = d->waits_all;
	w->vm = d->vm;
	if (w->asked && !asked) {
		unload(w);
		w->failed = false;
	}
	w->asked = asked;
	/* At once, so that the next interval has figures. */
	if (asked && !w->bpf && !w->failed && w->env->sink->waits)
		load(w);
	if (w->bpf)
		look_who_is_there(w);
}

static void waits_probe(const struct collector_env *env, struct probes *out)
{
	struct wait_bpf *b = NULL;
	struct kvm_reason r;
	int rc;

	/* A program that collects loads it when somebody asks, and says then what came of it. */
	if (env->sink)
		return;
	rc = try(env, 64, &b);
	wait_bpf_free(b);
	if (!rc) {
		probe_add(out, SOURCE, SOURCE_OK, NULL,
			  "works: who had the CPU while a vCPU waited, on demand");
		return;
	}
	bpf_why_not(env->root, rc, &r);
	probe_add(out, SOURCE, SOURCE_OFF, r.mend, "%s", r.why);
}

static int waits_open(const struct collector_env *env, void **state)
{
	struct waits *w = calloc(1, sizeof(*w));
	struct inv_observer o = {.ctx = w, .thread_free = thread_free};
	int rc = w ? inventory_observe(env->inv, &o) : -ENOMEM;

	if (rc) {
		free(w);
		return rc;
	}
	w->env = env;
	*state = w;
	return 0;
}

static void waits_close(void *state)
{
	struct waits *w = state;

	if (!w)
		return;
	unload(w);
	inventory_unobserve(w->env->inv, w);
	free(w);
}

const struct collector collector_waits = {
	.name = "waits",
	.what = "who had the CPU while vCPUs waited for it, and wake-up latency: a BPF program on "
		"the scheduler's events, while asked for",
	.probe = waits_probe,
	.open = waits_open,
	.tick = waits_tick,
	.demand = waits_demand,
	.close = waits_close,
};
