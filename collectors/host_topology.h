// SPDX-License-Identifier: GPL-2.0-only
/* Node, package, core and SMT sibling of each CPU, out of /sys. Part of `host_cpu`. */
#ifndef KVMTOP_COLLECTORS_HOST_TOPOLOGY_H
#define KVMTOP_COLLECTORS_HOST_TOPOLOGY_H

#include "sample.h"
#include "sysroot.h"

/* Fills node, core, package and sibling of c->cpu; -1 where /sys does not say. */
void topology_of(const struct sysroot *root, struct cpu_reading *c);

#endif
