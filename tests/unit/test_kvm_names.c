// SPDX-License-Identifier: GPL-2.0-only
/* Names from the formats of two kernels, from the built-in tables, and from nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "kvm_names.h"

static size_t read_format(const char *kernel, const char *event, char *buf, size_t size)
{
	char path[200];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/format/%s/%s", kernel, event);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(buf, 1, size - 1, f);
	fclose(f);
	buf[n] = '\0';
	return n;
}

static void load(struct kvm_names *n, const char *kernel, const char *event)
{
	char buf[16384];
	size_t len = read_format(kernel, event, buf, sizeof(buf));

	assert_int_equal(kvm_names_load(n, event, buf, len), 0);
}

static void is(const struct kvm_names *n, enum kvm_kind kind, uint32_t isa, uint64_t key,
	       enum ev_dir dir, const char *want)
{
	char buf[80];

	assert_string_equal(kvm_names_key(n, kind, isa, key, dir, buf, sizeof(buf)), want);
}

static void exit_is(const struct kvm_names *n, uint32_t isa, uint64_t key, const char *want)
{
	is(n, KIND_VMEXIT, isa, key, DIR_NONE, want);
}

/* What both kernels and the built-in tables agree on. */
static void common_names(const struct kvm_names *n)
{
	exit_is(n, ISA_VMX, 0, "EXCEPTION_NMI");
	exit_is(n, ISA_VMX, 12, "HLT");
	exit_is(n, ISA_VMX, 32, "MSR_WRITE");
	exit_is(n, ISA_VMX, 0x80000021, "INVALID_STATE FAILED_VMENTRY");
	exit_is(n, ISA_VMX, 0x08000000 | 48, "EPT_VIOLATION"); /* the SGX bit is no reason */
	exit_is(n, ISA_VMX, 0x1f0, "0x1f0");
	exit_is(n, ISA_VMX, 11, "0xb"); /* GETSEC: no KVM names it */
	exit_is(n, ISA_VMX, 0x8000000b, "0xb FAILED_VMENTRY");
	exit_is(n, ISA_SVM, 0x4e, "PF excp");
	exit_is(n, ISA_SVM, 0x40, "DE excp");
	exit_is(n, ISA_SVM, 0x78, "hlt");
	exit_is(n, ISA_SVM, 0x7b, "io");
	exit_is(n, ISA_SVM, 0x400, "npf");
	exit_is(n, ISA_SVM, 0xffffffff, "invalid_guest_state");
	exit_is(n, ISA_SVM, UINT64_MAX, "invalid_guest_state"); /* a kernel with 64-bit codes */
	exit_is(n, ISA_SVM, 0x80000001, "vmgexit_mmio_read");
	exit_is(n, ISA_SVM, 0x1f, "0x1f");
	exit_is(n, ISA_NONE, 5, "0x5");
	exit_is(n, 77, 5, "0x5");
	is(n, KIND_USEREXIT, 0, 2, DIR_NONE, "KVM_EXIT_IO");
	is(n, KIND_USEREXIT, 0, 10, DIR_NONE, "KVM_EXIT_INTR");
	is(n, KIND_USEREXIT, 0, 999, DIR_NONE, "0x3e7");
	is(n, KIND_USEREXIT, 0, KVM_USEREXIT_ERROR | EFAULT, DIR_NONE, "error EFAULT");
	is(n, KIND_USEREXIT, 0, KVM_USEREXIT_ERROR | 4000, DIR_NONE, "error 4000");
}

static void both_kernels_and_none(void **state)
{
	static const char *const kernels[] = {"6.1-svm", "6.18-pvm"};
	struct kvm_names *n = kvm_names_new();

	(void)state;
	common_names(n);
	common_names(NULL);
	kvm_names_free(n);
	for (size_t i = 0; i < 2; i++) {
		n = kvm_names_new();
		load(n, kernels[i], "kvm_exit");
		load(n, kernels[i], "kvm_userspace_exit");
		common_names(n);
		kvm_names_free(n);
	}
}

/* "0x040 + 14 - 1": the sum; *end behind it. */
static uint64_t sum(const char *p, const char **end)
{
	uint64_t v = 0;
	char sign = '+';

	for (;;) {
		uint64_t part = strtoull(p, (char **)&p, 0);

		v = sign == '+' ? v + part : v - part;
		p += strspn(p, " ");
		if (*p != '+' && *p != '-')
			break;
		sign = *p++;
	}
	*end = p;
	return v;
}

