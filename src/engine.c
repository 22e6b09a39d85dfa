// SPDX-License-Identifier: GPL-2.0-only
/*
 * The collecting thread: one epoll loop over the tick, the event rings and the wishes of
 * the readers. It owns inventory, model and collectors; see engine.h.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "governor.h"
#include "inventory.h"
#include "kvm_names.h"
#include "model.h"
#include "reader.h"
#include "sysroot.h"
#include "vms.h"

/* Events were seen to become visible up to 2.7 ms after their own time (metrics.md). */
#define WATERMARK_LAG (5 * NS_PER_MS)
#define MAX_COLLECTORS 16
#define MAX_READERS 8
#define STARVED_TICKS 30

struct active {
	const struct collector *c;
	void *state;
	bool open;
};

struct engine {
	struct engine_config config;
	struct collector_env env;
	char *root_dir, *names_wanted;
	char node[65], kernel[65], boot_id[40];
	struct model *model;
	struct active active[MAX_COLLECTORS];
	size_t nactive;
	struct reader *reader[MAX_READERS];
	size_t nreader;
	int epfd, timerfd, ctlfd;
	pthread_t thread;
	bool started;
	atomic_bool stop, reset, tick_now;
	pthread_mutex_t lock; /* guards delay_wanted */
	double delay_wanted;
	/* Below: the collecting thread's own. */
	int64_t deadline, watermark;
	unsigned long ticks;
	struct demand demand;
	struct governor governor;
	bool no_entry_exit;
	unsigned starved; /* ticks for which pins are read because of steal */
	void *vms; /* state of the collector vms, NULL where it is not open */
};

/* The screen's first intervals, so that rates are there within a second (product.md). */
static const double first_delays[] = {0.25, 0.25, 0.5};
#define NFIRST (sizeof(first_delays) / sizeof(first_delays[0]))

/* ---- making one ---- */

static bool name_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == len && !strncmp(p, name, len))
			return true;
	return false;
}

static const struct collector *collector_named(const char *name, size_t len)
{
	for (const struct collector *const *c = collectors; *c; c++)
		if (strlen((*c)->name) == len && !strncmp((*c)->name, name, len))
			return *c;
	return NULL;
}

static int choose_collectors(struct engine *e, char *err, size_t errsize)
{
	const char *list = e->names_wanted;

	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
		size_t len = strcspn(p, ",");

		if (!collector_named(p, len)) {
			snprintf(err, errsize,
				 "--collectors: no collector is called '%.*s'; kvmtop doctor lists "
				 "them",
				 (int)len, p);
			return -EINVAL;
		}
	}
	for (const struct collector *const *c = collectors; *c && e->nactive < MAX_COLLECTORS; c++)
		if (!list || name_listed(list, (*c)->name) || !strcmp((*c)->name, "vms"))
			e->active[e->nactive++].c = *c; /* without vms nothing has a name */
	return 0;
}

static void read_identity(struct engine *e)
{
	struct utsname u;

	if (uname(&u) == 0) {
		snprintf(e->node, sizeof(e->node), "%s", u.nodename);
		snprintf(e->kernel, sizeof(e->kernel), "%s", u.release);
	}
	if (!sysroot_is_host(e->env.root)) {
		sysroot_read(e->env.root, "proc/sys/kernel/hostname", e->node, sizeof(e->node));
		sysroot_read(e->env.root, "proc/sys/kernel/osrelease", e->kernel,
			     sizeof(e->kernel));
	}
	sysroot_read(e->env.root, "proc/sys/kernel/random/boot_id", e->boot_id, sizeof(e->boot_id));
	e->node[strcspn(e->node, "\n")] = 0;
	e->kernel[strcspn(e->kernel, "\n")] = 0;
	e->boot_id[strcspn(e->boot_id, "\n")] = 0;
}

