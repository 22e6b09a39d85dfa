// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop replay: the same screens and formats over a recording as over the running host.
 *
 * The screen gets the intervals before the one that is shown as well, so that graphs and heat maps
 * have their past; going on in time hands it one more, any other jump begins anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "batch_out.h"
#include "clock.h"
#include "commands.h"
#include "options.h"
#include "screen.h"
#include "store.h"
#include "store_span.h"
#include "store_time.h"
#include "store_worst.h"
#include "text.h"

#define ERR_SIZE 400
/* Intervals before the one shown, for graphs: as wide as a screen is, and quickly read. */
#define PAST 60
#define PAST_LEAST 8
#define PAST_NS (100 * NS_PER_MS) /* … which may take about that long */
#define SPEED_MOST 256.0
#define TIMELINE_NS (5 * NS_PER_S) /* between two readings of the time line */

struct replay {
	const struct options *o;
	struct store *store;
	struct store_range range;
	int64_t from, to; /* --at */
	struct screen screen;
	struct store_at at; /* the interval that is shown */
	int timer; /* when to go on */
	bool playing;
	double speed;
	struct store_moment moment[UI_MOMENTS]; /* the time line */
	int moments;
	int64_t looked; /* when it was read */
	int worst; /* how many of the worst moments were gone to */
	uint64_t shown; /* intervals so far, for -n */
};

/* ---- finding the way ---- */

static int open_recording(struct replay *r, char *err)
{
	const char *path = r->o->nwords ? r->o->words[0] : STORE_DEFAULT;
	char safe[200];
	int rc;

	if (r->o->nwords > 1) {
		snprintf(err, ERR_SIZE, "'%s': one word too many: replay takes one recording",
			 text_escape(safe, sizeof(safe), r->o->words[1]) ? safe : "");
		return -EINVAL;
	}
	rc = store_open(path, &r->store, err, ERR_SIZE);
	if (rc)
		return rc;
	text_escape(safe, sizeof(safe), path);
	rc = store_range(r->store, &r->range);
	if (rc)
		snprintf(err, ERR_SIZE, "%s: %s", safe,
			 rc == -ENOENT ? "there is nothing in it yet" : store_strerror(rc));
	return rc;
}

static void range_text(const struct replay *r, char *buf, size_t size)
{
	char at[2][40] = {"", ""};
	const int64_t wall[2] = {r->range.first, r->range.last};

	for (int i = 0; i < 2; i++)
		store_time_text(at[i], sizeof(at[i]), wall[i]);
	snprintf(buf, size, "the recording holds %s to %s", at[0], at[1]);
}

static int check_range(const struct replay *r, char *err)
{
	char safe[80], holds[120];

	if (store_span_holds(r->store, &r->range, r->from,
			     store_time_asked_end(r->o->at, r->from, r->to)))
		return 0;
	text_escape(safe, sizeof(safe), r->o->at);
	range_text(r, holds, sizeof(holds));
	snprintf(err, ERR_SIZE, "--at '%s': %s", safe, holds);
	return -ERANGE;
}

static int choose_range(struct replay *r, char *err)
{
	char safe[80];

	r->from = INT64_MIN;
	r->to = INT64_MAX;
	if (!r->o->at)
		return 0;
	if (store_time_range(r->o->at, r->range.newest, &r->from, &r->to))
		return check_range(r, err);
	text_escape(safe, sizeof(safe), r->o->at);
	if (r->from > r->to) {
		snprintf(err, ERR_SIZE, "--at '%s': its end is before its beginning", safe);
		return -EINVAL;
	}
	snprintf(err, ERR_SIZE,
		 "--at '%s': not a time: give 03:12, 'yesterday 03:12', 2026-11-29T03:12, -2h, or "
		 "two of them as in 03:00-03:10",
		 safe);
	return -EINVAL;
}

static void cannot_be_read(int rc, char *err)
{
	snprintf(err, ERR_SIZE, "the recording cannot be read: %s", store_strerror(rc));
}

