// SPDX-License-Identifier: GPL-2.0-only
/*
 * What keys do to the screen, seen on the screen: selection, levels, Esc, filter, search,
 * pause and stepping back, requests to the caller, saving.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "history.h"
#include "keymap.h"
#include "surface.h"
#include "text.h"
#include "ui.h"
#include "ui_fixture.h"
/* The helpers are part of each test program that needs them. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */
#include "ui_fixture.c" /* NOLINT(bugprone-suspicious-include) */

static void selection_follows_its_vm(void **state)
{
	struct fixture *f = *state;

	assert_non_null(strstr(selected(f), "instance-0"));
	type(f, "jj");
	assert_non_null(strstr(selected(f), "vm-004"));
	type(f, "I"); /* turned round: it stands elsewhere and is selected still */
	assert_non_null(strstr(selected(f), "vm-004"));
	next_snapshot(f);
	assert_non_null(strstr(selected(f), "vm-004"));
	/* Its VM ends: its neighbour is selected, nothing jumps to the top. */
	f->made.nvms = 3;
	next_snapshot(f);
	assert_non_null(selected(f)[0] ? selected(f) : NULL);
	assert_null(strstr(selected(f), "vm-004"));
}

static void enter_goes_down_and_esc_up(void **state)
{
	struct fixture *f = *state;

	type(f, "j\r");
	assert_non_null(strstr(line(f, 0), "web01  4 vCPU"));
	/* The vCPU that MAX@v named is selected. */
	assert_non_null(strstr(selected(f), "3    4814"));
	type(f, "k\r");
	assert_non_null(strstr(line(f, 0), "web01  vCPU 2"));
	press(f, UK_ESC);
	assert_non_null(strstr(line(f, 0), "web01  4 vCPU"));
	press(f, UK_BACKSPACE);
	assert_non_null(strstr(line(f, 0), "node17"));
	/* At the top it does nothing; it never quits. */
	assert_int_equal(press(f, UK_ESC).kind, UI_NONE);
	assert_non_null(strstr(line(f, 0), "node17"));
	assert_non_null(strstr(selected(f), "web01"));
}

static void a_vm_that_ended_says_so(void **state)
{
	struct fixture *f = *state;

	type(f, "j\r");
	f->made.nvms = 1;
	next_snapshot(f);
	assert_true(on_screen(f, "this VM has ended"));
	press(f, UK_ESC);
	assert_true(on_screen(f, "instance-0"));
}

/* The pane that was chosen stays on the way down and up. */
static void the_chosen_pane_stays(void **state)
{
	struct fixture *f = *state;

	resize(f, 40, 100);
	type(f, "j\r");
	assert_true(on_screen(f, "2 Exits: vmexit")); /* nothing chosen: no second list of vCPUs */
	press(f, UK_ESC);
	assert_true(on_screen(f, "1 vCPUs: 4"));
	type(f, "4\r");
	assert_non_null(strstr(line(f, 0), "web01  4 vCPU"));
	assert_true(on_screen(f, "4 Symbols: "));
	type(f, "\r");
	assert_non_null(strstr(line(f, 0), "web01  vCPU"));
	assert_true(on_screen(f, "4 Symbols: "));
	type(f, "5");
	for (int i = 0; i < 6; i++)
		press(f, UK_ESC);
	assert_non_null(strstr(line(f, 0), "node17"));
	assert_true(on_screen(f, "5 Steal: "));
}

static void vcpus_of_the_whole_host(void **state)
{
	struct fixture *f = *state;

	type(f, "v");
	assert_non_null(strstr(line(f, 3), "TID"));
	type(f, "\r");
	assert_non_null(strstr(line(f, 0), "instance-0000a1  vCPU 3"));
	press(f, UK_ESC); /* back to where it came from */
	assert_non_null(strstr(line(f, 0), "node17"));
	assert_non_null(strstr(line(f, 3), "TID"));
	type(f, "v");
	assert_null(strstr(line(f, 3), "TID"));
}

