// SPDX-License-Identifier: GPL-2.0-only
/*
 * The layout of a perf.data file, after tools/perf/Documentation/perf.data-file-format.txt:
 * a header that names three sections (attributes with their ids, data, and behind the data a table
 * of features of which only the tracing data and the CPU are of interest here). In pipe mode the
 * same comes as records before the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grow.h"
#include "perfdata_priv.h"

#define BIG_HERE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define PIPE_HEADER 16 /* what a recording through a pipe begins with is no longer */
#define EVENTS_MAX 65536
#define FILE_HEADER 104 /* bytes, as read by take_file_header() */

struct file_header {
	uint64_t size, attr_size;
	struct span attrs, data;
	uint64_t features; /* the first 64 of 256 */
};

/* ---- bytes ---- */

static const char *take_string(struct cursor *c)
{
	const uint8_t *end = c->ok ? memchr(c->at, '\0', c->left) : NULL;

	return (const char *)take(c, end ? (uint64_t)(end - c->at) + 1 : UINT64_MAX);
}

static struct span take_span(struct cursor *c)
{
	struct span s = {.offset = take_u64(c)};

	s.size = take_u64(c);
	return s;
}

/*
 * A copy of a section; a byte more than its size, so that an empty one is memory too. -EBADMSG
 * where the file ends before it does.
 */
static int load(const struct perfdata *p, struct span s, uint8_t **out)
{
	uint64_t end = p->fd < 0 ? p->len : p->file_size, got = 0;

	if (s.offset > end || s.size > end - s.offset)
		return -EBADMSG;
	*out = malloc(s.size + 1);
	if (!*out)
		return -ENOMEM;
	if (p->fd < 0)
		memcpy(*out, p->bytes + s.offset, s.size);
	while (p->fd >= 0 && got < s.size) {
		ssize_t n = pread(p->fd, *out + got, s.size - got, (off_t)(s.offset + got));

		if (n <= 0 && !(n < 0 && errno == EINTR)) {
			n = n < 0 ? -errno : -EBADMSG;
			free(*out);
			*out = NULL;
			return (int)n;
		}
		got += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* ---- events ---- */

int perfdata_add_event(struct perfdata *p, struct cursor attr, struct cursor ids)
{
	struct perf_event_attr *a;

	if (p->nattr >= EVENTS_MAX)
		return -EBADMSG;
	if (!grow(&p->attr, p->nattr, &p->attr_room, sizeof(*p->attr)))
		return -ENOMEM;
	a = &p->attr[p->nattr];
	*a = perfdata_attr_of(p, attr.at, attr.left);
	p->alike = (p->alike || !p->nattr) && a->sample_type == p->attr[0].sample_type;
	while (ids.left >= sizeof(uint64_t)) {
		if (!grow(&p->id, p->nid, &p->id_room, sizeof(*p->id)))
			return -ENOMEM;
		p->id[p->nid++] = (struct event_id){take_u64(&ids), (uint32_t)p->nattr};
	}
	p->nattr++;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct event_id *)a)->id, y = ((const struct event_id *)b)->id;

	return x < y ? -1 : x > y;
}

void perfdata_sort_ids(struct perfdata *p)
{
	if (p->nid)
		qsort(p->id, p->nid, sizeof(*p->id), by_id);
}

