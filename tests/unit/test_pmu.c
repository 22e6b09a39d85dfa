// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests' PMUs: debugfs' file (a recording, and files written after the patch), what follows from
 * MSR writes, the words, and the rows of a snapshot.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model_fixture.h"
#include "pmu.h"
#include "vpmu_msrs.h"

#define HEAD                                                                                       \
	"format=1 enabled=1 version=2 gp=2 fixed=1 gp_width=48 fixed_width=40 "                    \
	"global_ctrl=0x100000003 global_status=0x1 fixed_ctr_ctrl=0xb\n"
#define GP0                                                                                        \
	"counter=gp0 select=0x53003c value=0xfffffffff000 enabled=1 overflows=7 event=active "     \
	"time_enabled=9000000000 time_running=4500000000\n"
#define GP1                                                                                        \
	"counter=gp1 select=0x4300c0 value=0x12 enabled=1 overflows=0 event=error time_enabled=0 " \
	"time_running=0\n"
#define FIXED0                                                                                     \
	"counter=fixed0 select=0xb value=0x99 enabled=1 overflows=0 event=inactive "               \
	"time_enabled=10 time_running=10\n"

static int parse(const char *text, struct pmu_state *s)
{
	return pmu_parse(text, strlen(text), s);
}

/* ---- the file ---- */

static void read_recording(const char *path, struct pmu_state *s)
{
	FILE *f = fopen(path, "r");
	char text[2048];
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_int_equal(pmu_parse(text, n, s), 0);
}

static void a_recording_of_a_pmu_that_is_off(void **state)
{
	struct pmu_state s;
	char text[160];

	(void)state;
	read_recording("tests/data/pmu/6.1-svm-off", &s);
	assert_false(s.enabled);
	assert_int_equal(s.version, 1);
	assert_int_equal(s.gp, 4);
	assert_int_equal(s.gp_width, 48);
	assert_int_equal(s.fixed, 0);
	assert_int_equal(s.n, 4);
	assert_int_equal(s.counter[3].nr, 3);
	assert_int_equal(s.counter[3].event, PMU_EVENT_NONE);
	pmu_summary(&s, text, sizeof(text));
	assert_string_equal(text, "off: KVM gives this guest no PMU");
	pmu_note(&s, &s.counter[0], -1, text, sizeof(text));
	assert_string_equal(text, "");
}

static void a_recording_of_counters_that_count(void **state)
{
	static const char *const name[] = {"cycles", "host:exits", "host:halts", "", "", ""};
	struct pmu_state s;
	char text[160];

	(void)state;
	read_recording("tests/data/pmu/6.1-svm-soft", &s);
	s.vendor = PMU_AMD;
	assert_true(s.enabled && s.soft && !s.has_global_ctrl);
	assert_int_equal(s.n, 6);
	pmu_summary(&s, text, sizeof(text));
	assert_string_equal(text, "soft, version 1, 6 counters of 48 bits");
	for (size_t i = 0; i < s.n; i++) {
		pmu_event_name(&s, &s.counter[i], text, sizeof(text));
		assert_string_equal(text, name[i]);
		pmu_note(&s, &s.counter[i], -1, text, sizeof(text));
		assert_string_equal(text, "");
		assert_false(pmu_wrong(&s, &s.counter[i], -1));
		assert_int_equal(s.counter[i].enabled, i < 3);
	}
	assert_true(s.counter[0].value == 0x3aa32d3 && s.counter[0].time_running == 23842936);
	pmu_event_mode(&s, &s.counter[1], text, sizeof(text));
	assert_string_equal(text, "user+kernel int");
}

static void each_key_finds_its_place(void **state)
{
	struct pmu_state s;

	(void)state;
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	assert_true(s.enabled);
	assert_int_equal(s.version, 2);
	assert_int_equal(s.fixed_width, 40);
	assert_true(s.global_ctrl == 0x100000003 && s.global_status == 1 && s.fixed_ctr_ctrl == 11);
	assert_true(s.counter[0].select == 0x53003c && s.counter[0].value == 0xfffffffff000);
	assert_true(s.counter[0].enabled && s.counter[0].overflows == 7);
	assert_true(s.counter[0].time_enabled == 9000000000 &&
		    s.counter[0].time_running == 4500000000);
	assert_int_equal(s.counter[0].event, PMU_EVENT_ACTIVE);
	assert_int_equal(s.counter[1].event, PMU_EVENT_ERROR);
	assert_true(s.counter[2].fixed && s.counter[2].nr == 0);
}

