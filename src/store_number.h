// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a figure is written into a recording: whole, in thousandths, or as it is.
 *
 * Nothing shows or exports more than three decimals, so thousandths lose nothing; where rounding
 * to them could change what is shown (2.4996 is 2 as a whole number, 2.500 is 3) it stays as it is.
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

/* Of what is none of them exactly: whether rounding to thousandths may show. */
static inline enum store_form store_form_rounded(double v, int64_t milli)
{
	int64_t whole = llabs(milli);

	/* Half-way between two that are shown (with three decimals, two, one or none): which way?
	 */
	if (!milli || fabs(fabs(v * 1000 - (double)milli) - 0.5) < 1e-6 || whole % 10 == 5 ||
	    whole % 100 == 50 || whole % 1000 == 500)
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

/* A value's state (2 bits), reason (4) and form (2). */
static inline uint8_t store_head(uint8_t state, uint8_t why, enum store_form form)
{
	return (uint8_t)((state & 3) | (why & 15) << 2 | (unsigned)form << 6);
}

#endif
