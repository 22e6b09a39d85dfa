// SPDX-License-Identifier: GPL-2.0-only
/* Where a field of one of the scheduler's tracepoints is, by its `format`. */
#ifndef KVMTOP_COLLECTORS_SCHED_FORMAT_H
#define KVMTOP_COLLECTORS_SCHED_FORMAT_H

#include <stdint.h>

struct sysroot;

/*
 * The offset of a field of `size` bytes, from tracefs under root, and the event's id. 0 or -errno;
 * -ENOTSUP: there is no such field, or it has another size.
 */
int sched_format_field(const struct sysroot *root, const char *tracefs, const char *event,
		       const char *field, int size, uint32_t *offset, uint64_t *id);

#endif