/* Keys may be added, and states. */
static void what_a_later_kernel_adds_is_passed_over(void **state)
{
	struct pmu_state s;

	(void)state;
	assert_int_equal(parse("format=1 soft=1 enabled=1 version=1 gp=1 fixed=0 gp_width=48 "
			       "fixed_width=0 global_ctrl=0x0 global_status=0x0 "
			       "fixed_ctr_ctrl=0x0 note=words\n"
			       "counter=gp0 select=0x76 kind=soft value=0x1 enabled=0 overflows=0 "
			       "event=software time_enabled=0 time_running=0\n",
			       &s),
			 0);
	assert_int_equal(s.counter[0].event, PMU_EVENT_OTHER);
	assert_true(s.soft);
}

static void all_else_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"\n",
		HEAD,
		HEAD GP0 GP1,
		HEAD GP1 GP0 FIXED0, /* another order */
		HEAD GP0 GP1 FIXED0 GP0,
		HEAD GP0 GP1 FIXED0 "\n",
		"enabled=1 " HEAD GP0 GP1 FIXED0, /* the format does not come first */
		"format=1 format=1\n",
		"format=1 enabled=1\n",
		"format=1 enabled=2 version=1 gp=0 fixed=0 gp_width=0 fixed_width=0 "
		"global_ctrl=0x0 "
		"global_status=0x0 fixed_ctr_ctrl=0x0\n",
		"format=1 enabled=1 enabled=1 version=1 gp=0 fixed=0 gp_width=0 fixed_width=0 "
		"global_ctrl=0x0 global_status=0x0 fixed_ctr_ctrl=0x0\n",
		"format=1  enabled=1 version=1 gp=0 fixed=0 gp_width=0 fixed_width=0 "
		"global_ctrl=0x0 "
		"global_status=0x0 fixed_ctr_ctrl=0x0\n",
		"format=1 enabled=1 version=1 gp=0 fixed=0 gp_width=0 fixed_width=0 "
		"global_ctrl=0x10000000000000000 global_status=0x0 fixed_ctr_ctrl=0x0\n",
		"format=1 enabled=1 version=1 gp=0 fixed=0 gp_width=0 fixed_width=0 "
		"global_ctrl=0x global_status=0x0 fixed_ctr_ctrl=0x0\n",
		"format=1 enabled=1 version=1 gp=0 fixed=0 gp_width=0 fixed_width=0 "
		"global_ctrl=0x0 global_status=0x0 fixed_ctr_ctrl=0x0", /* cut */
		HEAD GP0 GP1 "counter=fixed0 select=0xb\n",
		HEAD GP0 GP1 "counter=fixed1 select=0xb value=0x99 enabled=1 overflows=0 "
			     "event=inactive time_enabled=10 time_running=10\n",
	};
	struct pmu_state s;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse(wrong[i], &s), -EINVAL);
	assert_int_equal(parse("format=2 anything=1\n", &s), -EPROTONOSUPPORT);
	assert_int_equal(parse("format=1 enabled=1 version=1 gp=4294967295 fixed=1 gp_width=0 "
			       "fixed_width=0 global_ctrl=0x0 global_status=0x0 "
			       "fixed_ctr_ctrl=0x0\n",
			       &s),
			 -E2BIG);
}

/* ---- MSRs ---- */

