// SPDX-License-Identifier: GPL-2.0-only
/* The TSC's arithmetic against values that were computed by hand, and the epochs of offsets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tsc.h"

/* What a guest reads, by the definition: the host's TSC scaled, then the offset, modulo 2^64. */
static uint64_t tsc_to_guest(uint64_t host, const struct tsc_scale *scale, uint64_t offset)
{
	if (scale && scale->ratio && scale->frac_bits <= TSC_FRAC_MAX)
		host = (uint64_t)(((unsigned __int128)host * scale->ratio) >> scale->frac_bits);
	return host + offset;
}

static uint64_t offset(const char *text)
{
	uint64_t v;

	assert_int_equal(tsc_parse_offset(text, strlen(text), &v), 0);
	return v;
}

static int parse_fails(const char *text)
{
	uint64_t v;

	return tsc_parse_offset(text, strlen(text), &v);
}

static void offsets_are_signed_or_modulo_2_64(void **state)
{
	(void)state;
	assert_true(offset("0") == 0);
	assert_true(offset("18446739773557710924") == 18446739773557710924u);
	/* 2^64 - 18446739773557710924 */
	assert_true(offset("-4300151840692") == 18446739773557710924u);
	assert_true(offset("0xfffffc16cafa204c") == 18446739773557710924u);
	assert_true(offset("+5") == 5);
	assert_true(offset("-9223372036854775808") == (uint64_t)1 << 63);
	assert_int_equal(parse_fails("-9223372036854775809"), -ERANGE);
	assert_int_equal(parse_fails("18446744073709551616"), -ERANGE);
	assert_int_equal(parse_fails(""), -EINVAL);
	assert_int_equal(parse_fails("-"), -EINVAL);
	assert_int_equal(parse_fails("0x"), -EINVAL);
	assert_int_equal(parse_fails("12a"), -EINVAL);
	assert_int_equal(parse_fails(" 1"), -EINVAL);
}

static void unscaled_is_a_difference(void **state)
{
	(void)state;
	/* 49836825726903 + 4300151840692 */
	assert_true(tsc_to_host(49836825726903u, NULL, offset("18446739773557710924")) ==
		    54136977567595u);
	/* 50550079226331 - 49836825726903 */
	assert_true(tsc_to_host(49836825726903u, NULL, offset("-713253499428")) == 50550079226331u);
}

static void both_wrap_at_2_64(void **state)
{
	(void)state;
	assert_true(tsc_to_host(UINT64_MAX - 4, NULL, offset("-10")) == 5);
	assert_true(tsc_to_host(0, NULL, 1) == UINT64_MAX);
}

static void scaling_is_exact_in_128_bits(void **state)
{
	/* VMX has 48 bits of fraction, SVM 32. */
	static const struct tsc_scale half = {(uint64_t)1 << 47, 48};
	static const struct tsc_scale three_halves = {(uint64_t)3 << 31, 32};
	static const struct tsc_scale tiny = {1, 0}, off = {0, 48};

	(void)state;
	/* Two host cycles are one of the guest's: the first of them. */
	assert_true(tsc_to_host(507, &half, 7) == 1000);
	/* 2^63 * 2^47 needs 110 bits. */
	assert_true(tsc_to_host((uint64_t)1 << 62, &half, 0) == (uint64_t)1 << 63);
	/* floor(7 * 1.5) = 10; 10 / 1.5 = 6.67, but at 6 the guest reads 9. */
	assert_true(tsc_to_host(110, &three_halves, 100) == 7);
	assert_true(tsc_to_host(43, &off, 1) == 42 && tsc_to_host(43, &tiny, 1) == 42);
}

static void what_a_guest_can_read_comes_back(void **state)
{
	/* 2.6 GHz host, guest of 2.1 and of 3.3 GHz. */
	static const struct tsc_scale scale[] = {
		{227350303173749, 48}, {5451274791u, 32}, {0x123456789abcdefu, 57}};
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		const struct tsc_scale *s = &scale[i % 3];
		uint64_t host, guest;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		host = x >> 8;
		guest = tsc_to_guest(host, s, x);
		assert_true(tsc_to_guest(tsc_to_host(guest, s, x), s, x) == guest);
		assert_true(tsc_to_host(guest, s, x) <= host);
	}
}

static void epoch_lines(void **state)
{
	static const char now[] = " vcpu=3 prev=0 next=18446704815674872663";
	static const char old[] = " vcpu=0 previous=5 next=7";
	struct tsc_epoch e = {0};

	(void)state;
	assert_true(tsc_epoch_parse(now, strlen(now), &e));
	assert_true(e.vcpu == 3 && e.prev == 0 && e.next == 18446704815674872663u);
	assert_true(tsc_epoch_parse(old, strlen(old), &e));
	assert_true(e.vcpu == 0 && e.prev == 5 && e.next == 7);
	for (size_t n = 0; n < strlen(old); n++)
		assert_false(tsc_epoch_parse(old, n, &e));
}

static void add(struct tsc_epochs *all, uint64_t at, unsigned vcpu, int tid, uint64_t prev,
		uint64_t next)
{
	struct tsc_epoch e = {.at = at, .vcpu = vcpu, .tid = tid, .prev = prev, .next = next};

	assert_int_equal(tsc_epochs_add(all, &e), 0);
}

static void writes_of_two_vms_are_told_apart(void **state)
{
	struct tsc_epochs all = {0};

	(void)state;
	/* One process makes two VMs' vCPU 0; each vCPU's own thread writes later. */
	add(&all, 10000000, 0, 50, 0, 100);
	add(&all, 20000000, 0, 50, 0, 200);
	add(&all, 30000000, 0, 52, 200, 210);
	add(&all, 40000000, 0, 51, 100, 110);
	add(&all, 50000000, 1, 51, 0, 100);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.chain[0].n, 2);
	assert_true(all.chain[0].epoch[1].next == 110);
	assert_true(all.chain[1].epoch[1].next == 210);
	assert_false(all.chain[0].epoch[1].gap);
	assert_int_equal(all.chain[2].vcpu, 1);
	tsc_epochs_free(&all);
}

static void a_missing_write_is_seen(void **state)
{
	struct tsc_epochs all = {0};

	(void)state;
	add(&all, 10000000, 0, 51, 0, 100);
	add(&all, 20000000, 0, 51, 300, 400);
	assert_int_equal(all.n, 1);
	assert_true(all.chain[0].epoch[1].gap);
	tsc_epochs_free(&all);
}

static void a_write_in_two_buffers_is_one(void **state)
{
	struct tsc_epochs all = {0};

	(void)state;
	add(&all, 10000000, 0, 51, 0, 100);
	add(&all, 10000730, 0, 51, 0, 100);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.chain[0].n, 1);
	tsc_epochs_free(&all);
	tsc_epochs_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_are_signed_or_modulo_2_64),
		cmocka_unit_test(unscaled_is_a_difference),
		cmocka_unit_test(both_wrap_at_2_64),
		cmocka_unit_test(scaling_is_exact_in_128_bits),
		cmocka_unit_test(what_a_guest_can_read_comes_back),
		cmocka_unit_test(epoch_lines),
		cmocka_unit_test(writes_of_two_vms_are_told_apart),
		cmocka_unit_test(a_missing_write_is_seen),
		cmocka_unit_test(a_write_in_two_buffers_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
