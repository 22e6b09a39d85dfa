// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples of where the CPUs are: guest and host, kernel and user.
 *
 * Hardware cycles or cpu-clock on every CPU, in rings of its own, open only while somebody looks.
 * Guest or host is the record's word (cpumode); guest kernel or user too, and there older kernels
 * are wrong: the engine knows better where it knows the guest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "guest_sampling.h"
#include "ip_batch.h"
#include "kvm_access.h"
#include "perf_rings.h"
#include "sampling_event.h"
#include "sysroot.h"

#define SLOT 0 /* the one event in the rings */
#define RING_BYTES (128u << 10) /* 3,000 samples: three seconds of the default rate */
#define MARGIN (5 * NS_PER_MS)
#define DRAIN_GAP (2 * NS_PER_MS)
#define LINGER (10 * NS_PER_S) /* it stays open so long after its last use */
#define RETRY (5 * NS_PER_S)
#define HZ_MIN 10 /* fewer say nothing about a second */
#define CHAINLESS 64 /* guests' samples without a chain: this kernel gives none */
#define CALM (60 * NS_PER_S) /* without throttling: a higher rate is tried */

struct sampling {
	struct collector_env env;
	struct perf_rings *rings;
	int online; /* the list of CPUs, held; -1: not yet */
	struct kvm_rights rights;
	struct sampling_choice choice;
	bool host, guest; /* domains that are handed over */
	bool wanted, open, hw;
	bool chains; /* the event asks for them */
	bool chains_told; /* guests' samples have chains here */
	unsigned chainless; /* guests' samples without, so far; CHAINLESS: not asked for any more */
	uint8_t shift; /* of the demand: the engine wants it cheaper */
	unsigned throttle_shift; /* what the kernel's throttling made us give up */
	unsigned kernel_max; /* the highest rate that the kernel takes, 0 not asked */
	unsigned hz; /* in force */
	int open_error; /* -errno of hardware cycles that could not be opened */
	int64_t used, retry_at, last_drain, since, throttled_at;
	uint64_t throttled, lost, undecoded;
	struct ip_batch batch;
	char why[PROBE_TEXT];
};

/* ---- from records to samples ---- */

/* The words of a guest's chain, its mark the first of them, and their number; NULL: it is none. */
static const uint8_t *guest_chain(const struct perf_event_header *h, uint64_t *n)
{
	const void *words;
	uint64_t mark;

	if (!record_chain(h, &words, n) || !*n)
		return NULL;
	memcpy(&mark, words, sizeof(mark));
	return mark == (uint64_t)PERF_CONTEXT_GUEST_KERNEL ||
			       mark == (uint64_t)PERF_CONTEXT_GUEST_USER
		       ? words
		       : NULL;
}

/* What stands behind the mark and where the guest was; 0: nothing, or another mark. */
static uint64_t guest_caller(const struct perf_event_header *h)
{
	uint64_t n, at = 0;
	const uint8_t *chain = guest_chain(h, &n);

	if (!chain || n < 3)
		return 0;
	memcpy(&at, chain + 2 * sizeof(at), sizeof(at));
	return at < (uint64_t)PERF_CONTEXT_MAX ? at : 0;
}

/* The mark is enough: a guest chooses where it is, and may have no callers. */
bool ip_sample_guest_chain(const struct perf_event_header *h)
{
	uint64_t n;

	return guest_chain(h, &n) != NULL;
}

bool ip_sample_decode(const struct perf_event_header *h, struct ip_sample *out)
{
	static const int8_t domains[] = {
		[PERF_RECORD_MISC_CPUMODE_UNKNOWN] = -1,
		[PERF_RECORD_MISC_KERNEL] = DOMAIN_HOST_KERNEL,
		[PERF_RECORD_MISC_USER] = DOMAIN_HOST_USER,
		[PERF_RECORD_MISC_HYPERVISOR] = DOMAIN_HOST_KERNEL, /* below us, in our time */
		[PERF_RECORD_MISC_GUEST_KERNEL] = DOMAIN_GUEST_KERNEL,
		[PERF_RECORD_MISC_GUEST_USER] = DOMAIN_GUEST_USER,
	};
	unsigned mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (h->type != PERF_RECORD_SAMPLE || mode >= sizeof(domains) || domains[mode] < 0)
		return false;
	out->domain = (uint8_t)domains[mode];
	out->caller = DOMAIN_IS_GUEST(out->domain) ? guest_caller(h) : 0;
	out->n = 1;
	return record_ip(h, &out->ip, &out->pid, &out->tid);
}

static void flush(struct sampling *st)
{
	const struct sink *sink = st->env.sink;

	if (st->batch.n && sink->ips)
		sink->ips(sink->ips_ctx, st->batch.s, st->batch.n);
	ip_batch_clear(&st->batch);
}