/*
 * Reads the interval that *at names, or the next one where that one cannot be read: merged into a
 * longer one meanwhile, or damaged. -ENOENT: there is none.
 */
static int read_from(struct replay *r, struct store_at *at, struct snapshot **out)
{
	int rc = store_read(r->store, at->id, out);

	while (rc == -ENOENT || rc == -EBADMSG) {
		rc = store_find(r->store, STORE_NEXT, at->id, at);
		if (rc)
			return rc;
		rc = store_read(r->store, at->id, out);
	}
	return rc;
}

/* The interval that the moment lies in, or that ends then; in a gap the one before it. */
static int find_at(struct replay *r, int64_t wall, struct store_at *at)
{
	int rc = store_find(r->store, STORE_FROM, wall, at);

	if (!rc && at->wall - at->dt <= wall)
		return 0;
	return store_find(r->store, STORE_AT, wall, at);
}

/* ---- batch ---- */

static bool has_vcpu_symbols(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nsymbols; i++)
		if (s->symbols[i].vcpu >= 0)
			return true;
	return false;
}

/* Is there something of this table, whichever VM's? Of those that are there only when asked for. */
static bool has_table(const struct batch_table *t, const struct snapshot *s)
{
	switch (t->first) {
	case TABLE_SLOW:
		return s->nslow;
	case TABLE_PMU:
		return s->npmcs;
	case TABLE_CODE:
		return s->ncode;
	case TABLE_WAITED:
		return s->nwaited;
	case TABLE_SYMBOL:
		return t->vcpu_rows ? has_vcpu_symbols(s) : s->nsymbols;
	default:
		return true;
	}
}

static void say_none(const struct replay *r, const struct batch_table *t)
{
	fprintf(stderr, "kvmtop: nothing of table %s was recorded%s\n", t->name,
		r->o->at ? " in that time" : "");
}

/*
 * The next interval of the range, without those that are damaged; one that was merged into a longer
 * one meanwhile is in that. 0, -ENOENT or another -errno with one line in err.
 */
static int read_next(struct replay *r, struct store_at *at, struct snapshot **out,
		     uint64_t *damaged, char *err)
{
	int rc;

	while (!(rc = store_next_within(r->store, at->id, r->from, r->to, at))) {
		rc = store_read(r->store, at->id, out);
		if (!rc)
			return 0;
		if (rc != -ENOENT && rc != -EBADMSG)
			break;
		*damaged += rc == -EBADMSG;
	}
	if (rc != -ENOENT)
		cannot_be_read(rc, err);
	return rc;
}

/* 0, or -EBADMSG where there was nothing else. */
static int say_damaged(uint64_t damaged, uint64_t shown, char *err)
{
	if (damaged && !shown) {
		cannot_be_read(-EBADMSG, err);
		return -EBADMSG;
	}
	if (damaged)
		fprintf(stderr, "kvmtop: %" PRIu64 " interval%s damaged and left out\n", damaged,
			damaged == 1 ? " is" : "s are");
	return 0;
}

static int write_all(struct replay *r, struct batch_out *out, char *err)
{
	const struct batch_table *table = out->job.query.table;
	struct pollfd stop = {.fd = out->sigfd, .events = POLLIN};
	bool some = out->job.whole;
	struct store_at at = {0};
	uint64_t n = 0, damaged = 0;
	struct snapshot *s;
	int rc = 0;

	for (; !rc; n++) {
		rc = read_next(r, &at, &s, &damaged, err);
		if (rc)
			break;
		some = some || has_table(table, s);
		rc = batch_out_write(out, s);
		snapshot_unref(s);
		if (!rc && poll(&stop, 1, 0) > 0)
			return 0;
	}
	if (rc != -ENOENT)
		return rc > 0 ? 0 : rc;
	if (!some && !damaged)
		say_none(r, table);
	return say_damaged(damaged, n, err);
}

