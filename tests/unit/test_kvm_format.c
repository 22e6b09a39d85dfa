// SPDX-License-Identifier: GPL-2.0-only
/* Offsets from real formats of two kernels; decoding; other architectures' shapes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kvm_format.h"

static unsigned event_index(const char *name)
{
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (!strcmp(kvm_events[i].event, name))
			return i;
	fail_msg("no event %s", name);
	return 0;
}

static int load_file(struct kvm_format *f, const char *kernel, const char *event)
{
	char path[200], buf[16384];
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "tests/data/format/%s/%s", kernel, event);
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(buf, 1, sizeof(buf), file);
	fclose(file);
	return kvm_format_load(f, event_index(event), buf, n);
}

static int load_text(struct kvm_format *f, const char *event, const char *text)
{
	return kvm_format_load(f, event_index(event), text, strlen(text));
}

static void put(uint8_t *raw, size_t offset, uint64_t value, size_t size)
{
	memcpy(raw + offset, &value, size); /* little-endian, as the recordings are */
}

/* Raw data end at the last byte of an allocation, so that a sanitizer sees a read beyond. */
static bool decode_exact(const struct kvm_format *f, const uint8_t *raw, uint32_t len,
			 struct sample *s)
{
	uint8_t *copy = malloc(len ? len : 1);
	bool ok;

	memcpy(copy, raw, len);
	ok = kvm_format_decode(f, copy, len, s);
	free(copy);
	return ok;
}

static void ids_of_both_kernels(void **state)
{
	struct kvm_format *f = kvm_format_new();

	(void)state;
	assert_int_equal(load_file(f, "6.1-svm", "kvm_exit"), 1440);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_exit"), 103); /* replaces it */
	assert_int_equal(kvm_format_id(f, event_index("kvm_exit")), 103);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_entry"), 115);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_mmio"), 38);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_pio"), 110);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_msr"), 99);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_hypercall"), 114);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_userspace_exit"), 42);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_vcpu_wakeup"), 41);
	assert_int_equal(load_file(f, "6.18-pvm", "kvm_halt_poll_ns"), 31);
	assert_int_equal(kvm_format_id(f, event_index("kvm_enter")), 0);
	kvm_format_free(f);
}

static void kvm_exit_svm_and_vmx(void **state)
{
	struct kvm_format *f = kvm_format_new();
	uint8_t raw[72] = {0};
	struct sample s;

	(void)state;
	load_file(f, "6.1-svm", "kvm_exit");
	put(raw, 0, 1440, 2);
	put(raw, 4, 4711, 4);
	put(raw, 8, 0x400, 4);
	put(raw, 16, 0xffffffff81000000, 8);
	put(raw, 24, ISA_SVM, 4);
	put(raw, 56, 3, 4);
	assert_true(decode_exact(f, raw, 60, &s));
	assert_int_equal(s.type, EV_EXIT);
	assert_int_equal(s.tid, 4711);
	assert_int_equal(s.vcpu_id, 3);
	assert_int_equal(s.key, 0x400);
	assert_int_equal(s.isa, ISA_SVM);
	assert_true(s.aux == 0xffffffff81000000);
	put(raw, 8, 0xffffffff, 4); /* -1: no sign may be carried into the key */
	assert_true(decode_exact(f, raw, 60, &s));
	assert_int_equal(s.key, 0xffffffff);
	put(raw, 24, ISA_VMX, 4);
	put(raw, 8, 0x88000021, 4); /* failed entry, and a flag that is no reason */
	assert_true(decode_exact(f, raw, 60, &s));
	assert_int_equal(s.key, 0x80000021);
	kvm_format_free(f);
}