static void msrs_are_told_apart(void **state)
{
	static const struct {
		uint32_t msr;
		enum pmu_vendor vendor;
		enum pmu_reg reg;
		uint8_t nr;
	} known[] = {
		{0xc1, PMU_INTEL, PMU_REG_COUNTER, 0},
		{0x4c3, PMU_INTEL, PMU_REG_COUNTER, 2},
		{0x189, PMU_INTEL, PMU_REG_SELECT, 3},
		{0x30a, PMU_INTEL, PMU_REG_FIXED, 1},
		{0x38d, PMU_INTEL, PMU_REG_FIXED_CTRL, 0},
		{0x38f, PMU_INTEL, PMU_REG_GLOBAL_CTRL, 0},
		{0xc0010003, PMU_AMD, PMU_REG_SELECT, 3},
		{0xc0010004, PMU_AMD, PMU_REG_COUNTER, 0},
		{0xc0010204, PMU_AMD, PMU_REG_SELECT, 2},
		{0xc0010205, PMU_AMD, PMU_REG_COUNTER, 2},
		{0xc0000301, PMU_AMD, PMU_REG_GLOBAL_CTRL, 0},
	};
	static const uint32_t none[] = {0,     0x10,  0x8b,	  0xc0,	     0xc9,
					0x1a0, 0x6e0, 0xc0000080, 0xc0010015};
	struct pmu_msr m;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(pmu_msr_find(known[i].msr, &m));
		assert_int_equal(m.vendor, known[i].vendor);
		assert_int_equal(m.reg, known[i].reg);
		assert_int_equal(m.nr, known[i].nr);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(pmu_msr_find(none[i], &m));
	assert_false(pmu_msr_find(0x1000000c1, &m));
}

static struct pmu_access written(uint32_t msr, uint64_t value)
{
	return (struct pmu_access){.msr = msr, .has_value = true, .value = value, .count = 1};
}

static void selectors_follow_from_writes(void **state)
{
	const struct pmu_access a[] = {
		{.msr = 0xc1, .count = 40},  written(0x186, 0x53003c),
		written(0x187, 0x1300c0), /* without EN */
		written(0x188, 0x4300c4),    written(0x38d, 0xb0),
		written(0x38f, 0x200000003), written(0x8b, 1), /* of no PMU */
	};
	struct pmu_state s;

	(void)state;
	pmu_infer(a, sizeof(a) / sizeof(a[0]), &s);
	assert_true(s.inferred);
	assert_int_equal(s.vendor, PMU_INTEL);
	assert_int_equal(s.accesses, 45);
	assert_int_equal(s.n, 4);
	assert_true(s.counter[0].enabled && s.counter[0].accesses == 41);
	assert_false(s.counter[0].has_value);
	assert_false(s.counter[1].enabled); /* its own bit */
	assert_false(s.counter[2].enabled); /* global control */
	assert_true(s.counter[3].fixed && s.counter[3].nr == 1 && s.counter[3].enabled);
	assert_int_equal(s.counter[3].select, 0xb);
}

/* AMD's first four counters have two selects each, which are the same register. */
static void of_two_selects_the_last_written_counts(void **state)
{
	struct pmu_access a[] = {written(0xc0010000, 0x430076), written(0xc0010200, 0x4300c0)};
	struct pmu_state s;

	(void)state;
	for (int legacy = 0; legacy < 2; legacy++) {
		a[0].written = legacy ? 200 : 100;
		a[1].written = legacy ? 100 : 200;
		pmu_infer(a, 2, &s);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.counter[0].select, legacy ? 0x430076 : 0x4300c0);
		assert_int_equal(s.counter[0].accesses, 2);
	}
}

static void refused_writes_are_no_selectors(void **state)
{
	const struct pmu_access a[] = {
		{.msr = 0xc0010200, .refused = true, .count = 3, .nrefused = 3}};
	struct pmu_state s;
	char text[160];

	(void)state;
	pmu_infer(a, 1, &s);
	assert_int_equal(s.vendor, PMU_AMD);
	assert_int_equal(s.n, 1);
	assert_false(s.counter[0].has_select || s.counter[0].enabled);
	assert_true(pmu_wrong(&s, &s.counter[0], -1));
	pmu_note(&s, &s.counter[0], -1, text, sizeof(text));
	assert_non_null(strstr(text, "#GP"));
	pmu_summary(&s, text, sizeof(text));
	assert_non_null(strstr(text, "#GP each time"));
}

/* By another register of the same counter, or a value with reserved bits. */
static void a_refused_write_takes_nothing_away(void **state)
{
	struct pmu_access bits = written(0x186, 0x53003c);
	const struct pmu_access other[] = {
		written(0xc0010000, 0x530076),
		{.msr = 0xc0010200, .refused = true, .count = 1, .nrefused = 1}};
	struct pmu_state s;
	char text[160];

	(void)state;
	bits.refused = true;
	pmu_infer(&bits, 1, &s);
	assert_true(s.counter[0].enabled && s.counter[0].select == 0x53003c);
	pmu_note(&s, &s.counter[0], -1, text, sizeof(text));
	assert_null(strstr(text, "#GP"));
	pmu_infer(other, 2, &s);
	assert_int_equal(s.n, 1);
	assert_true(s.counter[0].enabled && s.counter[0].select == 0x530076);
	assert_false(s.counter[0].refused);
}

