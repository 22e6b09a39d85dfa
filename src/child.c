// SPDX-License-Identifier: GPL-2.0-only
/* The end of commands that kvmtop started (child.h). */
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define PATIENCE_NS (3 * NS_PER_S)

/* SIGCHLD only wakes: whose it was, waitpid() knows. */
bool child_asked(int sigfd)
{
	struct signalfd_siginfo si;
	bool asked = false;

	while (!asked && read(sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		asked = si.ssi_signo != SIGCHLD;
	return asked;
}

int child_wait(pid_t pid, int sigfd, int64_t ns, int *status)
{
	int64_t end = clock_mono_ns() + ns, left = -1;
	struct pollfd p = {.fd = sigfd, .events = POLLIN};

	while (waitpid(pid, status, WNOHANG) == 0) {
		if (ns >= 0 && (left = end - clock_mono_ns()) <= 0)
			return -ETIMEDOUT;
		poll(&p, 1, ns < 0 ? -1 : (int)(left / NS_PER_MS) + 1);
		if (child_asked(sigfd))
			return -EINTR;
	}
	return 0;
}

void child_end(pid_t pid, int sigfd, int *status)
{
	kill(pid, SIGTERM);
	kill(pid, SIGCONT); /* one that is stopped would not see it */
	if (!child_wait(pid, sigfd, PATIENCE_NS, status))
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
}
