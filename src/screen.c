// SPDX-License-Identifier: GPL-2.0-only
/* The full screen on a terminal (screen.h). */
#include "screen.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "filter.h"
#include "keymap.h"
#include "settings.h"
#include "surface.h"
#include "text.h"

bool screen_possible(void)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return true;
	fputs("kvmtop: no terminal: use kvmtop --batch\n", stderr);
	return false;
}

int screen_open_signals(struct screen *s, char *err, size_t size)
{
	static const int wanted[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigaddset(&set, wanted[i]);
	pthread_sigmask(SIG_BLOCK, &set, &s->before);
	s->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->sigfd >= 0)
		return 0;
	snprintf(err, size, "signalfd: %s", strerror(errno));
	return -errno;
}

static bool want_vm(const void *ctx, const struct snap_vm *vm)
{
	return filter_vm(ctx, vm);
}

static bool want_vcpu(const void *ctx, const struct snap_vcpu *v)
{
	return filter_vcpu(ctx, v);
}

int screen_open(struct screen *s, struct ui_config *cfg, char *err, size_t size)
{
	char path[PATH_MAX], theme[16] = "", safe[60];
	bool has_path = settings_path(path, sizeof(path));

	cfg->delay_s = s->o->delay_s;
	cfg->slow_ns = s->o->slow_ns;
	cfg->settings = has_path ? path : NULL;
	/* NULL where all are wanted: then there is a row of all together. */
	cfg->want_vm = filter_has_vms(s->o->filter) ? want_vm : NULL;
	cfg->want_vcpu = want_vcpu;
	cfg->want_ctx = s->o->filter;
	if (has_path)
		settings_theme(path, theme, sizeof(theme));
	cfg->theme_word = theme[0] ? theme : NULL;
	s->ui = ui_new(cfg);
	s->surface = surface_new(1, 1);
	if (!s->ui || !s->surface) {
		snprintf(err, size, "no memory");
		return -ENOMEM;
	}
	if ((s->o->sort || s->o->reverse) && !ui_sort(s->ui, s->o->sort, s->o->reverse)) {
		text_escape(safe, sizeof(safe), s->o->sort ? s->o->sort : "");
		snprintf(err, size, "-s '%s': no such column: see kvmtop --fields help", safe);
		return -EINVAL;
	}
	ui_totals(s->ui, s->o->totals);
	/* Last: what fails before it is said on a terminal in its usual state. */
	return term_open(s->o->color, theme[0] ? theme : NULL, &s->term, err, size);
}

void screen_draw(struct screen *s)
{
	int rows, cols;

	term_size(s->term, &rows, &cols);
	if ((rows != s->surface->rows || cols != s->surface->cols) &&
	    surface_resize(s->surface, rows, cols) < 0)
		return;
	s->surface->ascii = !term_utf8(s->term);
	ui_draw(s->ui, s->surface);
	term_show(s->term, s->surface, s->all);
	s->all = false;
}

static void suspend(struct screen *s)
{
	term_suspend(s->term);
	s->all = true;
}

static void act(struct screen *s, const struct ui_request *r)
{
	switch (r->kind) {
	case UI_NONE:
		break;
	case UI_QUIT:
		s->quit = true;
		break;
	case UI_SUSPEND:
		suspend(s);
		break;
	case UI_REDRAW:
		s->all = true;
		break;
	default:
		s->act(s->ctx, r);
	}
}

void screen_keys(struct screen *s)
{
	uint32_t key;

	while (!s->quit && (key = term_key(s->term))) {
		struct ui_request r;

		if (key == UK_RESIZE)
			continue;
		r = ui_key(s->ui, key);
		act(s, &r);
	}
	if (term_gone(s->term))
		s->quit = true;
}

void screen_signals(struct screen *s)
{
	struct signalfd_siginfo si;

	while (read(s->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGWINCH:
			term_resized(s->term);
			break;
		case SIGTSTP:
			suspend(s);
			break;
		case SIGCONT:
			s->all = true;
			break;
		default:
			s->quit = true;
		}
	}
}

void screen_close_terminal(struct screen *s)
{
	term_close(s->term);
	s->term = NULL;
}

void screen_close(struct screen *s)
{
	screen_close_terminal(s);
	ui_free(s->ui);
	surface_free(s->surface);
	if (s->sigfd >= 0)
		close(s->sigfd);
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}
