// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a figure is written into a recording: whole, in thousandths, or as it is.
 *
 * Nothing shows or exports more than three decimals, so thousandths lose nothing, as long as it is
 * known on which side of a half a figure is: 2.4996 is 2 as a whole number, 2.500 is 3. Those that
 * end in 5 have codes of their own for that; of the few that end in 50 or 500 the figure is kept as
 * it is. So are those just beside a whole number: thresholds are such, and where a figure goes on
 * in thousands or with fewer digits.
 */
#ifndef KVMTOP_STORE_NUMBER_H
#define KVMTOP_STORE_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum store_form { FORM_ZERO, FORM_WHOLE, FORM_MILLI, FORM_RAW };

/* Beyond it thousandths are no longer exact in a double. */
#define STORE_NUMBER_MOST 1e12

/* Thousandths, rounded; |v| is below STORE_NUMBER_MOST. As a sum: round() is a call. */
static inline int64_t store_milli(double v)
{
	return (int64_t)(v * 1000 + (v < 0 ? -0.5 : 0.5));
}

/* Format 1 had them as they are; since format 2 they are codes. */
#define STORE_CODES 12 /* of ten thousandths */

enum { STORE_EXACT, STORE_BELOW, STORE_ABOVE };

static inline int64_t store_code(int64_t milli, int side)
{
	int64_t tens = milli / 10, last = milli % 10;

	if (last < 0) {
		last += 10;
		tens--;
	}
	return tens * STORE_CODES + (last < 5 ? last : last > 5 ? last + 2 : 5 + side);
}

/* Of any code: those of damaged files too. */
static inline double store_decode_milli(int64_t code)
{
	int64_t tens = code / STORE_CODES, last = code % STORE_CODES;
	double off = 0;

	if (last < 0) {
		last += STORE_CODES;
		tens--;
	}
	if (last > 5 && last <= 5 + STORE_ABOVE)
		off = last == 5 + STORE_BELOW ? -0.25 : 0.25;
	last = last <= 5 ? last : last <= 5 + STORE_ABOVE ? 5 : last - 2;
	return ((double)(tens * 10 + last) + off) / 1000;
}

/* A figure in thousandths. */
struct store_thousandths {
	int64_t milli; /* rounded */
	double off; /* how much more than that it is */
	int side; /* of milli / 1000 */
};

/* |v| is below STORE_NUMBER_MOST. */
static inline struct store_thousandths store_thousandths(double v)
{
	struct store_thousandths t = {.milli = store_milli(v)};
	double scaled = v * 1000, exact;

	t.off = scaled - (double)t.milli;
	/* More than what rounding makes of an exact one: most figures, without a division. */
	if (fabs(t.off) > 1e-15 * fabs(scaled)) {
		t.side = t.off < 0 ? STORE_BELOW : STORE_ABOVE;
		return t;
	}
	exact = (double)t.milli / 1000;
	t.side = v == exact ? STORE_EXACT : v < exact ? STORE_BELOW : STORE_ABOVE;
	return t;
}

/* Whether rounding to thousandths may show: half-way between two that are shown, or at a whole one.
 */
static inline bool store_shows(const struct store_thousandths *t)
{
	int64_t tens = t->milli / 10;

	if (!t->milli || fabs(fabs(t->off) - 0.5) < 1e-6)
		return true;
	return tens * 10 == t->milli && (llabs(tens) % 10 == 5 || llabs(tens) % 50 == 0);
}

/* *code: of a figure of FORM_MILLI, or the number itself where it is of FORM_WHOLE. */
static inline enum store_form store_form_of(double v, int64_t *code)
{
	struct store_thousandths t;

	if (v == 0)
		return signbit(v) ? FORM_RAW : FORM_ZERO;
	/* Also for what is no number. */
	if (!(fabs(v) < STORE_NUMBER_MOST))
		return FORM_RAW;
	*code = (int64_t)v;
	if (v == (double)*code)
		return FORM_WHOLE;
	t = store_thousandths(v);
	if ((t.side != STORE_EXACT || !t.milli) && store_shows(&t))
		return FORM_RAW;
	*code = store_code(t.milli, t.side);
	return FORM_MILLI;
}

/* The code of a figure that thousandths of are exact. */
static inline int64_t store_milli_code(double v)
{
	struct store_thousandths t = store_thousandths(v);

	return store_code(t.milli, t.side);
}

/* A value's state (2 bits), reason (4) and form (2). */
static inline uint8_t store_head(uint8_t state, uint8_t why, enum store_form form)
{
	return (uint8_t)((state & 3) | (why & 15) << 2 | (unsigned)form << 6);
}

#endif
