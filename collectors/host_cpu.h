// SPDX-License-Identifier: GPL-2.0-only
/* The collector `host_cpu`: the host's CPUs and its busiest tasks that are no VM's. */
#ifndef KVMTOP_COLLECTORS_HOST_CPU_H
#define KVMTOP_COLLECTORS_HOST_CPU_H

#include "collector.h"

extern const struct collector collector_host_cpu;

#endif
