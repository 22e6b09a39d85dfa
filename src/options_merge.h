// SPDX-License-Identifier: GPL-2.0-only
/* The options of `kvmtop merge`, kept in their order: what stands behind a -G is of that guest. */
#ifndef KVMTOP_OPTIONS_MERGE_H
#define KVMTOP_OPTIONS_MERGE_H

#include <stddef.h>

struct options;

/* One word; both point into argv. */
struct merge_word {
	char what; /* 'H', 'G', 'o' --offset, 's' --scaling, 'm' --map, 't' --tsc, 'r' --recording
		    */
	const char *arg;
};

struct merge_words {
	struct merge_word *word;
	size_t n;
};

/* Of the option table (options.h). */
int options_host_trace(struct options *o, const char *arg, char *err, size_t size);
int options_guest_trace(struct options *o, const char *arg, char *err, size_t size);
int options_offset(struct options *o, const char *arg, char *err, size_t size);
int options_scaling(struct options *o, const char *arg, char *err, size_t size);
int options_map(struct options *o, const char *arg, char *err, size_t size);
int options_recording(struct options *o, const char *arg, char *err, size_t size);
int options_tsc(struct options *o, const char *arg, char *err, size_t size);

#endif