static int make_model(struct engine *e)
{
	struct model_config mc = {
		.node = e->node,
		.kernel = e->kernel,
		.boot_id = e->boot_id,
		.root = geteuid() == 0,
		.clk_tck = sysconf(_SC_CLK_TCK),
		.vcpu_keys = 8,
		.vm_keys = 64,
	};

	e->env.inv = inventory_new();
	e->env.names = kvm_names_new();
	if (!e->env.inv || !e->env.names)
		return -ENOMEM;
	e->model = model_new(&mc, e->env.inv, e->env.names);
	if (!e->model)
		return -ENOMEM;
	e->env.sink = model_sink(e->model);
	return 0;
}

static int watch_fd(struct engine *e, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(e->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int make_fds(struct engine *e)
{
	int err;

	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	e->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	e->ctlfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->epfd < 0 || e->timerfd < 0 || e->ctlfd < 0)
		return -errno;
	err = watch_fd(e, e->timerfd, &e->timerfd);
	return err ? err : watch_fd(e, e->ctlfd, &e->ctlfd);
}

static int copy_config(struct engine *e, const struct engine_config *c)
{
	e->config = *c;
	e->root_dir = c->root ? strdup(c->root) : NULL;
	e->names_wanted = c->collectors ? strdup(c->collectors) : NULL;
	if ((c->root && !e->root_dir) || (c->collectors && !e->names_wanted))
		return -ENOMEM;
	e->config.root = e->root_dir;
	e->config.collectors = e->names_wanted;
	e->config.collector.delay_s = c->delay_s;
	if (getenv("KVMTOP_TEST_SMALL_RING")) /* docs/HACKING.md: provokes losses */
		e->config.collector.lost_test = true;
	e->env.config = &e->config.collector;
	e->delay_wanted = c->delay_s;
	governor_init(&e->governor, c->max_overhead_pct);
	return 0;
}

static int engine_init(struct engine *e, const struct engine_config *c, char *err, size_t errsize)
{
	int rc = copy_config(e, c);

	if (rc == 0)
		rc = choose_collectors(e, err, errsize);
	if (rc == 0) {
		rc = sysroot_open(e->root_dir, &e->env.root);
		if (rc)
			snprintf(err, errsize,
				 "--root %s: cannot be opened (%s); give a directory with proc and "
				 "sys",
				 e->root_dir ? e->root_dir : "/", strerror(-rc));
	}
	if (rc == 0) {
		read_identity(e);
		rc = make_model(e);
	}
	return rc ? rc : make_fds(e);
}

int engine_new(const struct engine_config *c, struct engine **out, char *err, size_t errsize)
{
	struct engine *e = calloc(1, sizeof(*e));
	int rc;

	if (errsize)
		err[0] = 0;
	if (!e)
		return -ENOMEM;
	e->epfd = e->timerfd = e->ctlfd = -1;
	pthread_mutex_init(&e->lock, NULL);
	rc = engine_init(e, c, err, errsize);
	if (rc) {
		if (!err[0])
			snprintf(err, errsize, "cannot start collecting: %s", strerror(-rc));
		engine_free(e);
		return rc;
	}
	*out = e;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	engine_stop(e);
	for (size_t i = 0; i < e->nreader; i++)
		reader_free(e->reader[i]);
	model_free(e->model); /* takes its cookies back from the inventory */
	inventory_free(e->env.inv);
	kvm_names_free(e->env.names);
	sysroot_close(e->env.root);
	close_fd(e->epfd);
	close_fd(e->timerfd);
	close_fd(e->ctlfd);
	free(e->root_dir);
	free(e->names_wanted);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

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

static void open_collectors(struct engine *e)
{
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
			watch_fd(e, fd, a);
	}
}

static void close_collectors(struct engine *e)
{
	for (size_t i = e->nactive; i-- > 0;)
		if (e->active[i].open) {
			e->active[i].c->close(e->active[i].state);
			e->active[i].open = false;
		}
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
	all.pins |= e->starved > 0;
	all.kinds &= ~e->governor.dropped;
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
	t.it_value.tv_sec = (time_t)(e->deadline / NS_PER_S);
	t.it_value.tv_nsec = (long)(e->deadline % NS_PER_S);
	timerfd_settime(e->timerfd, TFD_TIMER_ABSTIME, &t, NULL);
}

static struct timespec wall_at(int64_t mono, int64_t now)
{
	struct timespec t;
	int64_t ns;

	clock_gettime(CLOCK_REALTIME, &t);
	ns = timespec_ns(t) - (now - mono);
	t.tv_sec = (time_t)(ns / NS_PER_S);
	t.tv_nsec = (long)(ns % NS_PER_S);
	return t;
}

static void tell_cost(struct engine *e, int64_t now)
{
	long ncpu = sysconf(_SC_NPROCESSORS_ONLN);
	double self = governor_self(&e->governor, now, ncpu > 0 ? (unsigned)ncpu : 1);

	model_self(e->model, self < 0 ? value_pending() : value_known(self),
		   self < 0 ? value_pending() : value_known(e->governor.guest_pct));
}

static void govern(struct engine *e, const struct snapshot *s)
{
	char kinds[80], why[200];

	if (!governor_look(&e->governor, s))
		return;
	apply_demand(e);
	governor_text(&e->governor, kinds, sizeof(kinds));
	if (e->governor.dropped)
		snprintf(why, sizeof(why), "%s not collected: it would cost more than %.3g%%",
			 kinds, e->governor.max_pct);
	else
		snprintf(why, sizeof(why), "within %.3g%%", e->governor.max_pct);
	e->env.sink->source(e->env.sink->ctx, "overhead",
			    e->governor.dropped ? SOURCE_PARTIAL : SOURCE_OK, why,
			    e->governor.dropped ? "kvmtop --max-overhead 10" : NULL);
}

/* vCPUs run and not one kvm_exit: whether this KVM fires any is then found by other events. */
static void find_entry_exit(struct engine *e, const struct snapshot *s)
{
	bool none = !s->host.entry_exit && s->nvcpus > 0 && s->dt > 0;

	if (none == e->no_entry_exit)
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

static void publish(struct engine *e, struct snapshot *s)
{
	for (size_t i = 0; i < e->nreader; i++)
		reader_put(e->reader[i], s);
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
	if (e->vms) {
		vms_progress(e->vms, &done, &all);
		model_discovery(e->model, done, all);
	}
	tell_cost(e, now);
	s = model_commit(e->model, w, wall_at(w, now), first_rates, next_delay(e));
	e->watermark = w;
	e->ticks++;
	if (s) {
		govern(e, s);
		find_entry_exit(e, s);
		find_starved(e, s);
		publish(e, s);
		snapshot_unref(s);
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

static void *collect(void *arg)
{
	struct engine *e = arg;
	struct epoll_event ev[8];

	pthread_setname_np(pthread_self(), "kvmtop-collect");
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
			else
				on_collector(e, ev[i].data.ptr);
	}
	close_collectors(e);
	return NULL;
}

int engine_start(struct engine *e)
{
	sigset_t all, old;
	int rc;

	/* Signals are for the thread that reads them through its own descriptor. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&e->thread, NULL, collect, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	e->started = rc == 0;
	return -rc;
}

void engine_poke(struct engine *e)
{
	uint64_t one = 1;

	if (write(e->ctlfd, &one, sizeof(one)) < 0)
		return; /* full: it will wake anyway */
}

void engine_stop(struct engine *e)
{
	if (!e->started)
		return;
	atomic_store(&e->stop, true);
	engine_poke(e);
	pthread_join(e->thread, NULL);
	e->started = false;
}

struct reader *engine_reader(struct engine *e, unsigned depth)
{
	struct reader *r;

	if (e->started || e->nreader == MAX_READERS || depth == 0)
		return NULL;
	r = reader_new(e, depth);
	if (r)
		e->reader[e->nreader++] = r;
	return r;
}

void engine_set_delay(struct engine *e, double delay_s)
{
	pthread_mutex_lock(&e->lock);
	e->delay_wanted = delay_s;
	pthread_mutex_unlock(&e->lock);
	engine_tick_now(e);
}

void engine_reset(struct engine *e)
{
	atomic_store(&e->reset, true);
}

void engine_tick_now(struct engine *e)
{
	atomic_store(&e->tick_now, true);
	engine_poke(e);
}
