// SPDX-License-Identifier: GPL-2.0-only
/* The head's lines (who, host figures, what is missing or found) and the bottom bar. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "text.h"
#include "ui_priv.h"

#define HEAD_TEXT 512
#define MAX_FINDINGS 6 /* the fourth may be the cause of the first three */
#define ROTATE_NS (4 * NS_PER_S)

static const char *pct(struct value v, char *buf, size_t size)
{
	fmt_pct(buf, size, v, 6);
	return buf;
}

/* Of a recording the day too: it may be any. */
static void replay_text(const struct ui *ui, const struct tm *tm, char *out, size_t size)
{
	char at[32], speed[24] = "";

	strftime(at, sizeof(at), "%Y-%m-%d %H:%M:%S", tm);
	if (ui->speed > 0)
		snprintf(speed, sizeof(speed), " %gx", ui->speed);
	snprintf(out, size, " REPLAY %s%s ", at, speed);
}

static void clock_text(const struct ui *ui, char *out, size_t size)
{
	const struct snapshot *s = ui->shown;
	struct tm tm;
	char at[16];
	long behind;

	if (ui->cfg.utc)
		gmtime_r(&s->wall.tv_sec, &tm);
	else
		localtime_r(&s->wall.tv_sec, &tm);
	if (ui->cfg.replay) {
		replay_text(ui, &tm, out, size);
		return;
	}
	strftime(at, sizeof(at), "%H:%M:%S", &tm);
	if (!ui->view.paused) {
		snprintf(out, size, "%s", at);
		return;
	}
	behind = (long)((ui->newest->time - s->time + NS_PER_S / 2) / NS_PER_S);
	snprintf(out, size, " PAUSED %s (-%ld s) ", at, behind);
}

/* The time on screen is not the present one: that must be seen. */
static bool is_past(const struct ui *ui)
{
	return ui->view.paused || ui->cfg.replay;
}

/* The interval that was measured; the first, short ones carry a mark. */
static void interval_text(const struct ui *ui, char *out, size_t size)
{
	const struct snapshot *s = ui->shown;
	double delay = s->delay_s > 0 ? s->delay_s : ui->cfg.delay_s;

	if (s->first_rates && s->dt > 0)
		snprintf(out, size, "%.2fs~", (double)s->dt / 1e9);
	else
		snprintf(out, size, delay < 10 ? "%.1fs" : "%.0fs", delay);
}

static void draw_right(struct ui *ui, const struct area *a, int left)
{
	const struct snap_host *h = &ui->shown->host;
	static const char *const by[] = {
		[EVENTS_BY_NONE] = "", [EVENTS_BY_PERF] = " perf", [EVENTS_BY_BPF] = " bpf"};
	char when[72], dt[16], own[48] = "", own_cpu[16], own_guest[16], all[96];
	int x = a->w - 1;

	clock_text(ui, when, sizeof(when));
	interval_text(ui, dt, sizeof(dt));
	if (value_has(h->self_cpu))
		snprintf(own, sizeof(own), " self %s+%s%%",
			 pct(h->self_cpu, own_cpu, sizeof(own_cpu)),
			 pct(h->self_guest, own_guest, sizeof(own_guest)));
	snprintf(all, sizeof(all), " %s%s%s%s", dt, by[h->events_by],
		 !ui->shown->stream.vcpu ? ""
		 : h->events_by		 ? "+vCPU"
					 : " vCPU",
		 own);
	/* What must give way goes in this order: own cost, interval, clock. */
	if (x - (int)(strlen(all) + strlen(when)) < left + 1)
		snprintf(all, sizeof(all), " %s", dt);
	if (x - (int)(strlen(all) + strlen(when)) < left + 1)
		all[0] = '\0';
	if (x - (int)strlen(when) < left + 1 && !is_past(ui))
		return;
	x = area_right(a, 0, x, ROLE_DIM, all);
	area_right(a, 0, x, is_past(ui) ? ROLE_PAUSED : ROLE_TEXT, when);
}