/* ---- words ---- */

static const char *event_of(enum pmu_vendor vendor, uint64_t select)
{
	static char text[40];
	const struct pmu_state s = {.vendor = (uint8_t)vendor};
	const struct pmu_counter c = {.has_select = true, .select = select};

	pmu_event_name(&s, &c, text, sizeof(text));
	return text;
}

static void events_have_their_names(void **state)
{
	(void)state;
	assert_string_equal(event_of(PMU_INTEL, 0x43003c), "cycles");
	assert_string_equal(event_of(PMU_INTEL, 0x43412e), "cache-misses");
	assert_string_equal(event_of(PMU_INTEL, 0x4300c5), "branch-misses");
	assert_string_equal(event_of(PMU_AMD, 0x430076), "cycles");
	assert_string_equal(event_of(PMU_AMD, 0x4300c3), "branch-misses");
	assert_string_equal(event_of(PMU_AMD, 0x430964), "cache-misses");
	/* 0xc2 is another event on Intel; so is bit 32 and above on AMD. */
	assert_string_equal(event_of(PMU_INTEL, 0x4300c2), "r00c2");
	assert_string_equal(event_of(PMU_AMD, 0x1004301c0), "r101c0");
	assert_string_equal(event_of(PMU_AMD, 0), "");
}

/* On a kernel with our patches; elsewhere 0xff is whatever the CPU makes of it. */
static void host_events_have_names(void **state)
{
	const struct pmu_state s = {.vendor = PMU_AMD, .enabled = true};
	struct pmu_counter c = {.has_select = true, .select = 0x5301ff, .event = PMU_EVENT_HOST};
	char text[40];

	(void)state;
	c.enabled = true;
	pmu_event_name(&s, &c, text, sizeof(text));
	assert_string_equal(text, "host:exits");
	pmu_note(&s, &c, -1, text, sizeof(text));
	assert_string_equal(text, "");
	c.event = PMU_EVENT_ACTIVE;
	pmu_event_name(&s, &c, text, sizeof(text));
	assert_string_equal(text, "r01ff");
}

static void host_events_keep_their_names_when_they_stop(void **state)
{
	struct pmu_state s = {.vendor = PMU_AMD, .enabled = true, .soft = true};
	struct pmu_counter c = {.has_select = true, .select = 0x5304ff, .event = PMU_EVENT_NONE};
	char text[160];

	(void)state;
	s.has_global_ctrl = true;
	pmu_event_name(&s, &c, text, sizeof(text));
	assert_string_equal(text, "host:userspace");
	pmu_note(&s, &c, -1, text, sizeof(text));
	assert_string_equal(text, "off by the guest's global control");
	c.enabled = true;
	pmu_note(&s, &c, -1, text, sizeof(text));
	assert_string_equal(text,
			    "does not count: the host does not allow it (kvm.soft_pmu_events, "
			    "or the VM's event filter)");
	assert_true(pmu_wrong(&s, &c, -1));
	/* Which events there are of KVM's own only its file tells. */
	s.inferred = true;
	c.event = PMU_EVENT_UNKNOWN;
	pmu_event_name(&s, &c, text, sizeof(text));
	assert_string_equal(text, "r04ff");
}

static void clocks_stand_for_few_events(void **state)
{
	struct pmu_state s = {.vendor = PMU_AMD, .enabled = true, .soft = true};
	struct pmu_counter c = {
		.has_select = true, .select = 0x4300c0, .enabled = true, .event = PMU_EVENT_NONE};
	char text[160];

	(void)state;
	pmu_note(&s, &c, -1, text, sizeof(text));
	assert_string_equal(text, "does not count: clocks stand for cycles of user+kernel alone; "
				  "or it is filtered");
	s.soft = false;
	pmu_note(&s, &c, -1, text, sizeof(text));
	assert_non_null(strstr(text, "this CPU lacks it"));
}