static int replay_batch(struct replay *r, char *err)
{
	struct batch_out out = {.sigfd = -1};
	int rc = batch_out_open(&out, r->o, err, ERR_SIZE);

	if (!rc)
		rc = write_all(r, &out, err);
	batch_out_close(&out);
	return batch_out_status(&out, rc, err);
}

/* ---- screen ---- */

static void say(struct replay *r, enum role role, const char *text)
{
	ui_message(r->screen.ui, role, text);
}

/* Ends a play: nothing runs away while somebody looks. */
static void stop_playing(struct replay *r)
{
	const struct itimerspec never = {0};

	r->playing = false;
	timerfd_settime(r->timer, 0, &never, NULL);
	ui_playing(r->screen.ui, 0);
}

/* When the interval after this one has its turn: as far away as it was long. */
static void wait_for_next(struct replay *r, const struct store_at *next)
{
	int64_t ns = (int64_t)((double)next->dt / r->speed);
	struct itimerspec t;

	/* A pause of the recorder is not waited for; a screen cannot follow faster than this. */
	if (ns < 20 * NS_PER_MS)
		ns = 20 * NS_PER_MS;
	if (ns > 10 * NS_PER_S)
		ns = 10 * NS_PER_S;
	t = (struct itimerspec){.it_value = timespec_of(ns)};
	timerfd_settime(r->timer, 0, &t, NULL);
}

/* How many intervals before this one are wanted, so that a jump is quick on a large host too. */
static int past_of(int64_t took)
{
	int64_t n = PAST_NS / (took > 1 ? took : 1);

	return n < PAST_LEAST ? PAST_LEAST : n > PAST ? PAST : (int)n;
}

/* The past of graphs first, then the interval itself. */
static int show_at(struct replay *r, const struct store_at *at)
{
	struct store_at past = *at, before;
	int64_t start = clock_mono_ns();
	struct snapshot *s, *shown = NULL;
	int rc = store_read(r->store, at->id, &shown), n = past_of(clock_mono_ns() - start);

	if (rc)
		return rc;
	for (int i = 0; i < n && !store_find(r->store, STORE_BEFORE, past.id, &before); i++) {
		/* Another run of the recorder numbers its VMs anew. */
		if (before.session != at->session)
			break;
		past = before;
	}
	ui_forget(r->screen.ui);
	/* What is damaged, or merged meanwhile, is missing in the past only. */
	while (past.id < at->id) {
		if (!store_read(r->store, past.id, &s)) {
			ui_snapshot(r->screen.ui, s);
			snapshot_unref(s);
		}
		if (store_find(r->store, STORE_NEXT, past.id, &past))
			break;
	}
	ui_snapshot(r->screen.ui, shown);
	snapshot_unref(shown);
	r->at = *at;
	return 0;
}

/* The same, or the next that can be read in this direction. */
static void jump(struct replay *r, enum store_seek way, struct store_at at)
{
	int rc = show_at(r, &at);

	while ((rc == -EBADMSG || rc == -ENOENT) && !store_find(r->store, way, at.id, &at))
		rc = show_at(r, &at);
	if (rc)
		say(r, ROLE_WARN, rc == -EBADMSG ? "damaged there" : store_strerror(rc));
}

/* To the next interval, with what is on screen as its past. */
static void go_on(struct replay *r)
{
	struct store_at next;
	struct snapshot *s;
	int rc = store_find(r->store, STORE_NEXT, r->at.id, &next);

	if (!rc && next.session != r->at.session) {
		rc = show_at(r, &next);
	} else if (!rc) {
		rc = read_from(r, &next, &s);
		if (!rc) {
			r->at = next;
			ui_snapshot(r->screen.ui, s);
			snapshot_unref(s);
		}
	}
	if (rc == -ENOENT)
		say(r, ROLE_NOTICE, "the end of the recording");
	else if (rc)
		say(r, ROLE_WARN, store_strerror(rc));
	if (rc)
		stop_playing(r);
	else
		r->shown++;
}