/* The list of { number, "name" } at p, each against what both ways give. How many. */
static unsigned each_of_list(const char *p, uint32_t isa, const struct kvm_names *n)
{
	unsigned count = 0;

	while (*p == '{') {
		uint64_t key = sum(p + 1, &p);
		char name[64];
		int len = 0;

		assert_int_equal(sscanf(p, ", \"%63[^\"]\" }%n", name, &len), 1);
		exit_is(n, isa, key, name);
		exit_is(NULL, isa, key, name);
		count++;
		p += len;
		p += strspn(p, ", ");
	}
	return count;
}

/* Every reason of both vendors that a real kernel names has that name; without a format as well. */
static void every_name_of_the_kernels(void **state)
{
	static const char vmx[] = "(REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, ";
	static const char svm[] = ") : __print_symbolic(REC->exit_reason, ";
	static const char *const kernels[] = {"6.1-svm", "6.18-pvm"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct kvm_names *n = kvm_names_new();
		char buf[16384];
		const char *a, *b;

		read_format(kernels[i], "kvm_exit", buf, sizeof(buf));
		load(n, kernels[i], "kvm_exit");
		a = strstr(buf, vmx);
		assert_non_null(a);
		b = strstr(a, svm);
		assert_non_null(b);
		assert_in_range(each_of_list(a + sizeof(vmx) - 1, ISA_VMX, n), 55, 80);
		assert_in_range(each_of_list(b + sizeof(svm) - 1, ISA_SVM, n), 80, 130);
		kvm_names_free(n);
	}
}

/* A reason that no release of ours can know, and a renamed one. */
static void the_kernel_goes_first(void **state)
{
	static const char text[] =
		"print fmt: \"%s\", (REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, "
		"{ 12, \"HALT\" }, { (1 << 9) | 3, \"NEW_\" \"REASON\" }) : "
		"__print_symbolic(REC->exit_reason, { 0x040 + 14 - 1, \"new excp\" })";
	struct kvm_names *n = kvm_names_new();

	(void)state;
	assert_int_equal(kvm_names_load(n, "kvm_exit", text, strlen(text)), 0);
	exit_is(n, ISA_VMX, 12, "HALT");
	exit_is(n, ISA_VMX, 515, "NEW_REASON");
	exit_is(n, ISA_VMX, 10, "CPUID"); /* not in the kernel's text: the built-in name */
	exit_is(n, ISA_SVM, 0x4d, "new excp");
	exit_is(n, ISA_SVM, 12, "0xc");
	assert_true(kvm_names_idle(ISA_VMX, 12));
	kvm_names_free(n);
}

static void the_isa_is_taken_from_the_condition(void **state)
{
	static const char text[] =
		"print fmt: \"%s\", (REC->isa == 2) ? __print_symbolic(REC->exit_reason, "
		"{ 1, \"svm one\" }) : __print_symbolic(REC->exit_reason, { 1, \"VMX_ONE\" })";
	struct kvm_names *n = kvm_names_new();

	(void)state;
	assert_int_equal(kvm_names_load(n, "kvm_exit", text, strlen(text)), 0);
	exit_is(n, ISA_SVM, 1, "svm one");
	exit_is(n, ISA_VMX, 1, "VMX_ONE");
	kvm_names_free(n);
}

/* The shape of arm64's kvm_exit: the class counts only under TRAP. */
static void arm64_names(void **state)
{
	static const char text[] =
		"print fmt: \"%s: HSR_EC: 0x%04x (%s), PC: 0x%016llx\", "
		"__print_symbolic((((REC->ret) & ~(1U))), { 0, \"IRQ\" }, { 2, \"TRAP\" }), "
		"REC->esr_ec, __print_symbolic(REC->esr_ec, { (0x01), \"WFx\" }, "
		"{ (0x24), \"DABT_LOW\" }), REC->vcpu_pc";
	struct kvm_names *n = kvm_names_new();

	(void)state;
	exit_is(n, ISA_ARM64, KVM_ARM_TRAP | 0x24, "DABT_LOW");
	exit_is(n, ISA_ARM64, 0, "IRQ");
	assert_int_equal(kvm_names_load(n, "kvm_exit", text, strlen(text)), 0);
	exit_is(n, ISA_ARM64, KVM_ARM_TRAP | 0x24, "DABT_LOW");
	exit_is(n, ISA_ARM64, KVM_ARM_TRAP | 0x01, "WFx");
	exit_is(n, ISA_ARM64, 0, "IRQ");
	exit_is(n, ISA_ARM64, KVM_ARM_TRAP | 0x3f, "0x1003f");
	kvm_names_free(n);
}