static bool taken(const struct sampling *st, uint8_t domain)
{
	return DOMAIN_IS_GUEST(domain) ? st->guest : st->host;
}

static void other_record(struct sampling *st, const struct ring_record *r)
{
	uint64_t n;

	if (r->h->type == PERF_RECORD_LOST && record_lost(r->h, &n))
		st->lost += n;
	else if (r->h->type == PERF_RECORD_THROTTLE)
		st->throttled++;
}

/* Only the records say whether this kernel tells the callers of guests' code. */
static void see_chain(struct sampling *st, const struct perf_event_header *h)
{
	if (ip_sample_guest_chain(h))
		st->chains_told = true;
	else if (st->chainless < CHAINLESS)
		st->chainless++;
}

static void take(struct sampling *st, struct ip_sample *s)
{
	/* Where an idle CPU is nobody asks: they are all alike. */
	if (!s->tid && s->domain == DOMAIN_HOST_KERNEL)
		s->ip = 0;
	if (ip_batch_add(&st->batch, s))
		return;
	flush(st);
	(void)ip_batch_add(&st->batch, s); /* there is room now */
}

static void on_batch(void *ctx, const struct ring_record *r, size_t n)
{
	struct sampling *st = ctx;

	for (size_t i = 0; i < n; i++) {
		struct ip_sample s;

		if (r[i].h->type != PERF_RECORD_SAMPLE) {
			other_record(st, &r[i]);
			continue;
		}
		if (!ip_sample_decode(r[i].h, &s)) {
			st->undecoded++;
			continue;
		}
		if (DOMAIN_IS_GUEST(s.domain) && !st->chains_told && st->chains)
			see_chain(st, r[i].h);
		if (r[i].time > st->since && taken(st, s.domain))
			take(st, &s);
	}
}

static int drain(struct sampling *st, int64_t now, int64_t watermark)
{
	int rc = perf_rings_drain(st->rings, watermark, on_batch, st);

	flush(st);
	st->last_drain = now;
	return rc;
}

/* ---- what is said of it ---- */

static unsigned kernel_max_hz(const struct sysroot *root)
{
	char buf[32];

	if (sysroot_read(root, "proc/sys/kernel/perf_event_max_sample_rate", buf, sizeof(buf)) <= 0)
		return 0;
	return (unsigned)strtoul(buf, NULL, 10);
}

/* The rate to ask for: what was wanted, less what it turned out to cost. */
static unsigned rate(const struct sampling *st)
{
	unsigned hz = st->env.config->sample_hz >> (st->shift + st->throttle_shift);

	if (hz < HZ_MIN)
		hz = HZ_MIN < st->env.config->sample_hz ? HZ_MIN : st->env.config->sample_hz;
	return st->kernel_max && hz > st->kernel_max ? st->kernel_max : hz;
}

static void say_source(struct sampling *st, int state, const char *why, const char *mend)
{
	if (st->env.sink && st->env.sink->source)
		st->env.sink->source(st->env.sink->ctx, "guest_sampling", state, why, mend);
}

static const char *why_lower(const struct sampling *st)
{
	unsigned want = st->env.config->sample_hz;

	if (st->hz >= want)
		return "";
	if (st->throttle_shift)
		return "the kernel throttled it";
	if (st->kernel_max && st->kernel_max < want && !st->shift)
		return "kernel.perf_event_max_sample_rate";
	return "to stay within --max-overhead";
}

/* The words for the pane and doctor: the event that really runs, its rate, and why these. */
static void make_why(struct sampling *st)
{
	const char *lower = why_lower(st);
	size_t at;

	at = (size_t)snprintf(st->why, sizeof(st->why), "%s at %u Hz a CPU",
			      sampling_event_name(st->hw, st->host, st->guest), st->hz);
	if (*lower && at < sizeof(st->why))
		at += (size_t)snprintf(st->why + at, sizeof(st->why) - at, " instead of %u: %s",
				       st->env.config->sample_hz, lower);
	if (st->hw || at >= sizeof(st->why))
		return;
	if (st->open_error)
		snprintf(st->why + at, sizeof(st->why) - at, "; no hardware cycles: %s",
			 strerror(-st->open_error));
	else if (*st->choice.why)
		snprintf(st->why + at, sizeof(st->why) - at, ": %s", st->choice.why);
}

/* Something else runs than what was asked for by name. */
static bool fell_back(const struct sampling *st)
{
	return st->env.config->sample_with == SAMPLE_HW && !st->hw;
}

