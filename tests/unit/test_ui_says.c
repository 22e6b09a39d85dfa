// SPDX-License-Identifier: GPL-2.0-only
/* What the screen says where there is nothing to show, and about a row: words, not figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "keymap.h"
#include "ui_fixture.h"
/* The helpers are part of each test program that needs them. */
#include "made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */
#include "ui_fixture.c" /* NOLINT(bugprone-suspicious-include) */

/* Without its VM a pane has nothing: the host's figures are not to be taken for the VM's. */
static void panes_of_a_vm_that_ended(void **state)
{
	struct fixture *f = *state;

	resize(f, 40, 100);
	type(f, "j\r");
	f->made.nvms = 1;
	next_snapshot(f);
	for (const char *k = "12345679"; *k; k++) {
		type(f, (const char[]){*k, '\0'});
		assert_false(on_screen(f, "vmx_vcpu_run"));
		assert_false(on_screen(f, "MSR_WRITE"));
		if (*k != '6') /* the host's CPUs are there whoever ends */
			assert_true(on_screen(f, "no figures: this VM has ended"));
	}
	press(f, UK_ESC);
	press(f, UK_ESC);
	type(f, "fnosuchvm\r4");
	assert_true(on_screen(f, "no VM is selected"));
	assert_false(on_screen(f, "vmx_vcpu_run"));
}

/* A command that mends it is of use only where all of it is on screen. */
static void what_mends_it_is_whole(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	resize(f, 24, 80);
	f->made.no_waits = true;
	f->made.step = f->step++;
	s = made_snapshot(&f->made);
	assert_non_null(s);
	s->nfindings = 0;
	((struct snap_source *)(uintptr_t)s->sources)[0] = (struct snap_source){
		.name = "kvm_events",
		.state = SOURCE_OFF,
		.why = "tracefs is not mounted",
		.mend = "mount -t tracefs tracefs /sys/kernel/tracing",
	};
	put_snapshot(f, s);
	assert_true(on_screen(
		f, " - tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing"));
	resize(f, 24, 100);
	assert_true(on_screen(f, " - kvm_events: tracefs is not mounted: mount -t "));
}

/* Nor are the VM's those of a vCPU of it that was unplugged. */
static void panes_of_a_vcpu_that_ended(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;
	uint32_t first;

	resize(f, 40, 100);
	type(f, "j\r4\r");
	assert_true(on_screen(f, "web01 vCPU 3"));
	assert_true(on_screen(f, "SYMBOL"));
	f->made.step = f->step++;
	s = made_snapshot(&f->made);
	assert_non_null(s);
	first = s->vms[1].vcpu_first;
	((struct snap_vcpu *)(uintptr_t)s->vcpus)[first + 3].id = 9999;
	put_snapshot(f, s);
	for (const char *k = "12345679"; *k; k++) {
		type(f, (const char[]){*k, '\0'});
		if (*k != '6')
			assert_true(on_screen(f, "no figures: this vCPU has ended"));
	}
}

/* vCPUs of equal pins are joined, and a pin that is shared is told to all who share it. */
static void pins_in_the_row_in_full(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s = made_snapshot(&f->made);
	struct snap_vcpu *v;
	struct snap_finding *found;

	assert_non_null(s);
	v = (struct snap_vcpu *)(uintptr_t)s->vcpus;
	v[1].pin = v[5].pin = "2"; /* of the first VM, and of web01 */
	found = (struct snap_finding *)(uintptr_t)&s->findings[0];
	found->rule = "pin-overlap";
	found->vcpu = 1;
	found->text = "vCPU 1 and web01 vCPU 1 are pinned to CPU 2 alone";
	put_snapshot(f, s);
	type(f, "i");
	assert_true(on_screen(f, "0,2: 0-7, 1: 2, 3: 3"));
	assert_true(on_screen(f, "are pinned to CPU 2 alone"));
	type(f, "qji");
	assert_true(on_screen(f, "name                web01"));
	assert_true(on_screen(f, "are pinned to CPU 2 alone"));
	assert_true(on_screen(f, "web01 vCPU 1: 12% steal"));
	type(f, "qji"); /* the third has no part in it */
	assert_false(on_screen(f, "finding"));
	type(f, "qk\rgi"); /* nor web01's vCPU 0: it is told of its VM only */
	assert_true(on_screen(f, "vCPU                0;"));
	assert_null(strstr(line(f, 4), "are pinned"));
	assert_true(on_screen(f, "finding             vCPU 1 and web01 vCPU 1 are pinned"));
	type(f, "qji");
	assert_true(on_screen(f, "vCPU                1;"));
	assert_non_null(strstr(line(f, 4), "are pinned to CPU 2 alone"));
}

