// SPDX-License-Identifier: GPL-2.0-only
/* kvmtop demo: starts the small guests (demo.c), then shows them as any others. */
#include <stdio.h>

#include "commands.h"
#include "demo.h"
#include "options.h"

int cmd_demo(const struct options *o)
{
	struct demo *demo;
	char err[240];
	int status;

	if (demo_start(&demo, err, sizeof(err))) {
		fprintf(stderr, "kvmtop: %s\n", err);
		return STATUS_FAILED;
	}
	status = o->batch ? cmd_batch(o) : cmd_live(o);
	demo_stop(demo);
	return status;
}
