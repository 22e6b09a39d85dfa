// SPDX-License-Identifier: GPL-2.0-only
/* Who had the CPU while vCPUs waited for it (waits.c). */
#ifndef KVMTOP_WAITS_H
#define KVMTOP_WAITS_H

#include "collector.h"

extern const struct collector collector_waits;

#endif
