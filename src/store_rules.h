// SPDX-License-Identifier: GPL-2.0-only
/*
 * Figures that follow from others: a rate from a count and the interval's length, a share from a
 * count and the sum of all. Of such a figure a recording has only how it differs from what follows,
 * which mostly is not at all (store_ruled.h), so that what is read is what was written, whatever it
 * was: a merged interval's mean, or a figure of a damaged counter.
 */
#ifndef KVMTOP_STORE_RULES_H
#define KVMTOP_STORE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot.h"
#include "store_fields.h"

/* What follows by a rule may be needed by those behind it: they are read in this order. */
enum store_rule {
	STORE_NO_RULE,
	/* struct tally */
	RULE_TIMED, /* all that began have ended */
	RULE_ONE, /* of one pair the smallest and the largest time are its time */
	RULE_MEAN,
	RULE_P50, /* a step of the histogram: near the mean's, … */
	RULE_P99, /* … near p50's, … */
	RULE_P999, /* … and near p99's */
	RULE_RATE,
	RULE_RATE_TOTAL,
	RULE_COUNT_PCT,
	RULE_TIME_PCT,
	RULE_COUNT_PCT_TOTAL,
	RULE_TIME_PCT_TOTAL,
	/* struct snap_exits */
	RULE_EXIT_RATE,
	RULE_EXIT_STEP, /* a step of the histogram */
	RULE_EXIT_MAX,
	RULE_EXIT_TOP,
	RULE_EXIT_ON,
	/* struct snap_use */
	RULE_USR,
	RULE_WAIT,
	RULE_DEMAND,
	/* struct snap_vm: of its vCPUs */
	RULE_VM_STEAL,
	RULE_VM_THROT,
	RULE_VM_WAIT,
	RULE_VM_DEMAND,
	RULE_VM_STEAL_MAX,
	RULE_VM_VCPU,
	RULE_VM_IO,
	/* struct snap_samples, snap_symbol, snap_waited */
	RULE_SAMPLES, /* a share of the row's samples */
	RULE_SYMBOL_PCT,
	RULE_SYMBOL_PCT_TOTAL,
	RULE_WAITED_SHARE,
	RULE_WAITED_PCT,
	STORE_RULES
};

/* Sums over the rows of exits of one level and kind. */
struct store_whole {
	uint64_t count, time, count_total, time_total;
};

/* What rules look at beside the row. */
struct store_known {
	const struct snapshot *s;
	double dt_s, total_s; /* the interval; since totals are counted */
	struct store_whole *exits; /* one a row of s->exits */
	uint64_t *symbols, *symbols_total, *waited; /* the same: of its level */
};

/* Its indexes hold (store_check()), and so it stays until store_known_free(). 0 or -ENOMEM. */
int store_known_init(struct store_known *k, const struct snapshot *s);
void store_known_free(struct store_known *k);

/* A figure as it is read again. */
double store_as_read(double v);

/* How what follows by a rule is used. */
enum store_follows {
	FOLLOWS_FIGURE, /* this is the figure, or near it */
	FOLLOWS_SHARE, /* the figure is so many of these, as a percentage */
	FOLLOWS_STEP, /* the figure is a step of the histogram (hist.h), near that of this time */
};
enum store_follows store_rule_use(enum store_rule rule);
/* A longer interval has it out of its own counts, whatever its parts had (store_merge_order()). */
bool store_rule_anew(enum store_rule rule);
/* Of a member of n rows of s, of which `row` is the first. */
void store_rule_doubles(const struct store_known *k, const struct store_leaf *l, const char *row,
			size_t n, size_t row_size, double *out);
/* Of those that are integers: RULE_TIMED, RULE_ONE and RULE_P50 to RULE_P999. */
void store_rule_integers(const struct store_leaf *l, const char *row, size_t n, size_t row_size,
			 uint64_t *out);

/*
 * Shares of a longer interval, out of its counts: means of its parts' are none. Only the rows of
 * exits and symbols change, which are the caller's own. 0 or -ENOMEM.
 */
int store_settle_shares(struct snapshot *s);

#endif
