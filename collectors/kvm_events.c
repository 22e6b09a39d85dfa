// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kvm tracepoints: from the rings to samples.
 *
 * Events are open only while somebody needs them. That a KVM fires no kvm_entry and
 * kvm_exit shows when other kinds come without them; then it is said.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "kvm_access.h"
#include "kvm_beside.h"
#include "kvm_bpf.h"
#include "kvm_decode.h"
#include "kvm_events.h"
#include "kvm_format.h"
#include "kvm_names.h"
#include "perf_rings.h"
#include "sysroot.h"

#define BATCH 128
#define MARGIN (5 * NS_PER_MS) /* events become visible up to 2.7 ms after their own time */
#define DRAIN_GAP (2 * NS_PER_MS) /* many rings that fill at once are read at once */
#define LINGER (10 * NS_PER_S) /* a kind stays open so long after its last use */
#define RETRY (5 * NS_PER_S)
#define BPF_FDS 256 /* programs and maps take 40 of them: who has few needs them for VMs */
#define MANY_KEYS "more keys than the programs in the kernel have room for: some are in `other`"
#define MANY_TIMES "more times than the programs in the kernel have room for: percentiles lack some"
_Static_assert(KVM_EVENTS <= RING_EVENTS, "each event has its slot in the rings");

struct kvm_events {
	struct collector_env env;
	struct kvm_format *format;
	struct perf_rings *rings;
	int online; /* the list of CPUs, held; -1: not yet */
	struct kvm_bpf *bpf; /* NULL: each event is taken from the rings */
	int epfd; /* of the rings and of the programs in the kernel */
	bool bpf_failed; /* not to be tried again */
	struct kvm_reason bpf_why;
	struct kvm_counts_state counted; /* of the last interval */
	struct kvm_rights rights;
	bool started;
	int64_t retry_at;
	int64_t last_tick, last_drain;
	unsigned wanted; /* kinds asked for */
	unsigned given_up; /* kinds that do not linger */
	unsigned open; /* kinds that are open */
	unsigned refused; /* kinds that could not be opened; tried again at RETRY */
	unsigned absent; /* kinds that this kernel has no event for */
	int64_t used[KIND_NR]; /* when it was wanted last */
	int64_t since[EV_NR]; /* this type is complete from here on */
	bool seen_exits, no_exits; /* kvm_entry or kvm_exit fired; known that they never do */
	uint64_t exits_before; /* n_exits at the last tick */
	uint64_t n_exits, n_all; /* decoded so far */
	uint64_t undecoded;
	int64_t watermark; /* of the tick */
	uint64_t lost_untyped; /* of LOST records, where the kernel does not count by event */
	struct kvm_beside *beside;
	bool off_wanted; /* when threads in exits have no CPU */
	uint64_t slow_ns; /* the programs in the kernel tell of single exits that take longer */
	struct sample batch[BATCH];
	size_t filled;
};

/* ---- kinds and their events ---- */

static void say_source(struct kvm_events *st, int state, const char *why, const char *mend)
{
	if (st->env.sink && st->env.sink->source)
		st->env.sink->source(st->env.sink->ctx, "kvm_events", state, why, mend);
}

static const struct collector_config *config(const struct kvm_events *st)
{
	return st->env.config;
}

static void say_kinds(struct kvm_events *st, int64_t now)
{
	st->env.sink->kinds(st->env.sink->ctx, st->open, st->open & KIND_BIT(KIND_VMEXIT), now);
}

static void say_works(struct kvm_events *st)
{
	char text[PROBE_TEXT + 40];

	if (st->bpf)
		snprintf(text, sizeof(text), "works: counted in the kernel");
	else if (st->bpf_failed)
		snprintf(text, sizeof(text), "works: each event is taken; %s", st->bpf_why.why);
	else
		snprintf(text, sizeof(text), "works: each event is taken");
	say_source(st, SOURCE_OK, text, NULL);
}

/* Says what is not as it should be, or that all is well. */
static void say_state(struct kvm_events *st)
{
	size_t bytes = perf_rings_bytes(st->rings);
	unsigned n = perf_rings_cpus(st->rings);
	struct kvm_reason r;

	if (st->counted.other)
		say_source(st, SOURCE_PARTIAL, MANY_KEYS, NULL);
	else if (st->counted.no_octave)
		say_source(st, SOURCE_PARTIAL, MANY_TIMES, NULL);
	else if (st->no_exits)
		say_source(st, SOURCE_PARTIAL, KVM_NO_EXITS, NULL);
	else if (st->refused &&
		 kvm_why_partial(st->env.root, &st->rights, n, bytes, n * (KVM_EVENTS + 1ul), &r))
		say_source(st, SOURCE_PARTIAL, r.why, r.mend);
	else if (st->refused)
		say_source(st, SOURCE_PARTIAL, "some kinds of events could not be opened", NULL);
	else if (perf_rings_halved(st->rings)) {
		kvm_why_halved(&st->rights, bytes, &r);
		say_source(st, SOURCE_PARTIAL, r.why, r.mend);
	} else
		say_works(st);
}

