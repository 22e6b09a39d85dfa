// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which events of an interval are missing: lost by full rings, or of CPUs that nobody watched.
 * Counts of such kinds are too low; exits_torn() is about times.
 */
#ifndef KVMTOP_EXITS_MISSING_H
#define KVMTOP_EXITS_MISSING_H

#include <stdbool.h>
#include <stdint.h>

#include "sample.h"
#include "value.h"

/* CPUs that were not watched for a while. */
struct missing_gap {
	int64_t to; /* until when, the latest; ns */
	int64_t longest; /* ns */
	unsigned n; /* how many CPUs; 0: none */
	int cpu; /* one of them, for the finding */
	bool told; /* its first interval was shown */
};

struct missing {
	uint32_t lost; /* event types (1 << ev_type) that a counter says were lost in this interval
			*/
	uint32_t lost_before; /* the same of the interval before */
	uint32_t now; /* types that are missing in this interval: set by missing_commit() */
	uint32_t ever; /* since the start or reset, .now of this interval included */
	int64_t loss_to; /* of windows told in this interval, the latest end */
	bool uncounted; /* one of them is in no counter */
	struct missing_gap gap;
};

void missing_loss(struct missing *m, const struct loss *l);
void missing_count(struct missing *m, const struct loss_count *c);
/* The interval begins at start (ns) and is about to be shown; .gap.n is 0 if it has none. */
void missing_commit(struct missing *m, int64_t start);
/* The next interval begins at watermark. */
void missing_next(struct missing *m, int64_t watermark);
void missing_reset(struct missing *m); /* the totals */

/* v, marked where counts of the kind (or KIND_ALL …) are too low; total: since the start. */
struct value missing_mark(const struct missing *m, unsigned kinds, bool total, struct value v);
/* The same for the time spent in exits, which lacks the exits that lost their begin or end. */
struct value missing_mark_time(const struct missing *m, struct value v);

#endif