static void filter_while_typing(void **state)
{
	struct fixture *f = *state;

	type(f, "fvm-00");
	assert_true(on_screen(f, "vm-004"));
	assert_false(on_screen(f, "web01  "));
	press(f, UK_ESC); /* cancelled: as before */
	assert_true(on_screen(f, "web01"));
	type(f, "fweb\r");
	assert_false(on_screen(f, "vm-004"));
	press(f, UK_ESC); /* clears it */
	assert_true(on_screen(f, "vm-004"));
	type(f, "fnosuchvm\r");
	assert_true(on_screen(f, "no row contains \"nosuchvm\""));
	/* A PID filters as a whole number: 47 is not in 4711. */
	press(f, UK_ESC);
	type(f, "f4811\r");
	assert_true(on_screen(f, "web01"));
	press(f, UK_ESC);
	type(f, "f481\r");
	assert_false(on_screen(f, "web01  "));
}

static void each_level_has_its_filter(void **state)
{
	struct fixture *f = *state;

	type(f, "f4811\r");
	assert_non_null(strstr(line(f, 23), "filter 4811"));
	type(f, "\r"); /* its vCPUs are all there: the PID was the list's filter */
	assert_true(on_screen(f, "4814"));
	assert_null(strstr(line(f, 23), "4811"));
	type(f, "2fMSR\r");
	assert_true(on_screen(f, "MSR_WRITE"));
	assert_false(on_screen(f, "EXTERNAL_INTERRUPT"));
	press(f, UK_ESC); /* the pane's filter */
	assert_true(on_screen(f, "EXTERNAL_INTERRUPT"));
	press(f, UK_ESC); /* the pane */
	press(f, UK_ESC); /* the VM */
	assert_non_null(strstr(line(f, 23), "filter 4811"));
	assert_false(on_screen(f, "vm-004"));
}

static void search_goes_round(void **state)
{
	struct fixture *f = *state;

	type(f, "/vm-00\r");
	assert_non_null(strstr(selected(f), "vm-004"));
	type(f, "n");
	assert_non_null(strstr(selected(f), "vm-005"));
	type(f, "N");
	assert_non_null(strstr(selected(f), "vm-004"));
	type(f, "N");
	assert_non_null(strstr(selected(f), "vm-007"));
	type(f, "/zzz\rn");
	assert_true(on_screen(f, "not found"));
}

static void sorting(void **state)
{
	struct fixture *f = *state;

	type(f, "g>"); /* MAX@v → EXIT/s */
	assert_non_null(strstr(line(f, 3), "EXIT/s"));
	type(f, "s");
	assert_true(on_screen(f, "Sort by"));
	press(f, UK_HOME);
	type(f, "\r"); /* the first field: VM */
	assert_non_null(strstr(line(f, 5), "build-agent"));
	type(f, "I");
	assert_non_null(strstr(line(f, 5), "web01"));
	/* (all) stays above all of them, (other) below. */
	assert_non_null(strstr(line(f, 4), "(all)"));
	assert_non_null(strstr(line(f, 13), "(other)"));
}

/* A count that no VM has any more is nobody's, not that of those that are left. */
static void rest_of_those_that_are_gone(struct fixture *f)
{
	struct snapshot *s = made_snapshot(&f->made);
	struct snap_exit *e;

	assert_non_null(s);
	e = (struct snap_exit *)(uintptr_t)&s->exits[s->host.ex.first];
	e->now.count *= 2;
	ui_snapshot(f->ui, s);
	snapshot_unref(s);
	type(f, "2");
	assert_true(on_screen(f, "by VM (rest 50%):  instance-0000a1 33%"));
	press(f, UK_ESC);
}

/* The host's own rows are there for who selects (all), which nobody does by accident. */
static void all_vms_together(void **state)
{
	struct fixture *f = *state;
	struct demand d;

	assert_non_null(strstr(line(f, 4), " (all)"));
	assert_non_null(strstr(selected(f), "instance-0"));
	type(f, "g");
	assert_non_null(strstr(selected(f), "(all)"));
	ui_demand(f->ui, &d);
	assert_int_equal(d.vm, 0); /* no VM's vCPUs are kept in detail for it */
	next_snapshot(f);
	assert_non_null(strstr(selected(f), "(all)"));
	type(f, "2");
	assert_non_null(strstr(line(f, 3), "vmexit"));
	assert_non_null(strstr(line(f, 3), " all VMs"));
	assert_true(on_screen(f, "MSR_WRITE"));
	/* instance-0000a1 of the made VMs makes 212,000 exits a second, 52% of them these. */
	assert_true(on_screen(f, "by VM:  instance-0000a1 66%"));
	type(f, "3e");
	assert_true(on_screen(f, "0x3f8:POUT"));
	press(f, UK_ESC);
	rest_of_those_that_are_gone(f);
	type(f, "9");
	assert_true(on_screen(f, "select one VM to see its threads"));
	press(f, UK_ESC);
	type(f, "i");
	assert_true(on_screen(f, "(all) is all VMs of this host together"));
	press(f, UK_ESC);
	type(f, "\r"); /* opened: the vCPUs of all of them */
	assert_non_null(strstr(line(f, 3), "TID"));
	press(f, UK_ESC);
	assert_null(strstr(line(f, 3), "TID"));
	assert_non_null(strstr(selected(f), "(all)"));
	type(f, "j2");
	assert_non_null(strstr(line(f, 3), "instance-0"));
	type(f, "\tG2"); /* what is no VM has none */
	assert_true(on_screen(f, "only VMs exit"));
	press(f, UK_ESC);
	/* Of some VMs only it would be no sum. */
	type(f, "fvm-00\r");
	assert_false(on_screen(f, "(all)"));
	press(f, UK_ESC);
	assert_true(on_screen(f, "(all)"));
}

