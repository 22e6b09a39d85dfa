// SPDX-License-Identifier: GPL-2.0-only
/* Where fields of a tracepoint are, by its `format`: for programs in the kernel. */
#ifndef KVMTOP_COLLECTORS_EVENT_FORMAT_H
#define KVMTOP_COLLECTORS_EVENT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sysroot;

struct event_field {
	const char *name;
	int size; /* bytes */
	uint32_t *at; /* where its offset goes */
	bool may_lack; /* then that is 0 */
};

/*
 * Finds n fields of an event of tracefs under root ("sched", "sched_switch"), and its id. *need
 * becomes as many bytes of a record as they reach, in words of 8, where it was less. 0 or -errno;
 * -ENOTSUP: there is no such field, or it has another size, or is not aligned.
 */
int event_format(const struct sysroot *root, const char *tracefs, const char *system,
		 const char *event, const struct event_field *field, size_t n, uint32_t *need,
		 uint64_t *id);

#endif
