// SPDX-License-Identifier: GPL-2.0-only
/*
 * How this program is called: what tells people to run it must work when they copy it.
 */
#ifndef KVMTOP_OWN_PATH_H
#define KVMTOP_OWN_PATH_H

#include <stddef.h>

/*
 * "kvmtop" where PATH leads to this very program, else the path of its file; in buf or a constant.
 */
const char *own_command(char *buf, size_t size);

/* text with `command` for each word "kvmtop" in it; cut at size (at least 1). */
void own_words(char *out, size_t size, const char *text, const char *command);

#endif