/* A figure of (all) is known as well as those that it is made of. */
static void all_is_partial_with_unknown_parts(void **state)
{
	struct fixture *f = *state;
	struct snap_vm *vms;
	struct snapshot *s;

	assert_non_null(strstr(line(f, 4), " 1078.4 "));
	s = made_snapshot(&f->made);
	assert_non_null(s);
	vms = (struct snap_vm *)(uintptr_t)s->vms;
	vms[0].use.cpu = value_pending(); /* one does not know it: the rest, marked */
	for (size_t i = 0; i < s->nvms; i++)
		vms[i].use.guest = value_na(WHY_NO_RIGHT); /* nobody */
	ui_snapshot(f->ui, s);
	snapshot_unref(s);
	ui_draw(f->ui, f->s);
	assert_non_null(strstr(line(f, 4), "~677.4 "));
	assert_non_null(strstr(line(f, 4), " n/a "));
	f->made.no_exits = true;
	next_snapshot(f);
	assert_non_null(strstr(line(f, 4), "n/a"));
	f->made.nvms = 0;
	f->made.no_exits = false;
	next_snapshot(f);
	assert_false(on_screen(f, "(all)"));
	assert_non_null(strstr(selected(f), "(other)"));
}

static void choose_sort(struct fixture *f, const char *title)
{
	type(f, "s");
	press(f, UK_HOME);
	for (int i = 0; i < 60 && !strstr(selected(f), title); i++)
		press(f, UK_DOWN);
	assert_non_null(strstr(selected(f), title));
	type(f, "\r");
}

/* The order is never a riddle: a column that is not there is named in the bar. */
static void sorted_by_what_is_not_on_screen(void **state)
{
	struct fixture *f = *state;
	const char *bar = line(f, 23);

	assert_null(strstr(bar, " by "));
	choose_sort(f, " PID ");
	assert_non_null(strstr(line(f, 23), " by PID"));
	assert_null(strstr(line(f, 3), "PID"));
	resize(f, 24, 132);
	assert_non_null(strstr(line(f, 3), "PID"));
	assert_null(strstr(line(f, 23), " by "));
	choose_sort(f, "%CPU ");
	resize(f, 24, 80);
	assert_null(strstr(line(f, 23), " by "));
	choose_sort(f, "EXIT/s ");
	resize(f, 10, 40); /* dropped there */
	assert_false(on_screen(f, " EXIT/s "));
	assert_non_null(strstr(line(f, 9), " by EXIT/s"));
	resize(f, 24, 80);
	type(f, "2"); /* a pane has its own order */
	assert_null(strstr(line(f, 23), " by "));
	choose_sort(f, "p99.9 ");
	assert_non_null(strstr(line(f, 23), " by p99.9"));
	type(f, "\t");
	assert_null(strstr(line(f, 23), " by "));
}

static void menus_are_cut_visibly(void **state)
{
	struct fixture *f = *state;

	type(f, "s");
	press(f, UK_HOME);
	assert_true(on_screen(f, "percent of one~"));
	resize(f, 24, 40);
	type(f, "\x1b"
		"C");
	assert_int_equal(line(f, 3)[39], '~');
}

