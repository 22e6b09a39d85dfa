// SPDX-License-Identifier: GPL-2.0-only
/* What keys do: action → view state, or a request to the caller. */
#include <stdio.h>
#include <string.h>

#include "ui_priv.h"

static const struct ui_request nothing = {.kind = UI_NONE};

static int page_size(const struct ui *ui)
{
	struct layout l;
	int h;

	ui_layout(ui, &l);
	h = l.list.h + l.pane.h;
	if (ui->mode == MODE_MAIN)
		h = ui_pane_has_focus(ui) ? l.pane.h - 1 : l.list.h;
	return h > 2 ? h - 2 : 1;
}

/* By how many rows an action moves; 0: it does not. */
static long step_of(const struct ui *ui, enum action a)
{
	switch (a) {
	case ACT_UP:
		return -1;
	case ACT_DOWN:
		return 1;
	case ACT_PGUP:
		return -page_size(ui);
	case ACT_PGDN:
		return page_size(ui);
	case ACT_FIRST:
		return -(1L << 24);
	case ACT_LAST:
		return 1L << 24;
	default:
		return 0;
	}
}

static void close_mode(struct ui *ui)
{
	ui->mode = MODE_MAIN;
	ui->page_top = 0;
}

static void open_page(struct ui *ui, enum ui_mode mode)
{
	ui->mode = mode;
	ui->page_top = 0;
}

static void go_up(struct ui *ui)
{
	struct view *v = &ui->view;

	if (v->detail) {
		v->detail = 0;
	} else if (ui_focus_filter(ui)[0]) {
		ui_focus_filter(ui)[0] = '\0';
	} else if (v->level == LEVEL_VCPU) {
		/* From "all vCPUs" the way back leads there. */
		view_set_level(v, v->all_vcpus ? LEVEL_HOST : LEVEL_VM);
		v->vcpu = 0;
		if (v->level == LEVEL_HOST)
			v->vm = 0;
		v->pane_shown = v->pane_focus = false;
	} else if (v->pane_shown || v->pane_focus) {
		v->pane_shown = v->pane_focus = false;
	} else if (v->level == LEVEL_VM) {
		view_set_level(v, LEVEL_HOST);
		v->vm = 0;
	} else {
		v->all_vcpus = false;
	}
}

static void open_vcpu(struct ui *ui, const struct snap_vcpu *c)
{
	struct view *v = &ui->view;

	v->vm = ui->shown->vms[c->vm].id;
	v->vcpu = c->id;
	view_set_level(v, LEVEL_VCPU);
	v->pane_shown = v->pane_focus = true;
}

/* The vCPU that MAX@v named is why the VM was opened: it is selected first. */
static void select_worst(struct ui *ui, const struct snap_vm *vm)
{
	struct table_state *st = &ui->view.list[LIST_VM_VCPUS];
	const struct snapshot *s = ui->shown;

	for (size_t i = 0; i < s->nvcpus; i++) {
		const struct snap_vcpu *c = &s->vcpus[i];

		if (&s->vms[c->vm] != vm || c->index != vm->steal_max_vcpu)
			continue;
		st->sel = c->id;
		st->touched = true;
		return;
	}
}

static void open_vm(struct ui *ui, const struct snap_vm *vm)
{
	struct view *v = &ui->view;

	if (v->vm != vm->id) {
		memset(&v->list[LIST_VM_VCPUS], 0, sizeof(v->list[0]));
		select_worst(ui, vm);
	}
	v->vm = vm->id;
	v->vcpu = 0;
	view_set_level(v, LEVEL_VM);
	v->pane_shown = v->pane_focus = false;
}

static void toggle_vcpus(struct ui *ui)
{
	struct view *v = &ui->view;

	if (v->level != LEVEL_HOST)
		return;
	v->all_vcpus = !v->all_vcpus;
	v->pane_shown = v->pane_focus = false;
}

static void open_selected(struct ui *ui)
{
	const struct snap_vm *vm;
	const struct snap_vcpu *vcpu;
	const struct pane *p = pane_by_key(ui->view.pane);
	struct pane_ctx c;

	if (!ui->shown)
		return;
	ui_list_rows(ui);
	if (ui_pane_has_focus(ui)) {
		if (p && p->open && ui_pane_ctx(ui, &c))
			p->open(&c, &ui->view);
		return;
	}
	ui_selected(ui, &vm, &vcpu);
	if (ui_other_selected(ui))
		ui->mode = MODE_TASKS;
	else if (ui_all_selected(ui))
		toggle_vcpus(ui);
	else if (vcpu)
		open_vcpu(ui, vcpu);
	else if (vm)
		open_vm(ui, vm);
}