static int draw_host_name(const struct ui *ui, const struct area *a, int x)
{
	const struct snap_host *h = &ui->shown->host;
	char name[256], cut[64];

	text_escape(name, sizeof(name), h->node ? h->node : "");
	text_cut_middle(cut, sizeof(cut), name, a->w < 70 ? 10 : 20);
	x = area_text(a, 0, x, ROLE_STRONG, cut);
	if (h->discovered < h->discovering)
		return area_textf(a, 0, x, ROLE_NOTICE, "  discovering %u/%u", h->discovered,
				  h->discovering);
	if (a->w >= 60 && h->ncpu)
		x = area_textf(a, 0, x, ROLE_TEXT, "  %u CPU", h->ncpu);
	else if (a->w >= 60)
		x = area_text(a, 0, x, ROLE_TEXT, "  - CPU");
	if (snapshot_vms_unknown(ui->shown))
		return area_text(a, 0, x, ROLE_TEXT, "  - VM  - vCPU");
	x = area_textf(a, 0, x, ROLE_TEXT, "  %s%u VM  %u vCPU",
		       snapshot_any_guessed(ui->shown) ? "~" : "", h->nvm, h->nvcpu);
	if (value_has(h->overcommit) && a->w >= 66)
		x = area_textf(a, 0, x, ROLE_DIM, " %.1f:1", h->overcommit.v);
	return x;
}

static int draw_vm_name(struct ui *ui, const struct area *a, int x)
{
	const struct snap_vm *vm = snap_vm_by_id(ui->shown, ui->view.vm);
	const struct snap_vcpu *c = snap_vcpu_by_id(ui->shown, ui->view.vcpu);
	char name[512], cut[128];

	if (!vm)
		return area_text(a, 0, x, ROLE_WARN, "(ended)");
	text_escape(name, sizeof(name), vm->name);
	text_cut_middle(cut, sizeof(cut), name, a->w < 70 ? 14 : 28);
	x = area_textf(a, 0, x, ROLE_STRONG, "%s%s", vm->quality & SNAP_QUALITY_GUESSED ? "~" : "",
		       cut);
	if (ui->view.level == LEVEL_VCPU) {
		if (!c)
			return area_text(a, 0, x, ROLE_WARN, "  vCPU (ended)");
		x = area_textf(a, 0, x, ROLE_STRONG, "  vCPU %d", c->index);
		return a->w < 70 ? x : area_textf(a, 0, x, ROLE_TEXT, "  tid %d", c->tid);
	}
	if (a->w < 70)
		return area_textf(a, 0, x, ROLE_TEXT, "  %u vCPU", vm->nvcpu);
	text_escape(name, sizeof(name), vm->vmm);
	return area_textf(a, 0, x, ROLE_TEXT, "  %u vCPU  %.16s pid %d", vm->nvcpu, name, vm->pid);
}

static void draw_first(struct ui *ui, const struct area *a)
{
	int x = area_text(a, 0, 1, ROLE_BRAND, "kvmtop");

	if (!ui->shown) {
		area_text(a, 0, x + 1, ROLE_NOTICE, "starting");
		return;
	}
	if (ui->view.level == LEVEL_HOST)
		x = draw_host_name(ui, a, x + 1);
	else
		x = draw_vm_name(ui, a, x + 1);
	draw_right(ui, a, x);
}

struct share {
	const char *label;
	struct value v;
	double warn, alarm;
	bool count; /* a count, not a percentage */
	char text[16];
};

static void format_share(struct share *s)
{
	if (s->count)
		fmt_count(s->text, sizeof(s->text), s->v, 6);
	else
		fmt_pct(s->text, sizeof(s->text), s->v, 6);
}

/* Draws one figure of the host line where it fits whole; returns the column after it. */
static int draw_share(const struct area *a, int x, const struct share *s)
{
	int end = x + (int)(strlen(s->text) + strlen(s->label)) + 2;

	if (end > a->w)
		return x;
	if (!a->h) /* tried only */
		return end;
	x = area_text(a, 1, x, ROLE_DIM, " ");
	x = area_text(a, 1, x, ROLE_DIM, s->label);
	x = area_text(a, 1, x, ROLE_DIM, " ");
	return area_text(a, 1, x,
			 value_has(s->v) ? theme_level(s->v.v, s->warn, s->alarm) : ROLE_DIM,
			 s->text);
}

#define PARTS 7
#define AFTER 5

/* True where the first two of `after`, steal and lost, found room. */
static bool host_line(const struct area *a, const struct share *part, const struct share *after,
		      bool bar)
{
	int x = 0, placed = 0;

	/* Below 80 columns the shares that are seldom more than nothing give way. */
	for (size_t i = 0; i < PARTS; i++)
		if (a->w >= 72 || i == 1 || i == 5 || (i == 6 && a->w >= 50))
			x = draw_share(a, x, &part[i]);
	if (bar)
		x = area_text(a, 1, x, ROLE_FRAME, " |");
	for (size_t i = 0; i < AFTER; i++) {
		int to = draw_share(a, x, &after[i]);

		placed += to > x;
		x = to;
	}
	return placed >= 2;
}

