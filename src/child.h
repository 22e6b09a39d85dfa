// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a command that a command of kvmtop started: waited for, yet never longer than the user
 * is willing to.
 *
 * All take a signalfd of SIGCHLD and of what the user may end kvmtop with, all of them blocked.
 */
#ifndef KVMTOP_CHILD_H
#define KVMTOP_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads what came; true: the user wants the end. */
bool child_asked(int sigfd);
/*
 * Waits for its end. 0 with its status, as of waitpid(); -EINTR: the user wants the end, and the
 * signal was read; -ETIMEDOUT after ns (< 0: never).
 */
int child_wait(pid_t pid, int sigfd, int64_t ns, int *status);
/* Sends SIGTERM; what then still runs after three seconds, or at the user's next signal, is killed.
 */
void child_end(pid_t pid, int sigfd, int *status);

#endif