static void choose_pane(struct ui *ui, char key)
{
	if (!pane_by_key(key)) {
		ui_message(ui, ROLE_NOTICE, "no pane has this number");
		return;
	}
	view_set_pane(&ui->view, key);
	ui->view.pane_shown = true;
}

static void toggle_focus(struct ui *ui)
{
	struct view *v = &ui->view;
	struct layout l;

	ui_layout(ui, &l);
	if (ui->rows < LAYOUT_SPLIT_ROWS) {
		v->pane_shown = !v->pane_shown;
		v->pane_focus = v->pane_shown;
		return;
	}
	v->pane_focus = !v->pane_focus;
}

static void next_tab(struct ui *ui, int by)
{
	ui->tab = (enum help_tab)(((int)ui->tab + by + HELP_TABS) % HELP_TABS);
	ui->page_top = 0;
}

static void scroll_columns(struct ui *ui, int by)
{
	struct table_ctx c;

	if (!ui_focus_table(ui, &c))
		return;
	c.state->hscroll += by;
	if (c.state->hscroll < 0)
		c.state->hscroll = 0;
}

static void sort_next(struct ui *ui, bool left)
{
	struct table_ctx c;

	if (ui_focus_table(ui, &c))
		table_sort_step(&c, ui->cols, left);
}

static void reverse(struct ui *ui)
{
	struct table_ctx c;

	if (ui_focus_table(ui, &c))
		c.state->reverse = !c.state->reverse;
}

static void search_next(struct ui *ui, bool back)
{
	struct table_ctx c;
	struct row_list *rows = ui_focus_table(ui, &c);

	if (!ui->view.search[0])
		ui_ask(ui, ASK_SEARCH);
	else if (rows && !table_search(&c, rows, back))
		ui_message(ui, ROLE_NOTICE, "not found");
}

static void pause_or_go_on(struct ui *ui)
{
	ui->view.paused = !ui->view.paused;
	if (!ui->view.paused && ui->newest)
		ui_show(ui, ui->newest);
}

/* Stepping implies a pause: what was looked for must not run away. */
static void step_time(struct ui *ui, int by)
{
	size_t n = history_n(ui->history), at;

	if (!ui->shown || !n)
		return;
	ui->view.paused = true;
	at = history_find(ui->history, ui->shown->time);
	if ((by < 0 && at == 0) || (by > 0 && at + 1 >= n)) {
		ui_message(ui, ROLE_NOTICE,
			   by < 0 ? "the oldest interval in memory" : "the newest");
		return;
	}
	ui_show(ui, history_at(ui->history, at + (size_t)(long)by));
}

static struct ui_request change_delay(struct ui *ui, int by)
{
	static const double steps[] = {0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60};
	int n = (int)(sizeof(steps) / sizeof(steps[0])), i = 0;

	while (i < n - 1 && steps[i] < ui->cfg.delay_s - 1e-6)
		i++;
	/* Between two steps the lower one is the next in that direction. */
	if (!(by < 0 && steps[i] > ui->cfg.delay_s + 1e-6 && i > 0 && (i--, true)))
		i += steps[i] > ui->cfg.delay_s + 1e-6 ? 0 : by;
	i = i < 0 ? 0 : i >= n ? n - 1 : i;
	ui->cfg.delay_s = steps[i];
	return (struct ui_request){.kind = UI_DELAY, .delay_s = steps[i]};
}

static void move(struct ui *ui, long by)
{
	struct table_ctx c;
	struct row_list *rows = ui_focus_table(ui, &c);

	if (rows)
		table_move(&c, rows, by);
}

static void say(struct ui *ui, bool on, const char *yes, const char *no)
{
	ui_message(ui, ROLE_NOTICE, on ? yes : no);
}

static void write_settings(struct ui *ui)
{
	char why[256];
	int r = ui_settings_write(ui, why, sizeof(why));

	ui_message(ui, r < 0 ? ROLE_WARN : ROLE_GOOD, why);
}

static struct ui_request ask_for_demo(struct ui *ui)
{
	if (ui->shown && ui->shown->host.nvm) {
		ui_message(ui, ROLE_NOTICE, "there are guests already; kvmtop demo starts its own");
		return nothing;
	}
	if (!ui->cfg.can_demo) {
		ui_message(ui, ROLE_NOTICE, "no demo on this host: /dev/kvm cannot be used");
		return nothing;
	}
	return (struct ui_request){.kind = UI_DEMO};
}

static void switch_domain(struct ui *ui, char key)
{
	static const struct {
		char key;
		const char *on, *off;
	} words[] = {
		{'H', "the host's samples shown", "the host's samples left out"},
		{'G', "guests' samples shown", "guests' samples left out"},
		{'K', "kernel samples shown", "kernel samples left out"},
		{'U', "user samples shown", "user samples left out"},
	};
	bool on = view_switch_domain(&ui->view, key);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].key == key)
			say(ui, on, words[i].on, words[i].off);
}

