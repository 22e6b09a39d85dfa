// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between the files of perfdata.h: perfdata.c (the header and what it says), perfdata_attr.c
 * (its attributes' byte order), perfdata_stream.c
 * (records one after the other), perfdata_records.c (the fields of one), perfdata_order.c (their
 * order in time) and perfdata_unpack.c (compressed ones).
 */
#ifndef KVMTOP_PERFDATA_PRIV_H
#define KVMTOP_PERFDATA_PRIV_H

#include <byteswap.h>
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

/* Bytes of the recording that are being looked at: the caller's, or a buffer that is refilled. */
struct window {
	const uint8_t *at;
	size_t left;
	uint8_t *buf;
	size_t cap;
	void *map; /* or this, map_len bytes, NULL: none */
	size_t map_len;
	uint64_t more; /* bytes that may still be read from the file */
};

struct unpack; /* perfdata_unpack.c */

/* Where the fields of an event's samples stand from the record's beginning, 0: not there. */
struct layout {
	bool identified; /* begins with PERF_SAMPLE_IDENTIFIER */
	bool plain; /* nothing of a length of its own stands before the raw data */
	bool usual; /* plain, and all that follows is there */
	uint16_t ip, tid, time, cpu, raw;
	uint16_t least; /* the size of a record that has them all */
};

#define IDS_SEEN 64 /* a power of two; ids are given out one after the other */

struct perfdata {
	int fd; /* -1: all is in memory */
	bool own_fd;
	bool pipe; /* perf's pipe mode: the header comes as records */
	bool swapped; /* its numbers are of the other byte order than this machine's */
	const uint8_t *bytes; /* where all is in memory, len of them */
	size_t len;
	uint64_t file_size; /* of a file; a pipe's end is not known */
	struct span data;
	uint8_t *tracing; /* a copy of its section, tracing_len bytes */
	size_t tracing_len;
	char *text[PERFDATA_TEXTS]; /* of the header; NULL: it has none */
	struct perf_event_attr *attr;
	size_t nattr, attr_room;
	struct layout *layout; /* of each event, once perfdata_layouts() was called */
	struct event_id seen[IDS_SEEN]; /* of the last samples */
	struct event_id *id; /* in order, once perfdata_sort_ids() ran */
	size_t nid, id_room;
	bool alike; /* all events have one sample_type */
	struct window in;
	enum { LEASE_UNTRIED, LEASE_HELD, LEASE_NONE } lease; /* perfdata_stream.c */
	struct unpack *unpack;
	struct perfdata_sum sum;
};

/*
 * A part of the file that is read from its front; `ok` turns false at its end. Numbers are taken in
 * the file's byte order: no other place knows of one, but for the samples' quick way, which is of
 * this machine's alone, and attributes, which are C structs (perfdata_attr.c).
 */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool ok, swapped;
};

static inline struct cursor cursor_of(const struct perfdata *p, const uint8_t *at, size_t n)
{
	return (struct cursor){at, n, true, p->swapped};
}

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
	return c->swapped ? bswap_64(v) : v;
}

