// SPDX-License-Identifier: GPL-2.0-only
/* The guest's half of `kvmtop trace`: a shell script that traces there and prints what it saw. */
#ifndef KVMTOP_TRACE_GUEST_H
#define KVMTOP_TRACE_GUEST_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Written for any POSIX shell, busybox's too; to be run by root. Prints its trace on standard
 * output and leaves nothing behind, whatever ends it.
 */
void trace_guest_script(FILE *to, double seconds);

/*
 * Starts the command, whose last words become "sh", with the script as its standard input and `out`
 * as its standard output. The child's pid or -errno.
 */
pid_t trace_guest_start(char *const *words, int n, double seconds, int out);

#endif
