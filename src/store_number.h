// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a figure is written into a recording: whole, in thousandths, or as it is.
 *
 * Nothing shows or exports more than three decimals, so thousandths lose nothing, as long as it is
 * known on which side of a half a figure is: 2.4996 is 2 as a whole number, 2.500 is 3. Those that
 * end in 5 have codes of their own for that; of the few that end in 50 or 500 the figure is kept as
 * it is.
 */
#ifndef KVMTOP_STORE_NUMBER_H
#define KVMTOP_STORE_NUMBER_H

#include <math.h>
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

/* Of what is none of them exactly: whether rounding to thousandths may show. */
static inline enum store_form store_form_rounded(double v, int64_t milli)
{
	int64_t whole = llabs(milli);

	/* Half-way between two that are shown: which way? */
	if (!milli || fabs(fabs(v * 1000 - (double)milli) - 0.5) < 1e-6 || whole % 100 == 50 ||
	    whole % 1000 == 500)
		return FORM_RAW;
	return FORM_MILLI;
}

static inline enum store_form store_form_of(double v)
{
	int64_t milli;

	if (v == 0)
		return signbit(v) ? FORM_RAW : FORM_ZERO;
	/* Also for what is no number. */
	if (!(fabs(v) < STORE_NUMBER_MOST))
		return FORM_RAW;
	if (v == (double)(int64_t)v)
		return FORM_WHOLE;
	milli = store_milli(v);
	if (milli && (double)milli / 1000 == v)
		return FORM_MILLI;
	return store_form_rounded(v, milli);
}

/* The code of a figure of FORM_MILLI or FORM_WHOLE. */
static inline int64_t store_milli_code(double v)
{
	int64_t milli = store_milli(v);
	double exact = (double)milli / 1000;

	return store_code(milli, v == exact ? STORE_EXACT : v < exact ? STORE_BELOW : STORE_ABOVE);
}

/* A value's state (2 bits), reason (4) and form (2). */
static inline uint8_t store_head(uint8_t state, uint8_t why, enum store_form form)
{
	return (uint8_t)((state & 3) | (why & 15) << 2 | (unsigned)form << 6);
}

#endif
