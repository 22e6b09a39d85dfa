// SPDX-License-Identifier: GPL-2.0-only
/*
 * Output through a descriptor in bounded memory, with errors that stay: whoever writes a record
 * looks once, at its end.
 */
#ifndef KVMTOP_OUT_H
#define KVMTOP_OUT_H

#include <stddef.h>

struct out;

/*
 * stop_fd, where it is not -1, becomes readable when the run shall end: a write that is stuck
 * then (nobody reads the pipe) fails with -EINTR after a grace of `grace_ms`. Neither
 * descriptor is owned. NULL: no memory.
 */
struct out *out_new(int fd, int stop_fd, int grace_ms);
void out_free(struct out *o); /* flushes nothing */
void out_bytes(struct out *o, const char *data, size_t n);
void out_text(struct out *o, const char *text);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Everything so far is written, or the first error since the beginning: 0 or -errno. */
int out_flush(struct out *o);

#endif
