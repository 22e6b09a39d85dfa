// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `vcpu_events`: each event of the selected vCPU, for a histogram over time that is finer
 * than the interval. Counting in the kernel knows sums of an interval only, and to take every
 * event of the host is dear: so the tracepoints are opened for that vCPU's thread alone
 * (thread_events.h), while somebody asks, and closed when the selection changes.
 */
#include "vcpu_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_access.h"
#include "kvm_format.h"
#include "perf_rings.h"
#include "sysroot.h"
#include "thread_events.h"

#define SOURCE "vcpu_events"
#define MARGIN (5 * NS_PER_MS) /* as kvm_events: events become visible after their own time */

struct vcpu_events {
	const struct collector_env *env;
	struct kvm_format *format; /* NULL: not loaded yet */
	struct thread_events *events;
	uint32_t vm, vcpu; /* what is asked for; vcpu 0: nothing */
	unsigned kinds;
	pid_t tid; /* whose events come; 0: nobody's */
	uint32_t open_vcpu;
	int kvm_id; /* another vCPU may run on the same thread */
	unsigned open_kinds;
	int64_t since;
	uint32_t failed; /* the vCPU for which it could not be opened: said, not tried again */
};

/* ---- what comes ---- */

static void on_samples(void *ctx, const struct sample *s, size_t n)
{
	struct vcpu_events *st = ctx;
	const struct sink *to = st->env->sink;

	if (!to->vcpu_events)
		return;
	for (size_t i = 0; i < n; i++)
		if (s[i].vcpu_id < 0 || s[i].vcpu_id == st->kvm_id)
			to->vcpu_events(to->ctx, &s[i], 1);
}

static void tell(struct vcpu_events *st)
{
	const struct vcpu_stream s = {.vcpu = st->open_vcpu,
				      .kinds = st->open_kinds,
				      .since = st->since,
				      .lost = thread_events_lost(st->events)};

	if (st->env->sink->vcpu_stream)
		st->env->sink->vcpu_stream(st->env->sink->ctx, &s);
}

/* ---- opening and closing ---- */

static void say_source(struct vcpu_events *st, int state, const char *why, const char *mend)
{
	st->env->sink->source(st->env->sink->ctx, SOURCE, state, why, mend);
}

static void close_thread(struct vcpu_events *st)
{
	if (!st->tid)
		return;
	(void)thread_events_follow(st->events, NULL, 0);
	st->tid = 0;
	st->open_vcpu = 0;
	st->open_kinds = 0;
	tell(st);
}

static int load_formats(const struct collector_env *env, struct kvm_format **out)
{
	struct kvm_format *f;
	const char *tracefs;
	int rc;

	if (!sysroot_has_events(env->root))
		return -EXDEV;
	tracefs = kvm_tracefs(env->root, &rc);
	if (!tracefs)
		return rc;
	f = kvm_format_new();
	rc = f ? kvm_load_formats(env->root, tracefs, f, NULL) : -ENOMEM;
	if (rc > 0) {
		*out = f;
		return 0;
	}
	kvm_format_free(f);
	return rc ? rc : -ENOENT;
}

/* The events of these kinds, and those that end every pair. */
static size_t choose(const struct kvm_format *f, unsigned kinds, uint64_t *id)
{
	size_t n = 0;

	kinds |= KIND_BIT(KIND_VMEXIT);
	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		enum kvm_kind k = kvm_kind_of(kvm_events[i].type);

		if (kvm_format_id(f, i) && k < KIND_NR && kinds & KIND_BIT(k))
			id[n++] = (uint64_t)kvm_format_id(f, i);
	}
	return n;
}

/* -ESRCH: the thread has ended. */
static int open_thread(struct thread_events *e, const struct kvm_format *f, pid_t tid,
		       unsigned kinds)
{
	uint64_t id[KVM_EVENTS];
	size_t n = choose(f, kinds, id);
	int rc = n ? thread_events_choose(e, f, id, n) : -ENOENT;

	if (!rc)
		rc = thread_events_follow(e, &tid, 1);
	return rc < 0 ? rc : rc ? 0 : -ESRCH;
}

static int open_vcpu(struct vcpu_events *st, const struct inv_vcpu *v)
{
	int rc = st->format ? 0 : load_formats(st->env, &st->format);

	st->kvm_id = v->kvm_id;
	if (!rc)
		rc = open_thread(st->events, st->format, v->thread->tid, st->kinds);
	if (rc)
		return rc;
	st->tid = v->thread->tid;
	st->open_vcpu = v->id;
	st->open_kinds = st->kinds;
	st->since = clock_mono_ns();
	tell(st);
	return 0;
}