static void chosen_columns(void **state)
{
	struct fixture *f = *state;

	type(f, "C");
	press(f, UK_DOWN);
	type(f, " "); /* vCPU off */
	press(f, UK_DOWN);
	type(f, "+"); /* %CPU to the right of %GUEST */
	press(f, UK_ESC);
	assert_null(strstr(line(f, 3), "vCPU"));
	assert_true(strstr(line(f, 3), "%GUEST") < strstr(line(f, 3), "%CPU"));
	type(f, "CR");
	press(f, UK_ESC);
	assert_non_null(strstr(line(f, 3), "vCPU"));
}

static void pause_and_steps(void **state)
{
	struct fixture *f = *state;

	next_snapshot(f);
	next_snapshot(f);
	assert_non_null(strstr(line(f, 0), "14:22:05"));
	type(f, " ");
	next_snapshot(f);
	assert_non_null(strstr(line(f, 0), "PAUSED 14:22:05 (-1 s)"));
	type(f, ",,");
	assert_non_null(strstr(line(f, 0), "PAUSED 14:22:03 (-3 s)"));
	type(f, ",");
	assert_true(on_screen(f, "the oldest interval in memory"));
	type(f, "...");
	assert_non_null(strstr(line(f, 0), "PAUSED 14:22:06 (-0 s)"));
	type(f, " ");
	assert_non_null(strstr(line(f, 0), " 14:22:06 "));
	assert_null(strstr(line(f, 0), "PAUSED"));
}

static void requests(void **state)
{
	struct fixture *f = *state;
	struct ui_request r;

	assert_int_equal(press(f, 'r').kind, UI_RESET);
	assert_int_equal(press(f, UK_CTRL('L')).kind, UI_REDRAW);
	assert_int_equal(press(f, UK_CTRL('Z')).kind, UI_SUSPEND);
	r = press(f, '+');
	assert_int_equal(r.kind, UI_DELAY);
	assert_true(r.delay_s == 2);
	assert_true(press(f, '-').delay_s == 1);
	assert_true(press(f, '-').delay_s == 0.5);
	type(f, "d");
	press(f, UK_CTRL('U'));
	type(f, "0.05");
	assert_int_equal(press(f, UK_ENTER).kind, UI_NONE);
	assert_true(on_screen(f, "0.1 to 3600"));
	type(f, "d3"); /* what is typed replaces the interval that is proposed */
	r = press(f, UK_ENTER);
	assert_true(r.kind == UI_DELAY && r.delay_s == 3);
	/* Between two steps: the next one in that direction. */
	assert_true(press(f, '-').delay_s == 2);
	assert_int_equal(press(f, 'D').kind, UI_NONE); /* there are guests */
	f->made.nvms = 0;
	next_snapshot(f);
	assert_int_equal(press(f, 'D').kind, UI_DEMO);
	assert_int_equal(press(f, 'q').kind, UI_QUIT);
	assert_int_equal(press(f, UK_F0 + 10).kind, UI_QUIT);
}

static void q_closes_help_and_menus(void **state)
{
	struct fixture *f = *state;

	static const char *const open[] = {"?", "h", "i", "s", "C"};

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		type(f, open[i]);
		assert_int_equal(press(f, 'q').kind, UI_NONE);
		assert_non_null(strstr(line(f, 3), "MAX@v"));
	}
	/* In a prompt it is a letter. */
	type(f, "fq");
	assert_true(on_screen(f, "filter: q"));
}

static void demand_follows_what_is_visible(void **state)
{
	struct fixture *f = *state;
	struct demand d;

	ui_demand(f->ui, &d);
	assert_int_equal(d.kinds, KIND_BIT(KIND_VMEXIT));
	assert_false(d.tasks); /* the row (other) needs them now and then only */
	assert_false(d.threads);
	type(f, "j3");
	ui_demand(f->ui, &d);
	assert_true(d.kinds & KIND_BIT(KIND_MMIO));
	assert_int_equal(d.vm, 2);
	type(f, "e");
	ui_demand(f->ui, &d);
	assert_true(d.kinds & KIND_BIT(KIND_IOPORT));
	type(f, "9");
	ui_demand(f->ui, &d);
	assert_true(d.threads);
	assert_false(d.kinds & KIND_BIT(KIND_IOPORT));
	assert_false(d.waits); /* every change of tasks on the host pays for it */
	type(f, "5");
	ui_demand(f->ui, &d);
	assert_true(d.waits);
	assert_false(d.waits_all);
	type(f, "9");
	ui_demand(f->ui, &d);
	assert_false(d.waits);
	press(f, UK_ESC);
	ui_demand(f->ui, &d);
	assert_false(d.threads);
	/* A selected vCPU: its VM's rows are wanted, not every VM's. */
	type(f, "v");
	ui_demand(f->ui, &d);
	assert_false(d.exits_all_vcpus);
	assert_int_equal(d.vm, 1);
	assert_int_equal(d.vcpu, 1003);
	type(f, "vG\r");
	ui_demand(f->ui, &d);
	assert_true(d.tasks);
}

