// SPDX-License-Identifier: GPL-2.0-only
/* The signals by which a user ends a command that writes: read where it suits, not delivered. */
#ifndef KVMTOP_SIGNALS_H
#define KVMTOP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/*
 * Blocks SIGINT, SIGTERM, SIGHUP and SIGQUIT, with `children` SIGCHLD too, before any thread is
 * made, so that all of them inherit it. *before, where not NULL: what was blocked until then. A
 * signalfd that does not block, the caller's, or -errno.
 */
int signals_open(bool children, sigset_t *before);

#endif
