// SPDX-License-Identifier: GPL-2.0-only
/*
 * The records of a perf.data file, one after the other, out of a buffer that is refilled, or of a
 * part of the file that is mapped, which costs half as much.
 *
 * Who reads a mapped file that another cuts off meanwhile is killed. So it is mapped only under a
 * read lease (fcntl(2)), which cannot be had while anybody may write to it; who wants to then waits
 * until the part at hand is through, and the rest is read. (While it is stopped the kernel waits
 * for /proc/sys/fs/lease-break-time only: what follows is a SIGBUS, and the commands' to tell.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata_priv.h"

#define PIECE ((size_t)256 << 10) /* read at once; above the largest record, 64 KiB */

#define MAPPED ((uint64_t)2 << 20) /* mapped at once */

void perfdata_unmap(struct perfdata *p)
{
	if (p->in.map)
		munmap(p->in.map, p->in.map_len);
	p->in.map = NULL;
}

static void try_lease(struct perfdata *p)
{
	struct stat sb;

	p->lease = LEASE_NONE;
	if (!p->own_fd || p->file_size == UINT64_MAX || fcntl(p->fd, F_SETLEASE, F_RDLCK))
		return;
	(void)fcntl(p->fd, F_SETOWN, 0); /* no signal: it is asked for with each part */
	if (fstat(p->fd, &sb) || (uint64_t)sb.st_size < p->file_size)
		return;
	p->lease = LEASE_HELD;
}

static bool holds_lease(struct perfdata *p)
{
	if (p->lease == LEASE_UNTRIED)
		try_lease(p);
	if (p->lease == LEASE_HELD && fcntl(p->fd, F_GETLEASE) == F_RDLCK)
		return true;
	p->lease = LEASE_NONE;
	return false;
}

/* The window's bytes and those behind them, n at least where there are so many. */
static bool map_part(struct perfdata *p, size_t n)
{
	off_t end = lseek(p->fd, 0, SEEK_CUR);
	struct window *w = &p->in;
	uint64_t from, skip, len;
	void *map;

	if (end < 0 || (uint64_t)end < w->left || (uint64_t)end >= p->file_size)
		return false;
	from = (uint64_t)end - w->left;
	skip = from % (uint64_t)sysconf(_SC_PAGESIZE);
	len = skip + (n > MAPPED ? n : MAPPED);
	if (len > p->file_size - (from - skip))
		len = p->file_size - (from - skip);
	if (len - skip - w->left > w->more)
		len = skip + w->left + w->more;
	map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, p->fd, (off_t)(from - skip));
	if (map == MAP_FAILED || !map)
		return false;
	/* Here an error of the disk is an error, later it would be a signal. */
	if (madvise(map, len, MADV_POPULATE_READ) ||
	    lseek(p->fd, (off_t)(from - skip + len), SEEK_SET) < 0) {
		munmap(map, len);
		return false;
	}
	perfdata_unmap(p);
	w->map = map;
	w->map_len = len;
	w->more -= len - skip - w->left;
	w->left = len - skip;
	w->at = (const uint8_t *)map + skip;
	return true;
}

/* The lease goes, and what was mapped: what is left of it is in the buffer now. */
static void give_up_map(struct perfdata *p)
{
	perfdata_unmap(p);
	if (p->own_fd)
		(void)fcntl(p->fd, F_SETLEASE, F_UNLCK);
}

/* Reads until there are n bytes, or as many as there are. */
static int refill(struct perfdata *p, size_t n)
{
	struct window *w = &p->in;

	if (holds_lease(p) && map_part(p, n))
		return 0;
	if (!w->buf) {
		w->cap = PIECE;
		w->buf = malloc(w->cap);
		if (!w->buf)
			return -ENOMEM;
	}
	if (w->at && w->left > w->cap) { /* of a large part */
		uint8_t *more = malloc(w->left + PIECE);

		if (!more)
			return -ENOMEM;
		memcpy(more, w->at, w->left);
		free(w->buf);
		w->buf = more;
		w->cap = w->left + PIECE;
	} else if (w->at && w->left) {
		memmove(w->buf, w->at, w->left);
	}
	give_up_map(p);
	w->at = w->buf;
	while (w->left < n && w->more) {
		size_t room = w->cap - w->left;
		ssize_t got = read(p->fd, w->buf + w->left, w->more < room ? w->more : room);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		w->left += (size_t)got;
		w->more -= (size_t)got;
	}
	return 0;
}

bool perfdata_fill(struct perfdata *p, size_t n, int *err)
{
	*err = 0;
	if (n <= p->in.left)
		return true;
	if (p->fd < 0)
		return false;
	*err = refill(p, n);
	return !*err && n <= p->in.left;
}