static unsigned slices(const struct fixture *f)
{
	struct demand d;

	ui_demand(f->ui, &d);
	assert_true(d.slice_ns > 0);
	return d.slices;
}

/* Each event of a vCPU is asked for while its histogram is on screen, and not a key longer. */
static void finer_is_of_one_vcpu(void **state)
{
	struct fixture *f = *state;

	type(f, "z");
	assert_true(on_screen(f, "for the pane Exits"));
	type(f, "j2z");
	assert_true(on_screen(f, "select one vCPU"));
	assert_int_equal(slices(f), 0);
	press(f, UK_ESC);
	type(f, "\r\r2");
	assert_int_equal(slices(f), 0);
	type(f, "z");
	assert_int_equal(slices(f), KIND_BIT(KIND_VMEXIT));
	assert_true(on_screen(f, "of no other"));
	type(f, "e");
	assert_int_equal(slices(f), KIND_BIT(KIND_USEREXIT));
	type(f, "z");
	assert_int_equal(slices(f), 0);
	type(f, "z4"); /* another pane */
	assert_int_equal(slices(f), 0);
	type(f, "2");
	assert_int_equal(slices(f), 0);
	type(f, "z");
	assert_true(slices(f));
	press(f, UK_ESC); /* the list comes in the pane's place */
	assert_int_equal(slices(f), 0);
	resize(f, 36, 100);
	type(f, "2z");
	assert_true(slices(f));
	type(f, "k"); /* another vCPU */
	type(f, "j");
	assert_int_equal(slices(f), 0);
}

static void messages_go_away(void **state)
{
	struct fixture *f = *state;

	type(f, "r");
	assert_true(on_screen(f, "totals set to zero"));
	for (int i = 0; i < 8; i++)
		next_snapshot(f);
	assert_false(on_screen(f, "totals set to zero"));
}

