// SPDX-License-Identifier: GPL-2.0-only
/* The visible table of commands (commands.h). */
#include <stddef.h>

#include "commands.h"
#include "options.h"

const struct command commands[] = {
	{NULL, "live, full screen", FOR_LIVE, cmd_live},
	{NULL, "the figures as text, CSV or JSON lines on standard output", FOR_BATCH, cmd_batch},
	{"doctor",
	 "each source of figures: works, or exactly why not and the command that mends it",
	 FOR_DOCTOR, cmd_doctor},
	{NULL, NULL, 0, NULL},
};
