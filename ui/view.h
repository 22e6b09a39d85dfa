// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the user is looking at. One instance, owned by struct ui; panes read it.
 *
 * A selection is the id of a VM, vCPU or row, never a line number: rows may come, go and be
 * sorted anew under it.
 */
#ifndef KVMTOP_VIEW_H
#define KVMTOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

enum level { LEVEL_HOST, LEVEL_VM, LEVEL_VCPU };

#define PANE_MAX 10
#define VIEW_TEXT 64 /* bytes of a filter */
#define VIEW_COLUMNS 48
#define VIEW_TITLE 24 /* of a column */

/* What is remembered of one table. */
struct table_state {
	uint64_t sel; /* id of the selected row; 0: the first */
	int line; /* where it stood: its successor is taken when it is gone */
	int top; /* first row on screen */
	int hscroll; /* columns scrolled away, after the first */
	char sort[VIEW_TITLE]; /* title of the field; "": the default */
	bool reverse;
	bool touched; /* the user moved the selection: it is kept, wherever its row goes */
};

enum list_id { LIST_VMS, LIST_ALL_VCPUS, LIST_VM_VCPUS, LIST_NR };

/* The columns that the user chose for a table; n 0: its default set. */
struct column_choice {
	char title[VIEW_COLUMNS][VIEW_TITLE];
	size_t n;
};

/* view.domains_off: what the pane Symbols leaves out. */
enum { VIEW_HOST = 1, VIEW_GUEST = 2, VIEW_KERNEL = 4, VIEW_USER = 8 };

struct view {
	enum level level;
	uint32_t vm, vcpu; /* ids of what was opened; 0 none */
	bool all_vcpus; /* host level: a row a vCPU */
	char pane; /* the digit of the pane in force: '1' … '9', '0' */
	char pane_of[LEVEL_VCPU + 1]; /* on each level; the same once the user chose one */
	uint64_t detail; /* id of the pane's row that was opened with Enter; 0 none */
	bool pane_shown; /* windows below 30 lines: the pane is on screen, in the list's place */
	bool pane_focus;
	uint8_t exit_kind, access_kind; /* enum kvm_kind of the panes Exits and Access */
	uint8_t domains_off; /* VIEW_HOST … */
	bool totals; /* since start or reset rather than of the interval */
	bool no_idle; /* idle exits left out of the tables */
	uint32_t fine; /* vCPU whose histogram over time is finer than the interval; 0: none */
	uint64_t slow_ns; /* slow exits are looked for: those that take longer; 0: not */
	bool paused;
	int64_t at; /* paused: time of the snapshot shown */
	char filter[VIEW_TEXT]; /* of the list on this level */
	char filter_of[LEVEL_VCPU + 1][VIEW_TEXT]; /* of the levels above */
	char pane_filter[VIEW_TEXT]; /* of the pane in force */
	char search[VIEW_TEXT];
	struct table_state list[LIST_NR], pane_state[PANE_MAX];
	struct column_choice list_columns[LIST_NR], pane_columns[PANE_MAX];
};

void view_init(struct view *v);
/* The list that is on screen at this level. */
enum list_id view_list(const struct view *v);
/*
 * Another level: its own pane comes back, an open detail is closed. Down: nothing is filtered
 * there yet; up: the filter that was left there is in force again.
 */
void view_set_level(struct view *v, enum level level);
/* The user's choice, for all levels. */
void view_set_pane(struct view *v, char key);
/* Index of a pane's digit: '1' 0 … '9' 8, '0' 9. */
int pane_index(char key);
/* The next kind of the pane Exits or Access; back: the one before. False: no other pane has kinds.
 */
bool view_next_kind(struct view *v, bool back);
/* A domain of the pane Symbols on or off: H host, G guest, K kernel, U user. True: it is on. */
bool view_switch_domain(struct view *v, char key);
/* Rows of a snapshot by id; NULL: not in it (gone, or not there yet). */
const struct snap_vm *snap_vm_by_id(const struct snapshot *s, uint32_t id);
const struct snap_vcpu *snap_vcpu_by_id(const struct snapshot *s, uint32_t id);

#endif
