// SPDX-License-Identifier: GPL-2.0-only
/*
 * A perf.data file of any bytes, in file or pipe mode, perhaps compressed: what is handed over can
 * be read (ASan looks), and without marks of rounds it is in time order.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/perfdata_whole.h"

struct seen {
	uint64_t last;
	bool disorder;
	unsigned char sum;
};

static void look(struct seen *s, const void *at, size_t len)
{
	const uint8_t *p = at;

	for (size_t i = 0; i < len; i++)
		s->sum ^= p[i];
}

static int on_record(void *ctx, const struct perfdata_record *r)
{
	struct seen *s = ctx;

	look(s, r->bytes, r->size);
	if (r->raw &&
	    (r->raw < r->bytes || r->raw_len > r->size || r->raw + r->raw_len > r->bytes + r->size))
		abort();
	if (r->time && r->time != -1) {
		s->disorder |= (uint64_t)r->time < s->last;
		s->last = (uint64_t)r->time;
	}
	return 0;
}

static int on_format(void *ctx, const char *system, const char *text, size_t len)
{
	look(ctx, system, strlen(system) + 1);
	look(ctx, text, len);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct seen s = {0};
	struct perfdata *p;

	if (perfdata_parse(data, len, &p))
		return 0;
	for (size_t i = 0; i < perfdata_events(p); i++)
		s.sum ^= (unsigned char)perfdata_attr(p, i)->type;
	if (perfdata_text(p, PERFDATA_CPUID))
		look(&s, perfdata_text(p, PERFDATA_CPUID),
		     strlen(perfdata_text(p, PERFDATA_CPUID)));
	(void)perfdata_formats(p, on_format, &s);
	(void)perfdata_read(p, on_record, &s);
	if (s.disorder && !perfdata_sum(p)->rounds)
		abort();
	perfdata_free(p);
	return 0;
}