static void go_back(struct replay *r)
{
	struct store_at before;

	if (store_find(r->store, STORE_BEFORE, r->at.id, &before))
		say(r, ROLE_NOTICE, "the beginning of the recording");
	else
		jump(r, STORE_BEFORE, before);
}

static void go_to(struct replay *r, int64_t wall)
{
	struct store_at at;

	if (find_at(r, wall, &at))
		return;
	if (at.id == r->at.id)
		say(r, ROLE_NOTICE, "nothing else was recorded there");
	else
		jump(r, STORE_BEFORE, at);
}

static void go_to_typed(struct replay *r, const char *text)
{
	char holds[120];
	int64_t wall;

	/* What was recorded since the start is there too. */
	store_range(r->store, &r->range);
	range_text(r, holds, sizeof(holds));
	if (!store_time_parse(text, r->range.newest, &wall))
		say(r, ROLE_WARN,
		    "a time: 03:12, yesterday 03:12, 2026-11-29T03:12, or -2h from the end");
	else if (!store_span_holds(r->store, &r->range, wall,
				   store_time_asked_end(text, wall, INT64_MAX)))
		say(r, ROLE_WARN, holds);
	else
		go_to(r, wall + 1); /* what begins then, not what ends */
}

static void play(struct replay *r, double speed)
{
	struct store_at next;

	r->speed = speed < 0.25 ? 0.25 : speed > SPEED_MOST ? SPEED_MOST : speed;
	if (!r->playing)
		return;
	if (store_find(r->store, STORE_NEXT, r->at.id, &next)) {
		say(r, ROLE_NOTICE, "the end of the recording");
		stop_playing(r);
		return;
	}
	ui_playing(r->screen.ui, r->speed);
	wait_for_next(r, &next);
}

static void change_speed(struct replay *r, double factor)
{
	char text[64];

	play(r, r->speed * factor);
	snprintf(text, sizeof(text), "speed %gx", r->speed);
	say(r, ROLE_NOTICE, text);
}

/* ---- the time line ---- */

/* Another recorder may write meanwhile: read anew, but not at every step. */
static void read_timeline(struct replay *r)
{
	struct ui_moment shown[UI_MOMENTS];
	double worth[UI_MOMENTS];
	int64_t now = clock_mono_ns();

	if (r->looked && now - r->looked < TIMELINE_NS)
		return;
	r->looked = now;
	if (store_range(r->store, &r->range))
		return;
	r->moments = store_moments(r->store, &r->range, r->moment, UI_MOMENTS);
	store_worth(r->moment, r->moments, worth);
	for (int i = 0; i < r->moments; i++)
		shown[i] = (struct ui_moment){r->moment[i].wall, r->moment[i].dt,
					      r->moment[i].steal_max, worth[i]};
	if (r->moments > 0)
		ui_timeline(r->screen.ui, shown, (size_t)r->moments, r->range.first, r->range.last);
}

static void say_worst(const struct replay *r, const struct store_moment *m, char *text, size_t size)
{
	const char *which = r->worst ? "the next worst moment" : "the worst moment";

	if (m->steal_max >= STEAL_NOTICE)
		snprintf(text, size, "%s: a vCPU waited for %.0f%% of the interval", which,
			 m->steal_max);
	else
		snprintf(text, size, "%s: %u finding%s, and no vCPU waited for long", which,
			 m->findings, m->findings == 1 ? "" : "s");
}

static void go_to_worst(struct replay *r)
{
	const struct store_moment *m = store_worst(r->moment, r->moments, r->worst);
	struct store_at at;
	char text[80];

	if (!m && !r->worst) {
		say(r, ROLE_NOTICE,
		    "no vCPU waited for 5% of any interval, and nothing else was remarkable");
		return;
	}
	if (!m) {
		r->worst = 0;
		m = store_worst(r->moment, r->moments, 0);
	}
	/* By its time: it may have become part of a longer one meanwhile. */
	if (!m || store_find(r->store, STORE_FROM, m->wall, &at))
		return;
	say_worst(r, m, text, sizeof(text));
	r->worst++;
	if (at.id != r->at.id)
		jump(r, STORE_NEXT, at);
	say(r, ROLE_NOTICE, text);
}

