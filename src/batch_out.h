// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intervals in a format on standard output, wherever they come from: live or out of a recording.
 *
 * Ends when the reader of standard output goes away, a signal comes or -n is reached.
 */
#ifndef KVMTOP_BATCH_OUT_H
#define KVMTOP_BATCH_OUT_H

#include "format.h"
#include "options.h"

/* Zero it, sigfd -1, before batch_out_open(). */
struct batch_out {
	const struct options *o;
	const struct format *format;
	struct format_job job;
	struct format_state *state;
	struct out *out;
	int sigfd; /* readable when a signal asks for the end */
	uint64_t records;
	bool said_no_vm, said_no_exit, said_no_guest;
};

/*
 * Blocks the signals that end a run: call it before any thread is made, so that all inherit it.
 * 0 or -errno, perhaps with one line in err. batch_out_close() in any case.
 */
int batch_out_open(struct batch_out *b, const struct options *o, char *err, size_t size);
/* One record, whole or not at all. 0, 1: the end, or -errno. */
int batch_out_write(struct batch_out *b, const struct snapshot *s);
/* Says what failed, rc being of the calls above or what the caller met; an enum exit_status. */
int batch_out_status(const struct batch_out *b, int rc, const char *err);
void batch_out_close(struct batch_out *b);

#endif
