// SPDX-License-Identifier: GPL-2.0-only
/*
 * The full screen: the main thread is the screen's. It waits for keys, snapshots and signals,
 * draws, and hands what a key asks for to the engine. The terminal may block it for as long as
 * it likes: collecting goes on in the engine's thread.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "demo.h"
#include "engine.h"
#include "options.h"
#include "own_path.h"
#include "priority.h"
#include "screen.h"
#include "ui.h"

#define ERR_SIZE 320

struct live {
	const struct options *o;
	struct engine *engine;
	struct reader *reader;
	struct screen screen;
	struct demo *demo; /* started with D; NULL */
	uint64_t drawn; /* snapshots so far, for -n */
	char self[PATH_MAX]; /* how the program is called */
};

static int open_engine(struct live *l, char *err)
{
	const struct engine_config cfg = {
		.root = l->o->root,
		.guest_files = &l->o->guest_files,
		.collectors = l->o->collectors,
		.delay_s = l->o->delay_s,
		.short_first = true,
		.max_overhead_pct = l->o->max_overhead_pct,
		.collector = options_collector(l->o),
	};
	int r = engine_new(&cfg, &l->engine, err, ERR_SIZE);

	if (r < 0)
		return r;
	l->reader = engine_reader(l->engine, 1);
	if (!l->reader) {
		r = -errno;
		snprintf(err, ERR_SIZE, "cannot start collecting: %s", strerror(-r));
		return r;
	}
	return 0;
}

static void demand(struct live *l)
{
	struct demand d;

	ui_demand(l->screen.ui, &d);
	d.kinds |= l->o->kinds;
	reader_demand(l->reader, &d);
}

static void draw(struct live *l)
{
	screen_draw(&l->screen);
	/* Columns and panes come and go with the size too. */
	demand(l);
}

static void start_demo(struct live *l)
{
	char err[240];

	if (l->demo)
		return;
	if (demo_start(&l->demo, err, sizeof(err)) < 0) {
		l->demo = NULL;
		ui_message(l->screen.ui, ROLE_WARN, err);
		return;
	}
	ui_message(l->screen.ui, ROLE_GOOD, "three guests are starting; they end with kvmtop");
}

static void act(void *ctx, const struct ui_request *r)
{
	struct live *l = ctx;

	if (r->kind == UI_DELAY)
		engine_set_delay(l->engine, r->delay_s);
	else if (r->kind == UI_RESET)
		engine_reset(l->engine);
	else if (r->kind == UI_DEMO)
		start_demo(l);
}

static void take_snapshots(struct live *l)
{
	struct snapshot *s;
	uint64_t skipped;

	while ((s = reader_take(l->reader, &skipped))) {
		/* The first one is the baseline: it is no interval that -n could mean. */
		if (s->dt > 0 && !s->first_rates)
			l->drawn++;
		ui_snapshot(l->screen.ui, s);
		snapshot_unref(s);
	}
	if (reader_failure(l->reader))
		ui_message(l->screen.ui, ROLE_WARN,
			   "no memory for three intervals' figures: trying on");
}

static void loop(struct live *l)
{
	struct pollfd fds[] = {
		{.fd = term_fd(l->screen.term), .events = POLLIN},
		{.fd = reader_fd(l->reader), .events = POLLIN},
		{.fd = l->screen.sigfd, .events = POLLIN},
	};

	draw(l);
	while (!l->screen.quit) {
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR)
			return;
		if (fds[2].revents)
			screen_signals(&l->screen);
		if (fds[1].revents)
			take_snapshots(l);
		if (fds[0].revents)
			screen_keys(&l->screen);
		if (l->screen.quit)
			return;
		draw(l);
		if (l->o->iterations && l->drawn >= l->o->iterations)
			return;
	}
}

static void close_all(struct live *l)
{
	screen_close_terminal(&l->screen);
	demo_stop(l->demo);
	engine_free(l->engine);
	screen_close(&l->screen);
}

static int open_screen(struct live *l, char *err)
{
	struct ui_config cfg = {
		.self = own_command(l->self, sizeof(l->self)),
		.can_demo = !l->o->root && access("/dev/kvm", R_OK | W_OK) == 0,
	};

	return screen_open(&l->screen, &cfg, err, ERR_SIZE);
}

int cmd_live(const struct options *o)
{
	struct live l = {.o = o, .screen = {.o = o, .sigfd = -1, .act = act, .ctx = &l}};
	char err[ERR_SIZE] = "";
	int r;

	pthread_sigmask(SIG_BLOCK, NULL, &l.screen.before);
	if (!screen_possible())
		return STATUS_FAILED;
	r = open_engine(&l, err);
	if (r == 0)
		r = screen_open_signals(&l.screen, err, sizeof(err));
	if (r == 0)
		r = open_screen(&l, err);
	if (r == 0) {
		demand(&l);
		r = engine_start(l.engine);
		if (r < 0)
			snprintf(err, sizeof(err), "the collecting thread: %s", strerror(-r));
	}
	priority_raise();
	if (r == 0)
		loop(&l);
	close_all(&l);
	if (r == 0)
		return STATUS_OK;
	fprintf(stderr, "kvmtop: %s\n", err[0] ? err : strerror(-r));
	return r == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
