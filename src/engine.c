// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine as others see it: how it is made and freed, and the orders that other threads
 * give it (engine.h). What its thread does is in engine_loop.c.
 */
#include "engine_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "kvm_events.h"
#include "kvm_names.h"
#include "model.h"
#include "own_path.h"
#include "reader.h"
#include "sysroot.h"
#include "text.h"

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
	char self[PATH_MAX];
	struct model_config mc = {
		.node = e->node,
		.kernel = e->kernel,
		.boot_id = e->boot_id,
		.root = geteuid() == 0,
		.no_entry_exit = e->no_entry_exit,
		.self = own_command(self, sizeof(self)),
		.clk_tck = sysconf(_SC_CLK_TCK),
		.vcpu_keys = 8,
		/* docs/HACKING.md: a row a key, where each is compared with perf's */
		.vm_keys = getenv("KVMTOP_TEST_MANY_KEYS") ? 4096 : 64,
	};

	e->env.inv = inventory_new();
	e->env.names = kvm_names_new();
	if (!e->env.inv || !e->env.names)
		return -ENOMEM;
	e->model = model_new(&mc, e->env.inv, e->env.names);
	if (!e->model)
		return -ENOMEM;
	return 0;
}

static int make_symbols(struct engine *e)
{
	int rc = engine_symbols_new(e->env.root, e->config.guest_files, e->env.inv, e->model,
				    &e->symbols);

	if (rc)
		return rc;
	e->sink = *model_sink(e->model);
	e->sink.ips = engine_symbols_ips;
	e->sink.exits = engine_symbols_exits;
	e->sink.ips_ctx = e->symbols;
	e->env.sink = &e->sink;
	return 0;
}

int engine_watch(struct engine *e, int fd, void *what)
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
	err = engine_watch(e, e->timerfd, &e->timerfd);
	if (!err && engine_symbols_fd(e->symbols) >= 0)
		err = engine_watch(e, engine_symbols_fd(e->symbols), &e->symbols);
	return err ? err : engine_watch(e, e->ctlfd, &e->ctlfd);
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
	e->config.collector.first_frame = c->short_first;
	if (getenv("KVMTOP_TEST_SMALL_RING")) /* docs/HACKING.md: provokes losses */
		e->config.collector.lost_test = true;
	if (getenv("KVMTOP_TEST_FEW_KEYS")) /* the same: more keys than there is room for */
		e->config.collector.few_keys = true;
	e->env.config = &e->config.collector;
	e->delay_wanted = c->delay_s;
	governor_init(&e->governor, c->max_overhead_pct);
	return 0;
}

/* What to think of this host's KVM before anything was seen of it. */
static bool fires_no_exits(const struct sysroot *root)
{
	char cpuinfo[8192] = "";
	const char *why;

	sysroot_read(root, "proc/cpuinfo", cpuinfo, sizeof(cpuinfo));
	return kvm_exits_state(0, 0, cpuinfo, &why) != SOURCE_OK;
}

static int engine_init(struct engine *e, const struct engine_config *c, char *err, size_t errsize)
{
	int rc = copy_config(e, c);

	if (rc == 0)
		rc = choose_collectors(e, err, errsize);
	if (rc == 0)
		rc = sysroot_open_host(e->root_dir, &e->env.root, err, errsize);
	if (rc == 0) {
		read_identity(e);
		/* What stands in for exits is to be open before the first interval. */
		e->no_entry_exit = fires_no_exits(e->env.root);
		rc = make_model(e);
	}
	if (rc == 0)
		rc = make_symbols(e);
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
	engine_symbols_free(e->symbols);
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

/* ---- orders ---- */

int engine_start(struct engine *e)
{
	sigset_t all, old;
	int rc;

	/* Signals are for the thread that reads them through its own descriptor. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&e->thread, NULL, engine_collect, e);
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

	if (e->started || e->nreader == MAX_READERS || depth == 0) {
		errno = EINVAL;
		return NULL;
	}
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
