// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recordings: intervals in an SQLite database (docs/recording.md has the schema).
 *
 * One process writes, any number read meanwhile. An interval is one transaction that is on the
 * disk when store_write() returns: whatever happens, the file opens and at most the interval in
 * flight is missing. A store is used by one thread.
 */
#ifndef KVMTOP_STORE_H
#define KVMTOP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

#define STORE_DEFAULT "/var/lib/kvmtop/recording.db"
#define STORE_TIERS 6 /* at most */

/* Intervals of this length are kept this long; each tier's are merged out of the one before. */
struct store_tier {
	int64_t every_ns; /* the first tier: as measured */
	int64_t keep_ns;
};

struct store_keep {
	struct store_tier tier[STORE_TIERS]; /* finest first */
	unsigned n;
	int64_t max_bytes; /* 0: no limit */
};

/* "1s:1h,10s:24h,60s:7d": intervals of 1 s for an hour, and so on. False: cannot be read so. */
bool store_keep_parse(const char *text, struct store_keep *out);
/* "1s for 1h, 10s for 24h, 60s for 7d"; the first tier has the length that is measured. */
const char *store_keep_text(const struct store_keep *k, char *buf, size_t size);
/*
 * The first tier is of intervals as they are measured, of this length; tiers that are no coarser
 * are part of it.
 */
void store_keep_measured(struct store_keep *k, int64_t ns);
/* "2G", "500M" in bytes, at least 1 MiB. False: not a size. */
bool store_size_parse(const char *text, int64_t *out);

struct host_facts;
struct store;

/* A new recording, or one that is gone on with. 0 or -errno with one line in err. */
int store_create(const char *path, const struct store_keep *keep, struct store **out, char *err,
		 size_t size);
/*
 * Of the whole process, for a recorder: what an interval took stays for the next one. Without it
 * memory goes back to the kernel each time, and a fault a page is a sixth of the recorder's work.
 */
void store_hold_memory(void);

/*
 * One interval; skipped: how many before it are missing since writing was too slow. 0, -ENOSPC,
 * -EIO or another -errno: nothing of it was written, and the next may be tried.
 */
int store_write(struct store *st, const struct snapshot *s, uint64_t skipped);
/*
 * TSC offsets of intervals that are not written go into the next one that is: of those that
 * store_write() could not write by itself, of others by this. Only the events of s and their VMs'
 * names are looked at. 0 or -ENOMEM.
 */
int store_late_tsc(struct store *st, const struct snapshot *s);
/*
 * Whether the path that it was made with no longer leads to the file: it was renamed or removed.
 * What is written goes on into that file; store_close() leaves it whole.
 */
bool store_is_moved(const struct store *st);
/*
 * Facts of the host that hold from the next interval on, until others are written. 0 or -errno:
 * those that were there hold on.
 */
int store_write_facts(struct store *st, const struct host_facts *f);
/*
 * What is older than its tier keeps it becomes longer intervals, or goes; some of it, so that no
 * call takes long: to be called after each store_write(). Above keep.max_bytes the oldest of the
 * finest tier is the first to become longer. 0 or -errno: tried again next time.
 */
int store_age(struct store *st);
/*
 * Bytes that a recording takes once it reaches as far back as it will, by the last interval that
 * was written; reach: how far that is, ns, as the tiers say or as the size limit allows.
 */
double store_expected(const struct store *st, int64_t *reach);
/* Bytes that the recording's file has; 0 not known. */
int64_t store_bytes(struct store *st);

const char *store_library(void); /* the version of SQLite that is used */
/* What a function of these gave, in words. */
const char *store_strerror(int rc);

/* For reading. 0 or -errno with one line in err. */
int store_open(const char *path, struct store **out, char *err, size_t size);
void store_close(struct store *st); /* NULL is fine */

struct store_range {
	int64_t first, last; /* ns since 1970: the earliest and the latest end of an interval */
	int64_t newest; /* end of the one that was recorded last: the same, unless the clock was
			   put back since; what -2h and 03:12 are relative to */
	uint64_t n; /* intervals */
};

