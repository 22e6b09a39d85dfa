// SPDX-License-Identifier: GPL-2.0-only
/* Fields of tracepoints; see event_format.h. */
#include "event_format.h"

#include <errno.h>
#include <event-parse.h>
#include <sys/types.h>

#include "sysroot.h"

#define FORMAT_MAX 8192
#define WORD 8

static int find(struct tep_event *ev, const struct event_field *p, uint32_t *need)
{
	const struct tep_format_field *f = tep_find_any_field(ev, p->name);
	int align = p->size < WORD ? p->size : WORD;
	uint32_t end;

	if (!f || f->size != p->size || f->offset < 0 || f->offset % align) {
		*p->at = 0;
		return p->may_lack ? 0 : -ENOTSUP;
	}
	*p->at = (uint32_t)f->offset;
	end = ((uint32_t)(f->offset + f->size) + WORD - 1) / WORD * WORD;
	*need = end > *need ? end : *need;
	return 0;
}

int event_format(const struct sysroot *root, const char *tracefs, const char *system,
		 const char *event, const struct event_field *field, size_t n, uint32_t *need,
		 uint64_t *id)
{
	char buf[FORMAT_MAX];
	ssize_t len = sysroot_readf(root, buf, sizeof(buf), "%s/events/%s/%s/format", tracefs,
				    system, event);
	struct tep_handle *tep = len < 0 ? NULL : tep_alloc();
	struct tep_event *ev = NULL;
	int rc = len < 0 ? (int)len : tep ? 0 : -ENOMEM;

	if (!rc && tep_parse_format(tep, &ev, buf, (size_t)len, system) != 0)
		rc = -ENOTSUP;
	for (size_t i = 0; !rc && i < n; i++)
		rc = find(ev, &field[i], need);
	if (!rc)
		*id = (uint64_t)ev->id;
	tep_free(tep);
	return rc;
}