static void act(void *ctx, const struct ui_request *q)
{
	struct replay *r = ctx;

	switch (q->kind) {
	case UI_STEP:
		stop_playing(r);
		if (q->by > 0)
			go_on(r);
		else
			go_back(r);
		break;
	case UI_MINUTE:
		stop_playing(r);
		go_to(r, r->at.wall + q->by * 60 * NS_PER_S);
		break;
	case UI_GO_TO:
		stop_playing(r);
		go_to_typed(r, q->text);
		break;
	case UI_WORST:
		stop_playing(r);
		go_to_worst(r);
		break;
	case UI_SPEED:
		change_speed(r, q->by > 0 ? 2 : 0.5);
		break;
	case UI_PLAY:
		if (r->playing) {
			stop_playing(r);
			break;
		}
		r->playing = true;
		play(r, r->speed);
		break;
	default:
		break;
	}
}

static void take_timer(struct replay *r)
{
	uint64_t n;

	if (read(r->timer, &n, sizeof(n)) < 0 || !r->playing)
		return;
	go_on(r);
	if (r->playing)
		play(r, r->speed);
}

static void loop(struct replay *r)
{
	struct screen *s = &r->screen;
	struct pollfd fds[] = {
		{.fd = term_fd(s->term), .events = POLLIN},
		{.fd = s->sigfd, .events = POLLIN},
		{.fd = r->timer, .events = POLLIN},
	};

	read_timeline(r);
	screen_draw(s);
	while (!s->quit) {
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			screen_signals(s);
		if (fds[2].revents)
			take_timer(r);
		if (fds[0].revents)
			screen_keys(s);
		if (s->quit)
			return;
		read_timeline(r);
		screen_draw(s);
		if (r->o->iterations && r->shown >= r->o->iterations)
			return;
	}
}

/* Without --at the end is shown: what happened last. */
static int show_first(struct replay *r, char *err)
{
	struct store_at at;
	int rc = r->o->at ? find_at(r, r->from + 1, &at) : store_find(r->store, STORE_LAST, 0, &at);

	if (!rc)
		rc = show_at(r, &at);
	/* Another that can be read is better than none. */
	while (rc == -EBADMSG && !store_find(r->store, STORE_BEFORE, at.id, &at))
		rc = show_at(r, &at);
	if (rc)
		cannot_be_read(rc, err);
	return rc;
}

static int replay_screen(struct replay *r, char *err)
{
	struct ui_config cfg = {.replay = true};
	int rc;

	pthread_sigmask(SIG_BLOCK, NULL, &r->screen.before);
	if (!screen_possible())
		return -ENOTTY;
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	rc = r->timer < 0 ? -errno : screen_open_signals(&r->screen, err, ERR_SIZE);
	if (!rc)
		rc = screen_open(&r->screen, &cfg, err, ERR_SIZE);
	if (!rc)
		rc = show_first(r, err);
	if (!rc)
		loop(r);
	screen_close(&r->screen);
	if (r->timer >= 0)
		close(r->timer);
	return rc;
}

int cmd_replay(const struct options *o)
{
	struct replay r = {.o = o,
			   .timer = -1,
			   .speed = 1,
			   .screen = {.o = o, .sigfd = -1, .act = act, .ctx = &r}};
	char err[ERR_SIZE] = "";
	int rc = open_recording(&r, err), status;

	if (!rc)
		rc = choose_range(&r, err);
	if (!rc && o->batch) {
		status = replay_batch(&r, err);
		store_close(r.store);
		return status;
	}
	if (!rc)
		rc = replay_screen(&r, err);
	store_close(r.store);
	if (!rc)
		return STATUS_OK;
	if (rc != -ENOTTY)
		fprintf(stderr, "kvmtop: %s\n", err[0] ? err : strerror(-rc));
	return rc == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