/* ---- opening and closing one event, whoever the source is ---- */

static bool is_open(const struct kvm_events *st, unsigned event)
{
	return st->bpf ? kvm_bpf_is_attached(st->bpf, event) : perf_rings_is_open(st->rings, event);
}

static int open_event(struct kvm_events *st, unsigned event, uint64_t id)
{
	return st->bpf ? kvm_bpf_attach(st->bpf, event, id) : perf_rings_open(st->rings, event, id);
}

static void close_event(struct kvm_events *st, unsigned event)
{
	if (st->bpf)
		kvm_bpf_detach(st->bpf, event);
	else
		perf_rings_close(st->rings, event);
}

static void close_kind(struct kvm_events *st, enum kvm_kind kind)
{
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (kvm_kind_of(kvm_events[i].type) == kind && is_open(st, i))
			close_event(st, i);
	st->open &= ~KIND_BIT(kind);
}

/* All events of the kind that this kernel has. -ENOENT: it has none. */
static int open_kind(struct kvm_events *st, enum kvm_kind kind)
{
	int n = 0;

	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		int id = kvm_format_id(st->format, i), rc;

		if (!id || kvm_kind_of(kvm_events[i].type) != kind)
			continue;
		rc = open_event(st, i, (uint64_t)id);
		if (rc) {
			close_kind(st, kind);
			return rc;
		}
		n++;
	}
	if (!n)
		return -ENOENT;
	st->open |= KIND_BIT(kind);
	/* Only now is it on everywhere: what came before was not all there was. */
	for (unsigned i = 0; i < EV_NR; i++)
		if (kvm_kind_of(i) == kind)
			st->since[i] = clock_mono_ns();
	return 0;
}

static int try_kind(struct kvm_events *st, enum kvm_kind kind)
{
	int rc = open_kind(st, kind);

	if (!rc)
		st->refused &= ~KIND_BIT(kind);
	else if (rc == -ENOENT)
		st->absent |= KIND_BIT(kind);
	else
		st->refused |= KIND_BIT(kind);
	return rc;
}

/*
 * What is not wanted any more stays a while for who comes back, but not where it costs too much:
 * the governor takes what it sees for the cost of what it left, and would give up more.
 */
static bool is_over(const struct kvm_events *st, enum kvm_kind kind, int64_t now)
{
	return st->given_up & KIND_BIT(kind) || now - st->used[kind] > LINGER;
}

/*
 * Opens what is wanted and closes what has not been for a while; what was refused only
 * with `again`. First error or 0.
 */
static int follow_demand(struct kvm_events *st, int64_t now, bool again)
{
	unsigned want = st->wanted, open = st->open, refused = st->refused;
	unsigned skip = st->absent | (again ? 0 : st->refused);
	int err = 0;

	for (int k = 0; k < KIND_NR; k++) {
		unsigned bit = KIND_BIT(k);
		int rc = 0;

		if (want & bit)
			st->used[k] = now;
		if (want & bit && !(st->open & bit) && !(skip & bit))
			rc = try_kind(st, k);
		else if (!(want & bit) && st->open & bit && is_over(st, k, now))
			close_kind(st, k);
		if (rc && !err)
			err = rc;
	}
	if (st->open != open) {
		if (st->bpf)
			kvm_bpf_kinds(st->bpf, st->open & KIND_BIT(KIND_VMEXIT));
		say_kinds(st, clock_mono_ns());
	}
	if (st->started && (st->open != open || st->refused != refused))
		say_state(st);
	return err;
}

/* ---- from records to samples ---- */

static void flush(struct kvm_events *st)
{
	const struct sink *to = st->env.sink;

	if (st->filled)
		to->samples(to->ctx, st->batch, st->filled);
	if (st->filled && to->exits)
		to->exits(to->ips_ctx, st->batch, st->filled);
	st->filled = 0;
}

static void lost(struct kvm_events *st, const struct ring_record *r)
{
	struct loss l = {.cpu = r->ring->cpu, .from = r->prev, .to = r->time};
	uint64_t n;

	flush(st); /* what came before it comes before it */
	st->env.sink->loss(st->env.sink->ctx, &l);
	r->ring->was_full = true;
	if (record_lost(r->h, &n))
		st->lost_untyped += n;
}

