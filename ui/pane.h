// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a pane is: one file ui/pane_<id>.c with one const struct pane, one row in the table of
 * panes.c.
 *
 * A pane shows something of what is selected: the host, a VM, or a vCPU. Most are a table:
 * such a pane says which rows (`rows`) and which columns (`table`), and selection, sorting,
 * filter, search and scrolling work without a line of its own. `draw` then calls
 * pane_draw_table() for the part of its area that is the table. A row's id must say the same
 * thing in every snapshot and for every VM (kind, isa, key and direction of an exit; a tid):
 * the selection follows it. Drawing reads snapshots and
 * nothing else.
 */
#ifndef KVMTOP_PANE_H
#define KVMTOP_PANE_H

#include "demand.h"
#include "history.h"
#include "keymap.h"
#include "snapshot.h"
#include "surface.h"
#include "view.h"
#include "widget_table.h"

struct pane_ctx {
	const struct snapshot *snap; /* never NULL */
	const struct history *history; /* what came before; may hold fewer than wanted */
	size_t at; /* index of snap in history: graphs end there */
	const struct snap_vm *vm; /* what is selected; NULL: .host, or nothing that has figures */
	const struct snap_vcpu *vcpu; /* NULL: the whole VM */
	bool host; /* all VMs together */
	bool other; /* what is no VM */
	const struct view *view;
	struct table_ctx table; /* of this pane's table; .def NULL: it has none */
	struct row_list *rows; /* the table's rows, arranged */
	bool focused;
};

struct pane {
	char key; /* its digit */
	const char *id, *title; /* "exits", "Exits" */
	const char *help; /* one line */
	const struct table_def *table; /* NULL: no table */
	/* Adds the rows, in any order: row_list_add(). NULL without a table. */
	void (*rows)(const struct pane_ctx *c, struct row_list *out);
	/*
	 * Enter on the selected row: true where the pane does something with it, as setting
	 * view->detail to the row's id (Esc sets it to 0; draw then shows that row's detail).
	 */
	bool (*open)(const struct pane_ctx *c, struct view *view);
	/* Draws into the area below the pane's title line. */
	void (*draw)(const struct pane_ctx *c, const struct area *a);
	/* Words after the title ("vmexit, of the interval"); may be NULL. */
	void (*subtitle)(const struct pane_ctx *c, char *out, size_t size);
	/* Adds what this pane needs while it is on screen; may be NULL. */
	void (*demand)(const struct view *v, struct demand *d);
	/* Why there is nothing to show, and what mends it; false: there is. May be NULL. */
	bool (*missing)(const struct pane_ctx *c, char *out, size_t size);
};

/* The table of panes (panes.c), in the order of their digits. */
const struct pane *const *panes_all(size_t *n);
const struct pane *pane_by_key(char key); /* NULL: none */
/* The digits of all panes, "12356"; 16 bytes are enough. Returns buf. */
const char *panes_keys(char *buf, size_t size);

/* For .rows: all vCPUs of the selected VM. */
void pane_vcpu_rows(const struct pane_ctx *c, struct row_list *out);
/* Draws c->rows as the pane's table. */
void pane_draw_table(const struct pane_ctx *c, const struct area *a);
/* The selected row of the pane's table, NULL: none. */
const void *pane_selected(const struct pane_ctx *c);
/*
 * Why a pane of one VM has nothing to show where c->vm is NULL: the opened VM or vCPU has ended, or
 * no row of a VM is selected (the caller says what it shows of the host, if c->host).
 */
const char *pane_no_vm(const struct pane_ctx *c);
/* One line of text in the middle of an area that is empty for a reason. */
void pane_draw_note(const struct area *a, enum role role, const char *text);
/*
 * A reason and what mends it (a command; may be ""), plain text, on the last lines of the area:
 * the command begins a line where both do not fit into one, and is never cut. Returns how many
 * lines it took, half of the area at most.
 */
int pane_draw_reason(const struct area *a, const char *why, const char *mend);
/*
 * The first source of this name that does not work, as one line "why: mend". False: it works
 * or is not known.
 */
bool pane_source_missing(const struct snapshot *s, const char *name, char *out, size_t size);
/*
 * Why a table of one VM's threads has no row: the source `sched`, what its owner says of a VM
 * without (`none`) and of the host where no VM is selected (`host`). False: it has rows.
 */
bool pane_no_threads(const struct pane_ctx *c, const char *none, const char *host, char *out,
		     size_t size);

#endif
