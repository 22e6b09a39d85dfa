// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads what `perf record` writes: the events it was recorded with, their formats, and its records
 * in perf's own order. A file, the same bytes in memory, or perf's pipe mode (`perf record -o -`),
 * also compressed (`-z`); of either byte order.
 *
 * Memory is bounded: records are read in pieces, and what waits for its turn is a small copy that
 * the caller makes of those it wants. All bytes are untrusted: nothing is read beyond them.
 */
#ifndef KVMTOP_PERFDATA_H
#define KVMTOP_PERFDATA_H

#include <byteswap.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct perfdata;

/*
 * Takes len bytes, which must outlive it. -EBADMSG: no perf.data, or a broken one; -ENOMEM. *out is
 * freed with perfdata_free().
 */
int perfdata_parse(const void *bytes, size_t len, struct perfdata **out);
/*
 * A file, a FIFO in pipe mode, or what is open already as fd (not owned: close it afterwards).
 * Also -errno of open(2) and read(2); -ESPIPE: the file mode through a pipe, which ends with what
 * must be known first; -EISDIR.
 */
int perfdata_open(int dir_fd, const char *path, struct perfdata **out);
int perfdata_open_fd(int fd, struct perfdata **out);
void perfdata_free(struct perfdata *p);
/* What a -errno of these means, in words of its own where it is not the kernel's. */
const char *perfdata_why(int rc);

/* How many events it was recorded with, and their attributes (as far as this kernel's go). */
size_t perfdata_events(const struct perfdata *p);
const struct perf_event_attr *perfdata_attr(const struct perfdata *p, size_t event);
/* Whether it is of the other byte order than this machine: raw data then are too. */
bool perfdata_swapped(const struct perfdata *p);
/* What the recording says of its machine; the numbers are perf's. */
enum perfdata_text {
	PERFDATA_HOST = 3, /* its name */
	PERFDATA_KERNEL = 4, /* "6.1.0-18-amd64" */
	PERFDATA_ARCH = 6, /* "x86_64", "aarch64", "s390x": as uname says */
	PERFDATA_CPUID = 9, /* "GenuineIntel-6-85-7" */
	PERFDATA_TEXTS,
};
/* NULL: nothing. As it stands in the file: untrusted. */
const char *perfdata_text(const struct perfdata *p, enum perfdata_text which);

/*
 * Calls fn for each event format (the text of tracefs' format file, not terminated) that came
 * along, until it returns non-zero; returns that, or 0. A recording that was cut off has none.
 */
typedef int (*perfdata_format_fn)(void *ctx, const char *system, const char *text, size_t len);
int perfdata_formats(const struct perfdata *p, perfdata_format_fn fn, void *ctx);

struct perfdata_record {
	const uint8_t *bytes; /* the whole record, `size` of them; not aligned */
	const uint8_t *raw; /* a tracepoint's data, raw_len bytes; NULL none */
	int64_t time; /* ns, of the recording's clock; 0: it has none */
	uint64_t ip;
	uint32_t type; /* PERF_RECORD_* of the kernel's kind only */
	uint32_t raw_len;
	uint32_t event; /* index for perfdata_attr(); see perfdata_reader.events */
	uint16_t misc, size;
	int32_t pid, tid, cpu; /* -1: not recorded */
	bool swapped; /* as perfdata_swapped() */
};

/* Numbers of a record that stand `at` bytes from its beginning, which the caller knows to be there.
 */
static inline uint64_t perfdata_u64(const struct perfdata_record *r, size_t at)
{
	uint64_t v;

	memcpy(&v, r->bytes + at, sizeof(v));
	return r->swapped ? bswap_64(v) : v;
}

static inline uint32_t perfdata_u32(const struct perfdata_record *r, size_t at)
{
	uint32_t v;

	memcpy(&v, r->bytes + at, sizeof(v));
	return r->swapped ? bswap_32(v) : v;
}

/*
 * Who reads: take() sees each record as it stands in the file (what r points to is valid during the
 * call only) and writes what it needs of it to its slot; give() gets the slots in the order in
 * which perf hands out the records. take() returns 1: kept, 0: not wanted, or -errno; give() 0, or
 * anything else to end the reading, which returns it.
 *
 * The order: by time, those of one time as they stand in the file; but where perf marked a round
 * of its reading, what is older than the round before is handed out, and a record that comes
 * later with an older time follows it, as it does in perf. A record without a time comes at once.
 */
struct perfdata_reader {
	size_t slot; /* its size in bytes; aligned to 8 */
	bool events; /* whether r->event is to be found; else it may be 0 */
	int (*take)(void *ctx, const struct perfdata_record *r, void *slot);
	int (*give)(void *ctx, int64_t time, const void *slot);
	void *ctx;
};

/* Reads all of it. 0, -errno, or what the reader ended it with. */
int perfdata_run(struct perfdata *p, const struct perfdata_reader *reader);
/* Back to the first record, to read it once more. -ESPIPE: what went through a pipe is gone. */
int perfdata_rewind(struct perfdata *p);

/* What was found, after reading. */
struct perfdata_sum {
	uint64_t records; /* of all kinds, those of perf itself too */
	uint64_t samples;
	uint64_t rounds; /* perf's marks */
	uint64_t lost_records, lost; /* LOST: how many, and how many events they tell of */
	uint64_t lost_samples; /* LOST_SAMPLES */
	uint64_t broken; /* left out for they make no sense, a torn one at the end too */
	uint64_t unordered; /* came after younger ones had been handed out */
	bool cut; /* it ends before its own end: cut off, or still being written */
	bool early; /* no more memory was to be taken: order is not sure over long spans */
};
const struct perfdata_sum *perfdata_sum(const struct perfdata *p);
/*
 * Events that were lost: LOST records tell of them where they are missing, and perf 6.1 adds the
 * kernel's own count of the same at the end (LOST_SAMPLES), with those that no record told of.
 */
static inline uint64_t perfdata_lost(const struct perfdata_sum *s)
{
	return s->lost > s->lost_samples ? s->lost : s->lost_samples;
}

#endif