static void modes_say_when(void **state)
{
	const struct pmu_state s = {.vendor = PMU_AMD};
	struct pmu_counter c = {.has_select = true, .select = 0x1d70000ull | 1ull << 40 | 0x76};
	char text[80];

	(void)state;
	pmu_event_mode(&s, &c, text, sizeof(text));
	assert_string_equal(text, "user+kernel int edge cmask=1 inv guest-only");
	c = (struct pmu_counter){.fixed = true, .has_select = true, .select = 9};
	pmu_event_mode(&s, &c, text, sizeof(text));
	assert_string_equal(text, "kernel int");
}

static void notes_say_why_not(void **state)
{
	struct pmu_state s;
	char text[160];

	(void)state;
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	s.vendor = PMU_INTEL;
	pmu_note(&s, &s.counter[0], 0.5, text, sizeof(text));
	assert_string_equal(text, "counts for 50% of the time: it shares a counter of the host");
	pmu_note(&s, &s.counter[1], -1, text, sizeof(text));
	assert_string_equal(text, "does not count: the host uses the PMU");
	pmu_note(&s, &s.counter[2], 1, text, sizeof(text));
	assert_string_equal(text, "");
	assert_true(pmu_wrong(&s, &s.counter[0], 0.5));
	assert_true(pmu_wrong(&s, &s.counter[1], -1));
	assert_false(pmu_wrong(&s, &s.counter[2], 1));
	s.counter[2].event = PMU_EVENT_NONE;
	pmu_note(&s, &s.counter[2], -1, text, sizeof(text));
	assert_non_null(strstr(text, "no perf event is behind it"));
	s.counter[0].enabled = false;
	pmu_note(&s, &s.counter[0], -1, text, sizeof(text));
	assert_string_equal(text, "off by the guest's global control");
	pmu_summary(&s, text, sizeof(text));
	assert_string_equal(text, "version 2, 2 counters of 48 bits, 1 fixed of 40 bits");
}

/* ---- rows ---- */

static void read_at(struct fixture *f, struct inv_vcpu *v, const struct pmu_state *s, int64_t time)
{
	const struct pmu_reading r = {.vcpu = v, .time = time, .state = s};

	f->sink->pmu(f->sink->ctx, &r);
}

static void rows_have_what_came_since(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 2);
	const struct demand d = {.pmu = true, .vm = vm->id};
	const struct snap_pmc *x;
	struct pmu_state s;
	struct snapshot *snap;

	(void)state;
	model_demand(f.m, &d);
	f.sink->pmu_host(f.sink->ctx, "words");
	snapshot_unref(commit(&f, SEC));
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	s.vendor = PMU_INTEL;
	s.has_accesses = true;
	s.accesses = 10;
	read_at(&f, vm->vcpu[1], &s, SEC);
	s.counter[2].value += 5000;
	s.counter[0].time_enabled += SEC;
	s.counter[0].time_running += SEC / 4;
	s.counter[0].overflows++;
	s.accesses = 40;
	s.counter[1].accesses = 20;
	read_at(&f, vm->vcpu[1], &s, 3 * SEC);
	snap = commit(&f, 3 * SEC);
	assert_string_equal(snap->host.pmu_why, "words");
	assert_int_equal(snap->npmcs, 3);
	assert_string_equal(snap->vcpus[1].pmu.source, "debugfs");
	assert_string_equal(snap->vcpus[0].pmu.source, "");
	assert_true(snap->vcpus[1].pmu.accesses.v == 15);
	x = &snap->pmcs[snap->vcpus[1].pmu.first];
	assert_int_equal(x[0].vcpu, 1);
	assert_string_equal(x[0].counter, "gp0");
	assert_true(x[0].running.v == 25 && x[0].wrong);
	assert_false(value_has(x[0].rate)); /* it overflowed */
	assert_true(x[1].accesses.v == 10);
	assert_true(x[2].rate.v == 2500 && !x[2].wrong);
	snapshot_unref(snap);
	fixture_free(&f);
}

