// SPDX-License-Identifier: GPL-2.0-only
/* Signals that end a command (signals.h). */
#include "signals.h"

#include <errno.h>
#include <sys/signalfd.h>

int signals_open(bool children, sigset_t *before)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		sigaddset(&set, ending[i]);
	if (children)
		sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, before);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}
