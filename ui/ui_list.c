// SPDX-License-Identifier: GPL-2.0-only
/* The list and the pane on screen: their rows, what is selected, their drawing. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "text.h"
#include "ui_priv.h"

/* A VM's row in form only, without a figure. */
static struct snap_vm row_named(const char *name)
{
	return (struct snap_vm){
		.name = name,
		.vm_id = "",
		.uuid = "",
		.title = "",
		.vmm = "",
		.cmdline = "",
		.cgroup = "",
		.steal_source = "",
		.why_text = "",
		.steal_max_vcpu = -1,
		.ex = {.top = "", .open = ""},
		.sym_why = "",
		.sym_mend = "",
	};
}

/* The row that holds everything that is no VM. */
static void make_other(struct ui *ui)
{
	const struct snap_host *h = &ui->shown->host;

	ui->other = row_named("(other)");
	if (h->other_why)
		ui->other.why_text = h->other_why;
	ui->other.use.cpu = h->other_cpu;
	ui->other.use.sys = h->other_sys;
	ui->other.sym = h->other_sym;
}

/* A figure of all VMs together; partial where one of them does not know its own. */
static struct value sum_of(const struct snapshot *s, size_t offset)
{
	struct value none = value_pending();
	bool known = false, partial = false;
	double sum = 0;

	for (size_t i = 0; i < s->nvms; i++) {
		const void *at = (const char *)&s->vms[i] + offset;
		const struct value *v = at;

		partial |= v->state != VALUE_KNOWN;
		known |= value_has(*v);
		sum += value_has(*v) ? v->v : 0;
		if (v->state == VALUE_NA)
			none = *v;
	}
	if (!known)
		return none;
	return partial ? value_partial(sum, WHY_NONE) : value_known(sum);
}

#define SUM(member) sum_of(s, offsetof(struct snap_vm, member))

/* The row of all VMs together: sums; steal and exits are the host's. */
static void make_all(struct ui *ui)
{
	const struct snapshot *s = ui->shown;
	struct snap_vm *all = &ui->all;

	*all = row_named("(all)");
	all->nvcpu = s->host.nvcpu;
	all->use.cpu = SUM(use.cpu);
	all->use.guest = SUM(use.guest);
	all->use.usr = SUM(use.usr);
	all->use.sys = SUM(use.sys);
	all->use.steal = s->host.steal;
	all->vcpu_pct = SUM(vcpu_pct);
	all->io_pct = SUM(io_pct);
	all->ex = s->host.ex;
	all->sym = s->host.sym;
	for (size_t i = 0; i < s->nvms; i++) {
		struct value max = s->vms[i].steal_max;

		all->nthread += s->vms[i].nthread;
		if (value_has(max) && (!value_has(all->steal_max) || max.v > all->steal_max.v))
			all->steal_max = max;
	}
}

void ui_list_ctx(struct ui *ui, struct table_ctx *out)
{
	enum list_id id = view_list(&ui->view);

	*out = (struct table_ctx){
		.snap = ui->shown,
		.def = &list_defs[id],
		.choice = &ui->view.list_columns[id],
		.state = &ui->view.list[id],
		.totals = ui->view.totals,
		.focused = !ui_pane_has_focus(ui),
		.filter = ui->view.level == LEVEL_VCPU ? "" : ui->view.filter,
		.search = ui->view.search,
	};
}

static bool want_vm(const struct ui *ui, const struct snap_vm *vm)
{
	return !ui->cfg.want_vm || ui->cfg.want_vm(ui->cfg.want_ctx, vm);
}

static bool want_vcpu(const struct ui *ui, const struct snap_vcpu *c)
{
	return !ui->cfg.want_vcpu || ui->cfg.want_vcpu(ui->cfg.want_ctx, c);
}

static void add_vms(struct ui *ui)
{
	const struct snapshot *s = ui->shown;

	for (size_t i = 0; i < s->nvms; i++)
		if (want_vm(ui, &s->vms[i]))
			row_list_add(&ui->list_rows, &s->vms[i], s->vms[i].id);
}

static void add_vcpus(struct ui *ui)
{
	const struct view *v = &ui->view;
	const struct snapshot *s = ui->shown;

	for (size_t i = 0; i < s->nvcpus; i++) {
		const struct snap_vcpu *c = &s->vcpus[i];

		if (v->level != LEVEL_HOST && s->vms[c->vm].id != v->vm)
			continue;
		if (v->level == LEVEL_VCPU && c->id != v->vcpu)
			continue;
		if (!want_vm(ui, &s->vms[c->vm]) || !want_vcpu(ui, c))
			continue;
		row_list_add(&ui->list_rows, c, c->id);
	}
}

