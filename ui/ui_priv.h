// SPDX-License-Identifier: GPL-2.0-only
/* What the files of the screen's frame (ui*.c, menu.c, help.c …) share; panes do not see it. */
#ifndef KVMTOP_UI_PRIV_H
#define KVMTOP_UI_PRIV_H

#include "columns.h"
#include "history.h"
#include "keymap.h"
#include "layout.h"
#include "menu.h"
#include "page.h"
#include "pane.h"
#include "prompt.h"
#include "ui.h"
#include "view.h"
#include "widget_table.h"

enum ui_mode { MODE_MAIN, MODE_HELP, MODE_INFO, MODE_TASKS, MODE_SORT, MODE_COLUMNS };
enum ui_prompt { ASK_NOTHING, ASK_FILTER, ASK_SEARCH, ASK_DELAY, ASK_SAVE, ASK_TIME, ASK_SLOW };
enum help_tab { HELP_KEYS, HELP_COLUMNS, HELP_ROW, HELP_TOOLS, HELP_TABS };

struct ui {
	struct ui_config cfg;
	char *settings;
	struct view view;
	struct history *history;
	struct snapshot *newest; /* NULL before the first */
	struct snapshot *shown; /* what is drawn: the newest, or one of the history */
	enum ui_mode mode;
	enum ui_prompt ask;
	struct prompt prompt;
	char before[VIEW_TEXT]; /* a filter or search that Esc brings back */
	struct menu menu;
	enum help_tab tab;
	int page_top; /* first line of help or info on screen */
	struct table_state task_state;
	char message[256];
	enum role message_role;
	unsigned message_age; /* intervals that it has been there */
	double speed; /* replay: it plays at this speed; 0: it does not */
	struct ui_moment moment[UI_MOMENTS]; /* replay: the time line, of this range; */
	size_t nmoments; /* 0: none */
	int64_t first, last;
	bool exit_kind_chosen; /* by a key, or since no kvm_exit comes */
	struct row_list list_rows, pane_rows, task_rows;
	/* What list_rows was made of: sorting 16,000 vCPUs takes 20 ms, keys come faster. */
	struct {
		const struct snapshot *snap; /* NULL: nothing; forgotten with it */
		enum list_id list;
		enum level level;
		uint32_t vm, vcpu;
		bool totals, reverse;
		char sort[VIEW_TITLE], filter[VIEW_TEXT];
	} made;
	struct snap_vm other; /* the row "(other)", made from the host's figures */
	struct snap_vm all; /* the row "(all)": the VMs together */
	int rows, cols; /* of the last drawing: paging, saving */
};

/* This snapshot is on screen from now on; takes a reference of its own. */
void ui_show(struct ui *ui, struct snapshot *s);

/* ui_list.c: rows of the list on screen, and what they select. */
void ui_list_rows(struct ui *ui);
void ui_list_ctx(struct ui *ui, struct table_ctx *out);
bool ui_other_selected(struct ui *ui);
bool ui_all_selected(struct ui *ui);
void ui_selected(struct ui *ui, const struct snap_vm **vm, const struct snap_vcpu **vcpu);
void ui_draw_list(struct ui *ui, const struct area *a);
/* The pane in force with its rows arranged. False: there is none. */
bool ui_pane_ctx(struct ui *ui, struct pane_ctx *out);
void ui_draw_pane(struct ui *ui, const struct area *a);
void ui_task_rows(struct ui *ui, struct table_ctx *out);
void ui_draw_tasks(struct ui *ui, const struct area *a);
/* The table that keys go to (pane, list or tasks) and its rows. */
struct row_list *ui_focus_table(struct ui *ui, struct table_ctx *out);
bool ui_pane_has_focus(const struct ui *ui);
bool ui_symbols_have_focus(const struct ui *ui); /* the pane Symbols: it has keys of its own */
/* The filter of the table that has the focus: VIEW_TEXT bytes. */
char *ui_focus_filter(struct ui *ui);
void ui_layout(const struct ui *ui, struct layout *out);

/* ui_head.c */
void ui_draw_head(struct ui *ui, const struct area *a);
void ui_draw_keys(struct ui *ui, const struct area *a);

/* timeline.c */
void ui_draw_timeline(const struct ui *ui, const struct area *a);

/* ui_act.c */
struct ui_request ui_do(struct ui *ui, enum action a, uint32_t key);

/* ui_ask.c: prompts */
void ui_ask(struct ui *ui, enum ui_prompt what);
struct ui_request ui_answer_key(struct ui *ui, uint32_t key);

/* ui_menu.c */
void ui_open_sort(struct ui *ui);
void ui_open_columns(struct ui *ui);
void ui_menu_act(struct ui *ui, enum action a);

/* help.c, info.c: pages of text for a window of this width */
void help_page(struct ui *ui, struct page *p);
void help_draw_tabs(struct ui *ui, const struct area *a);
void info_page(struct ui *ui, struct page *p);

/* settings.c */
int ui_settings_write(struct ui *ui, char *why, size_t size);

/* save.c: the main screen as text. 0 or -errno. */
int ui_save_screen(struct ui *ui, const char *path);

#endif
