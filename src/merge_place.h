// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stream of a merge (merge.h): an input, or one CPU of it, in its own order; where its next event
 * belongs, and what is to be said at that place.
 */
#ifndef KVMTOP_MERGE_PLACE_H
#define KVMTOP_MERGE_PLACE_H

#include "merge.h"

#define MERGE_NOTES_MAX 100 /* places a stream and kind that are said; more are counted */
#define MERGE_NAME_SHOWN 100

/* Kinds of what is said. */
enum merge_note {
	NOTE_BACK,
	NOTE_APART,
	NOTE_NO_SPAN,
	NOTE_TWO,
	NOTE_GAP,
	NOTE_WROTE,
	NOTE_LATE,
	NOTE_DOUBT,
	MERGE_NOTES
};

/* Where one CPU of a guest is. */
struct merge_place {
	size_t span;
	uint64_t stamp; /* of the event before */
	uint64_t events, steps; /* so far: its own; back, of their stamps */
	uint64_t late_from; /* stamp of the first event of those that are late */
	bool seen, late, gap_said, two_said;
};

struct merge_stream {
	const struct merge_input *in;
	bool host;
	struct tracetext *t;
	struct tracetext_event e;
	uint64_t tsc; /* the host's, of e */
	uint64_t key; /* the order: never less than that of the line before */
	struct merge_place *place; /* the host's, or a guest's by its CPU */
	struct tracetext_cpus cpus; /* that are in it, where others are not */
	struct merge_sync *sync; /* of the host */
	unsigned said[MERGE_NOTES];
	char note[400]; /* what is to be said before e */
	char prefix[MERGE_NAME_SHOWN + 2];
	size_t prefix_len;
	uint64_t outside; /* lines that lie before or behind the host's trace */
};

/*
 * s->e was read, an event of the host or of a guest's CPU that has spans: sets s->tsc, and adds to
 * s->note, which is not cleared, lines of `#`.
 */
void merge_place_host(struct merge_stream *s);
void merge_place_guest(struct merge_stream *s);

#endif
