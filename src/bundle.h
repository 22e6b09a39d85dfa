// SPDX-License-Identifier: GPL-2.0-only
/*
 * Evidence for a colleague: parts that are made one after the other, each whole in memory or a file
 * of its own without a name, and put into one archive.
 */
#ifndef KVMTOP_BUNDLE_H
#define KVMTOP_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "store.h"

#define BUNDLE_ERR 600
#define BUNDLE_TEXT 300

struct anon;
struct out;
struct sysroot;
struct tar;

struct bundle {
	const struct options *o;
	struct sysroot *root;
	char path[4096]; /* of the archive */
	char folder[64]; /* in it */
	int sigfd; /* of SIGCHLD and what ends it, blocked; -1: they are not yet */
	bool ended; /* by a signal */
	struct tar *tar;
	struct anon *anon; /* NULL: as it is */
	/* The recording; store NULL: none, and why. */
	struct store *store;
	const char *recording;
	char no_recording[BUNDLE_TEXT];
	int64_t from, to; /* ns since 1970 */
	struct store_at first, last; /* its intervals within */
	uint64_t intervals, damaged;
	/* perf; -1 none, and why, where it was asked for. */
	int perf_fd;
	char no_perf[BUNDLE_TEXT];
};

/* Writes a part's text; 0 or -errno. */
typedef int (*bundle_writer)(struct bundle *b, struct out *out);

/* cmd_bundle.c: looks for signals; true: the user wants the end, now or before. */
bool bundle_was_ended(struct bundle *b);
/* bundle_parts.c: all but perf.data, into b->tar. 0 or -errno, perhaps with one line in err. */
int bundle_write_parts(struct bundle *b, char *err);
/* bundle_recording.c */
/* Finds the recording and its range; what is not there is said in b->no_recording. 0 or -errno. */
int bundle_open_recording(struct bundle *b, char *err);
/* Its copy, tables/ and findings.txt. 0 or -errno, perhaps with one line in err. */
int bundle_write_recording(struct bundle *b, char *err);
/* Learns which words to replace. 0 or -errno, perhaps with one line in err. */
int bundle_learn(struct bundle *b, char *err);
/* bundle_perf.c: runs perf, which takes b->o->perf_ns; sets perf_fd, no_perf, or ended. */
void bundle_run_perf(struct bundle *b);
/* A text part, with its words replaced where that is asked for. 0 or -errno. */
int bundle_add_text(struct bundle *b, const char *name, bundle_writer write);

#endif
