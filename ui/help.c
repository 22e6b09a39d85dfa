// SPDX-License-Identifier: GPL-2.0-only
/* The help screen, made from the tables of keys, fields and panes. */
#include <stdio.h>
#include <string.h>

#include "text.h"
#include "ui_priv.h"

static const char *const tab_names[HELP_TABS] = {"Keys", "Columns", "This row", "From other tools"};

void help_draw_tabs(struct ui *ui, const struct area *a)
{
	int x = 1;

	area_fill(a, 0, 0, a->w, ROLE_HEAD, ' ');
	for (int i = 0; i < HELP_TABS; i++)
		x = area_textf(a, 0, x, i == (int)ui->tab ? ROLE_TAB_ON : ROLE_HEAD, " %s ",
			       tab_names[i]);
	if (a->w - x > 14)
		area_right(a, 0, a->w - 1, ROLE_HEAD, "Tab: next");
}

static void keys_page(struct page *p)
{
	const struct key_row *rows;
	const struct pane *const *panes;
	char keys[64];
	size_t n;

	p->indent = 20;
	rows = keymap_rows(&n);
	for (size_t i = 0; i < n; i++)
		page_add(p, ROLE_STRONG, keymap_keys(&rows[i], keys, sizeof(keys)), ROLE_TEXT,
			 rows[i].help);
	page_heading(p, "Panes");
	panes = panes_all(&n);
	for (size_t i = 0; i < n; i++) {
		snprintf(keys, sizeof(keys), "%c %s", panes[i]->key, panes[i]->title);
		page_add(p, ROLE_STRONG, keys, ROLE_TEXT, panes[i]->help);
	}
	page_heading(p, "Marks");
	page_addf(p, "31.0!", "over its threshold");
	page_addf(p, "31.0q", "steal: half of it or more is its own CPU quota, or that is used up");
	page_addf(p, "~12", "a part is missing, or it is guessed");
	page_addf(p, "~4 VM", "not all are sure to be VMs: guessed from threads, i tells which");
	page_addf(p, "-", "not known yet: no interval to compare with");
	page_addf(p, "n/a", "cannot be had here: i says why, kvmtop doctor what mends it");
	page_addf(p, "", "Disk and network of guests are not shown: virt-top does that.");
}

/* A threshold as the column shows its figures: "5%", "1.00s", "1". */
static void threshold_text(const struct field *f, double v, char *out, size_t size)
{
	if (f->unit == UNIT_NS)
		fmt_ns(out, size, value_known(v), 8);
	else
		snprintf(out, size, "%g%s", v, f->unit == UNIT_PCT ? "%" : "");
}

static void explain_columns(struct page *p, const struct table_def *def)
{
	const struct field_list *l = field_list(def->table);
	char name[48], warn[24], alarm[24];

	for (size_t i = 0; i < l->n; i++) {
		const struct field *f = &l->field[i];

		if (f->flags & FIELD_JSON_ONLY)
			continue;
		snprintf(name, sizeof(name), "%s", f->title);
		if (f->warn > 0) {
			threshold_text(f, f->warn, warn, sizeof(warn));
			threshold_text(f, f->alarm, alarm, sizeof(alarm));
			page_addf(p, name, "%s (marked from %s, red from %s)", f->help, warn,
				  alarm);
		} else {
			page_addf(p, name, "%s", f->help);
		}
	}
}

/* The pane that is open was asked about as much as what has the focus: both, that one first. */
static void columns_page(struct ui *ui, struct page *p)
{
	const struct pane *pane = pane_by_key(ui->view.pane);
	bool focus = ui_pane_has_focus(ui);
	struct table_ctx c;
	struct layout l;

	p->indent = 14;
	if (!ui_focus_table(ui, &c))
		return;
	ui_layout(ui, &l);
	if (focus || !l.pane.h || !pane || !pane->table || pane->table->table == c.def->table) {
		page_addf(p, NULL,
			  "Columns of %s %s, which has the focus (Tab changes it). C chooses which "
			  "are shown.",
			  focus ? "the pane" : "the list", c.def->title);
		explain_columns(p, c.def);
		return;
	}
	page_addf(p, NULL,
		  "Columns of the list %s, which has the focus; below, those of the pane %s. Tab "
		  "changes the focus, C chooses which are shown.",
		  c.def->title, pane->title);
	explain_columns(p, c.def);
	page_addf(p, NULL, "%s", "");
	page_addf(p, NULL, "Columns of the pane %s", pane->title);
	explain_columns(p, pane->table);
}