static void on_batch(void *ctx, const struct ring_record *r, size_t n)
{
	struct kvm_events *st = ctx;

	for (size_t i = 0; i < n; i++) {
		struct sample *s = &st->batch[st->filled];

		if (__builtin_expect(r[i].h->type != PERF_RECORD_SAMPLE, 0)) {
			if (r[i].h->type == PERF_RECORD_LOST)
				lost(st, &r[i]);
			continue;
		}
		if (!kvm_decode(st->format, &r[i], s)) {
			st->undecoded++;
			continue;
		}
		if (r[i].time <= st->since[s->type])
			continue;
		st->n_all++;
		st->n_exits += s->type <= EV_EXIT; /* EV_ENTRY and EV_EXIT come first */
		if (++st->filled == BATCH)
			flush(st);
	}
}

/* ---- kvm_exit beside the programs in the kernel ---- */

static void follow_beside(struct kvm_events *st)
{
	kvm_beside_follow(st->beside, st->bpf && st->started && st->open & KIND_BIT(KIND_VMEXIT));
}

/* ---- exits with a CPU and without ---- */

/* Only by the programs in the kernel, and once exits were seen: each change of tasks costs. */
static void follow_switches(struct kvm_events *st)
{
	bool want =
		st->started && st->off_wanted && st->seen_exits && st->open & KIND_BIT(KIND_VMEXIT);

	if (st->bpf)
		kvm_bpf_switches(st->bpf, want, st->env.sink);
}

/* ---- without kvm_exit ---- */

/* Only where slow exits are asked for and no exit shows: then what the VMM had of them. */
static void follow_fpu(struct kvm_events *st)
{
	bool want =
		st->started && st->no_exits && st->slow_ns && st->open & KIND_BIT(KIND_USEREXIT);

	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		int id = kvm_format_id(st->format, i);

		if (!id || kvm_events[i].type != EV_FPU || is_open(st, i) == want)
			continue;
		if (!want)
			close_event(st, i);
		else if (!open_event(st, i, (uint64_t)id)) /* else at the next tick */
			st->since[EV_FPU] = clock_mono_ns();
	}
}

/* ---- starting, and trying again ---- */

static void stop_bpf(struct kvm_events *st)
{
	kvm_beside_follow(st->beside, false);
	st->started = false;
	follow_switches(st);
	kvm_bpf_free(st->bpf);
	st->bpf = NULL;
}

static void stop(struct kvm_events *st)
{
	/* Its number is that of kvm_fpu's kind, which is none. */
	for (int k = 0; k <= KIND_NR; k++)
		close_kind(st, k);
	if (st->bpf)
		return stop_bpf(st);
	(void)perf_rings_set_cpus(st->rings, NULL, 0, clock_mono_ns(), NULL, NULL);
	(void)perf_rings_drain(st->rings, INT64_MAX, on_batch, st);
	flush(st);
	st->started = false;
}

/* Nobody saw what happened on a CPU until it got its ring, or while it has none. */
static void unwatched(void *ctx, int cpu, int64_t since)
{
	struct kvm_events *st = ctx;
	struct loss l = {
		.cpu = (uint16_t)cpu,
		.from = st->last_tick,
		.to = clock_mono_ns(),
		.unwatched = true,
	};

	if (since && since < l.from)
		l.from = since;
	if (st->last_tick)
		st->env.sink->loss(st->env.sink->ctx, &l);
}

static int follow_cpus(struct kvm_events *st, int64_t now)
{
	return kvm_follow_cpus(st->env.root, &st->online, st->rings, now, unwatched, st);
}