/* Enter on an exit that no guest code is known of says which have it, in the user's words. */
static void where_guest_code_is_known(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	resize(f, 40, 100);
	type(f, "j2e\t\r");
	assert_true(on_screen(f, "2 Exits: userexit"));
	assert_true(on_screen(f, "which guest code: only for vmexit rows (e)"));
	f->made.step++;
	s = made_snapshot(&f->made);
	assert_non_null(s);
	s->host.entry_exit = false;
	put_snapshot(f, s);
	assert_true(on_screen(f, "only for vmexit rows, and this KVM fires no kvm_exit"));
}

/* The graph below the exits says what it draws, and why it is no histogram. */
static void graphs_have_titles(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	type(f, "j2");
	assert_true(on_screen(f, " MSR_WRITE: how long they took, over time "));
	f->made.step++;
	s = made_snapshot(&f->made);
	assert_non_null(s);
	for (size_t i = 0; i < s->nexits; i++)
		((struct snap_exit *)(uintptr_t)s->exits)[i].has_time = false;
	put_snapshot(f, s);
	assert_true(on_screen(f, " MSR_WRITE: rate over time (no histogram: this KVM does not "));
	resize(f, 24, 60);
	assert_true(on_screen(f, " MSR_WRITE: rate over time (not timed here) "));
}

/* List and pane are both on screen: the help explains both, what has the focus first. */
static void columns_of_both(void **state)
{
	struct fixture *f = *state;

	type(f, "?\t");
	assert_true(on_screen(f, "Columns of the list VMs, which has the focus"));
	type(f, "q");
	resize(f, 60, 100);
	type(f, "j2?");
	assert_true(on_screen(f, "below, those of the pane Exits"));
	press(f, UK_END);
	assert_true(on_screen(f, "p99.9"));
	assert_true(on_screen(f, "TIME%"));
	type(f, "q\t?");
	press(f, UK_HOME);
	assert_true(on_screen(f, "Columns of the pane Exits, which has the focus"));
	assert_false(on_screen(f, "MAX@v"));
}

/* A VM that was only guessed is marked where VMs are counted and where it is opened. */
static void guessed_vms_are_marked(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s = made_snapshot(&f->made);

	assert_non_null(strstr(line(f, 0), "  8 VM"));
	assert_non_null(s);
	((struct snap_vm *)(uintptr_t)s->vms)[1].quality = SNAP_QUALITY_GUESSED;
	put_snapshot(f, s);
	assert_non_null(strstr(line(f, 0), " ~8 VM"));
	type(f, "\r");
	assert_non_null(strstr(line(f, 0), " instance-0000a1"));
	press(f, UK_ESC);
	type(f, "j\r");
	assert_non_null(strstr(line(f, 0), " ~web01"));
	type(f, "?");
	press(f, UK_END);
	assert_true(on_screen(f, "~4 VM"));
}

static bool none_of_them(const void *ctx, const struct snap_vm *vm)
{
	(void)ctx;
	(void)vm;
	return false;
}

/* A VM that -p named and that has ended leaves a list that says so; the host has others. */
static void a_list_of_no_selected_vm(void **state)
{
	const struct ui_config cfg = {
		.delay_s = 1, .utc = true, .want_vm = none_of_them, .can_demo = true};
	struct fixture *f = *state;

	ui_free(f->ui);
	f->ui = ui_new(&cfg);
	assert_non_null(f->ui);
	next_snapshot(f);
	assert_true(on_screen(f, "no VM here is selected by -p or -M: it has ended"));
}

/* Bad lines of the settings: the first, and how many there are. */
static void slips_in_the_settings(void **state)
{
	char path[] = "/tmp/kvmtop-test-XXXXXX";
	const struct ui_config cfg = {.delay_s = 1, .utc = true, .settings = path};
	static const char text[] = "bogus = 3\ncolumns.vms = VM,%NOPE,%CPU\nsort.vms = no\n";
	struct fixture *f = *state;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	ui_free(f->ui);
	f->ui = ui_new(&cfg);
	unlink(path);
	assert_non_null(f->ui);
	next_snapshot(f);
	assert_true(on_screen(f, "settings, line 1: 'bogus = 3' is left out, and 2 more lines (/"));
}

/* Of the vCPUs of a CPU as many as there is room for, each whole. */
static void a_list_of_words_is_cut_between_them(void **state)
{
	struct fixture *f = *state;

	type(f, "6");
	resize(f, 24, 100);
	assert_true(on_screen(f, " instance-0000a1/3 ~"));
	resize(f, 24, 132);
	assert_true(on_screen(f, " instance-0000a1/3 web01/1"));
}

int main(void)
{
#define SAYS(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		SAYS(panes_of_a_vm_that_ended),
		SAYS(panes_of_a_vcpu_that_ended),
		SAYS(pins_in_the_row_in_full),
		SAYS(where_guest_code_is_known),
		SAYS(graphs_have_titles),
		SAYS(columns_of_both),
		SAYS(guessed_vms_are_marked),
		SAYS(what_mends_it_is_whole),
		SAYS(a_list_of_no_selected_vm),
		SAYS(slips_in_the_settings),
		SAYS(a_list_of_words_is_cut_between_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
