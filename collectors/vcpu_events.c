// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `vcpu_events`: each event of the selected vCPU, for a histogram over time that is finer
 * than the interval. Counting in the kernel knows sums of an interval only, and to take every
 * event of the host is dear: so the tracepoints are opened for that vCPU's thread alone
 * (perf_thread.h), while somebody asks, and closed when the selection changes.
 */
#include "vcpu_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_access.h"
#include "kvm_format.h"
#include "perf_thread.h"
#include "sysroot.h"

#define SOURCE "vcpu_events"
#define RING_BYTES (512u << 10)
#define MARGIN (5 * NS_PER_MS) /* as kvm_events: events become visible after their own time */
#define BATCH 128
_Static_assert(KVM_EVENTS <= PERF_THREAD_EVENTS, "all events at once");

struct vcpu_events {
	const struct collector_env *env;
	struct kvm_format *format; /* NULL: not loaded yet */
	int epfd; /* of the ring, which comes and goes */
	uint32_t vm, vcpu; /* what is asked for; vcpu 0: nothing */
	unsigned kinds;
	struct perf_thread *ring; /* NULL: none is open */
	pid_t tid; /* whose it is */
	uint32_t open_vcpu;
	int kvm_id; /* another vCPU may run on the same thread */
	unsigned open_kinds;
	int64_t since;
	uint64_t lost;
	uint32_t failed; /* the vCPU for which it could not be opened: said, not tried again */
	struct sample batch[BATCH];
	size_t filled;
};

/* ---- from records to samples ---- */

static void flush(struct vcpu_events *st)
{
	const struct sink *to = st->env->sink;

	if (st->filled && to->vcpu_events)
		to->vcpu_events(to->ctx, st->batch, st->filled);
	st->filled = 0;
}

static void on_batch(void *ctx, const struct ring_record *r, size_t n)
{
	struct vcpu_events *st = ctx;

	for (size_t i = 0; i < n; i++) {
		struct sample *s = &st->batch[st->filled];
		const uint8_t *raw;
		uint64_t lost;
		uint32_t len;

		if (r[i].h->type == PERF_RECORD_LOST && record_lost(r[i].h, &lost))
			st->lost += lost;
		if (r[i].h->type != PERF_RECORD_SAMPLE || !record_raw(r[i].h, &raw, &len) ||
		    !kvm_format_decode(st->format, raw, len, s))
			continue;
		if (s->vcpu_id >= 0 && s->vcpu_id != st->kvm_id)
			continue;
		s->time = r[i].time;
		if (++st->filled == BATCH)
			flush(st);
	}
}

static void drain(struct vcpu_events *st, int64_t watermark)
{
	if (st->ring)
		(void)perf_thread_drain(st->ring, watermark, on_batch, st);
	flush(st);
}

static void tell(struct vcpu_events *st)
{
	const struct vcpu_stream s = {.vcpu = st->open_vcpu,
				      .kinds = st->open_kinds,
				      .since = st->since,
				      .lost = st->lost};

	st->lost = 0;
	if (st->env->sink->vcpu_stream)
		st->env->sink->vcpu_stream(st->env->sink->ctx, &s);
}

/* ---- opening and closing ---- */

static void say_source(struct vcpu_events *st, int state, const char *why, const char *mend)
{
	st->env->sink->source(st->env->sink->ctx, SOURCE, state, why, mend);
}

static void close_ring(struct vcpu_events *st)
{
	if (!st->ring)
		return;
	drain(st, INT64_MAX);
	epoll_ctl(st->epfd, EPOLL_CTL_DEL, perf_thread_fd(st->ring), NULL);
	perf_thread_free(st->ring);
	st->ring = NULL;
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

static int open_thread(const struct kvm_format *f, pid_t tid, unsigned kinds,
		       struct perf_thread **out)
{
	uint64_t id[KVM_EVENTS];
	size_t n = choose(f, kinds, id);

	return n ? perf_thread_new(tid, id, n, RING_BYTES, out) : -ENOENT;
}

static int open_ring(struct vcpu_events *st, const struct inv_vcpu *v)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int rc = st->format ? 0 : load_formats(st->env, &st->format);

	if (!rc)
		rc = open_thread(st->format, v->thread->tid, st->kinds, &st->ring);
	if (rc)
		return rc;
	if (epoll_ctl(st->epfd, EPOLL_CTL_ADD, perf_thread_fd(st->ring), &e)) {
		rc = -errno;
		perf_thread_free(st->ring);
		st->ring = NULL;
		return rc;
	}
	st->tid = v->thread->tid;
	st->open_vcpu = v->id;
	st->kvm_id = v->kvm_id;
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

	if (st->ring && (!v || v->thread->tid != st->tid || v->id != st->open_vcpu ||
			 st->kinds != st->open_kinds)) {
		close_ring(st);
		say_source(st, SOURCE_OK, "works: closed, nobody asks", NULL);
	}
	if (!v || st->ring || st->failed == v->id)
		return;
	rc = open_ring(st, v);
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
	return ((struct vcpu_events *)state)->epfd;
}

static int events_ready(void *state, int64_t now)
{
	struct vcpu_events *st = state;
	struct epoll_event e;

	/* Asking is taking: it is quiet until the ring fills again. */
	(void)epoll_wait(st->epfd, &e, 1, 0);
	drain(st, now - MARGIN);
	return 0;
}

static int events_tick(void *state, int64_t now, int64_t watermark)
{
	struct vcpu_events *st = state;

	(void)now;
	if (st->ring) {
		drain(st, watermark);
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
	struct perf_thread *t = NULL;
	struct kvm_reason r;
	int rc;

	/* A program that collects opens it when somebody asks, and says then what came of it. */
	if (env->sink)
		return;
	rc = load_formats(env, &f);
	if (!rc)
		rc = open_thread(f, (pid_t)getpid(), KIND_ALL, &t);
	perf_thread_free(t);
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
	perf_thread_free(st->ring);
	kvm_format_free(st->format);
	if (st->epfd >= 0)
		close(st->epfd);
	free(st);
}

static int events_open(const struct collector_env *env, void **state)
{
	struct vcpu_events *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->env = env;
	st->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (st->epfd < 0) {
		int rc = -errno;

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