static int watch(struct kvm_events *st, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return fd >= 0 && epoll_ctl(st->epfd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* vCPUs of one process and one number may then be two. */
static bool has_several_vms(void *ctx, int32_t tid)
{
	const struct kvm_events *st = ctx;
	const struct inv_thread *t = st->env.inv ? inventory_thread(st->env.inv, tid) : NULL;

	for (const struct inv_vm *vm = t ? inventory_first(st->env.inv) : NULL; vm; vm = vm->next)
		if (vm != t->vm && vm->pid == t->vm->pid)
			return true;
	return false;
}

/*
 * Chooses the source. 0 without one: it is the rings; an error only where nothing else was asked
 * for. What failed once fails again, and takes its time: it is tried once.
 */
static int start_bpf(struct kvm_events *st, const char *tracefs)
{
	const struct collector_config *c = config(st);
	int rc;

	if (st->bpf || st->bpf_failed || c->events_how == EVENTS_PERF ||
	    (c->events_how == EVENTS_AUTO && c->lost_test))
		return 0;
	rc = c->events_how == EVENTS_AUTO && st->rights.nofile < BPF_FDS ? -EMFILE : 0;
	if (!rc)
		rc = kvm_bpf_new(st->env.root, tracefs, st->format, c->few_keys, has_several_vms,
				 st, &st->bpf);
	if (!rc) {
		kvm_bpf_slow(st->bpf, st->slow_ns);
		return watch(st, kvm_bpf_fd(st->bpf));
	}
	kvm_bpf_why(rc, &st->bpf_why);
	if (c->events_how == EVENTS_BPF)
		return rc;
	st->bpf_failed = true;
	return 0;
}

static int try_start(struct kvm_events *st, int64_t now)
{
	int rc;
	const char *tracefs = kvm_tracefs(st->env.root, &rc);

	if (!tracefs)
		return rc;
	rc = kvm_load_formats(st->env.root, tracefs, st->format, st->env.names);
	if (rc < 0)
		return rc;
	st->last_tick = 0;
	rc = start_bpf(st, tracefs);
	if (!st->bpf && !rc)
		rc = follow_cpus(st, now);
	if (rc)
		return rc;
	if (st->env.sink->events_by)
		st->env.sink->events_by(st->env.sink->ctx,
					st->bpf ? EVENTS_BY_BPF : EVENTS_BY_PERF);
	st->absent = 0;
	rc = follow_demand(st, now, true);
	return st->open || !st->wanted ? 0 : rc ? rc : -ENOENT;
}

static void start(struct kvm_events *st, int64_t now)
{
	struct kvm_reason r = {0};
	int rc;

	kvm_rights_read(&st->rights);
	rc = try_start(st, now);
	st->started = !rc;
	st->retry_at = now + RETRY;
	if (!rc) {
		say_state(st);
		return;
	}
	stop(st);
	if (config(st)->events_how == EVENTS_BPF && *st->bpf_why.why)
		r = st->bpf_why;
	else if (!kvm_why_not(st->env.root, &st->rights, rc, &r))
		snprintf(r.why, sizeof(r.why), "%s", strerror(-rc));
	say_source(st, SOURCE_OFF, r.why, *r.mend ? r.mend : NULL);
	say_kinds(st, now);
}

static int rings_new(struct kvm_events *st)
{
	const struct collector_config *c = st->env.config;
	int *cpu, n = kvm_online_cpus(st->env.root, &cpu);

	free(cpu);
	return perf_rings_new(c->lost_test ? RING_MIN : 0, n > 0 ? (unsigned)n : 1, c->lost_test,
			      &st->rings);
}

static void events_close(void *state)
{
	struct kvm_events *st = state;

	if (!st)
		return;
	if (st->epfd >= 0)
		close(st->epfd);
	if (st->online >= 0)
		close(st->online);
	kvm_bpf_free(st->bpf);
	kvm_beside_free(st->beside);
	perf_rings_free(st->rings);
	kvm_format_free(st->format);
	free(st);
}

static int events_open(const struct collector_env *env, void **state)
{
	struct kvm_events *st = calloc(1, sizeof(*st));
	struct kvm_reason r;
	int rc;

	if (!st)
		return -ENOMEM;
	st->env = *env;
	st->online = -1;
	st->epfd = epoll_create1(EPOLL_CLOEXEC);
	st->wanted = KIND_BIT(KIND_VMEXIT);
	st->format = kvm_format_new();
	rc = !st->format ? -ENOMEM : st->epfd < 0 ? -errno : rings_new(st);
	if (!rc)
		rc = watch(st, perf_rings_fd(st->rings));
	if (!rc)
		rc = kvm_beside_new(&st->env, st->format, st->rings, &st->beside);
	if (!rc)
		rc = watch(st, kvm_beside_fd(st->beside));
	if (rc) {
		events_close(st);
		return rc;
	}
	*state = st;
	if (kvm_no_events(env->root, &r)) {
		st->retry_at = INT64_MAX;
		say_source(st, SOURCE_OFF, r.why, r.mend);
		say_kinds(st, clock_mono_ns());
		return 0;
	}
	start(st, clock_mono_ns());
	return 0;
}

static int drain(struct kvm_events *st, int64_t now, int64_t watermark)
{
	int rc = perf_rings_drain(st->rings, watermark, on_batch, st);

	flush(st);
	st->last_drain = now;
	return rc;
}

static void say_lost(void *ctx, unsigned slot, uint64_t n)
{
	struct kvm_events *st = ctx;
	struct loss_count c = {.type = kvm_events[slot].type, .n = n};

	st->env.sink->loss_count(st->env.sink->ctx, &c);
}

/* What was begun before it and is open now has perhaps ended long ago. */
static void untold_loss(void *ctx, uint16_t cpu, int64_t from)
{
	struct kvm_events *st = ctx;
	struct loss l = {
		.cpu = cpu,
		.from = from,
		.to = st->watermark,
		.uncounted = !perf_rings_has_lost(st->rings),
	};

	if (from < l.to)
		st->env.sink->loss(st->env.sink->ctx, &l);
}

/* Each lost event once: by the kernel's counters where it has them, else by the records. */
static void count_losses(struct kvm_events *st)
{
	struct loss_count c = {.type = -1, .n = st->lost_untyped};

	perf_rings_losses(st->rings, say_lost, untold_loss, st);
	if (!perf_rings_has_lost(st->rings) && c.n)
		st->env.sink->loss_count(st->env.sink->ctx, &c);
	st->lost_untyped = 0;
}

/* ---- is there a kvm_exit at all? ---- */

static void look_for_exits(struct kvm_events *st)
{
	bool before = st->no_exits;

	if (!(st->open & KIND_BIT(KIND_VMEXIT)))
		return;
	if (st->n_exits > st->exits_before) {
		st->seen_exits = true;
		st->no_exits = false;
	} else if (!st->seen_exits && st->n_all > KVM_OTHERS_ENOUGH) {
		st->no_exits = true;
	}
	st->exits_before = st->n_exits;
	if (st->no_exits != before)
		say_state(st);
}

/* ---- the vtable ---- */

static int events_fd(void *state)
{
	const struct kvm_events *st = state;

	return st->epfd;
}

static int events_ready(void *state, int64_t now)
{
	struct kvm_events *st = state;

	perf_rings_woken(st->rings);
	if (st->bpf) {
		kvm_bpf_news(st->bpf, st->env.sink);
		kvm_beside_drain(st->beside, now - MARGIN);
		return 0;
	}
	if (!st->started || now - st->last_drain < DRAIN_GAP)
		return 0;
	return drain(st, now, now - MARGIN);
}

/* What was counted in the kernel since the last tick. */
static void read_counts(struct kvm_events *st, int64_t watermark)
{
	struct kvm_counts_state before = st->counted;

	kvm_bpf_tick(st->bpf, watermark, st->env.sink, &st->counted);
	st->n_exits += st->counted.exits;
	st->n_all += st->counted.all;
	if (!before.other != !st->counted.other || !before.no_octave != !st->counted.no_octave)
		say_state(st);
}

static int take_events(struct kvm_events *st, int64_t now, int64_t watermark)
{
	int rc;

	if (st->bpf) {
		kvm_beside_drain(st->beside, watermark);
		read_counts(st, watermark);
		return 0;
	}
	rc = drain(st, now, watermark);
	st->watermark = watermark;
	count_losses(st);
	return rc;
}

static int events_tick(void *state, int64_t now, int64_t watermark)
{
	struct kvm_events *st = state;
	bool again;
	int rc;

	if (!st->started) {
		if (now >= st->retry_at)
			start(st, now);
		return 0;
	}
	rc = take_events(st, now, watermark);
	look_for_exits(st);
	again = now >= st->retry_at;
	if (again)
		st->retry_at = now + RETRY;
	/* A CPU that cannot be had now is tried at the next tick. */
	if (!st->bpf)
		(void)follow_cpus(st, now);
	(void)follow_demand(st, now, again); /* what is refused is in say_state() */
	kvm_beside_pace(st->beside, st->counted.exits, st->last_tick ? now - st->last_tick : 0);
	follow_beside(st);
	follow_switches(st);
	follow_fpu(st);
	st->last_tick = now;
	return rc;
}

static void events_demand(void *state, const struct demand *d)
{
	struct kvm_events *st = state;

	st->wanted = d->kinds;
	st->given_up = d->given_up;
	kvm_beside_demand(st->beside, d);
	st->off_wanted = d->exit_off;
	st->slow_ns = d->slow_ns;
	if (st->bpf)
		kvm_bpf_slow(st->bpf, st->slow_ns);
	if (st->started)
		(void)follow_demand(st, clock_mono_ns(), false);
	follow_beside(st);
	follow_switches(st);
	follow_fpu(st);
}

const struct collector collector_kvm_events = {
	.name = "kvm_events",
	.what = "exits, MMIO, ports, MSRs, hypercalls, user exits and halts, from kvm tracepoints",
	.probe = kvm_events_probe,
	.open = events_open,
	.fd = events_fd,
	.ready = events_ready,
	.tick = events_tick,
	.demand = events_demand,
	.close = events_close,
};
