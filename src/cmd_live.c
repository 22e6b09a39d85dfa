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
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "commands.h"
#include "demo.h"
#include "engine.h"
#include "filter.h"
#include "keymap.h"
#include "options.h"
#include "settings.h"
#include "surface.h"
#include "term_ncurses.h"
#include "text.h"
#include "ui.h"

#define ERR_SIZE 320

struct live {
	const struct options *o;
	struct engine *engine;
	struct reader *reader;
	struct terminal *term;
	struct ui *ui;
	struct surface *surface;
	struct demo *demo; /* started with D; NULL */
	int sigfd;
	sigset_t before; /* the signal mask that was found */
	uint64_t drawn; /* snapshots so far, for -n */
	bool quit, all; /* all: draw every cell anew */
};

static bool want_vm(const void *ctx, const struct snap_vm *vm)
{
	return filter_vm(ctx, vm);
}

static bool want_vcpu(const void *ctx, const struct snap_vcpu *v)
{
	return filter_vcpu(ctx, v);
}

static int open_ui(struct live *l, char *err)
{
	char path[PATH_MAX], theme[16] = "", safe[60];
	bool has_path = settings_path(path, sizeof(path));
	struct ui_config cfg = {
		.delay_s = l->o->delay_s,
		.settings = has_path ? path : NULL,
		.can_demo = !l->o->root && access("/dev/kvm", R_OK | W_OK) == 0,
		/* NULL where all are wanted: then there is a row of all together. */
		.want_vm = filter_has_vms(l->o->filter) ? want_vm : NULL,
		.want_vcpu = want_vcpu,
		.want_ctx = l->o->filter,
	};

	if (has_path)
		settings_theme(path, theme, sizeof(theme));
	cfg.theme_word = theme[0] ? theme : NULL;
	l->ui = ui_new(&cfg);
	l->surface = surface_new(1, 1);
	if (!l->ui || !l->surface) {
		snprintf(err, ERR_SIZE, "no memory");
		return -ENOMEM;
	}
	if ((l->o->sort || l->o->reverse) && !ui_sort(l->ui, l->o->sort, l->o->reverse)) {
		text_escape(safe, sizeof(safe), l->o->sort ? l->o->sort : "");
		snprintf(err, ERR_SIZE, "-s '%s': no such column: see kvmtop --fields help", safe);
		return -EINVAL;
	}
	ui_totals(l->ui, l->o->totals);
	/* Last: what fails before it is said on a terminal in its usual state. */
	return term_open(l->o->color, theme[0] ? theme : NULL, &l->term, err, ERR_SIZE);
}

