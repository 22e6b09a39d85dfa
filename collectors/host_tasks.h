// SPDX-License-Identifier: GPL-2.0-only
/* The busiest processes that belong to no VM: the row "(other)". Part of `host_cpu`. */
#ifndef KVMTOP_COLLECTORS_HOST_TASKS_H
#define KVMTOP_COLLECTORS_HOST_TASKS_H

#include "collector.h"

struct host_tasks;

struct host_tasks *host_tasks_new(const struct collector_env *env); /* NULL: no memory */
void host_tasks_free(struct host_tasks *h);
/*
 * Reads all processes and hands the ten busiest since the last call to the sink. 0 or -errno; 1: by
 * another source than before, whose first figures come with the next call.
 */
int host_tasks_read(struct host_tasks *h);

#endif