/* Sums to 100: usr without guest time; then the figures that overlap it. */
static void draw_host_line(struct ui *ui, const struct area *a)
{
	const struct snap_host *h = &ui->shown->host;
	struct area nothing = *a;
	struct share part[PARTS] = {
		{.label = "usr", .v = h->usr},
		{.label = "sys", .v = h->sys},
		{.label = "irq", .v = h->irq},
		{.label = "wa", .v = h->wa},
		{.label = "st", .v = h->st, .warn = 5, .alarm = 10},
		{.label = "guest", .v = h->guest},
		{.label = "idle", .v = h->idle},
	};
	struct share after[AFTER] = {
		{.label = "steal", .v = h->steal, .warn = 5, .alarm = 10},
		{.label = " lost",
		 .v = value_known((double)h->lost),
		 .warn = 1,
		 .alarm = 1,
		 .count = true},
		{.label = " exits/s", .v = h->exits_rate, .count = true},
		{.label = " exit", .v = h->exit_pct, .warn = 20, .alarm = 50},
		{.label = " load", .v = h->load1},
	};

	for (size_t i = 0; i < PARTS; i++)
		format_share(&part[i]);
	for (size_t i = 0; i < AFTER; i++)
		format_share(&after[i]);
	/* Tried without drawing: where steal and lost find no room the bar goes. */
	nothing.h = 0;
	host_line(a, part, after, host_line(&nothing, part, after, true));
}

static bool any_source_off(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nsources; i++)
		if (s->sources[i].state == SOURCE_OFF)
			return true;
	return false;
}

/* What is missing and what mends it: without the source's name where it fits only so. */
static void source_text(const struct ui *ui, const struct snap_source *src, int width, char *out,
			size_t size)
{
	const char *self = ui->cfg.self ? ui->cfg.self : "kvmtop";
	bool mend = src->mend && *src->mend;
	size_t named = strlen(src->name) + 2;

	snprintf(out, size, "%s: %s%s%s%s", src->name, src->why, mend ? ": " : ", see ",
		 mend ? src->mend : self, mend ? "" : " doctor");
	if ((int)utf8_width(out) > width && (int)utf8_width(out + named) <= width)
		memmove(out, out + named, strlen(out + named) + 1);
}

static bool missing_text(const struct ui *ui, int width, char *out, size_t size)
{
	const struct snapshot *s = ui->shown;
	const char *self = ui->cfg.self ? ui->cfg.self : "kvmtop";

	/* With the right capabilities nothing is missing without root either. */
	if (!s->host.root && any_source_off(s)) {
		snprintf(out, size, "not root: no exits, no symbols: sudo %s, or %s doctor", self,
			 self);
		return true;
	}
	for (size_t i = 0; i < s->nsources; i++) {
		const struct snap_source *src = &s->sources[i];

		/* Given up for their cost: figures that were there a moment ago are n/a now. */
		if (src->state != SOURCE_OFF &&
		    (src->state != SOURCE_PARTIAL || strcmp(src->name, "overhead") != 0))
			continue;
		source_text(ui, src, width, out, size);
		return true;
	}
	return false;
}

/* A finding is shown where it is about what is on screen. */
static bool finding_fits(const struct ui *ui, const struct snap_finding *f)
{
	const struct snapshot *s = ui->shown;

	if (f->vm < 0)
		return true;
	if ((size_t)f->vm >= s->nvms)
		return false;
	if (ui->view.level == LEVEL_HOST) /* -p and -M: of VMs that are not in the list, nothing */
		return !ui->cfg.want_vm || ui->cfg.want_vm(ui->cfg.want_ctx, &s->vms[f->vm]);
	return s->vms[f->vm].id == ui->view.vm;
}

static enum role finding_role(uint8_t level)
{
	return level >= 3 ? ROLE_ALARM : level == 2 ? ROLE_WARN : ROLE_NOTICE;
}