static void toggle_slow(struct ui *ui)
{
	if (!ui->view.slow_ns) {
		ui_ask(ui, ASK_SLOW);
		return;
	}
	ui->view.slow_ns = 0;
	ui_message(ui, ROLE_NOTICE, "slow exits are not looked for any more");
}

static void toggle_fine(struct ui *ui)
{
	struct demand d;

	ui_demand(ui, &d);
	if (ui->view.fine) {
		ui->view.fine = 0;
		ui_message(ui, ROLE_NOTICE, "its events are not taken one by one any more");
	} else if (ui->view.pane != '2') {
		ui_message(ui, ROLE_NOTICE, "z is for the pane Exits (2) of a vCPU");
	} else if (!d.vcpu) {
		ui_message(ui, ROLE_NOTICE, "select one vCPU: Enter, or v");
	} else {
		ui->view.fine = d.vcpu;
		ui_demand(ui, &d);
		ui_message(ui, ROLE_NOTICE,
			   d.slices ? "each event of this vCPU is taken, of no other"
				    : "press 2 first: it is shown in the pane Exits");
	}
}

/* Whose histogram is finer is bound to the pane and the selection: both cost it something. */
static void end_fine(struct ui *ui)
{
	struct demand d;

	if (!ui->view.fine)
		return;
	ui_demand(ui, &d);
	if (!d.slices)
		ui->view.fine = 0;
}

/* What keys mean where the past is shown. False: the same as in the present. */
static bool do_replay(struct ui *ui, enum action a, struct ui_request *out)
{
	*out = nothing;
	switch (a) {
	case ACT_PAUSE:
		out->kind = UI_PLAY;
		return true;
	case ACT_STEP_BACK:
	case ACT_STEP_ON:
		out->kind = UI_STEP;
		out->by = a == ACT_STEP_ON ? 1 : -1;
		return true;
	case ACT_MINUTE_BACK:
	case ACT_MINUTE_ON:
		out->kind = UI_MINUTE;
		out->by = a == ACT_MINUTE_ON ? 1 : -1;
		return true;
	case ACT_FASTER: /* of the interval: shorter; its key is - */
	case ACT_SLOWER:
		out->kind = UI_SPEED;
		out->by = a == ACT_SLOWER ? 1 : -1;
		return true;
	case ACT_GO_TO:
		ui_ask(ui, ASK_TIME);
		return true;
	case ACT_WORST:
		out->kind = UI_WORST;
		return true;
	case ACT_DELAY:
	case ACT_RESET:
	case ACT_SLOW:
	case ACT_FINE:
	case ACT_DEMO:
		ui_message(ui, ROLE_NOTICE, "not in replay");
		return true;
	default:
		return false;
	}
}

/* Actions that change nothing but the view. False: not one of them. */
static bool do_view(struct ui *ui, enum action a, uint32_t key)
{
	struct view *v = &ui->view;

	switch (a) {
	case ACT_PANE:
		choose_pane(ui, (char)key);
		return true;
	case ACT_FOCUS:
	case ACT_FOCUS_BACK:
		toggle_focus(ui);
		return true;
	case ACT_VCPUS:
		toggle_vcpus(ui);
		return true;
	case ACT_KIND:
	case ACT_KIND_BACK:
		ui->exit_kind_chosen = true;
		if (!view_next_kind(v, a == ACT_KIND_BACK))
			ui_message(ui, ROLE_NOTICE, "kinds are of the panes Exits and Access");
		return true;
	case ACT_DOMAIN:
		switch_domain(ui, (char)key);
		return true;
	case ACT_LEFT:
	case ACT_RIGHT:
		scroll_columns(ui, a == ACT_LEFT ? -1 : 1);
		return true;
	case ACT_SORT_PREV:
	case ACT_SORT_NEXT:
		sort_next(ui, a == ACT_SORT_PREV);
		return true;
	case ACT_REVERSE:
		reverse(ui);
		return true;
	case ACT_SEARCH_NEXT:
	case ACT_SEARCH_PREV:
		search_next(ui, a == ACT_SEARCH_PREV);
		return true;
	case ACT_PAUSE:
		pause_or_go_on(ui);
		return true;
	case ACT_STEP_BACK:
	case ACT_STEP_ON:
		step_time(ui, a == ACT_STEP_BACK ? -1 : 1);
		return true;
	case ACT_TOTALS:
		v->totals = !v->totals;
		say(ui, v->totals, "figures since start or reset", "figures of the interval");
		return true;
	case ACT_IDLE:
		v->no_idle = !v->no_idle;
		say(ui, v->no_idle, "idle exits left out", "idle exits shown");
		return true;
	default:
		return false;
	}
}