static void access_events(void **state)
{
	struct kvm_format *f = kvm_format_new();
	uint8_t raw[64] = {0};
	struct sample s;

	(void)state;
	load_file(f, "6.18-pvm", "kvm_mmio");
	load_file(f, "6.18-pvm", "kvm_pio");
	load_file(f, "6.18-pvm", "kvm_msr");
	put(raw, 0, 38, 2);
	put(raw, 16, 0xfee00380, 8);
	for (unsigned type = 0; type < 4; type++) {
		static const uint8_t want[] = {DIR_UNSATISFIED, DIR_READ, DIR_WRITE, DIR_NONE};

		put(raw, 8, type, 4);
		assert_true(decode_exact(f, raw, 32, &s));
		assert_int_equal(s.dir, want[type]);
		assert_int_equal(s.key, 0xfee00380);
		assert_int_equal(s.vcpu_id, -1);
	}
	memset(raw, 0, sizeof(raw));
	put(raw, 0, 110, 2);
	put(raw, 8, 1, 4);
	put(raw, 12, 0x3f8, 4);
	assert_true(decode_exact(f, raw, 28, &s));
	assert_int_equal(s.type, EV_PIO);
	assert_int_equal(s.key, 0x3f8);
	assert_int_equal(s.dir, DIR_WRITE);
	put(raw, 0, 99, 2);
	put(raw, 8, 0, 4);
	put(raw, 12, 0xc0000080, 4);
	assert_true(decode_exact(f, raw, 25, &s));
	assert_int_equal(s.type, EV_MSR);
	assert_int_equal(s.key, 0xc0000080); /* unsigned: no 0xffffffffc0000080 */
	assert_int_equal(s.dir, DIR_READ);
	kvm_format_free(f);
}

static void user_exits_and_halts(void **state)
{
	struct kvm_format *f = kvm_format_new();
	uint8_t raw[64] = {0};
	struct sample s;

	(void)state;
	load_file(f, "6.18-pvm", "kvm_userspace_exit");
	load_file(f, "6.18-pvm", "kvm_vcpu_wakeup");
	load_file(f, "6.18-pvm", "kvm_halt_poll_ns");
	put(raw, 0, 42, 2);
	put(raw, 8, 2, 4);
	assert_true(decode_exact(f, raw, 16, &s));
	assert_int_equal(s.key, 2);
	put(raw, 8, 10, 4);
	put(raw, 12, (uint64_t)-EINTR, 4);
	assert_true(decode_exact(f, raw, 16, &s));
	assert_int_equal(s.key, 10);
	put(raw, 12, (uint64_t)-EFAULT, 4);
	assert_true(decode_exact(f, raw, 16, &s));
	assert_true(s.key == (KVM_USEREXIT_ERROR | EFAULT));
	memset(raw, 0, sizeof(raw));
	put(raw, 0, 41, 2);
	put(raw, 8, 123456, 8);
	put(raw, 16, 1, 1);
	assert_true(decode_exact(f, raw, 18, &s));
	assert_int_equal(s.type, EV_VCPU_WAKEUP);
	assert_int_equal(s.aux, 123456);
	assert_int_equal(s.dir, DIR_WRITE);
	put(raw, 0, 31, 2);
	put(raw, 12, 5, 4);
	put(raw, 16, 200000, 4);
	assert_true(decode_exact(f, raw, 24, &s));
	assert_int_equal(s.type, EV_HALT_POLL);
	assert_int_equal(s.vcpu_id, 5);
	assert_int_equal(s.aux, 200000);
	kvm_format_free(f);
}

static void short_and_foreign_data_are_refused(void **state)
{
	struct kvm_format *f = kvm_format_new();
	uint8_t raw[72] = {0};
	struct sample s;

	(void)state;
	load_file(f, "6.18-pvm", "kvm_exit");
	put(raw, 0, 103, 2);
	for (uint32_t len = 0; len < 60; len++) /* vcpu_id ends at 60; requests is not needed */
		assert_false(decode_exact(f, raw, len, &s));
	assert_true(decode_exact(f, raw, 60, &s));
	put(raw, 0, 104, 2);
	assert_false(decode_exact(f, raw, 72, &s));
	put(raw, 0, 0, 2);
	assert_false(decode_exact(f, raw, 72, &s));
	put(raw, 0, 0xffff, 2);
	assert_false(decode_exact(f, raw, 72, &s));
	kvm_format_free(f);
}

