// SPDX-License-Identifier: GPL-2.0-only
/*
 * The records of a perf.data file: where their fields stand, which follows from the sample_type of
 * their event.
 */
#include <errno.h>
#include <stdlib.h>

#include "perfdata_priv.h"

/* Behind which fields of a sample its event's id stands: it tells where the others are. */
static size_t id_offset(uint64_t type)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		return 0;
	return 8u * (unsigned)__builtin_popcountll(type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
							   PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

/* Which event a record is of; without ids the first. False: that cannot be told. */
static bool event_of(const struct perfdata *p, const struct perfdata_record *r, uint32_t *event)
{
	uint64_t type = p->attr[0].sample_type;
	size_t body = r->size - sizeof(struct perf_event_header), at = id_offset(type);
	const size_t head = sizeof(struct perf_event_header);

	*event = 0;
	if (p->nattr == 1 || !(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return p->alike;
	if (!p->alike && !(type & PERF_SAMPLE_IDENTIFIER))
		return false;
	if (r->type != PERF_RECORD_SAMPLE) {
		if (!p->attr[0].sample_id_all)
			return true;
		/* From the end: the identifier, CPU, stream and then the id. */
		at = type & PERF_SAMPLE_IDENTIFIER ? 8
						   : 8 + 8u * !!(type & PERF_SAMPLE_CPU) +
							     8u * !!(type & PERF_SAMPLE_STREAM_ID);
		if (at > body)
			return false;
		at = body - at;
	}
	/* What perf itself made up of the processes that ran already has the id 0. */
	return at + 8 <= body && (perfdata_find_event(p, perfdata_u64(r, head + at), event) ||
				  p->alike || r->type != PERF_RECORD_SAMPLE);
}

static void take_pid_tid(struct cursor *c, struct perfdata_record *r)
{
	r->pid = (int32_t)take_u32(c);
	r->tid = (int32_t)take_u32(c);
}

static void take_cpu(struct cursor *c, struct perfdata_record *r)
{
	r->cpu = (int32_t)take_u32(c);
	(void)take_u32(c); /* reserved */
}

/* Counters that were read along: their number depends on the format. */
static void skip_read(struct cursor *c, uint64_t format)
{
	uint64_t n = 1, each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);

	if (format & PERF_FORMAT_GROUP)
		n = take_u64(c);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		(void)take_u64(c);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		(void)take_u64(c);
	(void)take(c, n > UINT16_MAX ? UINT64_MAX : n * each * 8);
}

static bool take_sample(const struct perf_event_attr *a, struct cursor c, struct perfdata_record *r)
{
	uint64_t type = a->sample_type, n;

	if (type & PERF_SAMPLE_IDENTIFIER)
		(void)take_u64(&c);
	if (type & PERF_SAMPLE_IP)
		r->ip = take_u64(&c);
	if (type & PERF_SAMPLE_TID)
		take_pid_tid(&c, r);
	if (type & PERF_SAMPLE_TIME)
		r->time = (int64_t)take_u64(&c);
	(void)take(&c,
		   8u * (unsigned)__builtin_popcountll(type & (PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
							       PERF_SAMPLE_STREAM_ID)));
	if (type & PERF_SAMPLE_CPU)
		take_cpu(&c, r);
	if (type & PERF_SAMPLE_PERIOD)
		(void)take_u64(&c);
	if (type & PERF_SAMPLE_READ)
		skip_read(&c, a->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		n = take_u64(&c);
		(void)take(&c, n > UINT16_MAX ? UINT64_MAX : n * 8);
	}
	if (type & PERF_SAMPLE_RAW) {
		r->raw_len = take_u32(&c);
		r->raw = take(&c, r->raw_len);
	}
	return c.ok;
}

/* What all other records have at their end (sample_id_all). */
static bool take_trailer(const struct perf_event_attr *a, struct cursor c,
			 struct perfdata_record *r)
{
	uint64_t type =
		a->sample_type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	size_t size = 8u * (unsigned)__builtin_popcountll(type);

	if (!a->sample_id_all)
		return true;
	if (size > c.left)
		return false;
	(void)take(&c, c.left - size);
	if (type & PERF_SAMPLE_TID)
		take_pid_tid(&c, r);
	if (type & PERF_SAMPLE_TIME)
		r->time = (int64_t)take_u64(&c);
	(void)take(&c, 8u * (unsigned)__builtin_popcountll(
				    type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID)));
	if (type & PERF_SAMPLE_CPU)
		take_cpu(&c, r);
	return c.ok;
}

bool perfdata_decode(const struct perfdata *p, struct perfdata_record *r)
{
	struct cursor c = body_of(p, r->bytes, r->size);

	r->pid = r->tid = r->cpu = -1;
	r->time = 0;
	r->ip = 0;
	r->raw = NULL;
	r->raw_len = 0;
	if (!event_of(p, r, &r->event))
		return false;
	if (r->type == PERF_RECORD_SAMPLE)
		return take_sample(&p->attr[r->event], c, r);
	return take_trailer(&p->attr[r->event], c, r);
}

static uint16_t next_field(uint64_t type, uint64_t bit, uint16_t *at)
{
	uint16_t here = *at;

	if (!(type & bit))
		return 0;
	*at = (uint16_t)(here + 8);
	return here;
}

static struct layout layout_of(uint64_t type)
{
	struct layout l = {.plain = !(type & (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN))};
	uint16_t at = sizeof(struct perf_event_header);

	l.identified = next_field(type, PERF_SAMPLE_IDENTIFIER, &at);
	l.ip = next_field(type, PERF_SAMPLE_IP, &at);
	l.tid = next_field(type, PERF_SAMPLE_TID, &at);
	l.time = next_field(type, PERF_SAMPLE_TIME, &at);
	(void)next_field(type, PERF_SAMPLE_ADDR, &at);
	(void)next_field(type, PERF_SAMPLE_ID, &at);
	(void)next_field(type, PERF_SAMPLE_STREAM_ID, &at);
	l.cpu = next_field(type, PERF_SAMPLE_CPU, &at);
	(void)next_field(type, PERF_SAMPLE_PERIOD, &at);
	if (type & PERF_SAMPLE_RAW) {
		l.raw = at;
		at += sizeof(uint32_t);
	}
	l.least = at;
	l.usual = l.plain && l.ip && l.tid && l.time && l.cpu && l.raw;
	return l;
}

int perfdata_layouts(struct perfdata *p)
{
	struct layout *l = calloc(p->nattr + 1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	free(p->layout);
	p->layout = l;
	for (size_t i = 0; i < p->nattr; i++)
		l[i] = layout_of(p->attr[i].sample_type);
	return 0;
}
