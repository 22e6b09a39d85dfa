// SPDX-License-Identifier: GPL-2.0-only
/* A perf.data file of any bytes: what is handed over lies within them and is in time order. */
#include <stdlib.h>
#include <string.h>

#include "perfdata.h"

struct bounds {
	const uint8_t *from, *to;
	int64_t last;
	unsigned char sum;
};

static void inside(struct bounds *b, const void *at, size_t len)
{
	const uint8_t *p = at;

	if (p < b->from || p > b->to || len > (size_t)(b->to - p))
		abort();
	for (size_t i = 0; i < len; i++) /* ASan looks as well */
		b->sum ^= p[i];
}

static int on_record(void *ctx, const struct perfdata_record *r)
{
	struct bounds *b = ctx;

	inside(b, r->bytes, r->size);
	if (r->raw)
		inside(b, r->raw, r->raw_len);
	if (r->time < b->last)
		abort();
	b->last = r->time;
	return 0;
}

static int on_format(void *ctx, const char *system, const char *text, size_t len)
{
	inside(ctx, system, strlen(system) + 1);
	inside(ctx, text, len);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bounds b = {data, data + len, INT64_MIN, 0};
	struct perfdata *p;

	if (perfdata_parse(data, len, &p))
		return 0;
	for (size_t i = 0; i < perfdata_events(p); i++)
		b.sum ^= (unsigned char)perfdata_attr(p, i)->type;
	(void)perfdata_formats(p, on_format, &b);
	(void)perfdata_read(p, on_record, &b);
	(void)perfdata_broken(p);
	perfdata_free(p);
	return 0;
}
