// SPDX-License-Identifier: GPL-2.0-only
/*
 * Columns of figures that follow from others, as bytes and back (store_rules.h, store_code.h).
 *
 * Values and numbers have a form each, as in other columns, with another meaning: FORM_ZERO is what
 * follows by the rule (0 where there is no value), FORM_MILLI the difference to it in thousandths,
 * FORM_WHOLE a number of samples or the number of a step. Integers are kept as differences.
 */
#ifndef KVMTOP_STORE_RULED_H
#define KVMTOP_STORE_RULED_H

#include "store_bytes.h"
#include "store_rules.h"

/* n rows of one column; errors stick in head and body. */
void store_put_ruled(const struct store_known *k, const struct store_leaf *l, const char *rows,
		     size_t n, size_t row_size, struct store_put *head, struct store_put *body);

/*
 * The same back, in two steps, so that all states are known before any figure follows. c: the
 * column's bytes, none where it was left out. 0 or -EBADMSG.
 */
int store_take_ruled_states(struct store_get *c, const struct store_leaf *l, char *rows, size_t n,
			    size_t row_size, const uint8_t **forms);
/* unwanted: rows whose figures are left as they are, NULL: none. */
int store_take_ruled(const struct store_known *k, struct store_get *c, const uint8_t *forms,
		     const struct store_leaf *l, char *rows, size_t n, size_t row_size,
		     bool (*unwanted)(const char *row));

#endif
