// SPDX-License-Identifier: GPL-2.0-only
/* What the doctor says where there is no /dev/kvm (collectors/vms_probe.c), over made trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "collector.h"
#include "made_tree.h"
#include "sysroot.h"
#include "vms.h"

#define NESTED "allow nested virtualization for this guest on its own host"
#define LOG "dmesg | grep -i kvm"

struct host {
	const char *files; /* words: each is made */
	const char *flags; /* of /proc/cpuinfo; NULL: a CPU that has no such line */
	enum source_state state;
	const char *why, *mend;
};

static void make_files(const char *dir, const char *words)
{
	char text[200], *word, *save = NULL;

	snprintf(text, sizeof(text), "%s", words);
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		tree_put(dir, word, "");
}

static void expect(const struct host *h)
{
	char dir[] = "/tmp/kvmtop-probe-XXXXXX", cpuinfo[200];
	struct collector_env env = {0};
	struct sysroot *root;
	struct probes p = {0};

	assert_non_null(mkdtemp(dir));
	make_files(dir, "proc/1/stat sys/class/misc/rtc");
	make_files(dir, h->files);
	snprintf(cpuinfo, sizeof(cpuinfo), "processor\t: 0\n%s%s\nvmx flags\t: vnmi svm\n",
		 h->flags ? "flags\t\t: fpu " : "Features\t: fp vmx", h->flags ? h->flags : "");
	tree_put(dir, "proc/cpuinfo", cpuinfo);
	assert_int_equal(sysroot_open(dir, &root), 0);
	env.root = root;
	collector_vms.probe(&env, &p);
	assert_true(p.n > 0);
	assert_string_equal(p.p[0].source, "KVM");
	assert_string_equal(p.p[0].why, h->why);
	assert_string_equal(p.p[0].mend, h->mend);
	assert_int_equal(p.p[0].state, h->state);
	sysroot_close(root);
	tree_remove(dir);
}

#define KVM "sys/module/kvm/x "

static void kvm_lines(void **state)
{
	static const struct host hosts[] = {
		{KVM "dev/kvm", "vmx", SOURCE_OK, "works", ""},
		{KVM "sys/module/kvm_pvm/x", "hypervisor", SOURCE_PARTIAL,
		 "no /dev/kvm: kvm_pvm is loaded, but can run no guests on this CPU (neither vmx "
		 "nor svm): the kernel's log has the reason",
		 LOG},
		{KVM "sys/module/kvm_intel/x", "vmx", SOURCE_PARTIAL,
		 "no /dev/kvm: kvm_intel is loaded, but can run no guests on this CPU (it has "
		 "vmx): the kernel's log has the reason",
		 LOG},
		{KVM, "vmx hypervisor", SOURCE_PARTIAL,
		 "no /dev/kvm: kvm is loaded, but not kvm_intel, which runs guests on this CPU "
		 "(it has vmx)",
		 "modprobe kvm_intel; " LOG},
		{KVM, "svm", SOURCE_PARTIAL,
		 "no /dev/kvm: kvm is loaded, but not kvm_amd, which runs guests on this CPU "
		 "(it has svm)",
		 "modprobe kvm_amd; " LOG},
		{KVM, "svm_lock hypervisor", SOURCE_PARTIAL,
		 "no /dev/kvm: kvm is loaded, but neither kvm_intel nor kvm_amd, which need vmx "
		 "or svm, and this CPU (of a guest) has neither",
		 NESTED},
		{KVM, "avx", SOURCE_PARTIAL,
		 "no /dev/kvm: kvm is loaded, but neither kvm_intel nor kvm_amd, which need vmx "
		 "or svm, and this CPU has neither",
		 "switch on VT-x or AMD-V in the firmware"},
		{KVM, NULL, SOURCE_PARTIAL,
		 "no /dev/kvm: kvm is loaded, but can run no guests on this CPU: the kernel's "
		 "log has the reason",
		 LOG},
		/* The device is there, and only this /dev has it not. */
		{KVM "sys/class/misc/kvm/dev", "vmx", SOURCE_PARTIAL,
		 "the module kvm is loaded, but there is no /dev/kvm here (a container has a /dev "
		 "of its own): VMs can be watched, the demo cannot start",
		 ""},
		{"", "vmx", SOURCE_OFF,
		 "no /dev/kvm: KVM is not loaded, or switched off in the firmware",
		 "modprobe kvm_intel || modprobe kvm_amd"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		expect(&hosts[i]);
}

static void no_folder_in_debugfs(void **state)
{
	static const char *const files[] = {"sys/kernel/debug/x", KVM "sys/kernel/debug/x"};
	static const char *const why[] = {
		"no folder kvm in /sys/kernel/debug: KVM is not loaded",
		"no folder kvm in /sys/kernel/debug: KVM is loaded, but can run no guests here"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		char dir[] = "/tmp/kvmtop-probe-XXXXXX";
		struct collector_env env = {0};
		struct sysroot *root;
		struct probes p = {0};

		assert_non_null(mkdtemp(dir));
		make_files(dir, "proc/1/stat");
		make_files(dir, files[i]);
		assert_int_equal(sysroot_open(dir, &root), 0);
		env.root = root;
		collector_vms.probe(&env, &p);
		assert_string_equal(p.p[1].source, "debugfs");
		assert_string_equal(p.p[1].why, why[i]);
		assert_int_equal(p.p[1].state, SOURCE_OFF);
		sysroot_close(root);
		tree_remove(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(kvm_lines),
					   cmocka_unit_test(no_folder_in_debugfs)};

	return cmocka_run_group_tests_name("vms_probe", tests, NULL, NULL);
}