static int open_engine(struct live *l, char *err)
{
	const struct engine_config cfg = {
		.root = l->o->root,
		.collectors = l->o->collectors,
		.delay_s = l->o->delay_s,
		.short_first = true,
		.max_overhead_pct = l->o->max_overhead_pct,
		.guest_files = &l->o->guest_files,
		.collector = {.delay_s = l->o->delay_s,
			      .threads_by_proc = l->o->threads_by_proc,
			      .sample_hz = l->o->sample_hz,
			      .sample_with = l->o->sample_with,
			      .sample_host = l->o->sample_host,
			      .sample_guest = l->o->sample_guest},
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

/* Signals become readable; blocked before any thread is made, so that all of them inherit it. */
static int open_signals(struct live *l, char *err)
{
	static const int wanted[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigaddset(&set, wanted[i]);
	pthread_sigmask(SIG_BLOCK, &set, &l->before);
	l->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->sigfd >= 0)
		return 0;
	snprintf(err, ERR_SIZE, "signalfd: %s", strerror(errno));
	return -errno;
}

static void demand(struct live *l)
{
	struct demand d;

	ui_demand(l->ui, &d);
	d.kinds |= l->o->kinds;
	reader_demand(l->reader, &d);
}

static void draw(struct live *l)
{
	int rows, cols;

	term_size(l->term, &rows, &cols);
	if ((rows != l->surface->rows || cols != l->surface->cols) &&
	    surface_resize(l->surface, rows, cols) < 0)
		return;
	l->surface->ascii = !term_utf8(l->term);
	ui_draw(l->ui, l->surface);
	term_show(l->term, l->surface, l->all);
	l->all = false;
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
		ui_message(l->ui, ROLE_WARN, err);
		return;
	}
	ui_message(l->ui, ROLE_GOOD, "three guests are starting; they end with kvmtop");
}

static void suspend(struct live *l)
{
	term_suspend(l->term);
	l->all = true;
}

static void act(struct live *l, const struct ui_request *r)
{
	switch (r->kind) {
	case UI_NONE:
		break;
	case UI_QUIT:
		l->quit = true;
		break;
	case UI_DELAY:
		engine_set_delay(l->engine, r->delay_s);
		break;
	case UI_RESET:
		engine_reset(l->engine);
		break;
	case UI_SUSPEND:
		suspend(l);
		break;
	case UI_REDRAW:
		l->all = true;
		break;
	case UI_DEMO:
		start_demo(l);
		break;
	}
}

static void take_keys(struct live *l)
{
	uint32_t key;

	while (!l->quit && (key = term_key(l->term))) {
		struct ui_request r;

		if (key == UK_RESIZE)
			continue;
		r = ui_key(l->ui, key);
		act(l, &r);
	}
	if (term_gone(l->term))
		l->quit = true;
}

static void take_signals(struct live *l)
{
	struct signalfd_siginfo si;

	while (read(l->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGWINCH:
			term_resized(l->term);
			break;
		case SIGTSTP:
			suspend(l);
			break;
		case SIGCONT:
			l->all = true;
			break;
		default:
			l->quit = true;
		}
	}
}

static void take_snapshots(struct live *l)
{
	struct snapshot *s;
	uint64_t skipped;

	while ((s = reader_take(l->reader, &skipped))) {
		/* The first one is the baseline: it is no interval that -n could mean. */
		if (s->dt > 0 && !s->first_rates)
			l->drawn++;
		ui_snapshot(l->ui, s);
		snapshot_unref(s);
	}
}

static void loop(struct live *l)
{
	struct pollfd fds[] = {
		{.fd = term_fd(l->term), .events = POLLIN},
		{.fd = reader_fd(l->reader), .events = POLLIN},
		{.fd = l->sigfd, .events = POLLIN},
	};

	draw(l);
	while (!l->quit) {
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR)
			return;
		if (fds[2].revents)
			take_signals(l);
		if (fds[1].revents)
			take_snapshots(l);
		if (fds[0].revents)
			take_keys(l);
		if (l->quit)
			return;
		draw(l);
		if (l->o->iterations && l->drawn >= l->o->iterations)
			return;
	}
}

static void close_all(struct live *l)
{
	/* The terminal first: whatever hangs after it, the user has the shell's screen. */
	term_close(l->term);
	demo_stop(l->demo);
	engine_free(l->engine);
	ui_free(l->ui);
	surface_free(l->surface);
	if (l->sigfd >= 0)
		close(l->sigfd);
	pthread_sigmask(SIG_SETMASK, &l->before, NULL);
}

int cmd_live(const struct options *o)
{
	struct live l = {.o = o, .sigfd = -1};
	char err[ERR_SIZE] = "";
	int r;

	pthread_sigmask(SIG_BLOCK, NULL, &l.before);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("kvmtop: no terminal: use kvmtop --batch\n", stderr);
		return STATUS_FAILED;
	}
	r = open_engine(&l, err);
	if (r == 0)
		r = open_signals(&l, err);
	if (r == 0)
		r = open_ui(&l, err);
	if (r == 0) {
		demand(&l);
		r = engine_start(l.engine);
		if (r < 0)
			snprintf(err, sizeof(err), "the collecting thread: %s", strerror(-r));
	}
	if (r == 0)
		loop(&l);
	close_all(&l);
	if (r == 0)
		return STATUS_OK;
	fprintf(stderr, "kvmtop: %s\n", err[0] ? err : strerror(-r));
	return r == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
