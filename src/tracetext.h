// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads ftrace's text (tracefs' `trace`, `trace-cmd report`) event by event, in bounded memory: a
 * line of an event with the lines that belong to it, as they stand in the file.
 */
#ifndef KVMTOP_TRACETEXT_H
#define KVMTOP_TRACETEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACETEXT_CPUS 8192 /* the kernel's own limit: larger numbers are no CPUs */

/* The clocks that the look of time stamps tells apart. */
enum tracetext_clock {
	TRACETEXT_CYCLES, /* whole numbers that are not one of the next */
	TRACETEXT_SECONDS, /* 13.238646 */
	TRACETEXT_COUNTER, /* clock counter: one more at each event; or uptime: ticks */
};

struct tracetext_event {
	/*
	 * A line, what stands before it (lost events) and behind it (a stack), without the last
	 * line's end; valid until the next call. Offsets are from its beginning.
	 */
	const char *text;
	size_t len;
	size_t line, line_len; /* the event's own line */
	size_t stamp, stamp_len; /* the digits of the time stamp */
	size_t name, name_len; /* the event's name; 0: it has none */
	uint64_t ts; /* whole part, where it has a point */
	unsigned cpu;
	int pid, tgid; /* tgid 0: not in the text */
	bool seconds; /* the time stamp has a point */
	bool lost; /* a LOST line stands before it */
};

/* What the text says of itself; right once the first event was read. */
struct tracetext_facts {
	char tracer[24]; /* "nop"; "": not said */
	bool latency; /* latency-format: time stamps are relative */
	unsigned columns; /* of flags; 0: not said */
	uint64_t events, orphans, cut; /* so far: events; lines that belong to none; cut lines */
	char first[80]; /* the first line that is neither comment nor event, while no event came */
};

struct tracetext;

/*
 * fd is not owned. From a file that can be sought it reads at `from` on, without moving the
 * descriptor's own place, so that several readers can share it. 0 or -errno.
 */
int tracetext_open(int fd, uint64_t from, struct tracetext **out);
void tracetext_close(struct tracetext *t);
/* A set of CPUs. */
struct tracetext_cpus {
	uint64_t bit[TRACETEXT_CPUS / 64];
};

static inline bool tracetext_has_cpu(const struct tracetext_cpus *c, unsigned cpu)
{
	return c->bit[cpu / 64] >> (cpu % 64) & 1;
}

static inline void tracetext_add_cpu(struct tracetext_cpus *c, unsigned cpu)
{
	c->bit[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

/*
 * Before anything is read: only events of these CPUs (which must outlive t), and a buffer of about
 * `bytes` (there is a least, and a line may need more), for who reads a text several times. 0 or
 * -ENOMEM.
 */
int tracetext_only(struct tracetext *t, const struct tracetext_cpus *cpus, size_t bytes);
/* 1: an event; 0: the end; -errno. */
int tracetext_next(struct tracetext *t, struct tracetext_event *e);
const struct tracetext_facts *tracetext_facts(const struct tracetext *t);
/*
 * Calls fn for the events at the beginning (as many as one buffer has, at most `max`) without
 * reading on: tracetext_next() still gives all of them. Before the first tracetext_next(). 0 or
 * -errno.
 */
int tracetext_peek(struct tracetext *t, size_t max,
		   void (*fn)(const struct tracetext_event *e, void *ctx), void *ctx);
/* By the look of the first events. *out is TRACETEXT_CYCLES where there are too few to say. */
int tracetext_clock(struct tracetext *t, enum tracetext_clock *out);

/* One line, for tests: false when it is no event. Sets all but text, len, line, lost. */
bool tracetext_line(const char *line, size_t len, unsigned columns, struct tracetext_event *e);

#endif
