// SPDX-License-Identifier: GPL-2.0-only
/* The text of /proc/kallsyms, live or a copy of it. */
#ifndef KVMTOP_KALLSYMS_H
#define KVMTOP_KALLSYMS_H

#include "symtab.h"

struct kallsyms_facts {
	size_t lines; /* that are symbols, of any type */
	size_t code; /* symbols of code with an address */
	size_t zeros; /* symbols of code without one: kptr_restrict */
	size_t bad; /* lines that are none */
	size_t modules; /* symbols of code in modules */
	uint64_t stext; /* the kernel's _stext, else _text; 0: neither */
};

/*
 * Adds the code in `text` (len bytes, any) to b. 0, -ENOMEM, -E2BIG; -EACCES where the addresses
 * are hidden; -EBADMSG for what is no kallsyms at all. The facts are set in any case.
 */
int kallsyms_parse(const char *text, size_t len, struct symbuild *b, struct kallsyms_facts *facts);

/*
 * Is the beginning of a file (len bytes, the last line may be cut) one of kallsyms? Hidden
 * addresses make no difference.
 */
bool kallsyms_begins(const char *text, size_t len);

/* Has a line (without its end) the form of one of kallsyms? */
bool kallsyms_is_line(const char *p, const char *end);

#endif