#define OTHER_ID UINT64_MAX
#define ALL_ID (UINT64_MAX - 1)

/* Remembers what the rows are made of; true where they were made of the same already. */
static bool rows_are_made(struct ui *ui, const struct table_ctx *c)
{
	const struct view *v = &ui->view;
	bool same = ui->made.snap == ui->shown && ui->made.list == view_list(v) &&
		    ui->made.vm == v->vm && ui->made.vcpu == v->vcpu &&
		    ui->made.level == v->level && ui->made.totals == v->totals &&
		    ui->made.reverse == c->state->reverse &&
		    strcmp(ui->made.sort, c->state->sort) == 0 &&
		    strcmp(ui->made.filter, c->filter) == 0;

	ui->made.snap = ui->shown;
	ui->made.list = view_list(v);
	ui->made.level = v->level;
	ui->made.vm = v->vm;
	ui->made.vcpu = v->vcpu;
	ui->made.totals = v->totals;
	ui->made.reverse = c->state->reverse;
	snprintf(ui->made.sort, sizeof(ui->made.sort), "%s", c->state->sort);
	snprintf(ui->made.filter, sizeof(ui->made.filter), "%s", c->filter);
	return same;
}

void ui_list_rows(struct ui *ui)
{
	struct table_ctx c;

	if (!ui->shown) {
		ui->list_rows.n = 0;
		return;
	}
	ui_list_ctx(ui, &c);
	if (rows_are_made(ui, &c)) {
		table_mend(&c, &ui->list_rows);
		return;
	}
	ui->list_rows.n = 0;
	if (view_list(&ui->view) != LIST_VMS) {
		add_vcpus(ui);
		table_arrange(&c, &ui->list_rows);
		return;
	}
	add_vms(ui);
	/* The sum of all would not be that of the rows that a filter leaves. */
	make_all(ui);
	if (!ui->cfg.want_vm && !c.filter[0] && (ui->shown->nvms || ui->all.ex.n) &&
	    row_list_add(&ui->list_rows, &ui->all, ALL_ID) == 0)
		ui->list_rows.row[ui->list_rows.n - 1].first = true;
	make_other(ui);
	if (row_list_add(&ui->list_rows, &ui->other, OTHER_ID) == 0)
		ui->list_rows.row[ui->list_rows.n - 1].last = true;
	table_arrange(&c, &ui->list_rows);
}

static const struct table_row *selected_row(struct ui *ui)
{
	struct table_ctx c;
	int line;

	if (!ui->shown)
		return NULL;
	ui_list_ctx(ui, &c);
	line = table_selected(&c, &ui->list_rows);
	return line < 0 ? NULL : &ui->list_rows.row[line];
}

bool ui_other_selected(struct ui *ui)
{
	const struct table_row *r = selected_row(ui);

	return r && r->last;
}

bool ui_all_selected(struct ui *ui)
{
	const struct table_row *r = selected_row(ui);

	return r && r->first;
}

void ui_selected(struct ui *ui, const struct snap_vm **vm, const struct snap_vcpu **vcpu)
{
	const struct view *v = &ui->view;
	const struct table_row *r = selected_row(ui);

	*vm = NULL;
	*vcpu = NULL;
	if (!ui->shown)
		return;
	if (v->level != LEVEL_HOST)
		*vm = snap_vm_by_id(ui->shown, v->vm);
	if (v->level == LEVEL_VCPU) {
		*vcpu = snap_vcpu_by_id(ui->shown, v->vcpu);
		return;
	}
	if (!r || r->last || r->first)
		return;
	if (view_list(v) == LIST_VMS) {
		*vm = r->row;
	} else {
		*vcpu = r->row;
		*vm = &ui->shown->vms[(*vcpu)->vm];
	}
}

static const char *filter_reason(const char *filter, char *buf, size_t size)
{
	char safe[VIEW_TEXT * 4];

	text_escape(safe, sizeof(safe), filter);
	snprintf(buf, size, "no row contains \"%.160s\"; Esc clears the filter", safe);
	return buf;
}

