// SPDX-License-Identifier: GPL-2.0-only
/*
 * Value → name pairs out of the `__print_symbolic()` calls of an event's `print fmt:`.
 *
 * libtraceevent can print with them but gives no access to the pairs.
 */
#ifndef KVMTOP_SYMBOLIC_H
#define KVMTOP_SYMBOLIC_H

#include <stddef.h>
#include <stdint.h>

#define SYMBOLIC_NAME_MAX 64

struct symbolic_row {
	uint64_t value;
	char *name;
};

/* Zero it before first use; owns its rows. */
struct symbolic {
	struct symbolic_row *row;
	size_t n;
};

/* One call in the text: nothing of it is owned. */
struct symbolic_call {
	const char *before; /* from the call before (or the beginning) to this one */
	size_t before_len;
	const char *arg; /* first argument */
	size_t arg_len;
	const char *rows, *end; /* what follows it, to the text's end */
};

/* Zero *c for the first one. 1 found, 0 none left, -EINVAL: the call cannot be read. */
int symbolic_next(struct symbolic_call *c, const char *text, size_t len);
/* Adds the call's rows, each value or-ed with `under`. 0, -EINVAL, -ENOMEM. */
int symbolic_parse(const struct symbolic_call *c, uint64_t under, struct symbolic *out);
void symbolic_sort(struct symbolic *s);
/* s sorted; NULL where there is none; owned by s. */
const char *symbolic_find(const struct symbolic *s, uint64_t value);
void symbolic_free(struct symbolic *s);

#endif