/* Nothing to find fault with: where the time goes. */
static void draw_domains(const struct snapshot *s, const struct area *a, int y)
{
	static const char *const label[DOMAIN_NR] = {"host kernel", "host user", "guest kernel",
						     "guest user"};
	char buf[16];
	int x;

	if (!value_has(s->host.sym.domain[0])) {
		area_text(a, y, 1, ROLE_DIM, s->dt ? "nothing is over its threshold" : "");
		return;
	}
	x = area_text(a, y, 1, ROLE_DIM, "samples:");
	for (int d = 0; d < DOMAIN_NR; d++) {
		fmt_pct(buf, sizeof(buf), s->host.sym.domain[d], 6);
		x = area_textf(a, y, x + 1, ROLE_DIM, "%s", label[d]);
		x = area_textf(a, y, x + 1, ROLE_TEXT, "%s%%", buf) + 1;
	}
}

static void draw_third(struct ui *ui, const struct area *a, int y)
{
	const struct snapshot *s = ui->shown;
	char text[MAX_FINDINGS + 1][HEAD_TEXT], safe[HEAD_TEXT];
	enum role role[MAX_FINDINGS + 1];
	struct area line;
	size_t n = 0, at;

	if (missing_text(ui, a->w - 9, text[0], sizeof(text[0]))) /* beside "- " and " 1/4" */
		role[n++] = ROLE_MISSING;
	for (size_t i = 0, found = 0; i < s->nfindings && found < MAX_FINDINGS; i++) {
		if (!finding_fits(ui, &s->findings[i]))
			continue;
		snprintf(text[n], sizeof(text[n]), "%s", s->findings[i].text);
		role[n++] = finding_role(s->findings[i].level);
		found++;
	}
	if (!n) {
		draw_domains(s, a, y);
		return;
	}
	at = (size_t)(s->time / ROTATE_NS) % n;
	text_escape(safe, sizeof(safe), text[at]);
	line = area_sub(a, y, 0, 1, n > 1 ? a->w - 5 : a->w);
	area_text(&line, 0, 1, role[at], role[at] == ROLE_MISSING ? "-" : "!");
	area_text_cut(&line, 0, 3, role[at], safe);
	if (n > 1)
		area_textf(a, y, a->w - 4, ROLE_DIM, "%zu/%zu", at + 1, n);
}

void ui_draw_head(struct ui *ui, const struct area *a)
{
	draw_first(ui, a);
	if (!ui->shown)
		return;
	if (a->h >= 2)
		draw_host_line(ui, a);
	if (a->h >= 3)
		draw_third(ui, a, 2);
}

static bool pane_on_screen(const struct ui *ui)
{
	struct layout l;

	ui_layout(ui, &l);
	return l.pane.h > 0;
}

static bool bar_has(const struct ui *ui, const struct key_row *r)
{
	unsigned ctx = CTX_MAIN;

	if (ui->mode == MODE_HELP || ui->mode == MODE_INFO || ui->mode == MODE_TASKS)
		ctx = CTX_HELP;
	else if (ui->mode != MODE_MAIN)
		ctx = CTX_MENU;
	if (r->action == ACT_DOMAIN)
		return ctx == CTX_MAIN && ui_symbols_have_focus(ui);
	if (!r->bar || !(r->contexts & ctx))
		return false;
	if (ctx == CTX_HELP)
		return r->action == ACT_BACK || r->action == ACT_QUIT;
	if (ctx == CTX_MENU)
		return r->action != ACT_HELP;
	if (r->action == ACT_BACK)
		return ui->view.level != LEVEL_HOST || ui->view.pane_shown || ui->view.filter[0] ||
		       ui->view.pane_filter[0];
	if (r->action == ACT_VCPUS)
		return ui->view.level == LEVEL_HOST && !is_past(ui);
	/* A pane's title line shows the digits: without one they are to be known from here. */
	if (r->action == ACT_FOCUS)
		return pane_on_screen(ui);
	if (r->action == ACT_PANE)
		return !pane_on_screen(ui) && !is_past(ui);
	if (r->action == ACT_STEP_BACK || r->action == ACT_STEP_ON)
		return is_past(ui);
	if (r->action == ACT_GO_TO || r->action == ACT_WORST)
		return ui->cfg.replay;
	if (r->action == ACT_KIND)
		return ui_pane_has_focus(ui) && (ui->view.pane == '2' || ui->view.pane == '3');
	return true;
}

static const char *bar_key(const struct key_row *r, char *buf, size_t size)
{
	if (r->action == ACT_DOMAIN)
		return "HGKU";
	return r->action == ACT_PANE ? panes_keys(buf, size) : keymap_name(r->keys[0], buf, size);
}