static struct ui_request do_main(struct ui *ui, enum action a, uint32_t key)
{
	struct ui_request replay;

	if (ui->cfg.replay && do_replay(ui, a, &replay))
		return replay;
	if (do_view(ui, a, key))
		return nothing;
	switch (a) {
	case ACT_OPEN:
		open_selected(ui);
		break;
	case ACT_BACK:
		go_up(ui);
		break;
	case ACT_SORT:
		ui_open_sort(ui);
		break;
	case ACT_COLUMNS:
		ui_open_columns(ui);
		break;
	case ACT_FILTER:
		ui_ask(ui, ASK_FILTER);
		break;
	case ACT_SEARCH:
		ui_ask(ui, ASK_SEARCH);
		break;
	case ACT_DELAY:
		ui_ask(ui, ASK_DELAY);
		break;
	case ACT_FASTER:
	case ACT_SLOWER:
		return change_delay(ui, a == ACT_FASTER ? -1 : 1);
	case ACT_RESET:
		ui_message(ui, ROLE_NOTICE, "totals set to zero");
		return (struct ui_request){.kind = UI_RESET};
	case ACT_SLOW:
		toggle_slow(ui);
		break;
	case ACT_FINE:
		toggle_fine(ui);
		break;
	case ACT_INFO:
		open_page(ui, MODE_INFO);
		break;
	case ACT_MINUTE_BACK:
	case ACT_MINUTE_ON:
	case ACT_GO_TO:
	case ACT_WORST:
		ui_message(ui, ROLE_NOTICE, "only in replay: kvmtop record, then kvmtop replay");
		break;
	case ACT_DEMO:
		return ask_for_demo(ui);
	case ACT_SETTINGS:
		write_settings(ui);
		break;
	case ACT_QUIT:
		return (struct ui_request){.kind = UI_QUIT};
	default:
		break;
	}
	return nothing;
}

/* Help, the row in full, tasks: they scroll, have tabs, and close. */
static void do_page(struct ui *ui, enum action a)
{
	switch (a) {
	case ACT_QUIT:
	case ACT_BACK:
	case ACT_OPEN:
		close_mode(ui);
		break;
	case ACT_FOCUS:
	case ACT_RIGHT:
		next_tab(ui, 1);
		break;
	case ACT_FOCUS_BACK:
	case ACT_LEFT:
		next_tab(ui, -1);
		break;
	default:
		break;
	}
}

static void do_move(struct ui *ui, long by)
{
	switch (ui->mode) {
	case MODE_MAIN:
	case MODE_TASKS:
		move(ui, by);
		break;
	case MODE_HELP:
	case MODE_INFO:
		ui->page_top += (int)by;
		if (ui->page_top < 0)
			ui->page_top = 0;
		break;
	case MODE_SORT:
	case MODE_COLUMNS:
		menu_move(&ui->menu, (int)by);
		break;
	}
}

struct ui_request ui_do(struct ui *ui, enum action a, uint32_t key)
{
	long by = step_of(ui, a);

	if (by) {
		do_move(ui, by);
		return nothing;
	}
	if (a == ACT_REDRAW)
		return (struct ui_request){.kind = UI_REDRAW};
	if (a == ACT_SUSPEND)
		return (struct ui_request){.kind = UI_SUSPEND};
	if (a == ACT_HELP) {
		open_page(ui, ui->mode == MODE_HELP ? MODE_MAIN : MODE_HELP);
		return nothing;
	}
	if (a == ACT_SAVE) {
		ui_ask(ui, ASK_SAVE);
		return nothing;
	}
	if (ui->mode == MODE_MAIN)
		return do_main(ui, a, key);
	if (ui->mode == MODE_SORT || ui->mode == MODE_COLUMNS)
		ui_menu_act(ui, a);
	else
		do_page(ui, a);
	return nothing;
}

struct ui_request ui_key(struct ui *ui, uint32_t key)
{
	enum key_context ctx = CTX_HELP;
	struct ui_request r;

	if (ui->ask != ASK_NOTHING)
		return ui_answer_key(ui, key);
	ui->message[0] = '\0';
	if (ui->mode == MODE_MAIN)
		ctx = CTX_MAIN;
	else if (ui->mode == MODE_SORT || ui->mode == MODE_COLUMNS)
		ctx = CTX_MENU;
	if (ctx == CTX_MAIN && ui_symbols_have_focus(ui) && keymap_find(key, CTX_SYMBOLS))
		ctx = CTX_SYMBOLS;
	r = ui_do(ui, keymap_find(key, ctx), key);
	end_fine(ui);
	return r;
}
