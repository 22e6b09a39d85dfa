// SPDX-License-Identifier: GPL-2.0-only
/* A screen of made snapshots that tests press keys on and read lines of. */
#ifndef KVMTOP_TESTS_UI_FIXTURE_H
#define KVMTOP_TESTS_UI_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "made_snapshot.h"
#include "surface.h"
#include "ui.h"

struct fixture {
	struct ui *ui;
	struct surface *s;
	unsigned step;
	struct made made;
};

/* cmocka's: 24 lines of 80 columns, eight VMs, the first snapshot is drawn. */
int setup(void **state);
int setup_replay(void **state);
int teardown(void **state);
/* The next of the made snapshots, as f->made says, comes in and is drawn. */
void next_snapshot(struct fixture *f);
/* This snapshot comes in and is drawn; takes the caller's reference. */
void put_snapshot(struct fixture *f, struct snapshot *s);
struct ui_request press(struct fixture *f, uint32_t key);
void type(struct fixture *f, const char *keys);
/* One line of the screen. Freed by the next call. */
const char *line(const struct fixture *f, int y);
bool on_screen(const struct fixture *f, const char *text);
/* The line of the selection bar; "": none. */
const char *selected(const struct fixture *f);
/* In a window of another size. */
void resize(struct fixture *f, int rows, int cols);

#endif
