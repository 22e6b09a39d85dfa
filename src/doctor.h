// SPDX-License-Identifier: GPL-2.0-only
/*
 * What `kvmtop doctor` says, for whoever writes it: what the host is, and of each source of figures
 * whether it works, or exactly why not and the command that mends it.
 */
#ifndef KVMTOP_DOCTOR_H
#define KVMTOP_DOCTOR_H

#include <stdbool.h>

#include "format_doctor.h"

struct options;
struct sysroot;

/* r is zeroed before. True when any source works at all. */
bool doctor_gather(const struct options *o, struct sysroot *root, struct doctor_report *r);

#endif
