// SPDX-License-Identifier: GPL-2.0-only
/* Between the files of the collector `sched`. */
#ifndef KVMTOP_COLLECTORS_SCHED_PRIV_H
#define KVMTOP_COLLECTORS_SCHED_PRIV_H

#include "collector.h"

struct sched_iter;

void sched_probe(const struct collector_env *env, struct probes *out);
/* Tells the sink what came of loading the iterator. */
void sched_say_iter(const struct collector_env *env, const struct sched_iter *it, bool works);

#endif
