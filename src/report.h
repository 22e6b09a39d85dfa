// SPDX-License-Identifier: GPL-2.0-only
/*
 * What `kvmtop report` makes of a perf.data file of KVM's tracepoints: a table of exits or accesses
 * a kind, by the rules of docs/metrics.md, and beside it (where asked for) what perf 6.1 makes of
 * the same events, so that every difference between the two is known with its cause.
 */
#ifndef KVMTOP_REPORT_H
#define KVMTOP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hist.h"
#include "sample.h"

struct kvm_names;
struct perfdata;

/* Why perf's figures are others. */
enum report_cause {
	CAUSE_FIRST, /* before the thread's first kvm_entry */
	CAUSE_FLAGS, /* flags of a VMX reason are a reason of their own */
	CAUSE_VCPU, /* the thread's first vCPU is taken for its only one */
	CAUSE_LOST, /* a pair that overlaps a loss of events is timed */
	CAUSE_MIXED, /* a write and a read in one exit */
	CAUSE_ARM64, /* the time in the guest before the exit, not that of the exit */
	CAUSE_PAIRED, /* a begin and an end that do not belong together */
	CAUSE_NR
};

/* What a row is of. dir: enum ev_dir. */
struct report_key {
	uint64_t key;
	uint32_t isa;
	uint8_t kind, dir;
	uint8_t cause; /* of a difference */
};

struct report_row {
	struct report_key k;
	uint64_t count; /* begin events */
	uint64_t timed; /* completed pairs; all that follows is over these */
	uint64_t time_ns, min_ns, max_ns;
	unsigned __int128 squares; /* sum of them */
	double mean, m2; /* ns; by perf's rules only: as they grow with each pair (Welford) */
	struct hist hist;
	int64_t more,
		more_ns; /* a difference: what perf has not (negative: what it has too much) */
};

/* Rows by their key. */
struct report_table {
	struct report_row **row; /* in the order in which they were first seen */
	size_t n, room;
	uint32_t *slot; /* open addressing: index + 1 */
	size_t nslots; /* a power of two, or 0 */
};

struct report_row *report_row_get(struct report_table *t, const struct report_key *k);
void report_row_add(struct report_row *r, uint64_t ns); /* a completed pair */
void report_row_add_as_perf(struct report_row *r, uint64_t ns); /* with perf's own rounding */
double report_stderr_pct(const struct report_row *r); /* 0 for fewer than two */
double report_stderr_pct_as_perf(const struct report_row *r);
void report_table_free(struct report_table *t);

struct report_query {
	unsigned kinds; /* KIND_BIT; of report_kinds */
	const int *pid; /* npids of them; none: all */
	size_t npids;
	const int *vcpu; /* KVM's ids, nvcpus of them; none: all */
	size_t nvcpus;
	bool figures; /* by our rules */
	bool as_perf; /* by perf's */
};

/* Kinds that can be asked for. */
#define REPORT_KINDS                                                                               \
	(KIND_BIT(KIND_VMEXIT) | KIND_BIT(KIND_MMIO) | KIND_BIT(KIND_IOPORT) |                     \
	 KIND_BIT(KIND_MSR) | KIND_BIT(KIND_HYPERCALL) | KIND_BIT(KIND_USEREXIT))

struct report_event;
struct report_pair;

/* Who looks at each event in its turn, beside the tables (report_priv.h has the structs). */
struct report_watch {
	/* pairs: of each kind what began and what ended with it. 0 or -errno, which ends it. */
	int (*event)(void *ctx, const struct report_event *e, int64_t time,
		     const struct report_pair *pairs);
	void (*again)(void *ctx); /* all events will come once more */
	void *ctx;
};

struct report {
	const struct report_query *q;
	const struct report_watch *watch; /* of figures only; NULL: nobody */
	struct kvm_names *names; /* with those of the recording's own formats */
	struct kvm_format *format;
	unsigned formats; /* KVM events whose format is known */
	unsigned nevents; /* KVM events among what was recorded */
	uint32_t recorded; /* which: 1 << EV_… */
	bool own_formats; /* they are this machine's: the recording has none */
	bool arm64; /* of that machine, whose perf has rules of its own */
	struct report_table figures[KIND_NR], perf[KIND_NR];
	struct report_table diff; /* figures = perf + these; only where both were asked for */
	bool entries; /* kvm_entry or kvm_exit were seen: there are times */
	uint64_t events; /* KVM events that were looked at */
	uint64_t undecoded, unmatched, torn; /* events; pairs without an end; pairs over a loss */
	uint64_t open; /* that had not ended when the recording did */
	int64_t first, last; /* time of the first and last event, ns */
	uint64_t seen[EV_NR]; /* events a type */
	struct report_run *run; /* while it reads */
};

/*
 * Takes the formats that came along, whatever machine they are of, else those below tracing_fd (an
 * events folder of tracefs, -1: none) where their ids are those of the recording, if that does not
 * say that its machine is another kind than this.
 */
int report_prepare(struct report *r, const struct report_query *q, const struct perfdata *p,
		   int tracing_fd);
/* Reads all of it. 0 or -errno. */
int report_read(struct report *r, struct perfdata *p);
void report_free(struct report *r);
/* The event (enum kvm_event_type) that begins one of this kind, which is a table of perf's. */
unsigned report_event(enum kvm_kind kind);
/* Was that event among those that were recorded? */
bool report_recorded(const struct report *r, enum kvm_kind kind);

#endif
