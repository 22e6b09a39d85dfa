// SPDX-License-Identifier: GPL-2.0-only
/* Between perfdata.c (the file and what it says of itself) and perfdata_records.c. */
#ifndef KVMTOP_PERFDATA_PRIV_H
#define KVMTOP_PERFDATA_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "perfdata.h"

struct span {
	uint64_t offset, size;
};

struct event_id {
	uint64_t id;
	uint32_t event;
};

struct place {
	int64_t time;
	uint64_t offset;
};

struct perfdata {
	const uint8_t *bytes;
	size_t len;
	uint8_t *own; /* bytes, where they are ours */
	struct span data, tracing;
	struct perf_event_attr *attr;
	size_t nattr;
	struct event_id *id; /* sorted */
	size_t nid, id_room;
	bool alike; /* all events have one sample_type */
	struct place *place;
	size_t nplace, place_room;
	uint64_t broken;
};

/* A part of the file that is read from its front; `ok` turns false at its end. */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool ok;
};

static inline const uint8_t *take(struct cursor *c, uint64_t n)
{
	const uint8_t *at = c->at;

	if (!c->ok || n > c->left) {
		c->ok = false;
		return NULL;
	}
	c->at += n;
	c->left -= n;
	return at;
}

static inline uint64_t take_u64(struct cursor *c)
{
	const uint8_t *at = take(c, sizeof(uint64_t));
	uint64_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return v;
}

static inline uint32_t take_u32(struct cursor *c)
{
	const uint8_t *at = take(c, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return v;
}

/*
 * Room for one more element of `size` bytes in *array (a pointer to any pointer); false: no memory.
 * Implemented by perfdata.c.
 */
bool perfdata_grow(void *array, size_t n, size_t *room, size_t size);
/* The event that an id belongs to. Implemented by perfdata.c. */
bool perfdata_find_event(const struct perfdata *p, uint64_t id, uint32_t *event);

#endif