static inline uint32_t take_u32(struct cursor *c)
{
	const uint8_t *at = take(c, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return c->swapped ? bswap_32(v) : v;
}

/* Of this machine's byte order. */
static inline struct perf_event_header header_at(const uint8_t *at)
{
	struct perf_event_header h;

	memcpy(&h, at, sizeof(h));
	return h;
}

static inline struct perf_event_header header_of(const struct perfdata *p, const uint8_t *at)
{
	struct perf_event_header h = header_at(at);

	if (p->swapped)
		h = (struct perf_event_header){bswap_32(h.type), bswap_16(h.misc),
					       bswap_16(h.size)};
	return h;
}

/* What follows a record's header. */
static inline struct cursor body_of(const struct perfdata *p, const uint8_t *at, size_t size)
{
	return cursor_of(p, at + sizeof(struct perf_event_header),
			 size - sizeof(struct perf_event_header));
}

/* ---- perfdata_attr.c ---- */

/* `n` bytes that stand at `at`, in the file's byte order; older ones are shorter. */
struct perf_event_attr perfdata_attr_of(const struct perfdata *p, const uint8_t *at, size_t n);

/* ---- perfdata.c ---- */

/* The event that an id belongs to. */
bool perfdata_find_event(const struct perfdata *p, uint64_t id, uint32_t *event);
/* One more event, its attribute in `size` bytes (older ones are shorter) and its ids. */
int perfdata_add_event(struct perfdata *p, struct cursor attr, struct cursor ids);
void perfdata_sort_ids(struct perfdata *p);
/* One section of the header, or a record that has its content. */
int perfdata_take_feature(struct perfdata *p, unsigned feature, struct cursor c);

#define FEATURE_TRACING_DATA 1
#define FEATURE_LAST PERFDATA_CPUID /* those behind it are not looked at */

/* ---- perfdata_records.c ---- */

int perfdata_layouts(struct perfdata *p);
/* By the identifier in front, which all events have or none. */
static inline bool perfdata_quick_event(struct perfdata *p, struct perfdata_record *r)
{
	struct event_id *seen;
	uint64_t id;

	if (!p->layout->identified || r->size < sizeof(struct perf_event_header) + sizeof(id))
		return false;
	memcpy(&id, r->bytes + sizeof(struct perf_event_header), sizeof(id));
	seen = &p->seen[id % IDS_SEEN];
	if (seen->id != id || !id) {
		if (!perfdata_find_event(p, id, &seen->event))
			return false;
		seen->id = id;
	}
	r->event = seen->event;
	return true;
}

/* Decodes the record at r->bytes, r->size, r->type and r->misc, which is whole. */
bool perfdata_decode(const struct perfdata *p, struct perfdata_record *r);
/* What perf records of a tracepoint: without a question on the way. */
static inline bool perfdata_usual(const struct layout *l, struct perfdata_record *r)
{
	int32_t pid_tid[2];

	memcpy(&r->ip, r->bytes + l->ip, sizeof(r->ip));
	memcpy(pid_tid, r->bytes + l->tid, sizeof(pid_tid));
	r->pid = pid_tid[0];
	r->tid = pid_tid[1];
	memcpy(&r->time, r->bytes + l->time, sizeof(r->time));
	memcpy(&r->cpu, r->bytes + l->cpu, sizeof(r->cpu));
	memcpy(&r->raw_len, r->bytes + l->raw, sizeof(r->raw_len));
	r->raw = r->bytes + l->raw + sizeof(r->raw_len);
	return r->raw_len <= r->size - l->raw - sizeof(r->raw_len);
}

/*
 * The same of a sample, quickly, where that can be: nothing of its own length stands before the raw
 * data, and all is of this machine's byte order. Where all events are alike r->event is not found.
 * False: use perfdata_decode().
 */
static inline bool perfdata_quick(struct perfdata *p, struct perfdata_record *r)
{
	const struct layout *l = p->layout;
	int32_t pid_tid[2];

	r->event = 0;
	if (!p->alike && !perfdata_quick_event(p, r))
		return false;
	l += r->event;
	if (!l->plain || r->size < l->least)
		return false;
	if (l->usual)
		return perfdata_usual(l, r);
	r->ip = 0;
	if (l->ip)
		memcpy(&r->ip, r->bytes + l->ip, sizeof(r->ip));
	r->pid = r->tid = r->cpu = -1;
	if (l->tid) {
		memcpy(pid_tid, r->bytes + l->tid, sizeof(pid_tid));
		r->pid = pid_tid[0];
		r->tid = pid_tid[1];
	}
	r->time = 0;
	if (l->time)
		memcpy(&r->time, r->bytes + l->time, sizeof(r->time));
	if (l->cpu)
		memcpy(&r->cpu, r->bytes + l->cpu, sizeof(r->cpu));
	r->raw = NULL;
	r->raw_len = 0;
	if (!l->raw)
		return true;
	memcpy(&r->raw_len, r->bytes + l->raw, sizeof(r->raw_len));
	r->raw = r->bytes + l->raw + sizeof(r->raw_len);
	return r->raw_len <= r->size - l->raw - sizeof(r->raw_len);
}

/* ---- perfdata_stream.c ---- */

/*
 * Hands each record to fn, those of perf itself (type 64 and above) as far as fn knows what to do
 * with them. leading: stops before the first record of the kernel's, which stays to be read.
 */
typedef int (*perfdata_raw_fn)(void *ctx, const uint8_t *bytes, struct perf_event_header h);
/*
 * What fn would do with records that are at hand, n bytes of them, one after the other, as far as
 * that is quick. Returns how many bytes it is through with; *rc: 0, or what ends the reading.
 */
typedef size_t (*perfdata_many_fn)(void *ctx, const uint8_t *at, size_t n, int *rc);
/* many: NULL, nobody hurries. */
int perfdata_stream(struct perfdata *p, bool leading, perfdata_raw_fn fn, perfdata_many_fn many,
		    void *ctx);
/* n bytes in a row at p->in.at; false: there are fewer. *err: -errno of read(2). */
bool perfdata_fill(struct perfdata *p, size_t n, int *err);

/* Records of perf itself. */
enum {
	USER_TYPE_START = 64,
	USER_ATTR = 64,
	USER_TRACING_DATA = 66, /* followed by data, as is AUXTRACE */
	USER_FINISHED_ROUND = 68,
	USER_AUXTRACE = 71,
	USER_FEATURE = 80,
	USER_COMPRESSED = 81,
	USER_COMPRESSED2 = 83,
};

/* For perfdata_free(): what was mapped. */
void perfdata_unmap(struct perfdata *p);

/* ---- perfdata_unpack.c ---- */

/*
 * Unpacks n bytes and hands on the records that are whole now. -EBADMSG: they do not unpack;
 * -ENOTSUP: without libzstd.
 */
int perfdata_unpack(struct perfdata *p, const uint8_t *bytes, size_t n, perfdata_raw_fn fn,
		    void *ctx);
void perfdata_unpack_free(struct unpack *u);

#endif