static const char *empty_reason(const struct ui *ui, char *buf, size_t size)
{
	const struct view *v = &ui->view;
	const struct snap_host *h = &ui->shown->host;

	if (v->level != LEVEL_HOST && !snap_vm_by_id(ui->shown, v->vm))
		return "this VM has ended; Esc goes back to the list";
	if (v->level == LEVEL_VCPU && !snap_vcpu_by_id(ui->shown, v->vcpu))
		return "this vCPU has ended; Esc goes back to its VM";
	if (v->filter[0])
		return filter_reason(v->filter, buf, size);
	if (h->discovered < h->discovering)
		return "looking for VMs";
	if (v->level != LEVEL_HOST)
		return "no vCPU of this VM is known yet";
	if (ui->cfg.want_vm)
		return h->nvm ? "no VM here is selected by -p or -M: it has ended, or has not "
				"begun; "
				"waiting for one"
			      : "no VM runs on this host; waiting for one that -p or -M selects";
	return ui->cfg.can_demo ? "no VM runs on this host; D starts three small ones to look at"
				: "no VM runs on this host";
}

void ui_draw_list(struct ui *ui, const struct area *a)
{
	struct table_ctx c;
	char buf[256];
	size_t n = ui->list_rows.n, real = 0;

	if (a->h < 1)
		return;
	ui_list_ctx(ui, &c);
	for (size_t i = 0; i < n && !real; i++)
		real += !ui->list_rows.row[i].first && !ui->list_rows.row[i].last;
	table_draw(&c, a, &ui->list_rows);
	if (!real && a->h > 3) {
		struct area below = area_sub(a, 2, 0, a->h - 2, a->w);

		pane_draw_note(&below, ROLE_NOTICE, empty_reason(ui, buf, sizeof(buf)));
	}
}

bool ui_pane_ctx(struct ui *ui, struct pane_ctx *out)
{
	const struct pane *p = pane_by_key(ui->view.pane);
	int i = pane_index(ui->view.pane);

	if (!p || !ui->shown || i < 0 || i >= PANE_MAX)
		return false;
	*out = (struct pane_ctx){
		.snap = ui->shown,
		.history = ui->history,
		.at = history_find(ui->history, ui->shown->time),
		.view = &ui->view,
		.rows = &ui->pane_rows,
		.focused = ui_pane_has_focus(ui),
	};
	ui_selected(ui, &out->vm, &out->vcpu);
	/* Without the opened vCPU its VM's figures would be taken for its own. */
	if (ui->view.level == LEVEL_VCPU && !out->vcpu)
		out->vm = NULL;
	out->host = ui_all_selected(ui);
	out->other = ui_other_selected(ui);
	ui->pane_rows.n = 0;
	if (!p->table)
		return true;
	out->table = (struct table_ctx){
		.snap = ui->shown,
		.def = p->table,
		.choice = &ui->view.pane_columns[i],
		.state = &ui->view.pane_state[i],
		.totals = ui->view.totals,
		.focused = out->focused,
		.filter = ui->view.pane_filter,
		.search = ui->view.search,
	};
	p->rows(out, &ui->pane_rows);
	table_arrange(&out->table, &ui->pane_rows);
	return true;
}

/* How much of the title line there is room for; whose pane it is comes first. */
struct title {
	bool words; /* names of the panes that are not shown, not only their digits */
	bool subtitle;
	bool one; /* only the pane that is shown */
	bool close; /* the digits one blank apart */
};

/* "1 vCPUs  2 Exits …" with the pane in force standing out. Returns the column after it. */
static int draw_tabs(struct ui *ui, const struct pane_ctx *c, const struct area *a,
		     const struct title *t)
{
	const struct pane *const *all;
	char sub[96] = "";
	size_t n;
	int x = 0;

	all = panes_all(&n);
	for (size_t i = 0; i < n; i++) {
		bool on = all[i]->key == ui->view.pane, words = on || t->words;
		enum role role = on ? ROLE_TAB_ON : ROLE_TAB;

		if (!on && t->one)
			continue;
		x = area_text(a, 0, x, role, (char[]){' ', all[i]->key, '\0'});
		if (words) {
			x = area_text(a, 0, x, role, " ");
			x = area_text(a, 0, x, role, all[i]->title);
		}
		if (words || !t->close)
			x = area_text(a, 0, x, role, " ");
		if (!on || !t->subtitle || !all[i]->subtitle)
			continue;
		all[i]->subtitle(c, sub, sizeof(sub));
		if (sub[0])
			x = area_textf(a, 0, x - 1, ROLE_TAB_ON, ": %s ", sub);
	}
	if (t->close)
		x = area_textf(a, 0, x, ROLE_TAB, " ");
	return x;
}

