// SPDX-License-Identifier: GPL-2.0-only
#ifndef KVMTOP_COLLECTOR_TSC_H
#define KVMTOP_COLLECTOR_TSC_H

#include "collector.h"

extern const struct collector collector_tsc;

#endif
