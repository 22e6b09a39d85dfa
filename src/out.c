// SPDX-License-Identifier: GPL-2.0-only
/* Buffered output (out.h). */
#include "out.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER ((size_t)64 << 10)
/* After POLLOUT a pipe takes this much at once; more could block in write(). */
#define PIECE ((size_t)4096)

struct out {
	int fd, stop_fd, grace_ms;
	int error; /* the first one, -errno */
	size_t n;
	char buf[BUFFER];
};

struct out *out_new(int fd, int stop_fd, int grace_ms)
{
	struct out *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	o->fd = fd;
	o->stop_fd = stop_fd;
	o->grace_ms = grace_ms;
	o->error = 0;
	o->n = 0;
	return o;
}

void out_free(struct out *o)
{
	free(o);
}

/* Until something can be written, or the grace after a stop is over. */
static int wait_writable(struct out *o)
{
	struct pollfd p[2] = {{.fd = o->fd, .events = POLLOUT},
			      {.fd = o->stop_fd, .events = POLLIN}};
	bool stopping = false;
	int rc;

	for (;;) {
		rc = poll(p, stopping ? 1 : 2, stopping ? o->grace_ms : -1);
		if (rc < 0 && errno != EINTR)
			return -errno;
		if (rc == 0)
			return -EINTR;
		if (rc > 0 && p[0].revents)
			return 0; /* also an error: write() says which */
		if (rc > 0)
			stopping = true;
	}
}

static int write_all(struct out *o)
{
	size_t at = 0;

	while (at < o->n) {
		size_t n = o->n - at < PIECE ? o->n - at : PIECE;
		ssize_t done;
		int rc = wait_writable(o);

		if (rc)
			return rc;
		done = write(o->fd, o->buf + at, n);
		if (done < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (done > 0)
			at += (size_t)done;
	}
	return 0;
}

int out_flush(struct out *o)
{
	if (!o->error)
		o->error = write_all(o);
	o->n = 0;
	return o->error;
}

void out_bytes(struct out *o, const char *data, size_t n)
{
	while (n && !o->error) {
		size_t room = BUFFER - o->n, part = n < room ? n : room;

		memcpy(o->buf + o->n, data, part);
		o->n += part;
		data += part;
		n -= part;
		if (o->n == BUFFER)
			out_flush(o);
	}
}

void out_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

void out_printf(struct out *o, const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n > 0)
		out_bytes(o, buf, (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}
