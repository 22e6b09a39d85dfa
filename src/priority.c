// SPDX-License-Identifier: GPL-2.0-only
/* See priority.h. In Linux each thread has a nice value of its own. */
#include "priority.h"

#include <errno.h>
#include <sys/resource.h>

#define FIRST (-20)

void priority_raise(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) == 0 && !errno)
		setpriority(PRIO_PROCESS, 0, FIRST);
}
