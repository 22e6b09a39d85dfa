// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two recordings, or two ranges of one, compared: what grew, what shrank, and whether that is more
 * than the figures vary by themselves.
 *
 * A side is read once, from its first interval to its last. Its intervals are put into at most
 * DIFF_BLOCKS blocks in order of time; of each figure a block has a sum and the time that the sum
 * is over. The noise comes from drawing blocks anew (diff_noise.c), which blocks that are long are
 * better for than single intervals: neighbours are alike.
 */
#ifndef KVMTOP_DIFF_H
#define KVMTOP_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host_facts.h"
#include "sample.h"

struct filter;
struct out;
struct snap_vm;
struct snapshot;
struct store;

#define DIFF_BLOCKS 100
#define DIFF_BLOCKS_LEAST 5 /* with fewer nothing is said about noise */
#define DIFF_HOST UINT32_MAX /* in place of a VM */
#define DIFF_ALL "(all)" /* all samples of a part */

enum diff_what {
	DIFF_HOSTS, /* % of the host's CPU time */
	DIFF_USE, /* % of a vCPU's time */
	DIFF_WAKES, /* us from wake-up to running: the mean over intervals with wake-ups */
	DIFF_WAITED, /* who had the CPU meanwhile, % of a vCPU's time */
	DIFF_EXITS, /* per vCPU-second */
	DIFF_EXIT_TIME, /* % of a vCPU's time; without those that wait */
	DIFF_SYMBOLS, /* % of a vCPU's time, by samples */
	DIFF_SHOWN,
	/* What the others are divided by: time in s (kind: of which), and totals for shares. */
	DIFF_TIME = DIFF_SHOWN,
	DIFF_TOTAL,
};

/* kind of DIFF_TIME and DIFF_TOTAL: first one each kind of exit … */
enum {
	DIFF_TIME_SAMPLES = KIND_NR, /* … and of DIFF_TIME: while there were samples; */
	DIFF_TIME_WAITED, /* … while waiting was watched, … */
	DIFF_TIME_WAKES, /* … first of two: while vCPUs were woken; */
	DIFF_TIME_USE = DIFF_TIME_WAKES +
			2, /* while the n-th figure of the host or of a VM's use was known */
	DIFF_TOTAL_TIME = KIND_NR, /* … and of DIFF_TOTAL: the time of each kind; */
	DIFF_TOTAL_SAMPLES = 2 * KIND_NR,
	DIFF_TOTAL_WAITED,
};

/* One figure of one side: a sum in each block. */
struct diff_series {
	uint32_t vm; /* of the side, or DIFF_HOST */
	uint8_t what; /* enum diff_what */
	uint8_t kind; /* enum kvm_kind of exits, enum ip_domain of symbols, enum waited_kind, else
			 which figure */
	const char *name, *module; /* owned; module "" where there is none */
	double *block;
	double sum;
};

struct diff_vm {
	char *name, *uuid, *vm_id; /* uuid "" not known, or not its alone */
	bool by_pid; /* the name was made of the process's number */
	bool twice; /* two VMs of this name at the same time */
	unsigned nvcpu; /* of its last interval */
	uint64_t seen; /* the interval in which it was seen last */
};

/* Which samples count: of one file, its host's code can be compared with its guests'. */
enum diff_part { DIFF_WHOLE, DIFF_HOST_PART, DIFF_GUEST_PART };

/* kind of DIFF_SYMBOLS in such a part: either side's; DIFF_ALL has all of it. */
enum { DIFF_KERNEL = DOMAIN_NR + 1, DIFF_USER };

struct diff_side {
	const char *label; /* "A", "B" */
	const char *path;
	const struct filter *filter; /* which VMs; NULL: all */
	enum diff_part part;
	bool by_perf; /* a file of perf's: no wall clock, no names, few facts; intervals are slices
		       */
	int64_t first, last; /* ns since 1970: where its first interval begins and its last ends */
	uint64_t intervals, lost;
	int64_t shortest, longest; /* lengths of its intervals, ns */
	int64_t length; /* all together */
	char boot_id[64], node[256];
	bool boots; /* there is more than one boot in it */
	struct host_facts facts; /* at its end; n 0: none were recorded */
	struct host_facts before; /* at its beginning */
	struct diff_vm *vm;
	struct diff_series *series;
	uint32_t *slot;
	size_t nvm, nseries, nslot;
	unsigned nblocks;
	uint64_t damaged; /* intervals that could not be read */
};