/* debugfs tells no accesses: without a BPF program they are not known, and no zeros. */
static void accesses_that_nobody_counts_are_not_known(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	const struct demand d = {.pmu_all = true};
	struct pmu_state s;
	struct snapshot *snap;

	(void)state;
	f.sink->kinds(f.sink->ctx, KIND_BIT(KIND_VMEXIT), true, 0);
	model_demand(f.m, &d);
	snapshot_unref(commit(&f, SEC));
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	read_at(&f, vm->vcpu[0], &s, SEC);
	read_at(&f, vm->vcpu[0], &s, 2 * SEC);
	snap = commit(&f, 2 * SEC);
	assert_int_equal(snap->npmcs, 3);
	assert_false(value_has(snap->vcpus[0].pmu.accesses));
	assert_false(value_has(snap->vcpus[0].pmu.total));
	assert_false(value_has(snap->vcpus[0].pmu.refused));
	assert_false(value_has(snap->pmcs[0].accesses));
	assert_true(value_has(snap->pmcs[0].value));
	snapshot_unref(snap);
	fixture_free(&f);
}

/* Set by the guest, first seen in debugfs, counted by nobody, gone: no figure is better than those.
 */
static void what_is_not_known_has_no_figure(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	const struct demand d = {.pmu = true, .vm = vm->id};
	const struct pmu_access a = written(0x187, 0x4300c0);
	struct pmu_state s;
	struct snapshot *snap;

	(void)state;
	model_demand(f.m, &d);
	pmu_infer(&a, 1, &s);
	read_at(&f, vm->vcpu[0], &s, SEC);
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	s.counter[1].select = a.value;
	read_at(&f, vm->vcpu[0], &s, 2 * SEC);
	snap = commit(&f, 2 * SEC);
	assert_false(value_has(snap->pmcs[1].rate));
	assert_false(value_has(snap->pmcs[1].accesses));
	assert_false(value_has(snap->vcpus[0].pmu.total));
	snapshot_unref(snap);
	s.counter[1].value = 0xffffffff0000;
	s.counter[2].value += 4000000000;
	read_at(&f, vm->vcpu[0], &s, 3 * SEC);
	snap = commit(&f, 3 * SEC);
	assert_false(value_has(snap->pmcs[1].rate));
	assert_true(snap->pmcs[2].rate.v == 4e9);
	snapshot_unref(snap);
	read_at(&f, vm->vcpu[0], NULL, 4 * SEC);
	snap = commit(&f, 4 * SEC);
	assert_int_equal(snap->npmcs, 0);
	assert_string_equal(snap->vcpus[0].pmu.source, "");
	snapshot_unref(snap);
	fixture_free(&f);
}

static void a_threads_number_is_used_again(void **state)
{
	const struct vpmu_entry e = {.tid = 7, .last = 100 * SEC};

	(void)state;
	assert_false(vpmu_entry_over(&e, 50 * SEC, 1000 * SEC));
	assert_true(vpmu_entry_over(&e, 101 * SEC, 102 * SEC)); /* another's now */
	assert_false(vpmu_entry_over(&e, -1, 101 * SEC)); /* it may not be known yet */
	assert_true(vpmu_entry_over(&e, -1, 131 * SEC));
}

/* The kernel's table was full, and had to be walked from its beginning again. */
static void what_was_read_twice_counts_once(void **state)
{
	struct vpmu_entry e[] = {
		{.tid = 9, .last = 1, .a = {.msr = 0x186, .count = 1}},
		{.tid = 7, .last = 5, .a = {.msr = 0x187, .count = 3}},
		{.tid = 7, .last = 4, .a = {.msr = 0x186, .count = 40}},
		{.tid = 9, .last = 1, .a = {.msr = 0x186, .count = 1}},
		{.tid = 7, .last = 8, .a = {.msr = 0x186, .count = 41}},
		{.tid = 7, .last = 2, .a = {.msr = 0x186, .count = 39}},
	};

	(void)state;
	assert_int_equal(vpmu_entries_once(e, sizeof(e) / sizeof(e[0])), 3);
	assert_true(e[0].tid == 7 && e[0].a.msr == 0x186 && e[0].a.count == 41);
	assert_true(e[1].tid == 7 && e[1].a.msr == 0x187 && e[1].a.count == 3);
	assert_true(e[2].tid == 9 && e[2].a.count == 1);
	assert_int_equal(vpmu_entries_once(NULL, 0), 0);
}

