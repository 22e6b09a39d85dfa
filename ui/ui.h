// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole screen without a terminal: snapshots and keys go in, a surface comes out.
 *
 * What a key asks for that is beyond the view (quit, another interval …) is handed to the
 * caller as a request. Used by one thread.
 */
#ifndef KVMTOP_UI_H
#define KVMTOP_UI_H

#include <stdbool.h>
#include <stdint.h>

#include "demand.h"
#include "snapshot.h"
#include "surface.h"

struct ui;

struct ui_config {
	double delay_s;
	const char *theme_word; /* written to the settings: "dark", "light"; NULL: none */
	const char *self; /* how the program is called, own_path.h; NULL: kvmtop; not copied */
	const char *settings; /* path of the settings file, NULL: none; copied */
	bool can_demo; /* this host could start the demo's guests */
	/* -p, -M, --vcpu: which rows are wanted at all; NULL: every one. */
	bool (*want_vm)(const void *ctx, const struct snap_vm *vm);
	bool (*want_vcpu)(const void *ctx, const struct snap_vcpu *v);
	const void *want_ctx;
	uint64_t slow_ns; /* --slow, 0 none */
	bool replay; /* snapshots come out of a recording: keys and head are a replay's */
	bool utc; /* the head's clock: tests must not depend on the time zone */
};

enum ui_request_kind {
	UI_NONE,
	UI_QUIT,
	UI_DELAY, /* .delay_s */
	UI_RESET,
	UI_SUSPEND,
	UI_REDRAW, /* clear the terminal and draw all of it */
	UI_DEMO,
	/* In replay: */
	UI_STEP, /* .by intervals */
	UI_MINUTE, /* .by minutes */
	UI_GO_TO, /* .text: a time as it was typed, valid until the next key */
	UI_SPEED, /* .by > 0: faster */
	UI_PLAY, /* or stop */
	UI_WORST, /* the worst moment, or the next after it */
};

struct ui_request {
	enum ui_request_kind kind;
	double delay_s;
	int by;
	const char *text;
};

/* Reads the settings where there are any; a broken line of them is skipped. NULL: no memory. */
struct ui *ui_new(const struct ui_config *c);
void ui_free(struct ui *ui);
/* A new interval; takes a reference of its own. While paused it goes to the history only. */
void ui_snapshot(struct ui *ui, struct snapshot *s);
struct ui_request ui_key(struct ui *ui, uint32_t key);
/* Replay: what was shown is no past of what comes next. */
void ui_forget(struct ui *ui);
/* Replay: the time line, in parts that need not be equal; copied, UI_MOMENTS at most. */
#define UI_MOMENTS 512
struct ui_moment {
	int64_t wall; /* its end, ns since 1970; 0: nothing was recorded there */
	int64_t dt; /* how long it is, ns */
	double steal; /* percent, of the vCPU that waited most */
	double worth; /* how bad it is among others; 0: not to be marked */
};
void ui_timeline(struct ui *ui, const struct ui_moment *m, size_t n, int64_t first, int64_t last);
/* Replay: it goes on by itself at this speed; 0: it does not. */
void ui_playing(struct ui *ui, double speed);
/* Draws everything. Never reads a clock: the same input makes the same screen. */
void ui_draw(struct ui *ui, struct surface *s);
/* What the visible columns and panes need now. */
void ui_demand(const struct ui *ui, struct demand *out);
/* One line for the user, until the next key: the answer to a request. */
void ui_message(struct ui *ui, enum role role, const char *text);
/* --sort, --reverse as the command line has them. False: no such column. */
bool ui_sort(struct ui *ui, const char *column, bool reverse);
void ui_totals(struct ui *ui, bool on);

#endif