static void say_state(struct sampling *st)
{
	make_why(st);
	say_source(st, fell_back(st) || *why_lower(st) ? SOURCE_PARTIAL : SOURCE_OK, st->why, NULL);
}

static void tell(struct sampling *st)
{
	struct sampling_state s = {
		.open = st->open,
		.guest = st->guest,
		.event = st->open ? sampling_event_name(st->hw, st->host, st->guest) : "",
		.hz = st->open ? st->hz : 0,
		.wanted_hz = st->env.config->sample_hz,
		.why = st->open ? why_lower(st) : "",
		.throttled = st->throttled,
		.lost = st->lost,
	};

	st->throttled = st->lost = 0;
	if (st->env.sink->sampling)
		st->env.sink->sampling(st->env.sink->ctx, &s);
}

/* ---- open and close ---- */

static int follow_cpus(struct sampling *st, int64_t now)
{
	return kvm_follow_cpus(st->env.root, &st->online, st->rings, now, NULL, NULL);
}

static int open_event(struct sampling *st, bool hw)
{
	struct perf_event_attr a = sampling_attr(hw, st->host, st->guest, st->hz);
	int rc = -EINVAL;

	if (st->guest && st->chainless < CHAINLESS) {
		struct perf_event_attr with = a;

		sampling_attr_caller(&with);
		rc = perf_rings_open_attr(st->rings, SLOT, &with);
	}
	st->chains = !rc;
	if (rc) /* as many addresses may not be asked for (kernel.perf_event_max_stack) */
		rc = perf_rings_open_attr(st->rings, SLOT, &a);
	st->hw = hw && !rc;
	return rc;
}

static int try_open(struct sampling *st, int64_t now)
{
	int rc;

	st->kernel_max = kernel_max_hz(st->env.root);
	st->hz = rate(st);
	st->open_error = 0;
	rc = follow_cpus(st, now);
	if (rc)
		return rc;
	if (st->choice.hw) {
		rc = open_event(st, true);
		if (!rc)
			return 0;
		st->open_error = rc;
	}
	return open_event(st, false);
}

static void close_all(struct sampling *st, int64_t now)
{
	perf_rings_close(st->rings, SLOT);
	(void)perf_rings_set_cpus(st->rings, NULL, 0, now, NULL, NULL);
	(void)drain(st, now, INT64_MAX);
	st->open = false;
}

static void start(struct sampling *st, int64_t now)
{
	struct pmu_facts facts;
	struct kvm_reason r;
	int rc;

	kvm_rights_read(&st->rights);
	pmu_facts_read(st->env.root, &facts);
	sampling_choose(st->env.config->sample_with, &facts, &st->choice);
	rc = try_open(st, now);
	if (rc) {
		close_all(st, now);
		st->retry_at = now + RETRY;
		if (!kvm_why_no_perf(st->env.root, &st->rights, rc, &r))
			snprintf(r.why, sizeof(r.why), "%s", strerror(-rc));
		say_source(st, SOURCE_OFF, r.why, *r.mend ? r.mend : NULL);
		tell(st);
		return;
	}
	st->open = true;
	st->since = clock_mono_ns(); /* only now is it on everywhere */
	say_state(st);
	tell(st);
}

/* Another rate, or no more chains: the event anew, in the same rings. */
static void set_rate(struct sampling *st)
{
	unsigned before = st->hz;
	int rc;

	st->hz = rate(st);
	if (st->hz == before && !(st->chains && st->chainless == CHAINLESS))
		return;
	perf_rings_close(st->rings, SLOT);
	rc = open_event(st, st->hw);
	if (rc) {
		st->hz = before;
		rc = open_event(st, st->hw);
	}
	if (rc) /* the next tick begins anew, and says what is wrong */
		st->open = false;
	else
		say_state(st);
}

/*
 * The kernel throttles what interrupts it too often: then nothing is sampled until its next
 * clock tick, and what was running is not what one sees. Fewer samples are better.
 */
static void follow_throttling(struct sampling *st, int64_t now)
{
	if (st->throttled) {
		st->throttled_at = now;
		st->throttle_shift += rate(st) > HZ_MIN;
	} else if (st->throttle_shift && now - st->throttled_at > CALM) {
		st->throttled_at = now;
		st->throttle_shift--;
	}
	set_rate(st);
}

/* ---- the vtable ---- */

static void sampling_close(void *state)
{
	struct sampling *st = state;

	if (!st)
		return;
	perf_rings_free(st->rings);
	if (st->online >= 0)
		close(st->online);
	free(st);
}

