// SPDX-License-Identifier: GPL-2.0-only
/* The text of /proc/modules: where the code of each module lies. */
#ifndef KVMTOP_MODULES_H
#define KVMTOP_MODULES_H

#include "symtab.h"

struct modules_facts {
	size_t modules; /* with an address */
	size_t zeros; /* without: hidden from whoever read the file */
	size_t bad; /* lines that are none */
};

/*
 * Tells b the range of each module: addresses in it that no symbol has are then known to be the
 * module's. 0, -ENOMEM, -E2BIG; -EACCES where the addresses are hidden. The facts are set in any
 * case; an empty text is a kernel without modules.
 */
int modules_parse(const char *text, size_t len, struct symbuild *b, struct modules_facts *facts);

#endif