/* The same, for what is mostly there. */
static inline bool at_hand(struct perfdata *p, size_t n, int *err)
{
	return (__builtin_expect(n <= p->in.left, 1) || perfdata_fill(p, n, err)) && p->in.at;
}

static void advance(struct perfdata *p, size_t n)
{
	p->in.at += n;
	p->in.left -= n;
}

/* Leaves out n bytes, which may be more than a buffer holds. */
static bool skip(struct perfdata *p, uint64_t n, int *err)
{
	while (n) {
		size_t part = n < PIECE ? (size_t)n : PIECE;

		if (p->fd < 0 && n <= p->in.left)
			part = (size_t)n;
		if (!perfdata_fill(p, part, err))
			return false;
		advance(p, part);
		n -= part;
	}
	return true;
}

/* The bytes behind a record of tracing data, which its size does not tell. */
static int tracing_data(struct perfdata *p, uint64_t n, bool *whole)
{
	int err = 0;

	if (n > 64u << 20 || p->tracing) {
		*whole = skip(p, n, &err);
		return err;
	}
	if (p->fd >= 0 && n > p->in.left && n > p->in.cap) {
		size_t left = p->in.left;
		uint8_t *buf = malloc(n + PIECE);

		if (!buf)
			return -ENOMEM;
		memcpy(buf, p->in.at, left);
		free(p->in.buf);
		p->in.buf = buf;
		p->in.at = buf;
		p->in.cap = n + PIECE;
	}
	*whole = perfdata_fill(p, n, &err);
	if (!*whole)
		return err;
	err = perfdata_take_feature(p, FEATURE_TRACING_DATA, cursor_of(p, p->in.at, n));
	advance(p, n);
	return err;
}

/* What stands behind the record's own bytes, of which `body` are at hand. */
static int behind(struct perfdata *p, struct perf_event_header h, const uint8_t *bytes, bool *whole)
{
	struct cursor c = body_of(p, bytes, h.size);
	uint64_t more;
	int err = 0;

	*whole = true;
	if (h.type == USER_AUXTRACE) {
		more = take_u64(&c);
		advance(p, h.size);
		*whole = skip(p, c.ok ? more : 0, &err);
		return err;
	}
	more = (take_u32(&c) + UINT64_C(7)) & ~UINT64_C(7);
	advance(p, h.size);
	return tracing_data(p, c.ok ? more : 0, whole);
}

static int unpack(struct perfdata *p, struct perf_event_header h, perfdata_raw_fn fn, void *ctx)
{
	struct cursor c = body_of(p, p->in.at, h.size);
	uint64_t n = c.left;
	const uint8_t *at;

	if (h.type == USER_COMPRESSED2)
		n = take_u64(&c); /* the rest is padding */
	at = take(&c, n);
	return at ? perfdata_unpack(p, at, n, fn, ctx) : -EBADMSG;
}

static int one_record(struct perfdata *p, struct perf_event_header h, perfdata_raw_fn fn, void *ctx,
		      bool *whole)
{
	int rc = fn(ctx, p->in.at, h);

	if (rc)
		return rc;
	if (h.type < USER_TYPE_START) {
		advance(p, h.size);
		return 0;
	}
	if (h.type == USER_AUXTRACE || h.type == USER_TRACING_DATA)
		return behind(p, h, p->in.at, whole);
	if (h.type == USER_COMPRESSED || h.type == USER_COMPRESSED2)
		rc = unpack(p, h, fn, ctx);
	advance(p, h.size);
	return rc;
}

/* Is this one for who wants what comes before the kernel's records? */
static bool leads(uint32_t type)
{
	return type >= USER_TYPE_START && type != USER_COMPRESSED && type != USER_COMPRESSED2 &&
	       type != USER_FINISHED_ROUND;
}

int perfdata_stream(struct perfdata *p, bool leading, perfdata_raw_fn fn, perfdata_many_fn many,
		    void *ctx)
{
	bool whole = true;
	int rc = 0;

	while (whole && !rc) {
		struct perf_event_header h;

		if (many)
			advance(p, many(ctx, p->in.at, p->in.left, &rc));
		if (rc)
			break;
		if (!at_hand(p, sizeof(h), &rc))
			break;
		h = header_of(p, p->in.at);
		if (leading && !leads(h.type))
			return 0;
		if (h.size < sizeof(h) || !at_hand(p, h.size, &rc)) {
			whole = false;
			break;
		}
		rc = one_record(p, h, fn, ctx, &whole);
	}
	if (!rc && (p->in.left || !whole)) {
		p->sum.broken++;
		p->sum.cut = true;
	}
	return rc;
}