static void whose_pane(const struct pane_ctx *c, char *out, size_t size)
{
	char name[256], cut[64];

	snprintf(out, size, "%s", c->host ? " all VMs " : c->other ? " (other) " : "");
	if (!c->vm)
		return;
	text_escape(name, sizeof(name), c->vm->name);
	text_cut_middle(cut, sizeof(cut), name, 20);
	if (c->vcpu)
		snprintf(out, size, " %s vCPU %d ", cut, c->vcpu->index);
	else
		snprintf(out, size, " %s ", cut);
}

static void draw_pane_title(struct ui *ui, const struct pane_ctx *c, const struct area *a)
{
	static const struct title ways[] = {
		{.words = true, .subtitle = true},
		{.subtitle = true},
		{.subtitle = true, .close = true},
		{.subtitle = true, .one = true},
		{.close = true},
		{.one = true},
	};
	struct area nothing = *a;
	size_t way = 0, last = sizeof(ways) / sizeof(ways[0]) - 1;
	char whose[128];
	int room;

	whose_pane(c, whose, sizeof(whose));
	room = a->w - (int)utf8_width(whose) - 1;
	nothing.h = 0;
	while (way < last && draw_tabs(ui, c, &nothing, &ways[way]) > room)
		way++;
	area_fill(a, 0, 0, a->w, ROLE_FRAME, area_glyph(a, 0x2500, '-'));
	draw_tabs(ui, c, a, &ways[way]);
	if (whose[0])
		area_right(a, 0, a->w - 1, ROLE_STRONG, whose);
}

void ui_draw_pane(struct ui *ui, const struct area *a)
{
	const struct pane *p = pane_by_key(ui->view.pane);
	struct area below = area_sub(a, 1, 0, a->h - 1, a->w);
	char why[320];
	struct pane_ctx c;

	if (!p || !ui_pane_ctx(ui, &c))
		return;
	draw_pane_title(ui, &c, a);
	if (p->missing && p->missing(&c, why, sizeof(why)))
		pane_draw_note(&below, ROLE_NOTICE, why);
	else
		p->draw(&c, &below);
	if (c.table.def && !c.rows->n && ui->view.pane_filter[0])
		pane_draw_note(&below, ROLE_NOTICE,
			       filter_reason(ui->view.pane_filter, why, sizeof(why)));
}

static const struct column task_columns[] = {
	{.field = "PID", .width = 8},
	{.field = "%CPU", .width = 6, .gap = 1},
	{.field = "S", .width = 1, .gap = 2},
	{.field = "COMMAND", .width = 16, .gap = 2, .grow = true},
};

static const struct table_def task_def = {
	.id = "tasks",
	.title = "(other): the busiest tasks that belong to no VM",
	.table = TABLE_TASK,
	.cols = task_columns,
	.ncols = sizeof(task_columns) / sizeof(task_columns[0]),
	.sort = {"%CPU", "PID"},
};

void ui_task_rows(struct ui *ui, struct table_ctx *out)
{
	const struct snapshot *s = ui->shown;

	*out = (struct table_ctx){
		.snap = s, .def = &task_def, .state = &ui->task_state, .focused = true};
	ui->task_rows.n = 0;
	for (size_t i = 0; i < s->ntasks; i++)
		row_list_add(&ui->task_rows, &s->tasks[i], (uint64_t)s->tasks[i].pid);
	table_arrange(out, &ui->task_rows);
}

void ui_draw_tasks(struct ui *ui, const struct area *a)
{
	struct area below = area_sub(a, 1, 0, a->h - 1, a->w);
	struct table_ctx c;

	ui_task_rows(ui, &c);
	area_text(a, 0, 1, ROLE_BRAND, task_def.title);
	table_draw(&c, &below, &ui->task_rows);
}

struct row_list *ui_focus_table(struct ui *ui, struct table_ctx *out)
{
	struct pane_ctx p;

	if (!ui->shown)
		return NULL;
	if (ui->mode == MODE_TASKS) {
		ui_task_rows(ui, out);
		return &ui->task_rows;
	}
	ui_list_rows(ui);
	if (!ui_pane_has_focus(ui)) {
		ui_list_ctx(ui, out);
		return &ui->list_rows;
	}
	if (!ui_pane_ctx(ui, &p) || !p.table.def)
		return NULL;
	*out = p.table;
	return &ui->pane_rows;
}
