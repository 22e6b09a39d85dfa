// SPDX-License-Identifier: GPL-2.0-only
/* Fields of the scheduler's tracepoints; see sched_format.h. */
#include "sched_format.h"

#include <errno.h>
#include <event-parse.h>
#include <sys/types.h>

#include "sysroot.h"

#define FORMAT_MAX 8192

int sched_format_field(const struct sysroot *root, const char *tracefs, const char *event,
		       const char *field, int size, uint32_t *offset, uint64_t *id)
{
	char buf[FORMAT_MAX];
	ssize_t n =
		sysroot_readf(root, buf, sizeof(buf), "%s/events/sched/%s/format", tracefs, event);
	struct tep_handle *tep = n < 0 ? NULL : tep_alloc();
	const struct tep_format_field *f = NULL;
	struct tep_event *ev = NULL;
	int rc = n < 0 ? (int)n : tep ? -ENOTSUP : -ENOMEM;

	if (tep && tep_parse_format(tep, &ev, buf, (size_t)n, "sched") == 0)
		f = tep_find_any_field(ev, field);
	if (f && f->size == size && f->offset >= 0) {
		*offset = (uint32_t)f->offset;
		*id = (uint64_t)ev->id;
		rc = 0;
	}
	tep_free(tep);
	return rc;
}
