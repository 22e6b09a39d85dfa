// SPDX-License-Identifier: GPL-2.0-only
/* What ends a report whose file shrank (report_cut.h). */
#include "report_cut.h"

#include <signal.h>
#include <unistd.h>

#include "commands.h"

/*
 * Nothing of the result was written yet: tables come when all is read. What was read so far is no
 * whole file's, and is left.
 */
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	static const char text[] =
		"kvmtop: the file shrank while it was read: somebody cut it off or wrote it anew\n";

	(void)context;
	if (info->si_code != BUS_ADRERR) { /* broken memory, say: as without us, at once */
		signal(sig, SIG_DFL);
		return;
	}
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(STATUS_FAILED); /* nobody is there to be told */
	_exit(STATUS_FAILED);
}

void report_cut_guard(void)
{
	struct sigaction sa = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}
