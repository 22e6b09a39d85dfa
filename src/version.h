// SPDX-License-Identifier: GPL-2.0-only
/* The version, as -V, JSON and the man page have it. */
#ifndef KVMTOP_VERSION_H
#define KVMTOP_VERSION_H

#define KVMTOP_VERSION "0.1.0"

#endif