static void saves_without_overwriting(void **state)
{
	struct fixture *f = *state;
	char dir[] = "/tmp/kvmtop-save-XXXXXX", path[64], text[64];
	struct stat st;
	FILE *file;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/screen.txt", dir);
	for (int i = 0; i < 2; i++) {
		type(f, "P");
		press(f, UK_CTRL('U'));
		type(f, path);
		press(f, UK_ENTER);
		assert_true(on_screen(f, i ? "File exists" : "saved as"));
	}
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_non_null(strstr(text, "kvmtop node17"));
	fclose(file);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void history_thins_by_age(void **state)
{
	struct history *h = history_new(400 * 1000);
	struct made m = {.nvms = 1};
	size_t n;
	int64_t newest, oldest;

	(void)state;
	assert_non_null(h);
	for (m.step = 0; m.step < 2000; m.step++) {
		struct snapshot *s = made_snapshot(&m);

		assert_non_null(s);
		s->bytes = 2000; /* 200 of them fill the budget */
		assert_int_equal(history_push(h, s), 0);
		snapshot_unref(s);
		assert_true(history_bytes(h) <= 400 * 1000);
	}
	n = history_n(h);
	assert_in_range(n, 150, 200);
	newest = history_at(h, n - 1)->time;
	oldest = history_at(h, 0)->time;
	assert_null(history_at(h, n));
	/* More than the 200 seconds that an even row would reach back; the last minute is whole. */
	assert_true(newest - oldest > 300 * 1000000000LL);
	assert_int_equal(newest - history_at(h, n - 50)->time, 49 * 1000000000LL);
	for (size_t i = 1; i < n; i++)
		assert_true(history_at(h, i)->time > history_at(h, i - 1)->time);
	assert_int_equal(history_find(h, newest), n - 1);
	assert_int_equal(history_find(h, newest + 5), n - 1);
	assert_int_equal(history_find(h, 0), 0);
	history_free(h);
	history_free(NULL);
}

static bool not_the_first(const void *ctx, const struct snap_vm *vm)
{
	(void)ctx;
	return strcmp(vm->name, "instance-0000a1") != 0;
}

/* Figures that were there a moment ago are n/a now: the head says what became of them. */
static void given_up_events_are_told(void **state)
{
	struct fixture *f = *state;
	bool said = false;

	f->made.dropped = true;
	for (int i = 0; i < 40 && !said; i++) { /* it takes turns with the findings */
		next_snapshot(f);
		said = strstr(line(f, 2), "vmexit not collected: it would cost more than 2%");
	}
	assert_true(said);
}

/* With -p or -M the head has no finding of a VM that is not in the list. */
static void findings_are_of_listed_vms(void **state)
{
	const struct ui_config cfg = {.delay_s = 1, .utc = true, .want_vm = not_the_first};
	struct fixture *f = *state;

	assert_non_null(strstr(line(f, 2), "instance-0000a1"));
	ui_free(f->ui);
	f->ui = ui_new(&cfg);
	assert_non_null(f->ui);
	next_snapshot(f);
	assert_null(strstr(line(f, 2), "instance-0000a1"));
	assert_true(on_screen(f, "web01"));
}

/* In a recording the keys of time ask the caller; nothing changes what was recorded. */
static void replay_keys(void **state)
{
	static const struct {
		char key;
		enum ui_request_kind kind;
		int by;
	} rows[] = {
		{',', UI_STEP, -1}, {'.', UI_STEP, 1},	 {'[', UI_MINUTE, -1}, {']', UI_MINUTE, 1},
		{'+', UI_SPEED, 1}, {'-', UI_SPEED, -1}, {' ', UI_PLAY, 0},    {'w', UI_WORST, 0},
	};
	struct fixture *f = *state;
	struct ui_request r;

	assert_true(on_screen(f, "REPLAY 2026-03-06 14:22:0"));
	assert_true(on_screen(f, "b go to"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		r = press(f, (unsigned char)rows[i].key);
		assert_int_equal(r.kind, rows[i].kind);
		assert_int_equal(r.by, rows[i].by);
	}
	for (const char *k = "rdD"; *k; k++) {
		assert_int_equal(press(f, (unsigned char)*k).kind, UI_NONE);
		assert_true(on_screen(f, "not in replay"));
	}
	type(f, "b03:12");
	r = press(f, UK_ENTER);
	assert_int_equal(r.kind, UI_GO_TO);
	assert_string_equal(r.text, "03:12");
	/* Nothing typed is no time. */
	type(f, "b");
	assert_int_equal(press(f, UK_ENTER).kind, UI_NONE);
	ui_playing(f->ui, 4);
	ui_draw(f->ui, f->s);
	assert_true(on_screen(f, "4x"));
	assert_true(on_screen(f, "space stop"));
	ui_playing(f->ui, 0);
	ui_draw(f->ui, f->s);
	assert_true(on_screen(f, "space play"));
}

static void time_keys_are_for_replay(void **state)
{
	struct fixture *f = *state;

	for (const char *k = "[]bw"; *k; k++) {
		assert_int_equal(press(f, (unsigned char)*k).kind, UI_NONE);
		assert_true(on_screen(f, "only in replay"));
	}
}

int main(void)
{
#define FLOW(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		FLOW(selection_follows_its_vm),
		FLOW(enter_goes_down_and_esc_up),
		FLOW(a_vm_that_ended_says_so),
		FLOW(the_chosen_pane_stays),
		FLOW(vcpus_of_the_whole_host),
		FLOW(filter_while_typing),
		FLOW(each_level_has_its_filter),
		FLOW(search_goes_round),
		FLOW(sorting),
		FLOW(sorted_by_what_is_not_on_screen),
		FLOW(menus_are_cut_visibly),
		FLOW(all_vms_together),
		FLOW(all_is_partial_with_unknown_parts),
		FLOW(chosen_columns),
		FLOW(pause_and_steps),
		FLOW(requests),
		FLOW(q_closes_help_and_menus),
		FLOW(demand_follows_what_is_visible),
		FLOW(finer_is_of_one_vcpu),
		FLOW(messages_go_away),
		FLOW(saves_without_overwriting),
		FLOW(given_up_events_are_told),
		FLOW(findings_are_of_listed_vms),
		FLOW(time_keys_are_for_replay),
		cmocka_unit_test_setup_teardown(replay_keys, setup_replay, teardown),
		cmocka_unit_test(history_thins_by_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