/*
 * For who fills a side (diff_read.c, report_side.c): adds to a figure of a block below DIFF_BLOCKS.
 * 0, -ENOMEM, or -E2BIG: more figures than any host has.
 */
int diff_put(struct diff_side *side, uint32_t vm, unsigned block, const struct diff_series *like,
	     double v);
/* The number of the VM `vm` in interval `at`, a new one where it was not seen. 0 or as above. */
int diff_vm_number(struct diff_side *side, const struct snap_vm *vm, uint64_t at, uint32_t hint,
		   uint32_t *out);
/* Whether a domain is of the side's part; and the kind that its rows have. */
bool diff_wants_domain(const struct diff_side *side, unsigned domain);
uint8_t diff_domain_kind(const struct diff_side *side, unsigned domain);

/*
 * Reads the intervals of a store whose middle lies from `from` to `to` (ns since 1970). Set label,
 * path and filter, the rest zero. 0, -ENOENT: there is none, or another -errno. diff_side_free() in
 * any case.
 */
int diff_read(struct store *st, int64_t from, int64_t to, struct diff_side *side);
void diff_side_free(struct diff_side *side);
/* For diff_read() and tests: one interval as the at-th of n. 0, -ENOMEM or -E2BIG. */
int diff_add(struct diff_side *side, const struct snapshot *s, uint64_t at, uint64_t n);
/* NULL: none. Texts of `key` are compared; block and sum are not. */
const struct diff_series *diff_find(const struct diff_side *side, const struct diff_series *key);

/* DIFF_BY_ONE: a file of perf's has no names, and there is one VM on either side. */
enum diff_by { DIFF_BY_UUID, DIFF_BY_NAME, DIFF_BY_MAP, DIFF_BY_PROCESS, DIFF_BY_ONE };

struct diff_pair {
	uint32_t a, b;
	enum diff_by by;
};

struct diff_row {
	uint32_t pair; /* of diff.pair, or DIFF_HOST */
	uint8_t what, kind;
	bool a_known, b_known;
	bool tested; /* there were enough blocks; else low and high are not known */
	bool sure; /* larger than the noise */
	const char *name, *module;
	double a, b; /* the unit is that of `what` */
	double low, high; /* b - a lies between these, if the noise goes on like this (99 %) */
	double share_a, share_b; /* of the VM's exits of that kind, or samples, %; <0: none */
};

struct diff {
	struct diff_side side[2];
	struct diff_pair *pair;
	size_t npairs;
	struct diff_row *row; /* by what, those that are sure first, the largest change first */
	size_t nrows;
};

/* Which pair a side's VM is of; -1: it is on this side only. */
int64_t diff_pair_of(const struct diff *d, int side, uint32_t vm);

/*
 * Finds who is whom: --map first ("A=B", nmap of them), then UUID, name, and within one boot the
 * process. 0, also where there was no VM at all; -ENOENT: no VM is on both sides, -EINVAL: a map
 * names no VM; with one line in err.
 */
int diff_match(struct diff *d, const char *const *map, size_t nmap, char *err, size_t size);
/* Makes the rows. 0 or -ENOMEM. */
int diff_compare(struct diff *d);
void diff_free(struct diff *d);

/*
 * Where b's ratio minus a's lies by chance alone: sums and times by blocks, of n each. A block
 * array that is NULL is nothing but zeroes. resamples: how often blocks are drawn.
 */
struct diff_sample {
	const double *sum, *time;
	unsigned n;
};
struct diff_noise;
struct diff_noise *diff_noise_new(unsigned resamples, unsigned na,
				  unsigned nb); /* NULL: no memory */
void diff_noise_free(struct diff_noise *z);
void diff_noise_between(struct diff_noise *z, const struct diff_sample *a,
			const struct diff_sample *b, double *low, double *high);

/* most: rows of each part, 0 all. */
void diff_text(const struct diff *d, size_t most, struct out *out);
void diff_csv(const struct diff *d, struct out *out);
int diff_json(const struct diff *d, struct out *out); /* 0 or -ENOMEM */
/* "host", "use", …; and "%", "1/vCPU-s". */
const char *diff_what_name(enum diff_what what);
const char *diff_unit(enum diff_what what);
const char *diff_by_name(enum diff_by by);
/* "vmexit" or "guest-kernel"; "" where there is none. */
const char *diff_kind_name(const struct diff_row *r);

#endif