static int sampling_open(const struct collector_env *env, void **state)
{
	struct sampling *st = calloc(1, sizeof(*st));
	size_t bytes = env->config->lost_test ? RING_MIN : RING_BYTES;
	struct kvm_reason r;
	int rc;

	if (!st)
		return -ENOMEM;
	st->env = *env;
	st->online = -1;
	st->host = env->config->sample_host || !env->config->sample_guest;
	st->guest = env->config->sample_guest || !env->config->sample_host;
	rc = perf_rings_new(bytes, 1, env->config->lost_test, &st->rings);
	if (rc) {
		sampling_close(st);
		return rc;
	}
	perf_rings_sample_ips(st->rings);
	*state = st;
	if (kvm_no_events(env->root, &r)) {
		st->retry_at = INT64_MAX;
		say_source(st, SOURCE_OFF, r.why, r.mend);
	} else if (!env->config->sample_hz) {
		st->retry_at = INT64_MAX;
		say_source(st, SOURCE_PARTIAL, "switched off: -F 0", NULL);
	}
	return 0;
}

static int sampling_fd(void *state)
{
	return perf_rings_fd(((struct sampling *)state)->rings);
}

static int sampling_ready(void *state, int64_t now)
{
	struct sampling *st = state;

	perf_rings_woken(st->rings);
	if (!st->open || now - st->last_drain < DRAIN_GAP)
		return 0;
	return drain(st, now, now - MARGIN);
}

static void follow_demand(struct sampling *st, int64_t now)
{
	if (st->wanted)
		st->used = now;
	if (st->wanted && !st->open && now >= st->retry_at)
		start(st, now);
	else if (!st->wanted && st->open && now - st->used > LINGER) {
		close_all(st, now);
		tell(st);
	}
}

static int sampling_tick(void *state, int64_t now, int64_t watermark)
{
	struct sampling *st = state;
	int rc = 0;

	if (st->open) {
		rc = drain(st, now, watermark);
		follow_throttling(st, now);
		(void)follow_cpus(st, now); /* one that cannot be had now: at the next tick */
		tell(st);
	}
	follow_demand(st, now);
	return rc;
}

static void sampling_demand(void *state, const struct demand *d)
{
	struct sampling *st = state;

	st->wanted = d->samples;
	st->shift = d->sample_shift;
	follow_demand(st, clock_mono_ns());
	if (st->open)
		set_rate(st);
}

/* ---- probe ---- */

/* Opens it on one CPU for a moment. */
static int try_event(const struct collector_env *env, bool hw)
{
	struct perf_event_attr a = sampling_attr(hw, true, true, 100);
	struct perf_rings *rings;
	int *cpu, n, rc = perf_rings_new(RING_MIN, 1, true, &rings);

	if (rc)
		return rc;
	perf_rings_sample_ips(rings);
	n = kvm_online_cpus(env->root, &cpu);
	rc = n > 0 ? perf_rings_set_cpus(rings, cpu, 1, clock_mono_ns(), NULL, NULL) : n;
	if (!rc)
		rc = perf_rings_open_attr(rings, SLOT, &a);
	free(cpu);
	perf_rings_free(rings);
	return rc;
}

static void sampling_probe(const struct collector_env *env, struct probes *out)
{
	static const char what[] = "samples";
	struct sampling_choice choice;
	struct pmu_facts facts;
	struct kvm_rights rights;
	struct kvm_reason r;
	int rc, hw = 0;

	if (env->sink) /* a program that collects says what runs when it is opened */
		return;
	if (kvm_no_events(env->root, &r)) {
		probe_add(out, what, SOURCE_OFF, r.mend, "%s", r.why);
		return;
	}
	kvm_rights_read(&rights);
	pmu_facts_read(env->root, &facts);
	sampling_choose(env->config ? env->config->sample_with : SAMPLE_AUTO, &facts, &choice);
	if (choice.hw)
		hw = try_event(env, true);
	if (choice.hw && !hw) {
		probe_add(out, what, SOURCE_OK, NULL, "works, by hardware cycles");
		return;
	}
	rc = try_event(env, false);
	if (kvm_why_no_perf(env->root, &rights, rc, &r))
		probe_add(out, what, SOURCE_OFF, r.mend, "%s", r.why);
	else if (hw)
		probe_add(out, what, SOURCE_OK, NULL, "works, by cpu-clock: no hardware cycles: %s",
			  strerror(-hw));
	else
		probe_add(out, what, SOURCE_OK, NULL, "works, by cpu-clock%s%s",
			  *choice.why ? ": " : "", choice.why);
}

const struct collector collector_guest_sampling = {
	.name = "guest_sampling",
	.what = "where the CPUs are, in guests and in the host: hot symbols",
	.probe = sampling_probe,
	.open = sampling_open,
	.fd = sampling_fd,
	.ready = sampling_ready,
	.tick = sampling_tick,
	.demand = sampling_demand,
	.close = sampling_close,
};
