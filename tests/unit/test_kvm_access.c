// SPDX-License-Identifier: GPL-2.0-only
/* Each reason why kvm events cannot be had, on made trees; CPU lists. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "kvm_access.h"
#include "kvm_bpf.h"
#include "kvm_events.h"
#include "kvm_format.h"
#include "kvm_names.h"
#include "made_tree.h"
#include "perf_rings.h"
#include "sysroot.h"

struct tree {
	char dir[64];
	struct sysroot *root;
};

static void make_path(const struct tree *t, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", t->dir, path);
	tree_parents(full);
}

static void put_file(const struct tree *t, const char *path, const char *text)
{
	tree_put(t->dir, path, text);
}

static void make_tree(struct tree *t)
{
	snprintf(t->dir, sizeof(t->dir), "/tmp/kvmtop-test-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(sysroot_open(t->dir, &t->root), 0);
}

static void free_tree(struct tree *t)
{
	sysroot_close(t->root);
	tree_remove(t->dir);
}

static const struct kvm_rights all_rights = {true, true, true, 100000, 64 << 20};
static const struct kvm_rights none = {false, false, false, 1024, 8 << 20};

static void says(const struct tree *t, const struct kvm_rights *r, int err, const char *why,
		 const char *mend)
{
	struct kvm_reason out;

	assert_true(kvm_why_not(t->root, r, err, &out));
	if (!strstr(out.why, why) || !strstr(out.mend, mend))
		fail_msg("said \"%s\" (%s)", out.why, out.mend);
}

static void no_tracefs(void **state)
{
	struct tree t;
	int err;

	(void)state;
	make_tree(&t);
	make_path(&t, "sys/kernel/tracing/");
	says(&t, &all_rights, 0, "tracefs is not mounted",
	     "mount -t tracefs tracefs /sys/kernel/tracing");
	assert_null(kvm_tracefs(t.root, &err));
	assert_int_equal(err, -ENOENT);
	make_path(&t, "sys/kernel/debug/tracing/events/kvm/"); /* the old place will do */
	assert_string_equal(kvm_tracefs(t.root, &err), "sys/kernel/debug/tracing");
	make_path(&t, "sys/kernel/tracing/events/kvm/");
	assert_string_equal(kvm_tracefs(t.root, &err), "sys/kernel/tracing");
	free_tree(&t);
}

static void no_kvm_module(void **state)
{
	struct tree t;

	(void)state;
	make_tree(&t);
	make_path(&t, "sys/kernel/tracing/events/sched/");
	says(&t, &all_rights, 0, "no KVM", "modprobe kvm-intel");
	free_tree(&t);
}

