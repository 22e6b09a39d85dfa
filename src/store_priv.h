// SPDX-License-Identifier: GPL-2.0-only
/* What the files of a recording (store*.c) share. */
#ifndef KVMTOP_STORE_PRIV_H
#define KVMTOP_STORE_PRIV_H

#include <sqlite3.h>

#include "store.h"
#include "store_bytes.h"
#include "store_code.h"
#include "store_pack.h"

#define STORE_APPLICATION 0x6b766d74 /* "kvmt": file(1) and we know a recording by it */
/*
 * From version 4 on intervals are packed by zstd, from 5 on they have not what follows from others,
 * from this one on the view `hosts` has findings, and segments no tier.
 */
#define STORE_VERSION 6
#define STORE_VERSION_LESS 5
/* From this version on facts are recorded. A recording of version 1 is the same without them. */
#define STORE_VERSION_FACTS 2
/* From this one on the view of who had the CPU; frames had it before. */
#define STORE_VERSION_WAITED 3

/*
 * More than any clock, interval or count of a recording has. Only a check, of what is read: a time
 * and how long ago another one was (less than STORE_AGO_MOST) do not overflow together. Plain
 * numbers, since they are part of SQL too.
 */
#define STORE_TIME_MOST 4611686018427387904 /* 2^62 ns: 2116 */
#define STORE_AGO_MOST 2305843009213693952 /* 2^61 ns: 73 years */
#define STORE_DT_MOST 9007199254740992 /* 2^53 ns */
#define STORE_ID_MOST 9007199254740992

/* Texts of a segment by number, and numbers by text (writers only). */
struct store_dict {
	char **text; /* [number], 0 is none */
	uint32_t n, cap; /* numbers are 1 … n-1 */
	uint32_t *slot; /* open addressing, a power of two; 0 free */
	uint32_t nslot;
};

enum store_statement {
	ST_BEGIN,
	ST_COMMIT,
	ST_ROLLBACK,
	ST_SEGMENT,
	ST_TEXT,
	ST_INTERVAL,
	ST_FRAME,
	ST_VM,
	ST_VCPU,
	ST_WAITED,
	ST_AT,
	ST_FROM,
	ST_NEXT,
	ST_BEFORE,
	ST_WITHIN,
	ST_FIRST,
	ST_LAST,
	ST_LAST_ID,
	ST_READ,
	ST_GET_TEXT,
	ST_TSC,
	ST_OLD_TSC,
	ST_TSC_OF,
	ST_TSC_UP_TO,
	ST_RANGE,
	ST_MOMENTS,
	ST_OLDEST,
	ST_TIME_AFTER,
	ST_DEL_FRAME,
	ST_DEL_VM,
	ST_DEL_VCPU,
	ST_DEL_WAITED,
	ST_DEL_INTERVAL,
	ST_DEL_TEXT,
	ST_DEL_SEGMENT,
	ST_COUNT,
	ST_ORIGIN,
	ST_FACT,
	ST_FACTS,
	ST_DEL_FACTS,
	ST_OLD_FACTS,
	ST_NR
};

/* What a writer adds to: a tier has one of its own, with its own texts. */
struct store_segment {
	int64_t id; /* 0: the next interval begins one */
	int64_t until; /* wall ns: where the next one begins */
	uint32_t saved; /* texts below this number are in the database */
	struct store_dict dict;
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *stmt[ST_NR];
	unsigned steps; /* of the call in work, see on_progress() */
	int lock; /* a writer's flock, -1 none */
	char *path; /* of a writer */
	struct store_keep keep;
	int64_t version; /* of the schema, as the file says */
	int64_t session, last_id, last_wall;
	struct store_segment segment[STORE_TIERS];
	struct snapshot *late; /* TSC offsets that wait for an interval, see tsc_late.h */
	size_t last_bytes; /* of the last interval: its frame and rows, about */
	struct store_put bytes, packed;
	struct store_packer packer;
	/* Reading: the texts of one segment at a time. */
	int64_t read_segment;
	struct store_dict read_dict;
};

/* store_dict.c */
void store_dict_clear(struct store_dict *d);
uint32_t store_dict_id(struct store_dict *d, const char *text); /* added where new; 0: no memory */
const char *store_dict_text(const struct store_dict *d, uint32_t id); /* NULL: none */
int store_dict_set(struct store_dict *d, uint32_t id, const char *text); /* 0 or -errno */

/* store.c */
int store_errno(struct store *st); /* of what SQLite said last; never 0 */
sqlite3_stmt *store_stmt(struct store *st, enum store_statement which); /* NULL: see store_errno */
/* Runs it to its end and resets it. 0 or -errno. */
int store_run(struct store *st, enum store_statement which);
/* The same with the first of its values bound. */
int store_run_with(struct store *st, enum store_statement which, int64_t v);
int store_exec(struct store *st, const char *sql);
int64_t store_pragma(struct store *st, const char *name); /* -1: no answer */

/* store_write.c */
int store_add(struct store *st, const struct snapshot *s, unsigned tier, int64_t session,
	      int64_t id, uint64_t skipped, unsigned merged);
/* store_read.c: store_read() as store_decode_part() has it. */
int store_read_part(struct store *st, int64_t id, struct snapshot **out);
/* store_tsc.c: what the snapshot tells of TSC offsets, as part of its interval. 0 or -errno. */
int store_add_tsc(struct store *st, const struct snapshot *s, int64_t id);

void store_forget_segments(struct store *st);

#endif