static void row_page(struct ui *ui, struct page *p)
{
	const struct field_list *l;
	struct table_ctx c;
	struct row_list *rows = ui_focus_table(ui, &c);
	int line = rows ? table_selected(&c, rows) : -1;
	char value[512], label[600];
	enum role role;
	bool wide;

	p->indent = 26;
	if (line < 0) {
		page_add(p, ROLE_DIM, NULL, ROLE_DIM, "no row is selected");
		return;
	}
	l = field_list(c.def->table);
	for (size_t i = 0; i < l->n; i++) {
		if (l->field[i].flags & FIELD_JSON_ONLY)
			continue;
		table_cell(&c, &l->field[i], &rows->row[line], 60, value, sizeof(value), &role);
		if (!value[0])
			continue;
		snprintf(label, sizeof(label), "%-12s %s", l->field[i].title, value);
		wide = utf8_width(label) >= 26;
		/* Behind a long text (a name, an exit's reason) there is no room for words. */
		if (wide)
			page_add(p, role == ROLE_TEXT ? ROLE_STRONG : role, label, ROLE_DIM, "");
		page_add(p, role == ROLE_TEXT ? ROLE_STRONG : role, wide ? "" : label, ROLE_DIM,
			 l->field[i].help);
	}
}

struct known {
	const char *theirs, *ours;
};

static void known_table(struct page *p, const char *title, const struct known *k, size_t n)
{
	page_heading(p, title);
	for (size_t i = 0; i < n; i++)
		page_add(p, ROLE_STRONG, k[i].theirs, ROLE_TEXT, k[i].ours);
}

static void tools_page(struct page *p)
{
	static const struct known kvm_stat[] = {
		{"Event", "pane 2 Exits; accesses by address in pane 3"},
		{"Total", "t: figures since start"},
		{"CurAvg/s", "column EXIT/s"},
		{"g guest", "Enter on a VM, or f and its name"},
		{"p pid", "kvmtop -p PID"},
		{"r", "r resets too"},
		{"s interval", "d"},
		{"b c o", "s sorts by any column, I turns it round"},
	};
	static const struct known htop[] = {
		{"F1 F3 F4 F6 F10", "the same"},
		{"F2 setup", "F2 or C: columns"},
		{"CPU%", "%CPU: of one CPU, so 4 busy vCPUs are 400"},
		{"F5 tree", "Enter: VM, then vCPU"},
		{"P M T", "s, then the column"},
		{"u user, \\ filter", "f filter"},
	};
	static const struct known perf[] = {
		{"perf kvm stat live", "pane 2: Samples%, Time%, Min, Max, Avg with its error"},
		{"perf kvm --host/--guest", "pane 4 Symbols: both; H and G take one away"},
		{"perf top, perf kvm top", "pane 4 Symbols, column HOT SYMBOL; kvmtop -F HZ"},
		{"perf top E", "Enter on a row: which vCPUs; on an exit: which guest code"},
		{"Lost", "in the head: lost, counted in events"},
		{"--vcpu", "Enter on a vCPU, or kvmtop --vcpu N"},
	};
	static const struct known esxtop[] = {
		{"%RDY", "%STEAL; %WAIT is the part that is competition"},
		{"%CSTP, %MLMTD", "%THROT: held back by its own quota (mark q)"},
		{"%USED, %RUN", "%CPU"},
		{"%SYS", "%SYS"},
		{"%WAIT, %IDLE", "idle exits: a shows or hides them"},
		{"e expand", "v, or Enter"},
		{"c m d n v views", "digits: panes"},
		{"W", "W writes the settings"},
	};

	p->indent = 26;
#define TABLE(title, t) known_table(p, title, t, sizeof(t) / sizeof((t)[0]))
	TABLE("kvm_stat", kvm_stat);
	TABLE("htop", htop);
	TABLE("perf kvm, perf top", perf);
	TABLE("esxtop", esxtop);
#undef TABLE
}

void help_page(struct ui *ui, struct page *p)
{
	switch (ui->tab) {
	case HELP_KEYS:
		keys_page(p);
		break;
	case HELP_COLUMNS:
		columns_page(ui, p);
		break;
	case HELP_ROW:
		row_page(ui, p);
		break;
	default:
		tools_page(p);
	}
}