/* What the key does where the screen is now; the table has the words for the usual case. */
static const char *bar_word(const struct ui *ui, const struct key_row *r)
{
	bool menu = ui->mode == MODE_SORT || ui->mode == MODE_COLUMNS;

	if (r->action == ACT_PAUSE && ui->cfg.replay)
		return ui->speed > 0 ? "stop" : "play";
	if (r->action == ACT_PAUSE && ui->view.paused)
		return "go on";
	if (r->action == ACT_OPEN && menu)
		return ui->mode == MODE_SORT ? "choose" : "done";
	if (r->action == ACT_QUIT && ui->mode != MODE_MAIN)
		return "close";
	return r->bar;
}

static int bar_width(const struct ui *ui, const struct key_row *r)
{
	char key[16];

	return (int)(strlen(bar_key(r, key, sizeof(key))) + strlen(bar_word(ui, r))) + 1;
}

/*
 * Where there is no room for all, the gaps become narrow; then those before the last two (help,
 * quit) go.
 */
static size_t bar_fit(const struct ui *ui, const struct key_row **row, size_t n, int width,
		      int *gap)
{
	int sum = 1;

	for (size_t i = 0; i < n; i++)
		sum += bar_width(ui, row[i]);
	while (sum + (int)n - 1 > width && n > 2) {
		sum -= bar_width(ui, row[n - 3]);
		memmove(row + n - 3, row + n - 2, 2 * sizeof(*row));
		n--;
	}
	*gap = sum + 2 * ((int)n - 1) > width ? 1 : 2;
	return n;
}

/* The column that the table in focus is sorted by, where it is not on screen; else NULL. */
static const struct field *hidden_sort(struct ui *ui)
{
	const struct pane *p = pane_by_key(ui->view.pane);
	int i = pane_index(ui->view.pane);
	struct table_ctx c;

	if (ui->mode != MODE_MAIN || !ui->shown)
		return NULL;
	ui_list_ctx(ui, &c);
	if (ui_pane_has_focus(ui)) {
		if (!p || !p->table || i < 0)
			return NULL;
		c.def = p->table;
		c.choice = &ui->view.pane_columns[i];
		c.state = &ui->view.pane_state[i];
	}
	return table_hidden_sort(&c, ui->cols);
}

/* What changes the figures or rows without being seen in them: order, filter, totals. */
static void state_text(struct ui *ui, char *out, size_t size)
{
	const struct field *sort = hidden_sort(ui);
	const struct view *v = &ui->view;
	const char *filter = v->pane_filter[0] ? v->pane_filter : v->filter;
	char safe[VIEW_TEXT * 4] = "", cut[64] = "";

	text_escape(safe, sizeof(safe), ui->mode == MODE_MAIN ? filter : "");
	text_cut_middle(cut, sizeof(cut), safe, 14);
	snprintf(out, size, "%s%s%s%s%s", sort ? " by " : "", sort ? sort->title : "",
		 v->totals ? " totals " : "", cut[0] ? " filter " : "", cut);
}

static void draw_bar(struct ui *ui, const struct area *a)
{
	char state[96];
	int room;
	const struct key_row *rows, *show[ACT_NR];
	size_t n, shown = 0;
	char key[16];
	int x = 1, gap;

	rows = keymap_rows(&n);
	for (size_t i = 0; i < n && shown < ACT_NR; i++)
		if (bar_has(ui, &rows[i]))
			show[shown++] = &rows[i];
	state_text(ui, state, sizeof(state));
	room = a->w - (int)utf8_width(state) - (state[0] ? 2 : 0);
	shown = bar_fit(ui, show, shown, room, &gap);
	for (size_t i = 0; i < shown; i++) {
		x = area_text(a, 0, x, ROLE_KEY, bar_key(show[i], key, sizeof(key)));
		x = area_text(a, 0, x, ROLE_BAR, " ");
		x = area_text(a, 0, x, ROLE_BAR, bar_word(ui, show[i]));
		x = area_text(a, 0, x, ROLE_BAR, gap == 2 ? "  " : " ");
	}
	if (state[0] && x <= room + gap)
		area_right(a, 0, a->w - 1, ROLE_PAUSED, state);
}

void ui_draw_keys(struct ui *ui, const struct area *a)
{
	area_fill(a, 0, 0, a->w, ROLE_BAR, ' ');
	if (ui->ask != ASK_NOTHING) {
		prompt_draw(&ui->prompt, a);
		return;
	}
	if (ui->message[0]) {
		area_text_cut(a, 0, 1, ui->message_role, ui->message);
		return;
	}
	draw_bar(ui, a);
}