#define COMMON                                                                                     \
	"ID: 77\nformat:\n"                                                                        \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static void other_architectures(void **state)
{
	static const char arm_exit[] =
		"name: kvm_exit\n" COMMON "\tfield:int ret;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned int esr_ec;\toffset:12;\tsize:4;\tsigned:0;\n"
		"\tfield:unsigned long vcpu_pc;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: "
		"\"\"\n";
	static const char arm_entry[] =
		"name: kvm_entry\n" COMMON
		"\tfield:unsigned long vcpu_pc;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: "
		"\"\"\n";
	static const char ppc_exit[] =
		"name: kvm_guest_exit\n" COMMON
		"\tfield:int vcpu_id;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:int trap;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
	struct kvm_format *f = kvm_format_new();
	uint8_t raw[32] = {0};
	struct sample s;

	(void)state;
	put(raw, 0, 77, 2);
	assert_int_equal(load_text(f, "kvm_exit", arm_exit), 77);
	put(raw, 12, 0x24, 4);
	assert_true(decode_exact(f, raw, 24, &s));
	assert_int_equal(s.key, 0); /* IRQ: the class means nothing */
	assert_int_equal(s.isa, ISA_ARM64);
	assert_int_equal(s.vcpu_id, -1);
	put(raw, 8, 0x80000002, 4);
	assert_true(decode_exact(f, raw, 24, &s));
	assert_int_equal(s.key, KVM_ARM_TRAP | 0x24);
	kvm_format_free(f);

	f = kvm_format_new();
	assert_int_equal(load_text(f, "kvm_entry", arm_entry), 77);
	assert_true(decode_exact(f, raw, 8, &s)); /* nothing of it is needed but the thread */
	assert_int_equal(s.type, EV_ENTRY);
	assert_int_equal(s.vcpu_id, -1);
	kvm_format_free(f);

	f = kvm_format_new();
	put(raw, 8, 9, 4);
	put(raw, 12, 0x980, 4);
	assert_int_equal(load_text(f, "kvm_guest_exit", ppc_exit), 77);
	assert_true(decode_exact(f, raw, 16, &s));
	assert_int_equal(s.key, 0x980);
	assert_int_equal(s.vcpu_id, 9);
	assert_int_equal(s.isa, ISA_PPC);
	kvm_format_free(f);
}

static void formats_that_cannot_be_read(void **state)
{
	static const char *const bad[] = {
		"",
		"name: kvm_exit\n",
		"name: kvm_exit\n" COMMON "print fmt: \"\"\n",
		"name: kvm_exit\nID: 70000\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;"
		"\tsigned:1;\n\tfield:int trap;\toffset:8;\tsize:4;\tsigned:1;\n",
		"name: kvm_exit\n" COMMON "\tfield:int trap;\toffset:8;\tsize:3;\tsigned:1;\n",
		"name: kvm_exit\n" COMMON "\tfield:int trap;\toffset:99999;\tsize:4;\tsigned:1;\n",
		"name: kvm_exit\n" COMMON "\tfield:int trap;\toffset:-8;\tsize:4;\tsigned:1;\n",
	};
	struct kvm_format *f = kvm_format_new();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load_text(f, "kvm_exit", bad[i]), -EINVAL);
		assert_int_equal(kvm_format_id(f, event_index("kvm_exit")), 0);
	}
	kvm_format_free(f);
	kvm_format_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_both_kernels),
		cmocka_unit_test(kvm_exit_svm_and_vmx),
		cmocka_unit_test(access_events),
		cmocka_unit_test(user_exits_and_halts),
		cmocka_unit_test(short_and_foreign_data_are_refused),
		cmocka_unit_test(other_architectures),
		cmocka_unit_test(formats_that_cannot_be_read),
	};

	return cmocka_run_group_tests_name("kvm_format", tests, NULL, NULL);
}