static void lockdown(void **state)
{
	struct kvm_reason out;
	struct tree t;

	(void)state;
	make_tree(&t);
	make_path(&t, "sys/kernel/tracing/events/kvm/");
	put_file(&t, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	says(&t, &all_rights, -EPERM, "confidentiality", "lockdown=integrity");
	put_file(&t, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	assert_false(kvm_why_not(t.root, &all_rights, 0, &out));
	free_tree(&t);
}

static void rights_and_limits(void **state)
{
	struct kvm_reason out;
	struct tree t;

	(void)state;
	make_tree(&t);
	make_path(&t, "sys/kernel/tracing/events/kvm/");
	assert_false(kvm_why_not(t.root, &all_rights, 0, &out));
	put_file(&t, "proc/sys/kernel/perf_event_paranoid", "3\n");
	says(&t, &none, 0, "perf_event_paranoid is 3", "CAP_PERFMON");
	says(&t, &none, -EACCES, "Permission denied", "sudo kvmtop");
	put_file(&t, "proc/sys/kernel/perf_event_paranoid", "-1\n");
	assert_false(kvm_why_not(t.root, &none, 0, &out));
	says(&t, &all_rights, -EPERM, "container", "seccomp");
	says(&t, &none, -EMFILE, "the limit is 1024", "ulimit -n");
	says(&t, &none, -ENOBUFS, "RLIMIT_MEMLOCK is 8192 KiB", "CAP_IPC_LOCK");
	says(&t, &all_rights, -ENOSYS, "CONFIG_PERF_EVENTS", "");
	free_tree(&t);
}

/* Why nothing counts in the kernel: what is said is true of that error and of no other. */
static void counting_is_refused(void **state)
{
	static const struct {
		int err;
		const char *why, *mend;
	} t[] = {
		{EPERM, "may not be loaded", "CAP_BPF"},
		{EACCES, "refuses", "CAP_PERFMON"},
		{ENOMEM, "not enough memory", "ulimit -l"},
		{EMFILE, "not enough file descriptors", "ulimit -n"},
		{ENFILE, "no file descriptor left", "fs.file-max"},
		{ENOSYS, "no bpf()", "CONFIG_BPF_SYSCALL"},
		{EINVAL, "does not know what these BPF programs use", ">= 5.12"},
		{ENOENT, "not all of the events", "KVM loaded"},
		{EBUSY, "not loaded: Device or resource busy", ""},
		{EIO, "not loaded: Input/output error", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct kvm_reason r;

		kvm_bpf_why(-t[i].err, &r);
		assert_non_null(strstr(r.why, "counting in the kernel: "));
		assert_non_null(strstr(r.why, t[i].why));
		assert_non_null(strstr(r.mend, t[i].mend));
		assert_int_equal(r.mend[0] != '\0', t[i].mend[0] != '\0');
		assert_int_equal(strstr(r.mend, "5.12") != NULL, t[i].err == EINVAL);
	}
}

static void smaller_rings_and_few_descriptors(void **state)
{
	struct kvm_reason out;
	struct tree t;

	(void)state;
	make_tree(&t);
	assert_false(kvm_why_partial(t.root, &all_rights, 64, RING_MAX, 960, &out));
	assert_true(kvm_why_partial(t.root, &none, 128, RING_MIN, 1920, &out));
	assert_non_null(strstr(out.why, "1920 file descriptors, the limit is 1024"));
	assert_true(kvm_why_partial(t.root, &none, 64, RING_MAX, 10, &out));
	assert_non_null(strstr(out.why, "1024 KiB may not be locked"));
	assert_false(kvm_why_partial(t.root, &none, 8, RING_MAX, 10, &out));
	put_file(&t, "proc/sys/kernel/perf_event_mlock_kb", "516\n");
	assert_false(kvm_why_partial(t.root, &none, 15, RING_MAX, 10, &out));
	assert_true(kvm_why_partial(t.root, &none, 64, RING_MAX, 10, &out));
	free_tree(&t);
}

static void formats_of_a_tree(void **state)
{
	static const char *const events[] = {"kvm_exit", "kvm_userspace_exit", "kvm_pio"};
	struct kvm_format *f = kvm_format_new();
	struct kvm_names *n = kvm_names_new();
	char text[16384], path[128];
	struct tree t;

	(void)state;
	make_tree(&t);
	assert_int_equal(kvm_load_formats(t.root, "sys/kernel/tracing", f, n), -ENOENT);
	for (size_t i = 0; i < 3; i++) {
		FILE *file;
		size_t len;

		snprintf(path, sizeof(path), "tests/data/format/6.18-pvm/%s", events[i]);
		file = fopen(path, "r");
		assert_non_null(file);
		len = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
		text[len] = '\0';
		snprintf(path, sizeof(path), "sys/kernel/tracing/events/kvm/%s/format", events[i]);
		put_file(&t, path, text);
	}
	put_file(&t, "sys/kernel/tracing/events/kvm/kvm_msr/format", "nonsense\n");
	assert_int_equal(kvm_load_formats(t.root, "sys/kernel/tracing", f, n), 3);
	assert_string_equal(
		kvm_names_key(n, KIND_VMEXIT, ISA_VMX, 85, DIR_NONE, text, sizeof(text)),
		"MSR_WRITE_IMM");
	kvm_names_free(n);
	kvm_format_free(f);
	free_tree(&t);
}

/* ---- the collector over a tree that is no live host ---- */

static int said_state;
static unsigned said_kinds;

static void note_source(void *ctx, const char *name, int st, const char *why, const char *mend)
{
	(void)ctx;
	(void)mend;
	assert_string_equal(name, "kvm_events");
	assert_non_null(strstr(why, "fixture"));
	said_state = st;
}

static void note_kinds(void *ctx, unsigned kinds, bool entry_exit, int64_t time)
{
	(void)ctx;
	(void)entry_exit;
	(void)time;
	said_kinds = kinds;
}

static void a_fixture_has_no_events(void **state)
{
	const struct sink sink = {.source = note_source, .kinds = note_kinds};
	const struct collector_config config = {.delay_s = 1};
	struct collector_env env = {.sink = &sink, .config = &config};
	struct probes p = {0};
	struct tree t;
	void *st;

	(void)state;
	make_tree(&t);
	env.root = t.root;
	collector_kvm_events.probe(&env, &p);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.p[0].state, SOURCE_OFF);
	assert_non_null(strstr(p.p[0].why, "fixture"));
	said_kinds = ~0u;
	assert_int_equal(collector_kvm_events.open(&env, &st), 0);
	assert_int_equal(said_state, SOURCE_OFF);
	assert_int_equal(said_kinds, 0);
	assert_true(collector_kvm_events.fd(st) >= 0);
	assert_int_equal(collector_kvm_events.tick(st, 1000, 500), 0);
	assert_int_equal(collector_kvm_events.ready(st, 2000), 0);
	collector_kvm_events.close(st);
	collector_kvm_events.close(NULL);
	free_tree(&t);
}

/* What doctor says of kvm_exit, also before a guest ran. */
static void whether_exits_fire(void **state)
{
	static const char intel[] = "vendor_id\t: GenuineIntel\nflags\t\t: fpu vmx ssse3\n",
			  amd[] = "processor\t: 0\nflags\t\t: fpu svm\nbugs\t\t: x\n",
			  soft[] = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu svm_lock vmxx "
				   "hypervisor\nbugs\t\t: svm\n",
			  arm[] = "processor\t: 0\nFeatures\t: fp asimd\n";
	const char *why;

	(void)state;
	assert_int_equal(kvm_exits_state(3, 0, soft, &why), SOURCE_OK);
	assert_string_equal(why, "kvm_exit fires");
	assert_int_equal(kvm_exits_state(0, 1000, intel, &why), SOURCE_PARTIAL);
	assert_string_equal(why, KVM_NO_EXITS);
	assert_int_equal(kvm_exits_state(0, 0, intel, &why), SOURCE_OK);
	assert_non_null(strstr(why, "no guest ran"));
	assert_int_equal(kvm_exits_state(0, 0, amd, &why), SOURCE_OK);
	assert_int_equal(kvm_exits_state(0, 0, soft, &why), SOURCE_PARTIAL);
	assert_int_equal(kvm_exits_state(0, 2, soft, &why), SOURCE_PARTIAL);
	assert_non_null(strstr(why, "without vmx and svm"));
	assert_int_equal(kvm_exits_state(0, 0, arm, &why), SOURCE_OK);
	assert_int_equal(kvm_exits_state(0, 0, "", &why), SOURCE_OK);
}

/* The list of CPUs is held open, and says each time what it has by then. */
static void cpus_are_followed(void **state)
{
	struct perf_rings *rings;
	struct tree t;
	int held = -1, rc;

	(void)state;
	make_tree(&t);
	assert_int_equal(perf_rings_new(RING_MIN, 2, false, &rings), 0);
	assert_int_equal(kvm_follow_cpus(t.root, &held, rings, 1, NULL, NULL), -ENOENT);
	assert_int_equal(held, -ENOENT);
	put_file(&t, "sys/devices/system/cpu/online", "0\n");
	rc = kvm_follow_cpus(t.root, &held, rings, 2, NULL, NULL);
	if (rc == -EACCES || rc == -EPERM || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		print_message("no perf events, or one CPU only\n");
	} else {
		assert_int_equal(rc, 0);
		assert_true(held >= 0);
		assert_int_equal(perf_rings_cpus(rings), 1);
		put_file(&t, "sys/devices/system/cpu/online", "0-1\n");
		assert_int_equal(kvm_follow_cpus(t.root, &held, rings, 3, NULL, NULL), 0);
		assert_int_equal(perf_rings_cpus(rings), 2);
	}
	perf_rings_free(rings);
	close(held);
	free_tree(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_tracefs),
		cmocka_unit_test(no_kvm_module),
		cmocka_unit_test(lockdown),
		cmocka_unit_test(rights_and_limits),
		cmocka_unit_test(counting_is_refused),
		cmocka_unit_test(smaller_rings_and_few_descriptors),
		cmocka_unit_test(formats_of_a_tree),
		cmocka_unit_test(a_fixture_has_no_events),
		cmocka_unit_test(whether_exits_fire),
		cmocka_unit_test(cpus_are_followed),
	};

	return cmocka_run_group_tests_name("kvm_access", tests, NULL, NULL);
}