static void nonsense_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"print fmt: \"x\", REC->y",
		"no print line { 12, \"BAD\" }",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { 12, \"BAD\" }",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { 12, \"BAD })",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { NAME, \"BAD\" "
		"})",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { 12 << 99, "
		"\"BAD\" })",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { 09, \"BAD\" })",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, "
		"{ ((((((((((((((((((((12)))))))))))))))))))), \"BAD\" })",
		"print fmt: (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { 12, \"BAD\" }) "
		": "
		"__print_symbolic(REC->exit_reason, { 1, 2 })",
	};
	struct kvm_names *n = kvm_names_new();

	(void)state;
	load(n, "6.1-svm", "kvm_exit");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(kvm_names_load(n, "kvm_exit", bad[i], strlen(bad[i])), -EINVAL);
		common_names(n);
	}
	kvm_names_free(n);
	kvm_names_free(NULL);
}

static void access_keys(void **state)
{
	struct kvm_names *n = kvm_names_new();

	(void)state;
	is(n, KIND_IOPORT, 0, 0x3f8, DIR_WRITE, "0x3f8:POUT");
	is(n, KIND_IOPORT, 0, 0x60, DIR_READ, "0x60:PIN");
	is(n, KIND_MMIO, 0, 0xfee00380, DIR_WRITE, "0xfee00380:W");
	is(n, KIND_MMIO, 0, 0xd0000020, DIR_READ, "0xd0000020:R");
	is(n, KIND_MSR, 0, 0x6e0, DIR_WRITE, "0x6e0:W");
	is(n, KIND_HYPERCALL, 0, 5, DIR_NONE, "KVM_HC_KICK_CPU");
	is(n, KIND_HYPERCALL, 0, 4711, DIR_NONE, "0x1267");
	assert_string_equal(kvm_names_note(n, KIND_MSR, 0x6e0), "TSC_DEADLINE");
	assert_string_equal(kvm_names_note(n, KIND_MSR, 0x4b564d03), "KVM_STEAL_TIME");
	assert_string_equal(kvm_names_note(n, KIND_MSR, 0xc0011029), "DE_CFG");
	assert_string_equal(kvm_names_note(n, KIND_MSR, 0x7777), "");
	assert_string_equal(kvm_names_note(n, KIND_IOPORT, 0x3f8), "COM1 data");
	assert_string_equal(kvm_names_note(n, KIND_MMIO, 0xfee000b0), "APIC EOI");
	assert_string_equal(kvm_names_note(n, KIND_VMEXIT, 12), "");
	kvm_names_free(n);
}

static void a_short_buffer_is_terminated(void **state)
{
	char buf[5];

	(void)state;
	kvm_names_key(NULL, KIND_VMEXIT, ISA_VMX, 32, DIR_NONE, buf, sizeof(buf));
	assert_string_equal(buf, "MSR_");
}

static void idle_exits(void **state)
{
	static const struct {
		uint32_t isa;
		uint64_t reason;
		bool idle;
	} t[] = {
		{ISA_VMX, 12, true},   {ISA_VMX, 36, true},    {ISA_VMX, 0x8000000c, false},
		{ISA_VMX, 32, false},  {ISA_VMX, 0x78, false}, {ISA_SVM, 0x78, true},
		{ISA_SVM, 0x8b, true}, {ISA_SVM, 0xa6, true},  {ISA_SVM, 12, false},
		{ISA_S390, 28, true},  {ISA_NONE, 12, false},  {ISA_ARM64, KVM_ARM_TRAP | 1, true},
		{ISA_ARM64, 1, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(kvm_names_idle(t[i].isa, t[i].reason), t[i].idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_kernels_and_none),
		cmocka_unit_test(every_name_of_the_kernels),
		cmocka_unit_test(the_kernel_goes_first),
		cmocka_unit_test(the_isa_is_taken_from_the_condition),
		cmocka_unit_test(arm64_names),
		cmocka_unit_test(nonsense_changes_nothing),
		cmocka_unit_test(access_keys),
		cmocka_unit_test(a_short_buffer_is_terminated),
		cmocka_unit_test(idle_exits),
	};

	return cmocka_run_group_tests_name("kvm_names", tests, NULL, NULL);
}