/* Why it cannot be had, after -errno. */
static void why_not(const struct collector_env *env, int err, struct kvm_reason *r)
{
	struct kvm_rights rights;

	kvm_rights_read(&rights);
	*r = (struct kvm_reason){{0}, {0}};
	if (!kvm_no_events(env->root, r) && !kvm_why_not(env->root, &rights, err, r))
		snprintf(r->why, sizeof(r->why), "%s", strerror(-err));
}

/* The vCPU that is asked for, where a thread runs it; NULL: none. */
static const struct inv_vcpu *asked(const struct vcpu_events *st)
{
	const struct inv_vm *vm = st->vcpu ? inventory_vm(st->env->inv, st->vm) : NULL;

	for (size_t i = 0; vm && i < vm->nvcpu; i++) {
		const struct inv_vcpu *v = vm->vcpu[i];

		if (v->id == st->vcpu)
			return v->thread && !(v->thread->flags & INV_GONE) ? v : NULL;
	}
	return NULL;
}

static void follow(struct vcpu_events *st)
{
	const struct inv_vcpu *v = asked(st);
	struct kvm_reason r;
	char text[PROBE_TEXT];
	int rc;

	if (st->tid && (!v || v->thread->tid != st->tid || v->id != st->open_vcpu ||
			st->kinds != st->open_kinds)) {
		close_thread(st);
		say_source(st, SOURCE_OK, "works: closed, nobody asks", NULL);
	}
	if (!v || st->tid || st->failed == v->id)
		return;
	rc = open_vcpu(st, v);
	if (!rc) {
		snprintf(text, sizeof(text), "works: each event of thread %d is taken", st->tid);
		say_source(st, SOURCE_OK, text, NULL);
	} else if (rc != -ESRCH) {
		st->failed = v->id;
		why_not(st->env, rc, &r);
		say_source(st, SOURCE_OFF, r.why, r.mend[0] ? r.mend : NULL);
	}
}

/* ---- the vtable ---- */

static int events_fd(void *state)
{
	return thread_events_fd(((struct vcpu_events *)state)->events);
}

static int events_ready(void *state, int64_t now)
{
	thread_events_drain(((struct vcpu_events *)state)->events, now - MARGIN);
	return 0;
}

static int events_tick(void *state, int64_t now, int64_t watermark)
{
	struct vcpu_events *st = state;

	(void)now;
	if (st->tid) {
		thread_events_drain(st->events, watermark);
		tell(st);
	}
	follow(st);
	return 0;
}

static void events_demand(void *state, const struct demand *d)
{
	struct vcpu_events *st = state;

	st->kinds = d->slice_ns > 0 ? d->slices : 0;
	st->vm = d->vm;
	st->vcpu = st->kinds ? d->vcpu : 0;
	if (!st->vcpu)
		st->failed = 0;
	follow(st);
}

static void events_probe(const struct collector_env *env, struct probes *out)
{
	struct kvm_format *f = NULL;
	struct thread_events *e = NULL;
	struct kvm_reason r;
	int rc;

	/* A program that collects opens it when somebody asks, and says then what came of it. */
	if (env->sink)
		return;
	rc = load_formats(env, &f);
	if (!rc)
		rc = thread_events_new(NULL, NULL, 0, &e);
	if (!rc)
		rc = open_thread(e, f, (pid_t)getpid(), KIND_ALL);
	thread_events_free(e);
	kvm_format_free(f);
	if (!rc) {
		probe_add(out, SOURCE, SOURCE_OK, NULL,
			  "works: each event of one vCPU and of no other, on demand");
		return;
	}
	why_not(env, rc, &r);
	probe_add(out, SOURCE, SOURCE_OFF, r.mend, "%s", r.why);
}

static void events_close(void *state)
{
	struct vcpu_events *st = state;

	if (!st)
		return;
	thread_events_free(st->events);
	kvm_format_free(st->format);
	free(st);
}

static int events_open(const struct collector_env *env, void **state)
{
	struct vcpu_events *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	st->env = env;
	rc = thread_events_new(on_samples, st, env->config->lost_test ? RING_MIN : 0, &st->events);
	if (rc) {
		events_close(st);
		return rc;
	}
	*state = st;
	return 0;
}

const struct collector collector_vcpu_events = {
	.name = "vcpu_events",
	.what = "each event of the selected vCPU, and of no other, for its histogram over time: a "
		"perf ring of its thread, while asked for",
	.probe = events_probe,
	.open = events_open,
	.fd = events_fd,
	.ready = events_ready,
	.tick = events_tick,
	.demand = events_demand,
	.close = events_close,
};
