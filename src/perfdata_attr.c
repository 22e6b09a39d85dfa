// SPDX-License-Identifier: GPL-2.0-only
/*
 * An event's attribute of either byte order. It is a C struct in the file: each member has an order
 * of its own size, and the bits of its flags fill each byte from the other end.
 */
#include "perfdata_priv.h"

/* Members by offset; what is between two of them, or behind the last, is of 8 bytes each. */
static const struct {
	uint8_t offset, size;
} narrow[] = {
	{offsetof(struct perf_event_attr, type), 4},
	{offsetof(struct perf_event_attr, size), 4},
	{offsetof(struct perf_event_attr, wakeup_events), 4},
	{offsetof(struct perf_event_attr, bp_type), 4},
	{offsetof(struct perf_event_attr, sample_stack_user), 4},
	{offsetof(struct perf_event_attr, clockid), 4},
	{offsetof(struct perf_event_attr, aux_watermark), 4},
	{offsetof(struct perf_event_attr, sample_max_stack), 2},
	{offsetof(struct perf_event_attr, sample_max_stack) + 2, 2}, /* reserved */
	{offsetof(struct perf_event_attr, aux_watermark) + 8, 4}, /* aux_sample_size */
	{offsetof(struct perf_event_attr, aux_watermark) + 12, 4}, /* aux_action, once reserved */
};

#define FLAGS (offsetof(struct perf_event_attr, read_format) + sizeof(uint64_t))

static size_t size_at(size_t offset)
{
	for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
		if (narrow[i].offset == offset)
			return narrow[i].size;
	return sizeof(uint64_t);
}

static void reverse_bytes(uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t b = at[i];

		at[i] = at[n - 1 - i];
		at[n - 1 - i] = b;
	}
}

static uint8_t reverse_bits(uint8_t b)
{
	uint8_t out = 0;

	for (unsigned i = 0; i < 8; i++)
		out |= (uint8_t)((b >> i & 1) << (7 - i));
	return out;
}

/* precise_ip is the one field of two bits: reversed, they stand the wrong way round. */
static void swap_flags(struct perf_event_attr *a)
{
	uint8_t *at = (uint8_t *)a + FLAGS;

	for (size_t i = 0; i < sizeof(uint64_t); i++)
		at[i] = reverse_bits(at[i]);
	a->precise_ip = (a->precise_ip >> 1 | a->precise_ip << 1) & 3;
}

struct perf_event_attr perfdata_attr_of(const struct perfdata *p, const uint8_t *at, size_t n)
{
	struct perf_event_attr a = {0};

	memcpy(&a, at, n < sizeof(a) ? n : sizeof(a));
	if (!p->swapped)
		return a;
	for (size_t i = 0, size; i < sizeof(a); i += size) {
		size = size_at(i);
		if (i != FLAGS)
			reverse_bytes((uint8_t *)&a + i, size);
	}
	swap_flags(&a);
	return a;
}
