// SPDX-License-Identifier: GPL-2.0-only
/*
 * The layout of a perf.data file, after tools/perf/Documentation/perf.data-file-format.txt:
 * a header that names three sections (attributes with their ids, data, and behind the data a table
 * of features of which only the tracing data are of interest here).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata_priv.h"

#define MAGIC "PERFILE2"
#define PIPE_HEADER 16 /* what a recording through a pipe begins with is no longer */
#define FEATURE_TRACING_DATA 1
#define FEATURES 256
#define EVENTS_MAX 65536
struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct span attrs, data, event_types;
	uint64_t features[FEATURES / 64];
};

/* ---- bytes ---- */

static bool within(const struct perfdata *p, struct span s)
{
	return s.offset <= p->len && s.size <= p->len - s.offset;
}

bool perfdata_grow(void *array, size_t n, size_t *room, size_t size)
{
	void *old, *new;

	if (n < *room)
		return true;
	memcpy(&old, array, sizeof(old));
	new = reallocarray(old, *room ? *room * 2 : 256, size);
	if (!new)
		return false;
	memcpy(array, &new, sizeof(new));
	*room = *room ? *room * 2 : 256;
	return true;
}

static const char *take_string(struct cursor *c)
{
	const uint8_t *end = c->ok ? memchr(c->at, '\0', c->left) : NULL;

	return (const char *)take(c, end ? (uint64_t)(end - c->at) + 1 : UINT64_MAX);
}

/* ---- header, events ---- */

static int take_ids(struct perfdata *p, struct span s, uint32_t event)
{
	struct cursor c;

	if (!within(p, s))
		return -EBADMSG;
	c = (struct cursor){p->bytes + s.offset, s.size, true};
	while (c.left >= sizeof(uint64_t)) {
		if (!perfdata_grow(&p->id, p->nid, &p->id_room, sizeof(*p->id)))
			return -ENOMEM;
		p->id[p->nid++] = (struct event_id){take_u64(&c), event};
	}
	return 0;
}

/* One attribute as this file has it: older ones are shorter, newer ones longer. */
static int take_event(struct perfdata *p, const uint8_t *at, size_t size, struct perf_event_attr *a)
{
	struct span ids;

	memcpy(a, at, size < sizeof(*a) ? size : sizeof(*a));
	memcpy(&ids, at + size, sizeof(ids));
	return take_ids(p, ids, (uint32_t)(a - p->attr));
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct event_id *)a)->id, y = ((const struct event_id *)b)->id;

	return x < y ? -1 : x > y;
}

bool perfdata_find_event(const struct perfdata *p, uint64_t id, uint32_t *event)
{
	struct event_id key = {.id = id};
	const struct event_id *found =
		p->nid ? bsearch(&key, p->id, p->nid, sizeof(key), by_id) : NULL;

	if (found)
		*event = found->event;
	return found;
}

static int take_events(struct perfdata *p, const struct file_header *h)
{
	uint64_t n, size = h->attr_size;
	int rc = 0;

	if (size < PERF_ATTR_SIZE_VER0 + sizeof(struct span) || !within(p, h->attrs))
		return -EBADMSG;
	n = h->attrs.size / size;
	if (!n || n > EVENTS_MAX)
		return -EBADMSG;
	p->attr = calloc(n, sizeof(*p->attr));
	if (!p->attr)
		return -ENOMEM;
	p->nattr = n;
	p->alike = true;
	for (size_t i = 0; i < n && !rc; i++) {
		rc = take_event(p, p->bytes + h->attrs.offset + i * size,
				size - sizeof(struct span), &p->attr[i]);
		p->alike &= p->attr[i].sample_type == p->attr[0].sample_type;
	}
	if (p->nid)
		qsort(p->id, p->nid, sizeof(*p->id), by_id);
	return rc;
}

/* The table behind the data: a span for each feature that the header's bits name, in order. */
static void find_tracing_data(struct perfdata *p, const struct file_header *h)
{
	struct cursor c;
	struct span s = {0};

	if (!h->data.size || !within(p, h->data))
		return; /* cut off before its end was written */
	c = (struct cursor){p->bytes + h->data.offset + h->data.size,
			    p->len - h->data.offset - h->data.size, true};
	for (unsigned bit = 0; bit <= FEATURE_TRACING_DATA; bit++) {
		if (!(h->features[0] & UINT64_C(1) << bit))
			continue;
		s.offset = take_u64(&c);
		s.size = take_u64(&c);
		if (bit == FEATURE_TRACING_DATA && c.ok && within(p, s))
			p->tracing = s;
	}
}

static int take_header(struct perfdata *p)
{
	struct file_header h = {0};
	int rc;

	if (p->len < PIPE_HEADER)
		return -EBADMSG;
	memcpy(&h, p->bytes, p->len < sizeof(h) ? p->len : sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)))
		return !memcmp(h.magic, "2ELIFREP", sizeof(h.magic)) ? -ENOTSUP : -EBADMSG;
	if (h.size == PIPE_HEADER)
		return -ENOTSUP;
	if (p->len < sizeof(h) || h.size < sizeof(h) || h.data.offset > p->len)
		return -EBADMSG;
	rc = take_events(p, &h);
	if (rc)
		return rc;
	find_tracing_data(p, &h);
	p->data = h.data;
	/* The size is written last: where that was not done, all that follows are records. */
	if (!p->data.size || !within(p, p->data))
		p->data.size = p->len - p->data.offset;
	return 0;
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
	struct cursor c = {p->bytes + p->tracing.offset, p->tracing.size, true};
	const uint8_t *m = take(&c, sizeof(magic) - 1), *order;
	uint32_t n;
	int rc = 0;

	if (!m || memcmp(m, magic, sizeof(magic) - 1))
		return 0;
	(void)take_string(&c); /* version */
	order = take(&c, 2); /* byte order and size of long */
	(void)take_u32(&c); /* page size */
	if (!order || order[0])
		return 0;
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

void perfdata_free(struct perfdata *p)
{
	if (!p)
		return;
	free(p->own);
	free(p->attr);
	free(p->id);
	free(p->place);
	free(p);
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
	p->bytes = bytes;
	p->len = len;
	return parse(p, out);
}

static int read_all(int fd, uint8_t **bytes, size_t *len)
{
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP; /* a pipe's recording has another form */
	*bytes = malloc((size_t)st.st_size + 1);
	if (!*bytes)
		return -ENOMEM;
	for (*len = 0; n && *len < (size_t)st.st_size; *len += (size_t)n) {
		n = read(fd, *bytes + *len, (size_t)st.st_size - *len);
		if (n < 0)
			return -errno;
	}
	return 0;
}

int perfdata_open(int dir_fd, const char *path, struct perfdata **out)
{
	struct perfdata *p = calloc(1, sizeof(*p));
	int rc, fd;

	if (!p)
		return -ENOMEM;
	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	rc = fd < 0 ? -errno : read_all(fd, &p->own, &p->len);
	if (fd >= 0)
		close(fd);
	if (rc) {
		perfdata_free(p);
		return rc;
	}
	p->bytes = p->own;
	return parse(p, out);
}