bool perfdata_find_event(const struct perfdata *p, uint64_t id, uint32_t *event)
{
	size_t from = 0, n = p->nid;

	while (n) { /* once a record: not through a function pointer */
		size_t half = n / 2;

		if (p->id[from + half].id < id) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (from >= p->nid || p->id[from].id != id)
		return false;
	*event = p->id[from].event;
	return true;
}

/* One attribute as this file has it: older ones are shorter, newer ones longer. */
static int take_event(struct perfdata *p, const uint8_t *at, size_t size)
{
	struct cursor c = cursor_of(p, at + size, sizeof(struct span));
	struct span s = take_span(&c);
	uint8_t *ids = NULL;
	int rc = load(p, s, &ids);

	if (!rc)
		rc = perfdata_add_event(p, cursor_of(p, at, size), cursor_of(p, ids, s.size));
	free(ids);
	return rc;
}

static int take_events(struct perfdata *p, const struct file_header *h)
{
	uint64_t n, size = h->attr_size;
	uint8_t *attrs = NULL;
	int rc;

	if (size < PERF_ATTR_SIZE_VER0 + sizeof(struct span))
		return -EBADMSG;
	n = h->attrs.size / size;
	if (!n || n > EVENTS_MAX)
		return -EBADMSG;
	rc = load(p, h->attrs, &attrs);
	for (size_t i = 0; i < n && !rc; i++)
		rc = take_event(p, attrs + i * size, size - sizeof(struct span));
	free(attrs);
	perfdata_sort_ids(p);
	return rc;
}

/* ---- features ---- */

static int take_tracing(struct perfdata *p, struct cursor c)
{
	if (p->tracing)
		return 0;
	p->tracing = malloc(c.left + 1);
	if (!p->tracing)
		return -ENOMEM;
	memcpy(p->tracing, c.at, c.left);
	p->tracing_len = c.left;
	return 0;
}

static bool is_text(unsigned feature)
{
	return feature == PERFDATA_HOST || feature == PERFDATA_KERNEL || feature == PERFDATA_ARCH ||
	       feature == PERFDATA_CPUID;
}

int perfdata_take_feature(struct perfdata *p, unsigned feature, struct cursor c)
{
	const uint8_t *text;
	uint32_t n;

	if (feature == FEATURE_TRACING_DATA)
		return take_tracing(p, c);
	if (!is_text(feature) || p->text[feature])
		return 0;
	n = take_u32(&c);
	text = take(&c, n);
	if (!text)
		return 0;
	p->text[feature] = strndup((const char *)text, n);
	return p->text[feature] ? 0 : -ENOMEM;
}

static int load_feature(struct perfdata *p, unsigned feature, struct span s)
{
	uint8_t *bytes = NULL;
	int rc = load(p, s, &bytes);

	if (!rc && bytes)
		rc = perfdata_take_feature(p, feature, cursor_of(p, bytes, s.size));
	free(bytes);
	return rc == -EBADMSG ? 0 : rc; /* cut off: so that is missing */
}

/* The table behind the data: a span for each feature that the header's bits name, in order. */
static int take_features(struct perfdata *p, const struct file_header *h)
{
	struct span all = {h->data.offset + h->data.size, 0};
	uint8_t *table = NULL;
	struct cursor c;
	int rc;

	if (!h->data.size || all.offset < h->data.size)
		return 0; /* cut off before its end was written */
	for (unsigned bit = 0; bit <= FEATURE_LAST; bit++)
		all.size += h->features >> bit & 1 ? sizeof(struct span) : 0;
	rc = load(p, all, &table);
	c = cursor_of(p, table, all.size);
	for (unsigned bit = 0; bit <= FEATURE_LAST && !rc; bit++) {
		if (h->features >> bit & 1)
			rc = load_feature(p, bit, take_span(&c));
	}
	free(table);
	return rc == -EBADMSG ? 0 : rc;
}

/* ---- header ---- */

static int begin_data(struct perfdata *p)
{
	uint64_t end = p->fd < 0 ? p->len : p->file_size;

	/* The size is written last: where that was not done, all that follows are records. */
	if (!p->data.size || p->data.size > end - p->data.offset) {
		p->data.size = end - p->data.offset;
		p->sum.cut = true;
	}
	p->in.more = p->data.size;
	if (p->fd < 0)
		p->in = (struct window){.at = p->bytes + p->data.offset, .left = p->data.size};
	else if (lseek(p->fd, (off_t)p->data.offset, SEEK_SET) < 0)
		return -errno;
	return 0;
}

static int take_file_header(const struct perfdata *p, struct file_header *h)
{
	uint8_t *bytes = NULL;
	int rc = load(p, (struct span){0, FILE_HEADER}, &bytes);
	struct cursor c;

	if (rc || !bytes)
		return rc ? rc : -EBADMSG;
	c = cursor_of(p, bytes, FILE_HEADER);
	(void)take_u64(&c); /* the magic */
	h->size = take_u64(&c);
	h->attr_size = take_u64(&c);
	h->attrs = take_span(&c);
	h->data = take_span(&c);
	(void)take_span(&c); /* event types */
	h->features = take_u64(&c);
	free(bytes);
	return 0;
}

static int take_file(struct perfdata *p)
{
	struct file_header h;
	int rc = take_file_header(p, &h);

	if (rc)
		return rc;
	if (h.size < FILE_HEADER || h.data.offset > (p->fd < 0 ? p->len : p->file_size))
		return -EBADMSG;
	rc = take_events(p, &h);
	if (!rc)
		rc = take_features(p, &h);
	p->data = h.data;
	return rc ? rc : begin_data(p);
}

/* A record of pipe mode that says what a file has in its header. */
static int on_leading(void *ctx, const uint8_t *bytes, struct perf_event_header h)
{
	struct perfdata *p = ctx;
	struct cursor c = body_of(p, bytes, h.size), attr = c;
	uint32_t size;

	p->sum.records++;
	if (h.type == USER_FEATURE) {
		uint64_t feature = take_u64(&c);

		return c.ok ? perfdata_take_feature(p, feature < UINT32_MAX ? (unsigned)feature : 0,
						    c)
			    : 0;
	}
	if (h.type != USER_ATTR)
		return 0;
	(void)take_u32(&c); /* type; the size follows */
	size = take_u32(&c);
	c = attr;
	if (size < PERF_ATTR_SIZE_VER0 || !take(&c, size))
		return -EBADMSG;
	attr.left = size;
	return perfdata_add_event(p, attr, c);
}

static int take_pipe(struct perfdata *p)
{
	int rc;

	p->pipe = true;
	if (p->fd < 0)
		p->in = (struct window){.at = p->bytes + PIPE_HEADER, .left = p->len - PIPE_HEADER};
	else
		p->in.more = UINT64_MAX;
	rc = perfdata_stream(p, true, on_leading, NULL, p);
	perfdata_sort_ids(p);
	return rc ? rc : p->nattr ? 0 : -EBADMSG;
}

/* The first bytes of any kind, from a descriptor that may be a pipe. */
static int first_bytes(struct perfdata *p, uint8_t *first)
{
	size_t got = 0;

	if (p->fd < 0 && p->len >= PIPE_HEADER)
		memcpy(first, p->bytes, PIPE_HEADER);
	while (p->fd >= 0 && got < PIPE_HEADER) {
		ssize_t n = read(p->fd, first + got, PIPE_HEADER - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EBADMSG;
		got += (size_t)n;
	}
	return p->fd < 0 && p->len < PIPE_HEADER ? -EBADMSG : 0;
}

static int take_header(struct perfdata *p)
{
	uint8_t first[PIPE_HEADER];
	int rc = first_bytes(p, first);
	struct cursor c;
	bool big;

	if (rc)
		return rc;
	/* A number, written in the file's byte order. */
	big = !memcmp(first, "2ELIFREP", 8);
	if (!big && memcmp(first, "PERFILE2", 8) != 0)
		return -EBADMSG;
	p->swapped = big != BIG_HERE;
	c = cursor_of(p, first + 8, sizeof(uint64_t));
	if (take_u64(&c) == PIPE_HEADER)
		return take_pipe(p);
	return p->fd >= 0 && p->file_size == UINT64_MAX ? -ESPIPE : take_file(p);
}

/* ---- formats ---- */

/* What stands before the formats: the page's layout and ftrace's own events. */
static void skip_ftrace(struct cursor *c)
{
	uint32_t n;

	for (int i = 0; i < 2; i++) { /* header_page, header_event */
		(void)take_string(c);
		(void)take(c, take_u64(c));
	}
	n = take_u32(c);
	while (n-- && c->ok)
		(void)take(c, take_u64(c));
}

static int system_formats(struct cursor *c, perfdata_format_fn fn, void *ctx)
{
	const char *system = take_string(c);
	uint32_t n = take_u32(c);
	int rc = 0;

	while (n-- && c->ok && !rc) {
		uint64_t size = take_u64(c);
		const char *text = (const char *)take(c, size);

		if (text)
			rc = fn(ctx, system, text, size);
	}
	return rc;
}

int perfdata_formats(const struct perfdata *p, perfdata_format_fn fn, void *ctx)
{
	static const char magic[] = "\x17\x08\x44tracing";
	struct cursor c = cursor_of(p, p->tracing, p->tracing_len);
	const uint8_t *m = take(&c, sizeof(magic) - 1), *order;
	uint32_t n;
	int rc = 0;

	if (!m || memcmp(m, magic, sizeof(magic) - 1))
		return 0;
	(void)take_string(&c); /* version */
	order = take(&c, 2); /* byte order and size of long */
	if (!order)
		return 0;
	c.swapped = (order[0] != 0) != BIG_HERE; /* it says so itself */
	(void)take_u32(&c); /* page size */
	skip_ftrace(&c);
	n = take_u32(&c);
	while (n-- && c.ok && !rc)
		rc = system_formats(&c, fn, ctx);
	return rc;
}

/* ---- the whole ---- */

size_t perfdata_events(const struct perfdata *p)
{
	return p->nattr;
}

const struct perf_event_attr *perfdata_attr(const struct perfdata *p, size_t event)
{
	return event < p->nattr ? &p->attr[event] : NULL;
}

bool perfdata_swapped(const struct perfdata *p)
{
	return p->swapped;
}

int perfdata_rewind(struct perfdata *p)
{
	if (p->fd >= 0 && p->file_size == UINT64_MAX)
		return -ESPIPE;
	perfdata_unpack_free(p->unpack);
	p->unpack = NULL;
	p->in.left = 0;
	p->sum = (struct perfdata_sum){0};
	if (!p->pipe)
		return begin_data(p);
	if (p->fd < 0)
		p->in = (struct window){.at = p->bytes + PIPE_HEADER, .left = p->len - PIPE_HEADER};
	else if (lseek(p->fd, PIPE_HEADER, SEEK_SET) < 0)
		return -errno;
	p->in.more = UINT64_MAX;
	return 0;
}

const char *perfdata_text(const struct perfdata *p, enum perfdata_text which)
{
	return (unsigned)which < PERFDATA_TEXTS ? p->text[which] : NULL;
}

const struct perfdata_sum *perfdata_sum(const struct perfdata *p)
{
	return &p->sum;
}

void perfdata_free(struct perfdata *p)
{
	if (!p)
		return;
	if (p->own_fd)
		close(p->fd);
	perfdata_unpack_free(p->unpack);
	perfdata_unmap(p);
	free(p->in.buf);
	free(p->tracing);
	for (unsigned i = 0; i < PERFDATA_TEXTS; i++)
		free(p->text[i]);
	free(p->attr);
	free(p->layout);
	free(p->id);
	free(p);
}

const char *perfdata_why(int rc)
{
	switch (-rc) {
	case EBADMSG:
		return "not a recording of perf, or a broken one";
	case EISDIR:
		return "a folder, as perf record --threads writes, is not read: record without "
		       "--threads";
	case ESPIPE:
		return "a perf.data file cannot be read through a pipe, for its end is needed "
		       "first: give its name";
	default:
		return strerror(-rc);
	}
}

static int parse(struct perfdata *p, struct perfdata **out)
{
	int rc = take_header(p);

	if (rc)
		perfdata_free(p);
	else
		*out = p;
	return rc;
}

int perfdata_parse(const void *bytes, size_t len, struct perfdata **out)
{
	struct perfdata *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->fd = -1;
	p->bytes = bytes;
	p->len = len;
	return parse(p, out);
}

static int parse_fd(int fd, bool own, struct perfdata **out)
{
	struct perfdata *p = calloc(1, sizeof(*p));
	struct stat st;
	int rc = 0;

	if (!p || fstat(fd, &st))
		rc = p ? -errno : -ENOMEM;
	else if (S_ISDIR(st.st_mode))
		rc = -EISDIR;
	if (rc) {
		free(p);
		if (own)
			close(fd);
		return rc;
	}
	p->fd = fd;
	p->own_fd = own;
	p->file_size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
	return parse(p, out);
}

int perfdata_open_fd(int fd, struct perfdata **out)
{
	return parse_fd(fd, false, out);
}

int perfdata_open(int dir_fd, const char *path, struct perfdata **out)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : parse_fd(fd, true, out);
}