/* -ENOENT: there is no interval; -EBADMSG: of those that there are none makes sense. */
int store_range(struct store *st, struct store_range *out);

/*
 * The worst interval of a part of a recording's time: the one in which a vCPU waited most; where
 * none waited as long as STEAL_NOTICE, that with most findings.
 */
struct store_moment {
	int64_t id, wall; /* as in store_at */
	double steal_max; /* percent; 0 also where it is not known */
	int64_t dt; /* how long it is, ns */
	unsigned findings; /* 999 at most */
};

/*
 * Those of n equal parts of the range in which there are intervals, in the order of time. Returns
 * how many were written, or -errno.
 */
int store_moments(struct store *st, const struct store_range *r, struct store_moment *out,
		  size_t n);

/* A write of a vCPU's TSC offset, or an offset that was read. */
struct store_tsc {
	int vcpu; /* KVM's id */
	uint64_t at; /* the host's TSC when it was written; 0: it was read */
	uint64_t prev, next;
	uint64_t ratio; /* of readings: 0, or the scaling */
	unsigned frac_bits;
};

/*
 * Those of the VM of this name or id, the newest of them, in the order of time: fn is called for
 * each until it returns other than 0. 0, -ENOENT: there is none, fn's value, or -errno.
 */
int store_tsc(struct store *st, const char *vm, int (*fn)(void *ctx, const struct store_tsc *t),
	      void *ctx);

/* Which interval is wanted, relative to a time or to another interval. */
enum store_seek {
	STORE_AT, /* the last that ends at or before the time; else the first */
	STORE_FROM, /* the first that ends at or after the time */
	STORE_NEXT, /* after the interval `id` */
	STORE_BEFORE, /* before the interval `id` */
	STORE_FIRST,
	STORE_LAST,
};

struct store_at {
	int64_t id;
	int64_t wall; /* its end, ns since 1970 */
	int64_t dt;
	int64_t session; /* which run of the recorder */
	uint64_t skipped; /* intervals before it that are missing: writing was too slow */
};

/* time: ns since 1970 or the id. 0, -ENOENT: none there, or -errno. */
int store_find(struct store *st, enum store_seek how, int64_t time_or_id, struct store_at *out);
/*
 * The next interval after `id` (0: the first) of which a part lies between two moments, ns since
 * 1970. In order of ids, for times are not in order where the clock was put back: what was recorded
 * of these moments before and after that is found. 0, -ENOENT or another -errno.
 */
int store_next_within(struct store *st, int64_t id, int64_t from, int64_t to, struct store_at *out);
/*
 * The interval as a snapshot; times of the clock within are those of the wall clock, so that they
 * rise from one boot to the next. One reference to the caller. 0, -ENOENT (merged meanwhile),
 * -EBADMSG (damaged), or -errno.
 */
int store_read(struct store *st, int64_t id, struct snapshot **out);
/*
 * Facts that held at the interval `id`, for host_facts_free(). 0, -ENOENT: none were recorded (by
 * an older kvmtop), -EBADMSG or another -errno; *out is empty then.
 */
int store_facts(struct store *st, int64_t id, struct host_facts *out);

/*
 * A new recording for copies of intervals, in a place that nobody else looks at; it is whole after
 * store_copy_end(). 0 or -errno with one line in err.
 */
int store_copy_new(const char *path, struct store **out, char *err, size_t size);
/*
 * The interval that `at` names in `from`, with the figures of s, which may differ in its texts. In
 * order of their ids. 0 or -errno.
 */
int store_copy(struct store *from, const struct store_at *at, const struct snapshot *s,
	       struct store *to);
/* Facts that hold from the interval `since` on; before store_copy() of that one. 0 or -errno. */
int store_copy_facts(struct store *to, const struct host_facts *f, int64_t since);
/*
 * TSC offsets up to the interval `last`; name is told of each VM's name and id and gives what is
 * written instead, for free() (NULL: no memory). 0 or -errno.
 */
int store_copy_tsc(struct store *from, int64_t last, char *(*name)(void *ctx, const char *text),
		   void *ctx, struct store *to);
int store_copy_end(struct store *to); /* 0 or -errno; store_close() follows */

#endif
