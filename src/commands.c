// SPDX-License-Identifier: GPL-2.0-only
/* The visible table of commands (commands.h). */
#include <stddef.h>

#include "commands.h"
#include "options.h"

const struct command commands[] = {
	{NULL, "live, full screen", FOR_LIVE, cmd_live},
	{NULL, NULL, 0, NULL},
};
