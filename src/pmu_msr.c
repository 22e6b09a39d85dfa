// SPDX-License-Identifier: GPL-2.0-only
/* The MSRs of PMUs, and what follows from a guest's writes to them (pmu.h). */
#include "pmu.h"

#include <string.h>

#define SELECT_EN (1ull << 22)

const struct pmu_range pmu_ranges[PMU_RANGES] = {
	{0xc1, 0xc8, PMU_REG_COUNTER, PMU_INTEL}, /* IA32_PMC0… */
	{0x186, 0x18d, PMU_REG_SELECT, PMU_INTEL}, /* IA32_PERFEVTSEL0… */
	{0x309, 0x310, PMU_REG_FIXED, PMU_INTEL}, /* IA32_FIXED_CTR0… */
	{0x38d, 0x38d, PMU_REG_FIXED_CTRL, PMU_INTEL},
	{0x38e, 0x38e, PMU_REG_GLOBAL_STATUS, PMU_INTEL},
	{0x38f, 0x38f, PMU_REG_GLOBAL_CTRL, PMU_INTEL},
	{0x390, 0x392, PMU_REG_OTHER, PMU_INTEL}, /* status reset, set, in use */
	{0x3f1, 0x3f2, PMU_REG_OTHER, PMU_INTEL}, /* PEBS */
	{0x4c1, 0x4c8, PMU_REG_COUNTER, PMU_INTEL}, /* IA32_A_PMC0…: all bits writable */
	{0xc0000300, 0xc0000300, PMU_REG_GLOBAL_STATUS, PMU_AMD},
	{0xc0000301, 0xc0000301, PMU_REG_GLOBAL_CTRL, PMU_AMD},
	{0xc0000302, 0xc0000303, PMU_REG_OTHER, PMU_AMD}, /* status clear, set */
	{0xc0010000, 0xc0010007, PMU_REG_SELECT, PMU_AMD}, /* legacy: four selects, four counters */
	{0xc0010200, 0xc001021f, PMU_REG_SELECT, PMU_AMD}, /* core: select and counter by turns */
};

bool pmu_msr_find(uint64_t msr, struct pmu_msr *out)
{
	for (size_t i = 0; i < PMU_RANGES; i++) {
		const struct pmu_range *r = &pmu_ranges[i];

		if (msr < r->first || msr > r->last)
			continue;
		*out = (struct pmu_msr){r->reg, r->vendor, (uint8_t)(msr - r->first)};
		if (r->first == 0xc0010000) {
			out->reg = out->nr < 4 ? PMU_REG_SELECT : PMU_REG_COUNTER;
			out->nr &= 3;
		} else if (r->first == 0xc0010200) {
			out->reg = out->nr & 1 ? PMU_REG_COUNTER : PMU_REG_SELECT;
			out->nr >>= 1;
		}
		return true;
	}
	return false;
}

/* Counters stand in order, the fixed ones behind the others. */
static struct pmu_counter *counter_of(struct pmu_state *s, bool fixed, uint8_t nr)
{
	size_t at = 0;

	for (; at < s->n; at++) {
		struct pmu_counter *c = &s->counter[at];

		if (c->fixed == fixed && c->nr == nr)
			return c;
		if (c->fixed > fixed || (c->fixed == fixed && c->nr > nr))
			break;
	}
	if (s->n == PMU_COUNTERS)
		return NULL;
	memmove(&s->counter[at + 1], &s->counter[at], (s->n - at) * sizeof(s->counter[0]));
	s->n++;
	s->counter[at] = (struct pmu_counter){.fixed = fixed, .nr = nr};
	return &s->counter[at];
}

/*
 * Some counters have several: AMD's legacy and core ones, of which the one written last counts, and
 * a guest may try the other vendor's. One that is refused takes nothing from what another has set,
 * nor from what it had itself.
 */
static void take_select(struct pmu_counter *c, const struct pmu_access *a)
{
	if (c->has_select && (!a->has_value || a->written < c->selected))
		return;
	c->refused = a->refused && !a->has_value;
	c->has_select = a->has_value;
	c->select = a->value;
	c->selected = a->written;
}

static void infer_one(struct pmu_state *s, const struct pmu_msr *m, const struct pmu_access *a)
{
	bool fixed = m->reg == PMU_REG_FIXED;
	struct pmu_counter *c = NULL;

	if (m->reg == PMU_REG_SELECT || m->reg == PMU_REG_COUNTER || fixed)
		c = counter_of(s, fixed, m->nr);
	if (c)
		c->accesses += a->count;
	if (c && m->reg == PMU_REG_SELECT)
		take_select(c, a);
	if (m->reg == PMU_REG_FIXED_CTRL && a->has_value) {
		s->has_fixed_ctrl = true;
		s->fixed_ctr_ctrl = a->value;
	}
	if (m->reg == PMU_REG_GLOBAL_CTRL && a->has_value) {
		s->has_global_ctrl = true;
		s->global_ctrl = a->value;
	}
}

/* Four bits each: those that are set belong to counters that the guest need not touch. */
static void infer_fixed(struct pmu_state *s)
{
	for (uint8_t i = 0; i < 16 && s->has_fixed_ctrl; i++) {
		uint64_t bits = s->fixed_ctr_ctrl >> (4 * i) & 15;
		struct pmu_counter *c = bits ? counter_of(s, true, i) : NULL;

		if (!c)
			continue;
		c->select = bits;
		c->has_select = true;
	}
}

static bool global_on(const struct pmu_state *s, const struct pmu_counter *c)
{
	unsigned bit = c->fixed ? 32u + c->nr : c->nr;

	return !s->has_global_ctrl || s->global_ctrl >> bit & 1;
}

void pmu_infer(const struct pmu_access *a, size_t n, struct pmu_state *out)
{
	struct pmu_msr m;

	*out = (struct pmu_state){.inferred = true, .enabled = true, .has_accesses = true};
	for (size_t i = 0; i < n; i++) {
		if (!pmu_msr_find(a[i].msr, &m))
			continue;
		out->accesses += a[i].count;
		out->refused += a[i].nrefused;
		/* A guest of either vendor may try the other's once, and gets #GP. */
		if (!out->vendor || a[i].has_value)
			out->vendor = m.vendor;
		infer_one(out, &m, &a[i]);
	}
	infer_fixed(out);
	for (size_t i = 0; i < out->n; i++) {
		struct pmu_counter *c = &out->counter[i];

		c->enabled = c->has_select && global_on(out, c) &&
			     (c->fixed ? (c->select & 3) != 0 : (c->select & SELECT_EN) != 0);
		out->gp += !c->fixed;
		out->fixed += c->fixed;
	}
}

void pmu_add_accesses(const struct pmu_access *a, size_t n, struct pmu_state *s)
{
	struct pmu_msr m;

	s->has_accesses = true;
	for (size_t i = 0; i < n; i++) {
		if (!pmu_msr_find(a[i].msr, &m))
			continue;
		s->accesses += a[i].count;
		s->refused += a[i].nrefused;
		for (size_t k = 0; k < s->n; k++) {
			struct pmu_counter *c = &s->counter[k];
			bool its = c->fixed ? m.reg == PMU_REG_FIXED
					    : m.reg == PMU_REG_SELECT || m.reg == PMU_REG_COUNTER;

			if (its && c->nr == m.nr)
				c->accesses += a[i].count;
		}
	}
}