/* More registers than a vCPU has rows for: what is in `other` may be of the PMU, or not. */
static void registers_without_a_row_may_be_the_pmus(void **state)
{
	struct fixture f = fixture_new(2, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 2);
	const struct demand d = {.pmu = true, .vm = vm->id};
	struct pmu_state s;
	struct snapshot *snap;
	int64_t t = SEC;

	(void)state;
	model_demand(f.m, &d);
	f.sink->kinds(f.sink->ctx, KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_MSR), true, 0);
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	s.has_accesses = true;
	read_at(&f, vm->vcpu[1], &s, SEC);
	commit_drop(&f, SEC);
	for (unsigned i = 0; i < 3; i++)
		for (int vcpu = 0; vcpu < 2; vcpu++) {
			ev_exit(&f, t += 1000, 101 + vcpu, vcpu, 32);
			ev(&f, t += 1000, 101 + vcpu, EV_MSR, 0x186 + i, 1);
			ev_entry(&f, t += 1000, 101 + vcpu, vcpu);
		}
	s.accesses = 7;
	read_at(&f, vm->vcpu[1], &s, 2 * SEC);
	snap = commit(&f, 2 * SEC);
	assert_int_equal(snap->vcpus[0].pmu.accesses.state, VALUE_PARTIAL);
	assert_true(snap->vcpus[0].pmu.accesses.v == 2);
	assert_int_equal(snap->vcpus[1].pmu.accesses.state, VALUE_KNOWN); /* by themselves */
	assert_true(snap->vcpus[1].pmu.accesses.v == 7);
	assert_int_equal(snap->vcpus[1].pmu.pct.state, VALUE_PARTIAL);
	snapshot_unref(snap);
	fixture_free(&f);
}

static void without_demand_there_are_none(void **state)
{
	struct fixture f = fixture_new(8, 64);
	struct inv_vm *vm = fixture_vm(&f, "web01", 100, 1);
	const struct demand on = {.pmu_all = true}, off = {.vm = vm->id};
	struct pmu_state s;
	struct snapshot *snap;

	(void)state;
	assert_int_equal(parse(HEAD GP0 GP1 FIXED0, &s), 0);
	model_demand(f.m, &on);
	read_at(&f, vm->vcpu[0], &s, SEC);
	snapshot_unref(commit(&f, SEC));
	model_demand(f.m, &off);
	snap = commit(&f, 2 * SEC);
	assert_int_equal(snap->npmcs, 0);
	assert_string_equal(snap->host.pmu_why, "");
	assert_int_equal(snap->vms[0].pmu.accesses.why, WHY_NOT_ASKED);
	snapshot_unref(snap);
	/* Who asks again is not told differences to what was long ago. */
	model_demand(f.m, &on);
	read_at(&f, vm->vcpu[0], &s, 3 * SEC);
	snap = commit(&f, 3 * SEC);
	assert_int_equal(snap->npmcs, 3);
	assert_false(value_has(snap->pmcs[2].rate));
	snapshot_unref(snap);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_of_a_pmu_that_is_off),
		cmocka_unit_test(a_recording_of_counters_that_count),
		cmocka_unit_test(each_key_finds_its_place),
		cmocka_unit_test(what_a_later_kernel_adds_is_passed_over),
		cmocka_unit_test(all_else_is_refused),
		cmocka_unit_test(msrs_are_told_apart),
		cmocka_unit_test(selectors_follow_from_writes),
		cmocka_unit_test(of_two_selects_the_last_written_counts),
		cmocka_unit_test(refused_writes_are_no_selectors),
		cmocka_unit_test(a_refused_write_takes_nothing_away),
		cmocka_unit_test(events_have_their_names),
		cmocka_unit_test(host_events_have_names),
		cmocka_unit_test(host_events_keep_their_names_when_they_stop),
		cmocka_unit_test(clocks_stand_for_few_events),
		cmocka_unit_test(modes_say_when),
		cmocka_unit_test(notes_say_why_not),
		cmocka_unit_test(rows_have_what_came_since),
		cmocka_unit_test(accesses_that_nobody_counts_are_not_known),
		cmocka_unit_test(what_is_not_known_has_no_figure),
		cmocka_unit_test(a_threads_number_is_used_again),
		cmocka_unit_test(what_was_read_twice_counts_once),
		cmocka_unit_test(registers_without_a_row_may_be_the_pmus),
		cmocka_unit_test(without_demand_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
